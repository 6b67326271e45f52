//! For any suite, options and packets: protected packets are restored, no others are accepted, and
//! packets in batches have the same outcomes as single ones.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;

use ends::{master, opened, opened_report, protected, protected_report};
use proptest::collection::vec;
use proptest::prelude::*;
use rushes_netsim::Seeded;
use rushes_proto::srtp::{
    BATCH_MAX, ExtensionIds, KeyEvent, Policy, ProtectError, Protector, SrtcpProtector,
    SrtcpUnprotector, Suite, UnprotectError, Unprotector,
};

/// Returns a strategy for the policy of both ends, and the length of the master key identifiers.
fn agreements() -> impl Strategy<Value = (Policy, usize)> {
    let suites = prop::sample::select(Suite::ALL.to_vec());
    let rates = prop_oneof![Just(None), (0..=5_u8).prop_map(Some), (0..=24_u8).prop_map(Some)];
    let switches = (any::<bool>(), any::<bool>(), 0..3_u8, vec(any::<u8>(), 0..4));
    (suites, rates, switches, 0..=8_usize).prop_map(|(suite, rate, switches, mki_len)| {
        let (encrypt, encrypt_rtcp, extensions, ids) = switches;
        let mut policy = Policy::new(suite);
        policy.key_derivation_rate = rate;
        policy.encrypt_rtp = encrypt || suite.is_aead();
        policy.encrypt_rtcp = encrypt_rtcp;
        policy.cryptex = extensions == 1;
        if extensions == 2 {
            policy.encrypted_extensions = ExtensionIds::new(&[&ids[..], &[1, 4]].concat());
        }
        (policy, mki_len)
    })
}

/// Returns a strategy for agreements under which packets carry tags.
fn authentic() -> impl Strategy<Value = (Policy, usize)> {
    let has_tags = |(policy, _): &(Policy, usize)| policy.suite.rtp_tag_len() > 0;
    agreements().prop_filter("packets must carry tags", has_tags)
}

/// Returns the identifier of key `n`.
fn mki(len: usize, n: u8) -> Vec<u8> {
    (0..len).map(|place| if place == 0 { n } else { place as u8 }).collect()
}

fn octets(random: &mut Seeded, len: u64) -> Vec<u8> {
    (0..len).map(|_| random.roll() as u8).collect()
}

/// Returns a well-formed header extension of any kind.
fn extension(random: &mut Seeded) -> Vec<u8> {
    let two_byte = random.chance(0.5);
    let mut data = Vec::new();
    for _ in 0..random.below(9) {
        let (id, len) = (1 + random.roll() as u8 % 14, random.below(16));
        match (two_byte, random.below(4)) {
            (_, 0) => data.push(0),
            (true, _) => {
                data.extend_from_slice(&[random.roll() as u8 | 1, len as u8]);
                data.extend(octets(random, len));
            }
            (false, _) => {
                data.push(id << 4 | len as u8);
                data.extend(octets(random, len + 1));
            }
        }
    }
    data.resize(data.len().next_multiple_of(4), 0);
    let profile: u16 = match (two_byte, random.below(8)) {
        (_, 0) => 0x5555,
        (true, _) => 0x1000,
        (false, _) => 0xbede,
    };
    let words = (data.len() / 4) as u16;
    [&profile.to_be_bytes()[..], &words.to_be_bytes(), &data].concat()
}

/// Returns a clear packet with or without contributing sources, an extension and padding.
fn packet(ssrc: u32, sequence: u16, random: &mut Seeded) -> Vec<u8> {
    let sources = if random.chance(0.5) { random.below(16) as u8 } else { 0 };
    let mut packet = vec![0x80 | sources, random.roll() as u8];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(random.roll() as u32).to_be_bytes());
    packet.extend_from_slice(&ssrc.to_be_bytes());
    packet.extend(octets(random, 4 * u64::from(sources)));
    if random.chance(0.5) {
        packet[0] |= 0x10;
        packet.extend(extension(random));
    }
    let len = random.below(300);
    packet.extend(octets(random, len));
    if random.chance(0.2) {
        packet[0] |= 0x20;
        let len = 1 + random.below(9) as u8;
        packet.resize(packet.len() + usize::from(len), 0);
        *packet.last_mut().unwrap() = len;
    }
    packet
}

