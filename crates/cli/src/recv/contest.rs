//! Selection of the source that a reception writes.
//!
//! Any host can send to an open port, and the first source is not always the intended one. So
//! frames of other sources are kept for a while. A source that sends twice as much as the one being
//! written replaces it, and the file starts again with its first frame. A sender that is killed and
//! restarted is a new source of the same host: it continues the file where the first one ended.

mod contender;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use rushes::proto::stream::{ReceiveStatistics, SourceStatistics};
use rushes::{RtpTimestamp, Ssrc};

use self::contender::Contender;
pub(super) use self::contender::Counts;

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
