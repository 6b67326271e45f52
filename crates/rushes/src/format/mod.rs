//! Media formats: one value for each, with everything that the library and its programs know about
//! it.
//!
//! [`MediaFormat`] is that value, [`Codec`] a handle to it. The library's formats are in
//! [`FORMATS`], each defined in its own file. An application [registers](Codec::register) a value
//! of the same type for its own format: streams of that format are then described and received by
//! SDP, read from and written to files, and recognised by [`guess`].
//!
//! ```
//! use rushes::format::{Codec, MediaFormat, blocks};
//! use rushes::proto::payload::generic::Generic;
//! use rushes::{ClockRate, PayloadType};
//! use std::sync::Arc;
//!
//! static POINTS: MediaFormat = MediaFormat {
//!     name: "points",
//!     title: "point clouds",
//!     encoding: Some("X-POINTS"),
//!     payload_type: PayloadType::GENERIC,
//!     payload: |_| Arc::new(Generic { name: "X-POINTS", clock_rate: ClockRate::VIDEO }),
//!     files: blocks::files(&["points"]),
//!     ..MediaFormat::UNKNOWN
//! };
//!
//! let points = Codec::register(&POINTS)?;
//! assert_eq!(rushes::file::codec_of("lidar.points".as_ref()), Some(points));
//! # Ok::<(), rushes::Error>(())
//! ```

mod av1;
pub mod blocks;
mod evidence;
pub mod file;
mod generic;
mod h264;
mod h265;
mod h266;
mod klv;
mod nal;
mod nal_evidence;
mod opus;
mod opus_evidence;
mod pcm;
mod pcm_evidence;
mod raw;
mod raw_parameters;
mod vp8;
mod vp9;

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use std::{fmt, ptr};

use rushes_proto::payload::nal::NalCodec;
use rushes_proto::payload::pcm::{Pcm, Sample};
use rushes_proto::payload::{Framing, PayloadFormat};
use rushes_proto::rtp::Packet;
use rushes_proto::sdp::{self, Encoding, Unsupported};
use rushes_proto::{ClockRate, FrameRate, PayloadType};

pub use self::evidence::{Evidence, follows, guess};
pub use self::file::{FileKind, FrameReader, FrameWriter};
pub use self::nal_evidence::is_plausible;
pub use self::pcm_evidence::channels_of;
pub use self::raw_parameters::RawParameters;
use crate::error::Error;

/// The formats that come with the library. [`guess`] tries them in this order: the durations of
/// Opus packets and of samples are compared with their timestamps, which is stronger evidence than
/// headers.
pub static FORMATS: &[&MediaFormat] = &[
    &opus::FORMAT,
    &pcm::L16,
    &pcm::L24,
    &pcm::PCMU,
    &pcm::PCMA,
    &h264::FORMAT,
    &h265::FORMAT,
    &h266::FORMAT,
    &klv::FORMAT,
    &raw::FORMAT,
    &vp8::FORMAT,
    &vp9::FORMAT,
    &av1::FORMAT,
    &generic::FORMAT,
];

/// The longest packet time: receivers accept packets of up to 200 ms (RFC 3551 section 4.5).
pub(crate) const PACKET_TIME_MAX: Duration = Duration::from_millis(200);

/// The formats that applications have registered.
static REGISTERED: RwLock<Vec<&MediaFormat>> = RwLock::new(Vec::new());

