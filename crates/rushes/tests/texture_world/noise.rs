//! Pictures of octets that never repeat, and that both ends can work out.

use rushes::texture::Layout;
use rushes::texture::Rate;
use rushes::texture::source::Frame;
use rushes::texture::source::Source;
use rushes::texture::source::SourceError;

/// Numbers that look random and come from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.roll() >> 33) % end.max(1)
    }
}

/// The octets of a picture.
pub(crate) fn picture(bytes: usize, number: u64) -> Vec<u8> {
    let mut dice = Dice::new(number.wrapping_add(1));
    let mut octets = Vec::with_capacity(bytes + 8);
    octets.extend(number.to_be_bytes());
    while octets.len() < bytes {
        octets.extend(dice.roll().to_be_bytes());
    }
    octets.truncate(bytes);
    octets
}

/// The number that a picture of eight octets or more begins with.
pub(crate) fn number_of(octets: &[u8]) -> u64 {
    octets.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// So many pictures.
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
