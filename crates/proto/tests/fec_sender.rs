//! A sender that adds repair packets: what a receiver makes of them when packets are lost.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_netsim::Seeded;
use rushes_proto::payload::generic::Generic;
use rushes_proto::payload::{Frame, PayloadFormat, opus};
use rushes_proto::repair::fec::{DecoderLimits, FecFormat, red};
use rushes_proto::rtp::Packet;
use rushes_proto::srtp::{MasterKey, Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{
    ConfigError, FecReception, FecSending, Receiver, ReceiverConfig, Retransmission, Sender,
    SenderConfig,
};
use rushes_proto::{Batch, ClockRate, FrameRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

const MEDIA: Ssrc = Ssrc(7);
const REPAIR: Ssrc = Ssrc(8);
const PACKET_LEN: usize = 1200;
const FORMATS: [FecFormat; 4] =
    [FecFormat::FlexFec, FecFormat::FlexFecFixed, FecFormat::FlexFec03, FecFormat::Ulp];

fn repair_type() -> PayloadType {
    PayloadType::new(115).unwrap()
}

fn red_type() -> PayloadType {
    PayloadType::new(116).unwrap()
}

fn sending(format: FecFormat, percent: u8) -> FecSending {
    FecSending {
        format,
        payload_type: repair_type(),
        red: format.is_in_red().then(red_type),
        ssrc: REPAIR,
        first_sequence: SequenceNumber(65_534),
        percent,
        span: Duration::from_millis(100),
    }
}

fn config(clock_rate: ClockRate) -> SenderConfig {
    SenderConfig {
        ssrc: MEDIA,
        payload_type: PayloadType::GENERIC,
        first_sequence: SequenceNumber(32_000),
        first_timestamp: RtpTimestamp(u32::MAX - 9000),
        clock_rate,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: PACKET_LEN,
    }
}

fn sender(fec: FecSending, suite: Option<Suite>) -> Sender {
    let sender = Sender::new(Generic::default().packetiser(), config(ClockRate::VIDEO)).unwrap();
    let sender = match suite {
        Some(suite) => {
            let key = MasterKey::new(suite, &vec![5; suite.key_and_salt_len()]).unwrap();
            sender.secured(Protector::new(&Policy::new(suite), &key).unwrap()).unwrap()
        }
        None => sender,
    };
    sender.with_fec(fec).unwrap()
}

fn receiver(fec: FecSending, suite: Option<Suite>) -> Receiver {
    let mut config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
    config.fec = Some(FecReception {
        format: fec.format,
        payload_type: fec.payload_type,
        red: fec.red,
        ssrc: Some(fec.ssrc),
        wait: Duration::from_millis(200),
        limits: DecoderLimits::default(),
    });
    let receiver = Receiver::new(Arc::new(Generic::default()), config).unwrap();
    match suite {
        Some(suite) => receiver.secured(unprotector(suite)),
        None => receiver,
    }
}

/// Sends `frame` in batches of at most `len` octets, and returns its datagrams.
fn send(sender: &mut Sender, batch: &mut Batch, frame: &[u8], len: usize) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    let mut outgoing = sender.push(frame, None).unwrap();
    outgoing.limit_batches(len);
    while outgoing.fill(batch) {
        assert!(batch.bytes().len() <= len.max(PACKET_LEN));
        datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    }
    datagrams
}

fn is_repair(datagram: &[u8]) -> bool {
    let packet = Packet::parse(datagram).unwrap();
    let is_red = packet.payload_type() == red_type().value();
    let is_within_red =
        || red::primary(packet.payload()).unwrap().payload_type == repair_type().value();
    packet.ssrc() == REPAIR || is_red && is_within_red()
}

/// Reads packets that are secured as those of [`sender`].
struct Reader(Option<Unprotector>);

impl Reader {
    fn is_repair(&mut self, datagram: &[u8]) -> bool {
        let mut clear = datagram.to_vec();
        if let Some(unprotector) = &mut self.0 {
            let len = unprotector.unprotect(&mut clear).unwrap();
            clear.truncate(len);
        }
        is_repair(&clear)
    }
}

fn unprotector(suite: Suite) -> Unprotector {
    let key = MasterKey::new(suite, &vec![5; suite.key_and_salt_len()]).unwrap();
    Unprotector::new(&Policy::new(suite), &key).unwrap()
}

fn frame(n: u32, random: &mut Seeded) -> Vec<u8> {
    let len = if n.is_multiple_of(5) { 60_000 } else { 1 + random.below(6000) };
    let mut frame = vec![0; len as usize];
    random.fill(&mut frame);
    frame
}

#[test]
fn a_lost_packet_of_each_column_is_recovered_octet_for_octet() {
    let suites = [None, Some(Suite::AesCm128HmacSha1_80), Some(Suite::AeadAes128Gcm)];
    for (format, suite) in FORMATS.into_iter().flat_map(|it| suites.map(|suite| (it, suite))) {
        let fec = sending(format, 20);
        let (mut sender, mut receiver) = (sender(fec, suite), receiver(fec, suite));
        let (mut batch, mut random) = (Batch::with_history(1 << 20), Seeded(1));
        let (now, mut lost, mut sent) = (Instant::now(), 0, Vec::new());
        let (mut reader, mut media) = (Reader(suite.map(unprotector)), 0);
        for n in 0..60 {
            sent.push(frame(n, &mut random));
            let frame = sent.last().unwrap();
            for datagram in send(&mut sender, &mut batch, frame, 20_000) {
                assert!(datagram.len() <= PACKET_LEN);
                let is_repair = reader.is_repair(&datagram);
                media += u32::from(!is_repair);
                // Of each block at most one packet is lost.
                if !is_repair && n > 0 && media % 40 == 3 {
                    lost += 1;
                } else {
                    receiver.handle_datagram(now, &datagram);
                }
            }
        }
        assert!(sender.has_repairs_due());
        sender.keep_alive(&mut batch);
        assert!(!sender.has_repairs_due());
        batch.datagrams().for_each(|datagram| receiver.handle_datagram(now, datagram));
        let arrived: Vec<_> = std::iter::from_fn(|| receiver.poll_frame()).collect();
        assert!(lost > 10);
        assert_eq!(arrived.len(), sent.len(), "{format:?} {suite:?}");
        assert!(arrived.iter().zip(&sent).all(|(frame, sent)| frame.data() == &sent[..]));
        let (out, got) = (sender.statistics(), receiver.statistics());
        assert_eq!((got.repaired, got.packets_lost, got.discards.total()), (lost, 0, 0));
        assert_eq!(got.repairs, out.repairs);
        let percent = 100.0 * out.repairs as f64 / out.packets as f64;
        assert!((19.5..24.0).contains(&percent), "{percent} %");
    }
}

#[test]
fn a_burst_as_long_as_the_repair_packets_of_a_block_is_recovered() {
    for format in FORMATS {
        let fec = sending(format, 20);
        let (mut sender, mut receiver) = (sender(fec, None), receiver(fec, None));
        let (mut batch, now) = (Batch::new(), Instant::now());
        let sent: Vec<_> = (0..4).map(|n| vec![n; 40_000]).collect();
        for frame in &sent {
            for datagram in send(&mut sender, &mut batch, frame, 20_000) {
                let number = Packet::parse(&datagram).unwrap().sequence().0;
                if is_repair(&datagram) || !(32_050..32_058).contains(&number) {
                    receiver.handle_datagram(now, &datagram);
                }
            }
        }
        let frames: Vec<_> = std::iter::from_fn(|| receiver.poll_frame()).collect();
        assert!(frames.iter().map(Frame::data).eq(sent.iter().map(|frame| &frame[..])));
        assert_eq!((frames.len(), receiver.statistics().repaired), (4, 8), "{format:?}");
    }
}

#[test]
fn a_retransmission_is_that_of_the_media_between_repair_packets() {
    for suite in [None, Some(Suite::AeadAes128Gcm)] {
        let fec = sending(FecFormat::FlexFec, 50);
        let rtx_type = PayloadType::new(120).unwrap();
        let first_sequence = SequenceNumber(1);
        let retransmission =
            Retransmission::Rtx { payload_type: rtx_type, ssrc: Ssrc(9), first_sequence };
        let mut sender = sender(fec, suite).with_history(256, retransmission);
        let mut receiver = receiver(fec, suite);
        let (mut batch, mut again) = (Batch::with_history(1 << 20), Batch::new());
        let frame: Vec<u8> = (0..30_000_u32).map(|n| n as u8).collect();
        let sent = send(&mut sender, &mut batch, &frame, 20_000);
        for n in 32_000..32_020 {
            let sequence = SequenceNumber(n);
            sender.retransmit(Instant::now(), sequence, &batch, &mut again).unwrap();
        }
        let clear = |datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            let len = match receiver.unprotector() {
                Some(unprotector) => unprotector.unprotect(&mut datagram).unwrap(),
                None => datagram.len(),
            };
            datagram.truncate(len);
            Packet::parse(&datagram).unwrap().payload().to_vec()
        };
        let mut clear = clear;
        let media: Vec<_> =
            sent.iter().filter(|it| !is_repair(it)).map(|it| clear(it)).take(20).collect();
        let repeated: Vec<_> = again.datagrams().map(|it| clear(it)[2..].to_vec()).collect();
        assert_eq!(repeated, media);
    }
}

