//! Memory that the main processor writes and the graphics processor reads. It contains the only
//! `unsafe` code.
//!
//! [`Persistent`] is mapped once and stays mapped. [`Mapped`] is mapped by wgpu and must be
//! unmapped before the device reads it.

mod view;
#[cfg(not(target_vendor = "apple"))]
mod vulkan;
#[cfg(target_vendor = "apple")]
#[path = "elsewhere.rs"]
mod vulkan;

pub(crate) use view::Mapped;
pub(crate) use vulkan::{Persistent, Slice};
