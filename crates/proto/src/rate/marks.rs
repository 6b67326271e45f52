//! The share of marked packets (section 4.2.1.3 of the draft).

/// Weight of a new share above the average.
const L4S_AVG_G_UP: f64 = 1.0 / 8.0;

/// Weight of a new share below the average.
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;

/// The average share of marked packets, which rises fast and falls slowly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MarkedShare {
    delivered: u32,
    marked: u32,
    alpha: f64,
    updated: f64,
}

impl MarkedShare {
    /// Returns the average, 0 to 1.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    pub(super) fn note(&mut self, is_marked: bool) {
        self.delivered += 1;
        self.marked += u32::from(is_marked);
    }

    /// Updates the average every 10 ms, or every round trip if that is shorter.
    pub(super) fn update(&mut self, now: f64, rtt: f64) {
        if self.delivered == 0 || now - self.updated < rtt.min(0.01) {
            return;
        }
        let share = f64::from(self.marked) / f64::from(self.delivered);
        if share >= self.alpha {
            self.alpha += L4S_AVG_G_UP * (share - self.alpha);
        } else {
            self.alpha *= 1.0 - L4S_AVG_G_DOWN;
        }
        *self = Self { alpha: self.alpha, updated: now, ..Self::default() };
    }
}
