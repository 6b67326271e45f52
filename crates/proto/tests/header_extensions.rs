//! Formats that set header extensions and write the extended sequence number into their payloads.
#![cfg(feature = "srtp")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic and read the clock"
)]

mod ends;

use std::time::Instant;

use ends::master;
use rushes_proto::FrameRate;
use rushes_proto::payload::{
    Depacketiser, Fragment, FrameBuilder, FrameError, PacketInfo, Packetiser, PayloadError,
    PayloadFormat,
};
use rushes_proto::rtp::{
    CaptureTime, Element, ExtensionForm, ExtensionKind, ExtensionMap, HeaderExtension, Packet,
};
use rushes_proto::srtp::{ExtensionIds, Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{Receiver, ReceiverConfig, Retransmission, Sender, SenderConfig};
use rushes_proto::{Batch, ClockRate, NtpTime, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

/// Octets of the extension: its header, one element of 4 octets with a header of 1, and padding.
const EXTENSION_LEN: usize = 12;

/// Payloads of 4 octets of sequence number and a piece of the frame; each has an extension with the
/// offset of the piece.
#[derive(Debug)]
struct Numbered {
    /// Octets of the element's data.
    element_len: usize,
}

struct Half {
    element_len: usize,
    limit: usize,
    offset: usize,
}

impl PayloadFormat for Numbered {
    fn name(&self) -> &'static str {
        "X-NUMBERED"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(Half { element_len: self.element_len, limit: 0, offset: 0 })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(Half { element_len: 0, limit: 0, offset: 0 })
    }
}

impl Packetiser for Half {
    fn start(&mut self, _: &[u8], limit: usize) -> Result<(), FrameError> {
        (self.limit, self.offset) = (limit, 0);
        Ok(())
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.offset == frame.len() {
            return false;
        }
        let end = frame.len().min(self.offset + self.limit - 4);
        let mut data = vec![0; self.element_len];
        data[..4].copy_from_slice(&(self.offset as u32).to_be_bytes());
        let elements = [Element { id: 3, data: &data }];
        let extension = HeaderExtension::of_elements(ExtensionForm::OneByte, &elements).unwrap();
        fragment.set_extension(extension);
        fragment.push_own(&fragment.sequence().to_be_bytes());
        fragment.push_frame(self.offset..end);
        fragment.set_marker(end == frame.len());
        self.offset = end;
        true
    }

    fn extension_len_max(&self) -> usize {
        EXTENSION_LEN
    }
}

impl Depacketiser for Half {
    fn push(
        &mut self,
        payload: &[u8],
        _: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        frame.push_unit(&payload[4..])
    }

    fn lost(&mut self) {}
}

const LEN_MAX: usize = 100;
const RTX: PayloadType = PayloadType::OPUS;

fn sender(element_len: usize, first_sequence: u16) -> Sender {
    sender_of(Numbered { element_len }.packetiser(), first_sequence)
}

fn sender_of(packetiser: Box<dyn Packetiser>, first_sequence: u16) -> Sender {
    let config = SenderConfig {
        ssrc: Ssrc(7),
        payload_type: PayloadType::GENERIC,
        first_sequence: SequenceNumber(first_sequence),
        first_timestamp: RtpTimestamp(1),
        clock_rate: ClockRate::VIDEO,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: LEN_MAX,
    };
    Sender::new(packetiser, config).unwrap()
}

fn datagrams(batch: &Batch) -> Vec<Vec<u8>> {
    let mut rest = batch.bytes();
    let cut = |len: &u16| {
        let (datagram, behind) = rest.split_at(usize::from(*len));
        rest = behind;
        datagram.to_vec()
    };
    batch.lengths().iter().map(cut).collect()
}

fn frame() -> Vec<u8> {
    (0..1000_u32).map(|n| n as u8).collect()
}

#[test]
fn packets_carry_the_extension_and_count_on_over_a_round() {
    let (frame, mut batch) = (frame(), Batch::new());
    let mut sender = sender(4, 65_534);
    let mut outgoing = sender.push(&frame, None).unwrap();
    assert!(outgoing.fill(&mut batch));
    drop(outgoing);
    let (mut offset, mut number) = (0_u32, 65_534_u32);
    for datagram in datagrams(&batch) {
        assert!(datagram.len() <= LEN_MAX);
        let packet = Packet::parse(&datagram).unwrap();
        let elements = packet.extension().unwrap().elements().unwrap();
        let elements: Vec<Element<'_>> = elements.flatten().collect();
        assert_eq!(elements, [Element { id: 3, data: &offset.to_be_bytes() }]);
        assert_eq!(packet.payload()[..4], number.to_be_bytes());
        assert_eq!(packet.sequence(), SequenceNumber(number as u16));
        offset += packet.payload().len() as u32 - 4;
        number += 1;
    }
    assert_eq!((offset, number > 65_540), (1000, true));
}

#[test]
fn a_capture_time_joins_the_extension_of_a_format() {
    let (frame, mut batch) = (frame(), Batch::new());
    let capture = CaptureTime::new(NtpTime(0x0102_0304_0506_0708));
    for id in [5, 200] {
        let map = ExtensionMap::default().with(ExtensionKind::Ntp64, id).unwrap();
        let mut sender = sender(4, 0).with_extensions(map);
        assert!(sender.push_captured(&frame, None, Some(capture)).unwrap().fill(&mut batch));
        let datagrams = datagrams(&batch);
        for (n, datagram) in datagrams.iter().enumerate() {
            assert!(datagram.len() <= LEN_MAX, "{id}");
            let packet = Packet::parse(datagram).unwrap();
            let elements = packet.extension().unwrap().elements().unwrap();
            let ids: Vec<u8> = elements.map(|element| element.unwrap().id).collect();
            let expected = if n == 0 { &[3, id][..] } else { &[3] };
            assert_eq!(ids, expected, "{id} {n}");
        }
        let first = Packet::parse(&datagrams[0]).unwrap().extension().unwrap();
        assert_eq!(map.capture_time(first, None), Ok(Some(capture)));
    }
}

#[test]
fn an_extension_longer_than_announced_cuts_the_frame() {
    let (frame, mut batch) = (frame(), Batch::new());
    let mut sender = sender(16, 1);
    let mut outgoing = sender.push(&frame, None).unwrap();
    assert!(!outgoing.fill(&mut batch));
    drop(outgoing);
    assert_eq!(sender.statistics().frames_cut, 1);
}

/// Sends each frame in one packet. If the frame begins with 0, the extension's element claims more
/// octets than there are.
struct Faulty(bool);

impl Packetiser for Faulty {
    fn start(&mut self, _: &[u8], _: usize) -> Result<(), FrameError> {
        self.0 = true;
        Ok(())
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        let element = if frame[0] == 0 { 0x3f } else { 0x32 };
        fragment.set_extension(HeaderExtension { profile: 0xbede, data: vec![element, 0, 0, 0] });
        fragment.push_frame(0..frame.len());
        std::mem::take(&mut self.0)
    }

    fn extension_len_max(&self) -> usize {
        EXTENSION_LEN
    }
}

#[test]
fn a_malformed_extension_uses_up_no_sequence_number() {
    let encrypted_extensions = ExtensionIds::new(&[3]);
    let policy = Policy { encrypted_extensions, ..Policy::new(Suite::AesCm128HmacSha1_80) };
    let key = master(policy.suite, 7, &[]);
    let mut sender = sender_of(Box::new(Faulty(false)), 5);
    sender = sender.secured(Protector::new(&policy, &key).unwrap()).unwrap();
    let mut batch = Batch::new();
    let mut numbers = Vec::new();
    for frame in [[1, 1], [0, 1], [2, 1], [0, 2], [3, 1]] {
        if sender.push(&frame, None).unwrap().fill(&mut batch) {
            let datagrams = datagrams(&batch);
            numbers.extend(datagrams.iter().map(|it| Packet::parse(it).unwrap().sequence().0));
        }
    }
    assert_eq!((sender.statistics().frames_cut, &numbers[..]), (2, &[5, 6, 7][..]));
}

/// Sends a frame, loses the packets that `lost` selects, retransmits them by RTX, and returns the
/// frames received.
fn with_retransmissions(policy: Option<Policy>, lost: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
    let (frame, now) = (frame(), Instant::now());
    let again = Retransmission::Rtx {
        payload_type: RTX,
        ssrc: Ssrc(8),
        first_sequence: SequenceNumber(100),
    };
    let mut sender = sender(4, 300).with_history(64, again);
    let mut config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
    config.remote_ssrc = Some(Ssrc(7));
    config.requests = Some(rushes_proto::repair::RequestTiming::default());
    config.retransmission = Some((RTX, Some(Ssrc(8))));
    let format = std::sync::Arc::new(Numbered { element_len: 4 });
    let mut receiver = Receiver::new(format, config).unwrap();
    if let Some(policy) = policy {
        let key = master(policy.suite, 7, &[]);
        sender = sender.secured(Protector::new(&policy, &key).unwrap()).unwrap();
        receiver = receiver.secured(Unprotector::new(&policy, &key).unwrap());
    }
    let (mut batch, mut spare) = (Batch::with_history(1 << 16), Batch::new());
    let mut outgoing = sender.push(&frame, None).unwrap();
    assert!(outgoing.fill(&mut batch));
    drop(outgoing);
    let sent = datagrams(&batch);
    for (n, datagram) in sent.iter().enumerate() {
        if !lost(n) {
            receiver.handle_datagram(now, datagram);
        }
    }
    for n in (0..sent.len()).filter(|n| lost(*n)) {
        let sequence = SequenceNumber(300).plus(n as u16);
        assert_eq!(sender.retransmit(now, sequence, &batch, &mut spare), Ok(true));
    }
    for datagram in datagrams(&spare) {
        receiver.handle_datagram(now, &datagram);
    }
    std::iter::from_fn(|| receiver.poll_frame()).map(|frame| frame.to_vec()).collect()
}

#[test]
fn packets_with_an_extension_are_protected_and_retransmitted() {
    let cryptex = Policy { cryptex: true, ..Policy::new(Suite::AeadAes128Gcm) };
    let encrypted_extensions = ExtensionIds::new(&[3]);
    let policies = [
        None,
        Some(Policy::new(Suite::AesCm128HmacSha1_80)),
        Some(Policy::new(Suite::AeadAes256Gcm)),
        Some(cryptex),
        Some(Policy { suite: Suite::AesCm128HmacSha1_80, ..cryptex }),
        Some(Policy { encrypted_extensions, ..Policy::new(Suite::AesCm128HmacSha1_80) }),
        Some(Policy { encrypted_extensions, ..Policy::new(Suite::AeadAes256Gcm) }),
    ];
    for policy in policies {
        assert_eq!(with_retransmissions(policy, |n| n % 3 == 2 && n < 12), [frame()], "{policy:?}");
    }
}

#[test]
fn a_retransmission_that_finds_no_room_uses_up_no_sequence_number() {
    let (frame, now) = (frame(), Instant::now());
    let again = Retransmission::Rtx {
        payload_type: RTX,
        ssrc: Ssrc(8),
        first_sequence: SequenceNumber(100),
    };
    let policy = Policy::new(Suite::AesCm128HmacSha1_80);
    let key = master(policy.suite, 7, &[]);
    // Packets are far longer than the limit.
    let mut sender = sender_of(Box::new(Whole(false)), 0).with_history(128, again);
    sender = sender.secured(Protector::new(&policy, &key).unwrap()).unwrap();
    let (mut batch, mut spare) = (Batch::with_history(1 << 18), Batch::new());
    for _ in 0..100 {
        assert!(sender.push(&frame, None).unwrap().fill(&mut batch));
    }
    let mut again = |n, spare: &mut Batch| sender.retransmit(now, SequenceNumber(n), &batch, spare);
    let sent = (0..100).take_while(|n| again(*n, &mut spare) == Ok(true)).count();
    assert_eq!((spare.lengths().len(), sent < 100), (sent, true));
    spare.clear();
    assert_eq!(again(sent as u16 + 1, &mut spare), Ok(true), "after {sent}");
}

/// Sends each frame in one packet with an extension.
struct Whole(bool);

impl Packetiser for Whole {
    fn start(&mut self, _: &[u8], _: usize) -> Result<(), FrameError> {
        self.0 = true;
        Ok(())
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        fragment.set_extension(HeaderExtension { profile: 0xbede, data: vec![0x32, 0, 0, 0] });
        fragment.push_frame(0..frame.len());
        std::mem::take(&mut self.0)
    }

    fn extension_len_max(&self) -> usize {
        EXTENSION_LEN
    }
}
