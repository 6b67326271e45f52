//! The sending half of a stream.

use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use rushes_net::{Counters, SendError, SendQueue};
use rushes_proto::rtp::CaptureTime;
use rushes_proto::stream::{FrameElements, Outgoing, SendStatistics};
use rushes_proto::{Batch, RtpTimestamp, SLAB_LEN, Ssrc};
use tracing::Span;

use super::parts::Unfinished;
use crate::error::Error;
use crate::pace::{Pace, Pacing, sleep_until};
use crate::port::{Outbox, Port, Retransmissions, SendState};
use crate::reports::{Attached, Rtcp};
use crate::stats::DestinationStatistics;

/// The interval at which a burst that waits looks for reports that change the rate.
pub(super) const RATE_INTERVAL: Duration = Duration::from_millis(2);

/// The sending half of a stream. Frames are sent on the caller's thread.
#[derive(Debug)]
pub struct StreamSender {
    pub(crate) attached: Arc<Attached>,
    /// That of `attached`, without the memory in between: a thread that pushes many streams finds none of it
    /// in the cache.
    pub(crate) outbox: Arc<Outbox>,
    /// That of `attached`, for the same reason.
    pub(crate) span: Span,
    pub(crate) pacer: Box<dyn Pace>,
    /// Whether a closed port was logged.
    pub(crate) has_warned: bool,
    /// A frame that was begun, and is not finished.
    pub(crate) unfinished: Option<Box<Unfinished>>,
}

impl StreamSender {
    /// Sends one frame of the stream's format, for example an access unit with start codes or an
    /// Opus packet. Returns when the kernel has accepted all of it.
    ///
    /// `timestamp` is its sampling instant in ticks of the stream's clock rate, as sent in the
    /// packets. With `None` it is that of the previous frame plus one frame interval (Opus and
    /// samples: plus that frame's duration), starting at a random value.
    ///
    /// With [`Pacing`](crate::Pacing), the default, sending a frame of more than one
    /// [`Burst`](crate::Burst) takes most of the frame interval. Sender reports assume that the
    /// frame was captured at the time of this call; see
    /// [`push_frame_captured`](Self::push_frame_captured). With
    /// [`fec`](crate::StreamBuilder::fec), [`send_keep_alive`](Self::send_keep_alive) belongs after
    /// the last frame.
    ///
    /// # Errors
    /// [`Error::Frame`] if the format cannot carry the frame (nothing is sent),
    /// [`Error::NoDestination`], or [`Error::Send`] if the socket refuses a part of it; a sequence
    /// number is then skipped, so that receivers drop the frame. [`Error::CircuitBreaker`] if reports
    /// show that the stream must stop ([`StreamBuilder::circuit_breakers`](crate::StreamBuilder)),
    /// [`Error::SendingStopped`] after [`StreamHandle::stop_sending`](crate::StreamHandle): both
    /// also end a frame that is being sent, whose rest is left out.
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

    /// Sets the number of the first packet of the next frame, in a format whose packets are numbered by the
    /// application.
    #[cfg(feature = "texture")]
    pub(crate) fn set_first_packet(&mut self, number: u32) {
        self.attached.outbox().lock().sender.set_first_packet(number);
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
        self.push_frame_with(frame, timestamp, captured, &FrameElements::default())
    }

