//! A receiver whose missing packets are recovered by repair packets, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::payload::generic::Generic;
use rushes_proto::repair::RequestTiming;
use rushes_proto::repair::fec::{BlockSize, DecoderLimits, Encoder, FecFormat};
use rushes_proto::rtp::Header;
use rushes_proto::stream::{ConfigError, Discard, FecReception, Receiver, ReceiverConfig};
use rushes_proto::{ClockRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

const SOURCE: Ssrc = Ssrc(7);
const REPAIR: Ssrc = Ssrc(8);
const WAIT: Duration = Duration::from_millis(30);

fn config(format: FecFormat) -> ReceiverConfig {
    let payload_type = PayloadType::new(115).unwrap();
    let mut config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
    config.fec = Some(FecReception {
        format,
        payload_type,
        red: None,
        ssrc: None,
        wait: WAIT,
        limits: DecoderLimits::default(),
    });
    config.requests = Some(RequestTiming::default());
    config.probation = 1;
    config
}

struct Case {
    receiver: Receiver,
    encoder: Encoder,
    now: Instant,
    sent: u16,
    repairs: u16,
    repairs_from: SocketAddr,
}

impl Case {
    fn new(format: FecFormat) -> Self {
        let receiver = Receiver::new(Arc::new(Generic::default()), config(format)).unwrap();
        let size = BlockSize::new(format, 8, 2).unwrap();
        let encoder = Encoder::new(size, SOURCE);
        Self {
            receiver,
            encoder,
            now: Instant::now(),
            sent: 0,
            repairs: 0,
            repairs_from: address(1),
        }
    }

    /// Sends a frame of one packet, which may be lost on the way.
    fn send(&mut self, is_lost: bool) {
        let number = SequenceNumber(65_530_u16.wrapping_add(self.sent));
        let time = RtpTimestamp(3000 * u32::from(self.sent));
        let mut header = Header::new(PayloadType::GENERIC, number, time, SOURCE);
        header.marker = true;
        let mut datagram = vec![0; 12];
        header.write(&mut datagram).unwrap();
        datagram.extend(vec![self.sent as u8; 10 + usize::from(self.sent)]);
        self.encoder.push(&datagram);
        self.sent += 1;
        self.now += Duration::from_millis(1);
        if !is_lost {
            self.receiver.handle_datagram_from(self.now, Some(address(1)), &datagram);
        }
    }

    /// Sends the repair packets of the block.
    fn repair(&mut self) {
        let mut datagrams = Vec::new();
        let payload_type = PayloadType::new(115).unwrap();
        self.encoder.close(|payload| {
            let number = SequenceNumber(self.repairs);
            let mut header = Header::new(payload_type, number, RtpTimestamp(0), REPAIR);
            header.contributing_sources = vec![SOURCE];
            let mut datagram = vec![0; header.written_len()];
            header.write(&mut datagram).unwrap();
            datagram.extend_from_slice(payload);
            datagrams.push(datagram);
            self.repairs += 1;
        });
        for datagram in datagrams {
            let from = Some(self.repairs_from);
            self.receiver.handle_datagram_from(self.now, from, &datagram);
        }
    }

    fn frames(&mut self) -> Vec<(u8, usize)> {
        let next = std::iter::from_fn(|| self.receiver.poll_frame());
        next.map(|frame| (frame.data()[0], frame.len())).collect()
    }

    fn requests(&mut self) -> Vec<u16> {
        let mut out = Vec::new();
        while self.receiver.poll_requests(self.now, &mut out).is_some() {}
        out.iter().map(|number| number.0).collect()
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 5004))
}

fn whole(frames: std::ops::Range<u8>) -> Vec<(u8, usize)> {
    frames.map(|n| (n, 10 + usize::from(n))).collect()
}

