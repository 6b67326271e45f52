//! When datagrams arrived and when they were read: which of the two counts for what.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test's epoch")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::payload::generic::Generic;
use rushes_proto::rtp::Header;
use rushes_proto::stream::{Receipt, Receiver, ReceiverConfig};
use rushes_proto::{ClockRate, Ecn, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

const MS: Duration = Duration::from_millis(1);
const FROM: &str = "192.0.2.7:5004";

fn receiver() -> Receiver {
    let config = ReceiverConfig {
        arrivals: true,
        probation: 1,
        reorder_time: 20 * MS,
        ..ReceiverConfig::new(PayloadType::H265, ClockRate::VIDEO)
    };
    Receiver::new(Arc::new(Generic::default()), config).unwrap()
}

/// Takes packet `sequence`, sampled 10 ms after the one before it, as one frame.
fn take(receiver: &mut Receiver, sequence: u16, receipt: Receipt) {
    let timestamp = RtpTimestamp(900 * u32::from(sequence));
    let sequence = SequenceNumber(sequence);
    let mut header = Header::new(PayloadType::H265, sequence, timestamp, Ssrc(1));
    header.marker = true;
    let mut datagram = vec![0; 12];
    header.write(&mut datagram).unwrap();
    datagram.extend_from_slice(b"frame");
    receiver.handle_datagrams(receipt, FROM.parse().unwrap(), &mut [&mut datagram]);
}

#[test]
fn a_reader_that_pauses_adds_no_jitter_to_packets_that_arrived_in_time() {
    let (start, mut receiver) = (Instant::now(), receiver());
    for n in 0..40_u16 {
        let arrival = start + u32::from(n) * 10 * MS;
        // The packets are read four at a time.
        let now = start + u32::from(n / 4 * 4 + 3) * 10 * MS;
        take(&mut receiver, n, Receipt { now, arrival, ecn: Ecn::NotCapable });
    }
    assert_eq!(receiver.statistics().sources[0].jitter, 0);
}

#[test]
fn arrivals_and_marks_are_those_of_the_network() {
    let (start, mut receiver) = (Instant::now(), receiver());
    let marks = [Ecn::CapableOne, Ecn::Congestion, Ecn::CapableZero, Ecn::Congestion];
    let arrivals: Vec<_> = (0..4).map(|n| start + n * 10 * MS).collect();
    for (n, (arrival, ecn)) in (0..).zip(arrivals.iter().copied().zip(marks)) {
        take(&mut receiver, n, Receipt { now: start + 50 * MS, arrival, ecn });
    }
    let mut reported = Vec::new();
    assert_eq!(receiver.poll_arrivals(&mut reported), Some((Ssrc(1), SequenceNumber(0))));
    let expected: Vec<_> = arrivals.into_iter().zip(marks).map(Some).collect();
    assert_eq!(reported, expected);
    assert_eq!(receiver.statistics().sources[0].packets_congested, 2);
}

#[test]
fn time_in_the_socket_does_not_count_as_time_of_waiting_for_a_missing_packet() {
    let (start, mut receiver) = (Instant::now(), receiver());
    let now = start + 100 * MS;
    let receipt = |n: u32| Receipt { now, arrival: start + n * MS, ecn: Ecn::NotCapable };
    take(&mut receiver, 0, receipt(0));
    take(&mut receiver, 2, receipt(1));
    receiver.handle_timeout(now + 10 * MS);
    // The packet between them was behind them in the socket.
    take(&mut receiver, 1, receipt(2));
    assert_eq!(std::iter::from_fn(|| receiver.poll_frame()).count(), 3);
}
