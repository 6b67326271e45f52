//! The beginning and end of streams: the first and the last packets are also requested, and the
//! last frame is delivered if it is whole.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rushes_proto::payload::Delivery;
use rushes_proto::repair::RequestTiming;
use rushes_proto::rtp::Header;
use rushes_proto::stream::{Event, ReceiverConfig, SentSoFar};
use rushes_proto::{NtpTime, PayloadType, RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC};

const MS: Duration = Duration::from_millis(1);
const VPS: [u8; 4] = [32 << 1, 1, 1, 1];
const FIRST_SLICE: [u8; 4] = [0x26, 1, 0x80, 7];
const NEXT_SLICE: [u8; 4] = [0x26, 1, 0x00, 8];

struct Case {
    listener: Listener,
    clock: Duration,
}

fn host() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5004))
}

impl Case {
    fn new(adjust: impl FnOnce(&mut ReceiverConfig)) -> Self {
        let listener = Listener::with(Kind::H265, Delivery::AccessUnit, |config| {
            config.probation = 1;
            adjust(config);
        });
        Self { listener, clock: Duration::ZERO }
    }

    fn asking() -> Self {
        Self::new(|config| {
            config.requests = Some(RequestTiming::default());
            config.retransmission = Some((PayloadType::OPUS, None));
        })
    }

    fn take(&mut self, sequence: u16, frame: u32, marker: bool, payload: &[u8]) {
        let (sequence, time) = (SequenceNumber(sequence), RtpTimestamp(3000 * frame));
        let mut header = Header::new(PAYLOAD_TYPE, sequence, time, SSRC);
        header.marker = marker;
        let mut datagram = vec![0; 12];
        header.write(&mut datagram).unwrap();
        datagram.extend_from_slice(payload);
        let now = self.listener.epoch + self.clock;
        self.listener.receiver.handle_datagram_from(now, Some(host()), &datagram);
    }

    /// Lets time pass; returns the packets requested meanwhile.
    fn pass(&mut self, time: Duration) -> Vec<u16> {
        let end = self.clock + time;
        let mut asked = Vec::new();
        while self.clock < end {
            self.clock += MS;
            let now = self.listener.epoch + self.clock;
            self.listener.receiver.handle_timeout(now);
            while self.listener.receiver.poll_requests(now, &mut asked).is_some() {}
        }
        asked.iter().map(|sequence| sequence.0).collect()
    }

    /// Handles a sender report for `packets` packets, the last of them in `frame`.
    fn report(&mut self, packets: u32, frame: u32) {
        let now = self.listener.epoch + self.clock;
        let sent = SentSoFar { packets, at: RtpTimestamp(3000 * frame), ntp: NtpTime(1) };
        self.listener.receiver.handle_report(now, SSRC, host().ip(), Some(sent));
    }

    fn leave(&mut self, from: IpAddr) {
        let now = self.listener.epoch + self.clock;
        self.listener.receiver.handle_bye(now, SSRC, from);
    }

    /// Returns the slices of each frame delivered, by their last octets.
    fn arrived(&mut self) -> Vec<Vec<u8>> {
        let frames = std::iter::from_fn(|| self.listener.receiver.poll_frame());
        frames
            .map(|frame| {
                let units = frame.len() / 8;
                (0..units).map(|n| frame[8 * n + 7]).collect()
            })
            .collect()
    }
}

#[test]
fn a_lost_first_packet_is_requested() {
    let mut case = Case::asking();
    case.take(101, 0, true, &FIRST_SLICE);
    case.take(102, 1, true, &FIRST_SLICE);
    assert_eq!(case.arrived(), Vec::<Vec<u8>>::new(), "it is unknown whether the frame is whole");
    assert!(case.pass(10 * MS).contains(&100));
    case.take(100, 0, false, &VPS);
    assert_eq!(case.arrived(), [vec![1, 7], vec![7]], "nothing more is pending");
    assert_eq!(case.listener.receiver.statistics().packets_lost, 0);
}

