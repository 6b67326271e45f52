//! A source for tests: a few frames of octets that never repeat.

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{Layout, Rate};

/// A few frames of octets that never repeat.
pub(crate) struct Noise {
    layout: Layout,
    pub(crate) frames: Vec<Frame>,
    next: usize,
}

impl Noise {
    pub(crate) fn new(layout: Layout, count: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ layout.bytes() as u64;
        let mut octet = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let frames = (0..count).map(|_| Frame::new((0..layout.bytes()).map(|_| octet()).collect()));
        Self { layout, frames: frames.collect(), next: 0 }
    }
}

impl Source for Noise {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        Rate::new(20, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        Some(self.frames.len() as u64)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        self.next += 1;
        Ok(self.frames.get(self.next - 1).cloned())
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}
