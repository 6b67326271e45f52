//! Sources of frames: files, folders of images, pipes, memory, and a test pattern.
//!
//! A [`Source`] returns each frame as a [`Frame`], whose bytes are shared without copying: a
//! preloaded frame of, for example, 99.5 MB is sent to every unit of every client from the same
//! memory. A source that produces frames keeps a few and refills those that are no longer held, so
//! that one can be produced while another is sent and nothing is allocated in the long run.
#![allow(clippy::disallowed_types, reason = "sources read files")]

mod error;
mod frame;
mod growing;
mod images;
mod open;
mod pattern;
mod preloaded;
mod reading;

use std::sync::Arc;
use std::time::Instant;

use crate::layout::Layout;
use crate::rate::Rate;

pub use error::SourceError;
pub use frame::{Frame, Pool};
pub use growing::GrowingFrame;
pub use images::Images;
pub use open::{RawHint, open};
pub use pattern::{Pattern, PatternError, PatternSpec, read_counter};
pub use preloaded::Preloaded;
pub use reading::FileSource;

/// A source of consecutive frames.
pub trait Source: Send {
    /// Returns the format and size of frames: of the first one and then, if they change, of the one that was
    /// returned last. After [`Self::rewind`] it is that of the first one again.
    ///
    /// They change where a pipe's writer begins anew, or where a program renders to another size.
    fn layout(&self) -> &Layout;

    /// Returns the rate at which the frames should be shown.
    fn rate(&self) -> Rate;

    /// Returns the number of frames from the first to the end, if known.
    fn length(&self) -> Option<u64>;

    /// Returns the bits of the input's samples, if they are rounded to 8; by default `None`. Of several images it is
    /// the first that counts.
    fn rounded_from(&self) -> Option<u32> {
        None
    }

    /// Returns the colours that the input names, if [`Layout::colour`] cannot be these, as numbers of ITU-T H.273:
    /// primaries, transfer characteristics, matrix, and 1 for full range; by default `None`. What is unknown is taken
    /// to be as in sRGB. Of several images it is the first that counts.
    fn unknown_colour(&self) -> Option<[u8; 4]> {
        None
    }

    /// Returns the next frame, or `None` at the end. It has exactly the [`Layout::bytes`] of [`Self::layout`] after
    /// the call.
    ///
    /// The caller may hold it for any time; the source then fills other frames.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the frame cannot be read; the following frames are then unspecified until
    /// [`Self::rewind`].
    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError>;

    /// Passes the next frame to `to`. Returns `false` at the end.
    ///
    /// A source that encodes its frames overrides this method, so that the receiver can begin with
    /// the first rows while it encodes the rest. By default, the frame of [`Self::next_frame`] is
    /// passed on when it is complete. If frames may change, [`Taker::change`] is called before each.
    ///
    /// # Errors
    ///
    /// As for [`Self::next_frame`]; a frame that was begun stays incomplete.
    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        let Some(frame) = self.next_frame()? else { return Ok(false) };
        to.change(self.layout());
        to.take(frame);
        Ok(true)
    }

    /// Returns the handle of a live source, whose frames arrive as they are made; by default
    /// `None`.
    ///
    /// The frames of a live source are passed on when they arrive, and it is never rewound. It may
    /// wait for a frame for any time, until it is [closed](Live::close). A source that takes its
    /// frames from another source returns the handle of that source.
    fn live(&self) -> Option<Arc<dyn Live>> {
        None
    }

    /// Goes back to the first frame.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the source cannot be read again.
    fn rewind(&mut self) -> Result<(), SourceError>;
}

/// A handle of a live source, for other threads.
pub trait Live: Send + Sync {
    /// Ends the source. A thread that waits for a frame gets the end at once.
    fn close(&self);

    /// Returns when the last returned frame arrived, or `None` if none was returned.
    fn captured_at(&self) -> Option<Instant>;
}

/// A receiver of frames from a source, one at a time.
///
/// [`Self::take`] and [`Self::begin`] wait until the frame is due.
pub trait Taker {
    /// Takes the layout of the frames that follow. Nothing happens if it is the same as before.
    fn change(&mut self, layout: &Layout);

    /// Takes a complete frame.
    fn take(&mut self, frame: Frame);

    /// Takes a frame that is still empty.
    ///
    /// The frame is complete before [`Source::give_frame`] returns.
    fn begin(&mut self, frame: &GrowingFrame);

    /// Reports that bytes were added to the frame that was begun last.
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

    fn rounded_from(&self) -> Option<u32> {
        (**self).rounded_from()
    }

    fn unknown_colour(&self) -> Option<[u8; 4]> {
        (**self).unknown_colour()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        (**self).next_frame()
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        (**self).give_frame(to)
    }

    fn live(&self) -> Option<Arc<dyn Live>> {
        (**self).live()
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        (**self).rewind()
    }
}
