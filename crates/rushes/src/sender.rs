//! The sending half of a stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use rushes_net::Counters;
use rushes_net::SendQueue;
use rushes_proto::Batch;
use rushes_proto::RtpTimestamp;
use rushes_proto::Ssrc;
use rushes_proto::stream::SendStatistics;
use rushes_proto::stream::Sender;

use crate::error::Error;
use crate::pace::Pacer;
use crate::pace::sleep_until;
use crate::port::Port;

/// The sending half of a stream. Frames go out on the caller's thread.
#[derive(Debug)]
pub struct StreamSender {
    pub(crate) port: Arc<Port>,
    pub(crate) to: Option<SocketAddr>,
    pub(crate) sender: Sender,
    pub(crate) pacer: Pacer,
    pub(crate) batch: Batch,
    pub(crate) queue: SendQueue,
    pub(crate) send_timeout: Duration,
    /// A copy for the other half, renewed once per frame.
    pub(crate) statistics: Arc<Mutex<SendStatistics>>,
}

impl StreamSender {
    /// Sends one frame: an access unit with start codes, an Opus packet, or whatever the stream's
    /// format calls a frame. Returns when the kernel has all of it.
    ///
    /// `timestamp` is its sampling instant in ticks of the stream's clock rate, as it travels in
    /// the packets. With `None` it follows the frame before by one frame interval (Opus: by that
    /// frame's duration), starting at a random value.
    ///
    /// With [`Pacing`](crate::Pacing), a frame of many batches takes its share of the frame
    /// interval.
    ///
    /// # Errors
    /// [`Error::Frame`] if the frame cannot travel (nothing is sent), [`Error::NoDestination`],
    /// or [`Error::Send`] if the socket refuses a part of it.
    pub fn push_frame(
        &mut self,
        frame: &[u8],
        timestamp: impl Into<Option<RtpTimestamp>>,
    ) -> Result<(), Error> {
        let to = self.to.ok_or(Error::NoDestination)?;
        let mut outgoing = self.sender.push(frame, timestamp.into())?;
        self.pacer.start(Instant::now(), frame.len());
        let mut outcome = Ok(());
        while outgoing.fill(&mut self.batch) {
            let now = Instant::now();
            if let Some(due) = self.pacer.due(now, self.batch.bytes().len()) {
                sleep_until(due);
            }
            let deadline = Instant::now() + self.send_timeout;
            let (bytes, lengths) = (self.batch.bytes(), self.batch.lengths());
            outcome = self.port.socket().send(&mut self.queue, bytes, lengths, to, deadline);
            if outcome.is_err() {
                break;
            }
        }
        self.publish();
        Ok(outcome?)
    }

    /// Sends one packet without payload. Receivers ignore it, but learn from its sequence number
    /// of packets lost before it: good at the end of a stream, and to keep a path open.
    ///
    /// # Errors
    /// [`Error::NoDestination`] or [`Error::Send`].
    pub fn send_keep_alive(&mut self) -> Result<(), Error> {
        let to = self.to.ok_or(Error::NoDestination)?;
        self.sender.keep_alive(&mut self.batch);
        let deadline = Instant::now() + self.send_timeout;
        let (bytes, lengths) = (self.batch.bytes(), self.batch.lengths());
        let outcome = self.port.socket().send(&mut self.queue, bytes, lengths, to, deadline);
        self.publish();
        Ok(outcome?)
    }

    /// The timestamp of the next frame that is given none.
    pub fn next_timestamp(&self) -> RtpTimestamp {
        self.sender.next_timestamp()
    }

    /// The stream's own synchronisation source.
    pub fn ssrc(&self) -> Ssrc {
        self.sender.config().ssrc
    }

    /// Where frames go, if anywhere.
    pub fn destination(&self) -> Option<SocketAddr> {
        self.to
    }

    /// The local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.port.local_address()
    }

    /// What was sent so far.
    pub fn statistics(&self) -> SendStatistics {
        self.sender.statistics()
    }

    /// What the socket has done so far; streams on one port share it.
    pub fn socket_counters(&self) -> Counters {
        self.port.socket().counters()
    }

    fn publish(&self) {
        let mut shared = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        *shared = self.sender.statistics();
    }
}
