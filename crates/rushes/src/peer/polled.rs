//! Peers that a poller reads.

use super::Peer;
use crate::error::Error;
use crate::media::Poller;

impl Poller {
    /// Adds a peer: [`pull`](Self::pull) reads its port, and does what is due of ICE, DTLS and all its streams, from
    /// before the path is found. It gives no frame of it; receiving halves are [added](Self::add) as well. Let
    /// [`Peer::on_event`] call [`PollerWaker::wake`](crate::PollerWaker::wake), and then poll the peer's events.
    ///
    /// The peer stays the application's. [Remove](Self::remove) it when it is dropped: until then it counts in
    /// [`len`](Self::len), though another stream may be added with its token.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_peer(&mut self, peer: &Peer, token: u64) -> Result<(), Error> {
        self.add_port(&peer.port, token)
    }
}
