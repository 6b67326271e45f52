//! The description of one direction.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{Loss, Seeded};

/// Octets of the IPv4 and UDP headers (RFC 791, RFC 768), which every datagram has beside its own.
pub const HEADERS: usize = 28;

/// What one direction does to datagrams. The default does nothing: everything arrives at once.
///
/// Sizes are octets of IP packets: [`HEADERS`] more than those of datagrams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// How long every datagram travels.
    pub delay: Duration,
    /// How much longer some travel: a time from zero to this.
    pub jitter: Duration,
    /// Whether that time is drawn for each datagram, so that one may overtake another. If not, it
    /// wanders as queues do that others fill and empty, and the order is kept.
    pub jitter_reorders: bool,
    /// Where datagrams queue, if they do.
    pub bottleneck: Option<Bottleneck>,
    /// Which datagrams are lost.
    pub loss: Loss,
    /// Which datagrams are late, and how much: others overtake them.
    pub reordering: Straying,
    /// Which datagrams arrive twice, and how much later the copy comes than it could.
    pub duplication: Straying,
    /// The largest IP packet that passes, in octets; none is too large if absent. Larger ones are
    /// dropped without notice, as where ICMP is filtered.
    pub mtu: Option<usize>,
}

/// A line of limited rate, and the queue before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bottleneck {
    /// Bits a second, at least 1.
    pub rate: u64,
    /// Octets that fit into the queue, the packet being sent included. What does not fit is dropped
    /// (drop-tail); an idle line takes any packet.
    pub queue: usize,
    /// A packet that finds more octets than this in the queue is marked.
    pub ecn_threshold: Option<usize>,
}

impl Bottleneck {
    /// How long a packet of `octets` is being sent.
    pub fn time_of(&self, octets: usize) -> Duration {
        let nanoseconds = octets as u128 * 8 * 1_000_000_000 / u128::from(self.rate.max(1));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

/// How many datagrams stray, and how far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Straying {
    /// The probability, 0 to 1.
    pub probability: f64,
    /// How far each falls behind.
    pub lag: Lag,
}

impl Straying {
    /// Falls behind by a number of datagrams.
    pub fn places(probability: f64, places: RangeInclusive<u32>) -> Self {
        Self { probability, lag: Lag::Places(places) }
    }

    /// Falls behind by a time.
    pub fn time(probability: f64, time: RangeInclusive<Duration>) -> Self {
        Self { probability, lag: Lag::Time(time) }
    }

    /// The distance of one that strays, if the next does.
    pub(crate) fn draw(&self, random: &mut Seeded) -> Option<Distance> {
        if !random.chance(self.probability) {
            return None;
        }
        Some(match &self.lag {
            Lag::Places(places) => {
                Distance::Places(random.between((*places.start()).into(), (*places.end()).into()))
            }
            Lag::Time(time) => {
                let [first, last] = [time.start(), time.end()].map(|time| time.as_nanos() as u64);
                Distance::Time(Duration::from_nanos(random.between(first, last)))
            }
        })
    }
}

/// How far a datagram falls behind; each of the range is as likely.
#[derive(Clone, Debug, PartialEq)]
pub enum Lag {
    /// It is held until so many that were sent after it have passed; or until nothing has been sent
    /// for [`HOLD_IDLE`](crate::HOLD_IDLE).
    Places(RangeInclusive<u32>),
    /// It travels so much longer.
    Time(RangeInclusive<Duration>),
}

impl Default for Lag {
    fn default() -> Self {
        Self::Places(0..=0)
    }
}

/// How far one datagram falls behind.
#[derive(Clone, Copy)]
pub(crate) enum Distance {
    Places(u64),
    Time(Duration),
}

/// A path that changes in mid-stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// How it begins.
    pub path: Path,
    /// What changes, in the order of time.
    pub changes: Vec<Change>,
}

/// What changes at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Since the beginning.
    pub at: Duration,
    /// The path of what is sent from then on. If its delay is less, that overtakes what is on its
    /// way.
    pub path: Option<Path>,
    /// Whether what is sent from then on comes from a new address, as when a NAT forgets.
    pub new_address: bool,
}

impl From<Path> for Course {
    fn from(path: Path) -> Self {
        Self { path, changes: Vec::new() }
    }
}

impl Course {
    /// The same, with another path from `at` on.
    #[must_use]
    pub fn then(mut self, at: Duration, path: Path) -> Self {
        self.changes.push(Change { at, path: Some(path), new_address: false });
        self
    }

    /// The same, with another source address from `at` on.
    #[must_use]
    pub fn new_address(mut self, at: Duration) -> Self {
        self.changes.push(Change { at, path: None, new_address: true });
        self
    }
}
