//! H.265 (RFC 7798).

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::nal::NalCodec;
use rushes_proto::sdp::{Encoding, H265Parameters};

use super::nal::{self, annex_b, units_of};
use super::{FormatOptions, MediaFormat};

const NAL: NalCodec = NalCodec::H265;

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "h265",
    title: "H.265",
    encoding: Some("H265"),
    payload_type: PayloadType::H265,
    payload: |options| {
        let &FormatOptions { max_don_diff, depack_buf_nalus, depack_buf_bytes, .. } = options;
        let input = options.framing;
        let numbers = H265 { max_don_diff, depack_buf_nalus, ..H265::default() };
        Arc::new(H265 { input, depack_buf_bytes, ..numbers })
    },
    describe: |_, frame| {
        let sets = |nal_type| units_of(NAL, nal_type, frame);
        let parameters = H265Parameters::from_parameter_sets(&sets(32), &sets(33), &sets(34));
        Encoding::H265(parameters.unwrap_or_default())
    },
    accept: |format, options| {
        if let Encoding::H265(parameters) = &format.encoding {
            options.max_don_diff = parameters.max_don_diff;
            options.depack_buf_nalus = parameters.depack_buf_nalus.unwrap_or(0);
            options.depack_buf_bytes = parameters.depack_buf_bytes.unwrap_or(0);
        }
        format.supported()
    },
    parameter_sets: |encoding| match encoding {
        Encoding::H265(it) => annex_b(it.vps.iter().chain(&it.sps).chain(&it.pps)),
        _ => Vec::new(),
    },
    files: nal::files(&["265", "h265", "hevc"], |path, options| nal::reader(NAL, path, options)),
    evidence: |packets| super::nal_evidence::evidence(NAL, packets),
    has_parameter_sets: |frame| nal::has_parameter_sets(NAL, frame),
    is_key_frame: |frame| nal::is_key_frame(NAL, frame),
    nal: Some(NAL),
    ffmpeg: Some("hevc"),
    ..MediaFormat::UNKNOWN
};
