//! Captures of independent senders: the receiver restores the files that they sent.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::path::PathBuf;
use std::time::Instant;

use rushes_proto::payload::h264::H264;
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::opus::{Opus, packet_duration};
use rushes_proto::payload::{
    Delivery, Fragment, FrameBuilder, FramePool, FrameSettings, PacketInfo, PayloadFormat,
};
use rushes_proto::{RtpTimestamp, Ssrc};

/// Returns a test medium; `None`, with a message printed, if it is absent.
fn medium(name: &str) -> Option<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/media");
    let path = PathBuf::from(folder).join(name);
    if !path.exists() {
        skipped::not_here("no test media beside the repository");
        return None;
    }
    Some(std::fs::read(path).unwrap())
}

/// One RTP packet of a capture.
struct Packet {
    sequence: u16,
    timestamp: u32,
    marker: bool,
    payload: Vec<u8>,
}

fn big_endian(octets: &[u8]) -> usize {
    octets.iter().fold(0, |number, octet| number << 8 | usize::from(*octet))
}

/// Returns the RTP packets in a little-endian pcap file of IPv4 datagrams (`LINKTYPE_RAW`).
fn rtp_packets(pcap: &[u8]) -> Vec<Packet> {
    assert_eq!(pcap[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
    assert_eq!(pcap[20..24], [101, 0, 0, 0]);
    let mut packets = Vec::new();
    let mut rest = &pcap[24..];
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let ip = &rest[16..16 + len];
        rest = &rest[16 + len..];
        assert_eq!((ip[0] >> 4, ip[9]), (4, 17), "not UDP over IPv4");
        let udp = &ip[usize::from(ip[0] & 15) * 4..big_endian(&ip[2..4])];
        let rtp = &udp[8..big_endian(&udp[4..6])];
        if (200..=204).contains(&rtp[1]) {
            continue;
        }
        assert_eq!(rtp[0], 0x80, "no padding, no extension, no contributing sources");
        packets.push(Packet {
            sequence: big_endian(&rtp[2..4]) as u16,
            timestamp: big_endian(&rtp[4..8]) as u32,
            marker: rtp[1] & 0x80 != 0,
            payload: rtp[12..].to_vec(),
        });
    }
    let follows = |pair: &[Packet]| pair[1].sequence == pair[0].sequence.wrapping_add(1);
    assert!(packets.windows(2).all(follows), "the capture has gaps");
    packets
}

fn receive(format: &dyn PayloadFormat, delivery: Delivery, packets: &[Packet]) -> Vec<Vec<u8>> {
    let settings = FrameSettings { delivery, ..FrameSettings::default() };
    let mut builder = FrameBuilder::new(format, settings, FramePool::new());
    let mut depacketiser = format.depacketiser();
    let mut frames = Vec::new();
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    let arrival = Instant::now();
    for packet in packets {
        let timestamp = RtpTimestamp(packet.timestamp);
        let info = PacketInfo {
            ssrc: Ssrc(1),
            timestamp,
            marker: packet.marker,
            arrival,
            stamp: arrival,
            ecn: rushes_proto::Ecn::NotCapable,
            captured: None,
        };
        builder.begin_packet(info);
        depacketiser.push(&packet.payload, info, &mut builder).unwrap();
        builder.end_packet();
        frames.extend(std::iter::from_fn(|| builder.pop()).map(|frame| frame.to_vec()));
    }
    frames
}

/// Returns the NAL units of a byte stream, without trailing zeros.
fn nal_units(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut starts: Vec<usize> =
        (0..stream.len() - 2).filter(|&n| stream[n..n + 3] == [0, 0, 1]).collect();
    starts.push(stream.len());
    let unit = |pair: &[usize]| {
        let unit = &stream[pair[0] + 3..pair[1]];
        let len = unit.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        unit[..len].to_vec()
    };
    starts.windows(2).map(unit).collect()
}

fn check(format: &dyn PayloadFormat, capture: &str, source: &str, access_units: usize) {
    let (Some(pcap), Some(stream)) = (medium(&format!("captures/{capture}.pcap")), medium(source))
    else {
        return;
    };
    let packets = rtp_packets(&pcap);
    let expected = nal_units(&stream);
    let units = receive(format, Delivery::Unit, &packets);
    assert_eq!(units.len(), expected.len());
    // FFmpeg appends a zero of the next start code to the last NAL unit of an access unit.
    assert!(nal_units(&units.concat()) == expected, "{capture}: NAL units differ from {source}");
    let frames = receive(format, Delivery::AccessUnit, &packets);
    assert_eq!(frames.len(), access_units);
    assert!(
        nal_units(&frames.concat()) == expected,
        "{capture}: access units differ from {source}"
    );
}

#[test]
fn ffmpeg_h264_in_all_packet_types() {
    check(&H264::default(), "ff_avc_640x360_pkt1200", "avc_640x360_60f_s4_b3_aud_sei.264", 60);
}

#[test]
fn ffmpeg_h264_in_stap_as() {
    check(&H264::default(), "ff_avc_tiny_stapa", "avc_320x180_60f_tiny_nals.264", 60);
}

#[test]
fn gstreamer_h264_over_the_wrap_of_the_sequence_number() {
    check(&H264::default(), "gst_avc_aggr_max_640x360", "avc_640x360_60f_s4_b3_aud_sei.264", 60);
}

#[test]
fn ffmpeg_h265_in_aggregation_packets() {
    check(&H265::default(), "ff_hevc_tiny_ap", "hevc_192x128_90f_tiny_nals.265", 90);
}

#[test]
fn gstreamer_h265_in_all_packet_types() {
    check(&H265::default(), "gst_hevc_aggr_max_640x360", "hevc_640x360_60f_s4_b4_aud_sei.265", 60);
}

/// Packetises the access units of a capture at the same packet size, and expects the same payloads.
fn check_resent(format: &dyn PayloadFormat, capture: &str) {
    let Some(pcap) = medium(&format!("captures/{capture}.pcap")) else { return };
    let packets = rtp_packets(&pcap);
    let mut packetiser = format.packetiser();
    let mut fragment = Fragment::default();
    let mut theirs = packets.iter();
    for frame in receive(format, Delivery::AccessUnit, &packets) {
        packetiser.start(&frame, 1200 - 12).unwrap();
        while packetiser.next(&frame, &mut fragment) {
            let mut payload = vec![0; fragment.len()];
            fragment.write(&frame, &mut payload);
            let packet = theirs.next().unwrap();
            assert!(packet.payload == payload, "packet {} differs", packet.sequence);
            assert_eq!(packet.marker, fragment.marker());
            fragment.clear();
        }
    }
    assert_eq!(theirs.count(), 0);
}

#[test]
fn h264_is_sent_octet_for_octet_as_by_gstreamer() {
    check_resent(&H264::default(), "gst_avc_aggr_max_640x360");
}

#[test]
fn h265_is_sent_octet_for_octet_as_by_gstreamer() {
    check_resent(&H265::default(), "gst_hevc_aggr_max_640x360");
}

/// Returns the Opus packets of an Ogg file, without its two header packets.
fn ogg_packets(file: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = vec![Vec::new()];
    let mut rest = file;
    while !rest.is_empty() {
        assert_eq!(rest[..4], *b"OggS");
        let (lacing, mut body) = rest[27..].split_at(usize::from(rest[26]));
        for len in lacing {
            let segment;
            (segment, body) = body.split_at(usize::from(*len));
            packets.last_mut().unwrap().extend_from_slice(segment);
            if *len < 255 {
                packets.push(Vec::new());
            }
        }
        rest = body;
    }
    packets.pop();
    packets.split_off(2)
}

fn check_opus(capture: &str, source: &str, ticks: u32) {
    let (Some(pcap), Some(ogg)) = (medium(&format!("captures/{capture}.pcap")), medium(source))
    else {
        return;
    };
    let packets = rtp_packets(&pcap);
    let frames = receive(&Opus::default(), Delivery::AccessUnit, &packets);
    assert!(frames == ogg_packets(&ogg), "{capture}: packets differ from {source}");
    let lasted = frames.iter().map(|packet| packet_duration(packet).unwrap()).sum::<u32>();
    assert_eq!(lasted, ticks);
}

#[test]
fn ffmpeg_opus_of_20_ms() {
    check_opus("ff_opus_20ms", "opus_speech_mono_20ms_5s.opus", 250 * 960);
}

#[test]
fn gstreamer_opus_of_all_durations() {
    // 12 packets of each length up to 60 ms, 11 of 80, 100 and 120 ms.
    let ticks = 48 * (12 * 137 + 6 + 11 * 300);
    check_opus("gst_opus_mixed", "opus_speech_mono_mixed_durations.opus", ticks);
}
