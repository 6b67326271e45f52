//! Stubs for systems whose memory is not exported by descriptors.
#![forbid(unsafe_code)]

use crate::device::Gpu;
use crate::export::{DeviceUuids, MemoryHandle};

/// The reason.
const REASON: &str = "this system has no such handles";

/// Memory that others import, which does not exist here.
#[derive(Debug)]
pub(crate) enum Exported {}

impl Exported {
    pub(crate) const MORE: u64 = 0;

    pub(crate) fn check(_: &Gpu, _: MemoryHandle) -> Result<(), String> {
        Err(REASON.to_owned())
    }

    pub(crate) fn new(_: &Gpu, _: u64, _: MemoryHandle) -> Result<Self, String> {
        Err(REASON.to_owned())
    }

    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        match *self {}
    }

    pub(crate) fn acquire(&self) -> Result<(), String> {
        match *self {}
    }

    #[cfg(unix)]
    pub(crate) fn export(&self) -> Result<crate::export::ExportedMemory, String> {
        match *self {}
    }
}

pub(crate) fn uuids(_: &Gpu) -> Result<DeviceUuids, String> {
    Err(REASON.to_owned())
}
