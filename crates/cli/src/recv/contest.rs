//! Selection of the source that a reception writes.
//!
//! Any host can send to an open port, and the first source is not always the intended one. So
//! frames of other sources are kept for a while. A source that sends twice as much as the one being
//! written replaces it, and the file starts again with its first frame. A sender that is killed and
//! restarted is a new source of the same host: it continues the file where the first one ended.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rushes::proto::stream::{ReceiveStatistics, SourceStatistics};
use rushes::{RtpTimestamp, Ssrc};

/// Number of octets after which a source can no longer be replaced; also the maximum kept of each.
const SETTLED: u64 = 4 << 20;

/// Maximum number of octets kept of the next file's source while another stream of the current file
/// continues.
const NEXT_MAX: u64 = 16 << 20;

/// The memory that a kept frame takes besides its octets.
const FRAME_COST: u64 = 64;

/// Maximum number of sources remembered per file.
const WRITTEN_MAX: usize = 64;

/// Another source replaces the current one if it has sent this many times the octets written.
const TAKEOVER_FACTOR: u64 = 2;

/// The takeover factor of a successor on the same host, which normally continues the file.
const SUCCESSOR_FACTOR: u64 = 16;

/// How long a source must be silent before another source on its host counts as its successor.
const SUCCESSION_SILENCE: Duration = Duration::from_secs(1);

/// A frame that may be written later.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) arrival: Instant,
    pub(super) timestamp: RtpTimestamp,
    pub(super) octets: Vec<u8>,
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'f> {
    pub(super) ssrc: Ssrc,
    pub(super) arrival: Instant,
    pub(super) timestamp: RtpTimestamp,
    pub(super) octets: &'f [u8],
}

impl Incoming<'_> {
    fn copy(self) -> Kept {
        let Self { arrival, timestamp, octets, .. } = self;
        Kept { arrival, timestamp, octets: octets.to_vec() }
    }
}

/// A change of the source that is written.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) before: Ssrc,
    pub(super) now: Ssrc,
    /// Whether the file continues; otherwise it is written again from its beginning.
    pub(super) goes_on: bool,
    /// The frames kept of the new source.
    pub(super) frames: Vec<Kept>,
}

/// The action for a frame.
#[derive(Debug)]
pub(super) enum Turn {
    /// Write it.
    Write,
    /// Do not write it now: it is kept for later, or ignored.
    Wait,
    /// End the file; the next one begins with this source.
    Next,
    /// Write the frames of the change, which include this one.
    Change(Change),
}

/// Counters of one source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: u64,
    pub(super) packets_lost: u64,
    pub(super) frames: u64,
    pub(super) frames_dropped: u64,
    pub(super) packets_unusable: u64,
    /// Packets of the same source in earlier files, missing ones included.
    pub(super) packets_before: u64,
}

