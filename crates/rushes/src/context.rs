//! Where an application starts.

use crate::error::Error;
use crate::session::Session;

/// The application's place among its peers; sessions are made from it.
///
/// Cheap to clone; a clone is the same context.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Context {}

impl Context {
    /// A context with all defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A session with one peer: a host name, an IPv4 or IPv6 address, or a multicast group.
    ///
    /// Streams of the session send to this host and, unless it is a multicast group, take
    /// datagrams from its address only.
    ///
    /// # Errors
    /// [`Error::Net`] if the name cannot be resolved.
    pub fn session(&self, peer: &str) -> Result<Session, Error> {
        Ok(Session::new(Some(rushes_net::resolve(peer, 0)?)))
    }

    /// A session without a peer, whose streams receive from anyone and send to no one.
    ///
    /// It listens on IPv4 unless [`Session::local_address`] says otherwise.
    pub fn session_any(&self) -> Session {
        Session::new(None)
    }
}
