//! MP4 files in fragments, which are readable even if the recording is interrupted.

use std::io::{self, Write};

use mp4_atom::{
    Audio, Avc1, Codec as Coding, Dinf, Dref, DrefEntry, Encode, FourCC, Ftyp, Hdlr, Hvc1, Mdhd,
    Mdia, Mfhd, Minf, Moof, Moov, Mvex, Mvhd, Opus, Smhd, Stbl, Stsd, Tfdt, Tfhd, Tkhd, Traf, Trak,
    Trex, Trun, TrunEntry, Url, Visual, Vmhd,
};
use rushes_proto::ClockRate;

use super::super::configuration::{Configuration, Form};
use super::super::writing::{Muxer, Sample, shift};

/// Seconds after which a fragment ends before the next key frame.
const FRAGMENT_SECONDS: i64 = 1;

/// Maximum length of a fragment in seconds and in octets.
const FRAGMENT_SECONDS_MAX: i64 = 10;
const FRAGMENT_OCTETS_MAX: usize = 16 << 20;

/// Maximum number of frames in a fragment: small ones take more memory than their octets.
const FRAGMENT_SAMPLES_MAX: usize = 32_768;

/// Flags of samples that are key frames, and that are not: they depend on others.
const KEY: u32 = 0x0200_0000;
const NO_KEY: u32 = 0x0101_0000;

/// A file that is being written. Each fragment is of one track.
#[derive(Default)]
pub(in super::super) struct Fragmented {
    tracks: Vec<Track>,
    /// The number of the last fragment.
    fragment: u32,
    written: u64,
}

struct Track {
    clock_rate: ClockRate,
    /// Frames of the current fragment.
    samples: Vec<Sample>,
    octets: usize,
    shift: Option<i64>,
    /// When the last frame of the fragment before is decoded, and how long it lasts.
    last: Option<i64>,
    duration: u32,
}

impl Muxer for Fragmented {
    fn begin(&mut self, tracks: &[Configuration], to: &mut dyn Write) -> io::Result<()> {
        // The tracks of a film have one beginning.
        let shift = (tracks.len() > 1).then_some(0);
        let new = |of: &Configuration| Track {
            clock_rate: of.codec.clock_rate,
            samples: Vec::new(),
            octets: 0,
            shift,
            last: None,
            duration: 0,
        };
        self.tracks = tracks.iter().map(new).collect();
        let ftyp = Ftyp {
            major_brand: FourCC::new(b"iso5"),
            minor_version: 512,
            compatible_brands: [b"iso5", b"iso6", b"mp41"].map(FourCC::new).to_vec(),
        };
        let mut octets = Vec::new();
        ftyp.encode(&mut octets).map_err(io::Error::other)?;
        octets.extend(encoded_index(tracks)?);
        to.write_all(&octets)
    }

    fn write(&mut self, number: usize, sample: Sample, to: &mut dyn Write) -> io::Result<()> {
        let track = &self.tracks[number];
        let hertz = i64::from(track.clock_rate.hertz());
        let first = track.samples.first().map_or(sample.presented, |first| first.presented);
        // A sender's times may go back.
        let seconds = sample.presented.saturating_sub(first).saturating_abs() / hertz;
        if sample.is_key && seconds >= FRAGMENT_SECONDS
            || seconds >= FRAGMENT_SECONDS_MAX
            || track.octets >= FRAGMENT_OCTETS_MAX
            || track.samples.len() >= FRAGMENT_SAMPLES_MAX
        {
            self.end_fragment(number, to)?;
        }
        let track = &mut self.tracks[number];
        track.octets += sample.data.len();
        track.samples.push(sample);
        Ok(())
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        (0..self.tracks.len()).try_for_each(|number| self.end_fragment(number, to))
    }

    fn samples_written(&self) -> u64 {
        self.written
    }
}

impl Fragmented {
    /// Writes the waiting frames of a track as a fragment.
    fn end_fragment(&mut self, number: usize, to: &mut dyn Write) -> io::Result<()> {
        let track = &mut self.tracks[number];
        if track.samples.is_empty() {
            return Ok(());
        }
        let mut samples = std::mem::take(&mut track.samples);
        let octets_of_samples = std::mem::take(&mut track.octets);
        let (decoded, entries) = track.entries(&mut samples);
        self.fragment += 1;
        let mut moof = moof(self.fragment, number, decoded, entries);
        let mut octets = Vec::new();
        moof.encode(&mut octets).map_err(io::Error::other)?;
        // The data are after the index, whose length is now known, and the header of their box.
        moof.traf[0].trun[0].data_offset = i32::try_from(octets.len() + 8).ok();
        octets.clear();
        moof.encode(&mut octets).map_err(io::Error::other)?;
        octets.extend((octets_of_samples as u32 + 8).to_be_bytes());
        octets.extend(b"mdat");
        to.write_all(&octets)?;
        for sample in &samples {
            to.write_all(&sample.data)?;
        }
        self.written += samples.len() as u64;
        Ok(())
    }
}

