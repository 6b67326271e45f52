//! H.266 (RFC 9328).

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::h266::H266;
use rushes_proto::payload::nal::NalCodec;
use rushes_proto::sdp::{Encoding, H266Parameters};

use super::nal::{self, annex_b, units_of};
use super::{FormatOptions, MediaFormat};

const NAL: NalCodec = NalCodec::H266;

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "h266",
    title: "H.266",
    encoding: Some("H266"),
    payload_type: PayloadType::H266,
    payload: |options| {
        let &FormatOptions { framing, max_don_diff, depack_buf_bytes, .. } = options;
        Arc::new(H266 { input: framing, max_don_diff, depack_buf_bytes, ..H266::default() })
    },
    describe: |_, frame| {
        let sets = |nal_type| units_of(NAL, nal_type, frame);
        let parameters = H266Parameters::from_parameter_sets(&sets(14), &sets(15), &sets(16));
        Encoding::H266(parameters.unwrap_or_default())
    },
    accept: |format, options| {
        if let Encoding::H266(parameters) = &format.encoding {
            options.max_don_diff = parameters.max_don_diff;
            options.depack_buf_bytes = parameters.depack_buf_bytes.unwrap_or(0);
        }
        format.supported()
    },
    parameter_sets: |encoding| match encoding {
        Encoding::H266(it) => annex_b(it.vps.iter().chain(&it.sps).chain(&it.pps)),
        _ => Vec::new(),
    },
    files: nal::files(&["266", "h266", "vvc"], |path, options| nal::reader(NAL, path, options)),
    evidence: |packets| super::nal_evidence::evidence(NAL, packets),
    has_parameter_sets: |frame| nal::has_parameter_sets(NAL, frame),
    is_key_frame: |frame| nal::is_key_frame(NAL, frame),
    nal: Some(NAL),
    ffmpeg: Some("vvc"),
    ..MediaFormat::UNKNOWN
};
