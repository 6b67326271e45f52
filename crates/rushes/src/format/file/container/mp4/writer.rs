//! MP4 files in fragments: what was written can be read, also if the recording is interrupted.

use std::io::{self, Write};

use mp4_atom::{
    Audio, Avc1, Codec as Coding, Dinf, Dref, DrefEntry, Encode, FourCC, Ftyp, Hdlr, Hvc1, Mdhd,
    Mdia, Mfhd, Minf, Moof, Moov, Mvex, Mvhd, Opus, Smhd, Stbl, Stsd, Tfdt, Tfhd, Tkhd, Traf, Trak,
    Trex, Trun, TrunEntry, Url, Visual, Vmhd,
};
use rushes_proto::ClockRate;

use super::super::configuration::{Configuration, Form};
use super::super::writing::{Muxer, Sample, shift};

/// A fragment ends before a key frame if it has lasted this many seconds, …
const FRAGMENT_SECONDS: i64 = 1;

/// … in any case after this many, and after so many octets.
const FRAGMENT_SECONDS_MAX: i64 = 10;
const FRAGMENT_OCTETS_MAX: usize = 16 << 20;

/// Flags of samples that are key frames, and that are not: they depend on others.
const KEY: u32 = 0x0200_0000;
const NO_KEY: u32 = 0x0101_0000;

const TRACK: u32 = 1;

/// A file that is being written.
#[derive(Default)]
pub(in super::super) struct Fragmented {
    clock_rate: Option<ClockRate>,
    /// Frames of the current fragment, and the number of the next one.
    samples: Vec<Sample>,
    octets: usize,
    shift: Option<i64>,
    fragment: u32,
    /// When the last frame of the fragment before is decoded, and how long it lasts.
    last: Option<i64>,
    duration: u32,
    written: u64,
}

impl Muxer for Fragmented {
    fn begin(&mut self, configuration: &Configuration, to: &mut dyn Write) -> io::Result<()> {
        self.clock_rate = Some(configuration.codec.clock_rate);
        let ftyp = Ftyp {
            major_brand: FourCC::new(b"iso5"),
            minor_version: 512,
            compatible_brands: [b"iso5", b"iso6", b"mp41"].map(FourCC::new).to_vec(),
        };
        let mut octets = Vec::new();
        ftyp.encode(&mut octets).map_err(io::Error::other)?;
        octets.extend(encoded_index(configuration)?);
        to.write_all(&octets)
    }

    fn write(&mut self, sample: Sample, to: &mut dyn Write) -> io::Result<()> {
        let hertz = self.clock_rate.map_or(1, |rate| i64::from(rate.hertz()));
        let first = self.samples.first().map_or(sample.presented, |first| first.presented);
        let seconds = sample.presented.saturating_sub(first) / hertz;
        if sample.is_key && seconds >= FRAGMENT_SECONDS
            || seconds >= FRAGMENT_SECONDS_MAX
            || self.octets >= FRAGMENT_OCTETS_MAX
        {
            self.end_fragment(to)?;
        }
        self.octets += sample.data.len();
        self.samples.push(sample);
        Ok(())
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.end_fragment(to)
    }

    fn samples_written(&self) -> u64 {
        self.written
    }
}

