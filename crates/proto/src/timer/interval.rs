//! The time between two reports of one participant (RFC 3550 section 6.3.1, RFC 4585 section 3.4).

use std::time::Duration;

use super::config::TimerConfig;
use super::random::Random;

/// The shortest deterministic interval, whatever the bandwidth.
///
/// RFC 4585 section 3.4 sets no minimum after the first report. At 1 Gbit/s that would be 50 000
/// reports a second; this floor also satisfies the bandwidth, and limits the number of wake-ups.
pub const INTERVAL_FLOOR: Duration = Duration::from_millis(5);

/// The longest deterministic interval; without bandwidth, reports are practically never due.
pub const INTERVAL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// e - 3/2, by which the interval is divided, because timer reconsideration converges to less than
/// the intended bandwidth (RFC 3550 section 6.3.1, step 5).
const COMPENSATION: f64 = std::f64::consts::E - 1.5;

/// The initial minimum of a multiparty session with feedback (RFC 4585 section 3.4 d).
const FEEDBACK_INITIAL_MIN: Duration = Duration::from_secs(1);

/// The members that share the RTCP bandwidth, and the role of this participant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// All members, this one included.
    pub(super) members: usize,
    /// Members that recently sent RTP, this one included.
    pub(super) senders: usize,
    /// Whether this participant is one of `senders`.
    pub(super) we_sent: bool,
}

/// Returns Tmin, the lower bound of the interval to the next transmission.
pub(super) fn minimum(config: &TimerConfig, we_sent: bool, initial: bool) -> Duration {
    if config.feedback.is_some() {
        let first = initial && config.multiparty;
        return if first { FEEDBACK_INITIAL_MIN } else { Duration::ZERO };
    }
    let reduced = config.reduced_minimum && (we_sent || !config.multiparty);
    let mut minimum = config.interval_min;
    if reduced && config.bandwidth > 0 {
        minimum = minimum.min(seconds(360_000.0 / config.bandwidth as f64));
    }
    if initial { minimum / 2 } else { minimum }
}

/// Returns Td, the interval before it is randomised; `packet_len` is `avg_rtcp_size` in octets.
pub(super) fn deterministic(
    config: &TimerConfig,
    group: Group,
    packet_len: f64,
    minimum: Duration,
) -> Duration {
    let Group { members, senders, we_sent } = group;
    let (share, n) = if senders as f64 > members as f64 * config.sender_share {
        (1.0, members)
    } else if we_sent {
        (config.sender_share, senders)
    } else {
        (1.0 - config.sender_share, members.saturating_sub(senders))
    };
    let octets_per_second = config.bandwidth as f64 / 8.0 * config.rtcp_share * share;
    // With estimated counts our group may seem empty, though this participant belongs to it.
    let calculated = seconds(packet_len * n.max(1) as f64 / octets_per_second);
    calculated.max(minimum).clamp(INTERVAL_FLOOR, INTERVAL_MAX)
}

/// Returns T: `td` times 0.5..1.5, divided by the compensation.
pub(super) fn randomised(td: Duration, random: &mut Random) -> Duration {
    random.around(td).div_f64(COMPENSATION)
}