/// Everything that the library knows about one format.
///
/// Complete it with `..MediaFormat::UNKNOWN`, so that a new field does not break the application.
pub struct MediaFormat {
    /// The name in options and in the interfaces of other languages, in lower case: `h264`.
    pub name: &'static str,
    /// The name in texts: `H.264`.
    pub title: &'static str,
    /// The encoding name of `a=rtpmap` in SDP; `None` for a format that descriptions cannot name.
    pub encoding: Option<&'static str>,
    /// The type of the media in SDP: `video`, `audio`, `application` or another (RFC 8866 section
    /// 5.14).
    pub media: &'static str,
    /// The payload type that a stream has by default.
    pub payload_type: PayloadType,
    /// The rate of the timestamps, unless a description or an option gives another.
    pub clock_rate: ClockRate,
    /// The number of audio channels in a description; one if `None`.
    pub channels: Option<u8>,
    /// The syntax of the NAL units, if frames are access units.
    pub nal: Option<NalCodec>,
    /// The coding of the samples, if frames are samples (L16, L24, PCMU, PCMA).
    pub sample: Option<Sample>,
    /// Creates the payload format: the packetiser and the depacketiser.
    pub payload: fn(&FormatOptions) -> Arc<dyn PayloadFormat>,
    /// Returns the encoding and its parameters for a session description, given the first frame of a
    /// stream. The default function returns the encoding name alone.
    pub describe: fn(&MediaFormat, &[u8]) -> Encoding,
    /// Returns the parameters for a session description that follow from the options of a stream and
    /// its frame rate, if that is known; empty if there are none, or `describe` returns them.
    pub parameters: fn(&FormatOptions, Option<FrameRate>) -> String,
    /// Checks that the options have what the payload format needs; the error says what is missing.
    pub check: fn(&FormatOptions) -> Result<(), &'static str>,
    /// Reads the parameters of the format in a description; an error if streams of it cannot be
    /// received.
    pub accept: fn(&sdp::Format, &mut FormatOptions) -> Result<(), Unsupported>,
    /// Returns the parameter sets in a description as a frame to precede the first one of the
    /// stream. Empty if there are none.
    pub parameter_sets: fn(&Encoding) -> Vec<u8>,
    /// Whether a frame contains parameter sets.
    pub has_parameter_sets: fn(&[u8]) -> bool,
    /// Whether a receiver can begin with this frame.
    pub is_key_frame: fn(&[u8]) -> bool,
    /// Returns the width and height in pixels that a frame declares, for the headers of files; key
    /// frames do. `None` if it does not.
    pub frame_size: fn(&[u8]) -> Option<[u32; 2]>,
    /// The files of the format.
    pub files: FileKind,
    /// Counts evidence for the format in packets of a stream, which are in order and have payloads.
    pub evidence: fn(&[Packet<'_>]) -> Evidence,
    /// FFmpeg's name of the format (`-f`).
    pub ffmpeg: Option<&'static str>,
}

impl MediaFormat {
    /// The defaults of a new format: its frames are octets in payloads of the generic format, and
    /// it has no encoding name and no file extension.
    pub const UNKNOWN: Self = Self {
        name: "",
        title: "",
        encoding: None,
        media: "video",
        payload_type: PayloadType::GENERIC,
        clock_rate: ClockRate::VIDEO,
        channels: None,
        nal: None,
        sample: None,
        payload: generic::payload,
        describe: |format, _| Encoding::Other {
            name: format.encoding.unwrap_or_default().to_owned(),
            parameters: String::new(),
        },
        parameters: |_, _| String::new(),
        check: |_| Ok(()),
        accept: |_, _| Ok(()),
        parameter_sets: |_| Vec::new(),
        has_parameter_sets: |_| false,
        is_key_frame: |_| true,
        frame_size: |_| None,
        files: blocks::files(&[]),
        evidence: |_| Evidence::default(),
        ffmpeg: None,
    };
}

/// Options of a payload format.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct FormatOptions {
    /// How NAL units are delimited in frames.
    pub framing: Framing,
    /// Whether NAL units of H.264 are sent whole, one in each packet (`packetization-mode=0`, RFC 6184 section
    /// 6.2). Frames with units that do not fit a packet are then refused.
    pub single_units: bool,
    /// `sprop-max-don-diff` of H.265 and H.266 (RFC 7798 section 7.1); 0 if NAL units are sent in
    /// decoding order.
    pub max_don_diff: u16,
    /// `sprop-depack-buf-nalus` of H.265; 0 if it is not known.
    pub depack_buf_nalus: u16,
    /// `sprop-depack-buf-bytes` of H.265 and H.266; 0 if it is not known.
    pub depack_buf_bytes: u32,
    /// The rate of the timestamps; `None` for the format's own.
    pub clock_rate: Option<ClockRate>,
    /// The size, sampling and depth of uncompressed video; `None` if they are not known.
    pub raw: Option<RawParameters>,
    /// The number of audio channels; `None` for the format's own.
    pub channels: Option<u8>,
    /// The duration of the samples in a sent packet (L16, L24, PCMU, PCMA), more than zero and at most
    /// 200 ms; `None` for the [default](rushes_proto::payload::pcm::Pcm::packet_samples).
    pub packet_time: Option<Duration>,
    /// The whole value of `a=fmtp` in the peer's description, for formats whose encoding is
    /// [`Encoding::Other`]; empty without a description.
    pub parameters: String,
}

/// A format, by reference: cheap to copy and to compare.
#[derive(Clone, Copy)]
pub struct Codec(&'static MediaFormat);

#[allow(non_upper_case_globals, reason = "they are used like the variants of an enumeration")]
impl Codec {
    /// AVC, RFC 6184 in packetization mode 1; 0 with a peer that takes no other.
    pub const H264: Self = Self(&h264::FORMAT);
    /// HEVC, RFC 7798.
    pub const H265: Self = Self(&h265::FORMAT);
    /// VVC, RFC 9328.
    pub const H266: Self = Self(&h266::FORMAT);
    /// Opus, RFC 7587.
    pub const Opus: Self = Self(&opus::FORMAT);
    /// Samples of 16 bits, RFC 3551. A frame is any number of samples of each channel, interleaved, in
    /// network byte order; a received one is a packet.
    pub const L16: Self = Self(&pcm::L16);
    /// Samples of 24 bits, RFC 3190, in frames as those of [`L16`](Self::L16).
    pub const L24: Self = Self(&pcm::L24);
    /// Samples in the µ-law of ITU-T G.711, RFC 3551.
    pub const Pcmu: Self = Self(&pcm::PCMU);
    /// Samples in the A-law of ITU-T G.711, RFC 3551.
    pub const Pcma: Self = Self(&pcm::PCMA);
    /// KLV metadata, RFC 6597.
    pub const Klv: Self = Self(&klv::FORMAT);
    /// VP8, RFC 7741.
    pub const Vp8: Self = Self(&vp8::FORMAT);
    /// VP9, RFC 9628.
    pub const Vp9: Self = Self(&vp9::FORMAT);
    /// AV1, by the RTP payload format of the Alliance for Open Media. A frame is a temporal unit.
    pub const Av1: Self = Self(&av1::FORMAT);
    /// Uncompressed video, RFC 4175. A frame is its lines; see
    /// [`RawVideo`](rushes_proto::payload::raw::RawVideo).
    pub const Uncompressed: Self = Self(&raw::FORMAT);
    /// Frames of any kind, split when larger than a packet; the marker bit ends a frame.
    pub const Generic: Self = Self(&generic::FORMAT);

    /// Registers the application's own format for the whole process. Registering the same value
    /// again has no effect.
    ///
    /// # Errors
    /// [`Error::FormatTaken`] if another format has its name, its encoding name or an extension of
    /// its files.
    pub fn register(format: &'static MediaFormat) -> Result<Self, Error> {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        let all = || registered.iter().chain(FORMATS).copied();
        if all().any(|other| ptr::eq(other, format)) {
            return Ok(Self(format));
        }
        if let Some(other) = all().find(|other| clashes(other, format)) {
            return Err(Error::FormatTaken { name: format.name, other: other.name });
        }
        registered.push(format);
        Ok(Self(format))
    }

    /// Returns all formats; registered ones come first.
    pub fn all() -> impl Iterator<Item = Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone();
        registered.into_iter().chain(FORMATS.iter().copied()).map(Self)
    }

    /// Returns the format called `name` in options, ignoring case. The generic format is also
    /// called `raw`, which is not uncompressed video (`uncompressed`).
    pub fn named(name: &str) -> Option<Self> {
        let name = full_name(name);
        Self::all().find(|codec| codec.name.eq_ignore_ascii_case(name))
    }

    /// Returns the format with the encoding name `name` in SDP, ignoring case.
    pub fn of_encoding(name: &str) -> Option<Self> {
        let is_named = |own: &str| own.eq_ignore_ascii_case(name);
        Self::all().find(|codec| codec.encoding.is_some_and(is_named))
    }

    /// Returns the format in a description and its options.
    ///
    /// # Errors
    /// [`Unsupported`], with the reason.
    pub fn of_description(format: &sdp::Format) -> Result<(Self, FormatOptions), Unsupported> {
        let name = format.encoding.name();
        let codec =
            Self::of_encoding(name).ok_or_else(|| Unsupported::Encoding(name.to_owned()))?;
        let parameters = match &format.encoding {
            Encoding::Other { parameters, .. } => parameters.clone(),
            _ => String::new(),
        };
        let (clock_rate, channels) = (Some(format.clock_rate), format.channels.or(Some(1)));
        let mut options =
            FormatOptions { clock_rate, channels, parameters, ..FormatOptions::default() };
        (codec.accept)(format, &mut options)?;
        Ok((codec, options))
    }

    /// Returns the payload type that a stream of this codec has by default.
    pub fn payload_type(self) -> PayloadType {
        self.0.payload_type
    }

    /// Returns whether frames consist of NAL units.
    pub fn has_nal_units(self) -> bool {
        self.0.nal.is_some()
    }
}

/// Returns the name in the table for a name in options.
fn full_name(name: &str) -> &str {
    if name.eq_ignore_ascii_case("raw") { "generic" } else { name }
}

/// Returns whether two formats have a name, an encoding name or a file extension in common.
fn clashes(one: &MediaFormat, other: &MediaFormat) -> bool {
    let is_same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let encoding = one.encoding.zip(other.encoding);
    let extensions = |format: &MediaFormat| format.files.extensions;
    is_same(full_name(one.name), full_name(other.name))
        || encoding.is_some_and(|(a, b)| is_same(a, b))
        || extensions(one).iter().any(|a| extensions(other).iter().any(|b| is_same(a, b)))
}

impl Deref for Codec {
    type Target = MediaFormat;

