//! A port's RTCP: where it comes from, when reporters are driven, how their datagrams leave.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use rushes_net::Arena;
use rushes_net::SendError;
use rushes_net::SendErrorKind;
use rushes_net::UdpSocket;
use rushes_proto::stream::Receiver;

use super::{Control, Inbox, Port, lock};
use crate::error::Error;
use crate::reporter::Reporter;
use crate::reporter::earlier;

/// How often a thread that only pushes checks for RTCP.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// How often the socket for RTCP is read in one check, a few datagrams each time.
const READS_MAX: usize = 8;

impl Port {
    /// Whether RTCP shares the media's port.
    pub(crate) fn is_muxed(&self) -> bool {
        matches!(self.control, Control::Muxed)
    }

    /// Whether there is RTCP at all.
    pub(crate) fn has_control(&self) -> bool {
        !matches!(self.control, Control::Off)
    }

    /// The address that RTCP comes to.
    pub(crate) fn control_address(&self) -> Option<SocketAddr> {
        match &self.control {
            Control::Off => None,
            Control::Muxed => Some(self.local_address()),
            Control::Beside(socket) => Some(socket.local_address()),
        }
    }

    pub(crate) fn add_reporter(&self, reporter: Arc<Reporter>) {
        lock(&self.reporters).push(reporter);
        self.serve_now();
    }

    pub(crate) fn remove_reporter(&self, reporter: &Arc<Reporter>) {
        lock(&self.reporters).retain(|other| !Arc::ptr_eq(other, reporter));
    }

    /// Sends one datagram of RTCP, without waiting; `false` if the send buffer is full. What cannot
    /// be sent for another reason is lost, like any datagram.
    pub(crate) fn send_rtcp(&self, datagram: &[u8], to: SocketAddr) -> bool {
        let socket = match &self.control {
            Control::Off => return true,
            Control::Muxed => &self.socket,
            Control::Beside(socket) => socket,
        };
        self.send_one(socket, datagram, to)
    }

    /// Sends an empty datagram.
    pub(crate) fn send_empty(&self, to: SocketAddr) {
        self.send_one(&self.socket, &[], to);
    }

    /// Sends one datagram on the media's socket; what cannot be sent is lost, like any datagram.
    #[cfg(feature = "zrtp")]
    pub(crate) fn send_on_media(&self, datagram: &[u8], to: SocketAddr) {
        self.send_one(&self.socket, datagram, to);
    }

