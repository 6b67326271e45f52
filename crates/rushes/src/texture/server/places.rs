//! Limits of sessions, per host and in all, and the choice of the session to evict.

use std::net::IpAddr;
use std::sync::Arc;

use super::host::host;

/// Maximum units of all sessions together, unless the server's own settings require more: each has
/// a socket and a thread.
const UNITS_MAX: usize = 128;

/// Limits of sessions and units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Sessions in all.
    pub(super) all: usize,
    /// Sessions of one host.
    pub(super) per_host: usize,
    /// Units of a session whose client does not request a number.
    pub(super) units: usize,
}

/// The current sessions, oldest first, and the units of multicast groups.
#[derive(Debug)]
pub(super) struct Places<S> {
    taken: Vec<Place<S>>,
    /// Units of groups, which belong to no session.
    of_groups: usize,
}

#[derive(Debug)]
struct Place<S> {
    host: IpAddr,
    units: usize,
    /// Whether all units are bound; the session can then no longer be evicted.
    is_bound: bool,
    session: Arc<S>,
}

/// The limit that has been reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Full {
    /// The host has the maximum number of sessions per host.
    Host,
    /// The server has its maximum number of sessions.
    All,
}

impl<S> Default for Places<S> {
    fn default() -> Self {
        Self { taken: Vec::new(), of_groups: 0 }
    }
}

impl<S> Places<S> {
    /// Makes room for a session of a client at `peer`.
    ///
    /// If there is none, evicts the oldest session with unbound units: one of this host if the host
    /// is at its limit, otherwise one of the host with the most sessions. It is removed and
    /// returned, and the caller ends it.
    pub(super) fn make_room(
        &mut self,
        peer: IpAddr,
        limits: &Limits,
    ) -> Result<Option<Arc<S>>, Full> {
        let host = host(peer);
        let (full, busiest_host) = if self.count(host) >= limits.per_host {
            (Full::Host, Some(host))
        } else if self.taken.len() >= limits.all {
            let unbound = self.taken.iter().filter(|place| !place.is_bound);
            (Full::All, unbound.map(|place| place.host).max_by_key(|host| self.count(*host)))
        } else {
            return Ok(None);
        };
        let is_evictable = |place: &Place<S>| !place.is_bound && Some(place.host) == busiest_host;
        let oldest = self.taken.iter().position(is_evictable).ok_or(full)?;
        Ok(Some(self.taken.remove(oldest).session))
    }

    /// Returns the number of units available to the next session.
    ///
    /// These are the units that current sessions do not use, minus the usual number for each
    /// session that may still follow it.
    pub(super) fn units_left(&self, limits: &Limits) -> usize {
        let all = UNITS_MAX.max(limits.all.saturating_mul(limits.units));
        let of_sessions: usize = self.taken.iter().map(|place| place.units).sum();
        let taken = of_sessions.saturating_add(self.of_groups);
        let usual = limits.units.min(all / limits.all.max(1));
        let others = limits.all.saturating_sub(self.taken.len() + 1);
        all.saturating_sub(taken).saturating_sub(others.saturating_mul(usual)).max(usual)
    }

    /// Counts the units of a group, from its beginning on.
    pub(super) fn take_group(&mut self, units: usize) {
        self.of_groups = self.of_groups.saturating_add(units);
    }

    /// Releases the units of a group that has ended.
    pub(super) fn leave_group(&mut self, units: usize) {
        self.of_groups = self.of_groups.saturating_sub(units);
    }

    /// Adds a session.
    pub(super) fn take(&mut self, peer: IpAddr, units: usize, session: Arc<S>) {
        self.taken.push(Place { host: host(peer), units, is_bound: false, session });
    }

    /// Records that all units of a session are bound, so that it can no longer be evicted.
    pub(super) fn note_bound(&mut self, session: &Arc<S>) {
        let mut places = self.taken.iter_mut();
        if let Some(place) = places.find(|place| Arc::ptr_eq(&place.session, session)) {
            place.is_bound = true;
        }
    }

    /// Removes a session if it is present.
    pub(super) fn leave(&mut self, session: &Arc<S>) {
        self.taken.retain(|place| !Arc::ptr_eq(&place.session, session));
    }

    /// Returns the sessions, oldest first.
    pub(super) fn sessions(&self) -> impl ExactSizeIterator<Item = &Arc<S>> {
        self.taken.iter().map(|place| &place.session)
    }

    fn count(&self, host: IpAddr) -> usize {
        self.taken.iter().filter(|place| place.host == host).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { all: 8, per_host: 4, units: 8 };

    fn peer(n: u8) -> IpAddr {
        [192, 0, 2, n].into()
    }

    /// Adds a session of this number and peer; returns the session evicted for it.
    fn join(places: &mut Places<u32>, n: u8, number: u32) -> Result<Option<u32>, Full> {
        let evicted = places.make_room(peer(n), &LIMITS)?;
        places.take(peer(n), 8, Arc::new(number));
        Ok(evicted.map(|evicted| *evicted))
    }

    fn bind_all(places: &mut Places<u32>) {
        let sessions: Vec<_> = places.sessions().cloned().collect();
        for session in &sessions {
            places.note_bound(session);
        }
    }

    #[test]
    fn a_host_at_its_limit_evicts_no_session_of_another() {
        let mut places = Places::default();
        assert_eq!(join(&mut places, 1, 0), Ok(None));
        for number in 10..14 {
            assert_eq!(join(&mut places, 2, number), Ok(None));
        }
        // The oldest of its own sessions with unbound units is evicted, but no bound one.
        assert_eq!(join(&mut places, 2, 14), Ok(Some(10)));
        bind_all(&mut places);
        assert_eq!(join(&mut places, 2, 15), Err(Full::Host));
        assert_eq!(join(&mut places, 3, 20), Ok(None));
    }

    #[test]
    fn sessions_that_bind_nothing_are_evicted_when_all_places_are_taken() {
        let mut places = Places::default();
        assert_eq!(join(&mut places, 1, 0), Ok(None));
        bind_all(&mut places);
        for number in 0..7 {
            assert_eq!(join(&mut places, 2 + number % 2, 10 + u32::from(number)), Ok(None));
        }
        // Host 2 has four sessions, host 3 three.
        assert_eq!(join(&mut places, 4, 20), Ok(Some(10)));
        assert!(places.sessions().any(|session| **session == 0), "a bound session stays");
        bind_all(&mut places);
        assert_eq!(join(&mut places, 5, 30), Err(Full::All));
    }

    #[test]
    fn large_requests_leave_the_usual_units_to_later_clients() {
        let mut places = Places::<u32>::default();
        for n in 0..8 {
            let left = places.units_left(&LIMITS);
            assert!(left >= 8, "client {n}: {left}");
            places.take(peer(n), left.min(64), Arc::new(n.into()));
        }
        let units: usize = places.taken.iter().map(|place| place.units).sum();
        assert_eq!((places.taken[0].units, units), (64, 128));
        // Units of a group are as good as those of a session.
        let mut grouped = Places::<u32>::default();
        let before = grouped.units_left(&LIMITS);
        grouped.take_group(40);
        assert_eq!(grouped.units_left(&LIMITS), before - 40);
        grouped.leave_group(40);
        assert_eq!(grouped.units_left(&LIMITS), before);
        // The server's own settings are never reduced.
        let many = Limits { all: 8, per_host: 8, units: 64 };
        assert_eq!(Places::<u32>::default().units_left(&many), 64);
    }
}
