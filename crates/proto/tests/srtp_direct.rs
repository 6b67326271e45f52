//! Packets that are decrypted where they belong in their frame come to the same as those that are
//! not: a receiver of clear packets and one of the same packets protected, side by side.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod ends;
mod world;

use std::collections::HashSet;
use std::time::Duration;

use ends::master;
use rushes_proto::payload::Delivery;
use rushes_proto::srtp::{Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::Discard;
use rushes_proto::{RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, Seeded, Weather, arrivals, send, sources};

const MS: Duration = Duration::from_millis(1);

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
    weather: Weather,
    odd: u64,
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
    for (n, arrival) in arrivals(packets.len(), weather, &mut random).into_iter().enumerate() {
        let time = MS * (n as u32 / 8);
        let (clear, protected) = &packets[arrival];
        if arrived.insert(arrival) && random.chance(100) {
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
    let calm = Weather { loss: 0, duplication: 0, reordering: 0 };
    let rough = Weather { loss: 20, duplication: 30, reordering: 30 };
    let mut frames = 0;
    for seed in 1..=12 {
        for kind in Kind::ALL {
            for delivery in [Delivery::AccessUnit, Delivery::Unit] {
                for (weather, odd) in [(calm, 0), (calm, 60), (rough, 0), (rough, 60)] {
                    let suite = SUITES[seed as usize % 2];
                    frames += compare(kind, delivery, suite, weather, odd, seed);
                }
            }
        }
    }
    assert!(frames > 1000, "{frames}");
}
