//! Frames that are sent part by part, by a thread that does not wait.

use std::sync::Arc;
use std::time::Instant;

use rushes_net::{SendError, SendQueue};
use rushes_proto::rtp::CaptureTime;
use rushes_proto::stream::{FrameElements, Outgoing, Suspended};
use rushes_proto::{Batch, RtpTimestamp, SLAB_LEN};

use super::sender::{PACKET_LEN, RATE_INTERVAL, StreamSender};
use crate::error::Error;
use crate::pace::Pace;
use crate::port::{Outbox, Port, SendState};
use crate::reports::Attached;

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
    /// Begins to send one frame as [`push_frame_captured`](Self::push_frame_captured) does, but never waits. Returns
    /// when the next burst is due, at which [`continue_frame`](Self::continue_frame) sends it, or `None` if all of the
    /// frame is sent. So one thread sends on many streams.
    ///
    /// Any other frame and any keep-alive ends one that is not finished; receivers then detect the loss.
    ///
    /// # Errors
    /// As [`push_frame`](Self::push_frame), and [`Error::Send`] if the send buffer has no room at present. The frame
    /// then ends.
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
        let (left, has_waited) = (octets, false);
        let unfinished = Unfinished { frame, rest, captured, octets, left, has_waited };
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
            drop(outgoing);
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
            Part::Cut => {
                if !outbox.is_stopped() {
                    self.skip_number();
                }
                reporter.check_frame().map(|()| None)
            }
            Part::Failed(error) => {
                self.skip_number();
                Err(error.into())
            }
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
            drop(state.sender.resume(&unfinished.frame, &unfinished.rest));
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
            if let Some(due) = self.due(frame, outgoing) {
                return Part::Due(due);
            }
            outgoing.set_now(Instant::now());
            if !outgoing.fill(self.batch) {
                return Part::Last;
            }
            self.outbox.note_packets(self.batch);
            let (socket, destinations) = (self.port.socket(), self.outbox.destinations());
            let sent =
                SendState::send(socket, self.batch, self.queue, destinations, Instant::now());
            if let Err(error) = sent {
                return Part::Failed(error);
            }
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
