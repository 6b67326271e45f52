//! The receiving half of a stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::payload::Frame;
#[cfg(feature = "texture")]
use rushes_proto::payload::PackedFrames;
use rushes_proto::stream::{Event, Receiver};

use super::hook::Hook;
use crate::error::Error;
use crate::port::{Inbox, Port, Progress, Wait, earlier};
use crate::reports::{Attached, Rtcp};
use crate::stats::Statistics;

/// The application's function for events of a receiver.
pub(crate) type EventHook = Box<dyn FnMut(Event) + Send>;

/// The receiving half of a stream. The thread that pulls a frame reads the socket.
pub struct StreamReceiver {
    pub(crate) attached: Arc<Attached>,
    /// These are those of `attached`, without the memory in between: a thread that pulls many streams finds
    /// none of it in the cache.
    pub(crate) port: Arc<Port>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) spin: Duration,
    pub(crate) events: Vec<Event>,
    pub(crate) on_event: Option<EventHook>,
    pub(crate) on_error: Option<ErrorHook>,
}

/// The application's function for errors of a hook's thread.
pub(crate) type ErrorHook = Box<dyn FnMut(&Error) + Send>;

/// Maximum number of checks for a frame after the deadline: pending events may end one check before
/// the socket is read, and new events the next. A sender that keeps causing events must not prolong
/// the wait for ever.
const LATE_POLLS: u32 = 2;

/// The outcome of waiting for a frame.
#[derive(Debug)]
pub(crate) enum Pulled<T = Frame> {
    Frame(T),
    Timeout,
    /// A wake-up, or events that were reported.
    Woken,
}

impl StreamReceiver {
    /// Waits for the next frame, at most for `timeout`; `None` if none arrived. With a timeout of
    /// zero it reads pending datagrams and does not wait.
    ///
    /// Frames of one source are returned in order, complete, and once each. Reads the socket on the
    /// caller's thread, or waits while another stream's reader on the same port does so.
    ///
    /// # Errors
    /// [`Error::Net`] if the socket fails; lost and refused packets are not errors.
    pub fn pull_frame(&mut self, timeout: Duration) -> Result<Option<Frame>, Error> {
        let mut now = Instant::now();
        let deadline = deadline(now, timeout);
        let mut polls_left = LATE_POLLS;
        while polls_left > 0 {
            polls_left -= u32::from(now >= deadline);
            match self.pull_until(now, deadline)? {
                Pulled::Frame(frame) => return Ok(Some(frame)),
                Pulled::Timeout => break,
                Pulled::Woken => {}
            }
            now = Instant::now();
        }
        Ok(None)
    }

    /// Waits for frames that are delivered [together](PackedFrames) until `deadline`, and replaces those in
    /// `frames` by them; `frames` is empty if none arrived.
    ///
    /// # Errors
    /// As [`pull_frame`](Self::pull_frame).
    #[cfg(feature = "texture")]
    pub(crate) fn pull_packed(
        &mut self,
        deadline: Instant,
        frames: &mut PackedFrames,
    ) -> Result<(), Error> {
        frames.clear();
        let mut polls_left = LATE_POLLS;
        while polls_left > 0 {
            let now = Instant::now();
            polls_left -= u32::from(now >= deadline);
            let pulled =
                self.pull((now, deadline), |receiver| receiver.poll_packed(frames).then_some(()));
            self.report_events();
            match pulled? {
                Pulled::Frame(()) | Pulled::Timeout => break,
                Pulled::Woken => {}
            }
        }
        Ok(())
    }

    /// Stops waiting for missing packets: complete frames can be pulled at once, the others are
    /// dropped and counted. Call it at the end of a reception.
    pub fn flush(&mut self) {
        self.inbox.lock().flush();
    }

    /// Sets a function that is called on the pulling thread as soon as packets are found lost,
    /// frames are dropped, or sources join or leave.
    pub fn on_event(&mut self, hook: impl FnMut(Event) + Send + 'static) {
        self.on_event = Some(Box::new(hook));
    }

