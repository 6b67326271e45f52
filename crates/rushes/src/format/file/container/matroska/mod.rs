//! Matroska and WebM files (RFC 9559).

mod block;
mod element;
mod index;
mod writer;
mod written;

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use rushes_proto::FrameRate;
use rushes_proto::payload::opus::packet_duration;

use self::element::{Elements, children, unsigned};
pub(super) use self::writer::Matroska;
use super::units::NalUnits;
use super::{Budget, Octets, Track, damaged, failed, missing};
use crate::format::file::{Codec, FileError, FrameReader, MediaFrame, MediaTime, ReadOptions};

/// Nanoseconds in a second: the unit of times in a file is a number of these.
const NANOS: u64 = 1_000_000_000;

/// The largest description of a file or its tracks, and the largest block, that are read.
const INDEX_MAX: u64 = 16 << 20;
const BLOCK_MAX: u64 = 256 << 20;

/// The most octets that are removed from the beginning of each frame: start codes have a few.
const PREFIX_MAX: usize = 256;

/// Identifiers of elements.
mod id {
    pub(super) const SEGMENT: u32 = 0x1853_8067;
    pub(super) const INFO: u32 = 0x1549_a966;
    pub(super) const TIMESTAMP_SCALE: u32 = 0x2a_d7b1;
    pub(super) const TRACKS: u32 = 0x1654_ae6b;
    pub(super) const CLUSTER: u32 = 0x1f43_b675;
    pub(super) const TIMESTAMP: u32 = 0xe7;
    pub(super) const SIMPLE_BLOCK: u32 = 0xa3;
    pub(super) const BLOCK_GROUP: u32 = 0xa0;
    pub(super) const BLOCK: u32 = 0xa1;
    pub(super) const REFERENCE_BLOCK: u32 = 0xfb;
}

/// A track, and the fields needed to read its frames.
#[derive(Clone, Debug, Default)]
struct Entry {
    number: u64,
    kind: u64,
    coding: String,
    private: Vec<u8>,
    /// Nanoseconds from one frame to the next, if that is known.
    interval: Option<u64>,
    /// By how many nanoseconds presentation is before the times in the file.
    delay: u64,
    /// The octets that were removed from the beginning of each frame.
    prefix: Vec<u8>,
    /// The reason why the track cannot be read, if there is one.
    obstacle: Option<&'static str>,
}

/// A file up to its first cluster.
struct Opened {
    elements: Elements,
    /// Nanoseconds in a unit of time.
    unit: u64,
    entries: Vec<Entry>,
}

/// Returns the tracks of `file`, which errors call `path`.
pub(super) fn tracks(file: Box<dyn Octets>, path: &Path) -> Result<Vec<Track>, FileError> {
    Ok(open(file, path)?.entries.iter().map(Entry::track).collect())
}

fn open(file: Box<dyn Octets>, path: &Path) -> Result<Opened, FileError> {
    let read = || -> io::Result<Opened> {
        let (unit, entries) = (1_000_000, Vec::new());
        let mut opened = Opened { elements: Elements::new(file)?, unit, entries };
        while let Some(header) = opened.elements.next()? {
            match header.id {
                id::SEGMENT => {}
                id::CLUSTER => break,
                id::INFO | id::TRACKS => {
                    let Some(data) = opened.elements.data(header, INDEX_MAX)? else { break };
                    opened.take(header.id, &data);
                }
                _ if opened.elements.skip(header)? => {}
                _ => break,
            }
        }
        Ok(opened)
    };
    let opened = read().map_err(|source| wrong(path, source))?;
    if opened.entries.is_empty() {
        return Err(damaged(path, "it has no tracks before its frames"));
    }
    Ok(opened)
}

fn wrong(path: &Path, source: io::Error) -> FileError {
    if source.kind() == io::ErrorKind::InvalidData {
        damaged(path, source)
    } else {
        failed(path, source)
    }
}

