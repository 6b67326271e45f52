//! MP4 and QuickTime files, whole or in fragments.

mod fragments;
mod table;
mod writer;

use std::io::{Read, Seek, SeekFrom};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use mp4_atom::{Atom, Codec as Coding, DecodeAtom, DecodeMaybe, Header, Moov, ReadFrom, Trak};
use rushes_proto::FrameRate;
use rushes_proto::payload::Framing;
use rushes_proto::payload::opus::packet_duration;

use self::fragments::Fragments;
use self::table::Table;
pub(super) use self::writer::Fragmented;
use super::units::NalUnits;
use super::{Budget, Octets, Track, damaged, failed, missing};
use crate::format::file::{Codec, FileError, FrameReader, MediaFrame, MediaTime, ReadOptions};

/// The largest index (`moov` or `moof`) that is read: hours of a film have a few megabytes.
const INDEX_MAX: u64 = 64 << 20;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A movie: the file, and its index.
pub(super) struct Movie {
    path: PathBuf,
    file: Box<dyn Octets>,
    len: u64,
    moov: Moov,
    /// Where the boxes after the index begin.
    end_of_index: u64,
}

/// The place and the times of a frame.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Sample {
    offset: u64,
    len: u32,
    /// When it is decoded, in ticks of the track.
    decoded: i64,
    /// How much later it is presented.
    shift: i64,
    is_key: bool,
    /// The number of its coding, from 1.
    description: u32,
}

/// The form of a track's frames.
enum Form {
    Nal(NalUnits),
    Opus,
}

impl Movie {
    /// Reads the index of `file`, which errors call `path`.
    pub(super) fn open(mut file: Box<dyn Octets>, path: &Path) -> Result<Self, FileError> {
        let wrong = |source: AnyError| damaged(path, source);
        let len = file.seek(SeekFrom::End(0)).map_err(|source| failed(path, source))?;
        let mut position = 0;
        while let Some((header, body)) = next_box(&mut *file, position, len).map_err(wrong)? {
            let end = end_of(&header, body, len);
            if header.kind == Moov::KIND {
                let moov = read_index::<Moov>(&mut *file, &header, body, end).map_err(wrong)?;
                let path = path.to_owned();
                return Ok(Self { path, file, len, moov, end_of_index: end });
            }
            position = end;
        }
        Err(damaged(path, "it has no index (moov): its recording was perhaps interrupted"))
    }

    pub(super) fn tracks(&self) -> Vec<Track> {
        self.moov.trak.iter().map(track).collect()
    }

    /// Returns the frames of the first track of `codec`.
    pub(super) fn reader(
        mut self,
        codec: Codec,
        options: ReadOptions,
    ) -> Result<Reader, FileError> {
        let tracks = self.tracks();
        let Some(number) = tracks.iter().position(|track| track.codec == Some(codec)) else {
            return Err(missing(&self.path, codec, &tracks));
        };
        let trak = self.moov.trak.swap_remove(number);
        let codings = &trak.mdia.minf.stbl.stsd.codecs;
        let forms: Vec<_> = codings.iter().map(|coding| form(coding, options.framing)).collect();
        if !matches!(forms.first(), Some(Some(_))) {
            return Err(damaged(&self.path, "the configuration of its codec is malformed"));
        }
        let Some(per_second) = NonZeroU32::new(trak.mdia.mdhd.timescale) else {
            return Err(damaged(&self.path, "a track has no unit of time"));
        };
        let start = start(&trak, self.moov.mvhd.timescale);
        let track_id = trak.tkhd.track_id;
        let trex = self.moov.mvex.iter().flat_map(|mvex| &mvex.trex);
        let defaults = trex.clone().find(|trex| trex.track_id == track_id).cloned();
        let table = Table::new(trak.mdia.minf.stbl);
        let fragments = defaults.map(|it| Fragments::new(it, self.end_of_index));
        let Self { path, file, len, .. } = self;
        let (budget, sample) = (Budget::new(len), Vec::new());
        Ok(Reader { path, file, len, budget, forms, table, fragments, per_second, start, sample })
    }
}

/// Returns the next box at `position`: its header, and where its body begins; `None` at the end of
/// the file.
fn next_box(
    file: &mut dyn Octets,
    position: u64,
    len: u64,
) -> Result<Option<(Header, u64)>, AnyError> {
    // A truncated box is ignored.
    if len.saturating_sub(position) < 8 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(position))?;
    let Some(header) = <Option<Header> as ReadFrom>::read_from(file)? else { return Ok(None) };
    Ok(Some((header, file.stream_position()?)))
}

/// Returns where the box ends; the last box may extend to the end of the file.
fn end_of(header: &Header, body: u64, len: u64) -> u64 {
    header.size.map_or(len, |size| body.saturating_add(size as u64))
}

