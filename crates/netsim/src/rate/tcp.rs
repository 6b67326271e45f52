//! A simple model of TCP Reno: a window in packets, slow start, and one reduction each round trip.

use std::collections::VecDeque;
use std::time::Duration;

use super::{MS, PACKET};
use crate::Seeded;

/// Packets acknowledged after a missing one that show its loss (RFC 5681 section 3.2).
const REORDERING: u16 = 3;

#[derive(Clone, Debug)]
pub(super) struct Tcp {
    window: f64,
    threshold: f64,
    sequence: u16,
    /// Packets in flight, and when each was sent.
    flight: VecDeque<(u16, Duration)>,
    /// The first packet sent after the last reduction.
    recovered: u16,
    /// When an acknowledgement arrived, or sending began.
    heard: Duration,
    /// Packets left of a download, and when the next begins; `None` for a download without end.
    download: Option<(usize, Duration, Seeded)>,
}

impl Tcp {
    pub(super) fn long() -> Self {
        Self {
            window: 10.0,
            threshold: f64::MAX,
            sequence: 0,
            flight: VecDeque::new(),
            recovered: 0,
            heard: Duration::ZERO,
            download: None,
        }
    }

    /// Downloads of 100 KB to 1 MB with pauses of 10 s on average (RFC 8868). The first begins at
    /// once, or after a pause.
    pub(super) fn short(seed: u64, begins_on: bool) -> Self {
        let mut random = Seeded(seed);
        let begin = if begins_on { Duration::ZERO } else { pause(&mut random) };
        Self { download: Some((0, begin, random)), ..Self::long() }
    }

    pub(super) fn send(&mut self, now: Duration) -> Vec<(u16, usize)> {
        if let Some((left, next, random)) = &mut self.download
            && *left == 0
            && self.flight.is_empty()
        {
            if now < *next {
                return Vec::new();
            }
            *left = (100_000 + random.below(900_000) as usize) / PACKET;
            *next = Duration::MAX;
            (self.window, self.threshold, self.heard) = (10.0, f64::MAX, now);
        }
        if !self.flight.is_empty() && now > self.heard + 1000 * MS {
            (self.threshold, self.window) = ((self.window / 2.0).max(2.0), 1.0);
            if let Some((left, ..)) = &mut self.download {
                *left += self.flight.len();
            }
            self.flight.clear();
            (self.recovered, self.heard) = (self.sequence, now);
        }
        let mut sent = Vec::new();
        while (self.flight.len() as f64) < self.window.floor()
            && self.download.as_ref().is_none_or(|(left, ..)| *left > 0)
        {
            if self.flight.is_empty() {
                self.heard = now;
            }
            self.flight.push_back((self.sequence, now));
            sent.push((self.sequence, PACKET));
            self.sequence = self.sequence.wrapping_add(1);
            if let Some((left, ..)) = &mut self.download {
                *left -= 1;
            }
        }
        sent
    }

    /// Handles the acknowledgement of one packet.
    pub(super) fn acknowledge(&mut self, now: Duration, sequence: u16) {
        self.heard = now;
        self.flight.retain(|(other, _)| *other != sequence);
        let is_lost = |other: u16| {
            let behind = sequence.wrapping_sub(other);
            behind > REORDERING && behind < 0x8000
        };
        let before = self.flight.len();
        let reduces = self
            .flight
            .iter()
            .any(|(other, _)| is_lost(*other) && other.wrapping_sub(self.recovered) < 0x8000);
        self.flight.retain(|(other, _)| !is_lost(*other));
        let lost = before - self.flight.len();
        if reduces {
            self.threshold = (self.window / 2.0).max(2.0);
            self.window = self.threshold;
            self.recovered = self.sequence;
        } else if self.window < self.threshold {
            self.window += 1.0;
        } else {
            self.window += 1.0 / self.window;
        }
        if let Some((left, next, random)) = &mut self.download {
            // Lost packets are sent again.
            *left += lost;
            if *left == 0 && self.flight.is_empty() {
                *next = now + pause(random);
            }
        }
    }
}

fn pause(random: &mut Seeded) -> Duration {
    Duration::from_secs_f64(-10.0 * (1.0 - random.unit()).max(1e-9).ln())
}