impl Track {
    /// Returns when the first of a fragment's frames is decoded, and the index entries of all of
    /// them.
    fn entries(&mut self, samples: &mut [Sample]) -> (u64, Vec<TrunEntry>) {
        let shift = *self.shift.get_or_insert_with(|| shift(samples.iter()));
        for sample in &mut *samples {
            sample.presented = sample.presented.saturating_add(shift);
        }
        let decoded = self.times_of_decoding(samples);
        let mut entries = Vec::with_capacity(samples.len());
        for (number, sample) in samples.iter().enumerate() {
            // The last frame lasts as long as its packet says, or as long as the frame before it.
            let next = decoded.get(number + 1).map(|next| next - decoded[number]);
            let next = next.and_then(|next| u32::try_from(next).ok());
            self.duration = next.or(sample.duration).unwrap_or(self.duration);
            entries.push(TrunEntry {
                duration: Some(self.duration),
                size: Some(sample.data.len() as u32),
                flags: Some(if sample.is_key { KEY } else { NO_KEY }),
                // The field has 32 bits. Decoding times never go back, those of a sender may.
                cts: Some(
                    sample
                        .presented
                        .saturating_sub(decoded[number])
                        .clamp(i32::MIN.into(), i32::MAX.into()),
                ),
            });
        }
        self.last = decoded.last().copied();
        (decoded[0].unsigned_abs(), entries)
    }

    /// Returns a decoding time for each frame: no later than the presentation of it and of all later
    /// frames, since FFmpeg moves tracks whose frames are presented before they are decoded. Frames
    /// with the same limit share the time up to it.
    fn times_of_decoding(&self, samples: &[Sample]) -> Vec<i64> {
        let mut times: Vec<_> = samples.iter().map(|sample| sample.presented).collect();
        for number in (1..times.len()).rev() {
            times[number - 1] = times[number - 1].min(times[number]);
        }
        let mut least = self.last.map_or(0, |last| last.saturating_add(1));
        let mut before = self.last;
        for group in times.chunk_by_mut(|a, b| a == b) {
            let limit = group[0];
            let time = limit.saturating_sub(before.unwrap_or(limit)).max(0);
            let mut rest = i64::try_from(group.len()).unwrap_or(i64::MAX);
            let share = time / rest;
            for time in group {
                rest -= 1;
                *time = limit.saturating_sub(share * rest).max(least);
                least = time.saturating_add(1);
                before = Some(*time);
            }
        }
        times
    }
}

/// Returns the identifier of a track by its number, from 1 on.
fn id(number: usize) -> u32 {
    number as u32 + 1
}

/// Returns the index of a fragment.
fn moof(sequence_number: u32, track: usize, decoded: u64, entries: Vec<TrunEntry>) -> Moof {
    let tfhd = Tfhd { track_id: id(track), default_base_is_moof: true, ..Tfhd::default() };
    let traf = Traf {
        tfhd,
        tfdt: Some(Tfdt { base_media_decode_time: decoded }),
        trun: vec![Trun { data_offset: Some(0), samples: entries.into() }],
        ..Traf::default()
    };
    Moof { mfhd: Mfhd { sequence_number }, traf: vec![traf] }
}

/// Returns the octets of the index of a file whose frames are all in fragments.
fn encoded_index(tracks: &[Configuration]) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    index(tracks).encode(&mut octets).map_err(io::Error::other)?;
    for configuration in tracks {
        if let Form::Vvc(_, record) = &configuration.form {
            // The crate knows no sample entry of H.266: it is put into the empty table.
            let mut entry = Vec::new();
            visual(configuration).encode(&mut entry).map_err(io::Error::other)?;
            // Version and flags are before the record.
            entry.extend(boxed(*b"vvcC", &[&[0; 4], &record[..]].concat()));
            insert_entry(&mut octets, &boxed(*b"vvc1", &entry));
        }
    }
    Ok(octets)
}

fn boxed(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes()[..], &kind, body].concat()
}