impl Counts {
    pub(super) fn plus(self, other: Self) -> Self {
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
    pub(super) fn is_noise(self) -> bool {
        self.packets_unusable * 8 > self.packets
    }

    /// Returns the increase of the counters since `base`.
    fn since(self, base: Self) -> Self {
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
    pub(super) fn is_of_another_format(self) -> bool {
        self.packets_unusable * 20 > self.packets
    }

    fn of(source: &SourceStatistics) -> Self {
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
struct Contender {
    ssrc: Ssrc,
    address: Option<SocketAddr>,
    first: Instant,
    last: Instant,
    /// Counters from before the receiver last forgot the source; `counts` has those since.
    earlier: Counts,
    counts: Counts,
    /// Counters from before the file began.
    base: Counts,
    /// Octets of its frames.
    octets: u64,
    frames: Vec<Kept>,
    kept: u64,
    /// Whether all of its frames are kept.
    is_kept: bool,
}

impl Contender {
    fn new(source: &SourceStatistics) -> Self {
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

    fn update(&mut self, source: &SourceStatistics) {
        self.address = source.address.or(self.address);
        self.last = self.last.max(source.last_heard);
        let counts = Counts::of(source);
        if counts.packets < self.counts.packets {
            self.earlier = self.all();
        }
        self.counts = counts;
    }

    /// Returns the counters of all files.
    fn all(&self) -> Counts {
        self.earlier.plus(self.counts)
    }

    /// Returns the counters of this file.
    fn total(&self) -> Counts {
        self.all().since(self.base)
    }

    fn host(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip())
    }

    /// Keeps a frame; `false` if there is no room for it.
    fn keep(&mut self, frame: Incoming<'_>) -> bool {
        let kept = self.kept + frame.octets.len() as u64 + FRAME_COST;
        let fits = self.is_kept && kept <= SETTLED;
        if fits {
            self.kept = kept;
            self.frames.push(frame.copy());
        }
        fits
    }

    fn forget(&mut self) {
        (self.frames, self.kept, self.is_kept) = (Vec::new(), 0, false);
    }
}

/// The sources of a reception.
#[derive(Debug, Default)]
pub(super) struct Contest {
    contenders: Vec<Contender>,
    /// The source being written.
    current: Option<Ssrc>,
    /// Whether the receiver has ended the current source.
    has_ended: bool,
    /// The sources before the current one in the file, and their counters.
    before: Vec<(Ssrc, Counts)>,
    /// Octets of the frames of the sources in `before`.
    octets_before: u64,
    /// Whether each source has a file of its own.
    is_apart: bool,
}

impl Contest {
    /// Gives each source a file of its own: no source continues the file of another.
    pub(super) fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// Returns whether a source other than the one that is written was heard after its last packet,
    /// and all of its frames are kept.
    fn is_of_next(&self, contender: &Contender) -> bool {
        let is_alive = self.current().is_none_or(|current| contender.last > current.last);
        Some(contender.ssrc) != self.current && is_alive && !contender.frames.is_empty()
    }

    /// Returns the counters of the sources whose frames are kept for the next file.
    pub(super) fn counts_of_next(&self) -> Counts {
        let next = self.contenders.iter().filter(|it| self.is_apart && self.is_of_next(it));
        next.fold(Counts::default(), |sum, contender| sum.plus(contender.total()))
    }

    /// Returns the contest for the next file. Sources that were heard after the current source's
    /// last packet keep their frames; all others begin with their next frame.
    pub(super) fn next(self) -> Self {
        let goes_on: Vec<_> = self.contenders.iter().map(|it| self.is_of_next(it)).collect();
        let mut contenders = self.contenders;
        for (contender, goes_on) in contenders.iter_mut().zip(goes_on) {
            if !goes_on {
                contender.base = contender.all();
                (contender.octets, contender.kept, contender.is_kept) = (0, 0, true);
                contender.frames = Vec::new();
            }
        }
        Self { contenders, ..Self::default() }
    }

    /// Begins a file with a kept source, if there is one, and returns its frames. It is the first one
    /// that no other exceeds by the factor of a takeover: senders that followed each other all get
    /// their files, in order.
    pub(super) fn begin(&mut self) -> Vec<Kept> {
        let kept = self.contenders.iter().filter(|contender| !contender.frames.is_empty());
        let most = kept.clone().map(|contender| contender.octets).max().unwrap_or(0);
        let is_enough = |it: &&Contender| it.octets.saturating_mul(TAKEOVER_FACTOR) >= most;
        let first = kept.filter(is_enough).min_by_key(|contender| contender.first);
        let Some(first) = first else { return Vec::new() };
        self.current = Some(first.ssrc);
        first.frames.clone()
    }

    /// Returns whether a source on the same host has begun after the one that is written fell
    /// silent, and has a file of its own.
    pub(super) fn is_followed(&self, now: Instant) -> bool {
        let Some(current) = self.current().filter(|_| self.is_apart) else { return false };
        let is_silent = now.saturating_duration_since(current.last) >= SUCCESSION_SILENCE;
        let is_one = |n: usize| self.contenders[n].octets > 0 && self.is_successor(n, false);
        is_silent && (0..self.contenders.len()).any(is_one)
    }

    /// Updates the counters from the receiver. Sources that it has forgotten are removed here too,
    /// which bounds their number.
    pub(super) fn update(&mut self, statistics: &ReceiveStatistics) {
        let ReceiveStatistics { sources, ended, .. } = statistics;
        self.has_ended = !sources.iter().any(|source| Some(source.ssrc) == self.current);
        for contender in &mut self.contenders {
            let is_its = |source: &&SourceStatistics| source.ssrc == contender.ssrc;
            if let (None, Some(source)) = (sources.iter().find(is_its), ended.iter().rfind(is_its))
            {
                contender.update(source);
            }
        }
        for source in sources {
            let is_over = self.before.iter().any(|(ssrc, _)| *ssrc == source.ssrc);
            match self.find(source.ssrc) {
                Some(n) => self.contenders[n].update(source),
                None if is_over => {}
                None => self.contenders.push(Contender::new(source)),
            }
        }
        let current = self.current;
        self.contenders.retain(|contender| {
            let mut known = sources.iter().chain(ended);
            known.any(|source| source.ssrc == contender.ssrc) || Some(contender.ssrc) == current
        });
    }

    fn find(&self, ssrc: Ssrc) -> Option<usize> {
        self.contenders.iter().position(|contender| contender.ssrc == ssrc)
    }

    fn current(&self) -> Option<&Contender> {
        self.contenders.get(self.find(self.current?)?)
    }

    /// Returns whether the source was present at the last [`update`](Self::update).
    pub(super) fn knows(&self, ssrc: Ssrc) -> bool {
        self.find(ssrc).is_some()
    }

    /// Decides what to do with a frame.
    pub(super) fn take(&mut self, frame: Incoming<'_>) -> Turn {
        let Some(n) = self.find(frame.ssrc) else { return Turn::Wait };
        let contender = &mut self.contenders[n];
        contender.octets += frame.octets.len() as u64;
        contender.last = contender.last.max(frame.arrival);
        let fits = contender.keep(frame);
        match self.current {
            Some(current) if current == frame.ssrc => {
                if !fits || self.octets() > SETTLED {
                    self.contenders[n].forget();
                }
                Turn::Write
            }
            None => {
                self.current = Some(frame.ssrc);
                Turn::Write
            }
            Some(_) if fits => self.try_takeover(n),
            Some(_) if self.is_apart && self.is_later(n) => {
                let last = self.current().map_or(frame.arrival, |current| current.last);
                let next = &mut self.contenders[n];
                if next.kept > NEXT_MAX {
                    // Its file begins later, rather than with a gap.
                    next.forget();
                } else if next.is_kept {
                    next.kept += frame.octets.len() as u64 + FRAME_COST;
                    next.frames.push(frame.copy());
                }
                // A stranger's packets in a short pause must not end the file.
                let silence = frame.arrival.saturating_duration_since(last);
                if silence >= SUCCESSION_SILENCE { Turn::Next } else { Turn::Wait }
            }
            Some(_) if self.is_successor(n, false) && self.contenders[n].is_kept => {
                // It has sent so much that it must be the intended source.
                let mut change = self.go_on(n);
                change.frames.push(frame.copy());
                Turn::Change(change)
            }
            Some(_) => {
                self.contenders[n].forget();
                Turn::Wait
            }
        }
    }

    /// Returns the number of octets in the file.
    fn octets(&self) -> u64 {
        self.octets_before + self.current().map_or(0, |current| current.octets)
    }

    /// Decides whether another source takes over the file from its beginning.
    fn try_takeover(&mut self, n: usize) -> Turn {
        if self.is_apart && self.is_later(n) {
            return Turn::Wait;
        }
        let written = self.octets();
        let rival = &self.contenders[n];
        let factor = if self.is_successor(n, false) { SUCCESSOR_FACTOR } else { TAKEOVER_FACTOR };
        if written > SETTLED || rival.octets <= written.saturating_mul(factor) {
            return Turn::Wait;
        }
        self.before.clear();
        self.octets_before = 0;
        Turn::Change(self.change_to(n, false))
    }

    /// Returns whether the source began after the last packet of the current one.
    fn is_later(&self, n: usize) -> bool {
        let (Some(current), next) = (self.current(), &self.contenders[n]) else { return false };
        next.ssrc != current.ssrc && next.first >= current.last && next.last > current.last
    }

    /// Returns whether the source began after the current one fell silent, on the same host.
    fn is_successor(&self, n: usize, has_left: bool) -> bool {
        let (Some(current), next) = (self.current(), &self.contenders[n]) else { return false };
        // A sender that sends a goodbye and changes its SSRC keeps its address (RFC 3550 section
        // 8.2); a killed and restarted sender has another port.
        let is_there =
            if has_left { next.address == current.address } else { next.host() == current.host() };
        current.address.is_some() && is_there && self.is_later(n)
    }

    /// Returns the successor of the source being written. There is none unless that source is
    /// silent at `now`, has left, or is given up.
    pub(super) fn succession(
        &mut self,
        now: Instant,
        has_left: bool,
        is_given_up: bool,
    ) -> Option<Change> {
        let current = self.current().filter(|_| !self.is_apart)?;
        let is_silent = now.saturating_duration_since(current.last) >= SUCCESSION_SILENCE;
        if !(is_silent || has_left || is_given_up) {
            return None;
        }
        let is_one = |n: &usize| {
            let next = &self.contenders[*n];
            next.octets > 0 && next.is_kept && self.is_successor(*n, has_left)
        };
        let most = |n: &usize| self.contenders[*n].octets;
        let n = (0..self.contenders.len()).filter(is_one).max_by_key(most)?;
        Some(self.go_on(n))
    }

    fn go_on(&mut self, n: usize) -> Change {
        let written = self.octets();
        if let Some(current) = self.current() {
            let ended = (current.ssrc, current.total());
            if self.before.len() >= WRITTEN_MAX {
                // The counters of the removed source are added to those of the next one.
                let (_, first) = self.before.remove(0);
                self.before[0].1 = self.before[0].1.plus(first);
            }
            self.before.push(ended);
        }
        self.octets_before = written;
        self.change_to(n, true)
    }

    fn change_to(&mut self, n: usize, goes_on: bool) -> Change {
        let now = self.contenders[n].ssrc;
        let before = self.current.replace(now).unwrap_or(now);
        // Kept as well: the source may be replaced and later take over again.
        let frames = self.contenders[n].frames.clone();
        if goes_on {
            self.contenders.retain(|contender| contender.ssrc != before);
        }
        Change { before, now, goes_on, frames }
    }

    /// Returns whether the receiver has ended the source being written.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the source being written.
    pub(super) fn written(&self) -> Option<Ssrc> {
        self.current
    }

    /// Returns the time of the last packet from the source being written; before there is one, from
    /// any.
    pub(super) fn last_heard(&self) -> Option<Instant> {
        match self.current {
            Some(_) => self.current().map(|current| current.last),
            None => self.contenders.iter().map(|contender| contender.last).max(),
        }
    }

    /// Returns the sources of the file in order, and their counters.
    pub(super) fn sources(&self) -> impl Iterator<Item = (Ssrc, Counts)> {
        let current = self.current().map(|current| (current.ssrc, current.total()));
        self.before.iter().copied().chain(current)
    }
}

#[cfg(test)]
mod tests {
    use rushes::proto::ExtendedSequence;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Sources that send one after the other or together.
    struct World {
        now: Instant,
        contest: Contest,
        statistics: ReceiveStatistics,
        /// The source and the number of octets of each frame in the file.
        file: Vec<(u32, usize)>,
        /// How often the contest ended the file.
        files_ended: usize,
    }

    impl World {
        fn new() -> Self {
            let now = Instant::now();
            let (contest, statistics) = (Contest::default(), ReceiveStatistics::default());
            Self { now, contest, statistics, file: Vec::new(), files_ended: 0 }
        }

        /// Takes a frame of source `ssrc` at host 192.0.2.`host`, a millisecond after the last one.
        fn frame(&mut self, ssrc: u32, host: u8, len: usize) {
            self.now += MILLISECOND;
            let sources = &mut self.statistics.sources;
            let n = sources.iter().position(|source| source.ssrc == Ssrc(ssrc));
            let n = n.unwrap_or_else(|| {
                sources.push(SourceStatistics {
                    ssrc: Ssrc(ssrc),
                    address: Some(SocketAddr::from(([192, 0, 2, host], ssrc as u16))),
                    packets: 0,
                    packets_lost: 0,
                    frames: 0,
                    frames_dropped: 0,
                    packets_unusable: 0,
                    received: 0,
                    expected: 0,
                    first_heard: self.now,
                    last_heard: self.now,
                    cumulative_lost: 0,
                    highest: ExtendedSequence(0),
                    jitter: 0,
                    jitter_time: Duration::ZERO,
                });
                sources.len() - 1
            });
            sources[n].packets += 1;
            sources[n].frames += 1;
            sources[n].last_heard = self.now;
            self.contest.update(&self.statistics);
            let octets = vec![7; len];
            let frame = Incoming {
                ssrc: Ssrc(ssrc),
                arrival: self.now,
                timestamp: RtpTimestamp(0),
                octets: &octets,
            };
            match self.contest.take(frame) {
                Turn::Write => self.file.push((ssrc, len)),
                Turn::Wait => {}
                Turn::Next => self.files_ended += 1,
                Turn::Change(change) => self.change(&change),
            }
        }

        /// Ends the file, and begins the next; returns the octets that are kept for it.
        fn next_file(&mut self) -> usize {
            self.contest = std::mem::take(&mut self.contest).next().apart();
            self.file.clear();
            self.contest.update(&self.statistics);
            self.contest.begin().iter().map(|kept| kept.octets.len()).sum()
        }

        fn change(&mut self, change: &Change) {
            if !change.goes_on {
                self.file.clear();
            }
            self.file.extend(change.frames.iter().map(|kept| (change.now.0, kept.octets.len())));
        }

        fn succession(&mut self, has_left: bool, is_given_up: bool) -> bool {
            let change = self.contest.succession(self.now, has_left, is_given_up);
            change.is_some_and(|change| {
                self.change(&change);
                true
            })
        }

        /// Returns the number of octets of source `ssrc` in the file.
        fn octets(&self, ssrc: u32) -> usize {
            self.file.iter().filter(|(of, _)| *of == ssrc).map(|(_, len)| len).sum()
        }
    }

    #[test]
    fn whoever_sends_more_is_written_from_its_beginning_whoever_was_first() {
        for is_first in [true, false] {
            let mut world = World::new();
            for n in 0..100 {
                if is_first || n > 0 {
                    world.frame(1, 1, 3);
                }
                world.frame(2, 2, 1000);
            }
            assert_eq!((world.octets(1), world.octets(2)), (0, 100_000));
        }
    }

    #[test]
    fn two_that_send_alike_do_not_take_turns() {
        let mut world = World::new();
        for n in 0..1000 {
            world.frame(1, 1, 100 + n % 50);
            world.frame(2, 2, 150 - n % 50);
        }
        assert_eq!((world.file.len(), world.octets(2)), (1000, 0));
    }

    #[test]
    fn a_burst_is_made_up_for() {
        let mut world = World::new();
        world.frame(1, 1, 1000);
        world.frame(2, 2, 50_000);
        assert_eq!(world.octets(1), 0);
        for _ in 0..200 {
            world.frame(1, 1, 1000);
        }
        assert_eq!((world.octets(1), world.octets(2)), (201_000, 0), "nothing of it is lost");
    }

    #[test]
    fn what_is_long_enough_is_safe() {
        let mut world = World::new();
        for _ in 0..6 {
            world.frame(1, 1, 1 << 20);
        }
        for _ in 0..30 {
            world.frame(2, 2, 1 << 20);
        }
        assert_eq!((world.octets(1), world.octets(2)), (6 << 20, 0));
        assert!(world.contest.contenders.iter().all(|contender| contender.frames.is_empty()));
    }

    #[test]
    fn the_successor_is_of_the_same_host_and_begins_after_the_last_packet() {
        let mut world = World::new();
        world.frame(9, 1, 100);
        for _ in 0..10 {
            world.frame(1, 1, 1000);
            world.frame(9, 1, 10);
        }
        world.frame(1, 1, 1000);
        for _ in 0..10 {
            world.frame(2, 1, 1000);
            world.frame(3, 2, 2000);
            world.frame(9, 1, 10);
        }
        assert!(!world.succession(false, false), "it may only be late");
        world.now += SUCCESSION_SILENCE;
        assert!(world.succession(false, false));
        assert_eq!((world.octets(1), world.octets(2)), (11_000, 10_000));
        // Further frames of the first source are not part of the file.
        world.frame(1, 1, 1000);
        world.frame(2, 1, 1000);
        let sources: Vec<_> = world.contest.sources().map(|(ssrc, _)| ssrc.0).collect();
        assert_eq!((world.octets(1), world.octets(2), sources), (11_000, 11_000, vec![1, 2]));
    }

    #[test]
    fn after_a_goodbye_only_the_same_address_goes_on() {
        let mut world = World::new();
        world.frame(1, 1, 1000);
        for _ in 0..3 {
            world.frame(2, 1, 100);
        }
        assert!(!world.succession(true, true), "another port");
        let address = world.statistics.sources[0].address;
        world.statistics.sources[1].address = address;
        world.contest.update(&world.statistics);
        assert!(world.succession(true, false));
    }

    #[test]
    fn a_successor_that_cannot_wait_goes_on_at_once() {
        let mut world = World::new();
        for _ in 0..5 {
            world.frame(1, 1, 1 << 20);
        }
        for _ in 0..6 {
            world.frame(2, 1, 1 << 20);
        }
        assert_eq!((world.octets(1), world.octets(2)), (5 << 20, 6 << 20));
    }

    #[test]
    fn with_a_file_for_each_a_later_source_begins_the_next_file_with_its_first_frame() {
        for host in [1, 2] {
            let mut world = World::new();
            assert_eq!(world.next_file(), 0);
            world.frame(1, 1, 100);
            for _ in 0..100 {
                world.frame(2, host, 1000);
            }
            assert_eq!((world.octets(1), world.octets(2)), (100, 0), "the first file is kept");
            let later = world.now + SUCCESSION_SILENCE;
            assert!(world.contest.succession(later, false, true).is_none());
            assert_eq!(world.contest.is_followed(later), host == 1);
            assert_eq!(world.next_file(), 100_000);
            world.frame(2, host, 1000);
            assert_eq!(world.octets(2), 1000);
            let counts: Vec<_> =
                world.contest.sources().map(|(_, counts)| counts.packets).collect();
            assert_eq!(counts, [101]);
        }
    }

    #[test]
    fn senders_that_followed_each_other_all_have_a_file() {
        let mut world = World::new();
        world.next_file();
        for ssrc in [1, 2, 3] {
            world.frame(ssrc, 1, 100);
            world.frame(ssrc, 1, 100);
        }
        for ssrc in [2, 3] {
            assert_eq!(world.next_file(), 200);
            assert_eq!(world.contest.written(), Some(Ssrc(ssrc)));
        }
    }

    #[test]
    fn a_stranger_in_a_short_pause_does_not_end_the_file() {
        let mut world = World::new();
        world.next_file();
        for _ in 0..2 {
            world.frame(1, 1, 1 << 20);
            for _ in 0..20 {
                world.frame(2, 2, 1 << 20);
            }
        }
        assert_eq!((world.files_ended, world.octets(1)), (0, 2 << 20));
        world.now += SUCCESSION_SILENCE;
        (0..6).for_each(|_| world.frame(3, 3, 1 << 20));
        assert!(world.files_ended > 0);
    }

    #[test]
    fn a_source_that_goes_on_after_its_file_is_counted_from_there() {
        let mut world = World::new();
        world.next_file();
        for _ in 0..5 {
            world.frame(1, 1, 10);
        }
        assert_eq!(world.next_file(), 0);
        assert!(world.contest.written().is_none());
        for _ in 0..3 {
            world.frame(1, 1, 10);
        }
        assert_eq!(world.octets(1), 30);
        let (_, counts) = world.contest.sources().next().unwrap();
        assert_eq!((counts.packets, counts.packets_before), (3, 5));
    }

    #[test]
    fn a_source_that_is_silent_when_a_file_ends_does_not_begin_the_next() {
        let mut world = World::new();
        world.next_file();
        world.frame(1, 1, 100);
        world.frame(2, 2, 50);
        world.frame(1, 1, 100);
        assert_eq!(world.next_file(), 0);
    }

    #[test]
    fn what_is_kept_for_the_next_file_is_bounded() {
        let mut world = World::new();
        world.next_file();
        world.frame(1, 1, 100);
        for _ in 0..200 {
            world.frame(2, 2, 1 << 20);
        }
        assert!(world.next_file() as u64 <= NEXT_MAX + (1 << 21));
    }
}