#[test]
fn lost_packets_are_recovered_and_not_requested() {
    for format in [FecFormat::FlexFec, FecFormat::FlexFecFixed, FecFormat::FlexFec03] {
        let mut case = Case::new(format);
        (0..8).for_each(|n| case.send([3, 4].contains(&n)));
        assert_eq!(case.frames(), whole(0..3));
        case.repair();
        assert_eq!(case.frames(), whole(3..8), "{format:?}");
        case.now += 10 * WAIT;
        assert_eq!(case.requests(), []);
        let statistics = case.receiver.statistics();
        assert_eq!((statistics.repaired, statistics.packets_lost), (2, 0));
        // Reports count what arrived.
        assert_eq!(statistics.sources[0].cumulative_lost, 2);
    }
}

#[test]
fn packets_lost_at_the_end_of_a_block_are_recovered() {
    let mut case = Case::new(FecFormat::FlexFec);
    (0..8).for_each(|n| case.send(n >= 6));
    case.repair();
    assert_eq!(case.frames(), whole(0..8));
}

#[test]
fn what_repair_packets_do_not_recover_is_requested_after_the_wait() {
    let mut case = Case::new(FecFormat::FlexFec);
    (0..8).for_each(|n| case.send([1, 3, 4].contains(&n)));
    assert_eq!(case.requests(), []);
    case.now += Duration::from_millis(10);
    assert_eq!(case.requests(), []);
    case.repair();
    case.now += WAIT;
    // 4 is the only one of its column; 1 and 3 are of the same.
    assert_eq!(case.requests(), [65_531, 65_533]);
    assert_eq!(case.receiver.statistics().repaired, 1);
}

#[test]
fn a_repair_packet_of_another_format_recovers_nothing() {
    let mut case = Case::new(FecFormat::FlexFec);
    case.encoder = Encoder::new(BlockSize::new(FecFormat::FlexFec03, 8, 2).unwrap(), SOURCE);
    (0..8).for_each(|n| case.send(n == 3));
    case.repair();
    assert_eq!(case.receiver.statistics().repaired, 0);
    let unused = case.receiver.statistics().discards.get(Discard::Retransmission);
    assert!(unused > 0, "a header of another format is taken for a repair packet");
}

#[test]
fn a_repair_packet_from_elsewhere_recovers_nothing() {
    let mut case = Case::new(FecFormat::FlexFec);
    (0..8).for_each(|n| case.send(n == 3));
    case.repairs_from = address(2);
    case.repair();
    case.send(false);
    let statistics = case.receiver.statistics();
    assert_eq!(statistics.repaired, 0);
    assert_eq!(statistics.discards.get(Discard::Retransmission), 2);
}

#[test]
fn a_missing_packet_is_not_given_up_before_its_repair_packets_are_due() {
    let mut config = config(FecFormat::FlexFec);
    config.requests = None;
    config.fec.as_mut().unwrap().wait = Duration::from_millis(400);
    let mut case = Case::new(FecFormat::FlexFec);
    case.receiver = Receiver::new(Arc::new(Generic::default()), config).unwrap();
    (0..8).for_each(|n| case.send(n == 3));
    case.now += Duration::from_millis(300);
    case.receiver.handle_timeout(case.now);
    case.repair();
    assert_eq!(case.frames(), whole(0..8));
}

#[test]
fn a_wait_without_end_is_no_panic() {
    let mut config = config(FecFormat::FlexFec);
    config.fec.as_mut().unwrap().wait = Duration::MAX;
    let mut case = Case::new(FecFormat::FlexFec);
    case.receiver = Receiver::new(Arc::new(Generic::default()), config).unwrap();
    (0..8).for_each(|n| case.send(n == 3));
    assert_eq!(case.requests(), []);
    assert_eq!(case.frames(), whole(0..3));
}

#[test]
fn ulpfec_without_red_and_flexfec_with_it_are_refused() {
    for format in [FecFormat::Ulp, FecFormat::FlexFec] {
        let mut config = config(format);
        config.fec.as_mut().unwrap().red = PayloadType::new(116).filter(|_| !format.is_in_red());
        let refused = Receiver::new(Arc::new(Generic::default()), config);
        assert_eq!(refused.err(), Some(ConfigError::FecFormat));
    }
}
