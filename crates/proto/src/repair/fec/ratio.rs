//! The ratio of repair packets by the loss that receivers report.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Repair packets for each packet that is reported lost. A column is then as long as a tenth of the
/// distance between two losses, so that nine of ten lost packets are the only ones of their column.
const REPAIRS_PER_LOSS: u32 = 10;

/// How long a report counts. Losses come in phases, and a report covers a second or a few.
const HOLD: Duration = Duration::from_secs(10);

/// Chooses the ratio of repair packets by the loss that receivers report: ten times the highest loss
/// of the last ten seconds, up to a maximum. Without loss there are no repair packets.
///
/// ```
/// use rushes_proto::repair::fec::LossRatio;
/// use std::time::{Duration, Instant};
///
/// let (mut ratio, now) = (LossRatio::new(50), Instant::now());
/// ratio.handle_report(now, 5); // 5 / 256 of the packets were lost
/// assert_eq!(ratio.percent(now), 20);
/// assert_eq!(ratio.percent(now + Duration::from_secs(11)), 0);
/// ```
#[derive(Clone, Debug)]
pub struct LossRatio {
    max: u8,
    /// The reports that may still be the highest: later ones are lower, at most one per percent.
    reports: VecDeque<(Instant, u8)>,
}

impl LossRatio {
    /// Creates a ratio of at most `max` repair packets for 100 packets, 0..=100. It is zero until
    /// the first loss is reported.
    pub fn new(max: u8) -> Self {
        Self { max: max.min(100), reports: VecDeque::new() }
    }

    /// Handles a report block that arrived at `now`: `fraction_lost` / 256 of the packets were lost
    /// (RFC 3550 section 6.4.1).
    pub fn handle_report(&mut self, now: Instant, fraction_lost: u8) {
        let percent = (u32::from(fraction_lost) * 100 * REPAIRS_PER_LOSS).div_ceil(256);
        let percent = u8::try_from(percent).unwrap_or(u8::MAX).min(self.max);
        while self.reports.back().is_some_and(|(_, earlier)| *earlier <= percent) {
            self.reports.pop_back();
        }
        self.reports.push_back((now, percent));
    }

    /// Returns the repair packets for 100 packets at `now`.
    pub fn percent(&mut self, now: Instant) -> u8 {
        let is_over = |at: Instant| now.saturating_duration_since(at) > HOLD;
        while self.reports.front().is_some_and(|(at, _)| is_over(*at)) {
            self.reports.pop_front();
        }
        self.reports.front().map_or(0, |(_, percent)| *percent)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_rises_at_once_and_falls_when_the_loss_is_ten_seconds_ago() {
        let (mut ratio, start) = (LossRatio::new(50), Instant::now());
        assert_eq!(ratio.percent(start), 0);
        let reports = [(0, 1), (1, 3), (2, 0), (4, 2), (5, 0), (20, 0)];
        let percents = [4, 12, 12, 12, 12, 0];
        for ((second, fraction), percent) in reports.into_iter().zip(percents) {
            let now = start + Duration::from_secs(second);
            ratio.handle_report(now, fraction);
            assert_eq!(ratio.percent(now), percent, "second {second}");
        }
        let mut ratio = LossRatio::new(50);
        ratio.handle_report(start, 3);
        ratio.handle_report(start + Duration::from_secs(4), 2);
        assert_eq!(ratio.percent(start + Duration::from_secs(11)), 8);
    }

    #[test]
    fn reports_of_any_loss_stay_within_the_maximum_and_do_not_accumulate() {
        let (mut ratio, now) = (LossRatio::new(30), Instant::now());
        for n in 0..100_000_u32 {
            ratio.handle_report(now, (n * 7) as u8);
            assert!(ratio.percent(now) <= 30);
        }
        assert!(ratio.reports.len() <= 31);
        ratio.handle_report(now, 255);
        assert_eq!(ratio.percent(now), 30);
    }
}
