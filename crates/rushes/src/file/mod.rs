//! Media files as sequences of frames, to be sent or as received by a stream.
//!
//! | codec | file |
//! |---|---|
//! | H.264, H.265, H.266 | Annex B bitstream, or 4-octet lengths |
//! | Opus | Ogg Opus (RFC 7845) |
//! | generic | octets, cut into frames of one size |
//!
//! Reading needs memory for one frame and a little more. Writing goes to `NAME.part`, which is
//! renamed when the file is finished and removed if it is not, unless the disk is full: then it is
//! kept.

mod error;
mod opus;
mod reader;
mod sink;
mod writer;

pub use error::FileError;
pub use opus::{OpusHead, OpusReader, OpusWriter};
pub use reader::{MediaFrame, MediaReader, ReadOptions};
pub use writer::MediaWriter;

use std::path::Path;

use crate::codec::Codec;

/// The codec of a file according to its name; `None` if the extension is missing or unknown.
///
/// ```
/// use rushes::{Codec, file::codec_of};
/// assert_eq!(codec_of("clip.265".as_ref()), Some(Codec::H265));
/// assert_eq!(codec_of("clip".as_ref()), None);
/// ```
pub fn codec_of(path: &Path) -> Option<Codec> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "264" | "h264" | "avc" | "26l" | "jsv" | "jvt" => Codec::H264,
        "265" | "h265" | "hevc" => Codec::H265,
        "266" | "h266" | "vvc" => Codec::H266,
        "opus" | "ogg" | "oga" => Codec::Opus,
        "raw" | "bin" => Codec::Generic,
        _ => return None,
    })
}