#[test]
fn a_stream_of_few_packets_does_not_keep_its_repair_packets_back() {
    let mut config = config(ClockRate::OPUS);
    config.payload_type = PayloadType::OPUS;
    let sender = Sender::new(opus::Opus::default().packetiser(), config).unwrap();
    let mut sender = sender.with_fec(sending(FecFormat::FlexFec, 20)).unwrap();
    let mut batch = Batch::new();
    let packet = [0x78; 80];
    for n in 1..=50 {
        let datagrams = send(&mut sender, &mut batch, &packet, 20_000);
        // Each packet takes 20 ms: the sixth would end 120 ms after the first.
        assert_eq!(datagrams.len(), if n % 5 == 0 { 2 } else { 1 }, "{n}");
    }
}

/// Sends a large frame; returns the number of repair packets.
fn repairs(sender: &mut Sender, batch: &mut Batch) -> usize {
    let sent = send(sender, batch, &vec![1; 200_000], 20_000);
    sender.keep_alive(batch);
    let sent = sent.iter().map(|it| &it[..]).chain(batch.datagrams());
    sent.filter(|datagram| is_repair(datagram)).count()
}

#[test]
fn a_ratio_above_100_counts_as_100() {
    let mut sender = sender(sending(FecFormat::FlexFec, 255), None);
    assert_eq!(sender.fec_percent(), 100);
    assert!((172..=176).contains(&repairs(&mut sender, &mut Batch::new())));
}

