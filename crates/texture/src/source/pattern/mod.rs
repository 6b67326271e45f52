//! A moving test pattern with frame numbers.

mod counter;
mod font;
mod ink;
mod scene;
mod spec;

use std::convert::Infallible;

use crate::layout::Layout;
use crate::rate::Rate;
use crate::source::frame::Pool;
use crate::source::pattern::scene::Scene;
use crate::source::{Frame, Source, SourceError};

pub use counter::read_counter;
pub use spec::{PatternError, PatternSpec};

/// A test pattern with moving parts and frame numbers.
///
/// It has colour bars with the frame number in large digits, two bands of colour that move in
/// opposite directions, a gradient and gratings, and the number again in squares that
/// [`read_counter`] reads. The static parts are drawn once; only the moving parts are drawn for
/// each frame.
#[derive(Debug)]
pub struct Pattern {
    layout: Layout,
    spec: PatternSpec,
    scene: Scene,
    next: u64,
    pool: Pool,
}

impl Pattern {
    /// Creates the pattern and draws its static parts.
    ///
    /// # Errors
    ///
    /// [`PatternError`] if the format is a block format, or the size is invalid.
    pub fn new(spec: &PatternSpec) -> Result<Self, PatternError> {
        let layout = Layout::new(spec.format, spec.size.0, spec.size.1)?;
        let scene = Scene::new(&layout).ok_or(PatternError::Blocks(spec.format))?;
        Ok(Self { layout, spec: *spec, scene, next: 0, pool: Pool::default() })
    }
}

impl Source for Pattern {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.spec.rate
    }

    fn length(&self) -> Option<u64> {
        self.spec.frames
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let number = self.next;
        if self.spec.frames == Some(number) {
            return Ok(None);
        }
        self.next += 1;
        let drawn = self.pool.fill(|frame| {
            self.scene.draw(frame, number);
            Ok::<_, Infallible>(true)
        });
        match drawn {
            Ok(frame) => Ok(frame),
            Err(never) => match never {},
        }
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}