/// Returns `clear` as a receiver sees it: cryptex gives an empty extension to a packet that has
/// contributing sources and no extension (RFC 9335 section 5.1).
fn as_seen(policy: &Policy, clear: &[u8]) -> Vec<u8> {
    let mut seen = clear.to_vec();
    let end = 12 + 4 * usize::from(clear[0] & 15);
    let encrypts = policy.encrypt_rtp && policy.suite != Suite::NullHmacSha1_80;
    if policy.cryptex && encrypts && clear[0] & 0x10 == 0 && end > 12 {
        seen[0] |= 0x10;
        seen.splice(end..end, [0xbe, 0xde, 0, 0]);
    }
    seen
}

/// Returns a clear compound of at least one packet.
fn report(ssrc: u32, random: &mut Seeded) -> Vec<u8> {
    let mut report = vec![0x80 | random.roll() as u8 & 0x3f, 200 + random.below(7) as u8];
    report.extend(octets(random, 2));
    report.extend_from_slice(&ssrc.to_be_bytes());
    let words = random.below(40);
    report.extend(octets(random, 4 * words));
    report
}

/// Changes one or more octets.
fn mutate(packet: &mut [u8], random: &mut Seeded) {
    let before = packet.to_vec();
    while packet == before {
        for _ in 0..=random.below(4) {
            let place = random.below(packet.len() as u64) as usize;
            packet[place] = random.roll() as u8;
        }
    }
}

/// Moves packets by a few places.
fn shuffle<T>(list: &mut [T], random: &mut Seeded) {
    for n in 0..list.len() {
        let other = (n + random.below(12) as usize).min(list.len() - 1);
        list.swap(n, other);
    }
}