    /// As [`push_frame_captured`](Self::push_frame_captured), of a frame whose packets carry
    /// `elements` of header extensions ([`extensions`](crate::StreamBuilder::extensions)).
    ///
    /// # Errors
    /// As [`push_frame`](Self::push_frame); [`Error::Frame`] also if an element was not agreed on or
    /// has a length that cannot be sent.
    pub fn push_frame_with(
        &mut self,
        frame: &[u8],
        timestamp: impl Into<Option<RtpTimestamp>>,
        captured: Instant,
        elements: &FrameElements,
    ) -> Result<(), Error> {
        self.cut();
        let Attached { port, reporter, .. } = &*self.attached;
        let (socket, outbox) = (port.socket(), &*self.outbox);
        let entered = self.span.enter();
        if outbox.cuts_frames() {
            reporter.check_frame()?;
        }
        let destinations = outbox.destinations();
        if destinations.first().is_none() {
            return Err(self.without_destination());
        }
        let mut state = outbox.lock();
        let mut scratch = port.scratch();
        let (sender, batch, queue, retransmissions) = state.with(scratch.as_deref_mut());
        let capture = CaptureTime::new(self.attached.ntp(captured));
        let percent = usize::from(sender.fec_percent());
        let octets = frame.len() * (100 + percent) / 100;
        let unstamped = sender.has_send_time().then_some(octets);
        let mut outgoing = sender.push_with(frame, timestamp.into(), Some(capture), elements)?;
        if outgoing.is_left_out() {
            drop(outgoing);
            outbox.note_left_out(&state.sender);
            drop(state);
            self.poll_port();
            return Ok(());
        }
        let sampled = (outgoing.timestamp(), captured);
        if retransmissions.is_none() && outbox.begin(sampled) {
            reporter.announce(port);
        }
        self.pacer.start(Instant::now(), octets.saturating_mul(destinations.count()));
        if let Some(rate) = &outbox.rate {
            self.pacer.follow(rate.pacing_rate(Instant::now()));
        }
        let pacer = &mut *self.pacer;
        let mut bursts = Bursts { pacer, outbox, port, batch, queue, retransmissions, unstamped };
        let (outcome, is_cut) = bursts.send(&mut outgoing);
        drop(outgoing);
        if outcome.is_err() || (is_cut && !outbox.is_stopped()) {
            // Lets receivers detect the loss now rather than with the next frame.
            sender.keep_alive(batch);
            let _ = SendState::send(socket, batch, queue, destinations, Instant::now());
        }
        if let Some(rate) = &outbox.rate {
            rate.note_frame(Instant::now(), octets, captured);
        }
        drop(scratch);
        self.note_sent(state, sampled);
        self.poll_port();
        drop(entered);
        self.warn_of_refusals();
        outcome?;
        if is_cut { self.attached.reporter.check_frame() } else { Ok(()) }
    }

    /// Sends one packet without payload. Receivers ignore it, but detect packets lost before it by
    /// its sequence number: useful at the end of a stream, and to keep a path open. With
    /// [`fec`](crate::StreamBuilder::fec), the repair packets of the last frames follow it.
    ///
    /// # Errors
    /// [`Error::NoDestination`], [`Error::Send`] or [`Error::CircuitBreaker`].
    pub fn send_keep_alive(&mut self) -> Result<(), Error> {
        self.cut();
        let Attached { port, reporter, .. } = &*self.attached;
        reporter.check_sending()?;
        let (socket, outbox) = (port.socket(), &reporter.outbox);
        let destinations = outbox.destinations();
        if destinations.first().is_none() {
            return Err(self.without_destination());
        }
        let mut state = outbox.lock();
        let SendState { sender, batch, queue, .. } = &mut *state;
        sender.set_now(Instant::now());
        sender.keep_alive(batch);
        outbox.note_packets(batch);
        let deadline = Instant::now() + outbox.timeout();
        let outcome = destinations.send(batch.lengths().len(), |to| {
            to.send(socket, queue, (batch.bytes(), batch.lengths()), deadline)
        });
        outbox.note(Instant::now(), &state.sender, None);
        drop(state);
        self.poll_port();
        Ok(outcome?)
    }

    /// Returns whether a frame of `len` octets is sent without waiting, unless the send buffer is full: it is no
    /// larger than a [`Burst`](crate::Burst), or there is no pacing.
    pub fn sends_at_once(&self, len: usize) -> bool {
        self.attached.outbox().rate.is_none() && self.pacer.sends_at_once(len)
    }

    /// Returns whether the last frames have no repair packets yet, which
    /// [`send_keep_alive`](Self::send_keep_alive) sends; always `false` without
    /// [`fec`](crate::StreamBuilder::fec).
    pub fn has_repairs_due(&self) -> bool {
        self.attached.outbox().lock().sender.has_repairs_due()
    }