/// Puts a sample entry into the first empty table of entries in `index`.
fn insert_entry(index: &mut Vec<u8>, entry: &[u8]) {
    let Some(table) = index.windows(8).position(|it| it == b"\0\0\0\x10stsd") else { return };
    let end = table + 16;
    for kind in [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd"] {
        // Of the boxes of a kind, the last one before the table's end is around it.
        if let Some(at) = index[..end].windows(4).rposition(|it| it == kind) {
            add(index, at, entry.len() as u32);
        }
    }
    // The number of entries.
    add(index, end, 1);
    index.splice(end..end, entry.iter().copied());
}

/// Adds to the number of 32 bits before `end`.
fn add(octets: &mut [u8], end: usize, more: u32) {
    if let Some(number) = octets[..end].last_chunk_mut::<4>() {
        *number = u32::from_be_bytes(*number).wrapping_add(more).to_be_bytes();
    }
}

/// Returns the index of a file whose frames are all in fragments.
pub(super) fn index(tracks: &[Configuration]) -> Moov {
    let trex = |number| Trex {
        track_id: id(number),
        default_sample_description_index: 1,
        default_sample_duration: 0,
        default_sample_size: 0,
        default_sample_flags: 0,
    };
    Moov {
        mvhd: Mvhd {
            timescale: 1_000,
            rate: 1.into(),
            volume: 1.into(),
            next_track_id: id(tracks.len()),
            ..Mvhd::default()
        },
        mvex: Some(Mvex { mehd: None, trex: (0..tracks.len()).map(trex).collect() }),
        trak: tracks.iter().enumerate().map(|(number, of)| trak(id(number), of)).collect(),
        ..Moov::default()
    }
}

/// Returns the entry of a track.
fn trak(track_id: u32, configuration: &Configuration) -> Trak {
    let pictures = configuration.size();
    let timescale = configuration.codec.clock_rate.hertz();
    let url = DrefEntry::Url(Url::default());
    let minf = Minf {
        vmhd: pictures.map(|_| Vmhd::default()),
        smhd: pictures.is_none().then(Smhd::default),
        dinf: Dinf { dref: Dref { entries: vec![url] } },
        stbl: Stbl {
            stsd: Stsd { codecs: coding(configuration).into_iter().collect() },
            stco: Some(mp4_atom::Stco::default()),
            ..Stbl::default()
        },
        ..Minf::default()
    };
    let size = pictures.map_or([0; 2], |size| size.map(|it| it as u16));
    Trak {
        tkhd: Tkhd {
            track_id,
            enabled: true,
            in_movie: true,
            volume: u8::from(pictures.is_none()).into(),
            width: size[0].into(),
            height: size[1].into(),
            ..Tkhd::default()
        },
        mdia: Mdia {
            mdhd: Mdhd { timescale, language: "und".to_owned(), ..Mdhd::default() },
            hdlr: Hdlr {
                handler: FourCC::new(if pictures.is_some() { b"vide" } else { b"soun" }),
                name: "Rushes".to_owned(),
            },
            minf,
        },
        ..Trak::default()
    }
}

/// Returns the fields of a sample entry of video.
fn visual(configuration: &Configuration) -> Visual {
    let visual = configuration.size().map(|[width, height]| Visual {
        data_reference_index: 1,
        width: width as u16,
        height: height as u16,
        ..Visual::default()
    });
    visual.unwrap_or_default()
}

/// Returns the sample entry of a track; `None` for H.266, whose entry follows, and for VP8 and VP9, which are refused
/// before.
fn coding(configuration: &Configuration) -> Option<Coding> {
    let visual = visual(configuration);
    Some(match &configuration.form {
        Form::Vvc(..) | Form::Vpx(_) => return None,
        Form::Avc(_, avcc) => Coding::Avc1(Avc1 {
            visual,
            avcc: avcc.clone(),
            btrt: None,
            colr: None,
            pasp: None,
            taic: None,
            fiel: None,
            spatial: None,
        }),
        Form::Hevc(_, hvcc) => Coding::Hvc1(Hvc1 { visual, hvcc: hvcc.clone(), ..Hvc1::default() }),
        Form::Opus(dops) => Coding::Opus(Opus {
            audio: Audio {
                data_reference_index: 1,
                channel_count: dops.output_channel_count.into(),
                sample_size: 16,
                sample_rate: (ClockRate::OPUS.hertz() as u16).into(),
            },
            dops: dops.clone(),
            btrt: None,
        }),
    })
}
