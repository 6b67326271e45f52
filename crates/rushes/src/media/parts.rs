//! Frames that are sent part by part, by a thread that does not wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_net::{SendError, SendErrorKind, SendQueue};
use rushes_proto::rtp::CaptureTime;
use rushes_proto::stream::{FrameElements, Outgoing, Suspended};
use rushes_proto::{Batch, RtpTimestamp, SLAB_LEN};

use super::sender::{PACKET_LEN, RATE_INTERVAL, StreamSender};
use crate::error::Error;
use crate::pace::Pace;
use crate::port::{Outbox, Port, SendState};
use crate::reports::Attached;

/// Interval at which a full send buffer is tried again.
const FULL_INTERVAL: Duration = Duration::from_millis(1);

/// A frame that was begun.
#[derive(Debug)]
pub(crate) struct Unfinished {
    frame: Arc<[u8]>,
    rest: Suspended,
    captured: Instant,
    octets: usize,
    /// Octets whose time to be sent has not come.
    left: usize,
    /// Whether the next burst has waited for its time.
    has_waited: bool,
    unsent: Option<Unsent>,
}

/// Packets for which the send buffer had no room.
#[derive(Debug)]
struct Unsent {
    bytes: Vec<u8>,
    lengths: Vec<u16>,
    /// When they are given up.
    deadline: Instant,
}

impl Unsent {
    /// Copies the packets of a batch.
    fn of(batch: &Batch, deadline: Instant) -> Self {
        Self { bytes: batch.bytes().to_vec(), lengths: batch.lengths().to_vec(), deadline }
    }

    /// Removes the first packets.
    fn remove(&mut self, packets: usize) {
        let lengths = self.lengths.drain(..packets.min(self.lengths.len()));
        let octets: usize = lengths.map(usize::from).sum();
        self.bytes.drain(..octets);
    }
}

/// What has become of a part of a frame.
enum Part {
    /// The next one is due then.
    Due(Instant),
    Last,
    /// Nothing may be sent any more.
    Cut,
    Failed(SendError),
}

impl StreamSender {
    /// Sends the first burst of a frame as [`push_frame_captured`](Self::push_frame_captured) does, but never waits.
    /// Returns when [`continue_frame`](Self::continue_frame) must be called for the next burst, or `None` if nothing
    /// is left to send, also if the frame was left out. So one thread sends on many streams.
    ///
    /// Any other frame and any keep-alive ends one that is not finished; receivers then detect the loss.
    ///
    /// # Errors
    /// As [`push_frame`](Self::push_frame), but a full send buffer is no error at first:
    /// [`continue_frame`](Self::continue_frame) is then due a millisecond later. If a burst is not sent within
    /// [`send_timeout`](crate::StreamBuilder::send_timeout), it returns [`Error::Send`], and the frame ends. Of several
    /// destinations, one that has no room while others have loses the packets.
    pub fn begin_frame(
        &mut self,
        frame: Arc<[u8]>,
        timestamp: impl Into<Option<RtpTimestamp>>,
        captured: Instant,
    ) -> Result<Option<Instant>, Error> {
        self.cut();
        let Attached { port, reporter, .. } = &*self.attached;
        let (outbox, entered) = (&*self.outbox, self.span.enter());
        if outbox.cuts_frames() {
            reporter.check_frame()?;
        }
        if outbox.destinations().first().is_none() {
            return Err(self.without_destination());
        }
        let mut state = outbox.lock();
        let SendState { sender, retransmissions, .. } = &mut *state;
        let capture = CaptureTime::new(self.attached.ntp(captured));
        let octets = frame.len() * (100 + usize::from(sender.fec_percent())) / 100;
        let elements = FrameElements::default();
        let outgoing = sender.push_with(&frame, timestamp.into(), Some(capture), &elements)?;
        if outgoing.is_left_out() {
            drop(outgoing);
            outbox.note_left_out(&state.sender);
            drop(state);
            self.serve_port();
            return Ok(None);
        }
        if retransmissions.is_none() && outbox.begin((outgoing.timestamp(), captured)) {
            reporter.announce(port);
        }
        let rest = outgoing.suspend();
        drop(state);
        drop(entered);
        self.pacer.start(Instant::now(), octets.saturating_mul(outbox.destinations().count()));
        let (left, has_waited, unsent) = (octets, false, None);
        let unfinished = Unfinished { frame, rest, captured, octets, left, has_waited, unsent };
        self.unfinished = Some(Box::new(unfinished));
        self.continue_frame()
    }

