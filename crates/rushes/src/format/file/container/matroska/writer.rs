//! Matroska and WebM files (RFC 9559), written from the beginning to the end: a file is readable
//! even if the recording is interrupted. In a completed file, players can seek.

use std::io::{self, Write};

use rushes_proto::ClockRate;

use super::super::configuration::{Configuration, Form};
use super::super::writing::{Muxer, Sample, shift};
use super::index::{Cues, Parts};
use super::written::Element;
use crate::format::Codec;

/// Milliseconds and octets after which a cluster ends. Times in it have 16 bits.
const CLUSTER_MILLIS: u64 = 1_000;
const CLUSTER_OCTETS: usize = 4 << 20;

/// Maximum number of samples in a cluster: small ones take more memory than their octets.
const CLUSTER_SAMPLES_MAX: usize = 32_768;

/// The name of the application that wrote the file.
const APPLICATION: &[u8] = concat!("Rushes ", env!("CARGO_PKG_VERSION")).as_bytes();

pub(in super::super) struct Matroska {
    kind: &'static str,
    tracks: Vec<Track>,
    /// The samples of the current cluster with the numbers of their tracks, and their octets.
    samples: Vec<(usize, Sample)>,
    octets: usize,
    /// By how many ticks the file is later than the stream, of a single track.
    shift: Option<i64>,
    parts: Option<Parts>,
    cues: Cues,
    /// Octets and samples.
    len: u64,
    written: u64,
}

struct Track {
    clock_rate: ClockRate,
    is_video: bool,
    /// When the latest frame is presented, how long after the one before, and when it ends, in ticks.
    latest: Option<i64>,
    step: i64,
    end: i64,
}

impl Matroska {
    /// Creates a file of this kind: `matroska` or `webm`.
    pub(in super::super) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            tracks: Vec::new(),
            samples: Vec::new(),
            octets: 0,
            shift: None,
            parts: None,
            cues: Cues::of_track(0),
            len: 0,
            written: 0,
        }
    }

    /// Returns a time of a track in milliseconds, to the nearest.
    fn millis(&self, track: usize, ticks: i64) -> i64 {
        let hertz = i128::from(self.tracks[track].clock_rate.hertz());
        let millis = (i128::from(ticks) * 1_000 + hertz / 2).div_euclid(hertz);
        i64::try_from(millis).unwrap_or(i64::MAX)
    }

    /// Writes the samples that wait as a cluster.
    fn end_cluster(&mut self, to: &mut dyn Write) -> io::Result<()> {
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
        let (track, first) = begin;
        let begins = first.is_key && *track == self.guide();
        if let Some(parts) = self.parts.as_ref().filter(|_| begins) {
            self.cues.push(time(begin), parts.place(self.len));
        }
        for (number, track) in self.tracks.iter_mut().enumerate() {
            track.note_end(samples.iter().filter(|it| it.0 == number).map(|it| &it.1), shift);
        }
        self.octets = 0;
        self.len += (head.0.len() + cluster.0.len()) as u64;
        self.written += samples.len() as u64;
        Ok(())
    }

    /// Returns the number of the track whose key frames a player seeks: the first one with video.
    fn guide(&self) -> usize {
        self.tracks.iter().position(|track| track.is_video).unwrap_or(0)
    }
}

impl Track {
    /// Notes the end of the latest sample, which lasts as long as its packet says, or as the one
    /// before it.
    fn note_end<'a>(&mut self, samples: impl Iterator<Item = &'a Sample> + Clone, shift: i64) {
        let Some(last) = samples.clone().max_by_key(|sample| sample.presented) else { return };
        let times = samples.map(|sample| sample.presented).chain(self.latest);
        if let Some(before) = times.filter(|time| *time < last.presented).max() {
            self.step = last.presented.saturating_sub(before);
        }
        let duration = last.duration.map_or(self.step, i64::from);
        let end = last.presented.saturating_add(shift).saturating_add(duration);
        self.end = self.end.max(end);
        self.latest = self.latest.max(Some(last.presented));
    }
}

impl Muxer for Matroska {
    fn begin(&mut self, configurations: &[Configuration], to: &mut dyn Write) -> io::Result<()> {
        let new = |of: &Configuration| Track {
            clock_rate: of.codec.clock_rate,
            is_video: of.size().is_some(),
            latest: None,
            step: 0,
            end: 0,
        };
        self.tracks = configurations.iter().map(new).collect();
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
        file.octets(0x1a45_dfa3, &header.0);
        self.parts = Some(Parts::write(&mut file, &info, &tracks));
        self.cues = Cues::of_track(self.guide());
        self.len = file.0.len() as u64;
        to.write_all(&file.0)
    }

    fn write(&mut self, track: usize, sample: Sample, to: &mut dyn Write) -> io::Result<()> {
        let time = self.millis(track, sample.presented);
        let begin = self.samples.first();
        let begin = begin.map_or(time, |(track, first)| self.millis(*track, first.presented));
        let ends = time.abs_diff(begin) >= CLUSTER_MILLIS
            || self.octets > CLUSTER_OCTETS
            || self.samples.len() >= CLUSTER_SAMPLES_MAX;
        if ends || self.tracks[track].is_video && sample.is_key {
            self.end_cluster(to)?;
        }
        self.octets += sample.data.len();
        self.samples.push((track, sample));
        Ok(())
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.end_cluster(to)
    }

