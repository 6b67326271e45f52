//! Attacks on protected packets by an attacker on the path: changed, cut, lengthened, repeated and
//! forged packets. None is accepted or changes the state, and genuine packets still arrive.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;

use ends::{
    SSRC, authenticating, full, master, opened, opened_report, pair, plain, protected,
    protected_report, report, report_pair,
};
use rushes_netsim::Seeded;
use rushes_proto::srtp::{
    BATCH_MAX, ExtensionIds, Policy, Protector, Suite, UnprotectError, Unprotector,
};

/// Number of forged packets for each suite and group size.
const FORGED: u64 = 1_000_000;

const MKIS: [&[u8]; 2] = [&[], &[1, 2, 3, 4]];

/// Every suite that authenticates, with each of the options that change the form of packets.
fn policies() -> Vec<Policy> {
    let of = |suite: Suite| {
        let plain = Policy::new(suite);
        let encrypted_extensions = ExtensionIds::new(&[2]);
        [
            plain,
            Policy { cryptex: true, ..plain },
            Policy { encrypted_extensions, ..plain },
            Policy { key_derivation_rate: Some(2), ..plain },
            Policy { encrypt_rtcp: false, ..plain },
        ]
    };
    authenticating().flat_map(of).collect()
}

/// Returns copies of `packet`, each with one bit flipped.
fn flips(packet: &[u8]) -> Vec<Vec<u8>> {
    let flip = |bit: usize| {
        let mut flipped = packet.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    };
    (0..8 * packet.len()).map(flip).collect()
}

/// Returns `packet` cut to each length, and lengthened by 1 to 32 octets.
fn other_lengths(packet: &[u8]) -> Vec<Vec<u8>> {
    let cut = (0..packet.len()).map(|len| packet[..len].to_vec());
    let added = (1..=32).flat_map(|more| {
        let again = &packet[packet.len() - more..];
        [vec![0; more], vec![0xff; more], again.to_vec()].map(|tail| [packet, &tail].concat())
    });
    cut.chain(added).collect()
}

/// Passes the `changes` of the second of three packets to a receiver; all three must still arrive.
fn check_changes(changes: fn(&[u8]) -> Vec<Vec<u8>>) {
    for (policy, mki) in policies().iter().flat_map(|policy| MKIS.map(|mki| (policy, mki))) {
        let (mut sender, mut receiver) = pair(policy, mki);
        let packets = [1, 2, 3].map(|sequence| protected(&mut sender, &full(sequence)));
        assert_eq!(opened(&mut receiver, &packets[0]), Ok(full(1)));
        for (n, changed) in changes(&packets[1]).into_iter().enumerate() {
            assert!(opened(&mut receiver, &changed).is_err(), "{policy:?} {mki:?}: change {n}");
        }
        assert_eq!(opened(&mut receiver, &packets[1]), Ok(full(2)), "{policy:?} {mki:?}");
        assert_eq!(opened(&mut receiver, &packets[2]), Ok(full(3)), "{policy:?} {mki:?}");
    }
}

/// Does the same as [`check_changes`] with reports.
fn check_report_changes(changes: fn(&[u8]) -> Vec<Vec<u8>>) {
    for (policy, mki) in policies().iter().flat_map(|policy| MKIS.map(|mki| (policy, mki))) {
        let (mut sender, mut receiver) = report_pair(policy, mki);
        let clear = report(SSRC);
        let packets = [1, 2, 3].map(|_| protected_report(&mut sender, &clear));
        assert_eq!(opened_report(&mut receiver, &packets[0]).as_ref(), Ok(&clear));
        for (n, changed) in changes(&packets[1]).into_iter().enumerate() {
            let outcome = opened_report(&mut receiver, &changed);
            assert!(outcome.is_err(), "{policy:?} {mki:?}: change {n}");
        }
        assert_eq!(opened_report(&mut receiver, &packets[1]).as_ref(), Ok(&clear), "{policy:?}");
        assert_eq!(opened_report(&mut receiver, &packets[2]).as_ref(), Ok(&clear), "{policy:?}");
    }
}

#[test]
fn a_packet_with_any_bit_changed_is_refused() {
    check_changes(flips);
}

#[test]
fn a_report_with_any_bit_changed_is_refused() {
    check_report_changes(flips);
}

#[test]
fn a_packet_cut_or_lengthened_is_refused() {
    check_changes(other_lengths);
}

#[test]
fn a_report_cut_or_lengthened_is_refused() {
    check_report_changes(other_lengths);
}

