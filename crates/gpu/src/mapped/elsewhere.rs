//! Stubs for systems without native Vulkan, where no memory stays mapped.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crate::device::Gpu;

/// Memory that stays mapped, which does not exist here.
#[derive(Debug)]
pub(crate) enum Persistent {}

/// A part of such memory, which does not exist here.
#[derive(Debug)]
pub(crate) enum Slice {}

impl Persistent {
    pub(crate) fn new(_: &Gpu, _: u64) -> Result<Arc<Self>, String> {
        Err("no Vulkan on this system".to_owned())
    }

    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        match *self {}
    }

    pub(crate) fn copy_from(&self, _: &Self, _: &[std::ops::Range<usize>]) -> Result<(), String> {
        match *self {}
    }

    pub(crate) fn slices(self: &Arc<Self>, _: &[std::ops::Range<usize>]) -> Option<Vec<Slice>> {
        match **self {}
    }
}

impl Slice {
    pub(crate) fn octets(&mut self) -> &mut [u8] {
        match *self {}
    }
}
