//! What the HTTP server and the thread of a session share.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rushes::peer::{Peer, PeerHandle, PeerStream};
use rushes::{Context, Error};
use rushes_whip::{Reason, Refusal};

use super::workers::Waker;
use crate::ice::IceServers;
use crate::webrtc;

/// One session: a viewer or a publisher.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    /// The address of this machine at which the client has reached it.
    local: IpAddr,
    /// The network of the client.
    client: IpAddr,
    servers: Arc<IceServers>,
    is_over: AtomicBool,
    /// The connection, once there is one.
    connection: OnceLock<PeerHandle>,
    /// Wakes the thread that it shares with other viewers.
    waker: OnceLock<Waker>,
}

impl Session {
    pub(super) fn new(
        id: &str,
        (local, client): (IpAddr, IpAddr),
        servers: Arc<IceServers>,
    ) -> Self {
        let (is_over, connection, waker) =
            (AtomicBool::new(false), OnceLock::new(), OnceLock::new());
        Self { id: id.to_owned(), local, client, servers, is_over, connection, waker }
    }

    /// Creates this end of the connection. A client that has reached this machine by loopback is on it, and a
    /// browser on it may have no other address. Its events and the end of the session wake `waker`'s thread.
    pub(super) fn peer(&self, context: &Context, waker: Option<&Waker>) -> Result<Peer, Error> {
        let mut builder = context.peer();
        if self.local.is_loopback() {
            builder = builder.with_loopback();
        }
        let peer = self.servers.add_to(builder)?.open()?;
        if let Some(waker) = waker.cloned() {
            let _ = self.waker.set(waker.clone());
            peer.on_event(move || waker.wake());
        }
        let _ = self.connection.set(peer.handle());
        Ok(peer)
    }

    /// Takes further addresses of the client, or restarts ICE.
    pub(super) fn patch(&self, fragment: &str) -> Result<Option<String>, Refusal> {
        let gone = || Refusal::new(Reason::NotFound, "the session has no connection");
        let connection = self.connection.get().ok_or_else(gone)?;
        let malformed = |error: Error| Refusal::new(Reason::Malformed, error.to_string());
        connection.handle_fragment(fragment).map_err(malformed)
    }

    /// Returns whether the client answers on some path.
    pub(super) fn has_path(&self) -> bool {
        self.connection.get().is_some_and(PeerHandle::is_connected)
    }

    pub(super) fn client(&self) -> IpAddr {
        self.client
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
        self.waker.get().into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

/// Returns the streams once there is a path, and keys; `None` before.
///
/// # Errors
/// The connection has ended, or there are none at `deadline`.
pub(super) fn connected(
    peer: &mut Peer,
    now: Instant,
    deadline: Instant,
) -> anyhow::Result<Option<Vec<PeerStream>>> {
    let streams = peer.connect(Duration::ZERO)?;
    if streams.is_none() && now >= deadline {
        return Err(webrtc::not_connected(peer));
    }
    Ok(streams)
}
