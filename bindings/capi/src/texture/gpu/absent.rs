//! Stubs for a library that was built without graphics: there are no such values.

use std::net::SocketAddr;
use std::sync::Arc;

use rushes::texture::source::Source;
use rushes::texture::{ClientOptions, Format, Rate, TextureClient};

use super::{GpuDescription, GpuFrameView, GpuMemory, MemoryHandle};
use crate::error::{Failure, Status};
use crate::hook::{Callback, GpuHook};

#[derive(Debug)]
pub(super) enum Device {}

#[derive(Debug)]
pub(in crate::texture) enum Sink {}

#[derive(Debug)]
pub(super) enum Frame {}

#[derive(Debug)]
pub(in crate::texture) enum Canvases {}

impl Device {
    pub(super) fn open() -> Result<Self, Failure> {
        let message = "the library was built without graphics: install it with --gpu";
        Err(Failure::new(Status::Unsupported, message))
    }

    pub(super) fn describe(&self) -> Result<GpuDescription, Failure> {
        match *self {}
    }
}

impl Sink {
    pub(super) fn new(
        device: &Device,
        _: MemoryHandle,
        _: Arc<Callback<GpuHook>>,
    ) -> Result<Self, Failure> {
        match *device {}
    }

    pub(super) fn connect(
        &self,
        _: SocketAddr,
        _: ClientOptions,
    ) -> Result<TextureClient, Failure> {
        match *self {}
    }

    pub(super) fn last(&self) -> Option<Frame> {
        match *self {}
    }

    pub(in crate::texture) fn is_running_here(&self) -> bool {
        match *self {}
    }
}

impl Frame {
    pub(super) fn view(&self) -> Result<(GpuFrameView, &'static str), Failure> {
        match *self {}
    }

    pub(super) fn export(&self) -> Result<GpuMemory, Failure> {
        match *self {}
    }
    pub(super) fn is_canvas(&self) -> bool {
        match *self {}
    }

    pub(super) fn send(&self) -> bool {
        match *self {}
    }
}

impl Canvases {
    pub(super) fn new(
        device: &Device,
        _: MemoryHandle,
        _: (u32, u32),
        _: Format,
        _: Rate,
    ) -> Result<(Self, Box<dyn Source>), Failure> {
        match *device {}
    }

    pub(super) fn canvas(&self) -> Result<Frame, Failure> {
        match *self {}
    }

    pub(super) fn resize(&self, _: (u32, u32)) -> Result<(), Failure> {
        match *self {}
    }
}
