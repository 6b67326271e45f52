//! Packet indices in difficult cases: around roll-overs, after long losses, and after a restart of
//! the sender (RFC 3711 section 3.3.1).
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;

use std::collections::BTreeMap;
use std::ops::Range;

use ends::{SSRC, authenticating, opened, pair, plain, protected};
use rushes_netsim::Seeded;
use rushes_proto::Ssrc;
use rushes_proto::srtp::{
    BATCH_MAX, MasterKey, Policy, ProtectError, Protector, SrtcpProtector, Suite, UnprotectError,
    Unprotector,
};

/// Octets of payload of every packet in this file.
const LEN: usize = 24;

/// Returns policies of all suites with tags, and the largest window: no packet is too late.
fn policies() -> impl Iterator<Item = Policy> {
    authenticating().flat_map(|suite| {
        let plain = Policy { window: 32_768, ..Policy::new(suite) };
        // Epochs of 2¹⁶ packets end with the rounds, and those of 2⁵ end often.
        let rates = [None, Some(5), Some(16)];
        rates.map(|key_derivation_rate| Policy { key_derivation_rate, ..plain })
    })
}

fn clear(index: u64) -> Vec<u8> {
    plain(SSRC, index as u16, LEN)
}

/// Returns the packets with `indices`, in order, from a sender that begins with the first of them.
fn packets(policy: &Policy, indices: impl IntoIterator<Item = u64>) -> BTreeMap<u64, Vec<u8>> {
    let (mut sender, _) = pair(policy, &[]);
    let mut indices = indices.into_iter().peekable();
    let first = *indices.peek().unwrap();
    sender.set_roll_over_counter(Ssrc(SSRC), (first >> 16) as u32).unwrap();
    indices.map(|index| (index, protected(&mut sender, &clear(index)))).collect()
}

/// Passes the packets of `range` to a receiver in the order of `arrivals`: the first copy of each
/// must be accepted, every other one refused.
fn check(range: Range<u64>, arrivals: &[u64]) {
    for policy in policies() {
        let packets = packets(&policy, range.clone());
        let (_, mut receiver) = pair(&policy, &[]);
        let mut seen = std::collections::BTreeSet::new();
        for index in arrivals {
            let outcome = opened(&mut receiver, &packets[index]);
            let expected =
                if seen.insert(index) { Ok(clear(*index)) } else { Err(UnprotectError::Replayed) };
            assert_eq!(outcome, expected, "{policy:?}: {index}");
        }
    }
}

#[test]
fn a_lost_65535_costs_one_packet() {
    let arrivals: Vec<u64> = (65_500..65_600).filter(|index| *index != 65_535).collect();
    check(65_500..65_600, &arrivals);
}

#[test]
fn a_65535_that_arrives_twice_is_accepted_once() {
    check(65_530..65_540, &[65_530, 65_534, 65_535, 65_535, 65_536, 65_535, 65_537]);
}

#[test]
fn a_65535_that_arrives_after_the_next_round_s_first_is_accepted() {
    check(65_530..65_542, &[65_533, 65_534, 65_536, 65_537, 65_538, 65_535, 65_539, 65_535]);
}

#[test]
fn a_65535_that_arrives_thousands_of_packets_late_is_accepted() {
    let late = [65_535, 65_534].into_iter();
    let arrivals: Vec<u64> =
        [65_533].into_iter().chain(65_536..95_000).chain(late).chain([95_000]).collect();
    check(65_533..95_001, &arrivals);
}

#[test]
fn packets_reordered_around_a_roll_over_are_accepted() {
    let mut random = Seeded(3711);
    for _ in 0..20 {
        let mut places: Vec<(u64, u64)> =
            (65_436..65_636).map(|index| (index + random.below(100), index)).collect();
        places.sort_unstable();
        let arrivals: Vec<u64> = places.into_iter().map(|(_, index)| index).collect();
        check(65_436..65_636, &arrivals);
    }
}

#[test]
fn a_source_joined_at_its_last_packet_of_the_first_round_is_understood() {
    check(65_535..65_540, &[65_535, 65_536, 65_539, 65_537]);
}

#[test]
fn a_source_joined_in_its_second_round_is_understood() {
    check(65_530..65_550, &[65_540, 65_541, 65_535, 65_536, 65_530, 65_542]);
}

