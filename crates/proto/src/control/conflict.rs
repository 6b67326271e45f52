//! Collisions and loops: packets that carry this participant's own SSRC (RFC 3550 section 8.2).

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::time::Duration;
use std::time::Instant;

/// Addresses remembered, and so changes of the SSRC that strangers can cause in that time: honest
/// collisions hardly ever happen twice.
const ADDRESSES_MAX: usize = 4;

/// How long an address is remembered since it last conflicted: ten of the longest report
/// intervals, as the RFC suggests.
const MEMORY: Duration = Duration::from_secs(50);

/// How soon a second packet under our own SSRC must follow the first to prove a collision: two of
/// the shortest regular report intervals (RFC 3550 section 6.2).
const PROOF_TIME: Duration = Duration::from_secs(10);

/// Addresses remembered that were heard once; the oldest gives way.
const SUSPECTS_MAX: usize = 8;

/// What packets with our own SSRC mean.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conflict {
    /// Another participant has chosen the same SSRC.
    Collision,
    /// They are our own, sent back to us; from an address known to do so.
    Loop,
}

/// Addresses from which packets with our own SSRC came.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflicts {
    addresses: Vec<(SocketAddr, Instant)>,
    /// Addresses that were heard once, oldest first.
    suspects: VecDeque<(SocketAddr, Instant)>,
}

impl Conflicts {
    /// Judges a packet with our SSRC that came from `from` at `now`; `None` if there is nothing new
    /// to report.
    pub(super) fn judge(&mut self, now: Instant, from: SocketAddr) -> Option<Conflict> {
        self.addresses.retain(|(_, last)| now.saturating_duration_since(*last) < MEMORY);
        if let Some((_, last)) = self.addresses.iter_mut().find(|(address, _)| *address == from) {
            // Reported once a second at most: a loop repeats every packet.
            let told = now.saturating_duration_since(*last) < Duration::from_secs(1);
            if !told {
                *last = now;
            }
            return (!told).then_some(Conflict::Loop);
        }
        if self.addresses.len() < ADDRESSES_MAX && self.is_second(now, from) {
            self.addresses.push((from, now));
            return Some(Conflict::Collision);
        }
        // Heard once, or more addresses than honest collisions make: changing would not help.
        None
    }

    /// Whether `from` was heard a short time ago; if not, it is remembered.
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
        assert_eq!(conflicts.judge(start, address(1)), None);
        assert_eq!(conflicts.judge(start, address(1)), Some(Conflict::Collision));
        assert_eq!(conflicts.judge(start, address(1)), None);
        let later = start + Duration::from_secs(2);
        assert_eq!(conflicts.judge(later, address(1)), Some(Conflict::Loop));
        assert_eq!(conflicts.judge(later, address(2)), None);
        assert_eq!(conflicts.judge(later, address(2)), Some(Conflict::Collision));
        let much_later = later + MEMORY;
        assert_eq!(conflicts.judge(much_later, address(1)), None);
        assert_eq!(conflicts.judge(much_later, address(1)), Some(Conflict::Collision));
    }

    #[test]
    fn a_thousand_addresses_do_not_change_the_ssrc_a_thousand_times() {
        let mut conflicts = Conflicts::default();
        let now = Instant::now();
        let collisions = (0..2000)
            .filter(|n| {
                let port = n / 2;
                let from = SocketAddr::from(([192, 0, 2, 1], port));
                conflicts.judge(now, from) == Some(Conflict::Collision)
            })
            .count();
        assert_eq!(collisions, ADDRESSES_MAX);
    }
}
