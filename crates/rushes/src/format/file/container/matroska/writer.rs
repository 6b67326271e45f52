//! Matroska and WebM files (RFC 9559), written from the beginning to the end: what was written can be
//! read, also if the recording is interrupted.

use std::io::{self, Write};

use rushes_proto::ClockRate;

use super::super::configuration::{Configuration, Form};
use super::super::writing::{Muxer, Sample, shift};

/// Milliseconds and octets after which a cluster ends. Times in it have 16 bits.
const CLUSTER_MILLIS: u64 = 1_000;
const CLUSTER_OCTETS: usize = 4 << 20;

/// The size of an element that ends where one of its parent's level begins (RFC 8794 section 6.2).
const UNKNOWN: [u8; 8] = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// What wrote the file.
const APPLICATION: &[u8] = concat!("Rushes ", env!("CARGO_PKG_VERSION")).as_bytes();

pub(in super::super) struct Matroska {
    kind: &'static str,
    /// The clock of each track, and whether it is video.
    tracks: Vec<(ClockRate, bool)>,
    /// The samples of the current cluster with the numbers of their tracks, and their octets.
    samples: Vec<(usize, Sample)>,
    octets: usize,
    /// By how many ticks the file is later than the stream, of a single track.
    shift: Option<i64>,
    written: u64,
}

impl Matroska {
    /// A file of this kind: `matroska` or `webm`.
    pub(in super::super) fn new(kind: &'static str) -> Self {
        let (tracks, samples, octets, shift) = (Vec::new(), Vec::new(), 0, None);
        Self { kind, tracks, samples, octets, shift, written: 0 }
    }

    /// The time of a track in milliseconds, to the nearest.
    fn millis(&self, track: usize, ticks: i64) -> i64 {
        let hertz = i128::from(self.tracks[track].0.hertz());
        let millis = (i128::from(ticks) * 1_000 + hertz / 2).div_euclid(hertz);
        i64::try_from(millis).unwrap_or(i64::MAX)
    }
}

impl Muxer for Matroska {
    fn begin(&mut self, configurations: &[Configuration], to: &mut dyn Write) -> io::Result<()> {
        let track_of = |of: &Configuration| (of.codec.clock_rate, of.pictures().is_some());
        self.tracks = configurations.iter().map(track_of).collect();
        // The tracks of a film have one beginning.
        self.shift = (configurations.len() > 1).then_some(0);
        let mut header = Element::default();
        header.unsigned(0x4286, 1).unsigned(0x42f7, 1).unsigned(0x42f2, 4).unsigned(0x42f3, 8);
        header.octets(0x4282, self.kind.as_bytes()).unsigned(0x4287, 4).unsigned(0x4285, 2);
        let mut info = Element::default();
        // Times are milliseconds.
        info.unsigned(0x2a_d7b1, 1_000_000);
        info.octets(0x4d80, APPLICATION).octets(0x5741, APPLICATION);
        let mut tracks = Element::default();
        for (number, configuration) in configurations.iter().enumerate() {
            tracks.octets(0xae, &track(number as u64 + 1, configuration).0);
        }
        let mut file = Element::default();
        file.octets(0x1a45_dfa3, &header.0).open(0x1853_8067);
        file.octets(0x1549_a966, &info.0).octets(0x1654_ae6b, &tracks.0);
        to.write_all(&file.0)
    }

    fn write(&mut self, track: usize, sample: Sample, to: &mut dyn Write) -> io::Result<()> {
        let time = self.millis(track, sample.presented);
        let begin = self.samples.first();
        let begin = begin.map_or(time, |(track, first)| self.millis(*track, first.presented));
        let ends = time.abs_diff(begin) >= CLUSTER_MILLIS || self.octets > CLUSTER_OCTETS;
        if ends || self.tracks[track].1 && sample.is_key {
            self.finish(to)?;
        }
        self.octets += sample.data.len();
        self.samples.push((track, sample));
        Ok(())
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let samples = std::mem::take(&mut self.samples);
        let Some(begin) = samples.first() else { return Ok(()) };
        let shift = *self.shift.get_or_insert_with(|| shift(samples.iter().map(|it| &it.1)));
        let time = |(track, sample): &(usize, Sample)| {
            let millis = self.millis(*track, sample.presented.saturating_add(shift));
            u64::try_from(millis).unwrap_or(0)
        };
        let mut cluster = Element::default();
        cluster.unsigned(0xe7, time(begin));
        for sample in &samples {
            let relative = time(sample).wrapping_sub(time(begin)) as u16;
            let [high, low] = relative.to_be_bytes();
            let (track, Sample { data, is_key, .. }) = sample;
            // A simple block: the number of the track in one octet, the time, and whether it is a
            // key frame.
            let head = [0x81 + *track as u8, high, low, u8::from(*is_key) << 7];
            cluster.id(0xa3).len(head.len() + data.len());
            cluster.0.extend(head);
            cluster.0.extend_from_slice(data);
        }
        let mut head = Element::default();
        head.id(0x1f43_b675).len(cluster.0.len());
        to.write_all(&head.0)?;
        to.write_all(&cluster.0)?;
        self.octets = 0;
        self.written += samples.len() as u64;
        Ok(())
    }

    fn samples_written(&self) -> u64 {
        self.written
    }
}

/// The entry of a track.
fn track(number: u64, configuration: &Configuration) -> Element {
    let mut entry = Element::default();
    let coding = match configuration.form {
        Form::Avc(..) => "V_MPEG4/ISO/AVC",
        Form::Hevc(..) => "V_MPEGH/ISO/HEVC",
        Form::Vvc(..) => "V_MPEGI/ISO/VVC",
        Form::Opus(_) => "A_OPUS",
    };
    // Number, identifier, type; no lacing.
    let kind = if configuration.pictures().is_some() { 1 } else { 2 };
    entry.unsigned(0xd7, number).unsigned(0x73c5, number).unsigned(0x83, kind).unsigned(0x9c, 0);
    entry.octets(0x86, coding.as_bytes()).octets(0x63a2, &configuration.record());
    if let Some(format) = configuration.pictures() {
        let mut video = Element::default();
        video.unsigned(0xb0, format.width.into()).unsigned(0xba, format.height.into());
        entry.octets(0xe0, &video.0);
    }
    if let Form::Opus(dops) = &configuration.form {
        let mut audio = Element::default();
        audio.octets(0xb5, &f64::from(dops.input_sample_rate).to_be_bytes());
        audio.unsigned(0x9f, dops.output_channel_count.into());
        entry.octets(0xe1, &audio.0);
    }
    entry
}

/// Elements one after the other (RFC 8794).
#[derive(Debug, Default)]
struct Element(Vec<u8>);

impl Element {
    fn id(&mut self, id: u32) -> &mut Self {
        let octets = id.to_be_bytes();
        self.0.extend(octets.iter().skip_while(|octet| **octet == 0));
        self
    }

    /// The size of an element's data: in eight octets, which any size fits.
    fn len(&mut self, len: usize) -> &mut Self {
        self.0.extend((1_u64 << 56 | len as u64).to_be_bytes());
        self
    }

    fn octets(&mut self, id: u32, octets: &[u8]) -> &mut Self {
        self.id(id).len(octets.len()).0.extend_from_slice(octets);
        self
    }

    fn unsigned(&mut self, id: u32, number: u64) -> &mut Self {
        self.octets(id, &number.to_be_bytes())
    }

    /// The beginning of an element of unknown size.
    fn open(&mut self, id: u32) -> &mut Self {
        self.id(id).0.extend(UNKNOWN);
        self
    }
}
