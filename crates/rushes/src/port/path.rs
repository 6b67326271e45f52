//! Where a peer is reached, if that is found out and may change (ICE, RFC 8445).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use super::relay::{Hop, Relay};
use crate::lock::lock;

/// Maximum number of addresses from which media is accepted.
const KNOWN_MAX: usize = 64;

/// The peer of a port: the address that media goes to, and those it may come from.
#[derive(Debug, Default)]
pub(crate) struct Path {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until an address has been proved.
    selected: Option<Hop>,
    /// The relay through which datagrams may come, if there is one.
    relay: Option<Arc<Relay>>,
    /// Addresses that the peer has named, or from which it has proved to send.
    known: Vec<SocketAddr>,
}

impl Path {
    /// Returns the address that media and reports go to.
    pub(crate) fn selected(&self) -> Option<SocketAddr> {
        self.hop().map(|hop| hop.peer)
    }

    /// Returns how media and reports reach the peer.
    pub(crate) fn hop(&self) -> Option<Hop> {
        lock(&self.state).selected
    }

    /// Sends media and reports to another address, or by another way, from now on.
    pub(crate) fn select(&self, hop: Hop) {
        lock(&self.state).selected = Some(hop);
        self.admit(hop.peer);
    }

    /// Returns the relay through which datagrams may come.
    pub(crate) fn relay(&self) -> Option<Arc<Relay>> {
        lock(&self.state).relay.clone()
    }

    /// Expects datagrams of `peer` in a channel of a relay, too.
    #[cfg(feature = "webrtc")]
    pub(crate) fn open_channel(&self, (server, channel): (SocketAddr, u16), peer: SocketAddr) {
        let relay = &mut lock(&self.state).relay;
        let relay = relay.get_or_insert_with(|| Arc::new(Relay::new(server)));
        Arc::make_mut(relay).set(channel, peer);
    }

    /// Expects nothing from the relay any more.
    #[cfg(feature = "webrtc")]
    pub(crate) fn close_relay(&self) {
        lock(&self.state).relay = None;
    }

    /// Sends nothing until an address is selected again: the peer has not agreed to be sent anything (RFC 7675).
    #[cfg(feature = "webrtc")]
    pub(crate) fn clear(&self) {
        lock(&self.state).selected = None;
    }

    /// Accepts media from another address, too. The oldest one is forgotten if there are too many.
    pub(crate) fn admit(&self, from: SocketAddr) {
        let State { selected, known, .. } = &mut *lock(&self.state);
        if known.contains(&from) {
            return;
        }
        if known.len() >= KNOWN_MAX {
            let selected = selected.map(|hop| hop.peer);
            let oldest = known.iter().position(|known| Some(*known) != selected);
            known.remove(oldest.unwrap_or(0));
        }
        known.push(from);
    }

    /// Returns whether media from an address is accepted.
    pub(crate) fn admits(&self, from: SocketAddr) -> bool {
        lock(&self.state).known.contains(&from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn media_is_accepted_from_earlier_addresses_after_a_change() {
        let path = Path::default();
        assert!(path.selected().is_none() && !path.admits(address(1)));
        path.select(Hop::direct(address(1)));
        path.admit(address(2));
        path.select(Hop::direct(address(3)));
        assert_eq!(path.selected(), Some(address(3)));
        assert!((1..=3).all(|port| path.admits(address(port))) && !path.admits(address(4)));
    }

    #[test]
    fn many_addresses_do_not_push_out_the_selected_one() {
        let path = Path::default();
        path.select(Hop::direct(address(1)));
        (2..1000).for_each(|port| path.admit(address(port)));
        assert!(path.admits(address(1)) && path.admits(address(999)) && !path.admits(address(2)));
        assert_eq!(lock(&path.state).known.len(), KNOWN_MAX);
    }
}
