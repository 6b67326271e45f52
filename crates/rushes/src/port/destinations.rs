//! The destinations of a stream: each batch of packets goes to all of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use rushes_net::SendError;

use super::{Hop, Path};
use crate::stats::DestinationStatistics;

/// Maximum number of destinations of a stream: [`Targets`] has a bit for each.
pub(crate) const DESTINATIONS_MAX: usize = 64;

/// A set of a stream's destinations, by their places in the list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Targets(u64);

impl Targets {
    /// Returns the place of the first destination of the set.
    pub(crate) fn first(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as usize)
    }

    pub(crate) fn add(&mut self, place: usize) {
        if place < DESTINATIONS_MAX {
            self.0 |= 1 << place;
        }
    }

    pub(crate) fn remove(&mut self, place: usize) {
        if place < DESTINATIONS_MAX {
            self.0 &= !(1 << place);
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The address of a destination.
#[derive(Debug)]
enum Address {
    Fixed(SocketAddr),
    /// That which is found at the time.
    Along(Arc<Path>),
}

/// Where a destination's packets and reports go, and how that works.
#[derive(Debug)]
struct Destination {
    to: Address,
    /// The address of its RTCP, if there is one.
    reports: Option<SocketAddr>,
    /// Datagrams that could not be sent to it, though they could to others.
    unsent: AtomicU64,
    /// Whether the last attempt to send to it failed, though one to another did not.
    is_failing: AtomicBool,
}

/// The destinations of a stream, none to [`DESTINATIONS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Destinations {
    /// Of most streams the only one, not behind a further pointer.
    first: Option<Destination>,
    others: Vec<Destination>,
}

impl Destinations {
    /// Takes the addresses of media and of RTCP; further ones than [`DESTINATIONS_MAX`] are ignored.
    pub(crate) fn new(
        addresses: impl IntoIterator<Item = (SocketAddr, Option<SocketAddr>)>,
    ) -> Self {
        let destination = |(to, reports)| Destination::new(Address::Fixed(to), reports);
        let mut all = addresses.into_iter().take(DESTINATIONS_MAX).map(destination);
        Self { first: all.next(), others: all.collect() }
    }

    /// Takes one destination, whose address may change.
    pub(crate) fn along(path: Arc<Path>) -> Self {
        Self { first: Some(Destination::new(Address::Along(path), None)), others: Vec::new() }
    }

    pub(crate) fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(crate) fn are_several(&self) -> bool {
        !self.others.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = &Destination> {
        self.first.iter().chain(&self.others)
    }

    fn get(&self, place: usize) -> Option<&Destination> {
        match place.checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.others.get(place),
        }
    }

    pub(crate) fn first(&self) -> Option<SocketAddr> {
        self.at(0).map(|hop| hop.peer)
    }

    pub(crate) fn at(&self, place: usize) -> Option<Hop> {
        self.get(place)?.hop()
    }

    pub(crate) fn all(&self) -> Targets {
        let mut all = Targets::default();
        (0..self.count()).for_each(|place| all.add(place));
        all
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.iter().filter_map(Destination::address)
    }

    /// Returns the addresses for RTCP.
    pub(crate) fn reports(&self) -> impl Iterator<Item = SocketAddr> {
        self.iter().filter_map(|it| it.reports)
    }

    /// Returns the destination whose receiver sends RTCP from `from`: the one with this address, else
    /// those at this host, since a receiver may report from another port; all if there is none.
    pub(crate) fn of_reports_from(&self, from: SocketAddr) -> Targets {
        let those = |is_it: &dyn Fn(&Destination) -> bool| {
            let mut targets = Targets::default();
            let places = self.iter().enumerate().filter(|(_, it)| is_it(it));
            places.for_each(|(place, _)| targets.add(place));
            targets
        };
        let exact = those(&|it| it.reports == Some(from));
        if !exact.is_empty() {
            return exact;
        }
        let of_host = those(&|it| it.address().is_some_and(|to| to.ip() == from.ip()));
        if of_host.is_empty() { self.all() } else { of_host }
    }

    /// Sends datagrams to all destinations with `send`. Those that one destination does not take are
    /// lost to it, as on the way, and counted: it must not stop the others.
    ///
    /// # Errors
    /// That of the first destination, if no destination took them all.
    pub(crate) fn send(
        &self,
        datagrams: usize,
        mut send: impl FnMut(Hop) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        if let (Some(only), []) = (&self.first, &*self.others) {
            return only.hop().map_or(Ok(()), send);
        }
        let mut failed: Vec<(&Destination, SendError)> = Vec::new();
        for destination in self.iter() {
            match destination.hop().map_or(Ok(()), &mut send) {
                Ok(()) => destination.note_sent(),
                Err(error) => failed.push((destination, error)),
            }
        }
        if failed.len() == self.count() {
            return failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error));
        }
        for (destination, error) in failed {
            destination.note_unsent(datagrams.saturating_sub(error.sent), &error);
        }
        Ok(())
    }

    /// Notes that `datagrams` were not sent to one of several destinations.
    pub(crate) fn note_unsent(&self, place: usize, datagrams: usize, error: &SendError) {
        if let Some(destination) = self.get(place).filter(|_| self.are_several()) {
            destination.note_unsent(datagrams, error);
        }
    }

    pub(crate) fn statistics(&self) -> Vec<DestinationStatistics> {
        let statistics = |it: &Destination| {
            Some(DestinationStatistics {
                to: it.address()?,
                datagrams_unsent: it.unsent.load(Relaxed),
                is_failing: it.is_failing.load(Relaxed),
            })
        };
        self.iter().filter_map(statistics).collect()
    }
}

