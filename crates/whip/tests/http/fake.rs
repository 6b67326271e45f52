//! An endpoint without media, whose behaviour the offer selects.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use rushes_whip::{Endpoint, Kind, OpenRequest, Reason, Refusal, Server, ServerConfig};

pub(crate) const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n";

/// What the server asked of the endpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Event {
    Opened(Kind, String),
    Patched(String, String),
    Closed(String),
}

#[derive(Default)]
pub(crate) struct Fake {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    open: BTreeSet<String>,
    peers: Vec<(SocketAddr, SocketAddr)>,
    waiting: usize,
    is_released: bool,
}

impl Fake {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.state.lock().unwrap().events.clone()
    }

    pub(crate) fn open_sessions(&self) -> usize {
        self.state.lock().unwrap().open.len()
    }

    pub(crate) fn peers(&self) -> Vec<(SocketAddr, SocketAddr)> {
        self.state.lock().unwrap().peers.clone()
    }

    /// Ends all sessions, as if their clients had left.
    pub(crate) fn lose_all(&self) {
        self.state.lock().unwrap().open.clear();
    }

    /// Waits until `condition` holds of the events.
    pub(crate) fn wait_until(&self, condition: impl Fn(&[Event]) -> bool) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !condition(&state.events)).unwrap());
    }

    /// Waits until `count` offers with "wait" have come.
    pub(crate) fn wait_for_waiting(&self, count: usize) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.waiting < count).unwrap());
    }

    /// Lets offers with "wait" go on.
    pub(crate) fn release(&self) {
        self.state.lock().unwrap().is_released = true;
        self.changed.notify_all();
    }
}

impl Endpoint for Fake {
    fn open(&self, request: &OpenRequest<'_>) -> Result<String, Refusal> {
        let refuse = |reason| Err(Refusal::new(reason, "the fake endpoint refuses"));
        let mut state = self.state.lock().unwrap();
        state.peers.push((request.peer, request.local));
        if request.offer.contains("panic") {
            drop(state);
            panic!("the offer asked for it");
        }
        if request.offer.contains("wait") {
            state.waiting += 1;
            self.changed.notify_all();
            state = self.changed.wait_while(state, |state| !state.is_released).unwrap();
        }
        for (word, reason) in REASONS {
            if request.offer.contains(word) {
                return refuse(*reason);
            }
        }
        state.events.push(Event::Opened(request.kind, request.id.to_owned()));
        state.open.insert(request.id.to_owned());
        self.changed.notify_all();
        Ok(format!("answer to {}", request.offer))
    }

    fn patch(&self, id: &str, fragment: &str) -> Result<Option<String>, Refusal> {
        let mut state = self.state.lock().unwrap();
        state.events.push(Event::Patched(id.to_owned(), fragment.to_owned()));
        match fragment {
            "malformed" => Err(Refusal::new(Reason::Malformed, "not a fragment")),
            "unprocessable" => Err(Refusal::new(Reason::Unprocessable, "not supported")),
            fragment if fragment.contains("restart") => Ok(Some("credentials".into())),
            _ => Ok(None),
        }
    }

    fn close(&self, id: &str) {
        let mut state = self.state.lock().unwrap();
        state.events.push(Event::Closed(id.to_owned()));
        state.open.remove(id);
        self.changed.notify_all();
    }

    fn is_open(&self, id: &str) -> bool {
        self.state.lock().unwrap().open.contains(id)
    }
}

/// Words of an offer and the reasons for which it is refused.
pub(crate) const REASONS: &[(&str, Reason)] = &[
    ("malformed", Reason::Malformed),
    ("forbidden", Reason::Forbidden),
    ("not found", Reason::NotFound),
    ("not acceptable", Reason::NotAcceptable),
    ("conflict", Reason::Conflict),
    ("unprocessable", Reason::Unprocessable),
    ("too many", Reason::TooMany),
    ("busy", Reason::Busy),
    ("internal", Reason::Internal),
];

/// A server with a fake endpoint on a port of the loopback address.
pub(crate) fn serve(config: ServerConfig) -> (Server, Arc<Fake>) {
    let fake = Arc::new(Fake::default());
    let server = Server::bind(&[([127, 0, 0, 1], 0).into()], config, fake.clone()).unwrap();
    (server, fake)
}

pub(crate) fn address(server: &Server) -> SocketAddr {
    server.local_addresses()[0]
}

pub(crate) fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", address(server))
}
