//! Texture video on the graphics processor: frames are received into its memory and decoded when
//! drawn.
//!
//! **What it is.** [`Gpu`] is a device; [`DeviceFrame`] is device memory for one frame;
//! [`FrameDecoder`] draws such frames and decodes only the visible pixels. [`GpuEncoder`] encodes
//! pictures to frames, and [`EncodedSource`] does so while they are sent.
//!
//! **What it is not.** It does not receive frames itself; `rushes::texture` does. `rushes` does not
//! depend on it, so that programs that display nothing build no graphics code.
//!
//! ```no_run
//! use rushes_gpu::{DeviceFrame, FrameDecoder, Gpu, GpuOptions, PICTURE_FORMAT, Picture, Place};
//! use rushes_texture::{Format, Layout};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gpu = Gpu::open(GpuOptions::default())?;
//! let layout = Layout::new(Format::Bc1, 64, 64)?;
//! let frame = DeviceFrame::new(&gpu, &layout);
//! frame.write(&gpu, &vec![0xff; layout.bytes()]);
//! let decoder = FrameDecoder::new(&gpu, &layout, PICTURE_FORMAT)?;
//! let picture = Picture::new(&gpu, 64, 64);
//! let mut encoder = gpu.recorder();
//! decoder.draw(&gpu, &mut encoder, &frame, picture.target(), &Place::exact(&layout));
//! assert_eq!(picture.read(&gpu, encoder)?.len(), 64 * 64 * 4);
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! | file | contents |
//! |---|---|
//! | `device.rs`, `error.rs` | the device, and the errors |
//! | `frame.rs`, `export.rs` | a frame in device memory, and its memory as others import it |
//! | `draw.rs` | code shared by all drawing |
//! | `decode/` | drawing of frames: a shader for each format |
//! | `mapped/` | memory that both processors access, or others import: the only unsafe code |
//! | `sink/` | reception of tiles into device memory |
//! | `window/` | frames in a window, presented by their capture times, with statistics (feature `window`) |
//! | `encode/` | encoding of pictures, stripe by stripe |
//! | `picture.rs` | drawn pictures, read back |
#![deny(unsafe_code)]

mod decode;
mod device;
mod draw;
mod encode;
mod error;
mod export;
mod frame;
#[allow(unsafe_code, reason = "memory that both processors access, or others import")]
mod mapped;
mod picture;
mod sink;
#[cfg(feature = "window")]
mod window;

pub use decode::{FrameDecoder, Path, Place};
pub use device::{Gpu, GpuOptions, Interface};
pub use encode::{
    Canvas, EncodedSource, GpuEncoder, RenderTarget, RenderedFrames, RenderedSource, Surface,
};
pub use error::GpuError;
#[cfg(unix)]
pub use export::ExportedMemory;
pub use export::{DeviceUuids, MemoryHandle};
pub use frame::DeviceFrame;
pub use picture::{PICTURE_FORMAT, Picture};
pub use sink::{GpuSink, ReceivedFrame, Upload, WrittenFrames};
pub use wgpu;
#[cfg(feature = "window")]
pub use window::{Shown, Viewer, WindowError, WindowHandle, WindowOptions, show};