impl Opened {
    fn take(&mut self, id: u32, data: &[u8]) {
        for (child, body) in children(data) {
            match (id, child) {
                (id::INFO, id::TIMESTAMP_SCALE) => {
                    self.unit = unsigned(body).filter(|unit| *unit > 0).unwrap_or(self.unit);
                }
                (id::TRACKS, 0xae) => self.entries.push(Entry::read(body)),
                _ => {}
            }
        }
    }
}

impl Entry {
    fn read(data: &[u8]) -> Self {
        let mut entry = Self::default();
        for (id, body) in children(data) {
            let number = || unsigned(body).unwrap_or(0);
            match id {
                0xd7 => entry.number = number(),
                0x83 => entry.kind = number(),
                0x86 => {
                    let text = String::from_utf8_lossy(body);
                    text.trim_end_matches('\0').clone_into(&mut entry.coding);
                }
                0x63a2 => entry.private = body.to_vec(),
                0x23_e383 => entry.interval = Some(number()).filter(|nanos| *nanos > 0),
                0x56aa => entry.delay = number(),
                0x6d80 => match removed_prefix(body) {
                    Ok(prefix) => entry.prefix = prefix,
                    Err(obstacle) => entry.obstacle = Some(obstacle),
                },
                _ => {}
            }
        }
        entry
    }

    fn codec(&self) -> Option<Codec> {
        Some(match &self.coding[..] {
            "V_MPEG4/ISO/AVC" => Codec::H264,
            "V_MPEGH/ISO/HEVC" => Codec::H265,
            "V_MPEGI/ISO/VVC" => Codec::H266,
            "V_VP8" => Codec::Vp8,
            "V_VP9" => Codec::Vp9,
            "A_OPUS" => Codec::Opus,
            _ => return None,
        })
    }

    fn track(&self) -> Track {
        let media = match self.kind {
            1 => "video",
            2 => "audio",
            _ => "other",
        };
        let rate = |nanos: u64| FrameRate::from_f64(NANOS as f64 / nanos as f64);
        let frame_rate = self.interval.filter(|_| media == "video").and_then(rate);
        Track { codec: self.codec(), media, coding: self.coding.clone(), frame_rate }
    }
}

/// Returns the octets that the encodings of a track removed from the beginning of each frame.
fn removed_prefix(encodings: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut prefix = Vec::new();
    for (_, encoding) in children(encodings).filter(|(id, _)| *id == 0x6240) {
        let of = |data: &[u8], id: u32| {
            children(data).find(|(child, _)| *child == id).map(|(_, body)| body.to_vec())
        };
        if of(encoding, 0x5035).is_some() {
            return Err("the track is encrypted");
        }
        let compression = of(encoding, 0x5034).unwrap_or_default();
        let algorithm = of(&compression, 0x4254).and_then(|body| unsigned(&body)).unwrap_or(0);
        if algorithm != 3 || !prefix.is_empty() {
            return Err("the track is compressed");
        }
        prefix = of(&compression, 0x4255).unwrap_or_default();
        if prefix.len() > PREFIX_MAX {
            return Err("the track is compressed");
        }
    }
    Ok(prefix)
}

/// Returns the frames of the first track of `codec` in `file`, which errors call `path`.
pub(super) fn reader(
    file: Box<dyn Octets>,
    path: &Path,
    codec: Codec,
    options: ReadOptions,
) -> Result<Reader, FileError> {
    let Opened { elements, unit, entries } = open(file, path)?;
    let Some(entry) = entries.iter().find(|entry| entry.codec() == Some(codec)) else {
        let tracks: Vec<_> = entries.iter().map(Entry::track).collect();
        return Err(missing(path, codec, &tracks));
    };
    if let Some(obstacle) = entry.obstacle {
        return Err(damaged(path, obstacle));
    }
    let units = codec.nal.map(|nal| {
        let malformed = "the configuration of its codec is malformed";
        NalUnits::of_record(nal, &entry.private, options.framing)
            .ok_or_else(|| damaged(path, malformed))
    });
    Ok(Reader {
        path: path.to_owned(),
        units: units.transpose()?,
        is_opus: codec == Codec::Opus,
        prefix: entry.prefix.clone(),
        track: entry.number,
        delay: i64::try_from(entry.delay).unwrap_or(i64::MAX),
        interval: entry.interval,
        unit,
        budget: Budget::new(elements.len()),
        elements,
        cluster: 0,
        waiting: VecDeque::new(),
        is_first: true,
    })
}

