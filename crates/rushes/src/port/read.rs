//! Reading a port: one batch from the kernel, each datagram to its stream.

use std::array;
use std::net::SocketAddr;
use std::sync::{MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use rushes_net::{Arena, Datagrams};
use rushes_proto::rtcp::is_rtcp;
use rushes_proto::stream::Receiver;

use super::{Control, Inbox, Port};
use crate::error::Error;
use crate::lock::lock;

/// Maximum time for which media may keep a reader from checking the socket for RTCP.
const CONTROL_INTERVAL: Duration = Duration::from_millis(2);

/// Bytes of finished frames that may wait for a stream's reader while another stream's reader
/// drives the port.
const UNCOLLECTED_MAX: usize = 64 << 20;

/// Maximum number of datagrams that a stream is given together.
const RUN_MAX: usize = 64;

/// What a reader waits for, and how.
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
    /// This thread read so many datagrams.
    Read(usize),
    /// Another thread has the turn: this one waited for it, for a wake-up or for the deadline.
    Waited,
}

/// The buffers of the thread whose turn it is.
#[derive(Debug)]
pub(super) struct Turn {
    arena: Arena,
    control: Option<Arena>,
    /// When the socket for RTCP was polled last.
    pub(super) polled: Instant,
}

impl Turn {
    pub(super) fn new(arena: Arena, control: Option<Arena>) -> Self {
        Self { arena, control, polled: Instant::now() }
    }
}

impl Port {
    /// Reads one batch if it is no other thread's turn, and otherwise waits until that thread has
    /// read one. `seen` is the [`wake_ups`](Self::wake_ups) before the caller looked for results.
    pub(crate) fn read_or_wait(
        &self,
        own: Option<&Inbox>,
        wait: Wait,
        seen: u64,
    ) -> Result<Progress, Error> {
        let mut turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => {
                // No application code runs under it, and the arenas are plain memory.
                self.turn.clear_poison();
                poisoned.into_inner()
            }
            Err(TryLockError::WouldBlock) => {
                self.wait_for_wake_up(seen, wait.deadline);
                return Ok(Progress::Waited);
            }
        };
        let taken = self.read(own, &mut turn, wait);
        drop(turn);
        self.wake_waiting();
        taken.map(Progress::Read)
    }

    /// Reads pending datagrams without waiting, for a thread that only pushes.
    pub(super) fn read_pending(&self, turn: &mut Turn, now: Instant) -> Result<(), Error> {
        if self.is_muxed() {
            self.read_once(None, turn, now).map(|_| ())
        } else {
            self.read_control(&mut turn.control)
        }
    }

    /// Reads one batch and hands it out; returns the number of datagrams of media.
    fn read(&self, own: Option<&Inbox>, turn: &mut Turn, wait: Wait) -> Result<usize, Error> {
        let begun = Instant::now();
        while begun.elapsed() < wait.spin && Instant::now() < wait.deadline {
            // With a deadline in the past the socket is polled once, without sleeping.
            let taken = self.read_once(own, turn, begun)?;
            if taken > 0 {
                return Ok(taken);
            }
        }
        self.read_once(own, turn, wait.deadline)
    }

    fn read_once(
        &self,
        own: Option<&Inbox>,
        turn: &mut Turn,
        until: Instant,
    ) -> Result<usize, Error> {
        let Turn { arena, control, polled } = turn;
        let beside = match &self.control {
            Control::Beside(socket) => Some(&**socket),
            Control::Off | Control::Muxed => None,
        };
        let datagrams = self.socket.receive_beside(arena, until, Some(&self.waker), beside)?;
        let now = Instant::now();
        let is_stale = now.saturating_duration_since(*polled) > CONTROL_INTERVAL;
        if datagrams.is_empty() || is_stale {
            // Before the media: a source that says goodbye may return at once.
            *polled = now;
            self.read_control(control)?;
        }
        Ok(self.hand_out(own, now, datagrams))
    }

    /// Hands datagrams to the streams that they are for; returns how many there were.
    fn hand_out(&self, own: Option<&Inbox>, now: Instant, datagrams: Datagrams<'_>) -> usize {
        let inboxes = lock(&self.inboxes);
        #[cfg(feature = "zrtp")]
        let side = lock(&self.side).clone();
        let taken = datagrams.len();
        // Datagrams come in runs of one stream, so its lock is kept until another comes, and a
        // secured stream authenticates many at once.
        let mut run = Run::new(now);
        for datagram in datagrams {
            if self.is_muxed() && is_rtcp(datagram.data) {
                self.finish(run.end());
                self.handle_report(now, *datagram.from, datagram.data);
                continue;
            }
            if self.only_from.is_some_and(|only| !only.sends_media(*datagram.from)) {
                self.note_foreign();
                continue;
            }
            #[cfg(feature = "zrtp")]
            if let Some(side) = &side
                && side.owns(datagram.data)
            {
                side.handle_datagram(now, *datagram.from, datagram.data);
                continue;
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
            run.add(datagram.from, datagram.data);
        }
        self.finish(run.end());
        taken
    }

    /// Unlocks a receiver, and notes when it has requests or a conflict to send.
    fn finish(&self, receiver: Option<MutexGuard<'_, Receiver>>) {
        let Some(receiver) = receiver else { return };
        if let Some(due) = receiver.requests_due() {
            self.due_at(due);
        }
        if receiver.has_conflict() {
            self.due_now();
        }
    }
}

/// Datagrams for one stream from one address, kept until there are enough to be taken together.
#[derive(Debug)]
struct Run<'i, 'd> {
    now: Instant,
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
            now,
            stream: None,
            is_own: false,
            from: None,
            datagrams: array::from_fn(|_| &mut [][..]),
            len: 0,
        }
    }

    /// Whether the run is for stream `id`.
    #[inline]
    fn is_of(&self, id: u64) -> bool {
        self.stream.as_ref().is_some_and(|(inbox, _)| inbox.id == id)
    }

    /// Begins a run for `inbox`; the one before must have ended.
    fn begin(&mut self, inbox: &'i Inbox, is_own: bool) {
        self.is_own = is_own;
        self.stream = Some((inbox, inbox.lock()));
    }

    /// Adds a datagram.
    #[inline]
    fn add(&mut self, from: &'d SocketAddr, octets: &'d mut [u8]) {
        // Datagrams of one message share their address in memory, too.
        let is_same = |before: &'d SocketAddr| std::ptr::eq(before, from) || before == from;
        if self.len == RUN_MAX || !self.from.is_some_and(is_same) {
            self.flush();
            self.from = Some(from);
        }
        self.datagrams[self.len] = octets;
        self.len += 1;
    }

    /// Ends the run, and returns the receiver if there was one.
    fn end(&mut self) -> Option<MutexGuard<'i, Receiver>> {
        self.flush();
        self.stream.take().map(|(_, receiver)| receiver)
    }

    fn flush(&mut self) {
        let len = std::mem::take(&mut self.len);
        let (Some((inbox, receiver)), Some(from)) = (&mut self.stream, self.from) else { return };
        if len == 0 {
            return;
        }
        if !self.is_own && receiver.ready_octets() > UNCOLLECTED_MAX {
            inbox.note_uncollected(len);
            return;
        }
        receiver.handle_datagrams(self.now, *from, &mut self.datagrams[..len]);
    }
}
