//! The fast path has the effects of the ordinary path: one receiver handles datagrams in runs,
//! which use it, another one by one, which do not. Both are equal after every run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_netsim::{Conditions, Path};
use rushes_proto::payload::{Delivery, Frame, Framing};
use rushes_proto::repair::RequestTiming;
use rushes_proto::rtp::CaptureTime;
use rushes_proto::stream::{Event, ReceiverConfig};
use rushes_proto::{Ecn, RtpTimestamp, SequenceNumber, Ssrc};
use world::{Kind, Listener, Seeded, arrivals, extend, extensions, path, send, sources};

const MS: Duration = Duration::from_millis(1);

/// A frame: its octets, timestamp, units, marker and capture time.
type Delivered = (Vec<u8>, RtpTimestamp, u32, bool, Option<CaptureTime>);

/// The outcome: frames, events, requests and counters.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    frames: Vec<Delivered>,
    events: Vec<String>,
    /// The requested packets, and the reported arrival times.
    asked: Vec<SequenceNumber>,
    arrived: Vec<Option<Duration>>,
    counted: String,
}

impl Outcome {
    fn drain(&mut self, listener: &mut Listener, now: Instant) {
        let receiver = &mut listener.receiver;
        while receiver.poll_requests(now, &mut self.asked).is_some() {}
        let mut arrived = Vec::new();
        while receiver.poll_arrivals(&mut arrived).is_some() {}
        let since = |seen: Option<(Instant, Ecn)>| seen.map(|(at, _)| at - listener.epoch);
        self.arrived.extend(arrived.into_iter().map(since));
        let one = |frame: Frame| {
            let capture = frame.capture_time();
            (frame.to_vec(), frame.timestamp(), frame.units(), frame.marker(), capture)
        };
        self.frames.extend(std::iter::from_fn(|| receiver.poll_frame()).map(one));
        let told = |event: Event| format!("{event:?}");
        self.events.extend(std::iter::from_fn(|| receiver.poll_event()).map(told));
    }

    fn finish(&mut self, listener: &mut Listener, now: Instant) {
        while let Some(due) = listener.receiver.poll_timeout() {
            listener.receiver.handle_timeout(due);
        }
        self.drain(listener, now);
        self.count(listener);
    }

    fn count(&mut self, listener: &Listener) {
        let statistics = listener.receiver.statistics();
        self.counted = format!(
            "{:?}",
            (
                statistics.packets,
                statistics.payload_octets,
                statistics.packets_lost,
                statistics.frames,
                statistics.frames_dropped,
                statistics.reordered,
                statistics.discards,
                statistics.extensions_malformed,
                statistics
                    .sources
                    .iter()
                    .map(|source| (source.received, source.highest, source.jitter))
                    .collect::<Vec<_>>(),
            )
        );
    }
}

/// Changes a packet into one that its sender would not have made.
fn disturb(packet: &mut Vec<u8>, random: &mut Seeded) {
    let at = random.below(16) as usize;
    match random.below(5) {
        0 => packet[1] ^= 0x80,
        1 => packet.truncate(at),
        2 => packet[0] ^= 0x20,
        3 => packet[8 + at % 4] ^= 1,
        _ if at < packet.len() => packet[at] = random.below(256) as u8,
        _ => {}
    }
}

/// Adds padding to a packet, with a wrong count if `is_odd`.
fn pad(packet: &mut Vec<u8>, is_odd: bool, random: &mut Seeded) {
    let len = if random.chance(0.3) { 1 } else { 1 + random.below(40) as usize };
    packet.resize(packet.len() + len, 0);
    packet[0] |= 0x20;
    let count = if is_odd { [0, 255, 3][random.below(3) as usize] } else { len as u8 };
    *packet.last_mut().unwrap() = count;
}

/// Sets the start bit in the fragments of three consecutive packets.
fn begin_again(kind: Kind, packets: &mut [Vec<u8>], random: &mut Seeded) {
    let at = 4 + random.below(packets.len() as u64 - 8) as usize;
    let header = if kind == Kind::H264 { 13 } else { 14 };
    for packet in &mut packets[at..at + 3] {
        if let Some(octet) = packet.get_mut(header) {
            *octet = *octet & 0x3f | 0x80;
        }
    }
}

/// Moves the payload into a PACI packet (RFC 7798 section 4.4.4).
fn wrap(packet: &mut Vec<u8>) {
    let (first, second) = (packet[12], packet[13]);
    let head = [50 << 1 | first & 1, second, first & 0xfe, 0];
    packet.splice(12..14, head);
}

