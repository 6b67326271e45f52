//! Proof, by Ping, that an address receives the packets sent to it (RFC 6189 section 5.15).

use core::net::SocketAddr;
use std::collections::VecDeque;

use zeroize::Zeroizing;

use super::VERSION;
use super::message::Message;
use super::ping::{Ping, PingAck};
use crate::crypto::{HashAlgorithm, hmac, tags_are_equal};

/// Maximum number of proved addresses that are kept before they are candidates.
const PROVED_MAX: usize = 8;

/// Decides which addresses are proved.
///
/// Each address has its own cookie, which is sent only in a Ping to that address. Nothing is stored
/// for an address before it has answered a Ping.
pub(super) struct Proofs {
    key: Zeroizing<[u8; 32]>,
    proved: VecDeque<SocketAddr>,
}

impl Proofs {
    /// Creates proofs whose cookies are derived from `key`, which must be random.
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key: Zeroizing::new(key), proved: VecDeque::new() }
    }

    pub(super) fn cookie(&self, address: SocketAddr) -> [u8; 8] {
        let (ip, port) = (address.ip().to_string(), address.port().to_be_bytes());
        let mac = hmac(HashAlgorithm::Sha256, &*self.key, &[ip.as_bytes(), &port]);
        let mut cookie = [0; 8];
        cookie.copy_from_slice(&mac.as_slice()[..8]);
        cookie
    }

    /// Returns whether `answer` answers a Ping that was sent to `address`.
    pub(super) fn is_proof(&self, address: SocketAddr, answer: &PingAck) -> bool {
        tags_are_equal(&self.cookie(address), &answer.received_hash)
    }

    /// Stores an address that is not a candidate yet.
    pub(super) fn keep(&mut self, address: SocketAddr) {
        if !self.proved.contains(&address) {
            if self.proved.len() >= PROVED_MAX {
                self.proved.pop_front();
            }
            self.proved.push_back(address);
        }
    }

    /// Removes `address`; returns `false` if it was not stored.
    pub(super) fn take(&mut self, address: SocketAddr) -> bool {
        let at = self.proved.iter().position(|proved| *proved == address);
        at.is_some_and(|at| self.proved.remove(at).is_some())
    }
}

/// Returns a Ping with the cookie of its destination.
pub(super) fn ping(cookie: [u8; 8]) -> Message<'static> {
    Message::Ping(Ping { version: VERSION, endpoint_hash: cookie })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn only_an_answer_from_where_the_ping_went_is_a_proof() {
        let proofs = Proofs::new([7; 32]);
        let answer = PingAck {
            version: VERSION,
            endpoint_hash: [0; 8],
            received_hash: proofs.cookie(address(1)),
            received_ssrc: 1,
        };
        assert!(proofs.is_proof(address(1), &answer));
        assert!(!proofs.is_proof(address(2), &answer));
        assert!(!Proofs::new([8; 32]).is_proof(address(1), &answer));
    }

    #[test]
    fn few_addresses_are_kept_and_each_counts_once() {
        let mut proofs = Proofs::new([7; 32]);
        (0..100).for_each(|port| proofs.keep(address(port)));
        assert_eq!(proofs.proved.len(), PROVED_MAX);
        assert!(proofs.take(address(99)) && !proofs.take(address(99)) && !proofs.take(address(1)));
    }
}
