//! Reading a port: takes one batch from the kernel and passes each datagram to its stream.

use std::array;
use std::net::SocketAddr;
use std::sync::{MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use rushes_net::{Arena, Datagram, Datagrams, Waker};
use rushes_proto::Ecn;
use rushes_proto::rtcp::is_rtcp;
use rushes_proto::stream::{Receipt, Receiver};

use super::{Control, Inbox, Port};
use crate::error::Error;
use crate::lock::lock;

/// Maximum time for which media may keep a reader from checking the socket for RTCP.
const CONTROL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum bytes of finished frames that a stream's own reader has not pulled. Beyond it, another
/// stream's reader drops datagrams for the stream, unless these are no more than two frames.
const UNCOLLECTED_MAX: usize = 64 << 20;

/// Datagrams of a batch from which on there may be more: a call reads four messages at least.
pub(crate) const BATCH_LEN: usize = 4;

/// Datagrams after which no more are read before timers.
const READ_MAX: usize = 4096;

/// Maximum number of datagrams passed to a stream at once.
const RUN_MAX: usize = 64;

/// The time within which datagrams of a run arrive; all of them count as arriving with the first. A
/// report of arrivals resolves 1/1 024 s (RFC 8888 section 3.1).
const RUN_TIME: Duration = Duration::from_micros(100);

/// How long a reader waits, and how long it spins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) deadline: Instant,
    /// How long to poll before sleeping.
    pub(crate) spin: Duration,
}

impl Wait {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, spin: Duration::ZERO }
    }
}

/// The outcome of reading a port once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// This thread read this number of datagrams.
    Read(usize),
    /// Another thread was reading; this thread waited for its batch, a wake-up or the deadline.
    Waited,
}

/// The buffers of the reading thread.
#[derive(Debug)]
pub(super) struct ReadState {
    arena: Arena,
    control: Option<Arena>,
    /// When the socket for RTCP was last polled.
    pub(super) polled: Instant,
}

impl ReadState {
    pub(super) fn new(arena: Arena, control: Option<Arena>) -> Self {
        Self { arena, control, polled: Instant::now() }
    }
}

impl Port {
    /// Reads one batch, or waits until another thread that is reading has read one. `seen` is the
    /// [`wake_ups`](Self::wake_ups) before the caller checked for results.
    pub(crate) fn read_or_wait(
        &self,
        own: Option<&Inbox>,
        wait: Wait,
        seen: u64,
    ) -> Result<Progress, Error> {
        let Some(mut state) = self.begin_reading() else {
            self.wait_for_wake_up(seen, wait.deadline);
            return Ok(Progress::Waited);
        };
        let taken = self.read(own, &mut state, wait);
        drop(state);
        self.wake_waiting();
        taken.map(Progress::Read)
    }

    /// Reads one batch of media, RTCP or both without waiting, for a poller; returns the number of
    /// datagrams of media, or `None` if another thread is reading the port.
    pub(crate) fn read_ready(&self, media: bool, control: bool) -> Result<Option<usize>, Error> {
        let Some(mut state) = self.begin_reading() else { return Ok(None) };
        let taken = self.read_sockets(&mut state, media, control);
        drop(state);
        self.wake_waiting();
        taken.map(Some)
    }

