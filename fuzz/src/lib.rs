//! What the fuzz targets share: octets cut into packets, and a listener with small limits.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::control::{MediaSent, Participant, ParticipantConfig, Reception};
use rushes_proto::payload::{
    Delivery, FrameBuilder, FramePool, FrameSettings, Framing, PacketInfo, PayloadFormat,
};
use rushes_proto::rtcp::{Compound, Packet, XrBlock};
use rushes_proto::stream::{Receiver, ReceiverConfig};
use rushes_proto::timer::TimerConfig;
use rushes_proto::{ClockRate, ExtendedSequence, NtpTime, PayloadType, RtpTimestamp, Ssrc};

/// Octets in the largest frame that the listeners accept.
pub const FRAME_LEN_MAX: usize = 64 << 10;

/// Cuts `octets` into packets: a head of two octets gives length and flags of each.
pub fn packets(mut octets: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[len, flags], rest) = octets.split_first_chunk()?;
        let (packet, rest) = rest.split_at(usize::from(len).min(rest.len()));
        octets = rest;
        Some((flags, packet))
    })
}

fn settings(flags: u8) -> FrameSettings {
    FrameSettings {
        delivery: if flags & 1 == 0 { Delivery::Unit } else { Delivery::AccessUnit },
        framing: if flags & 2 == 0 { Framing::AnnexB } else { Framing::LengthPrefixed },
        frame_len_max: FRAME_LEN_MAX,
    }
}

/// Gives payloads, losses and markers as `octets` say to a depacketiser of `format`.
pub fn depacketise(format: &dyn PayloadFormat, octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else { return };
    let mut depacketiser = format.depacketiser();
    let mut frame = FrameBuilder::new(format, settings(*flags), FramePool::new());
    let arrival = Instant::now();
    for (flags, payload) in packets(octets) {
        if flags & 4 != 0 {
            depacketiser.lost();
            frame.lost(u64::from(flags >> 4));
        }
        let packet = PacketInfo {
            ssrc: Ssrc(1),
            timestamp: RtpTimestamp(u32::from(flags >> 6)),
            marker: flags & 1 != 0,
            arrival,
        };
        frame.begin_packet(packet);
        if depacketiser.push(payload, packet, &mut frame).is_err() {
            depacketiser.lost();
            frame.damage();
        }
        frame.end_packet();
        while let Some(frame) = frame.pop() {
            assert!(frame.len() <= FRAME_LEN_MAX);
        }
    }
}

/// Gives datagrams and time as `octets` say to a receiver of `format`.
pub fn receive(format: Arc<dyn PayloadFormat>, octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else { return };
    let mut config = ReceiverConfig::new(PayloadType::H265, format.clock_rate());
    config.frame = settings(*flags);
    config.reorder_packets_max = 16;
    config.reorder_len_max = 4096;
    config.sources_max = 3;
    config.source_timeout = Duration::from_millis(100);
    let Ok(mut receiver) = Receiver::new(format, config) else { return };
    let mut now = Instant::now();
    for (flags, datagram) in packets(octets) {
        now += Duration::from_millis(u64::from(flags));
        receiver.handle_timeout(now);
        receiver.handle_datagram(now, datagram);
        while let Some(frame) = receiver.poll_frame() {
            assert!(frame.len() <= FRAME_LEN_MAX);
        }
        while receiver.poll_event().is_some() {}
        assert!(receiver.statistics().held_octets <= 1 << 20);
    }
}

/// Reads everything that a datagram of RTCP can be asked for.
pub fn read_report(datagram: &[u8]) {
    let Ok(compound) = Compound::parse(datagram) else { return };
    for packet in compound.packets().flatten() {
        match packet {
            Packet::SenderReport(report) => assert!(report.blocks().count() <= 31),
            Packet::ReceiverReport(report) => assert!(report.blocks().count() <= 31),
            Packet::SourceDescription(description) => {
                for item in description.chunks().flat_map(|chunk| chunk.items()) {
                    let _ = item.private();
                }
            }
            Packet::Bye(bye) => assert!(bye.sources().count() <= 31),
            Packet::TransportFeedback(feedback) => {
                let nacks = feedback.nacks().into_iter().flatten();
                assert!(nacks.flat_map(|nack| nack.sequences()).count() <= 17 * datagram.len());
                let _ = feedback.bit_rate_requests().map(Iterator::count);
                let _ = feedback.bit_rate_notification().map(Iterator::count);
                let blocks = feedback.congestion().into_iter().flat_map(|report| report.blocks());
                assert!(blocks.flat_map(|block| block.packets()).count() <= datagram.len());
            }
            Packet::PayloadFeedback(feedback) => {
                let _ = feedback.slice_losses().map(Iterator::count);
                let _ = feedback.full_intra_requests().map(Iterator::count);
                let _ = feedback.reference_picture();
                let _ = feedback.estimate().map(|estimate| estimate.sources().count());
            }
            Packet::ExtendedReport(report) => {
                for block in report.blocks() {
                    if let XrBlock::Delays(delays) = block {
                        assert!(delays.iter().count() <= datagram.len());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Gives datagrams cut from `octets` to a participant of SSRC `own`, and reads what it answers.
pub fn participate(own: Ssrc, octets: &[u8]) {
    let start = Instant::now();
    let config = ParticipantConfig {
        ssrc: own,
        cname: "fuzz".to_owned(),
        description: Vec::new(),
        clock_rate: ClockRate::VIDEO,
        wall_clock: (start, NtpTime(0)),
        timer: TimerConfig::new(1_000_000),
        seed: 1,
        packet_len_max: 1200,
        header_len: 28,
        reduced_size: false,
        sources_max: 4,
    };
    let mut participant = Participant::new(config, start);
    let mut now = start;
    let media = MediaSent { packets: 1, octets: 2, last: Some((RtpTimestamp(3), start)) };
    for (flags, datagram) in packets(octets) {
        now += Duration::from_millis(u64::from(flags) * 16);
        let _ = participant.handle_datagram(now, None, datagram);
        let highest = ExtendedSequence(0x1_0000 + u64::from(flags));
        let reception = Reception {
            ssrc: Ssrc(u32::from(flags)),
            expected: u64::from(flags),
            received: 1,
            highest,
            jitter: 0,
            last_heard: now,
        };
        while let Some(answer) = participant.poll_datagram(now, &media, &[reception]) {
            assert!(answer.len() <= 1200);
            assert!(Compound::parse(answer).is_ok());
        }
        while participant.poll_event().is_some() {}
        assert!(participant.remotes().len() <= 4);
    }
}