impl Destination {
    fn new(to: Address, reports: Option<SocketAddr>) -> Self {
        let (unsent, is_failing) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { to, reports, unsent, is_failing }
    }

    /// Returns the address of media; `None` while there is none yet.
    fn address(&self) -> Option<SocketAddr> {
        self.hop().map(|hop| hop.peer)
    }

    /// Returns how it is reached.
    fn hop(&self) -> Option<Hop> {
        match &self.to {
            Address::Fixed(to) => Some(Hop::direct(*to)),
            Address::Along(path) => path.hop(),
        }
    }

    fn note_sent(&self) {
        if self.is_failing.load(Relaxed) && self.is_failing.swap(false, Relaxed) {
            tracing::debug!(to = ?self.address(), "sending to this destination works again");
        }
    }

    /// Counts datagrams. The first failure is a warning; a destination that comes and goes must not fill
    /// the log.
    fn note_unsent(&self, datagrams: usize, error: &SendError) {
        let is_first = self.unsent.fetch_add(datagrams as u64, Relaxed) == 0;
        if !self.is_failing.swap(true, Relaxed) && is_first {
            tracing::warn!(
                to = ?self.address(), %error, "packets are lost to this destination; others get them"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use rushes_net::SendErrorKind;

    use super::*;

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    fn destinations(addresses: &[(u8, u16)]) -> Destinations {
        let pair = |&(host, port)| (address(host, port), Some(address(host, port + 1)));
        Destinations::new(addresses.iter().map(pair))
    }

    fn places(targets: Targets) -> Vec<usize> {
        (0..DESTINATIONS_MAX).filter(|place| targets.0 >> place & 1 == 1).collect()
    }

    fn full(sent: usize) -> SendError {
        SendError { kind: SendErrorKind::BufferFull, sent }
    }

    #[test]
    fn a_report_is_of_its_address_or_of_its_host() {
        let all = destinations(&[(1, 5004), (2, 5004), (1, 6004)]);
        let of = |host, port| places(all.of_reports_from(address(host, port)));
        assert_eq!(of(1, 6005), [2]);
        assert_eq!(of(1, 5005), [0]);
        assert_eq!(of(1, 40_000), [0, 2], "a receiver behind an address translator");
        assert_eq!(of(2, 40_000), [1]);
        assert_eq!(of(9, 5005), [0, 1, 2], "an authenticated report from elsewhere");
    }

    #[test]
    fn sixty_four_destinations_fill_a_set_and_no_more_are_kept() {
        let hosts: Vec<_> = (0..70).map(|host| (host, 5004)).collect();
        let all = destinations(&hosts);
        assert_eq!(places(all.all()), (0..64).collect::<Vec<_>>());
        let mut rest = all.all();
        for place in 0..64 {
            assert_eq!(rest.first(), Some(place));
            rest.remove(place);
        }
        assert!(rest.is_empty() && rest.first().is_none());
        rest.add(64);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_destination_that_fails_is_counted_and_stops_no_other() {
        let all = destinations(&[(1, 5004), (2, 5004), (3, 5004)]);
        let dead = address(1, 5004);
        let mut reached = Vec::new();
        for _ in 0..2 {
            let sent = all.send(10, |to| {
                if to.peer == dead {
                    return Err(full(4));
                }
                reached.push(to.peer);
                Ok(())
            });
            assert!(sent.is_ok());
        }
        assert_eq!(reached, [address(2, 5004), address(3, 5004)].repeat(2));
        let statistics = all.statistics();
        assert_eq!(statistics.iter().map(|it| it.datagrams_unsent).collect::<Vec<_>>(), [12, 0, 0]);
        assert!(statistics[0].is_failing && !statistics[1].is_failing);
        all.send(10, |_| Ok(())).unwrap();
        assert!(!all.statistics()[0].is_failing, "it is back");
    }

    #[test]
    fn what_no_destination_takes_is_an_error() {
        let several = destinations(&[(1, 5004), (2, 5004)]);
        assert_eq!(several.send(10, |_| Err(full(4))).unwrap_err().sent, 4);
        let one = destinations(&[(1, 5004)]);
        assert!(one.send(10, |_| Err(full(4))).is_err());
        assert_eq!(one.statistics()[0].datagrams_unsent, 0, "the caller knows");
        assert!(destinations(&[]).send(10, |_| Err(full(4))).is_ok(), "there is nothing to do");
    }
}
