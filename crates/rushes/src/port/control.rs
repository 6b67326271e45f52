//! A port's RTCP: its socket, its timing, and sending.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rushes_net::{Arena, SendError, SendErrorKind, UdpSocket};

use super::reporters::{Arrived, NEVER};
use super::{Control, Hop, Inbox, Port, Reports, Wait, earlier};
use crate::error::Error;
use crate::lock::lock;

/// The interval at which a thread that only pushes polls the port.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The same on a port that a poller reads: its thread may be in a hook, or in a push that waits.
const POLL_INTERVAL_WATCHED: Duration = Duration::from_millis(20);

/// Maximum number of reads of the socket for RTCP in one poll, a few datagrams each time.
const READS_MAX: usize = 8;

impl Port {
    /// Returns whether RTCP shares the media's port.
    pub(crate) fn is_muxed(&self) -> bool {
        matches!(self.control, Control::Muxed)
    }

    /// Returns whether the port has RTCP.
    pub(crate) fn has_control(&self) -> bool {
        !matches!(self.control, Control::Off)
    }

    /// Returns the local address for RTCP.
    pub(crate) fn control_address(&self) -> Option<SocketAddr> {
        match &self.control {
            Control::Off => None,
            Control::Muxed => Some(self.local_address()),
            Control::Separate(socket) => Some(socket.local_address()),
        }
    }

    /// Registers the RTCP of a stream.
    pub(crate) fn add_reports(&self, reports: &Arc<dyn Reports>) {
        let mut all = lock(&self.reports);
        reports.inbox().set_place(all.add(reports.clone()));
        self.note_due(&all);
        drop(all);
        self.serve_now(reports.inbox());
    }

    /// Removes the RTCP of a stream.
    pub(crate) fn remove_reports(&self, reports: &Arc<dyn Reports>) {
        let mut all = lock(&self.reports);
        if let Some(place) = reports.inbox().place() {
            all.remove(place);
        }
        self.note_due(&all);
    }

    /// Sends one datagram of RTCP, without waiting; `false` if the send buffer is full. After any
    /// other error the datagram is lost.
    pub(crate) fn send_rtcp(&self, datagram: &[u8], to: SocketAddr) -> bool {
        let socket = match &self.control {
            Control::Off => return true,
            Control::Muxed => &self.socket,
            Control::Separate(socket) => socket,
        };
        self.send_one(socket, datagram, self.hop(to))
    }

    /// Sends one datagram on the media's socket; it is lost if it cannot be sent.
    pub(crate) fn send_on_media(&self, datagram: &[u8], to: SocketAddr) {
        self.send_one(&self.socket, datagram, self.hop(to));
    }

    /// Sends one datagram on the media's socket, past a relay through which the path may lead.
    #[cfg(feature = "webrtc")]
    pub(crate) fn send_directly(&self, datagram: &[u8], to: SocketAddr) {
        self.send_one(&self.socket, datagram, Hop::direct(to));
    }

    /// Sends one datagram. Never waits for room in the send buffer, because callers hold locks that
    /// media threads need.
    fn send_one(&self, socket: &UdpSocket, datagram: &[u8], hop: Hop) -> bool {
        let Ok(len) = u16::try_from(datagram.len()) else { return true };
        let mut queue = lock(&self.queue);
        match hop.send(socket, &mut queue, (datagram, &[len]), Instant::now()) {
            Ok(()) => true,
            Err(SendError { kind: SendErrorKind::BufferFull, .. }) => false,
            Err(error) => {
                tracing::debug!(%error, to = %hop.peer, "a datagram was not sent");
                true
            }
        }
    }

    /// Sends the reports that are due, and calls the hooks for their events.
    pub(crate) fn serve(&self, now: Instant) {
        self.serve_and(now, true);
    }

    fn serve_and(&self, now: Instant, dispatch: bool) {
        let nanos = self.nanos(now);
        if self.due.load(Relaxed) > nanos {
            return;
        }
        lock(&self.reports).side_due = NEVER;
        if let Some(due) = self.serve_side(now) {
            self.due_at(due);
        }
        let mut all = lock(&self.reports);
        while let Some((place, reports)) = all.take_due(nanos) {
            self.note_due(&all);
            // The lock is not held: a hook may open or close streams.
            drop(all);
            let mut due = reports.serve(self, now);
            if !dispatch && reports.has_events() {
                due = earlier(due, Some(now));
            }
            all = lock(&self.reports);
            all.note_served((place, &reports), nanos, due.map(|due| self.nanos(due)));
            self.note_due(&all);
            drop(all);
            // After the stream is due again, since a hook may panic.
            if dispatch {
                reports.dispatch();
            }
            // Also dropped without the lock: this may be the last handle of a hook that owns other streams.
            drop(reports);
            all = lock(&self.reports);
        }
        self.note_due(&all);
    }

