//! Session descriptions of media over RTP (SDP, RFC 8866).
//!
//! [`Description::parse`] reads the descriptions of FFmpeg, `GStreamer`, browsers and cameras, and
//! [`Description::write`] writes descriptions that these can read. Both support the attributes that
//! matter to an RTP stream: formats with their parameters (RFC 6184, 7798, 9328, 7587, 4588),
//! feedback (RFC 4585, 5104), ports of RTCP (RFC 3605, 5761), header extensions (RFC 8285), sources
//! (RFC 5576) and keys (RFC 4568). Unknown attributes are kept as written.
//!
//! It is not an offer/answer machine (RFC 3264): it only returns the contents of a description, and
//! [`Media::supported`] checks whether Rushes supports the media.
//!
//! ```
//! use rushes_proto::sdp::{Description, Encoding};
//!
//! let text = b"v=0\no=- 0 0 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.7\nt=0 0\n\
//!     m=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\na=fmtp:96 packetization-mode=1\n";
//! let description = Description::parse(text)?;
//! let video = &description.media[0];
//! assert_eq!((video.ip()?.to_string(), video.port), ("192.0.2.7".into(), 5004));
//! assert!(matches!(video.supported()?.encoding, Encoding::H264(_)));
//! assert_eq!(Description::parse(description.write().as_bytes())?, description);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The lines are parsed here and not by another crate, so that only the unusable line is skipped
//! and reported with its number, even if only part of an attribute is wrong.

mod address;
mod attribute;
mod crypto;
mod crypto_error;
mod crypto_key;
mod crypto_session;
mod description;
mod error;
mod extension_map;
mod feedback;
mod format;
mod h264;
mod h265;
mod h266;
mod line;
mod media;
mod opus;
mod parameters;
mod parse;
mod parse_formats;
mod parse_media;
mod sequence_parameters;
mod source;
mod warning;
mod write;

pub use address::Address;
pub use attribute::{Attribute, Bandwidth};
pub use crypto::{Crypto, ValidCrypto};
pub use crypto_error::{CryptoError, KeyError};
pub use crypto_key::{InlineKey, Mki};
pub use crypto_session::{FecOrder, SessionParameters};
pub use description::{Description, Origin};
pub use error::{ParameterSetError, SdpError, Unsupported};
pub use extension_map::ExtensionMapping;
pub use feedback::Feedback;
pub use format::{Encoding, Format, static_format};
pub use h264::H264Parameters;
pub use h265::H265Parameters;
pub use h266::H266Parameters;
pub use media::{Direction, Media, MediaKind, Profile, RtcpPort};
pub use opus::OpusParameters;
pub use parameters::{OtherParameters, parameters};
pub use source::{Source, SourceGroup};
pub use warning::{LeftOut, Problem, Warning};

/// Maximum length of a description, in octets.
pub const DESCRIPTION_LEN_MAX: usize = 64 << 10;
/// Maximum number of lines of a description that are read.
pub const LINES_MAX: usize = 4096;
/// Maximum number of media of a description that are read.
pub const MEDIA_MAX: usize = 64;
/// Maximum number of warnings for one description.
pub const WARNINGS_MAX: usize = 64;
/// Maximum number of formats of one media.
pub const FORMATS_MAX: usize = 64;
/// Maximum number of header extension elements of one media.
pub const EXTENSIONS_MAX: usize = 64;
/// Maximum number of kinds of feedback for one format.
pub const FEEDBACK_MAX: usize = 32;
/// Maximum number of announced sources of one media.
pub const SOURCES_MAX: usize = 128;
/// Maximum number of master keys in the key parameters of one `a=crypto` line.
pub const CRYPTO_KEYS_MAX: usize = 16;
/// Maximum length of one master key and its salt, in octets; the longest known suite has 46.
pub const KEY_AND_SALT_LEN_MAX: usize = 128;
/// Maximum length of one master key identifier, in octets (RFC 4568 section 6.1).
pub const MKI_LEN_MAX: usize = 128;
/// Maximum number of packets that one master key may protect (RFC 4568 section 6.2, RFC 7714
/// section 13.1).
pub const LIFETIME_MAX: u64 = 1 << 48;
