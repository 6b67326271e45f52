//! One source of a reception: its counters, and the frames that are kept of it.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use rushes::Ssrc;
use rushes::proto::stream::SourceStatistics;

use super::{FRAME_COST, Incoming, Kept, SETTLED};

/// Counters of one source.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Counts {
    pub(in super::super) packets: u64,
    pub(in super::super) packets_lost: u64,
    pub(in super::super) frames: u64,
    pub(in super::super) frames_dropped: u64,
    pub(in super::super) packets_unusable: u64,
    /// Packets of the same source in earlier files, missing ones included.
    pub(in super::super) packets_before: u64,
}

impl Counts {
    pub(in super::super) fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            packets_lost: self.packets_lost + other.packets_lost,
            frames: self.frames + other.frames,
            frames_dropped: self.frames_dropped + other.frames_dropped,
            packets_unusable: self.packets_unusable + other.packets_unusable,
            packets_before: self.packets_before + other.packets_before,
        }
    }

    /// Returns whether so many payloads were unusable that the usable ones are no media either:
    /// many encrypted payloads look usable, since they are random octets.
    pub(in super::super) fn is_noise(self) -> bool {
        self.packets_unusable * 8 > self.packets
    }

    /// Returns the increase of the counters since `base`.
    pub(super) fn since(self, base: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(base.packets),
            packets_lost: self.packets_lost.saturating_sub(base.packets_lost),
            frames: self.frames.saturating_sub(base.frames),
            frames_dropped: self.frames_dropped.saturating_sub(base.frames_dropped),
            packets_unusable: self.packets_unusable.saturating_sub(base.packets_unusable),
            packets_before: base.packets + base.packets_lost,
        }
    }

    /// Returns whether so many payloads were unusable that the stream has another format. A few
    /// unusable packets may have types that are reserved for extensions; receivers ignore them.
    pub(in super::super) fn is_of_another_format(self) -> bool {
        self.packets_unusable * 20 > self.packets
    }

    pub(super) fn of(source: &SourceStatistics) -> Self {
        Self {
            packets: source.packets,
            packets_lost: source.packets_lost,
            frames: source.frames,
            frames_dropped: source.frames_dropped,
            packets_unusable: source.packets_unusable,
            packets_before: 0,
        }
    }
}

/// One source.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) ssrc: Ssrc,
    pub(super) address: Option<SocketAddr>,
    pub(super) first: Instant,
    pub(super) last: Instant,
    /// Counters from before the receiver last forgot the source; `counts` has those since.
    pub(super) earlier: Counts,
    pub(super) counts: Counts,
    /// Counters from before the file began.
    pub(super) base: Counts,
    /// Octets of its frames.
    pub(super) octets: u64,
    pub(super) frames: Vec<Kept>,
    pub(super) kept: u64,
    /// Whether all of its frames are kept.
    pub(super) is_kept: bool,
}

impl Contender {
    pub(super) fn new(source: &SourceStatistics) -> Self {
        Self {
            ssrc: source.ssrc,
            address: source.address,
            first: source.first_heard,
            last: source.last_heard,
            earlier: Counts::default(),
            counts: Counts::of(source),
            base: Counts::default(),
            octets: 0,
            frames: Vec::new(),
            kept: 0,
            is_kept: true,
        }
    }

    pub(super) fn update(&mut self, source: &SourceStatistics) {
        self.address = source.address.or(self.address);
        self.last = self.last.max(source.last_heard);
        let counts = Counts::of(source);
        if counts.packets < self.counts.packets {
            self.earlier = self.all();
        }
        self.counts = counts;
    }

    /// Returns the counters of all files.
    pub(super) fn all(&self) -> Counts {
        self.earlier.plus(self.counts)
    }

    /// Returns the counters of this file.
    pub(super) fn total(&self) -> Counts {
        self.all().since(self.base)
    }

    pub(super) fn host(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip())
    }

    /// Keeps a frame; `false` if there is no room for it.
    pub(super) fn keep(&mut self, frame: Incoming<'_>) -> bool {
        let kept = self.kept + frame.octets.len() as u64 + FRAME_COST;
        let fits = self.is_kept && kept <= SETTLED;
        if fits {
            self.kept = kept;
            self.frames.push(frame.copy());
        }
        fits
    }

    pub(super) fn forget(&mut self) {
        (self.frames, self.kept, self.is_kept) = (Vec::new(), 0, false);
    }
}