    /// Spreads packets in another way, from the next frame on, for example at the rate of a path that has
    /// turned out to be narrow. Under [rate control](crate::StreamBuilder::rate_control) its rate applies instead.
    ///
    /// # Errors
    /// [`Error::PacingShare`] and [`Error::PacingRate`] for values out of range; the pacing stays as it was.
    pub fn set_pacing(&mut self, pacing: Pacing) -> Result<(), Error> {
        self.pacer.set_pacing(pacing)
    }

    /// Lets the stream send again after an [`Error::CircuitBreaker`]. Call it when the network can be
    /// expected to have recovered, best after asking a person.
    ///
    /// # Errors
    /// [`Error::CircuitBreaker`] if it is too early: a stop lasts as long as the condition before it,
    /// at least 15 s (RFC 8083 section 4.5).
    pub fn resume(&mut self) -> Result<(), Error> {
        self.attached.reporter.resume()
    }

    /// Waits until `deadline`, answering requests and reports meanwhile.
    ///
    /// An application that only sends should wait with this between frames: otherwise, without a
    /// pulling thread, requests are not read before the next push.
    ///
    /// # Errors
    /// [`Error::Net`] if the socket cannot be read.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<(), Error> {
        self.attached.wait_until(deadline)?;
        self.warn_of_refusals();
        Ok(())
    }

    /// Logs once that the destination's port is closed.
    pub(super) fn warn_of_refusals(&mut self) {
        if self.has_warned || self.refused() == 0 {
            return;
        }
        self.has_warned = true;
        let _entered = self.attached.reporter.span.enter();
        let to: Vec<_> = self.attached.outbox().destinations().addresses().collect();
        match &*to {
            [] => {}
            [to] => {
                tracing::warn!("nothing listens on {to}: the host answers that the port is closed");
            }
            _ => tracing::warn!(
                "nothing listens on one of {to:?}: a host answers that the port is closed"
            ),
        }
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

    /// Returns the destinations of frames, the session's peer first, and how sending to each works.
    pub fn destinations(&self) -> Vec<DestinationStatistics> {
        self.attached.outbox().destinations().statistics()
    }

    /// Returns the first destination of frames, if there is one.
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

    /// Returns the number of ICMP messages which report that a destination's port is closed
    /// ([`Counters::refused`]). The first is logged; sending continues, because a receiver may start
    /// later, and anyone who knows the addresses can forge such messages.
    ///
    /// A host need not send them, and sends one a second at most to hosts other than itself. Only
    /// Linux and Windows report them.
    pub fn refused(&self) -> u64 {
        self.attached.port.socket().refused()
    }

    /// Returns the counters of the socket, which streams on one port share.
    pub fn socket_counters(&self) -> Counters {
        self.attached.port.socket().counters()
    }

    /// Notes what was sent of a frame.
    pub(super) fn note_sent(
        &self,
        mut state: MutexGuard<'_, SendState>,
        sampled: (RtpTimestamp, Instant),
    ) {
        let Attached { port, reporter, .. } = &*self.attached;
        let now = Instant::now();
        let is_first = self.outbox.note(now, &state.sender, Some(sampled));
        let key_event = state.sender.poll_event();
        drop(state);
        if let Some(event) = key_event {
            reporter.note_key_event(event);
            port.stream_due_at(&reporter.inbox, now);
        }
        if is_first {
            // With recovery the first report is sent with the first frame: its count shows receivers
            // that no earlier packet is missing.
            port.serve_now(&reporter.inbox);
        }
    }

    /// Lets receivers detect the loss of a frame now rather than with the next one.
    pub(super) fn skip_number(&self) {
        let (socket, outbox) = (self.attached.port.socket(), self.attached.outbox());
        let mut state = outbox.lock();
        let SendState { sender, batch, queue, .. } = &mut *state;
        sender.keep_alive(batch);
        let _ = SendState::send(socket, batch, queue, outbox.destinations(), Instant::now());
    }

    /// Returns the error of a frame that has nowhere to go. Requests and checks of the path are answered.
    pub(super) fn without_destination(&self) -> Error {
        self.poll_port();
        let follows = self.attached.outbox().destinations().count() > 0;
        if follows { Error::NoPath } else { Error::NoDestination }
    }

    /// Retransmits packets requested since the last call, and reads reports if no other thread
    /// does.
    pub(super) fn poll_port(&self) {
        let port = &self.attached.port;
        self.outbox.retransmit_requested(port.socket());
        port.poll();
    }
}