    /// Sets a function for socket errors on the thread of [`on_frame`](Self::on_frame): it is
    /// called at once, and once a second while the error lasts. [`pull_frame`](Self::pull_frame)
    /// returns them instead.
    pub fn on_error(&mut self, hook: impl FnMut(&Error) + Send + 'static) {
        self.on_error = Some(Box::new(hook));
    }

    /// Passes every frame to `hook` until the returned [`Hook`] is dropped, on one of the threads of hooks. There
    /// are as many of them as cores at most, and the frames of one stream are passed in order, one at a time.
    ///
    /// A hook may take its time, but delays those of other streams on its thread. After 0.1 s another
    /// thread takes over for them; the frames of the stream itself wait. The functions for events of streams
    /// and reports run on these threads, too, and should return soon: no thread takes over for them. A stream
    /// that [spins](crate::StreamBuilder::spin) gets a thread of its own.
    ///
    /// A hook that panics is not called again, nor is a function for reports. One for events or errors is, and the
    /// frame that came with the event is lost. The hooks of other streams go on. Dropping another stream's `Hook`
    /// within a hook waits for a call in progress, but its port may be closed a moment later.
    ///
    /// # Errors
    /// [`Error::Thread`] if a thread cannot be started, [`Error::Net`] if it cannot wait for streams.
    pub fn on_frame(self, hook: impl FnMut(Frame) + Send + 'static) -> Result<Hook, Error> {
        Hook::start(self, Box::new(hook))
    }

    /// Passes frames to a hook like [`on_frame`](Self::on_frame), on a thread of the stream's own, with a
    /// function around the loop: `within` is called once, on the stream's own thread, and must call its argument, which
    /// passes frames to the hook and returns when the [`Hook`] is dropped.
    ///
    /// This serves to register the thread with an interpreter or to set its priority once, rather
    /// than for every frame.
    ///
    /// # Errors
    /// [`Error::Thread`] if the thread cannot be started.
    pub fn on_frame_within(
        self,
        hook: impl FnMut(Frame) + Send + 'static,
        within: impl FnOnce(&mut (dyn FnMut() + Send)) + Send + 'static,
    ) -> Result<Hook, Error> {
        Hook::start_within(self, Box::new(hook), Box::new(within))
    }

    /// Returns a handle to the stream's RTCP.
    pub fn rtcp(&self) -> Rtcp {
        Rtcp { attached: self.attached.clone() }
    }

