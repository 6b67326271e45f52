//! The state of the other participants.

use std::time::{Duration, Instant};

use super::clock::ClockMapping;
use super::config::Reception;
use super::reported_path::ReportedPath;
use super::round_trip::RoundTripTime;
use crate::rtcp::{ReportBlock, SenderInfo};
use crate::ssrc::Ssrc;
use crate::time::ClockRate;

/// The priority of a participant in a full table.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Priority {
    /// The participant was heard, nothing more.
    #[default]
    Heard,
    /// The participant reports on our media.
    Reports,
    /// We receive the participant's media.
    SendsMedia,
}

/// Another participant.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    pub(super) ssrc: Ssrc,
    pub(super) priority: Priority,
    /// When the participant sent BYE; its state remains readable.
    left: Option<Instant>,
    pub(super) heard: Instant,
    pub(super) cname: Vec<u8>,
    /// Its last sender report, and when that arrived.
    pub(super) sender: Option<(SenderInfo, Instant)>,
    /// Packets expected and received at our last report (RFC 3550 appendix A.3).
    prior: (u64, u64),
    pub(super) round_trip: Option<RoundTripTime>,
    /// Its last report about us.
    pub(super) reported: Option<ReportBlock>,
    /// The path of our media to it.
    pub(super) path: ReportedPath,
    /// Its last reference time, and when that arrived (RFC 3611 section 4.4).
    pub(super) reference: Option<(u32, Instant)>,
    /// The number of its last full intra request to us, and of ours to it.
    pub(super) intra_seen: Option<u8>,
    pub(super) intra_sent: u8,
}

impl Remote {
    fn new(ssrc: Ssrc, now: Instant) -> Self {
        Self {
            ssrc,
            priority: Priority::Heard,
            left: None,
            heard: now,
            cname: Vec::new(),
            sender: None,
            prior: (0, 0),
            round_trip: None,
            reported: None,
            path: ReportedPath::default(),
            reference: None,
            intra_seen: None,
            intra_sent: 0,
        }
    }

    /// Returns the report block on its media at `now`; the counts of the next block begin here.
    #[allow(clippy::cast_possible_wrap, reason = "packet counts stay far below 2^63")]
    pub(super) fn report(&mut self, now: Instant, reception: &Reception) -> ReportBlock {
        let (expected, received) = (reception.expected, reception.received);
        // The counts of a source that restarted begin at zero.
        let prior = if expected < self.prior.0 { (0, 0) } else { self.prior };
        let interval = expected - prior.0;
        let lost = interval as i64 - received.saturating_sub(prior.1) as i64;
        self.prior = (expected, received);
        let cumulative = expected as i64 - received as i64;
        let (last_sender_report, delay) = match self.sender {
            Some((info, arrival)) => (info.ntp.middle(), compact(now, arrival)),
            None => (0, 0),
        };
        ReportBlock {
            ssrc: reception.ssrc,
            fraction_lost: fraction(lost, interval),
            cumulative_lost: cumulative.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
            // A receiver's extended sequence numbers begin at 2¹⁶, those of the RFC at 0.
            highest: (reception.highest.0 as u32).wrapping_sub(1 << 16),
            jitter: reception.jitter,
            last_sender_report,
            delay,
        }
    }

    pub(super) fn statistics(&self, clock_rate: ClockRate) -> RemoteStatistics {
        RemoteStatistics {
            ssrc: self.ssrc,
            left: self.left.is_some(),
            cname: String::from_utf8_lossy(&self.cname).into_owned(),
            sender: self.sender.map(|(info, _)| info),
            clock: self.sender.filter(|(info, _)| info.ntp.0 != 0).map(|(info, _)| ClockMapping {
                ntp: info.ntp,
                rtp: info.rtp,
                clock_rate,
            }),
            reported: self.reported,
            round_trip: self.round_trip.map(|time| time.last),
        }
    }

    /// Adds a measurement of the round-trip time, if there is one.
    pub(super) fn note_round_trip(&mut self, time: Option<Duration>) {
        let Some(time) = time else { return };
        let with = |known: RoundTripTime| known.with(time);
        self.round_trip = Some(self.round_trip.map_or_else(|| RoundTripTime::new(time), with));
    }
}

/// Returns the fraction `lost` / `expected` in 1/256; 0 if more packets arrived than were expected.
fn fraction(lost: i64, expected: u64) -> u8 {
    if lost <= 0 || expected == 0 {
        return 0;
    }
    // A loss of all packets is 255/256, the maximum of the field.
    (lost.unsigned_abs().saturating_mul(256) / expected).min(255) as u8
}

/// Returns the time from `then` to `now` in 1/65 536 s.
pub(super) fn compact(now: Instant, then: Instant) -> u32 {
    let time = now.saturating_duration_since(then);
    ((time.as_nanos() << 16) / 1_000_000_000) as u32
}

/// The other participants, up to a limit.
#[derive(Clone, Debug)]
pub(super) struct Remotes {
    list: Vec<Remote>,
    max: usize,
}

impl Remotes {
    pub(super) fn new(max: usize) -> Self {
        Self { list: Vec::new(), max: max.max(1) }
    }

    /// Returns the participant `ssrc`, heard at `now`; `None` if the table is full.
    ///
    /// In a full table, a new participant replaces the one that was silent longest among those with
    /// the lowest priority, unless that is higher than `priority`. One that reports on our media is
    /// replaced by no other that does: it leaves, or is silent until it times out.
    pub(super) fn note_heard(
        &mut self,
        now: Instant,
        ssrc: Ssrc,
        priority: Priority,
    ) -> Option<&mut Remote> {
        let n = match self.list.iter().position(|remote| remote.ssrc == ssrc) {
            Some(n) => n,
            None => self.add(now, ssrc, priority)?,
        };
        let remote = &mut self.list[n];
        remote.heard = remote.heard.max(now);
        remote.left = remote.left.filter(|left| *left >= now);
        remote.priority = remote.priority.max(priority);
        Some(remote)
    }

