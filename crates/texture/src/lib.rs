//! Texture formats for video: how frames of them lie in memory, how they are cut into tiles, and
//! how the processor makes and reads them.
//!
//! **What it is.** [`Format`] names what a graphics processor can sample or a shader can unpack;
//! [`Layout`] says where each plane, block row and octet of a frame is; [`Tiling`] cuts a frame
//! into tiles of whole block rows, each contiguous in memory. [`Encoder`] makes such rows from
//! pictures, each by itself, and [`Decoder`] makes pictures from frames.
//!
//! **What it is not.** It sends nothing and draws nothing: tiles travel by `rushes`, and the
//! graphics processor is another crate's.
//!
//! ```
//! use rushes_texture::{Format, Layout, Tiling};
//!
//! # fn main() -> Result<(), rushes_texture::LayoutError> {
//! let layout = Layout::new(Format::Bc1, 3840, 2160)?;
//! assert_eq!(layout.bytes(), 4_147_200);
//! let tiling = Tiling::balanced(&layout, 4);
//! assert_eq!(tiling.tiles()[0].bytes, 0..1_036_800);
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! | file | what is there |
//! |---|---|
//! | `format.rs`, `layout.rs`, `tiling.rs` | what frames are made of, where it lies, how it is cut |
//! | `encoder.rs`, `decoder.rs`, `error.rs` | frames from pictures and back, and what is refused |
//! | `convert/` | raw pixels of any format as RGBA8 and back, a span at a time |
//! | `resample.rs` | between YUV 4:2:0 and 4:2:2 |
//! | `encode/`, `decode/` | rows of blocks from RGBA8 and back |
//! | `instruction_set.rs`, `dispatch.rs` | what this processor has: the only unsafe code |
//! | `elsewhere.rs` | other architectures: no vector code |
//! | `metric.rs` | how near one picture is to another |
#![deny(unsafe_code)]

mod convert;
mod decode;
mod decoder;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calls what detection found; loads and stores vectors")]
mod dispatch;
#[cfg(not(target_arch = "x86_64"))]
#[path = "elsewhere.rs"]
mod dispatch;
mod encode;
mod encoder;
mod error;
pub mod file;
mod format;
mod instruction_set;
mod layout;
pub mod metric;
mod rate;
mod resample;
mod rgb565;
#[doc(hidden)]
pub mod rows;
pub mod source;
mod tiling;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::CodecError;
pub use format::{Block, Format, Plane, UnknownFormat};
pub use instruction_set::InstructionSet;
pub use layout::{Layout, LayoutError, PlaneLayout, SIDE_MAX};
pub use rate::{RATE_MAX, Rate, RateError};
pub use source::{Frame, Source};
pub use tiling::{Tile, Tiling, TilingError, UNITS_MAX};
