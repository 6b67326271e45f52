//! The sessions of the HTTP server: viewers and one publisher.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rushes::peer::PeerError;
use rushes::peer::ice::AgentError;
use rushes::peer::negotiation::NegotiationError;
use rushes::{Context, Error};
use rushes_whip::{Endpoint, Kind, OpenRequest, Reason, Refusal};

use super::hub::Hub;
use super::publisher::Publisher;
use super::recording::Recordings;
use super::session::Session;
use super::viewer::Viewer;
use super::workers::{Task, Workers};
use crate::ice::IceServers;

/// Opens sessions, and ends them.
pub(super) struct Sessions {
    context: Context,
    hub: Arc<Hub>,
    recordings: Option<Arc<Recordings>>,
    /// Whether somebody may publish; otherwise a file is shown.
    takes_publisher: bool,
    /// Maximum number of sessions, with those that are about to end.
    max: usize,
    /// The servers by which clients are reached.
    servers: Arc<IceServers>,
    register: Arc<Register>,
    pub(super) viewers: Workers,
}

/// The sessions that there are.
#[derive(Default)]
struct Register {
    open: Mutex<Vec<Open>>,
    left: Condvar,
}

/// A session, until its connection has ended.
struct Open {
    session: Arc<Session>,
    kind: Kind,
}

/// A session's share of those that may be open at once; dropping it ends the session.
pub(super) struct Slot {
    register: Arc<Register>,
    session: Arc<Session>,
}

impl Slot {
    pub(super) fn session(&self) -> &Session {
        &self.session
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.session.end();
        self.register.lock().retain(|it| !Arc::ptr_eq(&it.session, &self.session));
        self.register.left.notify_all();
    }
}

impl Register {
    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    pub(super) fn new(context: Context, hub: Arc<Hub>, takes_publisher: bool, max: usize) -> Self {
        Self {
            context,
            hub,
            recordings: None,
            takes_publisher,
            max,
            servers: Arc::default(),
            register: Arc::default(),
            viewers: Workers::of_cores("rushes-view"),
        }
    }

    /// Sets the servers by which clients are reached.
    pub(super) fn servers(self, servers: IceServers) -> Self {
        Self { servers: Arc::new(servers), ..self }
    }

    /// Records what is published.
    pub(super) fn recorded(self, recordings: Option<Arc<Recordings>>) -> Self {
        Self { recordings, ..self }
    }

    /// Waits until the viewers have been sent the end of the show, at most for `time`.
    pub(super) fn drain(&self, time: Duration) {
        self.wait(time, |open| open.kind == Kind::Play);
    }

    /// Ends all sessions, and waits until they have taken leave, at most for `time`.
    pub(super) fn end(&self, time: Duration) {
        self.lock().iter().for_each(|open| open.session.end());
        self.wait(time, |_| true);
    }

    fn wait(&self, time: Duration, is_awaited: impl Fn(&Open) -> bool) {
        let is_any = |open: &mut Vec<Open>| open.iter().any(&is_awaited);
        drop(self.register.left.wait_timeout_while(self.lock(), time, is_any));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.register.lock()
    }

    /// Takes a slot for a session. One address has a limited number of those that no path has reached yet. There is
    /// one publisher at a time; one whom no path reaches gives way to the next.
    pub(super) fn enter(&self, request: &OpenRequest<'_>) -> Result<Slot, Refusal> {
        let OpenRequest { id, kind, local, peer, .. } = *request;
        let (local, client) = (local.ip(), network_of(peer.ip()));
        let mut open = self.lock();
        if open.len() >= self.max {
            let text = format!("all {} sessions of this server are in use; try again", self.max);
            return Err(Refusal::new(Reason::Busy, text));
        }
        let is_unheard = |it: &&Open| it.session.client() == client && !it.session.has_path();
        if !peer.ip().is_loopback() && open.iter().filter(is_unheard).count() >= self.unheard_max()
        {
            let reason =
                "sessions of this address are waiting to be reached: end them, or try again";
            return Err(Refusal::new(Reason::TooMany, reason));
        }
        if kind == Kind::Publish {
            check_publishers(open.iter())?;
        }
        let session = Session::new(id, (local, client), self.servers.clone());
        let session = Arc::new(session);
        open.push(Open { session: session.clone(), kind });
        Ok(Slot { register: self.register.clone(), session })
    }

