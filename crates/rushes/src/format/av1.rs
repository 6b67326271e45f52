//! AV1, in IVF files and as temporal units one after the other.

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::av1::{
    AggregationHeader, Av1, SequenceHeader, is_key_frame, is_well_formed,
};
use rushes_proto::rtp::Packet;
use rushes_proto::sdp::Encoding;

use super::file::{ivf, obu};
use super::{Evidence, FileKind, MediaFormat, blocks, follows};

const ENCODING: &str = "AV1";
/// Level 3.1, which an absent `level-idx` means. Descriptions name no lower one: it is the highest of a stream, and some
/// receivers refuse what is below their own.
const LEVEL: u8 = 5;

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "av1",
    title: "AV1",
    encoding: Some(ENCODING),
    payload_type: PayloadType::new(106).unwrap(),
    payload: |_| Arc::new(Av1::default()),
    describe: |_, frame| {
        let parameters = SequenceHeader::of_temporal_unit(frame).map_or_else(String::new, |it| {
            let level = it.level_idx.max(LEVEL);
            format!("profile={}; level-idx={level}; tier={}", it.profile, it.tier)
        });
        Encoding::Other { name: ENCODING.to_owned(), parameters }
    },
    is_key_frame,
    frame_size: |frame| SequenceHeader::of_temporal_unit(frame).map(|header| header.size),
    files: FileKind {
        extensions: &["obu", "ivf"],
        reader: obu::reader,
        writer: |path| match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("ivf") => {
                ivf::writer(&FORMAT, obu::IVF_CODEC)
            }
            _ => blocks::writer(path),
        },
        is_of: |head| ivf::is_of(head, obu::IVF_CODEC) || obu::begins_with_delimiter(head),
    },
    evidence,
    ffmpeg: Some("obu"),
    ..MediaFormat::UNKNOWN
};

/// Bits of the aggregation header that are reserved.
const RESERVED: u8 = 0x07;

/// Counts the packets that continue an OBU exactly if the packet before says that one goes on, and that
/// consist of OBU elements. Those within an OBU are no evidence.
fn evidence(packets: &[Packet<'_>]) -> Evidence {
    let mut evidence = Evidence::default();
    for pair in packets.windows(2) {
        let (before, packet) = (&pair[0], &pair[1]);
        let (Some(&earlier), Some(&first)) = (before.payload().first(), packet.payload().first())
        else {
            continue;
        };
        if !follows(packet, before) {
            continue;
        }
        let (earlier, header) =
            (AggregationHeader::parse(earlier), AggregationHeader::parse(first));
        if header.continues && header.goes_on && earlier.goes_on {
            continue;
        }
        // Nothing goes on after the last packet of a temporal unit, and no sequence begins within an
        // OBU.
        let is_plausible = first & RESERVED == 0
            && is_well_formed(packet.payload())
            && header.continues == earlier.goes_on
            && !(header.begins_sequence && header.continues)
            && !(packet.marker() && header.goes_on);
        evidence.count(is_plausible);
    }
    evidence
}
