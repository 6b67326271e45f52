//! The sources accepted: strangers neither exclude one nor occupy memory, and sources end.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::payload::Delivery;
use rushes_proto::payload::generic::Generic;
use rushes_proto::repair::RequestTiming;
use rushes_proto::rtp::Header;
use rushes_proto::stream::{Discard, Event, Receiver, ReceiverConfig};
use rushes_proto::{ClockRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};
use world::{Kind, Listener};

const MS: Duration = Duration::from_millis(1);
const RTX: PayloadType = PayloadType::OPUS;

struct Case {
    receiver: Receiver,
    now: Instant,
}

/// One packet of a source.
#[derive(Clone, Copy)]
struct Sent<'a> {
    from: SocketAddr,
    ssrc: u32,
    sequence: u16,
    time: u32,
    marker: bool,
    payload: &'a [u8],
}

fn host(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n], 5004))
}

impl Case {
    fn new(adjust: impl FnOnce(&mut ReceiverConfig)) -> Self {
        let mut config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
        adjust(&mut config);
        let receiver = Receiver::new(Arc::new(Generic::default()), config).unwrap();
        Self { receiver, now: Listener::new(Kind::Generic, Delivery::AccessUnit).epoch }
    }

    fn take(&mut self, sent: Sent<'_>) {
        self.take_type(PayloadType::GENERIC, sent);
    }

    fn take_type(&mut self, payload_type: PayloadType, sent: Sent<'_>) {
        let Sent { from, ssrc, sequence, time, marker, payload } = sent;
        let sequence = SequenceNumber(sequence);
        let mut header = Header::new(payload_type, sequence, RtpTimestamp(time), Ssrc(ssrc));
        header.marker = marker;
        let mut datagram = vec![0; 12];
        header.write(&mut datagram).unwrap();
        datagram.extend_from_slice(payload);
        self.receiver.handle_timeout(self.now);
        self.receiver.handle_datagram_from(self.now, Some(from), &datagram);
    }

    /// Sends two frames of one packet each, which end the probation.
    fn greet(&mut self, from: SocketAddr, ssrc: u32, sequence: u16) {
        for n in 0..2 {
            let sequence = sequence.wrapping_add(n);
            let time = 3000 * u32::from(sequence);
            self.take(Sent { from, ssrc, sequence, time, marker: true, payload: b"hello" });
        }
    }

    fn arrived(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::iter::from_fn(|| self.receiver.poll_frame())
            .map(|frame| (frame.ssrc().0, frame.to_vec()))
            .collect()
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.receiver.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.receiver.handle_timeout(self.now);
        }
        self.now = end;
        self.receiver.handle_timeout(end);
    }

    fn ended(&mut self) -> Vec<u32> {
        let events = std::iter::from_fn(|| self.receiver.poll_event());
        events
            .filter_map(|event| match event {
                Event::SourceEnded { ssrc } => Some(ssrc.0),
                _ => None,
            })
            .collect()
    }
}

#[test]
fn sixteen_sources_heard_once_do_not_exclude_the_camera() {
    let mut case = Case::new(|_| {});
    for ssrc in 0..16 {
        case.greet(host(66), ssrc, 0);
    }
    case.pass(3000 * MS);
    case.arrived();
    case.greet(host(1), 1000, 7);
    assert_eq!(case.arrived().len(), 2);
    assert_eq!(case.receiver.statistics().discards.get(Discard::TooManySources), 0);
}

#[test]
fn a_source_whose_media_or_reports_are_live_keeps_its_place() {
    let mut case = Case::new(|config| config.sources_max = 2);
    case.greet(host(1), 1, 0);
    case.greet(host(2), 2, 0);
    for n in 0..100_u16 {
        case.pass(100 * MS);
        let time = 9000 * u32::from(n + 2);
        let sequence = n + 2;
        case.take(Sent { from: host(1), ssrc: 1, sequence, time, marker: true, payload: b"x" });
        if n % 40 == 0 {
            case.receiver.handle_report(case.now, Ssrc(2), host(2).ip(), None);
        }
        case.greet(host(66), 100 + u32::from(n), 0);
    }
    case.arrived();
    let sources: Vec<u32> =
        case.receiver.statistics().sources.iter().map(|source| source.ssrc.0).collect();
    assert_eq!(sources, [1, 2]);
    // Reports under its SSRC from another host do not keep it alive.
    case.pass(10_000 * MS);
    case.receiver.handle_report(case.now, Ssrc(2), host(66).ip(), None);
    case.pass(15_000 * MS);
    case.receiver.handle_report(case.now, Ssrc(2), host(66).ip(), None);
    case.pass(15_000 * MS);
    case.greet(host(3), 3, 0);
    assert_eq!(case.arrived().len(), 2);
}

