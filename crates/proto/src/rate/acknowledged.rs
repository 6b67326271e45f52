//! The rate at which packets are acknowledged (section 4.5.3 of the draft).

/// Ratio of the target to the acknowledged rate below which congestion is reacted to less.
const ACKED_BITRATE_MARGIN: f64 = 0.8;

/// The rate acknowledged in about one round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AcknowledgedRate {
    /// In bits per second; 0 if it is not known yet.
    rate: f64,
    /// Octets acknowledged since a time.
    octets: u64,
    since: f64,
}

impl AcknowledgedRate {
    /// Notes acknowledged octets. The rate is that of at least `span` seconds.
    pub(super) fn note(&mut self, now: f64, octets: u64, span: f64) {
        self.octets += octets;
        let time = now - self.since;
        if time >= span {
            *self = Self { rate: 8.0 * self.octets as f64 / time, octets: 0, since: now };
        }
    }

    /// Returns whether the path carries so much more than the `target` that the target has already
    /// been lowered, by a round trip that grew: lowering the window as well would be too much.
    pub(super) fn exceeds(&self, target: f64) -> bool {
        target < ACKED_BITRATE_MARGIN * self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_latest_whole_span() {
        let mut rate = AcknowledgedRate::default();
        assert!(!rate.exceeds(0.0));
        for n in 1..=10_u32 {
            rate.note(f64::from(n) * 0.04, 5000, 0.1);
        }
        // 1 Mbit/s.
        assert!(rate.exceeds(790_000.0) && !rate.exceeds(810_000.0));
        for n in 11..=20_u32 {
            rate.note(f64::from(n) * 0.04, 500, 0.1);
        }
        assert!(rate.exceeds(79_000.0) && !rate.exceeds(81_000.0));
    }
}
