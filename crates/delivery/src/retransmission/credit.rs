//! How many packets the members of a session may request.

use std::iter::once;

/// The part of the packets that may be requested: one in so many.
pub(super) const PART: u64 = 4;

/// Least credit of several members in packets, so that one that requests everything leaves at least one.
const SHARED_MIN: u64 = 16;

/// A client that may request packets: the only one of its session, or one of a group.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MemberId(u32);

/// What a member has used of the credit.
#[derive(Debug)]
struct Share {
    member: MemberId,
    /// What it has used and was not restored since, times `PART`.
    used: u64,
    /// Packets that it may request at no cost until the next frame.
    free: u64,
}

/// A quarter of the packets that were sent, which the members share.
///
/// A member may use the credit as long as it has used less than is left. So one that requests everything leaves as much
/// as it uses, two leave a third, and so on. Each frame restores a quarter of its packets: what all members have used
/// of it is reduced by as much, in equal parts. No more than a quarter of all packets is ever sent again.
#[derive(Debug, Default)]
pub(super) struct Credit {
    /// What is left, times `PART`.
    left: u64,
    shares: Vec<Share>,
    /// What remains because it cannot be divided among the members.
    rest: u64,
    /// The number of the next member.
    next: u32,
}

impl Credit {
    /// Adds a member, which has used as much as is left: to leave and to join again brings nothing.
    pub(super) fn join(&mut self) -> MemberId {
        let member = MemberId(self.next);
        self.next = self.next.wrapping_add(1);
        let used = if self.shares.is_empty() { 0 } else { self.left };
        self.shares.push(Share { member, used, free: 0 });
        member
    }

    /// Removes a member.
    pub(super) fn leave(&mut self, member: MemberId) {
        self.shares.retain(|share| share.member != member);
    }

    /// Restores a quarter of the packets of a frame that is sent.
    pub(super) fn begin(&mut self, packets: u64) {
        let limit = self.limit(packets);
        let used: u64 = self.shares.iter().map(|share| share.used).sum();
        // The part of the limit that has never been filled, or that members have left behind.
        let mut missing = limit.saturating_sub(self.left.saturating_add(used));
        self.left = (self.left + packets).min(limit);
        let mut restored = packets + self.rest;
        loop {
            let used = self.shares.iter_mut().map(|share| &mut share.used);
            let mut used: Vec<_> = once(&mut missing).chain(used).filter(|it| **it > 0).collect();
            let part = restored.checked_div(used.len() as u64);
            let Some(part @ 1..) = part else {
                self.rest = part.map_or(0, |_| restored);
                break;
            };
            for used in &mut used {
                let part = part.min(**used);
                **used -= part;
                restored -= part;
            }
        }
        for share in &mut self.shares {
            (share.used, share.free) = (share.used.min(limit), packets);
        }
    }

    /// Returns where the share of a member is, until a member joins or leaves.
    pub(super) fn share_of(&self, member: MemberId) -> Option<usize> {
        self.shares.iter().position(|share| share.member == member)
    }

    /// Uses the credit for a packet; returns whether the member with this share may request it.
    pub(super) fn spend(&mut self, share: usize) -> bool {
        let is_alone = self.shares.len() == 1;
        let Some(share) = self.shares.get_mut(share) else { return false };
        if self.left < PART || !is_alone && share.used >= self.left {
            return false;
        }
        self.left -= PART;
        share.used += PART;
        true
    }

    /// Returns whether the member with this share may request a packet that another one has just requested. That costs
    /// nothing, and is limited because each request is looked at.
    pub(super) fn join_request(&mut self, share: usize) -> bool {
        let Some(share) = self.shares.get_mut(share).filter(|share| share.free > 0) else {
            return false;
        };
        share.free -= 1;
        true
    }

