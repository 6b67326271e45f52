//! Frames of one stream into a container with one track.

use std::io::{self, Write};
use std::path::Path;

use rushes_proto::RtpTimestamp;
use rushes_proto::payload::nal::NalCodec;
use rushes_proto::payload::opus::packet_duration;

use super::CARRIED;
use super::configuration::{Configuration, is_stored};
use super::matroska::Matroska;
use super::mp4::Fragmented;
use crate::format::Codec;
use crate::format::file::FrameWriter;
use crate::format::nal::units;

/// Parameter sets that are remembered: as many as H.264 has ids.
const SETS_MAX: usize = 32 + 256;

/// A timestamp so many ticks away from the last one is that of another clock: ten minutes of Opus.
const JUMP: u32 = 600 * 48_000;

/// One frame of a track.
pub(super) struct Sample {
    /// NAL units with lengths of four octets, or an Opus packet.
    pub(super) data: Vec<u8>,
    /// When it is presented, in ticks of the codec's clock, from the first frame on.
    pub(super) presented: i64,
    /// Its duration, if it is known.
    pub(super) duration: Option<u32>,
    pub(super) is_key: bool,
}

/// By how many ticks a file is later than its stream: its first frame may be presented after others,
/// and files have no times before their beginning. `samples` are the first ones.
pub(super) fn shift(samples: &[Sample]) -> i64 {
    let first = samples.iter().map(|sample| sample.presented).min();
    first.map_or(0, |first| first.saturating_neg().max(0))
}

/// Writes the samples of a track.
pub(super) trait Muxer: Send {
    /// Writes the beginning of the file.
    fn begin(&mut self, configuration: &Configuration, to: &mut dyn Write) -> io::Result<()>;

    /// Writes a sample, or keeps it for later.
    fn write(&mut self, sample: Sample, to: &mut dyn Write) -> io::Result<()>;

    /// Writes what was kept.
    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()>;

    /// As [`FrameWriter::complete`].
    fn complete(&mut self, to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.finish(to)?;
        Ok(Vec::new())
    }

    /// The samples that were written, so that they can be read.
    fn samples_written(&self) -> u64;
}

/// Creates the writer for a file, if its name is that of a container and `codec` one that containers
/// carry.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if this container does not hold `codec`.
pub(in crate::format::file) fn writer(
    path: &Path,
    codec: Codec,
) -> io::Result<Option<Box<dyn FrameWriter>>> {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let muxer: Box<dyn Muxer> = match &extension.to_ascii_lowercase()[..] {
        _ if !CARRIED.contains(&codec) => return Ok(None),
        "mp4" | "m4v" | "m4a" | "mov" => Box::new(Fragmented::default()),
        "mkv" | "mka" => Box::new(Matroska::new("matroska")),
        "webm" if codec == Codec::Opus => Box::new(Matroska::new("webm")),
        "webm" => {
            let reason = format!("WebM does not hold {}: name it .mkv", codec.title);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        _ => return Ok(None),
    };
    Ok(Some(Box::new(TrackWriter {
        codec,
        muxer,
        has_begun: false,
        sets: Vec::new(),
        written_sets: Vec::new(),
        clock: Clock::default(),
    })))
}

struct TrackWriter {
    codec: Codec,
    muxer: Box<dyn Muxer>,
    has_begun: bool,
    /// The parameter sets so far, and those in the file's beginning.
    sets: Vec<Vec<u8>>,
    written_sets: Vec<Vec<u8>>,
    clock: Clock,
}

/// Times from timestamps, without their wraps.
#[derive(Debug, Default)]
struct Clock {
    last: Option<(RtpTimestamp, i64)>,
    /// The latest time, and the last distance between two: that to the first frame of another source.
    latest: i64,
    step: i64,
}

impl Clock {
    fn time(&mut self, timestamp: RtpTimestamp) -> i64 {
        let time = match self.last {
            Some((last, time)) if timestamp.distance(last).unsigned_abs() < JUMP => {
                let distance = i64::from(timestamp.distance(last));
                self.step = if distance == 0 { self.step } else { distance.abs() };
                time.saturating_add(distance)
            }
            _ => self.latest.saturating_add(self.step),
        };
        self.last = Some((timestamp, time));
        self.latest = self.latest.max(time);
        time
    }
}

impl TrackWriter {
    /// The sample of an access unit; `None` if it has no slice. Parameter sets that are in the file's
    /// beginning are left out.
    fn sample(&mut self, nal: NalCodec, frame: &[u8], presented: i64) -> Option<Sample> {
        let mut sample = Sample { data: Vec::new(), presented, duration: None, is_key: false };
        let mut has_slice = false;
        for unit in units(frame).filter(|unit| !unit.is_empty()) {
            let Some(header) = nal.header(unit) else { continue };
            let is_stored = is_stored(nal, header.nal_type);
            if is_stored && !self.has_begun {
                if self.sets.len() < SETS_MAX && !self.sets.iter().any(|set| set == unit) {
                    self.sets.push(unit.to_vec());
                }
                continue;
            }
            let is_known = self.written_sets.iter().any(|set| set == unit);
            if is_stored && !is_known {
                // It may replace one of those, which must come again after it.
                self.written_sets.clear();
            }
            if is_known || nal.is_access_unit_delimiter(header.nal_type) {
                continue;
            }
            has_slice |= nal.is_vcl(header.nal_type);
            sample.is_key |= nal.is_random_access(header.nal_type);
            sample.data.extend((unit.len() as u32).to_be_bytes());
            sample.data.extend_from_slice(unit);
        }
        has_slice.then_some(sample)
    }

    fn begin(&mut self, frame: &[u8], to: &mut dyn Write) -> io::Result<bool> {
        let configuration = match self.codec.nal {
            Some(_) => Configuration::of_parameter_sets(self.codec, &self.sets),
            None => Some(Configuration::opus(frame)),
        };
        let Some(configuration) = configuration else {
            tracing::debug!("a frame before the first parameter sets cannot be decoded");
            return Ok(false);
        };
        self.muxer.begin(&configuration, to)?;
        self.has_begun = true;
        self.written_sets = std::mem::take(&mut self.sets);
        Ok(true)
    }
}

impl FrameWriter for TrackWriter {
    /// Frames before the first parameter sets are left out: no decoder could begin with them.
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let sample = if let Some(nal) = self.codec.nal {
            let presented = self.clock.time(timestamp);
            self.sample(nal, frame, presented)
        } else {
            let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            let duration = Some(packet_duration(frame).map_err(wrong)?);
            let presented = self.clock.time(timestamp);
            Some(Sample { data: frame.to_vec(), presented, duration, is_key: true })
        };
        let Some(sample) = sample else { return Ok(()) };
        if !self.has_begun && !self.begin(frame, to)? {
            return Ok(());
        }
        self.muxer.write(sample, to)
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.muxer.finish(to)
    }

    fn complete(&mut self, to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.muxer.complete(to)
    }

    fn frames_written(&self) -> u64 {
        self.muxer.samples_written()
    }

    fn change_source(&mut self) {
        self.clock.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_over_wraps_and_changes_of_the_source() {
        let mut clock = Clock::default();
        let mut time = |timestamp| clock.time(RtpTimestamp(timestamp));
        assert_eq!(time(u32::MAX - 2999), 0);
        assert_eq!([time(3000), time(0), time(6000)], [6000, 3000, 9000]);
        clock.last = None;
        assert_eq!(clock.time(RtpTimestamp(77)), 15_000);
        assert_eq!(clock.time(RtpTimestamp(1 << 31)), 21_000, "another clock");
    }
}