#[test]
fn a_source_ends_after_silence() {
    let mut case = Case::new(|config| config.source_timeout = 5000 * MS);
    case.greet(host(1), 1, 0);
    assert_eq!(case.ended(), []);
    case.pass(4999 * MS);
    assert_eq!(case.ended(), []);
    case.pass(2 * MS);
    assert_eq!(case.ended(), [1]);
    let statistics = case.receiver.statistics();
    assert_eq!((statistics.sources.len(), statistics.frames), (0, 2));
    assert_eq!(statistics.ended.len(), 1);
}

#[test]
fn a_source_ends_after_its_goodbye_and_late_packets_do_not_bring_it_back() {
    let mut case = Case::new(|_| {});
    case.greet(host(1), 1, 100);
    case.receiver.handle_bye(case.now, Ssrc(1), host(1).ip());
    // Packets under way at the time of the BYE still arrive.
    let next = Sent {
        from: host(1),
        ssrc: 1,
        sequence: 102,
        time: 3000 * 102,
        marker: true,
        payload: b"last",
    };
    case.take(next);
    assert_eq!(case.arrived().len(), 3);
    case.pass(1000 * MS);
    assert_eq!(case.ended(), [1]);
    case.greet(host(1), 1, 100);
    assert_eq!(case.arrived(), []);
    assert_eq!(case.receiver.statistics().discards.get(Discard::Late), 2);
    case.greet(host(1), 1, 103);
    assert_eq!(case.arrived().len(), 2);
}

#[test]
fn unfinished_frames_of_strangers_are_bounded_together_and_in_time() {
    const FRAME: usize = 1 << 20;
    let mut case = Case::new(|config| {
        config.frame.frame_len_max = FRAME;
        config.memory_max = 2 * FRAME;
    });
    case.greet(host(1), 1000, 0);
    case.arrived();
    let piece = vec![7; 1300];
    for step in 0..700_u16 {
        for ssrc in 0..15_u32 {
            let sent = Sent {
                from: host(66),
                ssrc,
                sequence: step,
                time: 0,
                marker: false,
                payload: &piece,
            };
            case.take(sent);
        }
        // The camera sends frames of 100 packets during the flood.
        let time = 1_000_000 + 3000 * u32::from(step / 100);
        let marker = step % 100 == 99;
        let sent =
            Sent { from: host(1), ssrc: 1000, sequence: step + 2, time, marker, payload: &piece };
        case.take(sent);
        let held = case.receiver.statistics().held_octets;
        assert!(held <= 2 * FRAME + (64 << 10), "{held} octets held");
    }
    assert_eq!(case.arrived().iter().filter(|(ssrc, _)| *ssrc == 1000).count(), 7);
    case.pass(5000 * MS);
    let held = case.receiver.statistics().held_octets;
    assert!(held <= 64 << 10, "{held} octets held");
}

#[test]
fn retransmissions_are_taken_from_the_address_of_the_media_only() {
    let mut case = Case::new(|config| {
        config.requests = Some(RequestTiming::default());
        config.retransmission = Some((RTX, None));
    });
    case.greet(host(1), 1, 0);
    let sent =
        Sent { from: host(1), ssrc: 1, sequence: 3, time: 9000, marker: true, payload: b"third" };
    case.take(sent);
    case.arrived();
    let again =
        |from, payload| Sent { from, ssrc: 77, sequence: 0, time: 6000, marker: true, payload };
    case.take_type(RTX, again(host(66), b"\0\x02forged"));
    assert_eq!(case.arrived(), []);
    case.take_type(RTX, again(host(1), b"\0\x02second"));
    let arrived: Vec<_> = case.arrived().into_iter().map(|(_, frame)| frame).collect();
    assert_eq!(arrived, [&b"second"[..], b"third"]);
}

#[test]
fn a_source_that_sends_its_stream_once_more_after_its_goodbye_is_followed() {
    let mut case = Case::new(|_| {});
    let play = |case: &mut Case| {
        for n in 0..100_u16 {
            let time = 3000 * u32::from(n);
            case.take(Sent {
                from: host(1),
                ssrc: 1,
                sequence: n,
                time,
                marker: true,
                payload: b"x",
            });
        }
        case.arrived().len()
    };
    assert_eq!(play(&mut case), 100);
    case.receiver.handle_bye(case.now, Ssrc(1), host(1).ip());
    case.pass(3000 * MS);
    assert!(play(&mut case) > 30);
}
