//! A source whose pictures change their size.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use rushes::texture::source::{Frame, Live, Source, SourceError};
use rushes::texture::{Format, Layout, Rate};

/// The pictures of one size, in the order in which they are sent.
pub(crate) const SIZES: [(u32, u32); 4] = [(64, 48), (320, 180), (32, 128), (64, 48)];
pub(crate) const EACH: u64 = 12;

pub(crate) fn layout(number: u64, format: Format) -> Layout {
    let (width, height) = SIZES[(number / EACH) as usize % SIZES.len()];
    Layout::new(format, width, height).unwrap()
}

/// The octets of picture `number`, of which the first are the number.
pub(crate) fn picture(number: u64, format: Format) -> Vec<u8> {
    let octets = layout(number, format).bytes() as u64;
    let noise = (8..octets).map(|at| (at.wrapping_mul(at + number) >> 3) as u8);
    number.to_le_bytes().into_iter().chain(noise).collect()
}

/// Pictures at a rate; a live source does not wait for anybody.
pub(crate) struct Changing {
    pub(crate) format: Format,
    pub(crate) layout: Layout,
    pub(crate) rate: u32,
    pub(crate) next: u64,
    pub(crate) length: u64,
    pub(crate) live: Option<Arc<Closed>>,
}

#[derive(Default)]
pub(crate) struct Closed(Mutex<bool>);

impl Live for Closed {
    fn close(&self) {
        *self.0.lock().unwrap() = true;
    }

    fn captured_at(&self) -> Option<Instant> {
        None
    }
}

impl Changing {
    pub(crate) fn new(format: Format) -> Self {
        let length = EACH * SIZES.len() as u64;
        Self { format, layout: layout(0, format), rate: 100, next: 0, length, live: None }
    }
}

impl Source for Changing {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        Rate::new(self.rate, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let is_closed = self.live.as_ref().is_some_and(|live| *live.0.lock().unwrap());
        if self.next == self.length || is_closed {
            return Ok(None);
        }
        if self.live.is_some() {
            std::thread::sleep(self.rate().interval());
        }
        self.layout = layout(self.next, self.format);
        self.next += 1;
        Ok(Some(Frame::new(picture(self.next - 1, self.format))))
    }

    fn live(&self) -> Option<Arc<dyn Live>> {
        self.live.clone().map(|live| live as Arc<dyn Live>)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        self.layout = layout(0, self.format);
        Ok(())
    }
}