    /// Returns the buffers of the reading thread, or `None` if another thread is reading.
    fn begin_reading(&self) -> Option<MutexGuard<'_, ReadState>> {
        match self.read_state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => {
                // No application code runs under this lock, and the arenas are plain memory.
                self.read_state.clear_poison();
                Some(poisoned.into_inner())
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Reads the packets that wait in the sockets, before the timers of stream `own` give them up as lost.
    ///
    /// A thread that did not run for a while finds its timers due, and packets that arrived in time still in
    /// the socket.
    pub(crate) fn read_before_timers(&self, own: &Inbox) -> Result<(), Error> {
        // A thread that is reading now passes them on.
        let Some(mut state) = self.begin_reading() else { return Ok(()) };
        // A source that sends only reports has timers, too.
        let mut outcome = self.read_control(&mut state.control);
        let mut read = 0;
        while outcome.is_ok() && read < READ_MAX {
            let datagrams = self.socket.receive(&mut state.arena, self.epoch, None);
            let taken = datagrams.map(|it| self.distribute(Some(own), it.read_at(), it));
            match taken {
                Ok(0) => break,
                Ok(taken) => read += taken,
                Err(error) => outcome = Err(error.into()),
            }
        }
        drop(state);
        self.wake_waiting();
        outcome
    }

    fn read_sockets(
        &self,
        state: &mut ReadState,
        media: bool,
        control: bool,
    ) -> Result<usize, Error> {
        // RTCP is handled before media, because a source may return immediately after its BYE.
        if control {
            self.read_control(&mut state.control)?;
        }
        if !media {
            state.polled = Instant::now();
            return Ok(0);
        }
        let datagrams = self.socket.receive(&mut state.arena, self.epoch, None)?;
        let now = datagrams.read_at();
        if control || self.is_muxed() {
            state.polled = now;
        }
        Ok(self.distribute(None, now, datagrams))
    }

    /// Reads pending datagrams without waiting, for a thread that only pushes.
    pub(super) fn read_pending(&self, state: &mut ReadState, now: Instant) -> Result<(), Error> {
        if self.is_muxed() {
            self.read_once(None, state, now).map(|_| ())
        } else {
            self.read_control(&mut state.control)
        }
    }

    /// Reads one batch and distributes it; returns the number of datagrams from the media's socket.
    fn read(&self, own: Option<&Inbox>, state: &mut ReadState, wait: Wait) -> Result<usize, Error> {
        let start = Instant::now();
        while start.elapsed() < wait.spin && Instant::now() < wait.deadline {
            // With a deadline in the past the socket is polled once, without sleeping.
            let taken = self.read_once(own, state, start)?;
            if taken > 0 {
                return Ok(taken);
            }
        }
        self.read_once(own, state, wait.deadline)
    }

    fn read_once(
        &self,
        own: Option<&Inbox>,
        state: &mut ReadState,
        until: Instant,
    ) -> Result<usize, Error> {
        let ReadState { arena, control, polled } = state;
        let beside = match &self.control {
            Control::Separate(socket) => Some(&**socket),
            Control::Off | Control::Muxed => None,
        };
        // A wake-up before there was a waker is not lost: the first call does not wait, and the caller looks
        // again.
        let mut until = until;
        if self.waker.get().is_none() && until > Instant::now() {
            let _ = self.waker.set(Waker::new()?);
            until = self.epoch;
        }
        let datagrams = self.socket.receive_beside(arena, until, self.waker.get(), beside)?;
        let now = datagrams.read_at();
        let is_stale = now.saturating_duration_since(*polled) > CONTROL_INTERVAL;
        if datagrams.is_empty() || is_stale {
            // RTCP is handled before media, because a source may return immediately after its BYE.
            *polled = now;
            self.read_control(control)?;
        }
        Ok(self.distribute(own, now, datagrams))
    }

    /// Passes datagrams to their streams; returns the number of datagrams.
    fn distribute(&self, own: Option<&Inbox>, now: Instant, datagrams: Datagrams<'_>) -> usize {
        let inboxes = lock(&self.inboxes);
        #[cfg(any(feature = "webrtc", feature = "zrtp"))]
        let side = lock(&self.side).clone();
        let relay = self.path.get().and_then(|path| path.relay());
        let taken = datagrams.len();
        // Consecutive datagrams are often for one stream. Its lock is kept for all of them, and a
        // secured stream authenticates them together.
        let mut run = Run::new(now);
        // Looked up once for consecutive datagrams.
        let mut followed = None;
        for datagram in datagrams {
            let relay = relay.as_ref().filter(|relay| relay.is_from(*datagram.from));
            let is_relayed = relay.is_some();
            let datagram = match relay {
                Some(relay) => relay.unwrap(datagram),
                None => datagram,
            };
            if self.is_muxed() && is_rtcp(datagram.data) {
                self.finish(run.end());
                self.handle_report(now, *datagram.from, datagram.data);
                continue;
            }
            if !self.accepts_media(*datagram.from) {
                self.note_foreign();
                continue;
            }
            #[cfg(any(feature = "webrtc", feature = "zrtp"))]
            if let Some(side) = &side
                && side.owns(datagram.data)
            {
                side.handle_datagram(now, *datagram.from, datagram.data);
                followed = None;
                continue;
            }
            if followed != Some(*datagram.from) {
                if !self.follows(*datagram.from) {
                    self.note_foreign();
                    continue;
                }
                followed = Some(*datagram.from);
            }
            let Some(id) = inboxes.route(datagram.data) else {
                self.note_unrouted();
                continue;
            };
            if !run.is_of(id) {
                self.finish(run.end());
                let Some(inbox) = inboxes.find(id) else { continue };
                run.begin(inbox, own.is_some_and(|own| own.id == id));
            }
            run.add(datagram, is_relayed);
        }
        self.finish(run.end());
        taken
    }

    /// Unlocks a receiver, and records when its requests or its conflict are due.
    fn finish(&self, ended: Option<(&Inbox, MutexGuard<'_, Receiver>)>) {
        let Some((inbox, mut receiver)) = ended else { return };
        self.wide.take_from(&mut receiver);
        let conflict = receiver.has_conflict().then_some(self.epoch);
        let due = conflict.or_else(|| receiver.requests_due());
        drop(receiver);
        if let Some(due) = due {
            self.stream_due_at(inbox, due);
        }
    }
}

/// Consecutive datagrams for one stream from one address, collected to be handled together.
#[derive(Debug)]
struct Run<'i, 'd> {
    receipt: Receipt,
    stream: Option<(&'i Inbox, MutexGuard<'i, Receiver>)>,
    /// Whether the stream's own reader reads the port.
    is_own: bool,
    from: Option<&'d SocketAddr>,
    datagrams: [&'d mut [u8]; RUN_MAX],
    len: usize,
}

impl<'i, 'd> Run<'i, 'd> {
    fn new(now: Instant) -> Self {
        Self {
            receipt: now.into(),
            stream: None,
            is_own: false,
            from: None,
            datagrams: array::from_fn(|_| &mut [][..]),
            len: 0,
        }
    }

    /// Returns whether the run is for stream `id`.
    #[inline]
    fn is_of(&self, id: u64) -> bool {
        self.stream.as_ref().is_some_and(|(inbox, _)| inbox.id == id)
    }

    /// Begins a run for `inbox`; the previous one must have ended.
    fn begin(&mut self, inbox: &'i Inbox, is_own: bool) {
        self.is_own = is_own;
        self.stream = Some((inbox, inbox.lock()));
    }

    /// Adds a datagram. `is_relayed`: its address is that of a channel, not of a message.
    #[inline]
    fn add(&mut self, datagram: Datagram<'d>, is_relayed: bool) {
        let Datagram { data, from, arrival, ecn } = datagram;
        // Datagrams of one message share their address in memory, arrival and mark; comparing
        // pointers first is faster.
        let is_of_message =
            !is_relayed && self.from.is_some_and(|before| std::ptr::eq(before, from));
        if self.len == RUN_MAX || !(is_of_message || self.takes(from, arrival, ecn)) {
            self.flush();
            (self.receipt.arrival, self.receipt.ecn) = (arrival, Ecn::from_bits(ecn));
        }
        self.from = Some(from);
        self.datagrams[self.len] = data;
        self.len += 1;
    }

    /// Returns whether the datagrams of another message can join the run.
    fn takes(&self, from: &SocketAddr, arrival: Instant, ecn: u8) -> bool {
        let Receipt { arrival: first, ecn: mark, .. } = self.receipt;
        self.from == Some(from)
            && Ecn::from_bits(ecn) == mark
            && arrival.saturating_duration_since(first) <= RUN_TIME
    }

    /// Ends the run, and returns its stream if there was one.
    fn end(&mut self) -> Option<(&'i Inbox, MutexGuard<'i, Receiver>)> {
        self.flush();
        self.stream.take()
    }

    fn flush(&mut self) {
        let len = std::mem::take(&mut self.len);
        let (Some((inbox, receiver)), Some(from)) = (&mut self.stream, self.from) else { return };
        if len == 0 {
            return;
        }
        if !self.is_own && is_uncollected(receiver) {
            inbox.note_uncollected(len);
            return;
        }
        receiver.handle_datagrams(self.receipt, *from, &mut self.datagrams[..len]);
        inbox.watches().note();
    }
}

/// Returns whether too many finished frames of a stream were not pulled.
#[inline]
fn is_uncollected(receiver: &Receiver) -> bool {
    let octets = receiver.ready_octets();
    octets > UNCOLLECTED_MAX && octets > 2 * receiver.largest_ready()
}
