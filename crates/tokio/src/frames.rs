//! The frames of many streams, for one task.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use rushes::net::NetError;
use rushes::{Error, Frame, Poller};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::coop::poll_proceed;

/// The frames of all streams of a [`Poller`], each with its stream's token; it never ends.
///
/// Who waits for the next frame also drives the RTCP of the streams, so one task should do so all the time.
/// Streams are added and removed between two frames ([`poller`](Self::poller)).
#[derive(Debug)]
pub struct Frames {
    poller: AsyncFd<Poller>,
}

impl Frames {
    /// Takes a poller, in the context of a runtime with `enable_io`.
    ///
    /// # Errors
    /// [`Error::Net`] if the runtime cannot wait for the poller's descriptor.
    ///
    /// # Panics
    /// Outside of a runtime, as tokio's own types do.
    pub fn new(poller: Poller) -> Result<Self, Error> {
        #[allow(
            deprecated,
            reason = "what replaces it is unsafe; a poller's descriptor is its own, and open while it exists"
        )]
        let poller = AsyncFd::with_interest(poller, Interest::READABLE).map_err(NetError::Wait)?;
        Ok(Self { poller })
    }

    /// Returns the poller, to add and remove streams.
    pub fn poller(&mut self) -> &mut Poller {
        self.poller.get_mut()
    }

    /// Returns the poller, for a thread of its own.
    pub fn into_poller(self) -> Poller {
        self.poller.into_inner()
    }

    /// Waits for the next frame of any stream; returns it with the stream's token. No frame is lost if the
    /// future is dropped.
    ///
    /// # Errors
    /// As [`Poller::pull`].
    pub async fn next(&mut self) -> Result<(u64, Frame), Error> {
        poll_fn(|context| self.poll_pull(context)).await
    }

    /// Returns the next frame of any stream, or lets the task be woken when there is one.
    ///
    /// # Errors
    /// As [`Poller::pull`].
    pub fn poll_pull(&mut self, context: &mut Context<'_>) -> Poll<Result<(u64, Frame), Error>> {
        // Frames may wait all the time, and other tasks of the thread want their turn, too.
        let budget = ready!(poll_proceed(context));
        loop {
            if let Some(found) = self.poller.get_mut().pull(Duration::ZERO)? {
                budget.made_progress();
                return Poll::Ready(Ok(found));
            }
            let guard = ready!(self.poller.poll_read_ready_mut(context));
            let mut guard = guard.map_err(NetError::Wait)?;
            // What arrives between this pull and the end of readiness makes the descriptor ready anew.
            let pulled = guard.get_inner_mut().pull(Duration::ZERO)?;
            if let Some(found) = pulled {
                budget.made_progress();
                return Poll::Ready(Ok(found));
            }
            guard.clear_ready();
        }
    }
}

impl Stream for Frames {
    type Item = Result<(u64, Frame), Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_pull(context).map(Some)
    }
}
