//! The members of the session (RFC 3550 sections 6.2.1, 6.3.3 to 6.3.5).
//!
//! There are two stores of fixed size. The *table* holds validated members. An SSRC heard for the
//! first time is in *probation*: it is not counted, and any new SSRC may replace it, so a flood of
//! random SSRCs has no other effect. A member stays in the table until it times out or sends BYE;
//! while the table is full, further members are not counted.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::random::Keyed;
use crate::ssrc::Ssrc;

/// Maximum number of SSRCs in probation.
const PROBATION: usize = 64;

/// Time for which packets of a member that sent BYE are ignored as stragglers (RFC 3550 section
/// 6.2.1).
const STRAGGLERS: Duration = Duration::from_secs(5);

/// The evidence that a packet gives of its source (RFC 3550 section 6.2.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Evidence {
    /// An RTCP packet; the second one validates its source.
    Report,
    /// An SDES packet with a CNAME, which validates its source at once.
    Cname,
    /// Media of a source that its sequence numbers have validated.
    Media,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    heard: Instant,
    /// When its last RTP packet arrived, while it is a sender.
    sent: Option<Instant>,
    bye: Option<Instant>,
}

/// The other members of the session; this participant is not among them.
#[derive(Clone, Debug)]
pub(super) struct Members {
    max: usize,
    table: HashMap<Ssrc, Member, Keyed>,
    /// The number of senders among the members in the table, and of members that have sent BYE.
    senders: usize,
    byes: usize,
    probation: Vec<Option<(Ssrc, Instant)>>,
    left: VecDeque<Ssrc>,
}

impl Members {
    pub(super) fn new(max: usize, key: u64) -> Self {
        Self {
            max,
            table: HashMap::with_hasher(Keyed(key)),
            senders: 0,
            byes: 0,
            probation: Vec::new(),
            left: VecDeque::new(),
        }
    }

