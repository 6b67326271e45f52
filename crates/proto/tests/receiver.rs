//! The receiver's rules one by one: probation, the window's limits, restarts, frames after gaps.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_proto::payload::Delivery;
use rushes_proto::rtp::Header;
use rushes_proto::stream::{Discard, Event, ReceiverConfig};
use rushes_proto::{ExtendedSequence, RtpTimestamp, SequenceNumber, Ssrc};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC};

const MS: Duration = Duration::from_millis(1);

/// Packets of H.265 for a listener, with one unit each unless stated otherwise.
struct Case {
    listener: Listener,
    clock: Duration,
}

impl Case {
    fn new(delivery: Delivery, adjust: impl FnOnce(&mut ReceiverConfig)) -> Self {
        Self { listener: Listener::with(Kind::H265, delivery, adjust), clock: Duration::ZERO }
    }

    /// Creates a case that delivers units of a source without probation.
    fn believing(adjust: impl FnOnce(&mut ReceiverConfig)) -> Self {
        Self::new(Delivery::Unit, |config| {
            config.probation = 1;
            adjust(config);
        })
    }

    /// Receives packet `sequence` with one slice of `len` octets, which contains the number.
    fn take(&mut self, sequence: u16, len: usize) {
        self.take_from(SSRC, sequence, u32::from(sequence), true, &unit(sequence, len));
    }

    fn take_from(&mut self, ssrc: Ssrc, sequence: u16, time: u32, marker: bool, payload: &[u8]) {
        let sequence = SequenceNumber(sequence);
        let mut header = Header::new(PAYLOAD_TYPE, sequence, RtpTimestamp(3000 * time), ssrc);
        header.marker = marker;
        let mut datagram = vec![0; 12];
        header.write(&mut datagram).unwrap();
        datagram.extend_from_slice(payload);
        self.listener.take(self.clock, &datagram);
    }

    /// Removes the units delivered so far, and returns their numbers.
    fn arrived(&mut self) -> Vec<u16> {
        let frames = self.listener.frames.drain(..);
        frames.map(|frame| u16::from_be_bytes([frame[7], frame[8]])).collect()
    }

    fn wait(&mut self, time: Duration) {
        self.clock += time;
        self.listener.receiver.handle_timeout(self.listener.epoch + self.clock);
        while let Some(frame) = self.listener.receiver.poll_frame() {
            self.listener.frames.push(frame);
        }
    }

    fn lost(&self) -> u64 {
        self.listener.receiver.statistics().packets_lost
    }

    fn discards(&self, reason: Discard) -> u64 {
        self.listener.receiver.statistics().discards.get(reason)
    }
}

fn unit(number: u16, len: usize) -> Vec<u8> {
    let [hi, lo] = number.to_be_bytes();
    let mut unit = vec![0x02, 0x01, 0x80, hi, lo];
    unit.resize(len.max(unit.len()), 0x55);
    unit
}

#[test]
fn a_source_on_probation_loses_none_of_its_packets() {
    let mut case = Case::new(Delivery::Unit, |config| config.probation = 3);
    case.take(10, 20);
    case.take(12, 20);
    assert_eq!(case.arrived(), []);
    case.take(11, 20);
    assert_eq!(case.arrived(), [10, 11, 12]);
    case.take(13, 20);
    assert_eq!(case.arrived(), [13]);
}

#[test]
fn packets_far_apart_do_not_make_a_source() {
    let mut case = Case::new(Delivery::Unit, |_| {});
    case.take(10, 20);
    case.take(10_000, 20);
    assert_eq!(case.arrived(), []);
    assert_eq!(case.discards(Discard::Probation), 1);
    case.take(10_001, 20);
    assert_eq!(case.arrived(), [10_000, 10_001]);
}

#[test]
fn a_named_source_is_believed_at_once_and_others_never() {
    let mut case = Case::new(Delivery::Unit, |config| config.remote_ssrc = Some(SSRC));
    case.take(10, 20);
    assert_eq!(case.arrived(), [10]);
    case.take_from(Ssrc(1), 10, 0, true, &unit(10, 20));
    case.take_from(Ssrc(1), 11, 0, true, &unit(11, 20));
    assert_eq!(case.arrived(), []);
    assert_eq!(case.discards(Discard::OtherSource), 2);
}