#[test]
fn a_first_report_that_counts_no_packet_more_ends_the_wait_for_the_first() {
    // With RTX and with verbatim retransmissions, which may be counted; packets follow the report.
    for mut case in
        [Case::asking(), Case::new(|config| config.requests = Some(RequestTiming::default()))]
    {
        case.take(101, 0, false, &FIRST_SLICE);
        case.take(102, 0, true, &NEXT_SLICE);
        case.take(103, 1, true, &FIRST_SLICE);
        assert_eq!(case.arrived(), Vec::<Vec<u8>>::new());
        case.report(2, 0);
        assert_eq!(case.arrived(), [vec![7, 8], vec![7]]);
    }
}

#[test]
fn a_first_report_that_was_read_before_the_media_ends_the_wait_for_the_first() {
    let mut case = Case::asking();
    case.report(2, 0);
    case.take(101, 0, false, &FIRST_SLICE);
    assert_eq!(case.arrived(), Vec::<Vec<u8>>::new());
    case.take(102, 0, true, &NEXT_SLICE);
    assert_eq!(case.arrived(), [[7, 8]]);
}

/// This is a format whose payloads do not show where a stream begins.
#[test]
fn a_first_report_shows_that_the_first_packet_is_lost_whatever_the_format() {
    let asking = || {
        let listener = Listener::with(Kind::Opus, Delivery::AccessUnit, |config| {
            config.probation = 1;
            config.requests = Some(RequestTiming::default());
            config.retransmission = Some((PayloadType::OPUS, None));
        });
        Case { listener, clock: Duration::ZERO }
    };
    let arrived = |case: &mut Case| {
        let frames = std::iter::from_fn(|| case.listener.receiver.poll_frame());
        frames.map(|frame| frame.data().to_vec()).collect::<Vec<_>>()
    };
    let payload = |n: u8| [0x78, n];
    let mut case = asking();
    case.report(1, 0);
    case.take(102, 1, true, &payload(2));
    assert!(arrived(&mut case).is_empty(), "an earlier packet was sent");
    assert_eq!(case.pass(10 * MS), [101]);
    case.take(101, 0, true, &payload(1));
    assert_eq!(arrived(&mut case).len(), 2);
    // The report has merely overtaken the packet that it counts.
    let mut case = asking();
    case.report(1, 0);
    case.take(101, 0, true, &payload(1));
    assert_eq!(arrived(&mut case).len(), 1);
    // The stream was joined late.
    let mut case = asking();
    case.report(1000, 0);
    case.take(1101, 1, true, &payload(1));
    assert_eq!(arrived(&mut case).len(), 1);
    assert!(case.pass(100 * MS).is_empty());
}

#[test]
fn a_first_report_that_counts_a_packet_more_does_not_end_the_wait_for_the_first() {
    let mut case = Case::asking();
    case.take(101, 0, false, &FIRST_SLICE);
    case.take(102, 0, true, &NEXT_SLICE);
    case.report(3, 0);
    // Later packets are no evidence, because the report does not count them.
    case.take(103, 1, true, &FIRST_SLICE);
    assert_eq!(case.arrived(), Vec::<Vec<u8>>::new());
    case.take(100, 0, false, &VPS);
    assert_eq!(case.arrived(), [vec![1, 7, 8], vec![7]]);
}

#[test]
fn packets_before_the_first_that_were_never_sent_are_not_lost() {
    let mut case = Case::asking();
    case.take(101, 0, true, &FIRST_SLICE);
    case.take(102, 1, true, &FIRST_SLICE);
    case.pass(600 * MS);
    assert_eq!(case.arrived(), [vec![7], vec![7]]);
    assert_eq!(case.listener.receiver.statistics().packets_lost, 0);
}

#[test]
fn a_stream_that_shows_its_beginning_does_not_wait() {
    let mut case = Case::asking();
    case.take(101, 0, false, &VPS);
    case.take(102, 0, true, &FIRST_SLICE);
    assert_eq!(case.arrived(), [[1, 7]]);
    assert!(case.pass(100 * MS).is_empty());
}

#[test]
fn a_first_frame_that_cannot_be_whole_is_counted_as_unsure() {
    for mut case in [Case::new(|_| {}), Case::asking()] {
        case.take(101, 0, true, &NEXT_SLICE);
        case.take(102, 1, true, &FIRST_SLICE);
        case.pass(600 * MS);
        assert_eq!(case.arrived(), [[7]]);
        let statistics = case.listener.receiver.statistics();
        assert_eq!((statistics.frames_dropped, statistics.frames_unsure), (1, 1));
    }
}