#[test]
fn two_roll_overs_with_65535_and_0_lost_are_counted() {
    for policy in policies() {
        // For speed, the packets are a thousand apart except around the roll-overs.
        let is_near = |index: u64| index % 1000 == 7 || (index + 50) % 65_536 < 100;
        let all = packets(&policy, (65_000..200_000).filter(|index| is_near(*index)));
        let (_, mut receiver) = pair(&policy, &[]);
        // The receiver does not know the round of its first packet.
        for (index, packet) in &all {
            let sequence = *index as u16;
            if sequence != 65_535 && sequence != 0 {
                assert_eq!(opened(&mut receiver, packet), Ok(clear(*index)), "{policy:?}");
            }
        }
    }
}

#[test]
fn half_a_round_may_be_lost_at_a_roll_over() {
    for policy in policies() {
        for (first, lost) in [(40_000, 32_767), (65_535, 32_767), (32_769, 32_766)] {
            let all = packets(&policy, [first, first + lost, first + lost + 1]);
            let (_, mut receiver) = pair(&policy, &[]);
            for (index, packet) in &all {
                assert_eq!(opened(&mut receiver, packet), Ok(clear(*index)), "{policy:?}");
            }
        }
    }
}

/// Returns whether each packet of a source is accepted after `lost` packets.
fn come_back(policy: &Policy, lost: u64, group: usize) -> Vec<bool> {
    let begin = 66_000;
    // The sender skips no round, because its index moves by less than half a round at a time.
    let steps = (begin..begin + lost).step_by(30_000);
    let after: Vec<u64> = (begin + lost..begin + lost + 100).collect();
    let all = packets(policy, steps.chain(after.iter().copied()));
    let (_, mut receiver) = pair(policy, &[]);
    assert!(opened(&mut receiver, &all[&begin]).is_ok());
    let mut accepted = Vec::new();
    for indices in after.chunks(group) {
        let mut copies: Vec<Vec<u8>> = indices.iter().map(|index| all[index].clone()).collect();
        let mut views: Vec<&mut [u8]> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
        let mut outcomes = [Err(UnprotectError::Malformed); BATCH_MAX];
        receiver.unprotect_batch(&mut views, &mut outcomes);
        for ((index, copy), outcome) in indices.iter().zip(&copies).zip(outcomes) {
            accepted.push(outcome.is_ok_and(|len| copy[..len] == clear(*index)));
        }
    }
    accepted
}

#[test]
fn a_source_that_lost_rounds_is_found_again_within_64_packets() {
    let windows = [128, 32_768];
    for policy in policies().flat_map(|policy| windows.map(|window| Policy { window, ..policy })) {
        for lost in [40_000, 65_500, 65_536, 150_000, 1_000_000] {
            for group in [1, BATCH_MAX] {
                let accepted = come_back(&policy, lost, group);
                let found = accepted.iter().position(|accepted| *accepted);
                // Before it is found, its packets seem to be older than the window, or forged.
                let found = found.filter(|found| *found <= 63);
                let found = found.unwrap_or_else(|| panic!("{policy:?}: {lost} lost"));
                assert!(accepted[found..].iter().all(|accepted| *accepted), "{policy:?}");
            }
        }
    }
}

#[test]
fn a_source_that_lost_seventeen_rounds_is_not_found_until_its_round_is_set() {
    let policy = Policy::new(authenticating().next().unwrap());
    assert!(come_back(&policy, 18 * 65_536, 1).iter().all(|accepted| !accepted));
    let all = packets(&policy, [18 * 65_536 + 7]);
    let (_, mut receiver) = pair(&policy, &[]);
    assert!(opened(&mut receiver, &all[&(18 * 65_536 + 7)]).is_err());
    receiver.set_roll_over_counter(Ssrc(SSRC), 18).unwrap();
    assert!(opened(&mut receiver, &all[&(18 * 65_536 + 7)]).is_ok());
}

#[test]
fn the_last_round_ends_the_stream() {
    for policy in policies() {
        let end = 1 << 48;
        let all = packets(&policy, end - 3..end);
        let (mut sender, mut receiver) = pair(&policy, &[]);
        receiver.set_roll_over_counter(Ssrc(SSRC), u32::MAX).unwrap();
        for (index, packet) in &all {
            assert_eq!(opened(&mut receiver, packet), Ok(clear(*index)), "{policy:?}");
        }
        sender.set_roll_over_counter(Ssrc(SSRC), u32::MAX).unwrap();
        sender.protect(&mut clear(end - 1)).unwrap();
        assert_eq!(sender.protect(&mut clear(end)), Err(ProtectError::Expired), "{policy:?}");
    }
}