#[test]
fn a_missing_packet_is_awaited_exactly_for_the_configured_time() {
    let mut case = Case::believing(|config| config.reorder_time = 20 * MS);
    case.take(1, 20);
    case.take(3, 20);
    case.wait(Duration::from_nanos(19_999_999));
    assert_eq!(case.arrived(), [1]);
    case.wait(Duration::from_nanos(1));
    assert_eq!(case.arrived(), [3]);
    assert_eq!(case.lost(), 1);
    case.take(2, 20);
    assert_eq!(case.discards(Discard::Late), 1);
    case.take(3, 20);
    assert_eq!(case.discards(Discard::Duplicate), 1);
}

#[test]
fn a_second_gap_has_a_time_of_its_own() {
    let mut case = Case::believing(|config| config.reorder_time = 20 * MS);
    case.take(1, 20);
    case.take(3, 20);
    case.wait(10 * MS);
    case.take(5, 20);
    case.wait(10 * MS);
    assert_eq!(case.arrived(), [1, 3]);
    case.wait(10 * MS);
    assert_eq!(case.arrived(), [5]);
    assert_eq!(case.lost(), 2);
}

#[test]
fn the_window_holds_the_configured_packets_and_not_one_more() {
    let mut case = Case::believing(|config| config.reorder_packets_max = 8);
    case.take(0, 20);
    // Number 1 is missing; the window spans 1 to 8.
    for sequence in 2..=8 {
        case.take(sequence, 20);
    }
    assert_eq!(case.arrived(), [0]);
    case.take(9, 20);
    assert_eq!(case.arrived(), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(case.lost(), 1);
}

#[test]
fn the_window_holds_the_configured_octets_and_not_one_more() {
    let mut case = Case::believing(|config| config.reorder_len_max = 3000);
    case.take(0, 20);
    for sequence in 2..=4 {
        case.take(sequence, 1000);
    }
    assert_eq!(case.arrived(), [0]);
    case.take(5, 20);
    assert_eq!(case.arrived(), [2, 3, 4, 5]);
    assert_eq!(case.lost(), 1);
}

#[test]
fn a_packet_that_fills_a_gap_of_a_full_window_is_delivered_before_the_held_ones() {
    let mut case = Case::believing(|config| config.reorder_len_max = 3100);
    case.take(0, 20);
    for sequence in [4, 5, 6] {
        case.take(sequence, 1000);
    }
    // The window is full, and 1 and 2 are missing before it.
    case.take(3, 1000);
    assert_eq!(case.arrived(), [0, 3, 4, 5, 6]);
    case.wait(1000 * MS);
    (4..=6).for_each(|sequence| case.take(sequence, 1000));
    case.take(7, 20);
    assert_eq!(case.arrived(), [7]);
    assert_eq!(case.lost(), 2);
}

#[test]
fn a_packet_larger_than_the_window_is_not_lost() {
    let mut case = Case::believing(|config| config.reorder_len_max = 100);
    case.take(0, 20);
    case.take(2, 1000);
    assert_eq!(case.arrived(), [0, 2]);
    assert_eq!(case.lost(), 1);
}

#[test]
fn a_window_without_end_never_gives_up_by_time() {
    let mut case = Case::believing(|config| {
        config.reorder_time = Duration::MAX;
        config.source_timeout = Duration::MAX;
    });
    case.take(1, 20);
    case.take(3, 20);
    case.wait(Duration::from_secs(1_000_000));
    assert_eq!(case.arrived(), [1]);
    case.take(2, 20);
    assert_eq!(case.arrived(), [2, 3]);
}

#[test]
fn a_restart_far_away_is_followed_with_its_first_packet() {
    let mut case = Case::believing(|_| {});
    case.take(10, 20);
    case.take(11, 20);
    case.take(30_000, 20);
    assert_eq!(case.arrived(), [10, 11]);
    case.take(30_001, 20);
    assert_eq!(case.arrived(), [30_000, 30_001]);
}

#[test]
fn a_stray_packet_is_forgotten_when_the_stream_continues() {
    let mut case = Case::believing(|_| {});
    case.take(10, 20);
    case.take(30_000, 20);
    case.take(11, 20);
    assert_eq!(case.arrived(), [10, 11]);
    assert_eq!(case.discards(Discard::Stray), 1);
    assert_eq!(case.lost(), 0);
}

#[test]
fn losses_are_reported_with_their_position() {
    let mut case = Case::believing(|_| {});
    case.take(65_534, 20);
    case.take(2, 20);
    case.wait(100 * MS);
    let events: Vec<Event> = std::iter::from_fn(|| case.listener.receiver.poll_event()).collect();
    let first = ExtendedSequence::first(SequenceNumber(65_535));
    assert_eq!(
        events,
        [Event::SourceStarted { ssrc: SSRC }, Event::PacketsLost { ssrc: SSRC, first, packets: 3 },]
    );
}

#[test]
fn statistics_follow_the_rfc() {
    let mut case = Case::believing(|_| {});
    for sequence in [0, 1, 3, 3, 5] {
        case.take(sequence, 20);
    }
    case.wait(100 * MS);
    let source = case.listener.receiver.statistics().sources[0];
    // Six expected, five received, one of them twice (RFC 3550 appendix A.3).
    assert_eq!((source.received, source.cumulative_lost), (5, 1));
    assert_eq!(source.highest.sequence(), SequenceNumber(5));
}

/// Access units of two packets each, with the frame's number in the first slice and the timestamp.
struct Frames(Case);

impl Frames {
    fn new() -> Self {
        Self(Case::new(Delivery::AccessUnit, |config| config.probation = 1))
    }

    fn first(&mut self, frame: u16) {
        let payload = unit(frame, 20);
        self.0.take_from(SSRC, 2 * frame, frame.into(), false, &payload);
    }

    fn second(&mut self, frame: u16) {
        let payload = [0x02, 0x01, 0x00, 1, 2, 3];
        self.0.take_from(SSRC, 2 * frame + 1, frame.into(), true, &payload);
    }

    fn arrived(mut self) -> Vec<u16> {
        self.0.wait(Duration::from_secs(1));
        self.0.arrived()
    }
}

#[test]
fn a_frame_without_its_last_packet_goes_and_the_next_stays() {
    let mut frames = Frames::new();
    frames.first(0);
    frames.second(0);
    frames.first(1);
    frames.first(2);
    frames.second(2);
    assert_eq!(frames.arrived(), [0, 2]);
}

#[test]
fn a_frame_without_its_first_packet_goes() {
    let mut frames = Frames::new();
    frames.first(0);
    frames.second(0);
    frames.second(1);
    frames.first(2);
    frames.second(2);
    assert_eq!(frames.arrived(), [0, 2]);
}

#[test]
fn a_frame_behind_a_gap_of_unknown_frames_goes() {
    let mut frames = Frames::new();
    frames.first(0);
    frames.second(0);
    frames.first(5);
    frames.second(5);
    frames.first(6);
    frames.second(6);
    assert_eq!(frames.arrived(), [0, 6]);
}

#[test]
fn a_source_joined_in_the_middle_of_a_frame_starts_with_the_next() {
    let mut frames = Frames::new();
    frames.second(0);
    frames.first(1);
    frames.second(1);
    assert_eq!(frames.arrived(), [1]);
}

#[test]
fn a_keep_alive_ends_a_frame_that_lost_its_tail() {
    let mut frames = Frames::new();
    frames.first(0);
    frames.0.take_from(SSRC, 2, 1, false, &[]);
    frames.0.wait(Duration::from_secs(1));
    let statistics = frames.0.listener.receiver.statistics();
    assert_eq!((statistics.frames_dropped, statistics.packets_lost), (1, 1));
    frames.first(1);
    frames.0.take_from(SSRC, 3, 1, true, &unit(1, 20));
    assert_eq!(frames.arrived(), [1]);
}

#[test]
fn a_frame_without_marker_ends_with_the_next_timestamp() {
    let mut case = Case::new(Delivery::AccessUnit, |config| config.probation = 1);
    for (sequence, time) in [(0, 0), (1, 1), (2, 2)] {
        case.take_from(SSRC, sequence, time, false, &unit(sequence, 20));
    }
    assert_eq!(case.arrived(), [0, 1]);
}