/// The frames of a track.
pub(super) struct Reader {
    path: PathBuf,
    elements: Elements,
    budget: Budget,
    track: u64,
    /// `None` for codecs without NAL units.
    units: Option<NalUnits>,
    is_opus: bool,
    prefix: Vec<u8>,
    unit: u64,
    delay: i64,
    interval: Option<u64>,
    /// The time of the current cluster, in units of the file's timestamp scale.
    cluster: u64,
    /// The frames of a block.
    waiting: VecDeque<Waiting>,
    /// Whether no frame has been read yet.
    is_first: bool,
}

struct Waiting {
    data: Vec<u8>,
    /// In the same units, and how many nanoseconds later.
    time: i64,
    later: u64,
    is_key: bool,
}

impl Reader {
    /// Reads the next block of the track; `false` at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        while let Some(header) = self.elements.next()? {
            match header.id {
                id::SEGMENT | id::CLUSTER => {}
                id::TIMESTAMP => {
                    let Some(data) = self.elements.data(header, 8)? else { return Ok(false) };
                    self.cluster = unsigned(&data).unwrap_or(0);
                }
                id::SIMPLE_BLOCK | id::BLOCK_GROUP => {
                    // The last block of a recording that was interrupted is left out.
                    let Some(data) = self.elements.data(header, BLOCK_MAX)? else {
                        return Ok(false);
                    };
                    if header.id == id::SIMPLE_BLOCK {
                        self.take(&data, None)?;
                    } else {
                        self.take_group(&data)?;
                    }
                    if !self.waiting.is_empty() {
                        return Ok(true);
                    }
                }
                _ if self.elements.skip(header)? => {}
                _ => break,
            }
        }
        Ok(false)
    }

    /// Takes the frames of the block in a group. A frame that refers to no other is a key frame.
    fn take_group(&mut self, data: &[u8]) -> io::Result<()> {
        let is_key = children(data).all(|(id, _)| id != id::REFERENCE_BLOCK);
        let block = children(data).find(|(id, _)| *id == id::BLOCK);
        block.map_or(Ok(()), |(_, block)| self.take(block, Some(is_key)))
    }

    /// Takes the frames of a block, if it is of the track. Without `is_key` the block says whether
    /// they are key frames.
    fn take(&mut self, data: &[u8], is_key: Option<bool>) -> io::Result<()> {
        let block = block::read(data).ok_or_else(|| {
            let position = self.elements.position();
            let reason = format!("the block before byte {position} is malformed");
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })?;
        if block.track != self.track {
            return Ok(());
        }
        let cluster = i64::try_from(self.cluster).unwrap_or(i64::MAX);
        let mut later = 0;
        for frame in block.frames.iter().filter(|frame| !frame.is_empty()) {
            let mut data = self.prefix.clone();
            data.extend_from_slice(frame);
            let time = cluster.saturating_add(block.time.into());
            // Parameter sets are due before the first frame.
            let is_first = std::mem::take(&mut self.is_first);
            let is_key = is_key.unwrap_or(block.is_key) || is_first;
            let waiting = Waiting { data, time, later, is_key };
            let known = self.duration(&waiting.data).unwrap_or(0);
            let known = u64::from(known) * NANOS / 48_000;
            later = u64::saturating_add(later, self.interval.unwrap_or(known));
            self.waiting.push_back(waiting);
        }
        Ok(())
    }

    /// Returns the duration of a packet of Opus, in ticks of 48 kHz; `None` of other frames.
    fn duration(&self, packet: &[u8]) -> Option<u32> {
        packet_duration(packet).ok().filter(|_| self.is_opus)
    }

    /// Returns when a frame is presented. Files whose unit divides a second are exact.
    fn presented(&self, frame: &Waiting) -> MediaTime {
        let per_second = u32::try_from(NANOS / self.unit).ok().and_then(NonZeroU32::new);
        match per_second {
            Some(per_second)
                if self.delay == 0 && frame.later == 0 && NANOS.is_multiple_of(self.unit) =>
            {
                MediaTime::new(frame.time, per_second)
            }
            _ => {
                let unit = i64::try_from(self.unit).unwrap_or(i64::MAX);
                let later = i64::try_from(frame.later).unwrap_or(i64::MAX);
                let nanos = frame.time.saturating_mul(unit).saturating_add(later);
                let per_second = NonZeroU32::MIN.saturating_add(NANOS as u32 - 1);
                MediaTime::new(nanos.saturating_sub(self.delay), per_second)
            }
        }
    }
}

