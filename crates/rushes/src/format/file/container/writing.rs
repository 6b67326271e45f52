//! Frames of one or more streams into a container with a track for each.

use std::io::{self, Write};
use std::path::Path;

use rushes_proto::RtpTimestamp;
use rushes_proto::payload::nal::NalCodec;
use rushes_proto::payload::opus::packet_duration;

use super::configuration::{Configuration, is_stored};
use super::matroska::Matroska;
use super::mp4::Fragmented;
use super::{CARRIED, OF_WEBM};
use crate::format::Codec;
use crate::format::file::{FrameWriter, MediaTime, TimestampClock};
use crate::format::nal::units;

/// Parameter sets that are remembered: as many as H.264 has ids.
const SETS_MAX: usize = 32 + 256;

/// One frame of a track.
pub(super) struct Sample {
    /// NAL units with lengths of four octets, a frame of VP8 or VP9, or an Opus packet.
    pub(super) data: Vec<u8>,
    /// When it is presented, in ticks of the codec's clock, from the first frame on.
    pub(super) presented: i64,
    /// Its duration, if it is known.
    pub(super) duration: Option<u32>,
    pub(super) is_key: bool,
}

/// Returns the number of ticks by which a file is later than its stream, given its first `samples`:
/// the first frame may be presented after others, and files have no negative times.
pub(super) fn shift<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> i64 {
    let first = samples.into_iter().map(|sample| sample.presented).min();
    first.map_or(0, |first| first.saturating_neg().max(0))
}

/// Writes the samples of tracks, which are numbered from 0.
pub(super) trait Muxer: Send {
    /// Writes the beginning of a file with these tracks.
    fn begin(&mut self, tracks: &[Configuration], to: &mut dyn Write) -> io::Result<()>;

    /// Writes a sample of a track, or keeps it for later.
    fn write(&mut self, track: usize, sample: Sample, to: &mut dyn Write) -> io::Result<()>;

    /// Writes the samples that were kept.
    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()>;

    /// Completes the file as [`FrameWriter::complete`] does.
    fn complete(&mut self, to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.finish(to)?;
        Ok(Vec::new())
    }

    /// Returns the number of samples that were written and can be read.
    fn samples_written(&self) -> u64;
}

/// Tracks of a file: Matroska has their numbers in one octet.
const TRACKS_MAX: usize = 126;

/// Octets of frames that wait for the parameter sets of another track.
const WAITING_MAX: usize = 16 << 20;

/// Octets of memory that a waiting frame takes besides its data.
const SAMPLE_COST: usize = 64;

