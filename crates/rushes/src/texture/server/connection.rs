//! A connection to the server's port: a control connection, or that of one unit.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rushes_delivery::control::{
    Message, Reason, Server, ServerEvent, State, Stopped, StoppedBy, UnitOpening,
};
use rushes_net::TcpSocket;

use super::super::sealing;
use super::super::wire::Wire;
use super::Inner;
use super::session::Session;

/// Longest wait of the thread before it checks for requests.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Time limit for sending the last message to a client.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest wait for a client to close the connection after the end of its session: TCP repeats what the client lost.
const LINGER_MAX: Duration = Duration::from_secs(10);

/// Serves a connection until its end.
pub(super) fn serve(inner: &Arc<Inner>, socket: Arc<TcpSocket>) {
    let span = tracing::info_span!("texture_session", peer = %socket.peer_address());
    let _entered = span.enter();
    let machine = Server::new(Instant::now(), inner.timeline);
    let channel = match inner.sealing.channel() {
        Ok(channel) => channel,
        Err(error) => {
            inner.pending.remove(&socket);
            return tracing::warn!(%error, "a connection cannot be secured");
        }
    };
    let wire = Wire::new(socket, channel);
    let mut connection =
        Connection { inner, machine, wire, session: None, is_unit: false, closing: None };
    connection.run();
    inner.pending.remove(&connection.wire.socket);
    connection.finish();
    if let Some(session) = connection.session.take() {
        session.end(inner);
    }
    if connection.closing.is_some() {
        connection.linger();
    }
    if !connection.is_unit {
        connection.wire.socket.shut_down();
    }
}

/// Counts a client that is to hear of the end of its session until it is dropped.
struct Closing<'a>(&'a Inner);

impl<'a> Closing<'a> {
    fn new(inner: &'a Inner) -> Self {
        inner.closing.fetch_add(1, Ordering::AcqRel);
        Self(inner)
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.closing.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Connection<'a> {
    inner: &'a Arc<Inner>,
    machine: Server,
    wire: Wire,
    session: Option<Session>,
    /// Whether the connection belongs to a unit of another connection's session.
    is_unit: bool,
    /// Set when this side has ended the session, and its client is to hear why.
    closing: Option<Closing<'a>>,
}

impl Connection<'_> {
    fn run(&mut self) {
        loop {
            while let Some(event) = self.machine.poll_event() {
                self.handle(event);
            }
            self.poll_requests();
            if !self.wire.flush(&mut self.machine) || self.machine.state() == State::Stopped {
                return;
            }
            if !self.wait() {
                return self.machine.handle_close();
            }
            self.wire.read(&mut self.machine);
            self.machine.handle_timeout(Instant::now());
        }
    }

    fn wait(&self) -> bool {
        let check = Instant::now() + CHECK_INTERVAL;
        let due = self.machine.poll_timeout().map_or(check, |due| due.min(check));
        let waker = self.session.as_ref().map(|session| &*session.binding.waker);
        self.wire.socket.wait(self.wire.interest(), Some(due), waker).is_ok()
    }

    /// Handles the last events, and sends the last message. The client can still send.
    fn finish(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            self.handle(event);
        }
        if self.is_unit {
            return;
        }
        self.wire.finish_writing(&mut self.machine, Instant::now() + FINISH_TIMEOUT);
    }

    /// Waits until the client has closed the connection. Until it has read the last message, which it may have lost, it
    /// sends reports; after a close here they would reset the connection, and TCP would not send the message again.
    fn linger(&self) {
        let socket = &self.wire.socket;
        // Clients that do not close it push each other out.
        let oldest = self.inner.pending.add(self.peer().ip(), socket);
        oldest.inspect(|oldest| oldest.shut_down());
        let until = Instant::now() + LINGER_MAX;
        if !self.wire.linger(|| self.inner.is_stopped() || Instant::now() >= until) {
            tracing::debug!(peer = %self.peer(), "the client has not closed its connection");
        }
        self.inner.pending.remove(socket);
    }

    fn handle(&mut self, event: ServerEvent) {
        let machine = &mut self.machine;
        match (event, &mut self.session) {
            (ServerEvent::Unit(unit), _) => {
                // Removed first, so that a connection of a session is never closed as a pending
                // one.
                self.inner.pending.remove(&self.wire.socket);
                self.bind(unit);
            }
            (ServerEvent::Wants(wishes), None) => {
                match Session::begin(self.inner, machine, &wishes, &self.wire) {
                    Ok(session) => {
                        self.session = Some(session);
                        self.inner.pending.remove(&self.wire.socket);
                    }
                    Err((reason, text)) => {
                        tracing::info!(peer = %self.peer(), %reason, text, "a client was refused");
                        // This fails only if no session was requested.
                        let _ = self.machine.refuse(reason, &text);
                        let stopped = Stopped { by: StoppedBy::Own, reason, text };
                        self.inner.tally.note_refusal(self.peer(), stopped);
                    }
                }
            }
            (ServerEvent::Accepted(accept), Some(session)) => session.accept(machine, accept),
            (ServerEvent::Streaming { .. }, Some(session)) => session.stream(self.inner),
            (ServerEvent::ChangeWanted(change), Some(session)) => session.request(change),
            (ServerEvent::Report(report), Some(session)) => {
                session.handle_report(self.inner, machine, report);
            }
            (ServerEvent::Nack(nack), Some(session)) => session.binding.work.request(&nack),
            (ServerEvent::Stopped(stopped), _) => self.note_end(&stopped),
            _ => {}
        }
    }

    /// Handles requests of other threads.
    fn poll_requests(&mut self) {
        match &mut self.session {
            Some(session) => {
                let channel = &mut self.wire.channel;
                if let Err(error) = sealing::seal(channel, session.binding.streams()) {
                    self.machine.stop(Reason::Unsupported, &error.to_string());
                }
                session.poll_requests(self.inner, &mut self.machine, channel.is_open());
            }
            None if self.inner.is_stopped() => {
                self.machine.stop(Reason::Ended, "the server is closing");
            }
            None => {}
        }
    }

    fn peer(&self) -> SocketAddr {
        self.wire.socket.peer_address()
    }

    fn note_end(&mut self, stopped: &Stopped) {
        tracing::info!(peer = %self.peer(), %stopped, "a connection has ended");
        if self.session.is_some() {
            // It is counted before the end can be seen, so that a program can wait for it.
            self.closing = (stopped.by == StoppedBy::Own).then(|| Closing::new(self.inner));
            self.inner.note_end(self.peer(), stopped);
        }
    }

    /// Binds this connection to a unit of another connection's session.
    fn bind(&mut self, opening: UnitOpening) {
        let refusal = match self.inner.find(opening.token) {
            None => "no session has this token",
            Some(binding) if binding.bind_chunks(opening.unit, self.wire.socket.clone()) => {
                self.is_unit = true;
                return;
            }
            Some(_) => "this unit of the session does not exist or is already bound",
        };
        // Any stranger can cause this, so it is no warning.
        tracing::info!(peer = %self.peer(), unit = opening.unit, refusal, "a unit was refused");
        let mut octets = Vec::new();
        Message::Refuse { reason: Reason::Token, text: refusal.into() }.write(&mut octets);
        // Best effort: a new connection has room for this short message.
        let _ = self.wire.socket.write_some(&[IoSlice::new(&octets)]);
    }
}
