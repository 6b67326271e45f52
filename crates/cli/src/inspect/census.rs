//! Contents of a stream: its NAL units by type, its frames, their sizes and times.

use std::collections::BTreeMap;

use rushes::payload::opus::packet_duration;
use rushes::proto::payload::nal::NalCodec;
use rushes::{ClockRate, Codec, Frame, RtpTimestamp};

use super::codec::PREFIX_LEN;
use super::names::opus_mode;

/// Units of one kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Count {
    pub(crate) units: u64,
    pub(crate) octets: u64,
}

/// The coding of Opus packets: mode, whether stereo, duration in ticks of 48 kHz.
pub(crate) type OpusKind = (&'static str, bool, u32);

/// Counts of the units and frames delivered so far.
#[derive(Debug)]
pub(crate) struct Census {
    nal: Option<NalCodec>,
    opus: bool,
    /// Counts by NAL unit type.
    pub(crate) types: [Count; 64],
    pub(crate) opus_kinds: BTreeMap<OpusKind, Count>,
    pub(crate) all: Count,
    /// Access units, or frames of another format, that arrived at least in part.
    pub(crate) frames: u64,
    /// Frames from which decoding can start.
    pub(crate) random_access: u64,
    /// Octets of NAL units in the largest frame.
    pub(crate) largest: u64,
    current: Option<Current>,
    /// The timestamp of the last frame that began.
    last: Option<RtpTimestamp>,
    /// Ticks from the first frame's timestamp to the highest one, the lowest one and the most
    /// recent one.
    latest: i64,
    earliest: i64,
    position: i64,
}

/// The frame in progress.
#[derive(Clone, Copy, Debug)]
struct Current {
    timestamp: RtpTimestamp,
    octets: u64,
    random_access: bool,
}

impl Census {
    pub(crate) fn new(nal: Option<NalCodec>, codec: Option<Codec>) -> Self {
        Self {
            nal,
            opus: codec == Some(Codec::Opus),
            types: [Count::default(); 64],
            opus_kinds: BTreeMap::new(),
            all: Count::default(),
            frames: 0,
            random_access: 0,
            largest: 0,
            current: None,
            last: None,
            latest: 0,
            earliest: 0,
            position: 0,
        }
    }

    /// Counts the next unit.
    pub(crate) fn take(&mut self, frame: &Frame) {
        let unit = if self.nal.is_some() { frame.get(PREFIX_LEN..).unwrap_or(&[]) } else { frame };
        let octets = unit.len() as u64;
        let count = |count: &mut Count| {
            count.units += 1;
            count.octets += octets;
        };
        count(&mut self.all);
        let mut random_access = false;
        if let Some(nal) = self.nal
            && let Some(header) = nal.header(unit)
        {
            count(&mut self.types[usize::from(header.nal_type & 63)]);
            random_access = nal.is_random_access(header.nal_type);
        }
        if self.opus
            && let (Some(toc), Ok(ticks)) = (unit.first(), packet_duration(unit))
        {
            let kind = (opus_mode(*toc), toc & 4 != 0, ticks);
            count(self.opus_kinds.entry(kind).or_default());
        }
        self.place(frame.timestamp(), octets, random_access);
        if frame.marker() {
            self.current = None;
        }
    }

    /// Adds a unit to its frame, which consists of consecutive units with one timestamp.
    fn place(&mut self, timestamp: RtpTimestamp, octets: u64, random_access: bool) {
        let same = self.current.filter(|current| current.timestamp == timestamp);
        if same.is_none() {
            let before = self.last.replace(timestamp).unwrap_or(timestamp);
            self.position += i64::from(timestamp.distance(before));
            self.latest = self.latest.max(self.position);
            self.earliest = self.earliest.min(self.position);
            self.frames += 1;
        }
        let before = same.unwrap_or(Current { timestamp, octets: 0, random_access: false });
        let current = Current {
            timestamp,
            octets: before.octets + octets,
            random_access: before.random_access || random_access,
        };
        self.random_access += u64::from(current.random_access && !before.random_access);
        self.largest = self.largest.max(current.octets);
        self.current = Some(current);
    }

    /// Returns the seconds from the earliest frame to the latest, by their timestamps.
    pub(crate) fn seconds(&self, clock_rate: ClockRate) -> f64 {
        (self.latest - self.earliest) as f64 / f64::from(clock_rate.hertz())
    }

    /// Returns the frames per second by their timestamps, or `None` for fewer than two frames.
    pub(crate) fn frame_rate(&self, clock_rate: ClockRate) -> Option<f64> {
        let seconds = self.seconds(clock_rate);
        (self.frames > 1 && seconds > 0.0).then(|| (self.frames - 1) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_out_of_order_do_not_disturb_the_frame_rate() {
        let mut census = Census::new(Some(NalCodec::H264), Some(Codec::H264));
        let start = u32::MAX - 3000;
        for (n, octets) in [(0_u32, 9), (3, 5), (1, 2), (2, 2), (6, 5), (4, 2), (5, 2)] {
            census.place(RtpTimestamp(start).plus(n * 3000), octets, n == 0);
            census.place(RtpTimestamp(start).plus(n * 3000), octets, n == 0);
        }
        assert_eq!(census.frames, 7);
        assert_eq!((census.random_access, census.largest), (1, 18));
        assert!((census.frame_rate(ClockRate::VIDEO).unwrap() - 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_single_frame_has_no_rate() {
        let mut census = Census::new(None, None);
        census.place(RtpTimestamp(5), 1, false);
        assert_eq!(census.frame_rate(ClockRate::VIDEO), None);
    }
}
