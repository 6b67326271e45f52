//! Two directions in virtual time.

use std::time::Duration;

use crate::{Change, Conditions, Delivery, Link, Statistics};

/// A direction between two ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// From the first end to the second: from the sender of media to its receiver.
    There,
    /// From the second end to the first.
    Back,
}

impl Way {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::There, Self::Back];

    /// Returns the direction from end 0 or 1.
    pub fn from(end: usize) -> Self {
        if end == 0 { Self::There } else { Self::Back }
    }

    /// Returns the end that the direction leads to, 1 or 0.
    pub fn to(self) -> usize {
        1 - self as usize
    }

    /// Returns the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self::from(self.to())
    }
}

/// Two links, one for each direction between two ends.
#[derive(Clone, Debug)]
pub struct Network<T> {
    links: [Link<T>; 2],
}

impl<T: Clone> Network<T> {
    /// Creates an empty network. Equal seeds give equal outcomes.
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        let Conditions { there, back } = conditions;
        Self { links: [Link::new(there, seed), Link::new(back, !seed)] }
    }

    /// Sends a datagram of `len` octets at `now`.
    pub fn push(&mut self, now: Duration, way: Way, len: usize, item: T) {
        self.links[way as usize].push(now, len, item);
    }

    /// Returns the next datagram that has arrived by `now`, and its direction.
    pub fn poll(&mut self, now: Duration) -> Option<(Way, Delivery<T>)> {
        self.links.iter_mut().for_each(|link| link.release_idle(now));
        let [there, back] = self.links.each_ref().map(Link::next_due);
        let back_first = back.is_some_and(|back| there.is_none_or(|there| back < there));
        let way = if back_first { Way::Back } else { Way::There };
        Some((way, self.links[way as usize].poll(now)?))
    }

    /// Returns the time of the next poll if nothing else is sent, or `None` if nothing is in
    /// flight.
    pub fn next_due(&self) -> Option<Duration> {
        self.links.iter().filter_map(Link::next_due).min()
    }

    /// Applies `change` to one direction at once; its time is ignored.
    pub fn change(&mut self, way: Way, change: Change) {
        self.links[way as usize].change(change);
    }

    /// Releases all datagrams that are held back by places, because nothing else will be sent.
    pub fn finish(&mut self) {
        self.links.iter_mut().for_each(Link::finish);
    }

    /// Returns the counts of one direction.
    pub fn statistics(&self, way: Way) -> Statistics {
        self.links[way as usize].statistics()
    }
}
