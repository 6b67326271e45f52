//! Short captures of each codec, as tshark's dissectors read them.
//!
//! Skipped where tshark is not installed. Its version 4.0 has no dissector for H.266, whose
//! packets are read as RTP only.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rushes::file::{MediaReader, ReadOptions};
use rushes::{Codec, Context, Pacing};

/// The port that captures name.
const PORT: u16 = 5004;

fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: tshark is not installed");
    }
    found
}

fn media(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

/// Sends a file's first frames with an MTU of 576 and returns the datagrams of each.
fn capture(name: &str, codec: Codec, frames: usize) -> Vec<Vec<Vec<u8>>> {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let port = listener.local_addr().unwrap().port();
    let session = Context::new().session("127.0.0.1").unwrap();
    let builder = session.stream(codec).remote_port(port).mtu(576).pacing(Pacing::Off);
    let mut stream = builder.open().unwrap();
    let mut reader = MediaReader::open(&media(name), codec, ReadOptions::default()).unwrap();
    let mut captured = Vec::new();
    let mut sent = 0;
    for _ in 0..frames {
        stream.push_frame(reader.next_frame().unwrap().unwrap().data, None).unwrap();
        let now = stream.statistics().send.packets;
        let mut buffer = [0; 2000];
        let mut datagrams = Vec::new();
        for _ in sent..now {
            let len = listener.recv(&mut buffer).unwrap();
            datagrams.push(buffer[..len].to_vec());
        }
        sent = now;
        captured.push(datagrams);
    }
    captured
}

/// A capture file of UDP over IPv4 without a link layer (`LINKTYPE_RAW`).
fn write_pcap(path: &Path, datagrams: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101_u32] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (n, datagram) in datagrams.iter().enumerate() {
        let udp_len = 8 + datagram.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&(20 + udp_len).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        for word in [40_000, PORT, udp_len, 0] {
            packet.extend_from_slice(&word.to_be_bytes());
        }
        packet.extend_from_slice(datagram);
        let len = packet.len() as u32;
        for word in [0, n as u32, len, len] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    std::fs::write(path, file).unwrap();
}

/// The given fields of each packet, as tshark prints them.
fn dissect(
    datagrams: &[Vec<u8>],
    payload_type: u8,
    dissector: &str,
    fields: &[&str],
) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcap");
    write_pcap(&path, datagrams);
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-d", &format!("udp.port=={PORT},rtp"), "-T", "fields"]);
    if !dissector.is_empty() {
        command.args(["-d", &format!("rtp.pt=={payload_type},{dissector}")]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

const RTP: [&str; 6] =
    ["rtp.version", "rtp.p_type", "rtp.seq", "rtp.marker", "rtp.timestamp", "_ws.malformed"];

/// Sequence numbers that follow each other, one timestamp a frame, the marker where it belongs.
fn check_rtp(frames: &[Vec<Vec<u8>>], payload_type: u8, ticks: u32, opus: bool) {
    let datagrams: Vec<Vec<u8>> = frames.concat();
    let rows = dissect(&datagrams, payload_type, "", &RTP);
    assert_eq!(rows.len(), datagrams.len());
    let number = |row: &[String], column: usize| row[column].parse::<u32>().unwrap();
    let (first, start) = (number(&rows[0], 2), number(&rows[0], 4));
    let mut rows = rows.iter().enumerate();
    for (frame, datagrams) in frames.iter().enumerate() {
        for place in 0..datagrams.len() {
            let (n, row) = rows.next().unwrap();
            assert_eq!(&row[0], "2");
            assert_eq!(&row[1], &payload_type.to_string());
            assert_eq!(number(row, 2), (first + n as u32) & 0xffff, "sequence number");
            let last = place + 1 == datagrams.len();
            let marker = if opus { frame == 0 } else { last };
            assert_eq!(matches!(&*row[3], "1" | "True"), marker, "marker of packet {n}");
            if !opus {
                let expected = start.wrapping_add(ticks * frame as u32);
                assert_eq!(number(row, 4), expected, "timestamp");
            }
            assert_eq!(row.get(5).map_or("", |malformed| malformed), "");
        }
    }
}

/// The values of one field over all packets; several in one packet are joined by commas.
fn values(frames: &[Vec<Vec<u8>>], payload_type: u8, dissector: &str, field: &str) -> Vec<String> {
    let rows = dissect(&frames.concat(), payload_type, dissector, &[field]);
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

#[test]
fn h264_is_read_as_stap_a_and_fu_a() {
    if !has_tshark() {
        return;
    }
    let frames = capture("avc_cif_60f_baseline.264", Codec::H264, 20);
    check_rtp(&frames, 96, 3000, false);
    let types = values(&frames, 96, "h264", "h264.nal_unit_hdr");
    let count =
        |name: &str| types.iter().filter(|types| types.split(',').next() == Some(name)).count();
    assert!(count("24") > 0, "STAP-A: {types:?}");
    assert!(count("28") > 10, "FU-A: {types:?}");
    let starts = values(&frames, 96, "h264", "h264.start.bit");
    let ends = values(&frames, 96, "h264", "h264.end.bit");
    let set = |bits: &[String]| bits.iter().filter(|bit| matches!(&***bit, "1" | "True")).count();
    assert!(set(&starts) > 5);
    assert_eq!(set(&starts), set(&ends));
}

#[test]
fn h265_is_read_as_aggregation_packets_and_fragmentation_units() {
    if !has_tshark() {
        return;
    }
    let frames = capture("hevc_192x128_90f_tiny_nals.265", Codec::H265, 30);
    check_rtp(&frames, 97, 3000, false);
    let types = values(&frames, 97, "h265", "h265.nal_unit_type");
    let count =
        |name: &str| types.iter().filter(|types| types.split(',').next() == Some(name)).count();
    assert!(count("48") > 20, "aggregation packets: {types:?}");
    assert!(count("49") > 0, "fragmentation units: {types:?}");
}

#[test]
fn h266_is_read_as_rtp() {
    if has_tshark() {
        let frames = capture("vvc_192x128_64f_vvenc_tiny_nals.266", Codec::H266, 30);
        check_rtp(&frames, 98, 3000, false);
    }
}

#[test]
fn opus_is_read_as_opus() {
    if !has_tshark() {
        return;
    }
    let frames = capture("opus_speech_mono_mixed_durations.opus", Codec::Opus, 60);
    check_rtp(&frames, 111, 0, true);
    let configurations = values(&frames, 111, "opus", "opus.TOC.config");
    assert!(configurations.iter().all(|configuration| !configuration.is_empty()));
}