/// Returns the packets that arrive at a receiver: genuine ones of three sources, with jumps of the
/// sequence number and a change of key after half of them; some twice, some forged.
fn arrivals(policy: &Policy, mki_len: usize, random: &mut Seeded) -> Vec<Vec<u8>> {
    let keys = [1, 2].map(|n| master(policy.suite, n, &mki(mki_len, n)));
    let mut sender = Protector::new(policy, &keys[0]).unwrap();
    let mut sequences = [65_500, 100, 40_000_u16];
    let mut arrivals: Vec<Vec<u8>> = Vec::new();
    for n in 0..120 {
        if n == 60 {
            sender.set_master_key(&keys[1]).unwrap();
        }
        let source = random.below(7).min(2) as usize;
        let ahead = if random.chance(0.03) { 1 + random.below(32_000) } else { 1 };
        sequences[source] = sequences[source].wrapping_add(ahead as u16);
        let clear = packet(source as u32, sequences[source], random);
        let genuine = protected(&mut sender, &clear);
        for chance in [0.9, 0.1] {
            if random.chance(chance) {
                arrivals.push(genuine.clone());
            }
        }
        if random.chance(0.2) {
            let mut forged = genuine;
            mutate(&mut forged, random);
            arrivals.push(forged);
        }
        if random.chance(0.03) {
            let len = random.below(100);
            arrivals.push(octets(random, len));
        }
    }
    if random.chance(0.5) {
        shuffle(&mut arrivals, random);
    }
    arrivals
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_protected_packet_is_restored(
        (policy, mki_len) in agreements(), seed in any::<u64>(), first in any::<u16>(),
    ) {
        let mut random = Seeded(seed);
        let key = master(policy.suite, 1, &mki(mki_len, 1));
        let mut sender = Protector::new(&policy, &key).unwrap();
        let mut receiver = Unprotector::new(&policy, &key).unwrap();
        for n in 0..40 {
            let clear = packet(n % 3, first.wrapping_add(n as u16), &mut random);
            let packet = protected(&mut sender, &clear);
            let seen = as_seen(&policy, &clear);
            prop_assert_eq!(packet.len(), seen.len() + policy.overhead(mki_len));
            prop_assert_eq!(&packet[2..12], &clear[2..12]);
            prop_assert_eq!(opened(&mut receiver, &packet), Ok(seen));
        }
    }

    #[test]
    fn packets_under_the_old_and_the_new_key_are_restored(
        (policy, mki_len) in authentic(), seed in any::<u64>(), first in any::<u16>(),
    ) {
        let mut random = Seeded(seed);
        let key = |n| master(policy.suite, n, &mki(mki_len, n));
        let mut sender = Protector::new(&policy, &key(0)).unwrap();
        let mut receiver = Unprotector::new(&policy, &key(0)).unwrap();
        let mut arrivals = Vec::new();
        for n in 0..90 {
            if n == 30 || n == 60 {
                sender.set_master_key(&key(n / 30)).unwrap();
            }
            let clear = packet(7, first.wrapping_add(u16::from(n)), &mut random);
            arrivals.push((protected(&mut sender, &clear), as_seen(&policy, &clear)));
        }
        // The first packet stays in place, as a packet of the next round would not show this round.
        shuffle(&mut arrivals[1..], &mut random);
        receiver.add_master_key(&key(1)).unwrap();
        receiver.add_master_key(&key(2)).unwrap();
        for (packet, clear) in arrivals {
            prop_assert_eq!(opened(&mut receiver, &packet), Ok(clear));
        }
    }

    #[test]
    fn a_protected_report_is_restored(
        (policy, mki_len) in agreements(), seed in any::<u64>(), first in 0..1_u32 << 31,
    ) {
        let mut random = Seeded(seed);
        let key = |n| master(policy.suite, n, &mki(mki_len, n));
        let mut sender = SrtcpProtector::new(&policy, &key(0)).unwrap();
        let mut receiver = SrtcpUnprotector::new(&policy, &key(0)).unwrap();
        receiver.add_master_key(&key(1)).unwrap();
        sender.set_index(rushes_proto::Ssrc(1), first.min((1 << 31) - 40)).unwrap();
        let mut arrivals = Vec::new();
        for n in 0..40 {
            if n == 20 {
                sender.set_master_key(&key(1)).unwrap();
            }
            let clear = report(n % 2, &mut random);
            let packet = protected_report(&mut sender, &clear);
            prop_assert_eq!(packet.len(), clear.len() + policy.rtcp_overhead(mki_len));
            prop_assert_eq!(&packet[..8], &clear[..8]);
            let is_clear = packet[8..clear.len()] == clear[8..];
            let stays = !policy.encrypt_rtcp || policy.suite == Suite::NullHmacSha1_80;
            prop_assert_eq!(is_clear, stays || clear.len() == 8);
            arrivals.push((packet, clear));
        }
        shuffle(&mut arrivals, &mut random);
        for (packet, clear) in arrivals {
            prop_assert_eq!(opened_report(&mut receiver, &packet), Ok(clear));
        }
    }

    #[test]
    fn many_at_a_time_are_as_one_by_one(
        (policy, mki_len) in agreements(), seed in any::<u64>(),
        lifetime in prop_oneof![Just(1 << 48), 1..200_u64],
        sources_max in 1..4_usize, window in 128..2000_usize, group in 1..3 * BATCH_MAX,
    ) {
        let mut random = Seeded(seed);
        let arrivals = arrivals(&policy, mki_len, &mut random);
        let policy = Policy { sources_max, window, ..policy };
        let key = |n| {
            master(policy.suite, n, &mki(mki_len, n)).with_lifetime(lifetime, 1).unwrap()
        };
        let mut receivers = [(); 2].map(|()| Unprotector::new(&policy, &key(1)).unwrap());
        for (n, arrivals) in arrivals.chunks(group).enumerate() {
            if n == 1 {
                for receiver in &mut receivers {
                    receiver.add_master_key(&key(2)).unwrap();
                }
            }
            let mut copies = arrivals.to_vec();
            let mut views: Vec<&mut [u8]> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
            let mut outcomes = vec![Err(UnprotectError::Expired); arrivals.len()];
            receivers[0].unprotect_batch(&mut views, &mut outcomes);
            for ((arrival, copy), outcome) in arrivals.iter().zip(&copies).zip(outcomes) {
                let together = outcome.map(|len| copy[..len].to_vec());
                prop_assert_eq!(opened(&mut receivers[1], arrival), together);
            }
            prop_assert_eq!(receivers[0].poll_event(), receivers[1].poll_event());
        }
    }

    #[test]
    fn changed_octets_are_never_accepted(
        (policy, mki_len) in authentic(), seed in any::<u64>(), first in any::<u16>(),
    ) {
        let mut random = Seeded(seed);
        let key = master(policy.suite, 1, &mki(mki_len, 1));
        let mut sender = Protector::new(&policy, &key).unwrap();
        let mut receiver = Unprotector::new(&policy, &key).unwrap();
        let mut report_sender = SrtcpProtector::new(&policy, &key).unwrap();
        let mut report_receiver = SrtcpUnprotector::new(&policy, &key).unwrap();
        for n in 0..30 {
            let clear = packet(7, first.wrapping_add(n), &mut random);
            let genuine = protected(&mut sender, &clear);
            let report = report(7, &mut random);
            let genuine_report = protected_report(&mut report_sender, &report);
            for _ in 0..20 {
                let mut forged = genuine.clone();
                mutate(&mut forged, &mut random);
                prop_assert!(opened(&mut receiver, &forged).is_err());
                let mut forged = genuine_report.clone();
                mutate(&mut forged, &mut random);
                prop_assert!(opened_report(&mut report_receiver, &forged).is_err());
                let len = random.below(200);
                let garbage = octets(&mut random, len);
                prop_assert!(opened(&mut receiver, &garbage).is_err());
                prop_assert!(opened_report(&mut report_receiver, &garbage).is_err());
            }
            prop_assert_eq!(opened(&mut receiver, &genuine), Ok(as_seen(&policy, &clear)));
            prop_assert_eq!(opened_report(&mut report_receiver, &genuine_report), Ok(report));
        }
    }

    #[test]
    fn every_packet_accepted_for_protection_is_restored(
        (policy, mki_len) in agreements(), octets in vec(any::<u8>(), 0..80),
        profile in prop::sample::select(vec![0xbede_u16, 0xc0de, 0xc2de, 0x1000, 0x1005]),
        words in 0..8_u16,
    ) {
        let key = master(policy.suite, 1, &mki(mki_len, 1));
        let mut clear = [&[0x90][..], &octets].concat();
        if let Some(place) = clear.get_mut(12..16) {
            place[..2].copy_from_slice(&profile.to_be_bytes());
            place[2..].copy_from_slice(&words.to_be_bytes());
        }
        for clear in [clear, octets] {
            let mut packet = clear.clone();
            if Protector::new(&policy, &key).unwrap().protect(&mut packet).is_ok() {
                let mut receiver = Unprotector::new(&policy, &key).unwrap();
                prop_assert_eq!(opened(&mut receiver, &packet), Ok(as_seen(&policy, &clear)));
            }
            let mut packet = clear.clone();
            if SrtcpProtector::new(&policy, &key).unwrap().protect(&mut packet).is_ok() {
                let mut receiver = SrtcpUnprotector::new(&policy, &key).unwrap();
                prop_assert_eq!(opened_report(&mut receiver, &packet), Ok(clear));
            }
        }
    }

    #[test]
    fn a_key_is_valid_for_its_whole_lifetime_and_reports_its_end_before(
        (policy, mki_len) in agreements(), lifetime in 1..200_u64,
    ) {
        let mut random = Seeded(lifetime);
        let limitless = master(policy.suite, 1, &mki(mki_len, 1));
        let key = limitless.clone().with_lifetime(lifetime, lifetime).unwrap();
        let mut sender = Protector::new(&policy, &key).unwrap();
        let mut receiver = Unprotector::new(&policy, &key).unwrap();
        let mut report_sender = SrtcpProtector::new(&policy, &key).unwrap();
        let mut report_receiver = SrtcpUnprotector::new(&policy, &key).unwrap();
        for left in (0..lifetime).rev() {
            let clear = packet(1, left as u16, &mut random);
            prop_assert!(opened(&mut receiver, &protected(&mut sender, &clear)).is_ok());
            let clear = report(1, &mut random);
            let packet = protected_report(&mut report_sender, &clear);
            prop_assert!(opened_report(&mut report_receiver, &packet).is_ok());
            let expected = match left {
                0 => Some(KeyEvent::Expired),
                left if left == lifetime / 16 => Some(KeyEvent::Expiring { left }),
                _ => None,
            };
            prop_assert_eq!(sender.poll_event(), expected);
            prop_assert_eq!(receiver.poll_event(), expected);
            prop_assert_eq!(report_sender.poll_event(), expected);
            prop_assert_eq!(report_receiver.poll_event(), expected);
        }
        let mut clear = packet(1, 300, &mut random);
        prop_assert_eq!(sender.protect(&mut clear.clone()), Err(ProtectError::Expired));
        Protector::new(&policy, &limitless).unwrap().protect(&mut clear).unwrap();
        prop_assert_eq!(receiver.unprotect(&mut clear), Err(UnprotectError::Expired));
        let mut clear = report(2, &mut random);
        prop_assert_eq!(report_sender.protect(&mut clear.clone()), Err(ProtectError::Expired));
        SrtcpProtector::new(&policy, &limitless).unwrap().protect(&mut clear).unwrap();
        prop_assert_eq!(report_receiver.unprotect(&mut clear), Err(UnprotectError::Expired));
    }
}
