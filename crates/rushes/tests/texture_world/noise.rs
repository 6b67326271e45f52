//! Pictures of octets that never repeat, and that both ends can compute.

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{Layout, Rate};
use rushes_netsim::Seeded;

/// Returns the octets of a picture.
pub(crate) fn picture(bytes: usize, number: u64) -> Vec<u8> {
    let mut octets = number.to_be_bytes().to_vec();
    octets.resize(bytes, 0);
    Seeded(number).fill(octets.get_mut(8..).unwrap_or_default());
    octets
}

/// Returns the number in the picture's first eight octets, or 0 if it is shorter.
pub(crate) fn number_of(octets: &[u8]) -> u64 {
    octets.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// A source of `count` pictures.
pub(crate) struct Noise {
    layout: Layout,
    rate: Rate,
    count: u64,
    next: u64,
}

impl Noise {
    pub(crate) fn new(layout: Layout, fps: u32, count: u64) -> Self {
        let rate = Rate::new(fps, 1).unwrap_or_else(|error| panic!("{error}"));
        Self { layout, rate, count, next: 0 }
    }
}

impl Source for Noise {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        Some(self.count)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        if self.next == self.count {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(Frame::new(picture(self.layout.bytes(), self.next - 1))))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}
