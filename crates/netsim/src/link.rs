//! One direction in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::jitter::SmoothJitter;
use crate::loss::Chain;
use crate::path::Delay;
use crate::{Change, Course, HEADERS, Path, Seeded, Statistics};

/// Time without a sent datagram after which datagrams that are held back by places are released.
pub const HOLD_IDLE: Duration = Duration::from_millis(100);

/// A delivered datagram.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery<T> {
    /// The datagram that was pushed.
    pub item: T,
    /// When it arrived.
    pub at: Duration,
    /// The number of changes of the source address before it was sent.
    pub address: u32,
    /// Whether the queue marked the datagram (ECN).
    pub marked: bool,
}

/// One direction: accepts datagrams and returns deliveries. `T` is a datagram or a value that
/// stands for it.
///
/// All times are counted from the beginning, and calls must be made in chronological order.
/// Simultaneous deliveries are in the order in which their datagrams were sent.
#[derive(Clone, Debug)]
pub struct Link<T> {
    path: Path,
    changes: VecDeque<Change>,
    address: u32,
    random: Seeded,
    chain: Chain,
    smooth_jitter: SmoothJitter,
    /// Datagrams held back by places, with their sizes. The key is the number of the datagram after
    /// which they are released, and `serial`.
    held: BTreeMap<(u64, u64), (usize, T)>,
    /// Packets in the bottleneck, each with the end of its transmission and its octets.
    queue: VecDeque<(Duration, usize)>,
    queued: usize,
    /// Deliveries by time of arrival and by `serial`.
    in_flight: BTreeMap<(Duration, u64), Delivery<T>>,
    /// Orders deliveries with the same time.
    serial: u64,
    last_push: Duration,
    /// The latest arrival among the datagrams that keep their order.
    last_due: Duration,
    statistics: Statistics,
}

impl<T: Clone> Link<T> {
    /// Creates an empty link. Equal seeds give equal outcomes.
    pub fn new(course: impl Into<Course>, seed: u64) -> Self {
        let Course { path, changes } = course.into();
        Self {
            path,
            changes: changes.into(),
            address: 0,
            random: Seeded(seed),
            chain: Chain::default(),
            smooth_jitter: SmoothJitter::default(),
            held: BTreeMap::new(),
            queue: VecDeque::new(),
            queued: 0,
            in_flight: BTreeMap::new(),
            serial: 0,
            last_push: Duration::ZERO,
            last_due: Duration::ZERO,
            statistics: Statistics::default(),
        }
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Sends a datagram of `len` octets at `now`.
    pub fn push(&mut self, now: Duration, len: usize, item: T) {
        self.release_idle(now);
        while self.changes.front().is_some_and(|change| change.at <= now)
            && let Some(change) = self.changes.pop_front()
        {
            self.change(change);
        }
        self.last_push = now;
        let number = self.statistics.sent;
        self.statistics.sent += 1;
        let len = len + HEADERS;
        if self.path.mtu.is_some_and(|mtu| len > mtu) {
            self.statistics.too_large += 1;
        } else if self.path.loss.loses(number, &mut self.chain, &mut self.random) {
            self.statistics.lost += 1;
        } else {
            let copy = self.path.duplication.draw(&mut self.random);
            let lag = self.path.reordering.draw(&mut self.random);
            let duplicate = copy.map(|lag| (lag, item.clone()));
            self.send_late(number, lag.unwrap_or(Delay::Places(0)), (len, item));
            if let Some((lag, duplicate)) = duplicate {
                self.statistics.duplicated += 1;
                self.send_late(number, lag, (len, duplicate));
            }
        }
        while let Some(first) = self.held.first_entry()
            && first.key().0 <= number
        {
            let (len, item) = first.remove();
            self.enqueue(now, None, len, item);
        }
    }

    /// Returns the next datagram that has arrived by `now`.
    pub fn poll(&mut self, now: Duration) -> Option<Delivery<T>> {
        self.release_idle(now);
        let first = self.in_flight.first_entry().filter(|first| first.key().0 <= now)?;
        self.statistics.delivered += 1;
        Some(first.remove())
    }

    /// Returns the time of the next poll if nothing else is sent, or `None` if nothing is in
    /// flight. That poll returns `None` if it only releases datagrams that arrive later.
    pub fn next_due(&self) -> Option<Duration> {
        let arrival = self.in_flight.first_key_value().map(|((at, _), _)| *at);
        let release = (!self.held.is_empty()).then_some(self.last_push + HOLD_IDLE);
        [arrival, release].into_iter().flatten().min()
    }

    /// Releases all datagrams that are held back by places, because nothing else will be sent.
    pub fn finish(&mut self) {
        self.release(self.last_push);
    }

    /// Applies `change` to later datagrams; its time is ignored.
    pub fn change(&mut self, change: Change) {
        self.address += u32::from(change.new_address);
        if let Some(path) = change.path {
            if path.delay != self.path.delay {
                self.last_due = Duration::ZERO;
            }
            self.path = path;
        }
    }

    fn send_late(&mut self, number: u64, lag: Delay, (len, item): (usize, T)) {
        match lag {
            Delay::Places(0) => self.enqueue(self.last_push, None, len, item),
            Delay::Places(places) => {
                self.serial += 1;
                self.held.insert((number + places, self.serial), (len, item));
            }
            Delay::Time(time) => self.enqueue(self.last_push, Some(time), len, item),
        }
    }

    pub(crate) fn release_idle(&mut self, now: Duration) {
        let idle = self.last_push + HOLD_IDLE;
        if idle <= now {
            self.release(idle);
        }
    }

    fn release(&mut self, now: Duration) {
        for (len, item) in std::mem::take(&mut self.held).into_values() {
            self.enqueue(now, None, len, item);
        }
    }

    /// Sends a packet of `len` octets through the bottleneck and the path. A packet with `longer`
    /// travels longer by this time and does not keep its order.
    fn enqueue(&mut self, now: Duration, longer: Option<Duration>, len: usize, item: T) {
        let Some((departure, marked)) = self.depart(now, len) else { return };
        let (most, random) = (self.path.jitter, &mut self.random);
        let jitter = if self.path.jitter_reorders {
            Duration::from_nanos(random.between(0, most.as_nanos() as u64))
        } else {
            self.smooth_jitter.at(departure, most, random)
        };
        let mut at = departure + self.path.delay + jitter;
        if let Some(longer) = longer {
            at += longer;
        } else if !self.path.jitter_reorders {
            at = at.max(self.last_due);
            self.last_due = at;
        }
        self.serial += 1;
        let delivery = Delivery { item, at, address: self.address, marked };
        self.in_flight.insert((at, self.serial), delivery);
    }

    /// Sends a packet through the bottleneck. Returns when its transmission ends and whether it is
    /// marked (ECN), or `None` if it is dropped.
    fn depart(&mut self, now: Duration, len: usize) -> Option<(Duration, bool)> {
        let Some(line) = self.path.bottleneck else { return Some((now, false)) };
        while self.queue.front().is_some_and(|(sent, _)| *sent <= now)
            && let Some((_, octets)) = self.queue.pop_front()
        {
            self.queued -= octets;
        }
        if self.queued > 0 && self.queued + len > line.queue {
            self.statistics.overflowed += 1;
            return None;
        }
        let marked = line.ecn_threshold.is_some_and(|threshold| self.queued > threshold);
        self.statistics.marked += u64::from(marked);
        let free = self.queue.back().map_or(now, |(sent, _)| *sent);
        let sent = free + line.time_of(len);
        self.queue.push_back((sent, len));
        self.queued += len;
        Some((sent, marked))
    }
}