/// Returns `value` seconds, but [`INTERVAL_MAX`] if `value` is larger or NaN.
fn seconds(value: f64) -> Duration {
    let max = INTERVAL_MAX.as_secs_f64();
    if value < max { Duration::from_secs_f64(value.max(0.0)) } else { INTERVAL_MAX }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::timer::FeedbackTiming;

    /// Returns the result of appendix A.7, before and after randomisation; bandwidth in octets/s.
    #[allow(clippy::approx_constant, reason = "the constant of appendix A.7")]
    fn appendix_a7(
        (members, senders): (u32, u32),
        rtcp_bw: f64,
        we_sent: bool,
        avg_rtcp_size: f64,
        initial: bool,
    ) -> (f64, f64, f64) {
        let minimum = if initial { 2.5 } else { 5.0 };
        let mut bandwidth = rtcp_bw;
        let mut n = members;
        if f64::from(senders) <= f64::from(members) * 0.25 {
            if we_sent {
                bandwidth = rtcp_bw * 0.25;
                n = senders;
            } else {
                bandwidth = rtcp_bw * (1.0 - 0.25);
                n = members - senders;
            }
        }
        let mut t = avg_rtcp_size * f64::from(n) / bandwidth;
        if t < minimum {
            t = minimum;
        }
        (t, t * 0.5 / (2.71828 - 1.5), t * 1.5 / (2.71828 - 1.5))
    }

    proptest! {
        #[test]
        fn the_interval_is_that_of_appendix_a7(
            members in 1..100_000u32,
            sending in 0..=1000u32,
            we_sent: bool,
            initial: bool,
            bandwidth in 1_000..10_000_000u64,
            packet_len in 40.0..1500.0f64,
            seed: u64,
        ) {
            // We belong to one of the two groups, so that group is never empty.
            let senders = (members - 1) * sending / 1000 + u32::from(we_sent);
            let (td, low, high) = appendix_a7(
                (members, senders), bandwidth as f64 * 0.05 / 8.0, we_sent, packet_len, initial,
            );
            let config = TimerConfig::new(bandwidth);
            let group = Group { members: members as usize, senders: senders as usize, we_sent };
            let minimum = minimum(&config, we_sent, initial);
            let ours = deterministic(&config, group, packet_len, minimum);
            prop_assert!((ours.as_secs_f64() / td - 1.0).abs() < 1e-6, "{ours:?} {td}");
            let mut random = Random::new(seed);
            for _ in 0..20 {
                let t = randomised(ours, &mut random).as_secs_f64();
                prop_assert!((low * 0.99999..high * 1.00001).contains(&t), "{low} {t} {high}");
            }
        }
    }

    fn of(config: &TimerConfig, members: usize, senders: usize, we_sent: bool) -> f64 {
        let group = Group { members, senders, we_sent };
        deterministic(config, group, 100.0, Duration::ZERO).as_secs_f64()
    }

    #[test]
    fn few_senders_share_a_quarter_and_many_share_alike() {
        let config = TimerConfig::new(16_000); // RTCP: one packet of 100 octets a second
        assert!((of(&config, 101, 1, true) - 4.0).abs() < 1e-9);
        assert!((of(&config, 101, 1, false) - 100.0 / 0.75).abs() < 1e-6);
        assert!((of(&config, 100, 26, true) - 100.0).abs() < 1e-9);
        assert!((of(&config, 100, 26, false) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_share_for_receivers_they_never_report() {
        let config = TimerConfig { sender_share: 1.0, ..TimerConfig::new(16_000) };
        assert!(of(&config, 100, 1, false) >= INTERVAL_MAX.as_secs_f64());
        assert!((of(&config, 100, 1, true) - 1.0).abs() < 1e-9);
        assert!(of(&TimerConfig::new(0), 2, 1, true) >= INTERVAL_MAX.as_secs_f64());
    }

    #[test]
    fn the_reduced_minimum_is_for_senders_and_for_two_parties() {
        let two = TimerConfig { reduced_minimum: true, ..TimerConfig::new(720_000) };
        let many = TimerConfig { multiparty: true, ..two };
        let half = Duration::from_millis(500);
        assert_eq!(minimum(&two, false, false), half);
        assert_eq!(minimum(&two, false, true), half / 2);
        assert_eq!(minimum(&many, true, false), half);
        assert_eq!(minimum(&many, false, false), Duration::from_secs(5));
        let slow = TimerConfig { bandwidth: 64_000, ..two };
        assert_eq!(minimum(&slow, true, false), Duration::from_secs(5));
    }

    #[test]
    fn with_feedback_only_the_first_report_of_many_parties_has_a_minimum() {
        let timing = FeedbackTiming {
            regular_interval_min: Duration::ZERO,
            delay_max: Duration::from_millis(100),
        };
        let two = TimerConfig { feedback: Some(timing), ..TimerConfig::new(1_000_000_000) };
        let many = TimerConfig { multiparty: true, ..two };
        assert_eq!(minimum(&many, false, true), Duration::from_secs(1));
        assert_eq!(minimum(&many, false, false), Duration::ZERO);
        assert_eq!(minimum(&two, false, true), Duration::ZERO);
        assert!((of(&two, 2, 1, false) - INTERVAL_FLOOR.as_secs_f64()).abs() < 1e-9);
    }
}
