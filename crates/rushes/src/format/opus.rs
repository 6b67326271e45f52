//! Opus (RFC 7587), in Ogg files (RFC 7845).

use std::sync::Arc;

use rushes_proto::payload::opus::Opus;
use rushes_proto::sdp::{Encoding, OpusParameters};
use rushes_proto::{ClockRate, PayloadType};

use super::file::ogg_opus;
use super::opus_evidence::evidence;
use super::{FileKind, MediaFormat, blocks};

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "opus",
    title: "Opus",
    encoding: Some("opus"),
    media: "audio",
    payload_type: PayloadType::OPUS,
    clock_rate: ClockRate::OPUS,
    channels: Some(2),
    payload: |_| Arc::new(Opus::default()),
    describe: |_, _| {
        Encoding::Opus(OpusParameters { sprop_stereo: true, ..OpusParameters::default() })
    },
    accept: |format, _| format.supported(),
    files: FileKind {
        reader: ogg_opus::reader,
        writer: |_| ogg_opus::writer(),
        ..blocks::files(&["opus", "ogg", "oga"])
    },
    evidence,
    ffmpeg: Some("ogg"),
    ..MediaFormat::UNKNOWN
};
