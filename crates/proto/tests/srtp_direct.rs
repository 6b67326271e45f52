//! Packets that are decrypted where they belong in their frame come to the same as those that are
//! not: a receiver of clear packets and one of the same packets protected, side by side.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod ends;
mod world;

use std::collections::HashSet;

use ends::master;
use rushes_netsim::{Conditions, Path};
use rushes_proto::payload::Delivery;
use rushes_proto::srtp::{Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::Discard;
use rushes_proto::{RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, Seeded, arrivals, path, send, sources};

const SUITES: [Suite; 2] = [Suite::AeadAes128Gcm, Suite::AeadAes256Gcm];

/// Makes of a clear packet one that its sender would not have made, but that is authentic.
fn disturb(packet: &mut Vec<u8>, random: &mut Seeded) {
    let at = 12 + random.below(4) as usize;
    match random.below(4) {
        0 => packet[1] ^= 0x80,
        1 => packet.truncate(at),
        2 => packet[7] ^= 1,
        _ if at < packet.len() => packet[at] = random.below(256) as u8,
        _ => {}
    }
}

/// A frame: its octets, timestamp, units and marker.
type Delivered = (Vec<u8>, RtpTimestamp, u32, bool);

/// What a receiver made of a stream: frames, and packets, octets of payload, packets lost, frames
/// dropped.
fn outcome(listener: &Listener) -> (Vec<Delivered>, [u64; 4]) {
    let frames = listener.frames.iter();
    let frames =
        frames.map(|frame| (frame.to_vec(), frame.timestamp(), frame.units(), frame.marker()));
    let counts = listener.receiver.statistics();
    let counted =
        [counts.packets, counts.payload_octets, counts.packets_lost, counts.frames_dropped];
    (frames.collect(), counted)
}

/// Lets both receivers take the same packets, the secured one forged ones too; how many frames
/// came out.
fn compare(
    kind: Kind,
    delivery: Delivery,
    suite: Suite,
    path: &Path,
    odd: f64,
    seed: u64,
) -> usize {
    let mut random = Seeded(seed);
    let first = (SequenceNumber(65_500), RtpTimestamp(9));
    let sent = send(kind, &sources(kind, 24, 2520, &mut random), 300, first);
    let key = master(suite, 7, &[]);
    let policy = Policy { window: 1024, ..Policy::new(suite) };
    let mut protector = Protector::new(&policy, &key).unwrap();
    let packets = sent.into_iter().enumerate().map(|(n, datagram)| {
        let mut clear = datagram.octets;
        if n > 4 && random.chance(odd) {
            disturb(&mut clear, &mut random);
        }
        let mut protected = clear.clone();
        protector.protect(&mut protected).unwrap();
        (clear, protected)
    });
    let packets: Vec<(Vec<u8>, Vec<u8>)> = packets.collect();
    let mut plain = Listener::with(kind, delivery, |config| config.probation = 1);
    let mut secured = Listener::with(kind, delivery, |config| config.probation = 1);
    let unprotector = Unprotector::new(&policy, &key).unwrap();
    secured.receiver = secured.receiver.secured(unprotector);
    let mut forged = 0;
    let mut arrived = HashSet::new();
    let lens = packets.iter().map(|(_, protected)| protected.len());
    for (time, arrival) in arrivals(lens, path, &mut random) {
        let (clear, protected) = &packets[arrival];
        if arrived.insert(arrival) && random.chance(0.1) {
            let mut forgery = protected.clone();
            let at = 12 + random.below(forgery.len() as u64 - 12) as usize;
            forgery[at] ^= 1 << random.below(8);
            secured.take(time, &forgery);
            forged += 1;
        }
        plain.take(time, clear);
        secured.take(time, protected);
    }
    plain.finish();
    secured.finish();
    assert_eq!(outcome(&plain), outcome(&secured), "{kind:?} {delivery:?} {suite} {seed}");
    let discards = secured.receiver.statistics().discards;
    assert_eq!(discards.get(Discard::Authentication), forged, "{kind:?} {suite} {seed}");
    plain.frames.len()
}

#[test]
fn a_secured_receiver_makes_of_a_stream_what_a_clear_one_does() {
    let (calm, rough) = (Path::default(), path(0.02, 0.03, 0.03));
    let mut frames = 0;
    for seed in 1..=12 {
        for kind in Kind::ALL {
            for delivery in [Delivery::AccessUnit, Delivery::Unit] {
                let wild = Conditions::random(seed).there.path;
                let paths =
                    [(&calm, 0.0), (&calm, 0.06), (&rough, 0.0), (&rough, 0.06), (&wild, 0.0)];
                for (path, odd) in paths {
                    let suite = SUITES[seed as usize % 2];
                    frames += compare(kind, delivery, suite, path, odd, seed);
                }
            }
        }
    }
    assert!(frames > 1000, "{frames}");
}
