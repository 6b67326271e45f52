//! Memory for encoded frames, reused when they are no longer read.

use rushes_texture::source::GrowingFrame;
use rushes_texture::{Frame, Layout};

/// Block rows of a stripe, which are enough work for the device and cause little delay.
pub(super) const STRIPE_ROWS: u32 = 68;

/// Number of frames whose memory is kept: a server holds up to ten. If more are held, further
/// ones are allocated.
const FRAMES_MAX: usize = 12;

/// Frames that were passed on.
#[derive(Default)]
pub(super) struct Memory {
    growing: Vec<GrowingFrame>,
    whole: Vec<Frame>,
}

impl Memory {
    /// Returns a frame that is no longer read, or a new one.
    pub(super) fn growing(&mut self, layout: &Layout) -> GrowingFrame {
        if let Some(frame) = self.growing.iter_mut().find_map(|it| it.renew().then_some(it)) {
            return frame.clone();
        }
        let stripe = STRIPE_ROWS as usize * layout.planes()[0].row_bytes;
        let frame = GrowingFrame::new(layout.bytes(), stripe);
        if self.growing.len() == FRAMES_MAX {
            self.growing.remove(0);
        }
        self.growing.push(frame.clone());
        frame
    }

    /// Returns a complete frame whose bytes `fill` adds to empty memory.
    pub(super) fn whole<E>(
        &mut self,
        layout: &Layout,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Frame, E> {
        let mut octets = self.empty(layout);
        fill(&mut octets)?;
        let frame = Frame::new(octets);
        if self.whole.len() < FRAMES_MAX {
            self.whole.push(frame.clone());
        }
        Ok(frame)
    }

    /// Returns the memory of a complete frame that is no longer read, or new memory.
    fn empty(&mut self, layout: &Layout) -> Vec<u8> {
        for _ in 0..self.whole.len() {
            match self.whole.remove(0).try_into_vec() {
                Ok(mut memory) => {
                    memory.clear();
                    return memory;
                }
                Err(frame) => self.whole.push(frame),
            }
        }
        Vec::with_capacity(layout.bytes())
    }
}
