//! The statistical model of an encoder (RFC 8593 section 5).

use std::time::Duration;

use super::MS;
use crate::Seeded;

/// Frames of a burst, and how much larger than the mean its first one is.
const BURST: u32 = 8;
const BURST_FIRST: f64 = 3.24;

/// Draws from a zero-mean Laplacian distribution.
fn laplacian(random: &mut Seeded, scale: f64) -> f64 {
    let uniform = random.unit() - 0.5;
    -scale * uniform.signum() * (1.0 - 2.0 * uniform.abs()).max(1e-9).ln()
}

/// The statistical model of an encoder at 30 frames per second (RFC 8593 section 5).
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    random: Seeded,
    rate: f64,
    changed: Duration,
    next: Duration,
    /// Frames left of a burst, of which the first is large.
    burst: u32,
}

impl Encoder {
    pub(super) fn new(seed: u64, begins: Duration, rate: f64) -> Self {
        Self { random: Seeded(seed), rate, changed: Duration::ZERO, next: begins, burst: 0 }
    }

    /// Returns the size of a frame if one is due.
    pub(super) fn poll(&mut self, now: Duration, target: f64) -> Option<usize> {
        if now < self.next {
            return None;
        }
        let interval = 1.0 + laplacian(&mut self.random, 0.15).clamp(-0.9, 2.0);
        self.next = now + Duration::from_secs_f64(interval / 30.0);
        // The encoder reacts 100 ms after its last reaction at the earliest (RFC 8867 section 4.3).
        if now >= self.changed + 100 * MS {
            if (target / self.rate - 1.0).abs() > 0.2 {
                self.burst = BURST;
            }
            (self.rate, self.changed) = (target, now);
        }
        let mean = self.rate / 8.0 / 30.0;
        // The other frames of a burst make up for its first one.
        let share = match self.burst {
            0 => 1.0 + laplacian(&mut self.random, 0.15).clamp(-0.9, 3.0),
            BURST => BURST_FIRST,
            _ => (f64::from(BURST) - BURST_FIRST) / f64::from(BURST - 1),
        };
        self.burst = self.burst.saturating_sub(1);
        Some((mean * share) as usize + 1)
    }
}