/// Returns the packets of a stream, each disturbed with probability `odd`.
fn sent(kind: Kind, odd: f64, seed: u64, random: &mut Seeded) -> Vec<Vec<u8>> {
    let first = (SequenceNumber(65_500), RtpTimestamp(9));
    let mut packets: Vec<Vec<u8>> = send(kind, &sources(kind, 20, 5020, random), 300, first)
        .into_iter()
        .map(|datagram| datagram.octets)
        .collect();
    if odd > 0.0 && kind.has_nal_units() && seed.is_multiple_of(2) {
        begin_again(kind, &mut packets, random);
    }
    if odd == 0.0 && matches!(kind, Kind::H265 | Kind::H265Numbered) && seed.is_multiple_of(2) {
        packets.iter_mut().for_each(wrap);
    }
    for packet in packets.iter_mut().filter(|_| seed % 3 < 2) {
        if random.chance(0.3) {
            let is_odd = random.chance(odd);
            pad(packet, is_odd, random);
        }
    }
    for packet in packets.iter_mut().skip(4) {
        if random.chance(odd) {
            disturb(packet, random);
        }
    }
    // Header extensions in a few packets of each frame, wherever they are.
    for packet in packets.iter_mut().filter(|_| seed % 4 < 2) {
        if random.chance(0.2) {
            let is_odd = random.chance(odd);
            extend(packet, is_odd, random);
        }
    }
    packets
}

/// Compares two receivers of the same datagrams; returns the number of frames, and of those with a
/// capture time.
fn compare(kind: Kind, delivery: Delivery, path: &Path, odd: f64, seed: u64) -> (usize, usize) {
    let mut random = Seeded(seed);
    let packets = sent(kind, odd, seed, &mut random);
    let own = Ssrc(u32::from_be_bytes(packets[0][8..12].try_into().unwrap()));
    let homes = [5004, 5006].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
    let adjust = |config: &mut ReceiverConfig| {
        config.extensions = extensions();
        config.arrivals = true;
        config.requests = seed.is_multiple_of(3).then(RequestTiming::default);
        if seed.is_multiple_of(5) {
            config.frame.frame_len_max = 6000;
        }
        if seed % 3 == 1 && kind.has_nal_units() {
            config.frame.framing = Framing::LengthPrefixed;
        }
    };
    let mut listeners = [(); 2].map(|()| Listener::with(kind, delivery, adjust));
    let mut outcomes = [(); 2].map(|()| Outcome::default());
    let order = arrivals(packets.iter().map(Vec::len), path, &mut random);
    let order: Vec<usize> = order.into_iter().map(|(_, n)| n).collect();
    let (mut rest, mut run) = (&order[..], 0);
    while !rest.is_empty() {
        let len = (1 + random.below(16) as usize).min(rest.len());
        let (now_taken, later) = rest.split_at(len);
        let from = homes[usize::from(random.chance(odd))];
        for (listener, outcome) in listeners.iter_mut().zip(&mut outcomes) {
            // A collision with our own SSRC occurs in the middle of the stream.
            if odd > 0.0 && run == 30 && seed.is_multiple_of(4) {
                listener.receiver.set_own_ssrc(own);
            }
            let now = listener.epoch + MS * run;
            listener.receiver.handle_timeout(now);
            outcome.drain(listener, now);
        }
        let [one_by_one, in_runs] = &mut listeners;
        for n in now_taken {
            let now = one_by_one.epoch + MS * run;
            one_by_one.receiver.handle_datagram_from(now, Some(from), &packets[*n]);
        }
        let mut copies: Vec<Vec<u8>> = now_taken.iter().map(|n| packets[*n].clone()).collect();
        let mut views: Vec<&mut [u8]> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
        in_runs.receiver.handle_datagrams(in_runs.epoch + MS * run, from, &mut views);
        for (listener, outcome) in listeners.iter_mut().zip(&mut outcomes) {
            let now = listener.epoch + MS * run;
            outcome.drain(listener, now);
            outcome.count(listener);
        }
        assert_eq!(outcomes[0], outcomes[1], "{kind:?} {delivery:?} {path:?} {odd} {seed}");
        (rest, run) = (later, run + 1);
    }
    for (listener, outcome) in listeners.iter_mut().zip(&mut outcomes) {
        outcome.finish(listener, listener.epoch + MS * run);
    }
    assert_eq!(outcomes[0], outcomes[1], "{kind:?} {delivery:?} {path:?} {odd} {seed}");
    let frames = &outcomes[0].frames;
    (frames.len(), frames.iter().filter(|(.., capture)| capture.is_some()).count())
}

#[test]
fn runs_have_the_same_result_as_datagrams_one_by_one() {
    let (calm, rough) = (Path::default(), path(0.02, 0.03, 0.03));
    let (mut frames, mut captured) = (0, 0);
    for seed in 1..=16 {
        for kind in Kind::ALL {
            for delivery in [Delivery::AccessUnit, Delivery::Unit] {
                let wild = Conditions::random(seed).there.path;
                let paths =
                    [(&calm, 0.0), (&calm, 0.06), (&rough, 0.0), (&rough, 0.06), (&wild, 0.0)];
                for (path, odd) in paths {
                    let (all, with_time) = compare(kind, delivery, path, odd, seed);
                    (frames, captured) = (frames + all, captured + with_time);
                }
            }
        }
    }
    assert!(frames > 1000 && captured > 1000, "{frames} {captured}");
}