/// Octets of a packet, to estimate the number of packets that a burst will have.
pub(super) const PACKET_LEN: usize = 1200;

/// The bursts of one frame.
struct Bursts<'s> {
    pacer: &'s mut dyn Pace,
    outbox: &'s Outbox,
    port: &'s Port,
    batch: &'s mut Batch,
    queue: &'s mut SendQueue,
    retransmissions: &'s mut Option<Retransmissions>,
    /// The octets of the frame that are not written yet, if packets carry the time at which they are
    /// sent; they are then written after the wait for their burst.
    unstamped: Option<usize>,
}

impl Bursts<'_> {
    /// Sends the frame; returns the outcome, and whether the rest of the frame must not be sent.
    fn send(&mut self, outgoing: &mut Outgoing<'_, '_>) -> (Result<(), SendError>, bool) {
        let (socket, outbox) = (self.port.socket(), self.outbox);
        loop {
            let limit = self.burst_len().map(|octets| outgoing.limit_batches(octets));
            if let Some(left) = self.unstamped {
                let len = limit.unwrap_or(SLAB_LEN).min(left);
                self.unstamped = Some(left - len);
                if len > 0 && !self.wait(len, len.div_ceil(PACKET_LEN)) {
                    return (Ok(()), true);
                }
                outgoing.set_now(Instant::now());
            }
            if !outgoing.fill(self.batch) {
                return (Ok(()), false);
            }
            let (len, packets) = (self.batch.bytes().len(), self.batch.lengths().len());
            if self.unstamped.is_none() && !self.wait(len, packets) {
                return (Ok(()), true);
            }
            outbox.note_packets(self.batch);
            let deadline = Instant::now() + outbox.timeout();
            let destinations = outbox.destinations();
            let sent = SendState::send(socket, self.batch, self.queue, destinations, deadline);
            if sent.is_err() {
                return (sent, false);
            }
            let Self { batch, queue, retransmissions, .. } = self;
            outbox.retransmit_within_frame(socket, outgoing, batch, queue, retransmissions);
        }
    }

    /// Returns the maximum octets of a burst to each destination: they share the limit, because they
    /// share the first queue. `None` if bursts are not limited.
    fn burst_len(&self) -> Option<usize> {
        Some(self.pacer.burst_len()? / self.outbox.destinations().count().max(1))
    }

    /// Waits until a burst of `len` octets to each destination may be sent; returns `false` if the rest
    /// of the frame must not be.
    fn wait(&mut self, len: usize, packets: usize) -> bool {
        let count = self.outbox.destinations().count();
        wait_for_burst(self.pacer, self.outbox, self.port, (len * count, packets * count))
    }
}

/// Waits until a burst of `len` octets may be sent; returns `false` if the rest of the frame must not be.
fn wait_for_burst(
    pacer: &mut dyn Pace,
    outbox: &Outbox,
    port: &Port,
    (mut len, packets): (usize, usize),
) -> bool {
    let mut goes_on = || {
        port.poll_within_frame();
        !outbox.cuts_frames()
    };
    if let Some(rate) = &outbox.rate {
        len = rate.wire_len(len, packets);
        loop {
            let now = Instant::now();
            let due = pacer.follow(rate.pacing_rate(now));
            let Some(due) = due.filter(|due| *due > now) else { break };
            // Reports change the rate meanwhile.
            if !goes_on() {
                return false;
            }
            sleep_until(due.min(now + RATE_INTERVAL));
        }
    }
    match pacer.due(Instant::now(), len) {
        Some(due) => pacer.wait(due, &mut goes_on),
        None => !outbox.cuts_frames(),
    }
}
