//! ULPFEC in a stream: media and repair packets within RED, under one SSRC and with one sequence of
//! numbers (RFC 5109 section 14.2, RFC 2198).
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rushes_proto::payload::PayloadFormat;
use rushes_proto::payload::generic::Generic;
use rushes_proto::repair::RequestTiming;
use rushes_proto::repair::fec::{Decoder, DecoderLimits, FecFormat, red};
use rushes_proto::rtp::Packet;
use rushes_proto::srtp::{MasterKey, Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{
    Discard, Event, FecReception, FecSending, Receiver, ReceiverConfig, Retransmission, Sender,
    SenderConfig,
};
use rushes_proto::{Batch, ClockRate, FrameRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

const MEDIA: Ssrc = Ssrc(7);
const MEDIA_TYPE: PayloadType = PayloadType::GENERIC;
const SUITE: Suite = Suite::AeadAes128Gcm;
const WAIT: Duration = Duration::from_millis(30);
/// The number of the first packet; numbers wrap behind it.
const FIRST: u16 = 65_530;

fn payload_type(value: u8) -> PayloadType {
    PayloadType::new(value).unwrap()
}

fn repair_type() -> PayloadType {
    payload_type(115)
}

fn red_type() -> PayloadType {
    payload_type(116)
}

fn rtx_type() -> PayloadType {
    payload_type(117)
}

fn key() -> MasterKey {
    MasterKey::new(SUITE, &vec![5; SUITE.key_and_salt_len()]).unwrap()
}

fn sender(percent: u8, is_secured: bool) -> Sender {
    let config = SenderConfig {
        ssrc: MEDIA,
        payload_type: MEDIA_TYPE,
        first_sequence: SequenceNumber(FIRST),
        first_timestamp: RtpTimestamp(u32::MAX - 9000),
        clock_rate: ClockRate::VIDEO,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 300,
    };
    let mut sender = Sender::new(Generic::default().packetiser(), config).unwrap();
    if is_secured {
        sender = sender.secured(Protector::new(&Policy::new(SUITE), &key()).unwrap()).unwrap();
    }
    let fec = FecSending {
        format: FecFormat::Ulp,
        payload_type: repair_type(),
        red: Some(red_type()),
        ssrc: Ssrc(8),
        first_sequence: SequenceNumber(1),
        percent,
        span: Duration::from_millis(100),
    };
    sender.with_fec(fec).unwrap()
}

fn receiver(requests: bool, is_secured: bool) -> Receiver {
    let mut config = ReceiverConfig::new(MEDIA_TYPE, ClockRate::VIDEO);
    config.fec = Some(FecReception {
        format: FecFormat::Ulp,
        payload_type: repair_type(),
        red: Some(red_type()),
        ssrc: None,
        wait: WAIT,
        limits: DecoderLimits::default(),
    });
    config.requests = requests.then(RequestTiming::default);
    config.retransmission = requests.then(|| (rtx_type(), None));
    config.probation = 1;
    let receiver = Receiver::new(Arc::new(Generic::default()), config).unwrap();
    if !is_secured {
        return receiver;
    }
    receiver.secured(Unprotector::new(&Policy::new(SUITE), &key()).unwrap())
}

/// Sends `frame`; returns its datagrams.
fn send(sender: &mut Sender, batch: &mut Batch, frame: &[u8]) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    let mut outgoing = sender.push(frame, None).unwrap();
    while outgoing.fill(batch) {
        datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    }
    datagrams
}

fn frame(n: u8) -> Vec<u8> {
    (0..2000_u32 + 100 * u32::from(n)).map(|k| k as u8 ^ n).collect()
}

/// Returns the packet that was put into RED.
fn bare(datagram: &[u8]) -> Vec<u8> {
    let packet = Packet::parse(datagram).unwrap();
    let block = red::primary(packet.payload()).unwrap();
    let mut bare = [&datagram[..packet.header_len()], block.data].concat();
    bare[1] = bare[1] & 0x80 | block.payload_type;
    bare
}

#[test]
fn media_and_repair_packets_are_one_stream_within_red() {
    let (mut sender, mut batch) = (sender(20, false), Batch::new());
    let mut datagrams = Vec::new();
    for n in 0..20 {
        datagrams.extend(send(&mut sender, &mut batch, &frame(n)));
    }
    sender.keep_alive(&mut batch);
    datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    let (mut media, mut octets) = (0, 0);
    let mut decoder = Decoder::new(FecFormat::Ulp, MEDIA, DecoderLimits::default());
    let mut lost = Vec::new();
    for (n, datagram) in (0_u16..).zip(&datagrams) {
        let packet = Packet::parse(datagram).unwrap();
        assert_eq!((packet.ssrc(), packet.sequence().0), (MEDIA, FIRST.wrapping_add(n)));
        assert_eq!(packet.payload_type(), red_type().value());
        // The header of a single block is its payload type, without the bit F.
        assert!([MEDIA_TYPE, repair_type()].map(PayloadType::value).contains(&packet.payload()[0]));
        octets += packet.payload().len() as u64;
        let bare = bare(datagram);
        if bare[1] & 0x7f == repair_type().value() {
            decoder.handle_repair(&[], Packet::parse(&bare).unwrap().payload()).unwrap();
        } else if media % 40 == 5 {
            lost.push(bare);
            media += 1;
        } else {
            decoder.handle_source(&bare);
            media += 1;
        }
    }
    // The parity is that of packets without RED.
    assert!(lost.len() > 2);
    assert!(std::iter::from_fn(|| decoder.poll_recovered()).eq(lost));
    let statistics = sender.statistics();
    assert_eq!((statistics.packets, statistics.repairs), (media, datagrams.len() as u64 - media));
    // Sender reports count what is under the SSRC of the media.
    assert_eq!(sender.reported(), (datagrams.len() as u64, octets));
    assert_eq!(sender.fec_ssrc(), None);
}

#[test]
fn without_a_ratio_media_is_within_red_too() {
    let (mut sender, mut receiver) = (sender(0, false), receiver(false, false));
    for datagram in send(&mut sender, &mut Batch::new(), &frame(1)) {
        assert_eq!(Packet::parse(&datagram).unwrap().payload_type(), red_type().value());
        receiver.handle_datagram(Instant::now(), &datagram);
    }
    assert_eq!(receiver.poll_frame().unwrap().data(), frame(1));
    assert_eq!(sender.statistics().repairs, 0);
}

/// What the repair packets do not recover is requested: packets of media and repair packets alike,
/// since both leave a gap in the numbers.
#[test]
fn requested_packets_are_retransmitted_within_red() {
    let rtx = Retransmission::Rtx {
        payload_type: rtx_type(),
        ssrc: Ssrc(9),
        first_sequence: SequenceNumber(1),
    };
    for (way, is_secured) in [
        (Retransmission::Verbatim, false),
        (rtx, false),
        (Retransmission::Verbatim, true),
        (rtx, true),
    ] {
        let mut sender = sender(10, is_secured).with_history(256, way);
        let mut receiver = receiver(true, is_secured);
        let (mut batch, mut again) = (Batch::with_history(1 << 20), Batch::new());
        let (mut now, mut received) = (Instant::now(), Vec::new());
        for n in 0..20 {
            now += Duration::from_millis(33);
            for (k, datagram) in send(&mut sender, &mut batch, &frame(n)).iter().enumerate() {
                if n == 0 || ![2, 3, 6].contains(&(k % 10)) {
                    receiver.handle_datagram(now, datagram);
                }
            }
            let mut numbers = Vec::new();
            while receiver.poll_requests(now, &mut numbers).is_some() {}
            for number in numbers {
                again.clear();
                sender.retransmit(now, number, &batch, &mut again).unwrap();
                for datagram in again.datagrams() {
                    receiver.handle_datagram(now, datagram);
                }
            }
            received.extend(std::iter::from_fn(|| receiver.poll_frame()));
        }
        // The last requests are not due yet.
        let (count, got) = (received.len(), receiver.statistics());
        assert!(count >= 17, "{way:?} {is_secured}: {count} {got:?}");
        let all = received.iter().zip(0..).all(|(one, n)| one.data() == &frame(n)[..]);
        assert!(all && got.repaired > 0 && got.recovered > 20, "{way:?} {is_secured}: {got:?}");
        // A packet that was both recovered and retransmitted arrives once too often.
        let needless = [Discard::Duplicate, Discard::Late, Discard::Retransmission];
        let needless: u64 = needless.iter().map(|reason| got.discards.get(*reason)).sum();
        assert_eq!((got.packets_lost, got.discards.total()), (0, needless), "{got:?}");
    }
}

/// A sender may have agreed on RED and not use it.
#[test]
fn a_retransmission_of_bare_media_is_not_taken_for_red() {
    let mut receiver = receiver(true, false);
    let media = MEDIA_TYPE.value();
    let packet = |kind: u8, number: u16, ssrc: Ssrc, payload: &[u8]| {
        let number = FIRST.wrapping_add(number).to_be_bytes();
        let head = [0x80, 0x80 | kind, number[0], number[1], 0, 0, 0, number[1]];
        [&head[..], &ssrc.0.to_be_bytes(), payload].concat()
    };
    let mut now = Instant::now();
    for number in [0, 2] {
        receiver.handle_datagram(now, &packet(media, number, MEDIA, &[1; 100]));
    }
    now += 2 * WAIT;
    let mut numbers = Vec::new();
    assert!(receiver.poll_requests(now, &mut numbers).is_some());
    // The frame begins like a block of media.
    let frame = [media; 100];
    let again = [&FIRST.wrapping_add(1).to_be_bytes()[..], &frame].concat();
    let mut again = packet(rtx_type().value(), 1, Ssrc(9), &again);
    // Its own number is another, and its time that of the original.
    again[2] ^= 0x40;
    receiver.handle_datagram(now, &again);
    let frames = std::iter::from_fn(|| receiver.poll_frame()).map(|frame| frame.to_vec());
    assert_eq!(frames.collect::<Vec<_>>(), [[1; 100], frame, [1; 100]]);
}

/// A packet of the stream within RED: `blocks` is all that follows the RTP header.
fn within_red(number: u16, blocks: &[u8]) -> Vec<u8> {
    let head = [0x80, 0x80 | red_type().value()];
    let number = FIRST.wrapping_add(number).to_be_bytes();
    [&head[..], &number, &[0, 0, 0, number[1]], &MEDIA.0.to_be_bytes(), blocks].concat()
}

/// Payloads of the generic format, each a whole frame, as our own sender writes them.
fn whole_frame(n: u8) -> Vec<u8> {
    let (mut sender, mut batch) = (sender(0, false), Batch::new());
    let datagrams = send(&mut sender, &mut batch, &[n; 100]);
    assert_eq!(datagrams.len(), 1);
    Packet::parse(&bare(&datagrams[0])).unwrap().payload().to_vec()
}

fn take(receiver: &mut Receiver, number: u16, blocks: &[u8]) -> Vec<Vec<u8>> {
    receiver.handle_datagram(Instant::now(), &within_red(number, blocks));
    std::iter::from_fn(|| receiver.poll_frame()).map(|frame| frame.to_vec()).collect()
}

#[test]
fn of_several_blocks_the_primary_one_is_media() {
    let mut receiver = receiver(false, false);
    let media = MEDIA_TYPE.value();
    let single = [&[media][..], &whole_frame(1)].concat();
    assert_eq!(take(&mut receiver, 0, &single), [[1; 100]]);
    // An older payload of three octets, 160 ticks before.
    let older = [0x80 | media, 2, 0x80, 3, media, 9, 9, 9];
    let double = [&older[..], &whole_frame(2)].concat();
    assert_eq!(take(&mut receiver, 1, &double), [[2; 100]]);
    assert_eq!(receiver.statistics().discards.total(), 0);
}

#[test]
fn padding_behind_red_is_no_media() {
    let mut receiver = receiver(false, false);
    let blocks = [&[MEDIA_TYPE.value()][..], &whole_frame(1), &[0, 0, 0, 4]].concat();
    let mut datagram = within_red(0, &blocks);
    datagram[0] |= 0x20;
    receiver.handle_datagram(Instant::now(), &datagram);
    assert_eq!(receiver.poll_frame().unwrap().data(), [1; 100]);
}

#[test]
fn malformed_red_is_discarded() {
    let media = MEDIA_TYPE.value();
    let chain = [0x80 | media; 1200];
    let cases: [(&[u8], Discard); 6] = [
        (&[], Discard::Payload),
        // A block that exceeds the packet, a cut header, and headers without end.
        (&[0x80 | media, 0, 3, 0xff, media, 1, 2], Discard::Payload),
        (&[0x80 | media, 0, 0], Discard::Payload),
        (&chain, Discard::Payload),
        // RED within RED, and another payload type.
        (&[red_type().value(), media, 1, 2, 3], Discard::PayloadType),
        (&[96, 1, 2, 3], Discard::PayloadType),
    ];
    for (blocks, reason) in cases {
        let mut receiver = receiver(false, false);
        assert!(take(&mut receiver, 0, blocks).is_empty());
        let discards = receiver.statistics().discards;
        assert_eq!((discards.get(reason), discards.total()), (1, 1), "{blocks:?}");
        let named = std::iter::from_fn(|| receiver.poll_event()).find_map(|event| match event {
            Event::OtherPayloadType { payload_type, .. } => Some(payload_type),
            _ => None,
        });
        // The event names the payload type within RED.
        assert_eq!(named, (reason == Discard::PayloadType).then(|| blocks[0]));
    }
}

#[test]
fn repair_packets_of_packets_that_never_came_recover_nothing() {
    let mut receiver = receiver(false, false);
    let single = |n| [&[MEDIA_TYPE.value()][..], &whole_frame(n)].concat();
    assert_eq!(take(&mut receiver, 0, &single(0)), [[0; 100]]);
    let mut number = 1;
    for base in (0..=u16::MAX).step_by(97) {
        // A mask of 48 packets, and 10 octets of parity.
        let mut repair = vec![repair_type().value(), 0x40, 0];
        repair.extend(base.to_be_bytes());
        repair.extend([0, 0, 0, 0, 0, 10, 0, 10]);
        repair.extend([0xff; 6]);
        repair.extend([0; 10]);
        assert!(take(&mut receiver, number, &repair).is_empty());
        number += 1;
    }
    assert_eq!(take(&mut receiver, number, &single(1)), [[1; 100]]);
    let got = receiver.statistics();
    assert_eq!((got.repaired, got.frames, got.frames_dropped), (0, 2, 0));
    assert!(got.discards.get(Discard::Retransmission) > 500, "{got:?}");
    assert_eq!(got.held_octets, 0);
}

proptest! {
    /// Whatever stands within RED, no packet is taken for another, and frames are never damaged.
    #[test]
    fn any_octets_within_red_are_harmless(
        bodies in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                prop::collection::vec(any::<u8>(), 14..60)
                    .prop_map(|body| [&[repair_type().value(), 0, 0][..], &FIRST.to_be_bytes(), &body].concat()),
                prop::collection::vec(any::<u8>(), 0..40)
                    .prop_map(|body| [&[0x80 | MEDIA_TYPE.value(), 0, 0, 4][..], &body].concat()),
            ],
            0..30,
        ),
    ) {
        let mut receiver = receiver(true, false);
        let mut number = 0;
        for (n, body) in (0_u8..).zip(&bodies) {
            take(&mut receiver, number, body);
            number += 1;
            let media = [&[MEDIA_TYPE.value()][..], &whole_frame(n)].concat();
            for frame in take(&mut receiver, number, &media) {
                prop_assert!(frame.len() <= 200);
            }
            number += 1;
        }
        prop_assert!(receiver.statistics().held_octets < 1 << 20);
    }
}
