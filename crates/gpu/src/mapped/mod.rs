//! Memory that the main processor writes and the graphics processor reads, or that others import. It contains
//! the only `unsafe` code.
//!
//! [`Persistent`] is mapped once and stays mapped. [`Mapped`] is mapped by wgpu and must be
//! unmapped before the device reads it. [`Exported`] is device memory with a handle for others.

#[cfg(all(unix, not(target_vendor = "apple")))]
mod exported;
#[cfg(not(target_vendor = "apple"))]
mod memory;
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
mod not_exported;
mod view;
#[cfg(not(target_vendor = "apple"))]
mod vulkan;
#[cfg(target_vendor = "apple")]
#[path = "elsewhere.rs"]
mod vulkan;

#[cfg(all(unix, not(target_vendor = "apple")))]
pub(crate) use exported::{Exported, uuids};
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
pub(crate) use not_exported::{Exported, uuids};
pub(crate) use view::Mapped;
pub(crate) use vulkan::{Persistent, Slice};