    fn deref(&self) -> &MediaFormat {
        self.0
    }
}

impl PartialEq for Codec {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Codec {}

impl Hash for Codec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::from_ref(self.0).hash(state);
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Codec({})", self.0.name)
    }
}

impl fmt::Debug for MediaFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaFormat").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A stream's format: one from the table, or only a payload format.
#[derive(Clone, Debug)]
pub(crate) enum StreamFormat {
    Codec(Codec),
    Own(Arc<dyn PayloadFormat>),
}

impl From<Codec> for StreamFormat {
    fn from(codec: Codec) -> Self {
        Self::Codec(codec)
    }
}

impl From<Arc<dyn PayloadFormat>> for StreamFormat {
    fn from(format: Arc<dyn PayloadFormat>) -> Self {
        Self::Own(format)
    }
}

impl StreamFormat {
    /// Checks that the options have what the format needs.
    pub(crate) fn check(&self, options: &FormatOptions) -> Result<(), Error> {
        let Self::Codec(codec) = self else { return Ok(()) };
        (codec.check)(options).map_err(|reason| Error::Format { name: codec.name, reason })
    }

    /// Returns the payload format of samples, if it is one.
    pub(crate) fn pcm(&self, options: &FormatOptions) -> Option<Pcm> {
        match self {
            Self::Codec(codec) => Some(pcm::with_options(codec, codec.sample?, options)),
            Self::Own(_) => None,
        }
    }

    /// Returns the payload format.
    pub(crate) fn payload(&self, options: &FormatOptions) -> Arc<dyn PayloadFormat> {
        match self {
            Self::Codec(codec) => (codec.payload)(options),
            Self::Own(format) => format.clone(),
        }
    }
}
