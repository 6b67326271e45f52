//! Capture times in header extensions, over networks that lose and reorder, clear and secured.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod world;

use std::time::Duration;

use ends::master;
use rushes_netsim::Path;
use rushes_proto::payload::Delivery;
use rushes_proto::repair::RequestTiming;
use rushes_proto::rtp::{CaptureTime, ExtensionKind, ExtensionMap, Packet};
use rushes_proto::srtp::{ExtensionIds, Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{Receiver, Retransmission, Sender, SenderConfig, SentSoFar};
use rushes_proto::{Batch, FrameRate, NtpTime, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC, Seeded, Source, arrivals, path, sources};

const LEN_MAX: usize = 300;
const FIRST: RtpTimestamp = RtpTimestamp(90);

fn map(kind: ExtensionKind, id: u8) -> ExtensionMap {
    ExtensionMap::default().with(kind, id).unwrap()
}

fn sender(kind: Kind, extensions: ExtensionMap) -> Sender {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(100),
        first_timestamp: FIRST,
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: LEN_MAX,
    };
    Sender::new(format.packetiser(), config).unwrap().with_extensions(extensions)
}

/// The wall clock when the stream begins; with bits that only 64 of them show.
const BEGIN: NtpTime = NtpTime(0x1234_5678_9abc_def0);

/// Returns when frame `n` was captured: at times that its timestamp does not show. Every fifth
/// frame has no capture time.
fn captured(n: usize, kind: ExtensionKind) -> Option<CaptureTime> {
    let ntp = NtpTime(BEGIN.0 + (n as u64 * 0x0123_4567_89ab));
    let clock_offset = (kind == ExtensionKind::AbsCaptureTime && n.is_multiple_of(2)).then_some(-5);
    (n % 5 != 4).then_some(CaptureTime { ntp, clock_offset })
}

/// Sends the frames of `sources`; returns the datagrams of each.
fn send(
    sender: &mut Sender,
    batch: &mut Batch,
    sources: &[Source],
    kind: ExtensionKind,
) -> Vec<Vec<Vec<u8>>> {
    let one = |(n, source): (usize, &Source)| {
        let mut outgoing = sender.push_captured(&source.frame, None, captured(n, kind)).unwrap();
        let mut sent = Vec::new();
        while outgoing.fill(batch) {
            sent.extend(batch.datagrams().map(<[u8]>::to_vec));
        }
        sent
    };
    sources.iter().enumerate().map(one).collect()
}

/// Returns the number of the frame with this timestamp.
fn number(timestamp: RtpTimestamp, kind: Kind) -> usize {
    (timestamp.distance(FIRST).unsigned_abs() / kind.ticks(40)) as usize
}

/// Sends a stream over `path`; returns the number of frames that came with their capture times.
fn deliver(
    kind: Kind,
    delivery: Delivery,
    (element, id): (ExtensionKind, u8),
    path: &Path,
) -> usize {
    let mut random = Seeded(u64::from(id) + kind as u64);
    let sources = sources(kind, 40, 1500, &mut random);
    let mut sender = sender(kind, map(element, id));
    let sent = send(&mut sender, &mut Batch::new(), &sources, element);
    let mut listener =
        Listener::with(kind, delivery, |config| config.extensions = map(element, id));
    let host = std::net::SocketAddr::from(([192, 0, 2, 1], 5004));
    let report = SentSoFar { packets: 0, at: FIRST, ntp: NtpTime(BEGIN.0 - 7) };
    listener.receiver.handle_report(listener.epoch, SSRC, host.ip(), Some(report));
    let packets = sent.concat();
    for (time, n) in arrivals(packets.iter().map(Vec::len), path, &mut random) {
        let now = listener.epoch + time;
        listener.receiver.handle_timeout(now);
        listener.receiver.handle_datagram_from(now, Some(host), &packets[n]);
    }
    while let Some(due) = listener.receiver.poll_timeout() {
        listener.receiver.handle_timeout(due);
    }
    let frames: Vec<_> = std::iter::from_fn(|| listener.receiver.poll_frame()).collect();
    let mut with_time = 0;
    for frame in &frames {
        let expected = captured(number(frame.timestamp(), kind), element);
        // With a lost packet before it, a unit alone may come without the time of its frame.
        let is_alone = delivery == Delivery::Unit && frame.capture_time().is_none();
        assert!(frame.capture_time() == expected || is_alone, "{kind:?} {element:?} {id}");
        with_time += usize::from(frame.capture_time().is_some());
    }
    assert_eq!(listener.receiver.statistics().extensions_malformed, 0);
    with_time
}

