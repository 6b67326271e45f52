//! Texture formats for video: their layout in memory, their division into tiles, and encoders and
//! decoders that run on the main processor.
//!
//! **What it is.** [`Format`] lists formats that a graphics processor can sample or a shader can
//! unpack; [`Layout`] gives the position of each plane and block row of a frame; [`Tiling`] cuts a
//! frame into tiles of whole block rows, each contiguous in memory. [`Encoder`] encodes pictures to
//! block rows, each independently of the others, and [`Decoder`] decodes frames to pictures.
//!
//! **What it is not.** It neither sends nor draws frames: `rushes` transports tiles, and another
//! crate uses the graphics processor.
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
//! | file | contents |
//! |---|---|
//! | `format.rs`, `layout.rs`, `tiling.rs` | formats, the layout of frames, and their tiles |
//! | `colour.rs` | what values stand for: matrix, range, siting of chroma |
//! | `encoder.rs`, `decoder.rs`, `error.rs` | pictures to frames and back, and errors |
//! | `convert/` | raw pixels of any format to RGBA8 and back, a span at a time |
//! | `resample.rs` | conversion between YUV 4:2:0 and 4:2:2 |
//! | `scale/` | smaller pictures |
//! | `encode/`, `decode/` | RGBA8 to rows of blocks and back |
//! | `instruction_set.rs` | AVX-512, AVX2, NEON or portable code |
//! | `dispatch/` | use of vector instructions, for each architecture: the only unsafe code |
//! | `quality.rs` | how much time an encoder spends on a block |
//! | `nearest.rs` | known names for misspelled ones |
//! | `metric.rs` | the difference between two pictures |
#![deny(unsafe_code)]

mod colour;
mod convert;
mod decode;
mod decoder;
#[allow(unsafe_code, reason = "calls code for features of the processor, and accesses vectors")]
mod dispatch;
mod encode;
mod encoder;
mod error;
pub mod file;
mod format;
mod instruction_set;
mod layout;
pub mod metric;
mod nearest;
mod quality;
mod rate;
mod resample;
mod rgb565;
#[doc(hidden)]
pub mod rows;
mod scale;
pub mod source;
mod tiling;

pub use colour::{
    Colour, ColourHint, ColourRange, Factors, Matrix, Primaries, Siting, Transfer, UnknownColour,
};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::CodecError;
pub use format::{Block, Format, Plane, UnknownFormat};
pub use instruction_set::InstructionSet;
pub use layout::{Layout, LayoutError, PlaneLayout, SIDE_MAX};
pub use nearest::{did_you_mean, nearest};
pub use quality::{Quality, UnknownQuality};
pub use rate::{RATE_MAX, Rate, RateError};
pub use scale::{Scaler, fitted};
pub use source::{Frame, Source};
pub use tiling::{Tile, Tiling, TilingError, UNITS_MAX};
