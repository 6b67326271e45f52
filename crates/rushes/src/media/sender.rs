//! The sending half of a stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use rushes_net::Counters;
use rushes_proto::rtp::CaptureTime;
use rushes_proto::stream::SendStatistics;
use rushes_proto::{RtpTimestamp, Ssrc};

use crate::error::Error;
use crate::pace::Pacer;
use crate::port::SendState;
use crate::reports::{Attached, Rtcp};

/// The sending half of a stream. Frames are sent on the caller's thread.
#[derive(Debug)]
pub struct StreamSender {
    pub(crate) attached: Arc<Attached>,
    pub(crate) pacer: Pacer,
}

impl StreamSender {
    /// Sends one frame of the stream's format, for example an access unit with start codes or an
    /// Opus packet. Returns when the kernel has accepted all of it.
    ///
    /// `timestamp` is its sampling instant in ticks of the stream's clock rate, as sent in the
    /// packets. With `None` it is that of the previous frame plus one frame interval (Opus: plus
    /// that frame's duration), starting at a random value.
    ///
    /// With [`Pacing`](crate::Pacing), the default, sending a frame of more than one
    /// [`Burst`](crate::Burst) takes most of the frame interval. Sender reports assume that the
    /// frame was captured at the time of this call; see
    /// [`push_frame_captured`](Self::push_frame_captured).
    ///
    /// # Errors
    /// [`Error::Frame`] if the format cannot carry the frame (nothing is sent),
    /// [`Error::NoDestination`], or [`Error::Send`] if the socket refuses a part of it; a sequence
    /// number is then skipped, so that receivers drop the frame.
    ///
    /// NAL units of types that RTP cannot carry are omitted and counted
    /// ([`SendStatistics::units_left_out`]); a frame without other units is an [`Error::Frame`].
    pub fn push_frame(
        &mut self,
        frame: &[u8],
        timestamp: impl Into<Option<RtpTimestamp>>,
    ) -> Result<(), Error> {
        self.push_frame_captured(frame, timestamp, Instant::now())
    }

    /// Sends one frame that was captured at `captured`. Sender reports carry that time to the
    /// receiver, which synchronises streams of several devices by it (see
    /// [`LipSync`](crate::LipSync)); the frame itself does, too, if that was agreed on (see
    /// [`StreamBuilder::extensions`](crate::StreamBuilder::extensions)).
    ///
    /// # Errors
    /// As [`push_frame`](Self::push_frame).
    pub fn push_frame_captured(
        &mut self,
        frame: &[u8],
        timestamp: impl Into<Option<RtpTimestamp>>,
        captured: Instant,
    ) -> Result<(), Error> {
        let Attached { port, reporter, .. } = &*self.attached;
        let _entered = reporter.span.enter();
        let (socket, outbox) = (port.socket(), &reporter.outbox);
        let to = outbox.to().ok_or(Error::NoDestination)?;
        let mut state = outbox.lock();
        let SendState { sender, batch, queue, retransmissions } = &mut *state;
        let capture = CaptureTime::new(self.attached.ntp(captured));
        let percent = usize::from(sender.fec_percent());
        let mut outgoing = sender.push_captured(frame, timestamp.into(), Some(capture))?;
        let sampled = (outgoing.timestamp(), captured);
        if retransmissions.is_none() && outbox.begin(sampled) {
            reporter.announce(port);
        }
        self.pacer.start(Instant::now(), frame.len() * (100 + percent) / 100);
        if let Some(octets) = self.pacer.burst_len() {
            outgoing.limit_batches(octets);
        }
        let mut outcome;
        loop {
            outcome = SendState::make_ready(socket, batch, queue, outbox.timeout());
            if outcome.is_err() || !outgoing.fill(batch) {
                break;
            }
            let now = Instant::now();
            if let Some(due) = self.pacer.due(now, batch.bytes().len()) {
                port.poll_within_frame();
                self.pacer.wait(due);
            }
            let deadline = Instant::now() + outbox.timeout();
            outcome = SendState::send(socket, batch, queue, to, deadline);
            if outcome.is_err() {
                break;
            }
            outbox.retransmit_within_frame(socket, &mut outgoing, batch, queue, retransmissions);
        }
        drop(outgoing);
        if outcome.is_err() {
            // Lets receivers detect the loss now rather than with the next frame.
            sender.keep_alive(batch);
            let _ = socket.send(queue, batch.bytes(), batch.lengths(), to, Instant::now());
        }
        let is_first = outbox.note(Instant::now(), &state.sender, Some(sampled));
        let key_event = state.sender.poll_event();
        drop(state);
        if let Some(event) = key_event {
            reporter.note_key_event(event);
        }
        if is_first {
            // With recovery the first report is sent with the first frame: its count shows receivers
            // that no earlier packet is missing.
            port.serve_now();
        }
        self.poll_port();
        Ok(outcome?)
    }

    /// Sends one packet without payload. Receivers ignore it, but detect packets lost before it by
    /// its sequence number: useful at the end of a stream, and to keep a path open.
    ///
    /// # Errors
    /// [`Error::NoDestination`] or [`Error::Send`].
    pub fn send_keep_alive(&mut self) -> Result<(), Error> {
        let Attached { port, reporter, .. } = &*self.attached;
        let (socket, outbox) = (port.socket(), &reporter.outbox);
        let to = outbox.to().ok_or(Error::NoDestination)?;
        let mut state = outbox.lock();
        let SendState { sender, batch, queue, .. } = &mut *state;
        SendState::make_ready(socket, batch, queue, outbox.timeout())?;
        sender.keep_alive(batch);
        let deadline = Instant::now() + outbox.timeout();
        let outcome = socket.send(queue, batch.bytes(), batch.lengths(), to, deadline);
        outbox.note(Instant::now(), &state.sender, None);
        drop(state);
        self.poll_port();
        Ok(outcome?)
    }

    /// Waits until `deadline`, answering requests and reports meanwhile.
    ///
    /// An application that only sends should wait with this between frames: otherwise, without a
    /// pulling thread, requests are not read before the next push.
    ///
    /// # Errors
    /// [`Error::Net`] if the socket cannot be read.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<(), Error> {
        self.attached.wait_until(deadline)
    }

    /// Returns the stream's RTCP.
    pub fn rtcp(&self) -> Rtcp {
        Rtcp { attached: self.attached.clone() }
    }

    /// Returns the timestamp of the next frame that is pushed without one.
    pub fn next_timestamp(&self) -> RtpTimestamp {
        self.attached.outbox().lock().sender.next_timestamp()
    }

    /// Returns the stream's own synchronisation source; a collision may change it.
    pub fn ssrc(&self) -> Ssrc {
        self.attached.outbox().ssrc()
    }

    /// Returns the destination of frames, if there is one.
    pub fn destination(&self) -> Option<SocketAddr> {
        self.attached.outbox().to()
    }

    /// Returns the local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.attached.port.local_address()
    }

    /// Returns the counters of sent frames and packets.
    pub fn statistics(&self) -> SendStatistics {
        self.attached.outbox().sent().statistics
    }

    /// Returns the counters of the socket, which streams on one port share.
    pub fn socket_counters(&self) -> Counters {
        self.attached.port.socket().counters()
    }

    /// Retransmits packets requested since the last call, and reads reports if no other thread
    /// does.
    fn poll_port(&self) {
        let port = &self.attached.port;
        self.attached.outbox().retransmit_requested(port.socket());
        port.poll();
    }
}