#[test]
fn a_changed_packet_is_no_source_s_first() {
    for policy in policies() {
        let (mut sender, mut receiver) = pair(&Policy { sources_max: 1, ..policy }, &[]);
        let packet = protected(&mut sender, &full(1));
        for changed in flips(&packet) {
            assert!(opened(&mut receiver, &changed).is_err(), "{policy:?}");
        }
        assert_eq!(opened(&mut receiver, &packet), Ok(full(1)), "the only slot was taken");
    }
}

#[test]
fn each_of_the_last_ten_thousand_packets_is_accepted_once() {
    for (suite, window) in authenticating().flat_map(|suite| [(suite, 128), (suite, 16_384)]) {
        let policy = Policy { window, ..Policy::new(suite) };
        let (mut sender, mut receiver) = pair(&policy, &[]);
        // The packets include the roll-over.
        let clear: Vec<_> =
            (0..10_000_u16).map(|n| plain(SSRC, n.wrapping_add(60_000), 20)).collect();
        let packets: Vec<_> = clear.iter().map(|clear| protected(&mut sender, clear)).collect();
        for (clear, packet) in clear.iter().zip(&packets) {
            assert_eq!(opened(&mut receiver, packet).as_ref(), Ok(clear));
        }
        let replayed = Err(UnprotectError::Replayed);
        for (n, packet) in packets.iter().enumerate() {
            assert_eq!(opened(&mut receiver, packet), replayed, "{suite} {window}: {n}");
        }
        for packets in packets.chunks(BATCH_MAX) {
            let mut copies = packets.to_vec();
            let mut views: Vec<_> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
            let mut outcomes = [Ok(0); BATCH_MAX];
            receiver.unprotect_batch(&mut views, &mut outcomes);
            let outcomes = &outcomes[..packets.len()];
            assert!(outcomes.iter().all(|outcome| *outcome == Err(UnprotectError::Replayed)));
        }
        let next = plain(SSRC, 60_000_u16.wrapping_add(10_000), 20);
        let packet = protected(&mut sender, &next);
        assert_eq!(opened(&mut receiver, &packet), Ok(next));
    }
}

#[test]
fn each_of_the_last_ten_thousand_reports_is_accepted_once() {
    for (suite, window) in Suite::ALL.into_iter().flat_map(|suite| [(suite, 128), (suite, 16_384)])
    {
        let (mut sender, mut receiver) = report_pair(&Policy { window, ..Policy::new(suite) }, &[]);
        let clear = report(SSRC);
        let packets: Vec<_> = (0..10_000).map(|_| protected_report(&mut sender, &clear)).collect();
        for packet in &packets {
            assert_eq!(opened_report(&mut receiver, packet).as_ref(), Ok(&clear));
        }
        for packet in &packets {
            let outcome = opened_report(&mut receiver, packet);
            assert_eq!(outcome, Err(UnprotectError::Replayed), "{suite} {window}");
        }
        let packet = protected_report(&mut sender, &clear);
        assert_eq!(opened_report(&mut receiver, &packet), Ok(clear));
    }
}

/// An attacker that sees packets pass but does not have the key.
struct Forger {
    random: Seeded,
    /// The last genuine packet seen.
    seen: Vec<u8>,
}

impl Forger {
    /// Makes a packet that is not genuine.
    fn forge(&mut self, packet: &mut Vec<u8>) {
        let random = &mut self.random;
        packet.clear();
        packet.extend_from_slice(&self.seen);
        let sequence = u16::from_be_bytes([packet[2], packet[3]]);
        let with = |packet: &mut Vec<u8>, ahead: u16| {
            packet[2..4].copy_from_slice(&sequence.wrapping_add(ahead).to_be_bytes());
        };
        match random.below(7) {
            // Random octets of any length.
            0 => {
                packet.resize(random.below(90) as usize, 0);
                packet.fill_with(|| random.roll() as u8);
            }
            // Another sequence number, near or far.
            1 => with(packet, 1 + random.below(200) as u16),
            2 => with(packet, 1 + random.below(65_535) as u16),
            // Another source.
            3 => packet[8..12].copy_from_slice(&(random.roll() as u32 | 1).to_be_bytes()),
            // The next packet's header and another tag.
            4 => {
                with(packet, 1);
                let tag = packet.len() - 10;
                packet[tag..].fill_with(|| random.roll() as u8);
            }
            5 => {
                let place = random.below(packet.len() as u64) as usize;
                packet[place] ^= 1 << random.below(8);
            }
            // The packet is repeated unchanged.
            _ => {}
        }
    }
}

/// Genuine packets among forged ones, about one in a hundred, for one receiver.
struct Attack {
    sender: Protector,
    receiver: Unprotector,
    forger: Forger,
    sequence: u16,
    forged: u64,
    genuine: u64,
}