impl FrameReader for Reader {
    /// Does nothing: the file is read where its elements are.
    fn feed(&mut self, _: &[u8]) {}

    fn finish(&mut self) {}

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let next = loop {
            if let Some(next) = self.waiting.pop_front() {
                break next;
            }
            if !self.next_block().map_err(|source| wrong(&self.path, source))? {
                return Ok(false);
            }
        };
        frame.presented = Some(self.presented(&next));
        (frame.duration, frame.decoded) = (None, None);
        if let Some(units) = &self.units {
            frame.data.clear();
            units.convert(&next.data, next.is_key, &mut frame.data).map_err(|reason| {
                let position = self.elements.position();
                damaged(&self.path, format!("the frame before byte {position} {reason}"))
            })?;
        } else {
            frame.duration = self.duration(&next.data);
            frame.data = next.data;
        }
        self.budget.take(frame.data.len(), &self.path)?;
        Ok(true)
    }

    fn buffered(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an element of fewer than 127 octets.
    fn element(id: &[u8], data: &[u8]) -> Vec<u8> {
        [id, &[0x80 | data.len() as u8], data].concat()
    }

    /// A record of H.264 with one set of each kind.
    const RECORD: &[u8] = b"\x01\x42\xc0\x1e\xff\xe1\0\x04\x67\x42\xc0\x1e\x01\0\x02\x68\xce";

    /// Returns a file whose clusters are of `groups` and a simple block that is no key frame.
    fn file(groups: &[&[u8]]) -> Box<dyn Octets> {
        let entry = [
            element(b"\xd7", &[1]),
            element(b"\x83", &[1]),
            element(b"\x86", b"V_MPEG4/ISO/AVC"),
            element(b"\x63\xa2", RECORD),
        ];
        let tracks = element(b"\x16\x54\xae\x6b", &element(b"\xae", &entry.concat()));
        let groups = groups.concat();
        let simple = element(b"\xa3", b"\x81\0\x09\0\0\0\0\x02\x41\x09");
        let unknown = b"\x18\x53\x80\x67\xff";
        let cluster = b"\x1f\x43\xb6\x75\xff";
        let octets = [&unknown[..], &tracks, cluster, &groups, &simple].concat();
        Box::new(io::Cursor::new(octets))
    }

    /// Returns a group with a block at a time, which refers to another one or not.
    fn group(time: u8, refers: bool) -> Vec<u8> {
        let block = element(b"\xa1", &[0x81, 0, time, 0, 0, 0, 0, 2, 0x41, time]);
        let reference = if refers { element(b"\xfb", &[0xff]) } else { Vec::new() };
        element(b"\xa0", &[block, reference].concat())
    }

    #[test]
    fn a_frame_in_a_group_is_a_key_frame_unless_it_refers_to_another() {
        let file = file(&[&group(1, true), &group(2, false), &group(3, true), b"\xa0\x80"]);
        let options = ReadOptions::default();
        let mut reader = reader(file, Path::new("film.mkv"), Codec::H264, options).unwrap();
        let mut frame = MediaFrame::default();
        let mut seen = Vec::new();
        while reader.next_frame(&mut frame).unwrap() {
            let has_sets = (Codec::H264.has_parameter_sets)(&frame.data);
            seen.push((frame.presented.unwrap().ticks(Codec::H264.clock_rate) / 90, has_sets));
        }
        // The first frame of a file gets the sets whatever it is.
        assert_eq!(seen, [(1, true), (2, true), (3, false), (9, false)]);
    }
}