    /// Never waits for room: the callers hold locks that media waits for.
    fn send_one(&self, socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> bool {
        let Ok(len) = u16::try_from(datagram.len()) else { return true };
        let mut queue = lock(&self.queue);
        match socket.send(&mut queue, datagram, &[len], to, Instant::now()) {
            Ok(()) => true,
            Err(SendError { kind: SendErrorKind::BufferFull, .. }) => false,
            Err(error) => {
                tracing::debug!(%error, %to, "a report was not sent");
                true
            }
        }
    }

    /// Lets reporters do what is due, and calls their hooks.
    pub(crate) fn serve(&self, now: Instant) {
        self.serve_and(now, true);
    }

    fn serve_and(&self, now: Instant, tells: bool) {
        if self.due.load(Relaxed) > self.nanos(now) {
            return;
        }
        self.due.store(u64::MAX, Relaxed);
        let mut due = None;
        // Not under the lock: a reporter's hook may open or close streams.
        for n in 0.. {
            let reporter = lock(&self.reporters).get(n).cloned();
            let Some(reporter) = reporter else { break };
            due = earlier(due, reporter.serve(self, now));
            if tells {
                reporter.dispatch();
            } else if reporter.has_events() {
                due = earlier(due, Some(now));
            }
        }
        if let Some(due) = due {
            self.due_at(due);
        }
    }

    /// Drives the reporters after a request of the application, and makes the thread that reads
    /// check the time again.
    pub(crate) fn serve_now(&self) {
        self.due.store(0, Relaxed);
        self.serve(Instant::now());
        if self.turn.try_lock().is_err() {
            self.waker.wake();
        }
    }

    /// Reads pending RTCP, for a thread that only pushes; at most once a millisecond.
    pub(crate) fn look(&self) {
        self.look_and(true);
    }

    /// The same in the middle of a frame. Hooks are called later: they may call functions that wait
    /// for the frame's end.
    pub(crate) fn look_within_frame(&self) {
        self.look_and(false);
    }

    fn look_and(&self, tells: bool) {
        if !self.has_control() && self.due.load(Relaxed) == u64::MAX {
            return;
        }
        let now = Instant::now();
        if let Ok(mut turn) = self.turn.try_lock()
            && now.saturating_duration_since(turn.looked) >= LOOK_INTERVAL
        {
            turn.looked = now;
            let outcome = if self.is_muxed() {
                self.read_once(None, &mut turn, now).map(|_| ())
            } else {
                self.read_control(&mut turn.control)
            };
            drop(turn);
            self.tell();
            if let Err(error) = outcome {
                tracing::debug!(%error, "the stream cannot read its reports");
            }
        }
        self.serve_and(now, tells);
    }

    /// Reads reports and answers them until `deadline`, for a thread that has nothing to push.
    pub(crate) fn look_until(&self, deadline: Instant) -> Result<(), Error> {
        loop {
            let now = Instant::now();
            self.serve(now);
            if now >= deadline {
                return Ok(());
            }
            let until = self.due().map_or(deadline, |due| due.min(deadline));
            let news = lock(&self.news).count;
            if let Ok(mut turn) = self.turn.try_lock() {
                let read = self.read_once(None, &mut turn, until);
                drop(turn);
                self.tell();
                read?;
            } else {
                self.wait_for_news(news, until);
            }
        }
    }

    /// Reads one batch, or waits until `until` for one.
    #[cfg(feature = "zrtp")]
    pub(crate) fn look_once(&self, until: Instant) -> Result<(), Error> {
        self.serve(Instant::now());
        let news = lock(&self.news).count;
        if let Ok(mut turn) = self.turn.try_lock() {
            let read = self.read_once(None, &mut turn, until);
            drop(turn);
            self.tell();
            read?;
        } else {
            self.wait_for_news(news, until);
        }
        Ok(())
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match self.due.load(Relaxed) {
            u64::MAX => None,
            nanos => Some(self.epoch + Duration::from_nanos(nanos)),
        }
    }

    fn due_at(&self, due: Instant) {
        self.due.fetch_min(self.nanos(due), Relaxed);
    }

    fn nanos(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.epoch).as_nanos() as u64
    }

    /// Reads pending RTCP on its own socket, for as long as media can wait; the rest of a flood is
    /// left to the next check.
    pub(super) fn read_control(&self, arena: &mut Option<Arena>) -> Result<(), Error> {
        let (Control::Beside(socket), Some(arena)) = (&self.control, arena) else {
            return Ok(());
        };
        for _ in 0..READS_MAX {
            let now = Instant::now();
            let datagrams = socket.receive(arena, now, None)?;
            if datagrams.is_empty() {
                break;
            }
            for datagram in datagrams {
                self.take_report(now, *datagram.from, datagram.data);
            }
        }
        Ok(())
    }

    pub(super) fn take_report(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        if self.only_from.is_some_and(|only| only.host != from.ip()) {
            self.foreign.fetch_add(1, Relaxed);
            return;
        }
        for reporter in &*lock(&self.reporters) {
            reporter.take(self, now, from, datagram);
        }
        self.due.store(0, Relaxed);
    }

    /// Gives a receiver back, and notes when it has requests or a conflict to send.
    pub(super) fn finish(&self, current: Option<(&Inbox, MutexGuard<'_, Receiver>)>) {
        let Some((_, receiver)) = current else { return };
        if let Some(due) = receiver.requests_due() {
            self.due_at(due);
        }
        if receiver.has_conflict() {
            self.due.store(0, Relaxed);
        }
    }
}