    /// Returns the number of members and the number of senders among them.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.table.len() - self.byes, self.senders)
    }

    /// Returns whether `ssrc` is in the table and has not sent BYE.
    pub(super) fn contains(&self, ssrc: Ssrc) -> bool {
        self.table.get(&ssrc).is_some_and(|member| member.bye.is_none())
    }

    /// Handles a packet of `ssrc`.
    pub(super) fn note_heard(&mut self, now: Instant, ssrc: Ssrc, evidence: Evidence) {
        let sent = (evidence == Evidence::Media).then_some(now);
        if let Some(member) = self.table.get_mut(&ssrc) {
            if let Some(bye) = member.bye {
                if now.saturating_duration_since(bye) < STRAGGLERS {
                    return;
                }
                member.bye = None;
                self.byes -= 1;
            }
            member.heard = now;
            self.senders += usize::from(sent.is_some() && member.sent.is_none());
            member.sent = sent.or(member.sent);
            return;
        }
        if evidence == Evidence::Report && !self.is_in_probation(now, ssrc) {
            return;
        }
        if self.table.len() >= self.max && self.byes > 0 {
            self.drop_leaver();
        }
        if self.table.len() < self.max {
            self.table.insert(ssrc, Member { heard: now, sent, bye: None });
            self.senders += usize::from(sent.is_some());
        }
    }

    /// Handles a BYE of `ssrc`: it is no longer counted, and is removed a little later.
    pub(super) fn bye(&mut self, now: Instant, ssrc: Ssrc) {
        let Some(member) = self.table.get_mut(&ssrc) else { return };
        if member.bye.is_none() {
            member.bye = Some(now);
            self.byes += 1;
            self.senders -= usize::from(member.sent.take().is_some());
        }
    }

    /// Removes `ssrc`, which is now our own.
    pub(super) fn remove(&mut self, ssrc: Ssrc) {
        if let Some(member) = self.table.remove(&ssrc) {
            self.byes -= usize::from(member.bye.is_some());
            self.senders -= usize::from(member.sent.is_some());
        }
    }

    /// Removes members that were silent for `member_timeout`; members without RTP for
    /// `sender_timeout` are no longer senders. Returns whether any member timed out.
    pub(super) fn check(
        &mut self,
        now: Instant,
        member_timeout: Duration,
        sender_timeout: Duration,
    ) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        let mut left = false;
        (self.senders, self.byes) = (0, 0);
        self.table.retain(|ssrc, member| {
            if let Some(bye) = member.bye {
                let stays = since(bye) < STRAGGLERS;
                self.byes += usize::from(stays);
                return stays;
            }
            if since(member.heard) > member_timeout {
                left = true;
                if self.left.len() < self.max {
                    self.left.push_back(*ssrc);
                }
                return false;
            }
            member.sent = member.sent.filter(|sent| since(*sent) <= sender_timeout);
            self.senders += usize::from(member.sent.is_some());
            true
        });
        left
    }

    /// Returns the next member that timed out.
    pub(super) fn poll_left(&mut self) -> Option<Ssrc> {
        self.left.pop_front()
    }

    /// Returns whether `ssrc` is in probation; otherwise adds it.
    fn is_in_probation(&mut self, now: Instant, ssrc: Ssrc) -> bool {
        self.probation.resize(PROBATION, None);
        let place = self.table.hasher().hash(ssrc.0) as usize % PROBATION;
        let Some(place) = self.probation.get_mut(place) else { return false };
        let before = place.replace((ssrc, now));
        before.is_some_and(|(other, _)| other == ssrc)
    }

    fn drop_leaver(&mut self) {
        let mut leavers = self.table.iter().filter(|(_, member)| member.bye.is_some());
        if let Some(leaver) = leavers.next().map(|(ssrc, _)| *ssrc) {
            self.table.remove(&leaver);
            self.byes -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: Duration = Duration::from_secs(25);
    const SENDER: Duration = Duration::from_secs(10);

    #[allow(clippy::disallowed_methods, reason = "a test's epoch")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn one_report_is_not_enough_but_two_a_cname_or_media_are() {
        let (now, mut members) = (start(), Members::new(8, 1));
        members.note_heard(now, Ssrc(1), Evidence::Report);
        assert_eq!(members.count(), (0, 0));
        members.note_heard(now, Ssrc(1), Evidence::Report);
        assert_eq!(members.count(), (1, 0));
        members.note_heard(now, Ssrc(2), Evidence::Cname);
        members.note_heard(now, Ssrc(3), Evidence::Media);
        assert_eq!(members.count(), (3, 1));
        assert!(members.contains(Ssrc(1)) && !members.contains(Ssrc(4)));
    }

    #[test]
    fn a_flood_of_random_sources_displaces_no_member_and_hardly_counts() {
        let (now, mut members) = (start(), Members::new(8, 1));
        members.note_heard(now, Ssrc(1), Evidence::Cname);
        (1000..500_000).for_each(|ssrc| members.note_heard(now, Ssrc(ssrc), Evidence::Report));
        assert_eq!(members.count(), (1, 0));
        (1000..500_000).for_each(|ssrc| members.note_heard(now, Ssrc(ssrc), Evidence::Cname));
        assert!(members.contains(Ssrc(1)));
        assert_eq!(members.table.len(), 8);
        assert_eq!(members.count().0, 8);
    }

    #[test]
    fn a_member_that_left_is_not_counted_and_stragglers_do_not_restore_it() {
        let (now, mut members) = (start(), Members::new(8, 1));
        members.note_heard(now, Ssrc(1), Evidence::Media);
        members.bye(now, Ssrc(1));
        members.bye(now, Ssrc(1));
        members.note_heard(now + STRAGGLERS / 2, Ssrc(1), Evidence::Media);
        assert_eq!(members.count(), (0, 0));
        assert!(!members.check(now + STRAGGLERS, MEMBER, SENDER));
        assert!(members.table.is_empty());
        assert_eq!(members.poll_left(), None);
    }

    #[test]
    fn a_member_that_returns_after_its_bye_is_counted_again() {
        let (now, mut members) = (start(), Members::new(8, 1));
        members.note_heard(now, Ssrc(1), Evidence::Media);
        members.bye(now, Ssrc(1));
        members.note_heard(now + STRAGGLERS, Ssrc(1), Evidence::Media);
        assert_eq!(members.count(), (1, 1));
    }

    #[test]
    fn the_silent_stop_being_senders_and_then_members() {
        let (now, mut members) = (start(), Members::new(8, 1));
        members.note_heard(now, Ssrc(1), Evidence::Media);
        assert!(!members.check(now + SENDER, MEMBER, SENDER));
        assert_eq!(members.count(), (1, 1));
        assert!(!members.check(now + SENDER * 2, MEMBER, SENDER));
        assert_eq!(members.count(), (1, 0));
        assert!(members.check(now + MEMBER * 2, MEMBER, SENDER));
        assert_eq!(members.count(), (0, 0));
        assert_eq!((members.poll_left(), members.poll_left()), (Some(Ssrc(1)), None));
    }

    #[test]
    fn members_beyond_the_table_are_added_when_there_is_room() {
        let (now, mut members) = (start(), Members::new(2, 1));
        for ssrc in 1..=10 {
            members.note_heard(now, Ssrc(ssrc), Evidence::Media);
        }
        assert_eq!(members.count(), (2, 2));
        members.bye(now, Ssrc(1));
        members.bye(now, Ssrc(10));
        assert_eq!(members.count(), (1, 1));
        members.note_heard(now, Ssrc(9), Evidence::Cname);
        assert!(members.contains(Ssrc(9)) && !members.contains(Ssrc(1)));
        assert_eq!(members.count(), (2, 1));
    }

    #[test]
    fn an_ssrc_that_becomes_ours_is_forgotten() {
        let (now, mut members) = (start(), Members::new(2, 1));
        (1..=3).for_each(|ssrc| members.note_heard(now, Ssrc(ssrc), Evidence::Media));
        (1..=3).for_each(|ssrc| members.remove(Ssrc(ssrc)));
        assert_eq!(members.count(), (0, 0));
    }
}
