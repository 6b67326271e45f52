//! Texture formats for video: how frames of them lie in memory, how they are cut into tiles, and
//! how the processor makes and reads them.
//!
//! **What it is.** [`Format`] names what a graphics processor can sample or a shader can unpack;
//! [`Layout`] says where each plane, block row and octet of a frame is; [`Tiling`] cuts a frame
//! into tiles of whole block rows, each contiguous in memory.
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
#![deny(unsafe_code)]

pub mod file;
mod format;
mod layout;
mod rate;
pub mod source;
mod tiling;

pub use format::{Block, Format, Plane, UnknownFormat};
pub use layout::{Layout, LayoutError, PlaneLayout, SIDE_MAX};
pub use rate::{RATE_MAX, Rate, RateError};
pub use source::{Frame, Source};
pub use tiling::{Tile, Tiling, TilingError, UNITS_MAX};