#[test]
fn a_lost_last_packet_is_requested() {
    let mut case = Case::asking();
    case.take(101, 0, false, &VPS);
    case.take(102, 0, true, &FIRST_SLICE);
    case.report(2, 0);
    case.take(103, 1, false, &FIRST_SLICE);
    // Packet 104, the last slice, is lost.
    case.report(4, 1);
    case.leave(host().ip());
    assert_eq!(case.pass(100 * MS), [104]);
    case.take(104, 1, true, &NEXT_SLICE);
    assert_eq!(case.arrived(), [[1, 7], [7, 8]]);
    case.pass(1000 * MS);
    let statistics = case.listener.receiver.statistics();
    assert_eq!((statistics.packets_lost, statistics.ended[0].expected), (0, 4));
}

#[test]
fn a_last_packet_that_never_arrives_is_counted() {
    let mut case = Case::asking();
    case.take(101, 0, false, &VPS);
    case.take(102, 0, true, &FIRST_SLICE);
    case.report(2, 0);
    case.report(4, 1);
    case.leave(host().ip());
    case.pass(2000 * MS);
    assert_eq!(case.listener.receiver.statistics().packets_lost, 2);
}

#[test]
fn the_last_frame_without_a_marker_is_delivered_after_silence_or_a_goodbye() {
    for leaves in [true, false] {
        let mut case = Case::new(|_| {});
        for n in 0..3_u16 {
            case.take(100 + n, n.into(), false, &FIRST_SLICE);
        }
        assert_eq!(case.arrived(), [[7], [7]]);
        if leaves {
            case.leave(host().ip());
        }
        case.pass(1100 * MS);
        assert_eq!(case.arrived(), [[7]], "leaves: {leaves}");
        if leaves {
            continue;
        }
        // Later packets of that frame are not delivered as a frame.
        case.take(103, 2, true, &FIRST_SLICE);
        case.take(104, 3, true, &FIRST_SLICE);
        case.pass(100 * MS);
        assert_eq!(case.arrived(), [[7]]);
    }
}

#[test]
fn a_goodbye_from_another_host_ends_nothing() {
    let mut case = Case::new(|_| {});
    case.take(100, 0, true, &FIRST_SLICE);
    case.leave(SocketAddr::from(([192, 0, 2, 66], 5004)).ip());
    case.pass(2000 * MS);
    let events: Vec<Event> = std::iter::from_fn(|| case.listener.receiver.poll_event()).collect();
    assert_eq!(events, [Event::SourceStarted { ssrc: SSRC }]);
}

#[test]
fn reports_in_the_middle_of_a_frame_or_with_double_counts_cause_no_losses() {
    for counts_twice in [false, true] {
        let mut case = Case::new(|config| {
            // Some senders count verbatim retransmissions.
            config.requests = counts_twice.then(RequestTiming::default);
        });
        case.take(101, 0, false, &VPS);
        case.take(102, 0, true, &FIRST_SLICE);
        // This report was sent after one packet, and arrived after both.
        case.report(1, 0);
        case.take(103, 1, true, &FIRST_SLICE);
        case.report(if counts_twice { 9 } else { 3 }, 1);
        case.leave(host().ip());
        assert!(case.pass(2000 * MS).is_empty());
        assert_eq!(case.listener.receiver.statistics().packets_lost, 0, "{counts_twice}");
    }
}

#[test]
fn all_packets_sent_show_that_none_came_before_them() {
    for is_early in [true, false] {
        let mut case = Case::asking();
        if is_early {
            // The report is handled before the media.
            case.report(2, 0);
        }
        case.take(101, 0, false, &FIRST_SLICE);
        if !is_early {
            case.report(2, 0);
        }
        case.pass(20 * MS);
        assert_eq!(case.arrived(), Vec::<Vec<u8>>::new());
        case.take(102, 0, true, &NEXT_SLICE);
        case.pass(MS);
        assert_eq!(case.arrived(), [[7, 8]], "early: {is_early}");
    }
}
