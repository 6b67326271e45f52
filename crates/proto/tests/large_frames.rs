//! Frames of 16 and 64 MB arrive whole at the default limits, in memory in proportion to them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::net::SocketAddr;

use rushes_proto::payload::Delivery;
use rushes_proto::stream::{Sender, SenderConfig};
use rushes_proto::{Batch, FrameRate, RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC};

/// The largest frame of a receiver by default; the first start code does not count.
const FRAME_LEN_MAX: usize = 64 << 20;

const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Returns an access unit of `units` NAL units, `len` octets without the first start code.
fn frame(kind: Kind, units: usize, len: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(len + START_CODE.len());
    for n in 1..=units {
        frame.extend(START_CODE);
        frame.extend(&kind.delimiter().unwrap()[..2]);
        // A slice of a picture, and no zeros, so that no start code arises.
        let header = frame.len() - 2;
        frame[header] = 0x02;
        let end = START_CODE.len() + len * n / units;
        frame.extend((frame.len()..end).map(|at| (at % 251) as u8 + 1));
    }
    frame
}

fn sender(kind: Kind) -> Sender {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(65_000),
        first_timestamp: RtpTimestamp(1),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 1472,
    };
    Sender::new(format.packetiser(), config).unwrap().with_padding_limit(20)
}

/// Sends a frame in batches, each of which is received before the next is made.
fn pass(sender: &mut Sender, frame: &[u8], listener: &mut Listener) {
    let from = SocketAddr::from(([127, 0, 0, 1], 5004));
    let mut batch = Batch::new();
    let mut outgoing = sender.push(frame, None).unwrap();
    while outgoing.fill(&mut batch) {
        let mut octets = batch.bytes().to_vec();
        let mut rest = &mut octets[..];
        let mut datagrams = Vec::new();
        for len in batch.lengths() {
            let (datagram, behind) = rest.split_at_mut((*len).into());
            datagrams.push(datagram);
            rest = behind;
        }
        listener.receiver.handle_datagrams(listener.epoch, from, &mut datagrams);
    }
}

#[test]
fn frames_of_16_and_64_mb_arrive_whole_at_the_default_limits() {
    let kind = Kind::H265;
    for (len, units) in [(16_000_000, 1), (64_000_000, 4000), (FRAME_LEN_MAX, 1)] {
        let frame = frame(kind, units, len);
        let mut listener = Listener::new(kind, Delivery::AccessUnit);
        let mut sender = sender(kind);
        // A receiver cannot know whether it has the beginning of the first frame that it sees.
        pass(&mut sender, &self::frame(kind, 1, 100_000), &mut listener);
        let counted = allocation_counter::measure(|| pass(&mut sender, &frame, &mut listener));
        let received = listener.receiver.poll_frame().unwrap();
        assert!(*received == *frame, "{len} octets in {units} units");
        assert_eq!(listener.receiver.statistics().packets_lost, 0);
        // A frame grows by doubling, so that each octet is moved about once.
        let least = len as u64;
        assert!(counted.bytes_max < 4 * least, "{} of {len}", counted.bytes_max);
        let batches = 2 * least;
        assert!(counted.bytes_total < batches + 6 * least, "{} of {len}", counted.bytes_total);
    }
}

#[test]
fn a_frame_above_the_limit_is_dropped_and_the_next_one_arrives() {
    let kind = Kind::H265;
    let limit = 1 << 20;
    let mut listener =
        Listener::with(kind, Delivery::AccessUnit, |config| config.frame.frame_len_max = limit);
    let mut sender = sender(kind);
    let small = frame(kind, 1, 100_000);
    let above = frame(kind, 3, 8 * limit);
    let counted = allocation_counter::measure(|| pass(&mut sender, &above, &mut listener));
    assert!(counted.bytes_max < 4 * limit as u64, "{}", counted.bytes_max);
    assert_eq!(listener.receiver.poll_frame().map(|frame| frame.len()), None);
    pass(&mut sender, &small, &mut listener);
    assert!(listener.receiver.poll_frame().is_some_and(|frame| *frame == *small));
}