    /// Lets the protocol beside RTP do what is due; returns when something is due next.
    #[cfg(any(feature = "webrtc", feature = "zrtp"))]
    fn serve_side(&self, now: Instant) -> Option<Instant> {
        let side = lock(&self.side).clone();
        side.and_then(|side| side.serve(now))
    }

    /// A build without such protocols has nothing due.
    #[cfg(not(any(feature = "webrtc", feature = "zrtp")))]
    #[allow(clippy::unused_self, reason = "with such a protocol it is used")]
    fn serve_side(&self, _: Instant) -> Option<Instant> {
        None
    }

    /// Sends reports of a stream after a request of the application, and wakes the reading thread to
    /// recheck its deadline.
    pub(crate) fn serve_now(&self, stream: &Inbox) {
        self.stream_due_at(stream, self.epoch);
        self.serve(Instant::now());
        if self.read_state.try_lock().is_err() {
            self.wake_reading();
        }
    }

    /// Reads pending RTCP and sends due reports, for a thread that only pushes. Reads at most once
    /// a millisecond, and on a port that a poller reads only what it has left for 20 ms.
    pub(crate) fn poll(&self) {
        self.poll_and(true);
    }

    /// As [`poll`](Self::poll), in the middle of a frame. Hooks are called later: they may call
    /// functions that wait for the frame's end.
    pub(crate) fn poll_within_frame(&self) {
        self.poll_and(false);
    }

    fn poll_and(&self, dispatch: bool) {
        if !self.has_control() && self.due.load(Relaxed) == u64::MAX {
            return;
        }
        let now = Instant::now();
        // A poller reads whatever arrives between frames, but cannot if its thread is sending one.
        let is_left_to_poller = dispatch && self.watches().are_any();
        let interval = if is_left_to_poller { POLL_INTERVAL_WATCHED } else { POLL_INTERVAL };
        if let Ok(mut state) = self.read_state.try_lock()
            && now.saturating_duration_since(state.polled) >= interval
        {
            state.polled = now;
            let outcome = self.read_pending(&mut state, now);
            drop(state);
            self.wake_waiting();
            if let Err(error) = outcome {
                tracing::debug!(%error, "the stream cannot read its reports");
            }
        }
        self.serve_and(now, dispatch);
    }

    /// Reads the port and answers reports until `deadline`, for a thread that has nothing to push.
    pub(crate) fn run_until(&self, deadline: Instant) -> Result<(), Error> {
        loop {
            let seen = self.wake_ups();
            let now = Instant::now();
            self.serve(now);
            if now >= deadline {
                return Ok(());
            }
            let until = self.due().map_or(deadline, |due| due.min(deadline));
            self.read_or_wait(None, Wait::until(until), seen)?;
        }
    }

    /// Reads one batch, waiting for it until `until` at most.
    #[cfg(any(feature = "webrtc", feature = "zrtp"))]
    pub(crate) fn run_once(&self, until: Instant) -> Result<(), Error> {
        let seen = self.wake_ups();
        self.serve(Instant::now());
        self.read_or_wait(None, Wait::until(until), seen)?;
        Ok(())
    }

    /// Reads pending RTCP on its own socket, limited so that media is not delayed; the rest of a
    /// flood is left to the next poll.
    pub(super) fn read_control(&self, arena: &mut Option<Arena>) -> Result<(), Error> {
        let (Control::Separate(socket), Some(arena)) = (&self.control, arena) else {
            return Ok(());
        };
        for _ in 0..READS_MAX {
            let now = Instant::now();
            let datagrams = socket.receive(arena, now, None)?;
            if datagrams.is_empty() {
                break;
            }
            for datagram in datagrams {
                self.handle_report(datagram.arrival, *datagram.from, datagram.data);
            }
        }
        Ok(())
    }

    /// Passes a datagram of RTCP to the streams that it concerns.
    pub(super) fn handle_report(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        if !self.accepts_reports(from.ip()) || !self.follows(from) {
            self.note_foreign();
            return;
        }
        let mut all = lock(&self.reports);
        all.handle(Arrived { port: self, now, from, datagram });
        self.note_due(&all);
    }
}
