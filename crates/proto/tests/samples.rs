//! Whatever the network does, samples that arrive are delivered once, in order and in their places.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rushes_netsim::Path;
use rushes_proto::payload::PayloadFormat;
use rushes_proto::payload::pcm::{Pcm, Sample};
use rushes_proto::repair::fec::{DecoderLimits, FecFormat};
use rushes_proto::rtp::Packet;
use rushes_proto::stream::{
    FecReception, FecSending, Receiver, ReceiverConfig, Sender, SenderConfig,
};
use rushes_proto::{Batch, ClockRate, FrameRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};
use world::{PAYLOAD_TYPE, SSRC, Seeded, arrivals, path};

const FIRST: RtpTimestamp = RtpTimestamp(u32::MAX - 500);

fn sender(format: &Pcm) -> Sender {
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(65_500),
        first_timestamp: FIRST,
        clock_rate: format.rate,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 2000,
    };
    Sender::new(format.packetiser(), config).unwrap()
}

/// Returns the datagrams of `frames`, one after the other, and of those that end the stream.
fn send(sender: &mut Sender, frames: &[&[u8]]) -> Vec<Vec<u8>> {
    let (mut batch, mut datagrams) = (Batch::new(), Vec::new());
    for frame in frames {
        let mut outgoing = sender.push(frame, None).unwrap();
        while outgoing.fill(&mut batch) {
            datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
        }
    }
    sender.keep_alive(&mut batch);
    datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    datagrams
}

/// Receives datagrams at their times; returns the place of each frame in the signal, in sample groups,
/// and its octets.
fn receive(
    format: &Pcm,
    fec: Option<FecReception>,
    arrivals: &[(Duration, &[u8])],
) -> Vec<(usize, Vec<u8>)> {
    let mut config = ReceiverConfig::new(PAYLOAD_TYPE, format.rate);
    (config.probation, config.fec) = (1, fec);
    let mut receiver = Receiver::new(Arc::new(*format), config).unwrap();
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    let epoch = std::time::Instant::now();
    let mut frames = Vec::new();
    let mut drain = |receiver: &mut Receiver| {
        while let Some(frame) = receiver.poll_frame() {
            let place = frame.timestamp().distance(FIRST).unsigned_abs() as usize;
            frames.push((place, frame.to_vec()));
        }
    };
    for (time, datagram) in arrivals {
        receiver.handle_timeout(epoch + *time);
        receiver.handle_datagram(epoch + *time, datagram);
        drain(&mut receiver);
    }
    while let Some(due) = receiver.poll_timeout() {
        receiver.handle_timeout(due);
        drain(&mut receiver);
    }
    frames
}

fn formats() -> impl Strategy<Value = Pcm> {
    let samples = vec![Sample::L16, Sample::L24, Sample::Pcmu, Sample::Pcma];
    let parts = (prop::sample::select(samples), 1..=8_u8, 1..60_u32);
    parts.prop_map(|(sample, channels, samples)| {
        let format = Pcm::new(sample, ClockRate::OPUS, channels);
        Pcm { packet_time: Some(format.rate.duration(samples)), ..format }
    })
}

/// Returns a signal of random octets, and where its frames end.
fn signal(format: &Pcm, groups: &[usize], seed: u64) -> (Vec<u8>, Vec<usize>) {
    let mut random = Seeded(seed);
    let len = groups.iter().sum::<usize>() * format.group_len();
    let signal = (0..len).map(|_| random.roll() as u8).collect();
    let ends = groups.iter().scan(0, |end, groups| {
        *end += groups * format.group_len();
        Some(*end)
    });
    (signal, ends.collect())
}

/// Returns the frames of a signal.
fn cut<'s>(signal: &'s [u8], ends: &[usize]) -> Vec<&'s [u8]> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, end)| &signal[start..*end]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn samples_that_arrive_are_delivered_once_in_order_and_in_place(
        format in formats(), groups in prop::collection::vec(1..300_usize, 1..20),
        seed in any::<u64>(),
        (loss, duplication, reordering) in (0.0..0.2, 0.0..0.2, 0.0..0.3),
    ) {
        let (signal, ends) = signal(&format, &groups, seed);
        let datagrams = send(&mut sender(&format), &cut(&signal, &ends));
        let path: Path = path(loss, duplication, reordering);
        let order = arrivals(datagrams.iter().map(Vec::len), &path, &mut Seeded(seed));
        let arrived: Vec<_> =
            order.iter().map(|(time, n)| (*time, datagrams[*n].as_slice())).collect();
        let received = receive(&format, None, &arrived);
        let numbers: BTreeSet<usize> = order.iter().map(|(_, n)| *n).collect();
        let packets = numbers.iter().map(|n| Packet::parse(&datagrams[*n]).unwrap());
        let expected: Vec<(usize, Vec<u8>)> = packets
            .filter(|packet| !packet.payload().is_empty())
            .map(|packet| {
                let place = packet.timestamp().distance(FIRST).unsigned_abs() as usize;
                (place, packet.payload().to_vec())
            })
            .collect();
        prop_assert_eq!(&received, &expected);
        for (place, octets) in received {
            let start = place * format.group_len();
            prop_assert_eq!(&signal[start..start + octets.len()], &octets[..]);
        }
    }

    #[test]
    fn without_loss_the_signal_is_what_was_sent(
        format in formats(), groups in prop::collection::vec(1..300_usize, 1..20),
        seed in any::<u64>(),
    ) {
        let (signal, ends) = signal(&format, &groups, seed);
        let datagrams = send(&mut sender(&format), &cut(&signal, &ends));
        let order: Vec<_> = datagrams.iter().map(|it| (Duration::ZERO, it.as_slice())).collect();
        let received = receive(&format, None, &order);
        let all: Vec<u8> = received.into_iter().flat_map(|(_, octets)| octets).collect();
        prop_assert!(all == signal);
    }
}

/// The packets of a frame have timestamps of their own, which repair packets protect, too.
#[test]
fn a_lost_packet_within_a_frame_is_recovered_with_its_own_timestamp() {
    let payload_type = PayloadType::new(120).unwrap();
    let format = Pcm { packet_time: None, ..Pcm::new(Sample::L24, ClockRate::OPUS, 2) };
    let (signal, ends) = signal(&format, &[480, 480, 480], 7);
    let fec = FecSending {
        format: FecFormat::FlexFec,
        payload_type,
        red: None,
        ssrc: Ssrc(99),
        first_sequence: SequenceNumber(1),
        percent: 20,
        span: Duration::from_millis(60),
    };
    let mut sender = sender(&format).with_fec(fec).unwrap();
    let datagrams = send(&mut sender, &cut(&signal, &ends));
    let kept = datagrams.iter().enumerate().filter(|(n, _)| *n != 13);
    let arrived: Vec<_> = kept.map(|(_, it)| (Duration::ZERO, it.as_slice())).collect();
    let reception = FecReception {
        format: FecFormat::FlexFec,
        payload_type,
        red: None,
        ssrc: None,
        wait: Duration::from_millis(60),
        limits: DecoderLimits::default(),
    };
    let received = receive(&format, Some(reception), &arrived);
    assert_eq!(received.len(), 30);
    for (n, (place, octets)) in received.iter().enumerate() {
        assert_eq!(*place, 48 * n);
        assert_eq!(octets[..], signal[n * 288..][..288]);
    }
}
