//! Sending and receiving packets allocates nothing after the buffers have grown to their sizes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use rushes::{Codec, Context, Delivery, ExtensionKind, ExtensionMap, MediaStream, Pacing};

const SECOND: Duration = Duration::from_secs(1);

/// Frames before counting starts, while buffers grow to their sizes.
const WARM_UP: usize = 20;

/// Frames that are counted.
const FRAMES: usize = 50;

fn pair(codec: Codec, delivery: Delivery) -> (MediaStream, MediaStream) {
    let session = Context::new().session("127.0.0.1").unwrap();
    // RTCP is off, because a report allocates and may become due while frames are counted.
    let stream = || session.stream(codec).rtcp(false);
    let receiver = stream().delivery(delivery).probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let sender = stream().remote_port(port).pacing(Pacing::Off).open().unwrap();
    (sender, receiver)
}

/// Counts allocations and packets of round trips, with `per_frame` pulls for each push.
fn count(codec: Codec, delivery: Delivery, frame: &[u8], per_frame: usize) -> (u64, u64) {
    count_in(pair(codec, delivery), frame, per_frame)
}

fn count_in(
    (mut sender, mut receiver): (MediaStream, MediaStream),
    frame: &[u8],
    per_frame: usize,
) -> (u64, u64) {
    let mut round = |frames: usize| {
        for _ in 0..frames {
            sender.push_frame(frame, None).unwrap();
            for _ in 0..per_frame {
                assert!(receiver.pull_frame(SECOND).unwrap().is_some());
            }
        }
        sender.statistics().send.packets
    };
    let before = round(WARM_UP);
    let mut packets = 0;
    let counted = allocation_counter::measure(|| packets = round(FRAMES) - before);
    // Reading the statistics allocates the list of sources.
    (counted.count_total.saturating_sub(8), packets)
}

fn access_unit(units: usize, len: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    for n in 0..units {
        frame.extend_from_slice(&[0, 0, 0, 1, 0x02, 1, 0x80 | n as u8]);
        frame.resize(frame.len() + len, 0x55);
    }
    frame
}

#[test]
fn large_access_units_go_round_without_allocating() {
    let frame = access_unit(4, 100_000);
    let (allocations, packets) = count(Codec::H265, Delivery::AccessUnit, &frame, 1);
    assert!(packets > 10_000);
    assert_eq!(allocations, 0, "{packets} packets");
}

#[test]
fn frames_with_a_capture_time_go_round_without_allocating() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let elements = ExtensionMap::default().with(ExtensionKind::AbsCaptureTime, 1).unwrap();
    let stream = || session.stream(Codec::H265).rtcp(false).extensions(elements);
    let receiver = stream().probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let sender = stream().remote_port(port).pacing(Pacing::Off).open().unwrap();
    let frame = access_unit(4, 10_000);
    let (allocations, packets) = count_in((sender, receiver), &frame, 1);
    assert!(packets > 1000);
    assert_eq!(allocations, 0, "{packets} packets");
}

#[test]
fn small_units_go_round_without_allocating() {
    let frame = access_unit(40, 60);
    let (allocations, packets) = count(Codec::H265, Delivery::Unit, &frame, 40);
    assert!(packets >= 100);
    assert_eq!(allocations, 0, "{packets} packets");
}

#[test]
fn opus_packets_go_round_without_allocating() {
    let (allocations, packets) = count(Codec::Opus, Delivery::AccessUnit, &[0x08; 100], 1);
    assert_eq!(packets, FRAMES as u64);
    assert_eq!(allocations, 0);
}

#[test]
fn generic_frames_go_round_without_allocating() {
    let (allocations, _) = count(Codec::Generic, Delivery::AccessUnit, &vec![7; 50_000], 1);
    assert_eq!(allocations, 0);
}

#[test]
fn the_count_of_allocations_can_fail() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![0_u8; 10])));
    assert_eq!(counted.count_total, 1);
}
