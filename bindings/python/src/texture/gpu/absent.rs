//! Stubs for a package that was built without graphics: there are no such values.

use std::sync::Arc;

use rushes::texture::source::Source;
use rushes::texture::{Format, Layout, Rate, TextureSink};

use super::{Exported, Handle, Seen, Uuids};
use crate::error::Failure;
use crate::texture::queue::Queue;

#[derive(Debug)]
pub(crate) enum Device {}

#[derive(Debug)]
pub(in crate::texture) enum Received {}

#[derive(Debug)]
pub(super) enum Descriptor {}

impl Device {
    pub(super) fn open() -> Result<Self, Failure> {
        let message = "the package was built without graphics; to install it with them, type in \
                       a clone: pip install --config-settings build-args=--features=gpu \
                       ./bindings/python";
        Err(Failure::Gpu(message.to_owned()))
    }

    pub(super) fn name(&self) -> String {
        match *self {}
    }

    pub(super) fn uuids(&self) -> Result<Uuids, Failure> {
        match *self {}
    }

    pub(super) fn is_software(&self) -> bool {
        match *self {}
    }

    pub(in crate::texture) fn sink(
        &self,
        _: Handle,
        _: Arc<Queue>,
    ) -> Result<Arc<dyn TextureSink>, Failure> {
        match *self {}
    }
}

impl Received {
    pub(super) fn seen(&self) -> Seen {
        match *self {}
    }

    pub(super) fn export(&self) -> Result<Exported, Failure> {
        match *self {}
    }
}

#[derive(Debug)]
pub(super) enum Canvases {}

#[derive(Debug)]
pub(super) enum Drawing {}

impl Canvases {
    pub(super) fn new(
        device: &Device,
        _: Handle,
        _: (u32, u32),
        _: Format,
        _: Rate,
    ) -> Result<(Self, Box<dyn Source>), Failure> {
        match *device {}
    }

    pub(super) fn canvas(&self) -> Result<Drawing, Failure> {
        match *self {}
    }

    pub(super) fn resize(&self, _: (u32, u32)) -> Result<(), Failure> {
        match *self {}
    }
}

impl Drawing {
    pub(super) fn layout(&self) -> &Layout {
        match *self {}
    }

    pub(super) fn id(&self) -> u64 {
        match *self {}
    }

    pub(super) fn export(&self) -> Result<Exported, Failure> {
        match *self {}
    }

    pub(super) fn send(self) -> bool {
        match self {}
    }
}

impl Descriptor {
    pub(super) fn number(&self) -> i32 {
        match *self {}
    }

    pub(super) fn detach(self) -> i32 {
        match self {}
    }
}