impl Attack {
    fn new(suite: Suite) -> Self {
        let (mut sender, mut receiver) = pair(&Policy::new(suite), &[]);
        // This SSRC is even; the forger's other SSRCs are odd.
        let first = protected(&mut sender, &plain(SSRC, 60_000, 40));
        assert!(opened(&mut receiver, &first).is_ok());
        let forger = Forger { random: Seeded(0xf0_45ed), seen: first };
        Self { sender, receiver, forger, sequence: 60_000, forged: 0, genuine: 0 }
    }

    /// Makes the next packet to arrive; returns whether it is genuine.
    fn next(&mut self, packet: &mut Vec<u8>) -> bool {
        if !self.forger.random.chance(0.01) {
            self.forged += 1;
            self.forger.forge(packet);
            return false;
        }
        // Some packets are lost on the path.
        self.sequence = self.sequence.wrapping_add(1 + self.forger.random.below(9) as u16);
        self.genuine += 1;
        packet.clear();
        packet.extend_from_slice(&[0x80, 96]);
        packet.extend_from_slice(&self.sequence.to_be_bytes());
        packet.extend_from_slice(&[0; 4]);
        packet.extend_from_slice(&SSRC.to_be_bytes());
        packet.resize(52, self.sequence as u8);
        self.sender.protect(packet).unwrap();
        packet.clone_into(&mut self.forger.seen);
        true
    }

    /// Receives `forged` more forged packets, and the genuine ones between them, in groups of
    /// `group`.
    fn run(&mut self, forged: u64, group: usize, packets: &mut [Vec<u8>; BATCH_MAX]) {
        let end = self.forged + forged;
        while self.forged < end {
            let mut genuine = [false; BATCH_MAX];
            for (genuine, packet) in genuine.iter_mut().zip(&mut packets[..group]) {
                *genuine = self.next(packet);
            }
            let mut outcomes = [Err(UnprotectError::Malformed); BATCH_MAX];
            if group == 1 {
                outcomes[0] = self.receiver.unprotect(&mut packets[0]);
            } else {
                let mut views = packets.each_mut().map(|packet| &mut packet[..]);
                self.receiver.unprotect_batch(&mut views[..group], &mut outcomes);
            }
            for n in 0..group {
                assert_eq!(outcomes[n].is_ok(), genuine[n], "{:?} {:x?}", outcomes[n], packets[n]);
                if let Ok(len) = outcomes[n] {
                    assert_eq!(len, 52);
                    assert!(packets[n][12..len].iter().all(|octet| *octet == packets[n][3]));
                }
            }
        }
    }
}

fn a_million_forgeries(suite: Suite, group: usize) {
    let mut attack = Attack::new(suite);
    let mut packets = [(); BATCH_MAX].map(|()| Vec::with_capacity(200));
    attack.forger.seen.reserve(200);
    attack.run(2000, group, &mut packets);
    let counted = allocation_counter::measure(|| attack.run(FORGED - 2000, group, &mut packets));
    assert_eq!((counted.count_total, counted.bytes_current), (0, 0), "forgeries use memory");
    assert!(attack.forged >= FORGED && attack.genuine > FORGED / 200);
    let rounds = attack.sender.roll_over_counter(rushes_proto::Ssrc(SSRC));
    assert!(rounds.is_some_and(|rounds| rounds > 0), "there was no roll-over");
}

#[test]
fn a_million_forgeries_under_gcm_change_nothing() {
    a_million_forgeries(Suite::AeadAes128Gcm, 1);
}

#[test]
fn a_million_forgeries_in_groups_under_gcm_change_nothing() {
    a_million_forgeries(Suite::AeadAes128Gcm, BATCH_MAX);
}

#[test]
fn a_million_forgeries_under_sha1_change_nothing() {
    a_million_forgeries(Suite::AesCm128HmacSha1_80, 1);
}

#[test]
fn a_million_forgeries_in_groups_under_sha1_change_nothing() {
    a_million_forgeries(Suite::AesCm128HmacSha1_80, BATCH_MAX);
}

#[test]
fn forged_packets_count_towards_no_lifetime() {
    for suite in authenticating() {
        let key = master(suite, 7, &[]).with_lifetime(10, 10).unwrap();
        let policy = Policy::new(suite);
        let mut sender = Protector::new(&policy, &key).unwrap();
        let mut receiver = Unprotector::new(&policy, &key).unwrap();
        for sequence in 0..10 {
            let packet = protected(&mut sender, &plain(SSRC, sequence, 5));
            for changed in flips(&packet) {
                assert!(opened(&mut receiver, &changed).is_err());
            }
            assert!(opened(&mut receiver, &packet).is_ok(), "{suite} {sequence}");
            assert_eq!(
                opened(&mut receiver, &packet).unwrap_err(),
                match sequence {
                    9 => UnprotectError::Expired,
                    _ => UnprotectError::Replayed,
                }
            );
        }
    }
}