    /// Returns the local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.attached.local_address()
    }

    /// Returns the stream's counters.
    pub fn statistics(&self) -> Statistics {
        self.attached.statistics()
    }

    /// Waits from `now` on for the next frame until `deadline`, and passes events to their hook. Returns
    /// after any event.
    pub(crate) fn pull_until(&mut self, now: Instant, deadline: Instant) -> Result<Pulled, Error> {
        let pulled = self.pull((now, deadline), Receiver::poll_frame);
        self.report_events();
        if let Ok(Pulled::Frame(frame)) = &pulled
            && frame.capture_time().is_some()
        {
            self.note_latency(frame, Instant::now());
        }
        pulled
    }

    /// Returns the next frame without reading the socket, if there is one, and the next timeout; passes
    /// events to their hook.
    pub(super) fn take(&mut self, now: Instant) -> (Option<Frame>, Option<Instant>) {
        let (port, inbox) = (&*self.port, &*self.inbox);
        // A socket that fails is reported where it is read next.
        let (timers, _) = read_before_timers((port, inbox), now);
        let (frame, due) = collect((inbox, timers), Receiver::poll_frame, &mut self.events);
        if let Some(frame) = &frame {
            self.note_latency(frame, now);
        }
        self.report_events();
        (frame, due)
    }

    /// Logs a socket error, and passes it to its function.
    pub(super) fn report(&mut self, error: &Error) {
        let span = &self.attached.reporter.span;
        tracing::warn!(parent: span, %error, "the stream cannot read its socket");
        if let Some(on_error) = &mut self.on_error {
            on_error(error);
        }
    }

    /// Passes events to their hook.
    fn report_events(&mut self) {
        for event in self.events.drain(..) {
            if let Some(hook) = &mut self.on_event {
                hook(event);
            }
        }
    }

    /// Counts how long after its capture a frame was delivered at `now`, if it tells.
    fn note_latency(&self, frame: &Frame, now: Instant) {
        if let Some(capture) = frame.capture_time()
            && let Some(nanos) = self.attached.latency(capture, now)
        {
            // A capture in the future shows that the clocks differ.
            let nanos = u64::try_from(nanos).unwrap_or(0);
            self.attached.inbox().latencies().count(Duration::from_nanos(nanos));
        }
    }

    /// Waits from the first instant on until `poll` returns something, or until the second; events are added
    /// to `events`.
    fn pull<T>(
        &mut self,
        (mut now, deadline): (Instant, Instant),
        mut poll: impl FnMut(&mut Receiver) -> Option<T>,
    ) -> Result<Pulled<T>, Error> {
        let Self { port, inbox, events, .. } = self;
        let (port, inbox) = (&**port, &**inbox);
        let mut last = None;
        loop {
            let seen = port.wake_ups();
            port.serve(now);
            let (timers, read) = read_before_timers((port, inbox), now);
            let (frame, due) = collect((inbox, timers), &mut poll, events);
            if let Some(frame) = frame {
                return Ok(Pulled::Frame(frame));
            }
            if !events.is_empty() {
                return Ok(Pulled::Woken);
            }
            read?;
            // A deadline in the past still reads the pending datagrams, once.
            if last.is_some() && now >= deadline {
                return Ok(Pulled::Timeout);
            }
            // The wait may have ended with a wake-up, which the caller handles.
            if last == Some(Progress::Waited) {
                return Ok(Pulled::Woken);
            }
            let until = earlier(due, port.due()).map_or(deadline, |due| due.min(deadline));
            let wait = Wait { deadline: until, spin: self.spin };
            let progress = port.read_or_wait(Some(inbox), wait, seen)?;
            if progress == Progress::Read(0) && Instant::now() < until {
                return Ok(Pulled::Woken);
            }
            last = Some(progress);
            now = Instant::now();
        }
    }
}

/// How long timers wait at most while finished frames do.
const TIMERS_WAIT: Duration = Duration::from_secs(1);

/// Reads what has arrived if timers are due at `now`; returns when they are to be handled, and the result of
/// reading.
///
/// Nothing is read while finished frames wait: an application that is slower than its sender must not collect
/// frames without limit. Timers wait with them, but not for long, as those of other sources are among them.
fn read_before_timers(
    (port, inbox): (&Port, &Inbox),
    now: Instant,
) -> (Option<Instant>, Result<(), Error>) {
    let receiver = inbox.lock();
    let Some(due) = receiver.poll_timeout().filter(|due| *due <= now) else {
        return (None, Ok(()));
    };
    let is_ready = receiver.ready_octets() > 0;
    drop(receiver);
    if is_ready {
        return ((due + TIMERS_WAIT <= now).then_some(now), Ok(()));
    }
    (Some(now), port.read_before_timers(inbox))
}

/// Handles the timers that are due at `timers`, if any are to be handled; returns what `poll` returns for the
/// receiver of `inbox`, and the receiver's next timeout. Events are added to `events`.
fn collect<T>(
    (inbox, timers): (&Inbox, Option<Instant>),
    poll: impl FnOnce(&mut Receiver) -> Option<T>,
    events: &mut Vec<Event>,
) -> (Option<T>, Option<Instant>) {
    let mut receiver = inbox.lock();
    if let Some(now) = timers {
        receiver.handle_timeout(now);
    }
    let frame = poll(&mut receiver);
    events.extend(std::iter::from_fn(|| receiver.poll_event()));
    (frame, receiver.poll_timeout())
}

/// Returns the end of `timeout`, at most a year from `now`.
pub(super) fn deadline(now: Instant, timeout: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    now + timeout.min(YEAR)
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        self.port.remove(&self.inbox);
    }
}

impl std::fmt::Debug for StreamReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamReceiver").field("attached", &self.attached).finish_non_exhaustive()
    }
}