#[test]
fn every_frame_comes_with_its_own_capture_time() {
    let (calm, rough) = (Path::default(), path(0.01, 0.02, 0.03));
    let elements = [
        (ExtensionKind::AbsCaptureTime, 1),
        (ExtensionKind::AbsCaptureTime, 200),
        (ExtensionKind::Ntp64, 14),
        (ExtensionKind::Ntp64, 16),
        (ExtensionKind::Ntp56, 3),
        (ExtensionKind::Ntp56, 255),
    ];
    for kind in Kind::ALL {
        for element in elements {
            for delivery in [Delivery::AccessUnit, Delivery::Unit] {
                let with_time = deliver(kind, delivery, element, &calm);
                assert!(with_time >= 32, "{kind:?} {delivery:?} {element:?} {with_time}");
                let with_time = deliver(kind, delivery, element, &rough);
                assert!(with_time >= 10, "{kind:?} {delivery:?} {element:?} {with_time}");
            }
        }
    }
}

#[test]
fn only_the_first_packet_of_a_frame_carries_it_and_none_is_too_long() {
    let mut random = Seeded(8);
    for kind in Kind::ALL {
        let sources = sources(kind, 40, 3000, &mut random);
        let element = ExtensionKind::AbsCaptureTime;
        let sent = send(&mut sender(kind, map(element, 5)), &mut Batch::new(), &sources, element);
        for (n, packets) in sent.iter().enumerate() {
            for (place, packet) in packets.iter().enumerate() {
                let has_one = Packet::parse(packet).unwrap().extension().is_some();
                assert!(has_one == (place == 0 && n % 5 != 4) && packet.len() <= LEN_MAX);
            }
        }
    }
}

#[test]
fn a_stream_without_extensions_is_the_same_with_and_without_capture_times() {
    let sources = sources(Kind::H265, 20, 3000, &mut Seeded(9));
    let element = ExtensionKind::Ntp64;
    let mut plain = sender(Kind::H265, ExtensionMap::default());
    let sent = send(&mut plain, &mut Batch::new(), &sources, element);
    let expected = world::send(Kind::H265, &sources, LEN_MAX, (SequenceNumber(100), FIRST));
    assert!(sent.concat().iter().eq(expected.iter().map(|datagram| &datagram.octets)));
}

#[test]
fn interleaved_units_keep_the_capture_times_of_their_frames() {
    for kind in [Kind::H265Interleaved, Kind::H266Interleaved] {
        let mut random = Seeded(10);
        let sources = sources(kind, 40, 1500, &mut random);
        let mut datagrams = world::send(kind, &sources, LEN_MAX, (SequenceNumber(1), FIRST));
        let map = map(ExtensionKind::Ntp64, 5);
        let mut last = None;
        for datagram in &mut datagrams {
            if last.replace(datagram.frame) != Some(datagram.frame) {
                let capture = captured(datagram.frame, ExtensionKind::Ntp64);
                let mut data = vec![0xbe, 0xde, 0, 3];
                let Some(capture) = capture else { continue };
                map.write(capture, &mut data).unwrap();
                datagram.octets[0] |= 0x10;
                datagram.octets.splice(12..12, data);
            }
        }
        // Fragments are found by their first octets, so packets with an extension keep their places.
        let mut listener =
            Listener::with(kind, Delivery::AccessUnit, |config| config.extensions = map);
        for (n, datagram) in datagrams.iter().enumerate() {
            listener.take(Duration::from_micros(100) * n as u32, &datagram.octets);
        }
        listener.receiver.handle_bye(listener.epoch, SSRC, std::net::IpAddr::from([0, 0, 0, 0]));
        listener.finish();
        assert!(listener.frames.len() >= 30, "{}", listener.frames.len());
        for frame in &listener.frames {
            let n = number(frame.timestamp(), kind);
            assert_eq!(frame.capture_time(), captured(n, ExtensionKind::Ntp64), "{kind:?} {n}");
        }
    }
}

/// Returns all ways to protect a header extension with element 5.
fn policies() -> Vec<Option<Policy>> {
    let encrypted_extensions = ExtensionIds::new(&[5]);
    let mut policies = vec![None];
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AesCm256HmacSha1_80, Suite::AeadAes128Gcm] {
        let plain = Policy::new(suite);
        policies.push(Some(plain));
        policies.push(Some(Policy { encrypted_extensions, ..plain }));
        policies.push(Some(Policy { cryptex: true, ..plain }));
    }
    policies
}

/// Returns whether `packet` shows the octets of its frame's capture time.
fn shows(packet: &[u8], capture: CaptureTime) -> bool {
    packet.windows(8).any(|octets| octets == capture.ntp.0.to_be_bytes())
}

