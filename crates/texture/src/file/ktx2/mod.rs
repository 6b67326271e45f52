//! KTX 2.0, the Khronos container, for encoded frames.
//!
//! Frames are the layers of one array texture without mipmaps or supercompression, with row 0 at
//! the top; a single frame is a texture that is no array. `KTXanimData` holds the rate: a frame lasts
//! `duration / timescale` seconds. Only arrays may have that key; the rate of a single frame is stored under a key of
//! ours, `FramePeriod`. The key `RushesFormat` holds the format's name as zero-terminated text. It distinguishes formats with
//! the same `vkFormat` (`ycocg-bc3` and `bc3`, `etc1` and `etc2`) and is optional for others. The data
//! format descriptor has the primaries and the curve of R'G'B' ([`Colour`](crate::Colour)). Formats with a
//! matrix have several planes, which KTX files must not have.

mod descriptor;
mod reader;
mod writer;

pub use reader::Ktx2Reader;
pub use writer::Ktx2Writer;

/// The first bytes of every file.
const MAGIC: [u8; 12] = *b"\xABKTX 20\xBB\r\n\x1A\n";

/// Bytes of the header, including the index of one level.
const HEADER: usize = 104;

/// Offset of the number of layers in the header, in bytes.
const LAYERS_AT: u64 = 32;

/// Offset of the two lengths of level 0 in the index: in the file, and without supercompression.
const LEVEL_BYTES_AT: u64 = 88;

/// The key of the rate: duration, timescale and loop count.
const KEY_RATE: &[u8] = b"KTXanimData";

/// The key of the same values in a file of one frame. It is as long as [`KEY_RATE`], and first in byte order, too.
const KEY_PERIOD: &[u8; KEY_RATE.len()] = b"FramePeriod";

/// The key of the format's name.
const KEY_FORMAT: &[u8] = b"RushesFormat";

/// Maximum bytes of keys and values.
const KEYS_MAX: u32 = 65_536;

/// An invalid or unsupported KTX 2.0 file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Ktx2Error {
    /// The file does not begin with the magic of KTX 2.0.
    #[error("not a KTX 2.0 file")]
    Magic,
    /// The file ends within its header.
    #[error("the file ends within its header")]
    Header,
    /// An unsupported `vkFormat`; 0 stands for a supercompressed file.
    #[error("Vulkan format {0} is not supported")]
    VkFormat(u32),
    /// `RushesFormat` names no format, or one that does not match `vkFormat`.
    #[error("the key RushesFormat is {name:?}, which does not match Vulkan format {vk_format}")]
    Format {
        /// The value of the key.
        name: String,
        /// The `vkFormat` of the header.
        vk_format: u32,
    },
    /// A header field has a value that frames cannot have.
    #[error("{field} is {value}, but frames are plain two-dimensional layers")]
    Field {
        /// The header's field.
        field: &'static str,
        /// The value of the field.
        value: u32,
    },
    /// The keys and values are outside the file or damaged.
    #[error("the keys and values are damaged at byte {0}")]
    Keys(u64),
    /// The data format descriptor is outside the file or too short.
    #[error("the data format descriptor at byte {0} is damaged")]
    Descriptor(u32),
    /// The layers are outside the file or have the wrong size.
    #[error("level 0 has {bytes} bytes at offset {offset}, not {layers} frames of {frame} bytes")]
    Level {
        /// Offset of the level according to the header, in bytes.
        offset: u64,
        /// Bytes of the level according to the header.
        bytes: u64,
        /// Number of frames according to the header.
        layers: u32,
        /// Bytes of a frame.
        frame: usize,
    },
}
