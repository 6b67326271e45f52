//! ULPFEC in RED as GStreamer writes it: lost packets are recovered octet for octet, and our repair
//! packets of the same source packets are the same.
//!
//! Files carry the packets, each behind its length (RFC 4571), so that nothing depends on time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

use rushes_proto::Ssrc;
use rushes_proto::repair::fec::{BlockSize, Decoder, DecoderLimits, Encoder, FecFormat, red};
use rushes_proto::rtp::Packet;

#[path = "../../../interop/skipped.rs"]
mod skipped;

const SOURCE: Ssrc = Ssrc(0x0102_0304);
const MEDIA: u8 = 96;
const ULPFEC: u8 = 122;

/// Sends a film through GStreamer's encoders with 30 % of repair packets.
fn send(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let film = root.join("vectors/media/avc_cif_60f_baseline.264");
    let file = folder.join("packets");
    let pipeline = format!(
        "filesrc location={} ! h264parse ! video/x-h264,stream-format=byte-stream,alignment=au \
         ! rtph264pay pt={MEDIA} mtu=600 ssrc={} seqnum-offset=65500 \
         ! rtpulpfecenc pt={ULPFEC} multipacket=true percentage=30 percentage-important=30 \
         ! rtpredenc pt=121 allow-no-red-blocks=true ! rtpstreampay ! filesink location={}",
        film.display(),
        SOURCE.0,
        file.display()
    );
    let mut command = Command::new("gst-launch-1.0");
    let output = command.arg("-q").args(pipeline.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

/// Reads packets, each behind its length, and returns those that were in RED: repair packets or not.
fn read(file: &Path) -> Vec<(bool, Vec<u8>)> {
    let octets = std::fs::read(file).unwrap();
    let mut rest = &octets[..];
    let mut packets = Vec::new();
    while let Some((len, behind)) = rest.split_first_chunk::<2>() {
        let (datagram, behind) = behind.split_at(u16::from_be_bytes(*len).into());
        rest = behind;
        let packet = Packet::parse(datagram).unwrap();
        assert_eq!(packet.payload_type(), 121);
        let mut blocks = red::blocks(packet.payload()).unwrap();
        let block = blocks.next().unwrap();
        assert!(blocks.next().is_none());
        let mut bare = [&datagram[..packet.header_len()], block.data].concat();
        bare[1] = bare[1] & 0x80 | block.payload_type;
        assert!([MEDIA, ULPFEC].contains(&block.payload_type));
        packets.push((block.payload_type == ULPFEC, bare));
    }
    packets
}

#[test]
fn a_lost_packet_is_recovered_from_repair_packets_of_gstreamer() {
    if !skipped::have(&["gst-launch-1.0"]) {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fec_gstreamer");
    std::fs::create_dir_all(&folder).unwrap();
    let packets = read(&send(&folder));
    let repairs = packets.iter().filter(|(is_repair, _)| *is_repair).count();
    assert!(repairs > 20, "{repairs} repair packets");
    let mut recovered = 0;
    // Each run loses every ninth source packet, another one in each.
    for run in 0..9 {
        let limits = DecoderLimits::default();
        let mut decoder = Decoder::new(FecFormat::Ulp, SOURCE, limits);
        let mut sources = 0;
        for (is_repair, packet) in &packets {
            if *is_repair {
                decoder.handle_repair(&[], Packet::parse(packet).unwrap().payload()).unwrap();
            } else {
                sources += 1;
                if sources % 9 != run || sources == 1 {
                    decoder.handle_source(packet);
                }
            }
            while let Some(recovered_packet) = decoder.poll_recovered() {
                recovered += 1;
                assert!(packets.iter().any(|(_, sent)| *sent == recovered_packet));
            }
        }
        assert_eq!(decoder.counts().unusable, 0);
    }
    assert!(recovered > repairs, "{recovered} packets recovered by {repairs} repair packets");
}

#[test]
fn our_repair_packets_are_those_of_gstreamer() {
    if !skipped::have(&["gst-launch-1.0"]) {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fec_gstreamer_same");
    std::fs::create_dir_all(&folder).unwrap();
    let packets = read(&send(&folder));
    let mut compared = 0;
    for (is_repair, packet) in &packets {
        if !is_repair {
            continue;
        }
        let theirs = Packet::parse(packet).unwrap().payload();
        let base = u16::from_be_bytes([theirs[2], theirs[3]]);
        // Only consecutive packets, which one column protects, are those of a block of ours.
        let mask = u16::from_be_bytes([theirs[12], theirs[13]]);
        let count = mask.leading_ones() as u16;
        if theirs[0] & 0x40 != 0 || mask.count_ones() as u16 != count {
            continue;
        }
        let size = BlockSize::new(FecFormat::Ulp, count, 1).unwrap();
        let mut encoder = Encoder::new(size, SOURCE);
        for n in 0..count {
            let wanted = base.wrapping_add(n).to_be_bytes();
            let source =
                packets.iter().find(|(is_repair, sent)| !is_repair && sent[2..4] == wanted);
            encoder.push(&source.unwrap().1);
        }
        encoder.close(|ours| assert_eq!(ours, theirs));
        compared += 1;
    }
    assert!(compared > 20, "{compared} repair packets");
}