/// Creates the writer for a file, if its name is that of a container and containers carry all
/// `codecs`.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if this container does not hold one of `codecs`.
pub(in crate::format::file) fn writer(
    path: &Path,
    codecs: &[Codec],
) -> io::Result<Option<Box<dyn FrameWriter>>> {
    let not_held = |name: &str, codec: &Codec| {
        let reason = format!("{name} does not hold {}: name it .mkv", codec.title);
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    };
    let is_of_webm = |codec: &&Codec| **codec == Codec::Opus || OF_WEBM.contains(codec);
    let other_than_webm = codecs.iter().find(|codec| !is_of_webm(codec));
    let only_webm = codecs.iter().find(|codec| OF_WEBM.contains(codec));
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let extension = extension.to_ascii_lowercase();
    // Frames without an encoding name may be those of any file.
    let is_left_out = |codec: &&Codec| codec.encoding.is_some() && !CARRIED.contains(codec);
    if let Some(codec) = codecs.iter().find(is_left_out)
        && ["mp4", "m4v", "m4a", "mov", "mkv", "mka", "webm"].contains(&&extension[..])
    {
        let own = codec.files.extensions.first();
        let advice = own.map_or_else(String::new, |own| format!(": name it .{own}"));
        let reason = format!("{} is not written to containers{advice}", codec.title);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let muxer: Box<dyn Muxer> = match &extension[..] {
        _ if !(1..=TRACKS_MAX).contains(&codecs.len()) => return Ok(None),
        _ if !codecs.iter().all(|codec| CARRIED.contains(codec)) => return Ok(None),
        "mp4" | "m4v" | "m4a" | "mov" => match only_webm {
            Some(codec) => return Err(not_held("MP4", codec)),
            None => Box::new(Fragmented::default()),
        },
        "mkv" | "mka" => Box::new(Matroska::new("matroska")),
        "webm" => match other_than_webm {
            Some(codec) => return Err(not_held("WebM", codec)),
            None => Box::new(Matroska::new("webm")),
        },
        _ => return Ok(None),
    };
    let tracks = codecs.iter().map(|codec| TrackWriter::new(*codec)).collect();
    let (waiting, octets) = (Vec::new(), 0);
    Ok(Some(Box::new(FilmWriter { muxer, has_begun: false, tracks, waiting, octets })))
}

/// Writes one or more tracks.
struct FilmWriter {
    muxer: Box<dyn Muxer>,
    has_begun: bool,
    tracks: Vec<TrackWriter>,
    /// Frames from before the file has begun, with the numbers of their tracks, and their octets.
    waiting: Vec<(usize, Sample)>,
    octets: usize,
}

struct TrackWriter {
    codec: Codec,
    /// The track's number in the file, once the file has begun; `None` if the track is left out.
    number: Option<usize>,
    is_left_out: bool,
    configuration: Option<Configuration>,
    /// The parameter sets so far, and those in the file's beginning.
    sets: Vec<Vec<u8>>,
    written_sets: Vec<Vec<u8>>,
    clock: TimestampClock,
}

impl TrackWriter {
    fn new(codec: Codec) -> Self {
        Self {
            codec,
            number: None,
            is_left_out: false,
            configuration: None,
            sets: Vec::new(),
            written_sets: Vec::new(),
            clock: TimestampClock::new(codec.clock_rate),
        }
    }

    /// Returns the sample of a frame; `None` if it is an access unit without a slice, or from
    /// before the first parameter sets or the first key frame: no decoder could begin with it.
    fn sample(&mut self, frame: &[u8], presented: i64) -> io::Result<Option<Sample>> {
        let sample = if let Some(nal) = self.codec.nal {
            self.access_unit(nal, frame, presented)
        } else if OF_WEBM.contains(&self.codec) {
            let is_key = (self.codec.is_key_frame)(frame);
            if self.configuration.is_none() {
                self.configuration = Configuration::of_key_frame(self.codec, frame);
            }
            Some(Sample { data: frame.to_vec(), presented, duration: None, is_key })
        } else {
            let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            let duration = Some(packet_duration(frame).map_err(wrong)?);
            self.configuration.get_or_insert_with(|| Configuration::opus(frame));
            Some(Sample { data: frame.to_vec(), presented, duration, is_key: true })
        };
        if sample.is_some() && self.configuration.is_none() {
            tracing::debug!("a frame before the first that a decoder can begin with is left out");
            return Ok(None);
        }
        Ok(sample)
    }

    /// Returns the sample of an access unit; `None` if it has no slice. Parameter sets that are in
    /// the file's beginning are left out.
    fn access_unit(&mut self, nal: NalCodec, frame: &[u8], presented: i64) -> Option<Sample> {
        let mut sample = Sample { data: Vec::new(), presented, duration: None, is_key: false };
        let mut has_slice = false;
        for unit in units(frame).filter(|unit| !unit.is_empty()) {
            let Some(header) = nal.header(unit) else { continue };
            let is_stored = is_stored(nal, header.nal_type);
            if is_stored && self.configuration.is_none() {
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
        if has_slice && self.configuration.is_none() {
            self.configuration = Configuration::of_parameter_sets(self.codec, &self.sets);
            if self.configuration.is_some() {
                self.written_sets = std::mem::take(&mut self.sets);
            }
        }
        has_slice.then_some(sample)
    }
}

impl FilmWriter {
    /// Writes a frame that is presented at a time of the file, in ticks; returns whether it is, or may
    /// still be, in the file.
    fn put(
        &mut self,
        track: usize,
        frame: &[u8],
        presented: i64,
        to: &mut dyn Write,
    ) -> io::Result<bool> {
        let Some(sample) = self.tracks[track].sample(frame, presented)? else { return Ok(false) };
        if self.has_begun {
            let Some(number) = self.tracks[track].number else { return Ok(false) };
            return self.muxer.write(number, sample, to).map(|()| true);
        }
        self.octets += sample.data.len() + SAMPLE_COST;
        self.waiting.push((track, sample));
        let is_known = |it: &TrackWriter| it.is_left_out || it.configuration.is_some();
        if self.tracks.iter().all(is_known) || self.octets > WAITING_MAX {
            self.begin(to)?;
        }
        Ok(!self.has_begun || self.tracks[track].number.is_some())
    }

    /// Begins a file that ends before all of its tracks are known.
    fn begin_late(&mut self, to: &mut dyn Write) -> io::Result<()> {
        if self.has_begun || self.waiting.is_empty() { Ok(()) } else { self.begin(to) }
    }

    /// Begins the file with the tracks that are known, and writes the frames that wait.
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let mut configurations = Vec::new();
        for track in self.tracks.iter_mut().filter(|track| !track.is_left_out) {
            if let Some(configuration) = track.configuration.clone() {
                track.number = Some(configurations.len());
                configurations.push(configuration);
            }
        }
        self.muxer.begin(&configurations, to)?;
        self.has_begun = true;
        self.octets = 0;
        for (track, sample) in std::mem::take(&mut self.waiting) {
            if let Some(number) = self.tracks[track].number {
                self.muxer.write(number, sample, to)?;
            }
        }
        Ok(())
    }
}

impl FrameWriter for FilmWriter {
    /// Frames before the first parameter sets are left out: no decoder could begin with them.
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let presented = self.tracks[0].clock.time(timestamp);
        self.put(0, frame, presented, to).map(|_| ())
    }

    fn write_track(
        &mut self,
        track: usize,
        frame: &[u8],
        presented: MediaTime,
        to: &mut dyn Write,
    ) -> io::Result<bool> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "the file has no such track");
        let codec = self.tracks.get(track).ok_or_else(none)?.codec;
        self.put(track, frame, presented.ticks(codec.clock_rate), to)
    }

    fn leave_out(&mut self, track: usize) {
        if let Some(track) = self.tracks.get_mut(track) {
            track.is_left_out = true;
        }
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.begin_late(to)?;
        self.muxer.finish(to)
    }

    fn complete(&mut self, to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.begin_late(to)?;
        self.muxer.complete(to)
    }

    fn frames_written(&self) -> u64 {
        self.muxer.samples_written()
    }

    fn change_source(&mut self) {
        self.tracks[0].clock.change_source();
    }
}