/// Reads and decodes an index.
fn read_index<A: Atom + DecodeAtom>(
    file: &mut dyn Octets,
    header: &Header,
    body: u64,
    end: u64,
) -> Result<A, AnyError> {
    if end - body > INDEX_MAX {
        return Err(
            format!("its index has {} octets; at most {INDEX_MAX} are read", end - body).into()
        );
    }
    let mut octets = Vec::new();
    Read::take(&mut *file, end - body).read_to_end(&mut octets)?;
    if (octets.len() as u64) < end - body {
        return Err("its index is cut off".into());
    }
    let header = Header { size: Some(octets.len()), ..*header };
    Ok(A::decode_atom(&header, &mut &octets[..])?)
}

fn track(trak: &Trak) -> Track {
    let mdia = &trak.mdia;
    let coding = mdia.minf.stbl.stsd.codecs.first();
    let media = match &mdia.hdlr.handler.to_string()[..] {
        "vide" => "video",
        "soun" => "audio",
        _ => "other",
    };
    let mean = mdia.minf.stbl.stts.entries.first().filter(|_| media == "video");
    Track {
        codec: coding.and_then(codec_of),
        media,
        coding: coding.map_or_else(|| "unknown".to_owned(), name_of),
        frame_rate: mean.and_then(|it| FrameRate::new(mdia.mdhd.timescale, it.sample_delta)),
    }
}

fn codec_of(coding: &Coding) -> Option<Codec> {
    Some(match coding {
        Coding::Avc1(_) | Coding::Avc3(_) => Codec::H264,
        Coding::Hev1(_) | Coding::Hvc1(_) => Codec::H265,
        Coding::Opus(_) => Codec::Opus,
        Coding::Unknown(kind, _) if is_vvc(*kind) => Codec::H266,
        _ => return None,
    })
}

fn is_vvc(kind: mp4_atom::FourCC) -> bool {
    [b"vvc1", b"vvi1"].into_iter().any(|it| kind == mp4_atom::FourCC::new(it))
}

/// Returns the four characters of a coding, as far as they are known.
fn name_of(coding: &Coding) -> String {
    if let Coding::Unknown(kind, _) = coding {
        return kind.to_string();
    }
    let name = format!("{coding:?}");
    name[..name.find(['(', ' ']).unwrap_or(name.len())].to_lowercase()
}

/// Returns how frames of `coding` are made; `None` if the coding is not known, or its configuration
/// is malformed.
fn form(coding: &Coding, framing: Framing) -> Option<Form> {
    let units = match coding {
        Coding::Avc1(it) => NalUnits::avc(&it.avcc, framing),
        Coding::Avc3(it) => NalUnits::avc(&it.avcc, framing),
        Coding::Hev1(it) => NalUnits::hevc(&it.hvcc, framing),
        Coding::Hvc1(it) => NalUnits::hevc(&it.hvcc, framing),
        Coding::Unknown(kind, body) if is_vvc(*kind) => {
            NalUnits::vvc(vvc_configuration(body)?, framing)?
        }
        Coding::Opus(_) => return Some(Form::Opus),
        _ => return None,
    };
    Some(Form::Nal(units))
}

/// Returns the record in the sample entry of H.266: in a box after the fields of all video.
fn vvc_configuration(entry: &[u8]) -> Option<&[u8]> {
    const VISUAL_LEN: usize = 78;
    let mut rest = entry.get(VISUAL_LEN..)?;
    loop {
        let header = Header::decode_maybe(&mut rest).ok()??;
        let (body, after) = rest.split_at_checked(header.size.unwrap_or(rest.len()))?;
        if header.kind == mp4_atom::FourCC::new(b"vvcC") {
            // The record follows a version and flags.
            return body.get(4..);
        }
        rest = after;
    }
}

/// Returns the number of ticks by which the first edit of a track's edit list presents its frames
/// earlier (or, if negative, later) than their times of presentation.
fn start(trak: &Trak, movie_timescale: u32) -> i64 {
    let edits = trak.edts.iter().filter_map(|edts| edts.elst.as_ref()).flat_map(|it| &it.entries);
    let mut pause = 0_i128;
    for edit in edits {
        let Some(begin) = edit.media_time else {
            pause += i128::from(edit.segment_duration);
            continue;
        };
        let pause =
            pause * i128::from(trak.mdia.mdhd.timescale) / i128::from(movie_timescale.max(1));
        return i64::try_from(i128::from(begin) - pause).unwrap_or(0);
    }
    0
}

/// The frames of a track.
pub(super) struct Reader {
    path: PathBuf,
    file: Box<dyn Octets>,
    len: u64,
    budget: Budget,
    /// By the number of the coding, from 0.
    forms: Vec<Option<Form>>,
    table: Table,
    fragments: Option<Fragments>,
    per_second: NonZeroU32,
    /// The time of the track at which it is presented first.
    start: i64,
    sample: Vec<u8>,
}