#[test]
fn retransmissions_carry_it_and_encryption_hides_it() {
    let rtx = Retransmission::Rtx {
        payload_type: PayloadType::OPUS,
        ssrc: Ssrc(8),
        first_sequence: SequenceNumber(5),
    };
    for policy in policies() {
        for way in [Retransmission::Verbatim, rtx] {
            let (kind, element) = (Kind::H265, ExtensionKind::AbsCaptureTime);
            let sources = sources(kind, 20, 2000, &mut Seeded(11));
            let mut sender = sender(kind, map(element, 5)).with_history(1000, way);
            let mut listener = Listener::with(kind, Delivery::AccessUnit, |config| {
                config.extensions = map(element, 5);
                (config.probation, config.remote_ssrc) = (1, Some(SSRC));
                config.requests = Some(RequestTiming::default());
                config.retransmission = (way == rtx).then_some((PayloadType::OPUS, Some(Ssrc(8))));
            });
            if let Some(policy) = &policy {
                let key = master(policy.suite, 7, &[]);
                sender = sender.secured(Protector::new(policy, &key).unwrap()).unwrap();
                listener.receiver =
                    listener.receiver.secured(Unprotector::new(policy, &key).unwrap());
            }
            let (mut batch, mut again) = (Batch::with_history(1 << 20), Batch::new());
            let sent = send(&mut sender, &mut batch, &sources, element);
            let is_hidden = policy
                .is_some_and(|policy| policy.cryptex || policy.encrypted_extensions.contains(5));
            for (n, packets) in sent.iter().enumerate() {
                if let Some(capture) = captured(n, element) {
                    assert_eq!(shows(&packets[0], capture), !is_hidden, "{policy:?}");
                }
            }
            let now = listener.epoch;
            // The first packets of all frames are lost, except of the first and of the last one.
            let mut sequence = SequenceNumber(100);
            let mut lost = Vec::new();
            for (n, packets) in sent.iter().enumerate() {
                for (place, packet) in packets.iter().enumerate() {
                    if n > 0 && n + 1 < sent.len() && place == 0 {
                        lost.push(sequence);
                    } else {
                        listener.receiver.handle_datagram(now, packet);
                    }
                    sequence = sequence.plus(1);
                }
            }
            for sequence in lost {
                again.clear();
                let written = sender.retransmit(now, sequence, &batch, &mut again);
                assert_eq!(written, Ok(true), "{policy:?} {way:?}");
                take_all(&mut listener.receiver, now, &again);
            }
            // Packets before the first one, which may be missing, are no longer waited for.
            listener.receiver.flush();
            let frames: Vec<_> = std::iter::from_fn(|| listener.receiver.poll_frame()).collect();
            assert_eq!(frames.len(), 20, "{policy:?} {way:?}");
            for (n, frame) in frames.iter().enumerate() {
                assert_eq!(frame.data(), sources[n].delivered(kind), "{policy:?} {way:?}");
                assert_eq!(frame.capture_time(), captured(n, element), "{policy:?} {way:?}");
            }
        }
    }
}

fn take_all(receiver: &mut Receiver, now: std::time::Instant, batch: &Batch) {
    for datagram in batch.datagrams() {
        receiver.handle_datagram(now, datagram);
    }
}

#[test]
fn a_malformed_extension_costs_no_frame_and_is_counted() {
    let mut random = Seeded(12);
    let mut malformed = 0;
    for kind in Kind::ALL {
        let sources = sources(kind, 40, 1500, &mut random);
        let mut packets = world::send(kind, &sources, LEN_MAX, (SequenceNumber(1), FIRST));
        for packet in &mut packets {
            let profile = [[0xbe, 0xde], [0x10, 0x05], [0x12, 0x34]][random.below(3) as usize];
            let words = random.below(6) as usize;
            let data = (0..4 * words).map(|_| random.roll() as u8 >> random.below(8));
            let extension = [&profile[..], &[0, words as u8], &data.collect::<Vec<_>>()].concat();
            packet.octets[0] |= 0x10;
            packet.octets.splice(12..12, extension);
        }
        let all = (1..).zip(ExtensionKind::ALL);
        let map = all.fold(ExtensionMap::default(), |map, (id, kind)| map.with(kind, id).unwrap());
        let mut listener =
            Listener::with(kind, Delivery::AccessUnit, |config| config.extensions = map);
        for (n, packet) in packets.iter().enumerate() {
            listener.take(Duration::from_micros(100) * n as u32, &packet.octets);
        }
        listener.finish();
        // The last frame of a numbered stream waits for the numbers of the next.
        let whole = if kind.is_numbered() { 39 } else { 40 };
        assert!(listener.frames.len() >= whole, "{kind:?} {}", listener.frames.len());
        malformed += listener.receiver.statistics().extensions_malformed;
    }
    assert!(malformed > 100, "{malformed}");
}