    fn add(&mut self, now: Instant, ssrc: Ssrc, priority: Priority) -> Option<usize> {
        if self.list.len() >= self.max {
            let least = |n: &usize| (self.list[*n].priority, self.list[*n].heard);
            let n = (0..self.list.len()).min_by_key(least)?;
            let least = self.list[n].priority;
            if least > priority || (least == priority && least == Priority::Reports) {
                return None;
            }
            self.list.swap_remove(n);
        }
        self.list.push(Remote::new(ssrc, now));
        Some(self.list.len() - 1)
    }

    /// Returns whether packets of a source arrived since its last report block.
    pub(super) fn has_new_packets(&self, reception: &Reception) -> bool {
        let known = self.list.iter().find(|remote| remote.ssrc == reception.ssrc);
        known.is_none_or(|remote| remote.prior.1 != reception.received)
    }

    /// Notes that `ssrc` sent BYE; returns `false` if it is unknown or has already left.
    pub(super) fn leave(&mut self, now: Instant, ssrc: Ssrc) -> bool {
        let Some(remote) = self.find_mut(ssrc) else { return false };
        remote.priority = Priority::Heard;
        remote.path = ReportedPath::default();
        remote.left.replace(now).is_none()
    }

    /// Returns the participants that have not left.
    pub(super) fn present(&self) -> impl Iterator<Item = &Remote> {
        self.list.iter().filter(|remote| remote.left.is_none())
    }

    pub(super) fn find_mut(&mut self, ssrc: Ssrc) -> Option<&mut Remote> {
        self.list.iter_mut().find(|remote| remote.ssrc == ssrc)
    }

    pub(super) fn remove(&mut self, ssrc: Ssrc) -> bool {
        let before = self.list.len();
        self.list.retain(|remote| remote.ssrc != ssrc);
        self.list.len() < before
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Remote> {
        self.list.iter_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Remote> {
        self.list.iter()
    }
}

/// The state of another participant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RemoteStatistics {
    /// Its synchronisation source.
    pub ssrc: Ssrc,
    /// Whether it sent BYE.
    pub left: bool,
    /// Its canonical name; empty if unknown.
    pub cname: String,
    /// Its last sender report, if any.
    pub sender: Option<SenderInfo>,
    /// Its clocks at that report; `None` without a report or if the source has no wall clock.
    pub clock: Option<ClockMapping>,
    /// Its last report about our media, if any.
    pub reported: Option<ReportBlock>,
    /// The last round-trip time to it, if known.
    pub round_trip: Option<Duration>,
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;
    use crate::seq::ExtendedSequence;

    fn reception(expected: u64, received: u64) -> Reception {
        let highest = ExtendedSequence(0x1_0000 + expected);
        let last_heard = Instant::now();
        Reception { ssrc: Ssrc(1), expected, received, highest, jitter: 0, last_heard }
    }

    #[test]
    fn the_fraction_is_of_the_interval_and_the_rest_of_all_time() {
        let now = Instant::now();
        let mut remote = Remote::new(Ssrc(1), now);
        let mut report = |expected, received| {
            let block = remote.report(now, &reception(expected, received));
            (block.fraction_lost, block.cumulative_lost)
        };
        assert_eq!(report(100, 90), (25, 10));
        assert_eq!(report(200, 190), (0, 10));
        // Duplicates: more arrived than were sent.
        assert_eq!(report(300, 310), (0, -10));
        assert_eq!(report(400, 310), (255, 90));
        // Nothing arrived and nothing was expected.
        assert_eq!(report(400, 310), (0, 90));
        // The source restarted.
        assert_eq!(report(2, 1), (128, 1));
    }

    #[test]
    fn the_highest_number_counts_wraps_from_zero() {
        let now = Instant::now();
        let mut remote = Remote::new(Ssrc(1), now);
        let report = remote.report(now, &reception(0x1_0005, 1));
        assert_eq!(report.highest, 0x1_0005);
    }

    fn known(remotes: &Remotes, ssrc: u32) -> bool {
        remotes.iter().any(|remote| remote.ssrc == Ssrc(ssrc))
    }

    #[test]
    fn a_flood_of_strangers_pushes_out_strangers_only() {
        let now = Instant::now();
        let mut remotes = Remotes::new(8);
        remotes.note_heard(now, Ssrc(1), Priority::SendsMedia);
        remotes.note_heard(now, Ssrc(2), Priority::Reports);
        for stranger in 100..10_000 {
            remotes.note_heard(now, Ssrc(stranger), Priority::Heard);
        }
        assert_eq!(remotes.iter().count(), 8);
        assert!(known(&remotes, 1) && known(&remotes, 2));
        // Nor do strangers that claim to report push out one that does.
        for stranger in 10_000..20_000 {
            remotes.note_heard(now, Ssrc(stranger), Priority::Reports);
        }
        assert!(known(&remotes, 1) && known(&remotes, 2));
        for real in 3..20 {
            remotes.note_heard(now, Ssrc(real), Priority::SendsMedia);
        }
        assert!(!known(&remotes, 2));
        assert!(remotes.note_heard(now, Ssrc(99), Priority::Heard).is_none());
    }
}
