//! Stubs for a library that was built without graphics: there are no such values.

use std::net::SocketAddr;
use std::sync::Arc;

use rushes::texture::source::Source;
use rushes::texture::{ClientOptions, Format, Rate, TextureClient};

use super::{GpuDescription, GpuFrameView, GpuMemory, MemoryHandle};
use crate::error::{Failure, Status};
use crate::hook::{Callback, GpuHook};

#[derive(Debug)]
pub(in crate::texture) enum Device {}

#[derive(Debug)]
pub(in crate::texture) enum Sink {}

#[derive(Debug)]
pub(in crate::texture) enum Frame {}

#[derive(Debug)]
pub(in crate::texture) enum Canvases {}

impl Device {
    pub(in crate::texture) fn open() -> Result<Self, Failure> {
        let message = "the library was built without graphics: install it with --gpu";
        Err(Failure::new(Status::Unsupported, message))
    }

    pub(in crate::texture) fn describe(&self) -> Result<GpuDescription, Failure> {
        match *self {}
    }
}

impl Sink {
    pub(in crate::texture) fn new(
        device: &Device,
        _: MemoryHandle,
        _: Arc<Callback<GpuHook>>,
    ) -> Result<Self, Failure> {
        match *device {}
    }

    pub(in crate::texture) fn connect(
        &self,
        _: SocketAddr,
        _: ClientOptions,
    ) -> Result<TextureClient, Failure> {
        match *self {}
    }

    pub(in crate::texture) fn last(&self) -> Option<Frame> {
        match *self {}
    }

    pub(in crate::texture) fn is_running_here(&self) -> bool {
        match *self {}
    }
}

impl Frame {
    pub(in crate::texture) fn view(&self) -> Result<(GpuFrameView, &'static str), Failure> {
        match *self {}
    }

    pub(in crate::texture) fn export(&self) -> Result<GpuMemory, Failure> {
        match *self {}
    }
    pub(in crate::texture) fn is_canvas(&self) -> bool {
        match *self {}
    }

    pub(in crate::texture) fn send(&self) -> bool {
        match *self {}
    }
}

impl Canvases {
    pub(in crate::texture) fn new(
        device: &Device,
        _: MemoryHandle,
        _: (u32, u32),
        _: Format,
        _: Rate,
    ) -> Result<(Self, Box<dyn Source>), Failure> {
        match *device {}
    }

    pub(in crate::texture) fn canvas(&self) -> Result<Frame, Failure> {
        match *self {}
    }

    pub(in crate::texture) fn resize(&self, _: (u32, u32)) -> Result<(), Failure> {
        match *self {}
    }
}
