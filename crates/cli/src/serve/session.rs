//! What the HTTP server and the thread of a session share.

use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use rushes::peer::Peer;
use rushes::{Context, Error};

/// How long a peer may take from its offer to the first packet.
pub(super) const CONNECT_TIME: Duration = Duration::from_secs(20);

/// One session: a viewer or a publisher.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    /// The address of this machine at which the client has reached it.
    local: IpAddr,
    is_over: AtomicBool,
    left_out: AtomicU64,
}

impl Session {
    pub(super) fn new(id: &str, local: IpAddr) -> Self {
        let (is_over, left_out) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { id: id.to_owned(), local, is_over, left_out }
    }

    /// Creates this end of the connection. A client that has reached this machine by loopback is on it, and a
    /// browser on it may have no other address.
    pub(super) fn peer(&self, context: &Context) -> Result<Peer, Error> {
        let builder = context.peer();
        if self.local.is_loopback() { builder.with_loopback().open() } else { builder.open() }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the beginning of the identifier, which does not give the session away.
    pub(super) fn short_id(&self) -> &str {
        self.id.get(..6).unwrap_or_default()
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Notes how many frames the viewer has not been sent, because it was behind or had just come.
    pub(super) fn note_left_out(&self, frames: u64) {
        self.left_out.store(frames, Relaxed);
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }
}