    /// Accepts a publisher whose offer is answered, and ends other publishers without a path. Fails if another
    /// publisher has a path by now.
    pub(super) fn keep(&self, publisher: &Session) -> Result<(), Refusal> {
        let open = self.lock();
        let is_other = |it: &&Open| it.session.id() != publisher.id();
        check_publishers(open.iter().filter(is_other))?;
        let others = open.iter().filter(|it| it.kind == Kind::Publish && is_other(it));
        others.for_each(|it| it.session.end());
        Ok(())
    }

    /// Returns how many sessions without a path one address may have: a stranger does not take all places.
    fn unheard_max(&self) -> usize {
        self.max.div_ceil(4)
    }

    /// Answers a viewer, and begins to serve it.
    fn play(&self, slot: Slot, offer: &str) -> Result<String, Refusal> {
        let shown = self.hub.shown();
        if shown.1.is_empty() {
            let reason =
                "nobody publishes yet: POST an offer to /whip, or open the page and publish";
            return Err(Refusal::new(Reason::Conflict, reason));
        }
        self.viewers.enter(|waker| {
            let answered = Viewer::answer(&self.context, &self.hub, shown, (slot, waker), offer);
            let (answer, viewer) = answered.map_err(|error| refusal(&error))?;
            Ok((answer, Box::new(viewer) as Box<dyn Task>))
        })
    }

    /// Answers a publisher, and begins to serve it on threads of its own: a recording that waits for the disk delays no
    /// viewer.
    fn publish(&self, slot: Slot, offer: &str) -> Result<String, Refusal> {
        if !self.takes_publisher {
            let reason = "this server shows a file: start it without one to publish to it";
            return Err(Refusal::new(Reason::Forbidden, reason));
        }
        let to = (&self.hub, self.recordings.as_ref());
        let answered = Publisher::answer(&self.context, to, &slot.session, offer);
        let (answer, publisher) = answered.map_err(|error| refusal(&error))?;
        self.keep(&slot.session)?;
        let run = move || {
            publisher.run();
            drop(slot);
        };
        let busy = |error| Refusal::new(Reason::Busy, format!("cannot start a thread: {error}"));
        thread::Builder::new().name("rushes-publish".to_owned()).spawn(run).map_err(busy)?;
        Ok(answer)
    }
}

/// Refuses another publisher if one of these sessions publishes, which has a path.
fn check_publishers<'a>(open: impl IntoIterator<Item = &'a Open>) -> Result<(), Refusal> {
    let publishes =
        |it: &Open| it.kind == Kind::Publish && !it.session.is_over() && it.session.has_path();
    if open.into_iter().any(publishes) {
        let reason = "somebody publishes already: end that session first";
        return Err(Refusal::new(Reason::Conflict, reason));
    }
    Ok(())
}

/// Returns the network that one client may have all addresses of: with IPv6 the first 64 bits.
fn network_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Endpoint for Sessions {
    fn open(&self, request: &OpenRequest<'_>) -> Result<String, Refusal> {
        let slot = self.enter(request)?;
        match request.kind {
            Kind::Play => self.play(slot, request.offer),
            Kind::Publish => self.publish(slot, request.offer),
        }
    }

    fn patch(&self, id: &str, fragment: &str) -> Result<Option<String>, Refusal> {
        let found =
            self.lock().iter().find(|open| open.session.id() == id).map(|it| it.session.clone());
        let gone = || Refusal::new(Reason::NotFound, "the session has ended");
        found.filter(|session| !session.is_over()).ok_or_else(gone)?.patch(fragment)
    }

    fn close(&self, id: &str) {
        self.lock().iter().filter(|open| open.session.id() == id).for_each(|it| it.session.end());
    }

    fn is_open(&self, id: &str) -> bool {
        self.lock().iter().any(|open| open.session.id() == id)
    }
}

/// Says to the client why its offer is refused.
fn refusal(error: &Error) -> Refusal {
    use NegotiationError::{Description, UnreadableMedia};
    let reason = match error {
        Error::Peer(PeerError::Negotiation(Description(_) | UnreadableMedia { .. })) => {
            Reason::Malformed
        }
        Error::Peer(PeerError::Negotiation(_)) => Reason::NotAcceptable,
        // The client's candidates are left out, so this is one of our own settings.
        Error::Peer(PeerError::Ice(
            AgentError::Address(_)
            | AgentError::TooMany { .. }
            | AgentError::Lite
            | AgentError::TurnLogin { .. },
        )) => Reason::Internal,
        Error::Peer(PeerError::Credentials(_) | PeerError::Ice(_) | PeerError::Order(_)) => {
            Reason::Unprocessable
        }
        _ => Reason::Internal,
    };
    Refusal::new(reason, error.to_string())
}
