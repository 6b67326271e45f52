//! VP8 (RFC 7741), in IVF files.

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::vp8::{Descriptor, Vp8, frame_size, is_key_frame};
use rushes_proto::rtp::Packet;

use super::file::ivf;
use super::{Evidence, FileKind, MediaFormat, follows};

/// VP8's name in IVF.
const IVF_CODEC: [u8; 4] = *b"VP80";

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "vp8",
    title: "VP8",
    encoding: Some("VP8"),
    payload_type: PayloadType::new(104).unwrap(),
    payload: |_| Arc::new(Vp8::default()),
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

/// Bits of a descriptor's first octet that are reserved.
const RESERVED: u8 = 0x48;

/// Counts the packets that begin a frame, as one must after the last packet of another and nowhere else.
/// Those within frames are no evidence: their descriptors may be a zero octet.
fn evidence(packets: &[Packet<'_>]) -> Evidence {
    let mut evidence = Evidence::default();
    for pair in packets.windows(2) {
        let (before, packet) = (&pair[0], &pair[1]);
        if !follows(packet, before) {
            continue;
        }
        let payload = packet.payload();
        let descriptor = Descriptor::parse(payload);
        if !before.marker() && descriptor.is_ok_and(|it| !it.begins_frame) {
            continue;
        }
        let is_plausible = descriptor.is_ok_and(|descriptor| {
            let frame = &payload[descriptor.len..];
            let is_reserved = payload[0] & RESERVED != 0;
            // Versions of the bitstream above 3 are reserved (RFC 6386 section 9.1).
            let is_frame = !descriptor.begins_frame || frame[0] >> 1 & 7 <= 3;
            let has_size =
                !descriptor.begins_frame || !is_key_frame(frame) || frame_size(frame).is_some();
            !is_reserved && is_frame && has_size && descriptor.begins_frame == before.marker()
        });
        evidence.count(is_plausible);
    }
    evidence
}