/// Returns a receiver that has received `range`, and a sender that begins again in round 0.
fn restarted(policy: &Policy, range: Range<u64>) -> (Protector, Unprotector) {
    let all = packets(policy, range);
    let (sender, mut receiver) = pair(policy, &[]);
    for packet in all.values() {
        assert!(opened(&mut receiver, packet).is_ok());
    }
    (sender, receiver)
}

#[test]
fn a_sender_that_begins_again_under_another_ssrc_is_a_new_source() {
    for policy in policies() {
        let (mut sender, mut receiver) = restarted(&policy, 65_500..65_700);
        for sequence in 9000..9100 {
            let clear = plain(SSRC + 1, sequence, LEN);
            let packet = protected(&mut sender, &clear);
            assert_eq!(opened(&mut receiver, &packet), Ok(clear), "{policy:?}");
        }
    }
}

#[test]
fn a_sender_that_restarts_later_in_the_first_round_is_accepted() {
    for policy in policies() {
        let (mut sender, mut receiver) = restarted(&policy, 1000..1100);
        for index in [1100, 20_000, 20_001] {
            let packet = protected(&mut sender, &clear(index));
            assert_eq!(opened(&mut receiver, &packet), Ok(clear(index)), "{policy:?}");
        }
    }
}

#[test]
fn a_sender_that_begins_again_with_indices_used_before_is_a_replay() {
    for policy in policies() {
        let (mut sender, mut receiver) = restarted(&policy, 1000..1100);
        for index in 1000..1100 {
            let packet = protected(&mut sender, &clear(index));
            let outcome = opened(&mut receiver, &packet);
            assert_eq!(outcome, Err(UnprotectError::Replayed), "{policy:?}: {index}");
        }
    }
}

#[test]
fn a_sender_that_forgot_its_round_is_refused_and_the_receiver_cannot_be_sent_back() {
    for policy in policies() {
        let (mut sender, mut receiver) = restarted(&policy, 65_500..65_700);
        for index in 200..500 {
            let packet = protected(&mut sender, &clear(index));
            assert!(opened(&mut receiver, &packet).is_err(), "{policy:?}: {index}");
        }
        // Otherwise recorded packets of the round would be accepted again.
        let outcome = receiver.set_roll_over_counter(Ssrc(SSRC), 0);
        assert_eq!(outcome, Err(UnprotectError::Replayed), "{policy:?}");
    }
}

#[test]
fn no_key_stream_is_used_twice_by_a_sender() {
    for policy in policies().map(|policy| Policy { window: 128, ..policy }) {
        let (mut sender, _) = pair(&policy, &[]);
        for index in (65_000..66_000).step_by(2) {
            sender.protect(&mut clear(index)).unwrap();
        }
        for index in (65_000..66_000).step_by(2) {
            let outcome = sender.protect(&mut clear(index));
            assert_eq!(outcome, Err(ProtectError::Repeated), "{policy:?}: {index}");
        }
        // The first packet is late but was never used; for the second, it is too late to know.
        assert_eq!(sender.protect(&mut clear(65_997)), Ok(()));
        assert_eq!(sender.protect(&mut clear(65_001)), Err(ProtectError::Repeated));
    }
}

#[test]
fn no_key_stream_can_be_made_to_run_again() {
    let suite = Suite::AeadAes128Gcm;
    let (policy, key) = (Policy::new(suite), MasterKey::new(suite, &[7; 28]).unwrap());
    let mut sender = Protector::new(&policy, &key).unwrap();
    sender.set_roll_over_counter(Ssrc(1), 3).unwrap();
    let mut packet = vec![0x80, 96, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 5];
    sender.protect(&mut packet).unwrap();
    for roc in [0, 2, 3] {
        let outcome = sender.set_roll_over_counter(Ssrc(1), roc);
        assert_eq!(outcome, Err(ProtectError::Repeated), "{roc}");
    }
    sender.set_roll_over_counter(Ssrc(1), 4).unwrap();

    let mut reporter = SrtcpProtector::new(&policy, &key).unwrap();
    reporter.set_index(Ssrc(1), 5).unwrap();
    reporter.protect(&mut vec![0x80, 201, 0, 1, 0, 0, 0, 1]).unwrap();
    assert_eq!(reporter.set_index(Ssrc(1), 5), Err(ProtectError::Repeated));
    reporter.set_index(Ssrc(1), 6).unwrap();
}
