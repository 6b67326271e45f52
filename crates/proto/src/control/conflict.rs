//! Collisions and loops: packets that carry this participant's own SSRC (RFC 3550 section 8.2).

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of addresses remembered. It limits the SSRC changes that an attacker can cause in
/// that time; real collisions hardly ever happen twice.
const ADDRESSES_MAX: usize = 4;

/// Time for which an address is remembered after its last conflict: ten of the longest report
/// intervals, as the RFC suggests.
const MEMORY: Duration = Duration::from_secs(50);

/// Maximum time between two packets under our own SSRC that prove a collision: two of the shortest
/// regular report intervals (RFC 3550 section 6.2).
const PROOF_TIME: Duration = Duration::from_secs(10);

/// Maximum number of addresses remembered after one packet; a further one replaces the oldest.
const SUSPECTS_MAX: usize = 8;

/// The meaning of packets with our own SSRC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conflict {
    /// Another participant has chosen the same SSRC.
    Collision,
    /// Our own packets are sent back to us from an address with an earlier collision.
    Loop,
}

/// Addresses that sent packets with our own SSRC.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflicts {
    addresses: Vec<(SocketAddr, Instant)>,
    /// Addresses that sent one such packet, oldest first.
    suspects: VecDeque<(SocketAddr, Instant)>,
}

impl Conflicts {
    /// Classifies a packet with our SSRC that arrived from `from` at `now`; `None` if there is
    /// nothing new to report.
    pub(super) fn classify(&mut self, now: Instant, from: SocketAddr) -> Option<Conflict> {
        self.addresses.retain(|(_, last)| now.saturating_duration_since(*last) < MEMORY);
        if let Some((_, last)) = self.addresses.iter_mut().find(|(address, _)| *address == from) {
            // A loop repeats every packet, so it is reported at most once a second.
            let is_reported = now.saturating_duration_since(*last) < Duration::from_secs(1);
            if !is_reported {
                *last = now;
            }
            return (!is_reported).then_some(Conflict::Loop);
        }
        if self.addresses.len() < ADDRESSES_MAX && self.is_second(now, from) {
            self.addresses.push((from, now));
            return Some(Conflict::Collision);
        }
        // This is the first packet, or more addresses send such packets than real collisions cause:
        // a new SSRC would not help.
        None
    }

    /// Returns whether `from` sent such a packet shortly before; otherwise remembers the address.
    fn is_second(&mut self, now: Instant, from: SocketAddr) -> bool {
        self.suspects.retain(|(_, first)| now.saturating_duration_since(*first) <= PROOF_TIME);
        let known = self.suspects.iter().position(|(address, _)| *address == from);
        if let Some(n) = known {
            self.suspects.remove(n);
            return true;
        }
        if self.suspects.len() >= SUSPECTS_MAX {
            self.suspects.pop_front();
        }
        self.suspects.push_back((from, now));
        false
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    #[test]
    fn one_address_collides_with_its_second_packet_and_loops_from_then_on() {
        let mut conflicts = Conflicts::default();
        let start = Instant::now();
        let address = |port| SocketAddr::from(([192, 0, 2, 1], port));
        assert_eq!(conflicts.classify(start, address(1)), None);
        assert_eq!(conflicts.classify(start, address(1)), Some(Conflict::Collision));
        assert_eq!(conflicts.classify(start, address(1)), None);
        let later = start + Duration::from_secs(2);
        assert_eq!(conflicts.classify(later, address(1)), Some(Conflict::Loop));
        assert_eq!(conflicts.classify(later, address(2)), None);
        assert_eq!(conflicts.classify(later, address(2)), Some(Conflict::Collision));
        let much_later = later + MEMORY;
        assert_eq!(conflicts.classify(much_later, address(1)), None);
        assert_eq!(conflicts.classify(much_later, address(1)), Some(Conflict::Collision));
    }

    #[test]
    fn a_thousand_addresses_do_not_change_the_ssrc_a_thousand_times() {
        let mut conflicts = Conflicts::default();
        let now = Instant::now();
        let collisions = (0..2000)
            .filter(|n| {
                let port = n / 2;
                let from = SocketAddr::from(([192, 0, 2, 1], port));
                conflicts.classify(now, from) == Some(Conflict::Collision)
            })
            .count();
        assert_eq!(collisions, ADDRESSES_MAX);
    }
}
