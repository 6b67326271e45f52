//! KTX 2.0, the Khronos container, for frames that are encoded already.
//!
//! Frames are the layers of one array texture without mipmaps or supercompression, row 0 on top.
//! `KTXanimData` says the rate: a frame lasts `duration / timescale` seconds. The key
//! `RushesFormat` holds the format's name as text ended by a zero octet; it tells apart what
//! Vulkan does not (`ycocg-bc3` from `bc3`, `etc1` from `etc2`) and need not be there for others.

mod descriptor;
mod reader;
mod writer;

pub use reader::Ktx2Reader;
pub use writer::Ktx2Writer;

/// The first octets of every file.
const MAGIC: [u8; 12] = *b"\xABKTX 20\xBB\r\n\x1A\n";

/// Octets of the header with the index of one level.
const HEADER: usize = 104;

/// Where the header has the number of layers, in octets.
const LAYERS_AT: u64 = 32;

/// Where the index has the octets of level 0, in the file and without supercompression.
const LEVEL_BYTES_AT: u64 = 88;

/// How long a frame is seen: duration, timescale and how often all is repeated.
const KEY_RATE: &[u8] = b"KTXanimData";

/// Which format it is.
const KEY_FORMAT: &[u8] = b"RushesFormat";

/// Octets of keys and values that are read.
const KEYS_MAX: u32 = 65_536;

/// Why a KTX 2.0 file cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Ktx2Error {
    /// It does not begin as KTX 2.0 files do.
    #[error("this is no KTX 2.0 file")]
    Magic,
    /// The file ends within its header.
    #[error("the file ends within its header")]
    Header,
    /// A `vkFormat` that is no format of ours; 0 is supercompressed.
    #[error("the file is of Vulkan's format {0}, which is not one of ours")]
    VkFormat(u32),
    /// `RushesFormat` names nothing, or what `vkFormat` cannot be.
    #[error("the key RushesFormat says {name:?}, which Vulkan's format {vk_format} is not")]
    Format {
        /// What the key says.
        name: String,
        /// What the header says.
        vk_format: u32,
    },
    /// A value of the header that frames do not have.
    #[error("{field} is {value}; frames are plain two-dimensional layers")]
    Field {
        /// The header's field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// Keys and values that lie outside the file, or are damaged.
    #[error("the keys and values are damaged at octet {0}")]
    Keys(u64),
    /// The layers lie outside the file, or have another size than they must.
    #[error("level 0 has {bytes} octets at {offset}, which are not {layers} frames of {frame}")]
    Level {
        /// Where the header says it begins, in octets.
        offset: u64,
        /// Octets that the header says.
        bytes: u64,
        /// Frames that the header says.
        layers: u32,
        /// Octets of a frame.
        frame: usize,
    },
}
