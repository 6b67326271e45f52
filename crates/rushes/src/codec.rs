//! The payload formats that come with the library.

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::Framing;
use rushes_proto::payload::PayloadFormat;
use rushes_proto::payload::generic::Generic;
use rushes_proto::payload::h264::H264;
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::h266::H266;
use rushes_proto::payload::opus::Opus;

/// A codec whose payload format comes with the library.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Codec {
    /// AVC, RFC 6184 in packetization mode 1.
    H264,
    /// HEVC, RFC 7798.
    H265,
    /// VVC, RFC 9328.
    H266,
    /// Opus, RFC 7587.
    Opus,
    /// Frames of any kind, split when larger than a packet; the marker bit ends a frame.
    Generic,
}

impl Codec {
    /// The payload type that a stream of this codec has by default.
    pub fn payload_type(self) -> PayloadType {
        match self {
            Self::H264 => PayloadType::H264,
            Self::H265 => PayloadType::H265,
            Self::H266 => PayloadType::H266,
            Self::Opus => PayloadType::OPUS,
            Self::Generic => PayloadType::GENERIC,
        }
    }

    /// Whether frames are access units of NAL units.
    pub fn has_nal_units(self) -> bool {
        matches!(self, Self::H264 | Self::H265 | Self::H266)
    }
}

/// What a stream carries: a codec with its options, or a format of the application's own.
#[derive(Clone, Debug)]
pub(crate) enum Carried {
    Codec(Codec),
    Own(Arc<dyn PayloadFormat>),
}

impl From<Codec> for Carried {
    fn from(codec: Codec) -> Self {
        Self::Codec(codec)
    }
}

impl From<Arc<dyn PayloadFormat>> for Carried {
    fn from(format: Arc<dyn PayloadFormat>) -> Self {
        Self::Own(format)
    }
}

/// What is agreed on the order of NAL units of H.265 and H.266; all zero if they are sent in decoding
/// order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interleaving {
    pub(crate) max_don_diff: u16,
    pub(crate) depack_buf_nalus: u16,
    pub(crate) depack_buf_bytes: u32,
}

impl Carried {
    /// The payload format, with NAL units set apart by `framing`.
    pub(crate) fn format(
        &self,
        framing: Framing,
        interleaving: Interleaving,
    ) -> Arc<dyn PayloadFormat> {
        let Interleaving { max_don_diff, depack_buf_nalus, depack_buf_bytes } = interleaving;
        match self {
            Self::Codec(Codec::H264) => Arc::new(H264 { input: framing, ..H264::default() }),
            Self::Codec(Codec::H265) => {
                let input = framing;
                let buffer = H265 { depack_buf_nalus, depack_buf_bytes, ..H265::default() };
                Arc::new(H265 { input, max_don_diff, ..buffer })
            }
            Self::Codec(Codec::H266) => {
                let input = framing;
                Arc::new(H266 { input, max_don_diff, depack_buf_bytes, ..H266::default() })
            }
            Self::Codec(Codec::Opus) => Arc::new(Opus::default()),
            Self::Codec(Codec::Generic) => Arc::new(Generic::default()),
            Self::Own(format) => format.clone(),
        }
    }
}
