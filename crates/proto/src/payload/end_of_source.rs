//! The end of a source: its last frame is delivered if it is certainly whole, else dropped.

use super::builder::Delivery;
use super::generic::Generic;
use super::h264::H264;
use super::rig::{Listener, annex_b};

/// Returns the first slice of an IDR picture.
fn slice(number: u8) -> Vec<u8> {
    vec![0x65, 0x88, number]
}

/// Returns a listener that has received three frames of two packets each, without a marker bit.
fn unmarked() -> Listener {
    let mut listener = Listener::new(&H264::default(), Delivery::AccessUnit);
    for n in 0..6_u8 {
        listener.take(&slice(n), u32::from(n / 2) * 3000, false).unwrap();
    }
    listener
}

fn pair(first: u8) -> Vec<u8> {
    annex_b(&[slice(first), slice(first + 1)])
}

#[test]
fn the_last_access_unit_of_a_sender_without_markers_is_delivered() {
    let mut listener = unmarked();
    assert_eq!(listener.frames(), [pair(0), pair(2)]);
    listener.finish();
    assert_eq!(listener.frames(), [pair(4)]);
    assert_eq!(listener.dropped(), 0);
}

#[test]
fn the_last_frame_of_any_kind_without_a_marker_is_delivered() {
    let mut listener = Listener::new(&Generic::default(), Delivery::AccessUnit);
    for (octets, timestamp) in [(b"ab", 0), (b"cd", 0), (b"ef", 9), (b"gh", 18), (b"ij", 18)] {
        listener.take(octets, timestamp, false).unwrap();
    }
    listener.finish();
    assert_eq!(listener.frames(), [&b"abcd"[..], b"ef", b"ghij"]);
}

#[test]
fn a_sender_may_mark_frames_of_several_packets_only() {
    let mut listener = Listener::new(&H264::default(), Delivery::AccessUnit);
    let packets = [(0, 0, false), (1, 0, true), (2, 1, false), (3, 2, false), (4, 2, true)];
    for (number, timestamp, marker) in packets.into_iter().chain([(5, 3, false)]) {
        listener.take(&slice(number), timestamp, marker).unwrap();
    }
    listener.finish();
    let single = |number| annex_b(&[slice(number)]);
    assert_eq!(listener.frames(), [pair(0), single(2), pair(3), single(5)]);
}

#[test]
fn without_its_marker_the_last_frame_of_a_sender_that_sets_them_is_dropped() {
    let mut listener = Listener::new(&H264::default(), Delivery::AccessUnit);
    for n in 0..5_u8 {
        listener.take(&slice(n), u32::from(n / 2), n % 2 == 1).unwrap();
    }
    listener.finish();
    assert_eq!(listener.frames(), [pair(0), pair(2)]);
    assert_eq!(listener.dropped(), 1);
}

#[test]
fn the_only_frame_of_a_source_is_dropped_without_a_marker() {
    // It is unknown whether the source sets any.
    let mut listener = Listener::new(&H264::default(), Delivery::AccessUnit);
    listener.take(&slice(0), 0, false).unwrap();
    listener.finish();
    assert_eq!((listener.frames().len(), listener.dropped()), (0, 1));
}

#[test]
fn a_last_frame_that_lacks_a_packet_is_dropped() {
    // The packet is missing in the middle of the frame.
    let mut listener = unmarked();
    listener.lose(1);
    listener.take(&slice(6), 6000, false).unwrap();
    listener.finish();
    assert_eq!((listener.frames().len(), listener.dropped()), (2, 1));
    // The packet is missing at the end of the frame.
    let mut listener = unmarked();
    listener.lose(1);
    listener.finish();
    assert_eq!((listener.frames().len(), listener.dropped()), (2, 1));
    // The packet is missing before the frame, and may have been its beginning.
    let mut listener = unmarked();
    listener.lose(2);
    listener.take(&slice(6), 9000, false).unwrap();
    listener.finish();
    assert_eq!((listener.frames().len(), listener.dropped()), (2, 2));
    // The packet is missing in the last unit of the frame.
    let mut listener = unmarked();
    listener.take(&[0x7c, 0x85, 1], 6000, false).unwrap();
    listener.finish();
    assert_eq!((listener.frames().len(), listener.dropped()), (2, 1));
}

#[test]
fn packets_after_the_silence_that_ended_their_frame_are_no_new_frame() {
    let mut listener = unmarked();
    listener.finish();
    assert_eq!(listener.frames().len(), 3);
    // This is another packet of the same frame.
    listener.take(&slice(6), 6000, false).unwrap();
    listener.take(&slice(7), 9000, false).unwrap();
    listener.take(&slice(8), 12_000, false).unwrap();
    assert_eq!(listener.frames(), [annex_b(&[slice(7)])]);
    assert_eq!(listener.dropped(), 1);
}

#[test]
fn a_source_continues_after_silence() {
    let mut listener = unmarked();
    listener.finish();
    listener.finish();
    for n in 6..8 {
        listener.take(&slice(n), 9000, n == 7).unwrap();
    }
    assert_eq!(listener.frames(), [pair(0), pair(2), pair(4), pair(6)]);
    assert_eq!(listener.dropped(), 0);
}

#[test]
fn an_unfinished_unit_delivered_alone_is_dropped_at_the_end() {
    let mut listener = Listener::new(&H264::default(), Delivery::Unit);
    listener.take(&slice(0), 0, false).unwrap();
    listener.take(&[0x7c, 0x85, 1], 0, false).unwrap();
    listener.finish();
    assert_eq!((listener.units(), listener.dropped()), (vec![slice(0)], 1));
}

#[test]
fn a_sender_without_markers_that_pauses_after_each_frame_loses_the_first_only() {
    let mut listener = Listener::new(&H264::default(), Delivery::AccessUnit);
    for n in 0..4_u8 {
        listener.take(&slice(n), u32::from(n) * 900_000, false).unwrap();
        listener.finish();
    }
    let single = |number| annex_b(&[slice(number)]);
    assert_eq!(listener.frames(), [single(1), single(2), single(3)]);
}