    /// Returns the most credit at once, for frames of so many packets: those of one frame for one member, and of two
    /// for several, of which one leaves one to the others.
    fn limit(&self, packets: u64) -> u64 {
        let packets = if self.shares.len() > 1 { (packets * 2).max(SHARED_MIN) } else { packets };
        packets * PART
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u64 {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Credit {
        fn spend_by(&mut self, member: MemberId) -> bool {
            self.share_of(member).is_some_and(|share| self.spend(share))
        }

        fn join_request_by(&mut self, member: MemberId) -> bool {
            self.share_of(member).is_some_and(|share| self.join_request(share))
        }
    }

    /// Lets a member request everything; returns how much it got.
    fn flood(credit: &mut Credit, member: MemberId) -> u64 {
        std::iter::from_fn(|| credit.spend_by(member).then_some(())).count() as u64
    }

    fn members<const N: usize>(credit: &mut Credit) -> [MemberId; N] {
        std::array::from_fn(|_| credit.join())
    }

    #[test]
    fn one_member_may_request_a_quarter_and_one_frame_at_once() {
        let mut credit = Credit::default();
        let member = credit.join();
        credit.begin(100);
        assert_eq!(flood(&mut credit, member), 25);
        for _ in 0..9 {
            credit.begin(100);
        }
        assert_eq!(flood(&mut credit, member), 100);
    }

    #[test]
    fn members_that_request_everything_leave_a_share_to_another() {
        for greedy in [1, 2, 3, 7] {
            let mut credit = Credit::default();
            let others: Vec<_> = (0..greedy).map(|_| credit.join()).collect();
            let honest = credit.join();
            for _ in 0..100 {
                credit.begin(100);
                for other in &others {
                    flood(&mut credit, *other);
                }
            }
            // Of two frames; the last packets go to the member that requests last.
            let left = credit.left() / PART;
            assert!(left >= 200 / (greedy + 1) / 2, "{greedy}: {left}");
            let burst = flood(&mut credit, honest);
            assert!(burst >= left / 2, "{greedy}: {burst} of {left} at once");
            // A part of each frame is restored to it.
            let mut total = 0;
            for _ in 0..100 {
                credit.begin(100);
                for other in &others {
                    flood(&mut credit, *other);
                }
                total += flood(&mut credit, honest);
            }
            let fair = 2_500 / (greedy + 1);
            assert!(total + 2 >= fair, "{greedy}: {total} of {fair}");
        }
    }

    #[test]
    fn what_others_do_not_request_is_left_to_one() {
        let mut credit = Credit::default();
        let [member, ..] = members::<50>(&mut credit);
        let mut total = 0;
        for _ in 0..100 {
            credit.begin(100);
            total += flood(&mut credit, member);
        }
        assert!((2_300..=2_500).contains(&total), "{total}");
    }

    #[test]
    fn to_join_again_brings_nothing() {
        let mut credit = Credit::default();
        let [honest, mut other] = members(&mut credit);
        for _ in 0..50 {
            credit.begin(100);
            for _ in 0..20 {
                credit.leave(other);
                other = credit.join();
                flood(&mut credit, other);
            }
        }
        let left = credit.left() / PART;
        assert!(left >= 100, "{left}");
        assert!(flood(&mut credit, honest) >= 50);
        assert!(!credit.spend_by(MemberId(9_999)) && !credit.join_request_by(MemberId(9_999)));
    }

    #[test]
    fn frames_of_one_packet_are_shared_too() {
        let mut credit = Credit::default();
        let [greedy, honest] = members(&mut credit);
        let mut total = 0;
        for frame in 0..1_000 {
            credit.begin(1);
            flood(&mut credit, greedy);
            total += u64::from(frame % 20 == 0 && credit.spend_by(honest));
        }
        assert!(total >= 48, "{total} of 50");
    }

    #[test]
    fn requests_of_what_others_requested_are_limited_for_each_frame() {
        let mut credit = Credit::default();
        let member = credit.join();
        assert!(!credit.join_request_by(member));
        for _ in 0..2 {
            credit.begin(3);
            assert_eq!((0..9).filter(|_| credit.join_request_by(member)).count(), 3);
        }
    }

    proptest! {
        #[test]
        fn no_more_than_a_quarter_is_ever_granted_and_nobody_is_starved(
            steps in prop::collection::vec((0_u8..4, 0_usize..6, 1_u64..400), 1..400),
        ) {
            let mut credit = Credit::default();
            let honest = credit.join();
            let mut others: Vec<MemberId> = Vec::new();
            let (mut sent, mut granted, mut lasted) = (0, 0, 0_u64);
            for (step, at, count) in steps {
                match step {
                    0 if others.len() < 5 => others.push(credit.join()),
                    1 if at < others.len() => credit.leave(others.swap_remove(at)),
                    2 => {
                        credit.begin(count);
                        (sent, lasted) = (sent + count, lasted + 1);
                    }
                    _ => {
                        let Some(other) = others.get(at) else { continue };
                        granted += (0..count).filter(|_| credit.spend_by(*other)).count() as u64;
                    }
                }
                prop_assert!(granted * PART + credit.left() <= sent);
                prop_assert!(credit.shares.len() == others.len() + 1);
            }
            // Whatever the others have done, one that has requested nothing may request a packet within a few frames.
            for _ in 0..4 {
                credit.begin(100);
                for other in &others {
                    flood(&mut credit, *other);
                }
            }
            prop_assert!(lasted == 0 || credit.spend_by(honest));
        }
    }
}
