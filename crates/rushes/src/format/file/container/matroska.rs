//! Matroska and WebM files (RFC 9559).

use std::io::BufReader;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use matroska_demuxer::{
    ContentCompAlgo, ContentEncodingValue, DemuxError, Frame, MatroskaFile, TrackEntry, TrackType,
};
use rushes_proto::FrameRate;
use rushes_proto::payload::opus::packet_duration;

use super::units::NalUnits;
use super::{Octets, Track, damaged, failed, missing};
use crate::format::file::{Codec, FileError, FrameReader, MediaFrame, MediaTime, ReadOptions};

/// Nanoseconds in a second: the unit of times in a file is a number of these.
const NANOS: u64 = 1_000_000_000;

/// The tracks of `file`, which errors call `path`.
pub(super) fn tracks(file: Box<dyn Octets>, path: &Path) -> Result<Vec<Track>, FileError> {
    Ok(open(file, path)?.tracks().iter().map(track).collect())
}

type File = MatroskaFile<BufReader<Box<dyn Octets>>>;

fn open(file: Box<dyn Octets>, path: &Path) -> Result<File, FileError> {
    MatroskaFile::open(BufReader::new(file)).map_err(|source| damaged(path, source))
}

fn track(entry: &TrackEntry) -> Track {
    let interval = entry.default_duration().and_then(|nanos| u32::try_from(nanos.get()).ok());
    Track {
        codec: codec_of(entry.codec_id()),
        media: match entry.track_type() {
            TrackType::Video => "video",
            TrackType::Audio => "audio",
            _ => "other",
        },
        coding: entry.codec_id().to_owned(),
        frame_rate: interval
            .filter(|_| entry.track_type() == TrackType::Video)
            .and_then(|nanos| FrameRate::from_f64(NANOS as f64 / f64::from(nanos))),
    }
}

fn codec_of(coding: &str) -> Option<Codec> {
    Some(match coding {
        "V_MPEG4/ISO/AVC" => Codec::H264,
        "V_MPEGH/ISO/HEVC" => Codec::H265,
        "V_MPEGI/ISO/VVC" => Codec::H266,
        "A_OPUS" => Codec::Opus,
        _ => return None,
    })
}

/// The frames of the first track of `codec` in `file`, which errors call `path`.
pub(super) fn reader(
    file: Box<dyn Octets>,
    path: &Path,
    codec: Codec,
    options: ReadOptions,
) -> Result<Reader, FileError> {
    let file = open(file, path)?;
    let tracks: Vec<_> = file.tracks().iter().map(track).collect();
    let Some(number) = tracks.iter().position(|track| track.codec == Some(codec)) else {
        return Err(missing(path, codec, &tracks));
    };
    let entry = &file.tracks()[number];
    let units = codec.nal.map(|nal| {
        let record = entry.codec_private().unwrap_or_default();
        let malformed = "the configuration of its codec is malformed";
        NalUnits::of_record(nal, record, options.framing).ok_or_else(|| damaged(path, malformed))
    });
    Ok(Reader {
        path: path.to_owned(),
        units: units.transpose()?,
        prefix: removed_prefix(entry).map_err(|reason| damaged(path, reason))?,
        track: entry.track_number().get(),
        delay: i64::try_from(entry.codec_delay().unwrap_or(0)).unwrap_or(0),
        unit: file.info().timestamp_scale().get(),
        file,
        frame: Frame::default(),
        sample: Vec::new(),
        number: 0,
    })
}

/// The octets that were removed from the beginning of each frame.
fn removed_prefix(entry: &TrackEntry) -> Result<Vec<u8>, &'static str> {
    let mut encodings = entry.content_encodings().unwrap_or_default().iter();
    let prefix = match encodings.next().map(|it| it.encoding()) {
        None => Vec::new(),
        Some(ContentEncodingValue::Compression(compression))
            if compression.algo() == ContentCompAlgo::Stripping =>
        {
            compression.settings().unwrap_or_default().to_vec()
        }
        Some(ContentEncodingValue::Encryption(_)) => return Err("the track is encrypted"),
        Some(_) => return Err("the track is compressed"),
    };
    if encodings.next().is_some() { Err("the track is compressed") } else { Ok(prefix) }
}

/// The frames of a track.
pub(super) struct Reader {
    path: PathBuf,
    file: File,
    track: u64,
    /// `None` for Opus.
    units: Option<NalUnits>,
    prefix: Vec<u8>,
    /// Nanoseconds in a unit of time.
    unit: u64,
    /// By how many nanoseconds presentation is before the times in the file.
    delay: i64,
    frame: Frame,
    sample: Vec<u8>,
    number: u64,
}

impl Reader {
    /// When the current frame is presented. Files whose unit divides a second are exact.
    fn presented(&self) -> MediaTime {
        let timestamp = i64::try_from(self.frame.timestamp).unwrap_or(i64::MAX);
        let per_second = u32::try_from(NANOS / self.unit).ok().and_then(NonZeroU32::new);
        match per_second {
            Some(per_second) if self.delay == 0 && NANOS % self.unit == 0 => {
                MediaTime::new(timestamp, per_second)
            }
            _ => {
                let unit = i64::try_from(self.unit).unwrap_or(i64::MAX);
                let nanos = timestamp.saturating_mul(unit).saturating_sub(self.delay);
                MediaTime::new(nanos, NonZeroU32::MIN.saturating_add(NANOS as u32 - 1))
            }
        }
    }

    fn damaged(&self, source: DemuxError) -> FileError {
        match source {
            DemuxError::IoError(source) => failed(&self.path, source),
            source => damaged(&self.path, source),
        }
    }
}

impl FrameReader for Reader {
    /// Does nothing: the file is read where its elements are.
    fn feed(&mut self, _: &[u8]) {}

    fn finish(&mut self) {}

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        loop {
            let is_frame = self.file.next_frame(&mut self.frame);
            if !is_frame.map_err(|source| self.damaged(source))? {
                return Ok(false);
            }
            if self.frame.track == self.track && !self.frame.data.is_empty() {
                break;
            }
        }
        self.sample.clear();
        self.sample.extend_from_slice(&self.prefix);
        self.sample.extend_from_slice(&self.frame.data);
        frame.data.clear();
        (frame.duration, frame.decoded) = (None, None);
        match &self.units {
            Some(units) => {
                let is_key = self.frame.is_keyframe == Some(true);
                units.convert(&self.sample, is_key, &mut frame.data).map_err(|reason| {
                    damaged(&self.path, format!("frame {} of the track {reason}", self.number))
                })?;
            }
            None => {
                frame.duration = packet_duration(&self.sample).ok();
                frame.data.extend_from_slice(&self.sample);
            }
        }
        frame.presented = Some(self.presented());
        self.number += 1;
        Ok(true)
    }

    fn buffered(&self) -> usize {
        0
    }
}