impl Fragmented {
    /// Writes the frames that wait as a fragment.
    fn end_fragment(&mut self, to: &mut dyn Write) -> io::Result<()> {
        if self.samples.is_empty() {
            return Ok(());
        }
        let mut samples = std::mem::take(&mut self.samples);
        let shift = *self.shift.get_or_insert_with(|| shift(&samples));
        for sample in &mut samples {
            sample.presented = sample.presented.saturating_add(shift);
        }
        let decoded = self.times_of_decoding(&samples);
        let mut entries = Vec::with_capacity(samples.len());
        for (number, sample) in samples.iter().enumerate() {
            // The last one lasts as long as its packet says, or as the one before it.
            let next = decoded.get(number + 1).map(|next| next - decoded[number]);
            let next = next.and_then(|next| u32::try_from(next).ok());
            self.duration = next.or(sample.duration).unwrap_or(self.duration);
            entries.push(TrunEntry {
                duration: Some(self.duration),
                size: Some(sample.data.len() as u32),
                flags: Some(if sample.is_key { KEY } else { NO_KEY }),
                cts: Some(sample.presented - decoded[number]),
            });
        }
        self.fragment += 1;
        let mut moof = moof(self.fragment, decoded[0].unsigned_abs(), entries);
        let mut octets = Vec::new();
        moof.encode(&mut octets).map_err(io::Error::other)?;
        // The data are after the index, whose length is now known, and the header of their box.
        moof.traf[0].trun[0].data_offset = i32::try_from(octets.len() + 8).ok();
        octets.clear();
        moof.encode(&mut octets).map_err(io::Error::other)?;
        octets.extend((self.octets as u32 + 8).to_be_bytes());
        octets.extend(b"mdat");
        to.write_all(&octets)?;
        for sample in &samples {
            to.write_all(&sample.data)?;
        }
        self.last = decoded.last().copied();
        self.octets = 0;
        self.written += samples.len() as u64;
        Ok(())
    }

    /// Returns a decoding time for each frame: the presentation times in ascending order, since no
    /// delay between decoding and presentation is known.
    fn times_of_decoding(&self, samples: &[Sample]) -> Vec<i64> {
        let mut times: Vec<_> = samples.iter().map(|sample| sample.presented).collect();
        times.sort_unstable();
        let mut least = self.last.map_or(0, |last| last.saturating_add(1));
        for time in &mut times {
            *time = (*time).max(least);
            least = time.saturating_add(1);
        }
        times
    }
}

/// The index of a fragment.
fn moof(sequence_number: u32, decoded: u64, entries: Vec<TrunEntry>) -> Moof {
    let tfhd = Tfhd { track_id: TRACK, default_base_is_moof: true, ..Tfhd::default() };
    let traf = Traf {
        tfhd,
        tfdt: Some(Tfdt { base_media_decode_time: decoded }),
        trun: vec![Trun { data_offset: Some(0), samples: entries.into() }],
        ..Traf::default()
    };
    Moof { mfhd: Mfhd { sequence_number }, traf: vec![traf] }
}

/// The octets of the index of a file whose frames are all in fragments.
fn encoded_index(configuration: &Configuration) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    index(configuration).encode(&mut octets).map_err(io::Error::other)?;
    if let Form::Vvc(_, record) = &configuration.form {
        // The crate knows no sample entry of H.266: it is put into the empty table.
        let mut entry = Vec::new();
        visual(configuration).encode(&mut entry).map_err(io::Error::other)?;
        // Version and flags are before the record.
        entry.extend(boxed(*b"vvcC", &[&[0; 4], &record[..]].concat()));
        insert_entry(&mut octets, &boxed(*b"vvc1", &entry));
    }
    Ok(octets)
}

fn boxed(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes()[..], &kind, body].concat()
}

/// Puts a sample entry into the empty table of entries in `index`.
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

/// The index of a file whose frames are all in fragments.
pub(super) fn index(configuration: &Configuration) -> Moov {
    let pictures = configuration.pictures();
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
    let size = pictures.map_or([0; 2], |format| [format.width as u16, format.height as u16]);
    let trak = Trak {
        tkhd: Tkhd {
            track_id: TRACK,
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
    };
    let trex = Trex {
        track_id: TRACK,
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
            next_track_id: TRACK + 1,
            ..Mvhd::default()
        },
        mvex: Some(Mvex { mehd: None, trex: vec![trex] }),
        trak: vec![trak],
        ..Moov::default()
    }
}

/// The fields of a sample entry of video.
fn visual(configuration: &Configuration) -> Visual {
    let visual = configuration.pictures().map(|format| Visual {
        data_reference_index: 1,
        width: format.width as u16,
        height: format.height as u16,
        ..Visual::default()
    });
    visual.unwrap_or_default()
}

/// The sample entry of a track; `None` for H.266, whose entry follows.
fn coding(configuration: &Configuration) -> Option<Coding> {
    let visual = visual(configuration);
    Some(match &configuration.form {
        Form::Vvc(..) => return None,
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
