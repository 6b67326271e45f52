//! Texture video.

mod client;
mod codec;
mod frame;
mod gpu;
mod options;
mod pool;
mod queue;
mod server;
mod source;
mod stats;

pub(crate) use client::TextureClient;
pub(crate) use codec::{encode_texture, texture_formats};
pub(crate) use frame::TextureFrame;
pub(crate) use gpu::{Canvas, ExportedMemory, Gpu, GpuFrame, RenderedFrames};
pub(crate) use pool::Pooled;
pub(crate) use server::TextureServer;
pub(crate) use source::Pictures;
pub(crate) use stats::{SentTextureFrame, TextureClientStatistics, TextureServerCounts};