    /// Sends what is due of a frame that was [begun](Self::begin_frame). Returns when to call this again, or `None`
    /// if all of it is sent.
    ///
    /// # Errors
    /// As [`begin_frame`](Self::begin_frame).
    pub fn continue_frame(&mut self) -> Result<Option<Instant>, Error> {
        let Some(mut unfinished) = self.unfinished.take() else { return Ok(None) };
        let (attached, outbox) = (self.attached.clone(), self.outbox.clone());
        let Attached { port, reporter, .. } = &*attached;
        let span = self.span.clone();
        let entered = span.enter();
        let mut state = outbox.lock();
        let mut scratch = port.scratch();
        let (sender, batch, queue, _) = state.with(scratch.as_deref_mut());
        let frame = unfinished.frame.clone();
        let mut outgoing = sender.resume(&frame, &unfinished.rest);
        let sampled = (outgoing.timestamp(), unfinished.captured);
        let mut sending = Sending { pacer: &mut *self.pacer, port, outbox: &outbox, batch, queue };
        let part = sending.send(&mut unfinished, &mut outgoing);
        if let Part::Due(_) = part {
            unfinished.rest = outgoing.suspend();
            self.unfinished = Some(unfinished);
        } else {
            let is_failed = matches!(part, Part::Failed(_));
            if is_failed || unfinished.unsent.is_some() {
                outgoing.abandon();
            } else {
                drop(outgoing);
            }
            if is_failed || matches!(part, Part::Cut) && !outbox.is_stopped() {
                // Lets receivers detect the loss now rather than with the next frame.
                sender.keep_alive(batch);
                let (socket, destinations) = (port.socket(), outbox.destinations());
                let _ = SendState::send(socket, batch, queue, destinations, Instant::now());
            }
            if let Some(rate) = &outbox.rate {
                rate.note_frame(Instant::now(), unfinished.octets, unfinished.captured);
            }
        }
        drop(scratch);
        self.note_sent(state, sampled);
        self.serve_port();
        drop(entered);
        self.warn_of_refusals();
        match part {
            Part::Due(due) => Ok(Some(due)),
            Part::Last => Ok(None),
            Part::Cut => reporter.check_frame().map(|()| None),
            Part::Failed(error) => Err(error.into()),
        }
    }

    /// Does what is due on the port. A poller reads it: its thread does not wait here.
    fn serve_port(&self) {
        let port = &self.attached.port;
        if !port.watches().are_any() {
            return self.poll_port();
        }
        self.outbox.retransmit_requested(port.socket());
        port.serve(Instant::now());
    }

    /// Ends a frame that is not finished.
    pub(super) fn cut(&mut self) {
        if let Some(unfinished) = self.unfinished.take() {
            let mut state = self.attached.outbox().lock();
            let outgoing = state.sender.resume(&unfinished.frame, &unfinished.rest);
            if unfinished.unsent.is_some() {
                outgoing.abandon();
            }
        }
    }
}

/// What a part of a frame is sent with.
struct Sending<'s> {
    pacer: &'s mut dyn Pace,
    port: &'s Port,
    outbox: &'s Outbox,
    batch: &'s mut Batch,
    queue: &'s mut SendQueue,
}

impl Sending<'_> {
    fn send(&mut self, frame: &mut Unfinished, outgoing: &mut Outgoing<'_, '_>) -> Part {
        loop {
            if self.outbox.cuts_frames() {
                return Part::Cut;
            }
            match self.send_unsent(frame) {
                Ok(None) => {}
                Ok(Some(due)) => return Part::Due(due),
                Err(error) => return Part::Failed(error),
            }
            if let Some(due) = self.due(frame, outgoing) {
                return Part::Due(due);
            }
            outgoing.set_now(Instant::now());
            if !outgoing.fill(self.batch) {
                return Part::Last;
            }
            self.outbox.note_packets(self.batch);
            let (socket, destinations) = (self.port.socket(), self.outbox.destinations());
            let now = Instant::now();
            match SendState::send(socket, self.batch, self.queue, destinations, now) {
                Ok(()) => {}
                Err(SendError { kind: SendErrorKind::BufferFull, sent }) => {
                    let mut unsent = Unsent::of(self.batch, now + self.outbox.timeout());
                    unsent.remove(sent);
                    frame.unsent = Some(unsent);
                }
                Err(error) => return Part::Failed(error),
            }
        }
    }

    /// Sends the packets for which there was no room; returns when to try again if there still is none.
    fn send_unsent(&mut self, frame: &mut Unfinished) -> Result<Option<Instant>, SendError> {
        let Some(mut unsent) = frame.unsent.take() else { return Ok(None) };
        let (socket, queue, now) = (self.port.socket(), &mut *self.queue, Instant::now());
        let outcome = self.outbox.destinations().send(unsent.lengths.len(), |to| {
            to.send(socket, queue, (&unsent.bytes, &unsent.lengths), now)
        });
        match outcome {
            Err(SendError { kind: SendErrorKind::BufferFull, sent }) if now < unsent.deadline => {
                unsent.remove(sent);
                frame.unsent = Some(unsent);
                Ok(Some(now + FULL_INTERVAL))
            }
            outcome => outcome.map(|()| None),
        }
    }

    /// Returns when the next burst is due, if that is later.
    fn due(&mut self, frame: &mut Unfinished, outgoing: &mut Outgoing<'_, '_>) -> Option<Instant> {
        let count = self.outbox.destinations().count().max(1);
        let limit = self.pacer.burst_len().map(|octets| outgoing.limit_batches(octets / count));
        if std::mem::take(&mut frame.has_waited) || frame.left == 0 {
            return None;
        }
        let now = Instant::now();
        let mut len = limit.unwrap_or(SLAB_LEN).min(frame.left);
        let is_later = |due: &Instant| *due > now;
        if let Some(rate) = &self.outbox.rate
            && let Some(due) = self.pacer.follow(rate.pacing_rate(now)).filter(is_later)
        {
            // Reports change the rate meanwhile.
            return Some(due.min(now + RATE_INTERVAL));
        }
        frame.left -= len;
        if let Some(rate) = &self.outbox.rate {
            len = rate.wire_len(len, len.div_ceil(PACKET_LEN));
        }
        let due = self.pacer.due(now, len * count);
        frame.has_waited = due.is_some();
        due
    }
}