#[test]
fn the_ratio_changes_with_the_next_block() {
    let mut sender = sender(sending(FecFormat::FlexFec, 0), None);
    let mut batch = Batch::new();
    assert_eq!(repairs(&mut sender, &mut batch), 0);
    for (percent, wanted) in [(5, 9..=10), (50, 86..=88), (100, 172..=176), (0, 0..=0)] {
        sender.set_fec_percent(percent);
        let sent = repairs(&mut sender, &mut batch);
        assert!(wanted.contains(&sent), "{percent} %: {sent}");
    }
}

#[test]
fn after_a_collision_repair_packets_name_the_new_source() {
    let mut sender = sender(sending(FecFormat::FlexFec, 100), None);
    let mut batch = Batch::new();
    send(&mut sender, &mut batch, &[1; 100], 20_000);
    sender.set_ssrc(Ssrc(70));
    let mut datagrams = send(&mut sender, &mut batch, &[1; 3000], 20_000);
    sender.keep_alive(&mut batch);
    datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    let repairs: Vec<_> = datagrams.iter().filter(|datagram| is_repair(datagram)).collect();
    assert!(!repairs.is_empty());
    for repair in repairs {
        let sources: Vec<_> = Packet::parse(repair).unwrap().contributing_sources().collect();
        assert_eq!(sources, [Ssrc(70)]);
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let new = |len| {
        let config = SenderConfig { packet_len_max: len, ..config(ClockRate::VIDEO) };
        Sender::new(Generic::default().packetiser(), config).unwrap()
    };
    for (format, red) in [(FecFormat::Ulp, None), (FecFormat::FlexFec, Some(red_type()))] {
        let refused = new(1200).with_fec(FecSending { red, ..sending(format, 20) });
        assert_eq!(refused.err(), Some(ConfigError::FecFormat));
    }
    let small = new(40).with_fec(sending(FecFormat::FlexFec, 20));
    assert_eq!(small.err(), Some(ConfigError::PacketLen { len: 40 }));
}
