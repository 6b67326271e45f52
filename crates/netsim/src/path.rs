//! The description of one direction.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{Loss, Seeded};

/// Octets of the IPv4 and UDP headers (RFC 791, RFC 768) before each datagram.
pub const HEADERS: usize = 28;

/// The conditions of one direction. The default path is perfect: every datagram arrives at once.
///
/// Sizes are those of IP packets in octets, which are [`HEADERS`] larger than datagrams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The minimum travel time of a datagram.
    pub delay: Duration,
    /// The maximum travel time of a datagram beyond `delay`.
    pub jitter: Duration,
    /// Whether jitter is drawn for each datagram independently, so that one may overtake another.
    /// Otherwise it rises and falls steadily, like a queue shared with other traffic, and the order
    /// is kept.
    pub jitter_reorders: bool,
    /// The line of limited rate; `None` if the rate is unlimited.
    pub bottleneck: Option<Bottleneck>,
    /// The datagrams that are lost.
    pub loss: Loss,
    /// The datagrams that are late, so that others overtake them, and by how much.
    pub reordering: Straying,
    /// The datagrams that arrive twice, and how late the copy is.
    pub duplication: Straying,
    /// The largest IP packet that the path carries, in octets; `None` means no limit. Larger
    /// packets are dropped without a message to their sender.
    pub mtu: Option<usize>,
}

/// A line of limited rate, and the queue before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bottleneck {
    /// Bits per second, at least 1.
    pub rate: u64,
    /// Octets that fit into the queue, including the packet being sent. A packet that does not fit
    /// is dropped (drop-tail), but an idle line accepts any packet.
    pub queue: usize,
    /// A packet is marked if the queue holds more octets than this when it arrives; with `None` no
    /// packet is marked.
    pub ecn_threshold: Option<usize>,
}

impl Bottleneck {
    /// Returns the transmission time of a packet of `octets`.
    pub fn time_of(&self, octets: usize) -> Duration {
        let nanoseconds = octets as u128 * 8 * 1_000_000_000 / u128::from(self.rate.max(1));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

/// How many datagrams are late, and by how much.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Straying {
    /// The probability for each datagram, 0 to 1.
    pub probability: f64,
    /// How late each such datagram is.
    pub lag: Lag,
}

impl Straying {
    /// Creates lateness by a number of datagrams.
    pub fn places(probability: f64, places: RangeInclusive<u32>) -> Self {
        Self { probability, lag: Lag::Places(places) }
    }

    /// Creates lateness by a time.
    pub fn time(probability: f64, time: RangeInclusive<Duration>) -> Self {
        Self { probability, lag: Lag::Time(time) }
    }

    /// Returns how late the next datagram is, or `None` if it is not late.
    pub(crate) fn draw(&self, random: &mut Seeded) -> Option<Delay> {
        if !random.chance(self.probability) {
            return None;
        }
        Some(match &self.lag {
            Lag::Places(places) => {
                Delay::Places(random.between((*places.start()).into(), (*places.end()).into()))
            }
            Lag::Time(time) => {
                let [first, last] = [time.start(), time.end()].map(|time| time.as_nanos() as u64);
                Delay::Time(Duration::from_nanos(random.between(first, last)))
            }
        })
    }
}

/// How late a datagram is. All values of the range are equally likely.
#[derive(Clone, Debug, PartialEq)]
pub enum Lag {
    /// The datagram is held back until this number of later datagrams has been sent, or until none
    /// has been sent for [`HOLD_IDLE`](crate::HOLD_IDLE).
    Places(RangeInclusive<u32>),
    /// The datagram travels longer by this time.
    Time(RangeInclusive<Duration>),
}

impl Default for Lag {
    fn default() -> Self {
        Self::Places(0..=0)
    }
}

/// How late one datagram is.
#[derive(Clone, Copy)]
pub(crate) enum Delay {
    Places(u64),
    Time(Duration),
}

/// A path that changes over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// The path at the beginning.
    pub path: Path,
    /// Changes, in chronological order.
    pub changes: Vec<Change>,
}

/// A change of the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The time since the beginning.
    pub at: Duration,
    /// The path of later datagrams; `None` if it stays the same. If its delay is shorter, they
    /// overtake datagrams in flight.
    pub path: Option<Path>,
    /// Whether later datagrams come from a new source address, as after a NAT has lost its mapping.
    pub new_address: bool,
}

impl From<Path> for Course {
    fn from(path: Path) -> Self {
        Self { path, changes: Vec::new() }
    }
}

impl Course {
    /// Adds a change to another path at `at`.
    #[must_use]
    pub fn then(mut self, at: Duration, path: Path) -> Self {
        self.changes.push(Change { at, path: Some(path), new_address: false });
        self
    }

    /// Adds a change to another source address at `at`.
    #[must_use]
    pub fn new_address(mut self, at: Duration) -> Self {
        self.changes.push(Change { at, path: None, new_address: true });
        self
    }
}