impl Reader {
    fn next_sample(&mut self) -> Result<Option<Sample>, FileError> {
        loop {
            let sample = match (self.table.next(), &mut self.fragments) {
                (Some(sample), _) => Some(sample),
                (None, Some(fragments)) => fragments
                    .next(&mut *self.file, self.len, self.table.end())
                    .map_err(|source| damaged(&self.path, source))?,
                (None, None) => None,
            };
            // Some writers leave empty samples for pauses.
            if sample.is_none_or(|sample| sample.len > 0) {
                return Ok(sample);
            }
        }
    }

    fn malformed(&self, sample: &Sample, reason: &'static str) -> FileError {
        FileError::Malformed { path: self.path.clone(), position: sample.offset, reason }
    }

    fn time(&self, ticks: i64) -> MediaTime {
        MediaTime::new(ticks.saturating_sub(self.start), self.per_second)
    }
}

impl FrameReader for Reader {
    /// Does nothing: the index says where the frames are, and the file is read there.
    fn feed(&mut self, _: &[u8]) {}

    fn finish(&mut self) {}

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let Some(sample) = self.next_sample()? else { return Ok(false) };
        let end = sample.offset.checked_add(u64::from(sample.len));
        if end.is_none_or(|end| end > self.len) {
            if self.fragments.is_some() {
                // A recording in fragments that was interrupted.
                return Ok(false);
            }
            return Err(self.malformed(&sample, "is cut off by the end of the file"));
        }
        self.sample.resize(sample.len as usize, 0);
        let sought = self.file.seek(SeekFrom::Start(sample.offset));
        let read = sought.and_then(|_| self.file.read_exact(&mut self.sample));
        read.map_err(|source| failed(&self.path, source))?;
        frame.data.clear();
        frame.duration = None;
        let form = (sample.description as usize).checked_sub(1).and_then(|it| self.forms.get(it));
        match form.and_then(Option::as_ref) {
            Some(Form::Nal(units)) => units
                .convert(&self.sample, sample.is_key, &mut frame.data)
                .map_err(|reason| self.malformed(&sample, reason))?,
            Some(Form::Opus) => {
                frame.duration = packet_duration(&self.sample).ok();
                frame.data.extend_from_slice(&self.sample);
            }
            None => return Err(self.malformed(&sample, "is in another coding than the first")),
        }
        self.budget.take(frame.data.len(), &self.path)?;
        frame.decoded = Some(self.time(sample.decoded));
        frame.presented = Some(self.time(sample.decoded.saturating_add(sample.shift)));
        Ok(true)
    }

    fn buffered(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use mp4_atom::{Encode, Stco, StscEntry, StszSamples, SttsEntry};

    use super::super::configuration::Configuration;
    use super::*;

    /// Returns a packet of 1 000 octets, and an index that names it so many times.
    fn file(count: u32) -> Vec<u8> {
        let mut moov = writer::index(&[Configuration::opus(&[8])]);
        moov.mvex = None;
        let stbl = &mut moov.trak[0].mdia.minf.stbl;
        stbl.stsz.samples = StszSamples::Identical { count, size: 1_000 };
        let (first_chunk, samples_per_chunk, sample_description_index) = (1, 1, 1);
        stbl.stsc.entries =
            vec![StscEntry { first_chunk, samples_per_chunk, sample_description_index }];
        stbl.stts.entries = vec![SttsEntry { sample_count: count, sample_delta: 960 }];
        stbl.stco = Some(Stco { entries: vec![8; count as usize] });
        let mut octets = [&[0, 0, 3, 0xf0][..], b"mdat", &[8; 1_000]].concat();
        moov.encode(&mut octets).unwrap();
        octets
    }

    /// Returns the octets of the frames of a file, and its error.
    fn read(octets: Vec<u8>) -> (usize, Option<String>) {
        let file = Box::new(std::io::Cursor::new(octets));
        let movie = Movie::open(file, Path::new("film.mp4")).unwrap();
        let mut reader = movie.reader(Codec::Opus, ReadOptions::default()).unwrap();
        let (mut frame, mut read) = (MediaFrame::default(), 0);
        loop {
            match reader.next_frame(&mut frame) {
                Ok(true) => read += frame.data.len(),
                Ok(false) => return (read, None),
                Err(error) => return (read, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn frames_may_share_octets_but_not_without_end() {
        assert_eq!(read(file(50)), (50_000, None));
        let file = file(10_000);
        let max = 64 * file.len();
        let (octets, error) = read(file);
        assert!((max - 1_000..=max).contains(&octets), "{octets}");
        assert!(error.unwrap().ends_with("over 64 times the octets of the file"));
    }
}
