//! VP9 (RFC 9628), in IVF files.

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::vp9::{Descriptor, Vp9, frame_size, is_key_frame, profile};
use rushes_proto::rtp::Packet;
use rushes_proto::sdp::Encoding;

use super::file::ivf;
use super::{Evidence, FileKind, MediaFormat, follows};

const ENCODING: &str = "VP9";

/// VP9's name in IVF.
const IVF_CODEC: [u8; 4] = *b"VP90";

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "vp9",
    title: "VP9",
    encoding: Some(ENCODING),
    payload_type: PayloadType::new(105).unwrap(),
    payload: |_| Arc::new(Vp9::default()),
    describe: |_, frame| {
        let parameters = profile(frame).map_or_else(String::new, |it| format!("profile-id={it}"));
        Encoding::Other { name: ENCODING.to_owned(), parameters }
    },
    is_key_frame,
    frame_size: |frame| frame_size(frame).map(|size| size.map(u32::from)),
    files: FileKind {
        extensions: &["ivf"],
        reader: |path, _| ivf::reader(path, IVF_CODEC, FORMAT.title, <[u8]>::is_empty),
        writer: |_| ivf::writer(&FORMAT, IVF_CODEC),
        is_of: |head| ivf::is_of(head, IVF_CODEC),
    },
    evidence,
    ffmpeg: Some("ivf"),
    ..MediaFormat::UNKNOWN
};

/// Counts the packets that begin or end a frame, as they must at the ends of a picture. Those within
/// frames are no evidence: their descriptors may be a zero octet.
fn evidence(packets: &[Packet<'_>]) -> Evidence {
    let mut evidence = Evidence::default();
    for pair in packets.windows(2) {
        let (before, packet) = (&pair[0], &pair[1]);
        if !follows(packet, before) {
            continue;
        }
        let payload = packet.payload();
        let descriptor = Descriptor::parse(payload);
        let is_within = |it: Descriptor| !it.begins_frame && !it.ends_frame;
        if !before.marker() && !packet.marker() && descriptor.is_ok_and(is_within) {
            continue;
        }
        let is_plausible = descriptor.is_ok_and(|descriptor| {
            // A frame begins with the bits 10.
            let is_frame = !descriptor.begins_frame || payload[descriptor.len] >> 6 == 2;
            let begins = descriptor.begins_frame || !before.marker();
            let ends = descriptor.ends_frame || !packet.marker();
            let is_middle = descriptor.begins_frame && !ends_frame(before);
            is_frame && begins && ends && !is_middle
        });
        evidence.count(is_plausible);
    }
    evidence
}

fn ends_frame(packet: &Packet<'_>) -> bool {
    Descriptor::parse(packet.payload()).is_ok_and(|descriptor| descriptor.ends_frame)
}