    fn complete(&mut self, to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.end_cluster(to)?;
        // Without a key frame, there is nothing to seek to.
        let parts = self.parts.as_ref().filter(|_| !self.cues.is_empty());
        let Some(parts) = parts else { return Ok(Vec::new()) };
        let ends = self.tracks.iter().enumerate();
        let ends = ends.map(|(number, track)| self.millis(number, track.end));
        let millis = ends.max().and_then(|end| u64::try_from(end).ok()).unwrap_or(0);
        let (cues, replaced) = parts.complete(&self.cues, self.len, millis);
        to.write_all(&cues)?;
        Ok(replaced)
    }

    fn samples_written(&self) -> u64 {
        self.written
    }
}

/// Returns the entry of a track.
fn track(number: u64, configuration: &Configuration) -> Element {
    let mut entry = Element::default();
    let coding = match configuration.form {
        Form::Avc(..) => "V_MPEG4/ISO/AVC",
        Form::Hevc(..) => "V_MPEGH/ISO/HEVC",
        Form::Vvc(..) => "V_MPEGI/ISO/VVC",
        Form::Vpx(_) if configuration.codec == Codec::Vp8 => "V_VP8",
        Form::Vpx(_) => "V_VP9",
        Form::Opus(_) => "A_OPUS",
    };
    // Number, identifier, type; no lacing.
    let kind = if configuration.size().is_some() { 1 } else { 2 };
    entry.unsigned(0xd7, number).unsigned(0x73c5, number).unsigned(0x83, kind).unsigned(0x9c, 0);
    entry.octets(0x86, coding.as_bytes());
    let record = configuration.record();
    if !record.is_empty() {
        entry.octets(0x63a2, &record);
    }
    if let Some([width, height]) = configuration.size() {
        let mut video = Element::default();
        video.unsigned(0xb0, width.into()).unsigned(0xba, height.into());
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

#[cfg(test)]
mod tests {
    use super::super::element::{children, unsigned};
    use super::super::id;
    use super::*;

    /// Returns the data of the first element with this identifier.
    fn child(data: &[u8], id: u32) -> &[u8] {
        children(data).find(|(child, _)| *child == id).unwrap().1
    }

    fn number(data: &[u8], id: u32) -> u64 {
        unsigned(child(data, id)).unwrap()
    }

    #[test]
    fn a_completed_file_says_where_its_parts_are_and_how_long_it_is() {
        let mut file = Vec::new();
        let mut muxer = Matroska::new("webm");
        muxer.begin(&[Configuration::opus(&[8])], &mut file).unwrap();
        for number in 0..300 {
            let (presented, duration) = (number * 960, Some(960));
            let sample = Sample { data: vec![7; 9], presented, duration, is_key: true };
            muxer.write(0, sample, &mut file).unwrap();
        }
        for (offset, octets) in muxer.complete(&mut file).unwrap() {
            let place = offset as usize..offset as usize + octets.len();
            file[place].copy_from_slice(&octets);
        }
        // The segment has a size now, and ends with the file.
        let segment = child(&file, id::SEGMENT);
        assert!(file.ends_with(segment));
        let at = |place: u64| children(&segment[place as usize..]).next().unwrap();
        let list = child(segment, 0x114d_9b74);
        let parts: Vec<_> = children(list)
            .map(|(_, entry)| {
                let (found, _) = at(number(entry, 0x53ac));
                assert_eq!(number(entry, 0x53ab), u64::from(found));
                found
            })
            .collect();
        assert_eq!(parts, [id::INFO, id::TRACKS, 0x1c53_bb6b]);
        let duration = child(child(segment, id::INFO), 0x4489);
        assert_eq!(duration, 6_000_f64.to_be_bytes());
        let times = children(child(segment, 0x1c53_bb6b)).map(|(_, point)| {
            let (found, cluster) = at(number(child(point, 0xb7), 0xf1));
            assert_eq!(found, id::CLUSTER);
            let time = number(point, 0xb3);
            assert_eq!(number(cluster, id::TIMESTAMP), time);
            time
        });
        assert_eq!(times.collect::<Vec<_>>(), [0, 1_000, 2_000, 3_000, 4_000, 5_000]);
    }

    /// Each picture is a cluster, and does not say how long it lasts.
    #[test]
    fn the_last_picture_lasts_as_long_as_the_one_before_it() {
        let mut muxer = Matroska::new("matroska");
        let track =
            Track { clock_rate: ClockRate::VIDEO, is_video: true, latest: None, step: 0, end: 0 };
        muxer.tracks.push(track);
        let mut file = Vec::new();
        for presented in [0, 3_600, 10_800, 7_200, 14_400, 18_000] {
            let sample = Sample { data: vec![7; 9], presented, duration: None, is_key: true };
            muxer.write(0, sample, &mut file).unwrap();
        }
        muxer.finish(&mut file).unwrap();
        assert_eq!(muxer.tracks[0].end, 21_600);
    }
}
