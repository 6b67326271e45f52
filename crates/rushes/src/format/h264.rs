//! H.264 (RFC 6184).

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::h264::H264;
use rushes_proto::payload::nal::NalCodec;
use rushes_proto::sdp::{Encoding, H264Parameters};

use super::MediaFormat;
use super::nal::{self, annex_b, units_of};

const NAL: NalCodec = NalCodec::H264;

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "h264",
    title: "H.264",
    encoding: Some("H264"),
    payload_type: PayloadType::H264,
    payload: |options| {
        let single_units = options.single_units;
        Arc::new(H264 { input: options.framing, single_units, ..H264::default() })
    },
    describe: |_, frame| {
        let sets = |nal_type| units_of(NAL, nal_type, frame);
        let fallback = H264Parameters { packetization_mode: 1, ..H264Parameters::default() };
        let parameters = H264Parameters::from_parameter_sets(&sets(7), &sets(8));
        Encoding::H264(parameters.unwrap_or(fallback))
    },
    accept: |format, _| format.supported(),
    parameter_sets: |encoding| match encoding {
        Encoding::H264(parameters) => annex_b(&parameters.parameter_sets),
        _ => Vec::new(),
    },
    files: nal::files(&["264", "h264", "avc", "26l", "jsv", "jvt"], |path, options| {
        nal::reader(NAL, path, options)
    }),
    evidence: |packets| super::nal_evidence::evidence(NAL, packets),
    has_parameter_sets: |frame| nal::has_parameter_sets(NAL, frame),
    is_key_frame: |frame| nal::is_key_frame(NAL, frame),
    nal: Some(NAL),
    ffmpeg: Some("h264"),
    ..MediaFormat::UNKNOWN
};
