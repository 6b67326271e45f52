//! The statistical model of an encoder (RFC 8593 section 5).

use std::time::Duration;

use rushes_netsim::Seeded;

use super::MS;

/// Draws from a zero-mean Laplacian distribution.
fn laplacian(random: &mut Seeded, scale: f64) -> f64 {
    let uniform = random.unit() - 0.5;
    -scale * uniform.signum() * (1.0 - 2.0 * uniform.abs()).max(1e-9).ln()
}

/// The statistical model of an encoder at 30 frames per second (RFC 8593 section 5).
pub struct Encoder {
    pub random: Seeded,
    pub rate: f64,
    changed: Duration,
    pub next: Duration,
    /// Frames left of a burst, of which the first is large.
    burst: u32,
}

impl Encoder {
    pub fn new(seed: u64, begins: Duration, rate: f64) -> Self {
        Self { random: Seeded(seed), rate, changed: Duration::ZERO, next: begins, burst: 0 }
    }

    /// Returns the size of a frame if one is due.
    pub fn poll(&mut self, now: Duration, target: f64) -> Option<usize> {
        if now < self.next {
            return None;
        }
        let interval = 1.0 + laplacian(&mut self.random, 0.15).clamp(-0.9, 2.0);
        self.next = now + Duration::from_secs_f64(interval / 30.0);
        // The encoder reacts 100 ms after its last reaction at the earliest (RFC 8867 section 4.3).
        if now >= self.changed + 100 * MS {
            if (target / self.rate - 1.0).abs() > 0.2 {
                self.burst = 8;
            }
            (self.rate, self.changed) = (target, now);
        }
        let mean = self.rate / 8.0 / 30.0;
        // A burst's first frame is 3.24 times the mean; the other seven make up for it.
        let share = match self.burst {
            0 => 1.0 + laplacian(&mut self.random, 0.15).clamp(-0.9, 3.0),
            8 => 3.24,
            _ => (8.0 - 3.24) / 7.0,
        };
        self.burst = self.burst.saturating_sub(1);
        Some((mean * share) as usize + 1)
    }
}
