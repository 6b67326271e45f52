//! Late packets, duplicates and restarts: each packet has one verdict, however late it is.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_proto::payload::Delivery;
use rushes_proto::rtp::Header;
use rushes_proto::stream::{Discard, Event, ReceiverConfig};
use rushes_proto::{RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC};

const MS: Duration = Duration::from_millis(1);

/// A listener without probation, for units of one packet each, 3 ms apart.
struct Case {
    listener: Listener,
    clock: Duration,
}

impl Case {
    fn new(adjust: impl FnOnce(&mut ReceiverConfig)) -> Self {
        let listener = Listener::with(Kind::H265, Delivery::Unit, |config| {
            config.probation = 1;
            adjust(config);
        });
        Self { listener, clock: Duration::ZERO }
    }

    /// Receives packet `number` of a stream whose timestamps follow its sequence numbers.
    fn take(&mut self, number: u32) {
        self.take_at(number, 270 * number);
    }

    fn take_at(&mut self, number: u32, timestamp: u32) {
        self.clock += 3 * MS;
        let sequence = SequenceNumber(number as u16);
        let header = Header::new(PAYLOAD_TYPE, sequence, RtpTimestamp(timestamp), SSRC);
        let mut datagram = vec![0; 12];
        header.write(&mut datagram).unwrap();
        let [a, b, c, d] = number.to_be_bytes();
        datagram.extend_from_slice(&[0x02, 0x01, 0x80, a, b, c, d]);
        self.listener.take(self.clock, &datagram);
    }

    /// Removes the units delivered so far, and returns their numbers.
    fn arrived(&mut self) -> Vec<u32> {
        let frames = self.listener.frames.drain(..);
        frames.map(|frame| u32::from_be_bytes(*frame[7..].first_chunk().unwrap())).collect()
    }

    fn lost(&self) -> u64 {
        self.listener.receiver.statistics().packets_lost
    }

    fn discards(&self, reason: Discard) -> u64 {
        self.listener.receiver.statistics().discards.get(reason)
    }
}

#[test]
fn two_neighbouring_packets_far_behind_are_late_and_no_jump() {
    let mut case = Case::new(|_| {});
    (1000..1400).filter(|n| !(1100..1104).contains(n)).for_each(|n| case.take(n));
    case.arrived();
    for late in 1100..1104 {
        case.take(late);
    }
    case.take(1400);
    assert_eq!(case.arrived(), [1400]);
    assert_eq!((case.lost(), case.discards(Discard::Late)), (4, 4));
}

#[test]
fn three_packets_that_arrive_again_150_places_later_are_duplicates() {
    let mut case = Case::new(|_| {});
    (1000..1400).for_each(|n| case.take(n));
    case.arrived();
    (1250..1253).for_each(|n| case.take(n));
    (1400..1500).for_each(|n| case.take(n));
    assert_eq!(case.arrived(), (1400..1500).collect::<Vec<_>>());
    assert_eq!((case.lost(), case.discards(Discard::Duplicate)), (0, 3));
}

#[test]
fn packets_seconds_late_are_late_however_many_arrive() {
    let mut case = Case::new(|_| {});
    (0..9000).filter(|n| !(1000..3000).contains(n)).for_each(|n| case.take(n));
    case.arrived();
    for n in 9000..11_000 {
        case.take(n);
        case.take(n - 8000);
    }
    assert_eq!(case.arrived(), (9000..11_000).collect::<Vec<_>>());
    assert_eq!((case.lost(), case.discards(Discard::Late)), (2000, 2000));
}

#[test]
fn a_restart_loses_nothing_wherever_it_lands() {
    for place in [30_000, 40_000, 65_000, 500] {
        let mut case = Case::new(|_| {});
        (1000..1400).for_each(|n| case.take(n));
        (0..50).for_each(|n| case.take_at(place + n, 0x9000_0000 + 270 * n));
        let expected: Vec<u32> = (1000..1400).chain(place..place + 50).collect();
        assert_eq!(case.arrived(), expected, "{place}");
        assert_eq!(case.lost(), 0, "{place}");
        let source = case.listener.receiver.statistics().sources[0];
        assert_eq!((source.expected, source.received, source.cumulative_lost), (50, 50, 0));
        let events: Vec<Event> =
            std::iter::from_fn(|| case.listener.receiver.poll_event()).collect();
        assert_eq!(
            events,
            [Event::SourceStarted { ssrc: SSRC }, Event::SourceRestarted { ssrc: SSRC }]
        );
    }
}

#[test]
fn packets_from_before_a_restart_do_not_bring_the_old_run_back() {
    let mut case = Case::new(|_| {});
    (1000..1400).filter(|n| !(1390..1395).contains(n)).for_each(|n| case.take(n));
    (0..10).for_each(|n| case.take_at(40_000 + n, 0x9000_0000 + 270 * n));
    case.arrived();
    (1380..1395).for_each(|n| case.take(n));
    (10..20).for_each(|n| case.take_at(40_000 + n, 0x9000_0000 + 270 * n));
    assert_eq!(case.arrived(), (40_010..40_020).collect::<Vec<_>>());
}

#[test]
fn a_forged_restart_costs_the_stream_no_more_than_a_moment() {
    let mut case = Case::new(|_| {});
    (1000..1400).for_each(|n| case.take(n));
    (0..2).for_each(|n| case.take_at(40_000 + n, 0x9000_0000));
    (1400..1500).for_each(|n| case.take(n));
    let expected: Vec<u32> = (1000..1400).chain(40_000..40_002).chain(1400..1500).collect();
    assert_eq!(case.arrived(), expected);
}

#[test]
fn a_stream_that_begins_anew_with_the_same_packets_is_followed_after_a_silence() {
    let mut case = Case::new(|_| {});
    (1000..1400).for_each(|n| case.take(n));
    case.arrived();
    case.clock += Duration::from_secs(3);
    (1000..1400).for_each(|n| case.take(n));
    let arrived = case.arrived();
    assert!(arrived.len() >= 300 && arrived.last() == Some(&1399), "{} arrived", arrived.len());
    assert_eq!(case.lost(), 0);
}

#[test]
fn ninety_nine_packets_behind_are_misordered_and_a_hundred_may_be_a_restart() {
    // RFC 3550 appendix A.1: `udelta <= RTP_SEQ_MOD - MAX_MISORDER` is a very large jump.
    for (behind, reason) in [(99, Discard::Duplicate), (100, Discard::Stray)] {
        let mut case = Case::new(|_| {});
        (1000..1400).for_each(|n| case.take(n));
        case.take_at(1399 - behind, 0x9000_0000);
        case.take(1400);
        assert_eq!(case.discards(reason), 1, "{behind}");
    }
}
