//! Jitter that keeps the order of datagrams.

use std::time::Duration;

use crate::Seeded;

/// A delay that changes linearly from one random value to the next; each change lasts twice the
/// maximum delay. So the delay falls at most half as fast as time passes, and no datagram overtakes
/// another.
#[derive(Clone, Debug, Default)]
pub(crate) struct SmoothJitter {
    from: Duration,
    to: Duration,
    /// The time at which `to` is reached.
    end: Duration,
}

impl SmoothJitter {
    /// Returns the delay, zero to `most`, of a datagram that departs at this time.
    pub(crate) fn at(&mut self, at: Duration, most: Duration, random: &mut Seeded) -> Duration {
        if most.is_zero() {
            return most;
        }
        let step = 2 * most;
        let mut draw = || Duration::from_nanos(random.between(0, most.as_nanos() as u64));
        if at >= self.end + step {
            *self = Self { from: draw(), to: draw(), end: at + step };
        } else if at >= self.end {
            *self = Self { from: self.to, to: draw(), end: self.end + step };
        }
        let part = self.end.saturating_sub(at).div_duration_f64(step).min(1.0);
        self.to.mul_f64(1.0 - part) + self.from.mul_f64(part)
    }
}
