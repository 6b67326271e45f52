//! A stream: both halves in one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::payload::Frame;
use rushes_proto::{RtpTimestamp, Ssrc};

use super::hook::Hook;
use super::receiver::StreamReceiver;
use super::sender::StreamSender;
use crate::error::Error;
use crate::reports::{Attached, Rtcp};
use crate::stats::{DestinationStatistics, Statistics};

/// One stream of media to and from a peer; made by a [`StreamBuilder`](crate::StreamBuilder).
///
/// It has no thread of its own: the pushing thread sends
/// frames, and the pulling thread receives them. Dropping it closes the stream.
#[derive(Debug)]
pub struct MediaStream {
    pub(crate) sender: StreamSender,
    pub(crate) receiver: Receiving,
}

/// The destination of received frames.
#[derive(Debug)]
pub(crate) enum Receiving {
    Pulled(StreamReceiver),
    /// Kept alive, and stopped with the stream.
    Hooked(#[allow(dead_code, reason = "dropping it stops the thread")] Hook),
    /// There is no receiver: a hook is being started, or starting it failed.
    Taken,
}

impl MediaStream {
    /// Sends one frame; see [`StreamSender::push_frame`].
    ///
    /// # Errors
    /// As [`StreamSender::push_frame`].
    pub fn push_frame(
        &mut self,
        frame: &[u8],
        timestamp: impl Into<Option<RtpTimestamp>>,
    ) -> Result<(), Error> {
        self.sender.push_frame(frame, timestamp)
    }

    /// Waits for the next frame; see [`StreamReceiver::pull_frame`].
    ///
    /// # Errors
    /// [`Error::Hooked`] if the frames go to a hook, otherwise as
    /// [`StreamReceiver::pull_frame`].
    pub fn pull_frame(&mut self, timeout: Duration) -> Result<Option<Frame>, Error> {
        self.receiver()?.pull_frame(timeout)
    }

    /// Passes every frame from now on to `hook`, on one of the threads of hooks, until the stream is dropped; see
    /// [`StreamReceiver::on_frame`].
    ///
    /// # Errors
    /// [`Error::Hooked`] if there is a hook already, [`Error::Thread`] if the thread cannot be
    /// started.
    pub fn on_frame(&mut self, hook: impl FnMut(Frame) + Send + 'static) -> Result<(), Error> {
        match std::mem::replace(&mut self.receiver, Receiving::Taken) {
            Receiving::Pulled(receiver) => {
                self.receiver = Receiving::Hooked(receiver.on_frame(hook)?);
                Ok(())
            }
            other => {
                self.receiver = other;
                Err(Error::Hooked)
            }
        }
    }

    /// Returns the sending half, which also sends keep-alives and frames with a time of capture,
    /// and waits.
    pub fn sender(&mut self) -> &mut StreamSender {
        &mut self.sender
    }

    /// Returns the receiving half, on which the functions for events and errors are set.
    ///
    /// # Errors
    /// [`Error::Hooked`] if the frames go to a hook.
    pub fn receiver(&mut self) -> Result<&mut StreamReceiver, Error> {
        match &mut self.receiver {
            Receiving::Pulled(receiver) => Ok(receiver),
            Receiving::Hooked(_) | Receiving::Taken => Err(Error::Hooked),
        }
    }

    /// Returns the stream's RTCP: reports, requests, BYE.
    pub fn rtcp(&self) -> Rtcp {
        self.sender.rtcp()
    }

    /// Returns the two halves, for two threads.
    ///
    /// # Errors
    /// [`Error::Hooked`] if the frames go to a hook.
    pub fn split(self) -> Result<(StreamSender, StreamReceiver), Error> {
        match self.receiver {
            Receiving::Pulled(receiver) => Ok((self.sender, receiver)),
            Receiving::Hooked(_) | Receiving::Taken => Err(Error::Hooked),
        }
    }

    /// Returns the stream's own synchronisation source.
    pub fn ssrc(&self) -> Ssrc {
        self.sender.ssrc()
    }

    /// Returns the local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.sender.local_address()
    }

    /// Returns the stream's counters.
    pub fn statistics(&self) -> Statistics {
        self.sender.attached.statistics()
    }

    /// Returns a handle for use on any thread while others push and pull, and for changes of keys.
    pub fn handle(&self) -> StreamHandle {
        StreamHandle { attached: self.sender.attached.clone() }
    }
}

/// A handle to a stream for use on any thread while others push and pull: it reads counters,
/// changes keys, answers requests and stops sending. Cheap to clone. The stream's socket stays open while a handle
/// exists.
#[derive(Clone, Debug)]
pub struct StreamHandle {
    pub(crate) attached: Arc<Attached>,
}

impl StreamHandle {
    /// Returns the stream's own synchronisation source.
    pub fn ssrc(&self) -> Ssrc {
        self.attached.outbox().ssrc()
    }

    /// Returns the local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.attached.local_address()
    }

    /// Returns the stream's counters.
    pub fn statistics(&self) -> Statistics {
        self.attached.statistics()
    }

    /// Returns the destinations of frames; see [`StreamSender::destinations`].
    pub fn destinations(&self) -> Vec<DestinationStatistics> {
        self.attached.outbox().destinations().statistics()
    }

    /// Ends sending: a thread that is pushing a frame returns within about 100 ms with
    /// [`Error::SendingStopped`], however slow the pacing is. The rest of the frame is left out, which
    /// receivers detect at once, and every later push returns the same error.
    ///
    /// Keep-alives, retransmissions, reports and BYE are still sent, and the stream still receives.
    pub fn stop_sending(&self) {
        self.attached.outbox().end();
    }

    /// Leaves out the frames of temporal layers above `max` from the next frame on; `None` sends all.
    /// Frames of a higher layer than before are sent from the next one on at which a decoder can
    /// [begin](rushes_proto::payload::Layers::begins_layer) with it. They are counted
    /// ([`SendStatistics::frames_left_out`](rushes_proto::stream::SendStatistics)).
    ///
    /// Only frames whose headers tell their layer are left out: of H.265, H.266, AV1, and H.264 with
    /// prefix units (annex F). While another thread pushes a frame, the call waits for its end.
    pub fn set_max_temporal_id(&self, max: Option<u8>) {
        self.attached.outbox().lock().sender.set_max_temporal_id(max);
    }

    /// Waits until `deadline`, answering requests and reports meanwhile, as
    /// [`StreamSender::wait_until`] does; another thread may push at the same time. It never
    /// returns earlier: wait in short steps if the stream may be dropped meanwhile.
    ///
    /// # Errors
    /// [`Error::Net`] if the socket cannot be read.
    pub fn wait_until(&self, deadline: Instant) -> Result<(), Error> {
        self.attached.wait_until(deadline)
    }
}
