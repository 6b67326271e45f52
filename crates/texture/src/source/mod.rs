//! Where frames come from: files, a folder of images, memory, or a pattern drawn here.
//!
//! A [`Source`] gives each frame as a [`Frame`], octets that are shared and not copied: what was
//! loaded before, 99.5 MB each perhaps, goes to every unit of every client as it lies. A source
//! that makes frames keeps a few and fills those that nobody holds any more, so that one can be
//! made while another is sent, and nothing is allocated once it runs.
#![allow(clippy::disallowed_types, reason = "files are where frames come from")]

mod error;
mod frame;
mod growing;
mod images;
mod open;
mod pattern;
mod preloaded;
mod reading;

use crate::layout::Layout;
use crate::rate::Rate;

pub use error::SourceError;
pub use frame::Frame;
pub use growing::GrowingFrame;
pub use images::Images;
pub use open::{RawHint, open};
pub use pattern::{Pattern, PatternError, PatternSpec, read_counter};
pub use preloaded::Preloaded;
pub use reading::FileSource;

/// What gives frames, one after the other.
pub trait Source: Send {
    /// The format and size of every frame.
    fn layout(&self) -> &Layout;

    /// Frames per second at which they are meant to be shown.
    fn rate(&self) -> Rate;

    /// Frames from the first to the end, if it is known.
    fn length(&self) -> Option<u64>;

    /// The next frame, of exactly [`Layout::bytes`] octets; `None` at the end.
    ///
    /// It may be held for as long as it takes; while some are, others are filled.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the frame cannot be read; then what follows is unspecified until
    /// [`Self::rewind`].
    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError>;

    /// The next frame to who takes it; false at the end.
    ///
    /// A source that encodes what it gives does so here, to let others begin with the first rows
    /// while it goes on. All others give the frame of [`Self::next_frame`] once it is there.
    ///
    /// # Errors
    ///
    /// As for [`Self::next_frame`]; a frame that was begun stays as far as it is.
    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        let frame = self.next_frame()?;
        let more = frame.is_some();
        if let Some(frame) = frame {
            to.take(frame);
        }
        Ok(more)
    }

    /// Goes back to the first frame.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if what frames are read from cannot be read again.
    fn rewind(&mut self) -> Result<(), SourceError>;
}

/// Who takes frames from a source, one at a time.
///
/// Both ways to give one return when it is the frame's time, which may be later.
pub trait Taker {
    /// A frame that is whole.
    fn take(&mut self, frame: Frame);

    /// A frame whose picture is there, and nothing of it is encoded yet. It is whole before
    /// [`Source::give_frame`] returns.
    fn begin(&mut self, frame: &GrowingFrame);

    /// There is more of the frame that was begun last.
    fn grown(&mut self);
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn layout(&self) -> &Layout {
        (**self).layout()
    }

    fn rate(&self) -> Rate {
        (**self).rate()
    }

    fn length(&self) -> Option<u64> {
        (**self).length()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        (**self).next_frame()
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        (**self).give_frame(to)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        (**self).rewind()
    }
}
