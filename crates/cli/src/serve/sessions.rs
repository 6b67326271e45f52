//! The sessions of the HTTP server: viewers and one publisher.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rushes::peer::PeerError;
use rushes::{Context, Error};
use rushes_whip::{Endpoint, Kind, OpenRequest, Reason, Refusal};

use super::hub::Hub;
use super::publisher::Publisher;
use super::session::Session;
use super::viewer::Viewer;

/// Opens sessions, and ends them.
pub(super) struct Sessions {
    context: Context,
    hub: Arc<Hub>,
    /// Whether somebody may publish; otherwise a file is shown.
    takes_publisher: bool,
    open: Mutex<Vec<Open>>,
}

/// A session that has a thread.
struct Open {
    session: Arc<Session>,
    kind: Kind,
}

impl Sessions {
    pub(super) fn new(context: Context, hub: Arc<Hub>, takes_publisher: bool) -> Self {
        Self { context, hub, takes_publisher, open: Mutex::default() }
    }

    /// Ends all sessions.
    pub(super) fn end(&self) {
        self.lock().iter().for_each(|open| open.session.end());
    }

    /// Returns the number of frames that viewers have not been sent because they were behind.
    pub(super) fn left_out(&self) -> u64 {
        self.lock().iter().map(|open| open.session.left_out()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn play(&self, session: &Arc<Session>, offer: &str) -> Result<String, Refusal> {
        if self.hub.tracks().is_empty() {
            let reason =
                "nobody publishes yet: POST an offer to /whip, or open the page and publish";
            return Err(Refusal::new(Reason::Conflict, reason));
        }
        let answered = Viewer::answer(&self.context, &self.hub, session, offer);
        let (answer, viewer) = answered.map_err(|error| refusal(&error))?;
        spawn("rushes-view", move || viewer.run())?;
        Ok(answer)
    }

    fn publish(&self, session: &Arc<Session>, offer: &str) -> Result<String, Refusal> {
        if !self.takes_publisher {
            let reason = "this server shows a file: start it without one to publish to it";
            return Err(Refusal::new(Reason::Forbidden, reason));
        }
        let answered = Publisher::answer(&self.context, &self.hub, session, offer);
        let (answer, publisher) = answered.map_err(|error| refusal(&error))?;
        spawn("rushes-publish", move || publisher.run())?;
        Ok(answer)
    }
}

impl Endpoint for Sessions {
    fn open(&self, request: &OpenRequest<'_>) -> Result<String, Refusal> {
        let OpenRequest { id, kind, offer, local, .. } = *request;
        let local: IpAddr = local.ip();
        let session = Arc::new(Session::new(id, local));
        {
            // One publisher at a time: its place is taken before its offer is answered.
            let mut open = self.lock();
            open.retain(|open| !open.session.is_over());
            if kind == Kind::Publish && open.iter().any(|open| open.kind == Kind::Publish) {
                let reason = "somebody publishes already: end that session first";
                return Err(Refusal::new(Reason::Conflict, reason));
            }
            open.push(Open { session: session.clone(), kind });
        }
        let answered = match kind {
            Kind::Play => self.play(&session, offer),
            Kind::Publish => self.publish(&session, offer),
        };
        if answered.is_err() {
            session.end();
        }
        answered
    }

    fn patch(&self, id: &str, fragment: &str) -> Result<Option<String>, Refusal> {
        let found =
            self.lock().iter().find(|open| open.session.id() == id).map(|it| it.session.clone());
        let gone = || Refusal::new(Reason::NotFound, "the session has ended");
        found.ok_or_else(gone)?.patch(fragment)
    }

    fn close(&self, id: &str) {
        self.lock().iter().filter(|open| open.session.id() == id).for_each(|it| it.session.end());
    }

    fn is_open(&self, id: &str) -> bool {
        self.lock().iter().any(|open| open.session.id() == id && !open.session.is_over())
    }
}

/// Says to the client why its offer is refused.
fn refusal(error: &Error) -> Refusal {
    let reason = match error {
        Error::Peer(PeerError::Negotiation(_)) => Reason::NotAcceptable,
        Error::Peer(PeerError::Credentials(_) | PeerError::Ice(_) | PeerError::Order(_)) => {
            Reason::Unprocessable
        }
        _ => Reason::Internal,
    };
    Refusal::new(reason, error.to_string())
}

/// Starts the thread of a session.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Refusal> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    let busy = |error| Refusal::new(Reason::Busy, format!("cannot start a thread: {error}"));
    spawned.map(|_| ()).map_err(busy)
}
