//! The receiving half of a stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use rushes_proto::payload::Frame;
use rushes_proto::stream::Event;

use crate::error::Error;
use crate::hook::Hook;
use crate::port::{Inbox, Port, Pulled, Wait};
use crate::reporter::Reporting;
use crate::rtcp::Rtcp;
use crate::sending::Sending;
use crate::stats::Statistics;

/// The application's function for events of a receiver.
pub(crate) type EventHook = Box<dyn FnMut(Event) + Send>;

/// The receiving half of a stream. The thread that pulls a frame reads the socket.
pub struct StreamReceiver {
    pub(crate) shared: SharedReceiver,
    pub(crate) spin: Duration,
    pub(crate) events: Vec<Event>,
    pub(crate) on_event: Option<EventHook>,
    pub(crate) on_error: Option<ErrorHook>,
}

/// The application's function for errors of a hook's thread.
pub(crate) type ErrorHook = Box<dyn FnMut(&Error) + Send>;

/// How often a reader checks for a frame after its deadline: waiting events may end one check
/// before the socket is read, and new events the next. A sender that causes ever more events must
/// not keep it for ever.
const LATE_LOOKS: u32 = 2;

/// State that both halves and a hook's owner share.
#[derive(Clone, Debug)]
pub(crate) struct SharedReceiver {
    pub(crate) port: Arc<Port>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) sending: Arc<Sending>,
    pub(crate) reporting: Arc<Reporting>,
}

impl SharedReceiver {
    pub(crate) fn statistics(&self) -> Statistics {
        let (foreign, unrouted) = self.port.ignored();
        Statistics {
            send: self.sending.sent().statistics,
            receive: self.inbox.lock().statistics(),
            socket: self.port.socket().counters(),
            foreign,
            unrouted,
            uncollected: self.inbox.uncollected(),
        }
    }
}

impl StreamReceiver {
    /// Waits for the next frame, at most for `timeout`; `None` if none came. With a timeout of
    /// zero it takes what is there.
    ///
    /// Frames of one source come in order, each whole, each once. Reads the socket on the
    /// caller's thread, or waits for another stream's reader on the same port to do so.
    ///
    /// # Errors
    /// [`Error::Net`] if the socket fails; lost and refused packets are not errors.
    pub fn pull_frame(&mut self, timeout: Duration) -> Result<Option<Frame>, Error> {
        let deadline = deadline(timeout);
        let mut looks_left = LATE_LOOKS;
        while looks_left > 0 {
            looks_left -= u32::from(Instant::now() >= deadline);
            match self.pull_until(deadline)? {
                Pulled::Frame(frame) => return Ok(Some(frame)),
                Pulled::Timeout => break,
                Pulled::Woken => {}
            }
        }
        Ok(None)
    }

    /// Stops waiting for missing packets: complete frames can be pulled at once, the others are
    /// dropped and counted. For the end of a reception.
    pub fn flush(&mut self) {
        self.shared.inbox.lock().flush();
    }

    /// Sets a function that is called, on the thread that pulls, when packets are lost, frames
    /// dropped, or sources come and go, as soon as that is known.
    pub fn on_event(&mut self, hook: impl FnMut(Event) + Send + 'static) {
        self.on_event = Some(Box::new(hook));
    }

    /// Sets a function that gets socket errors on the thread of [`on_frame`](Self::on_frame):
    /// at once, and once a second while they last. Pulling returns them instead.
    pub fn on_error(&mut self, hook: impl FnMut(&Error) + Send + 'static) {
        self.on_error = Some(Box::new(hook));
    }

    /// Gives every frame to `hook`, on a thread of the stream's own, until the returned [`Hook`]
    /// is dropped.
    ///
    /// # Errors
    /// [`Error::Thread`] if the thread cannot be started.
    pub fn on_frame(self, hook: impl FnMut(Frame) + Send + 'static) -> Result<Hook, Error> {
        self.on_frame_within(hook, |run| run())
    }

    /// As [`on_frame`](Self::on_frame), with something done around it: `within` is called once, on the
    /// stream's own thread, and the hook is given frames while `within` calls what it is given. That
    /// returns when the [`Hook`] is dropped.
    ///
    /// So a thread can be made known to an interpreter or get another priority once, not with
    /// every frame.
    ///
    /// # Errors
    /// [`Error::Thread`] if the thread cannot be started.
    pub fn on_frame_within(
        self,
        hook: impl FnMut(Frame) + Send + 'static,
        within: impl FnOnce(&mut (dyn FnMut() + Send)) + Send + 'static,
    ) -> Result<Hook, Error> {
        Hook::start(self, Box::new(hook), Box::new(within))
    }

    /// The stream's RTCP.
    pub fn rtcp(&self) -> Rtcp {
        Rtcp { reporting: self.shared.reporting.clone() }
    }

    /// The local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.port.local_address()
    }

    /// The stream's counters.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    pub(crate) fn pull_until(&mut self, deadline: Instant) -> Result<Pulled, Error> {
        let wait = Wait { deadline, spin: self.spin };
        let SharedReceiver { port, inbox, .. } = &self.shared;
        let pulled = port.pull(inbox, wait, &mut self.events);
        for event in self.events.drain(..) {
            if let Some(hook) = &mut self.on_event {
                hook(event);
            }
        }
        pulled
    }
}

/// When `timeout` ends, or in a year if that is later.
fn deadline(timeout: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + timeout.min(YEAR)
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        self.shared.port.remove(&self.shared.inbox);
    }
}

impl std::fmt::Debug for StreamReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamReceiver").field("shared", &self.shared).finish_non_exhaustive()
    }
}
