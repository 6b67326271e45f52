//! The fast path of protected packets has the effects of the ordinary path: one receiver handles
//! clear packets one by one, another the same packets protected. Both are equal after every packet.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod world;

use std::collections::HashSet;
use std::fmt::Debug;

use ends::master;
use rushes_netsim::{Conditions, Path};
use rushes_proto::payload::{Delivery, Frame};
use rushes_proto::rtp::{CaptureTime, Packet};
use rushes_proto::srtp::{Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{Discard, ReceiverConfig, SourceStatistics};
use rushes_proto::{RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, Seeded, arrivals, extend, extensions, path, send, sources};

const SUITES: [Suite; 2] = [Suite::AeadAes128Gcm, Suite::AeadAes256Gcm];

/// Changes a clear packet into one that its sender would not have made, before it is protected.
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

/// Adds padding to a clear packet, with a wrong count if `is_odd`.
fn pad(packet: &mut Vec<u8>, is_odd: bool, random: &mut Seeded) {
    let len = if random.chance(0.3) { 1 } else { 1 + random.below(40) as usize };
    packet.resize(packet.len() + len, 0);
    packet[0] |= 0x20;
    let count = if is_odd { [0, 255, 3][random.below(3) as usize] } else { len as u8 };
    *packet.last_mut().unwrap() = count;
}

/// A frame: its octets, timestamp, units, marker and capture time.
type Delivered = (Vec<u8>, RtpTimestamp, u32, bool, Option<CaptureTime>);

fn frames(listener: &Listener) -> Vec<Delivered> {
    let frames = listener.frames.iter();
    let one = |frame: &Frame| {
        let capture = frame.capture_time();
        (frame.to_vec(), frame.timestamp(), frame.units(), frame.marker(), capture)
    };
    frames.map(one).collect()
}

/// Returns the receiver's counters, except those of forged packets.
fn counters(listener: &Listener) -> impl PartialEq + Debug {
    let all = listener.receiver.statistics();
    let of_sources = |source: &SourceStatistics| {
        let SourceStatistics { received, expected, highest, jitter, last_heard, .. } = *source;
        (received, expected, highest, jitter, last_heard - listener.epoch)
    };
    (
        [all.packets, all.payload_octets, all.packets_lost, all.frames_dropped, all.reordered],
        [all.frames, all.extensions_malformed],
        all.sources.iter().map(of_sources).collect::<Vec<_>>(),
    )
}

/// Passes the same packets to both receivers, and also forged ones to the secured receiver; returns
/// the number of frames delivered.
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
        if seed % 3 < 2 && random.chance(0.3) {
            let is_odd = n > 4 && random.chance(odd);
            pad(&mut clear, is_odd, &mut random);
        }
        if n > 4 && random.chance(odd) {
            disturb(&mut clear, &mut random);
        }
        if seed % 4 < 2 && random.chance(0.2) {
            let is_odd = random.chance(odd);
            extend(&mut clear, is_odd, &mut random);
        }
        let mut protected = clear.clone();
        protector.protect(&mut protected).unwrap();
        (clear, protected)
    });
    let packets: Vec<(Vec<u8>, Vec<u8>)> = packets.collect();
    let adjust = |config: &mut ReceiverConfig| {
        (config.probation, config.extensions) = (1, extensions());
    };
    let mut plain = Listener::with(kind, delivery, adjust);
    let mut secured = Listener::with(kind, delivery, adjust);
    let unprotector = Unprotector::new(&policy, &key).unwrap();
    secured.receiver = secured.receiver.secured(unprotector);
    let mut forged = 0;
    let mut arrived = HashSet::new();
    let lens = packets.iter().map(|(_, protected)| protected.len());
    for (time, arrival) in arrivals(lens, path, &mut random) {
        let (clear, protected) = &packets[arrival];
        let is_new = arrived.insert(arrival);
        if is_new && random.chance(0.1) {
            let mut forgery = protected.clone();
            // Behind the header: with another length of its extension it would be no RTP packet.
            let mut unpadded = protected.clone();
            unpadded[0] &= !0x20;
            let behind = Packet::parse(&unpadded).unwrap().payload().len() as u64;
            let at = forgery.len() - 1 - random.below(behind) as usize;
            forgery[at] ^= 1 << random.below(8);
            secured.take(time, &forgery);
            forged += 1;
        }
        // A duplicate is refused as a replay, and is in no other counter.
        if is_new {
            plain.take(time, clear);
        }
        secured.take(time, protected);
        let what = format_args!("{kind:?} {delivery:?} {suite} {seed}");
        assert_eq!(counters(&plain), counters(&secured), "{what}");
    }
    plain.finish();
    secured.finish();
    assert_eq!(frames(&plain), frames(&secured), "{kind:?} {delivery:?} {suite} {seed}");
    let discards = secured.receiver.statistics().discards;
    assert_eq!(discards.get(Discard::Authentication), forged, "{kind:?} {suite} {seed}");
    plain.frames.len()
}

#[test]
fn a_secured_receiver_delivers_the_same_as_a_clear_one() {
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
