//! Pacing: spreading a frame's batches over time to avoid bursts.

use std::time::{Duration, Instant};

use crate::error::Error;

/// How the packets of a large frame are spread over time, in bursts no larger than [`Burst`].
///
/// A sender that was scheduled late catches up by at most 1 ms and at most 256 KiB, so that what it
/// sends then fits a switch's queue; the rest is sent later. From 1 Gbit/s on, [`Rate`](Self::Rate)
/// spins for the last 0.15 ms before a burst instead, and catches up by at most 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pacing {
    /// No pacing: packets are sent in batches of 64 KiB, one after the other without waiting.
    Off,
    /// Over this share of the frame interval, 0.01 to 1; by default 0.9. A link that a stream of
    /// equal frames fills by up to this share then needs no more queue than a burst, at the cost
    /// of a latency of up to this share of the interval for frames of many bursts. A frame that
    /// fits one burst is sent at once.
    ///
    /// The interval is that of the stream's frame rate, if it was set; otherwise the time between
    /// the last two frames pushed, at most 100 ms. A sender that was scheduled late uses more of the
    /// interval, up to all of it. A frame that is pushed as soon as the one before it was sent is
    /// late, and takes half the time.
    Share(f32),
    /// At this rate, in bits of UDP payload per second (not 0), independent of the frame's size. It
    /// suits streams that use most of a link: slightly below the link's rate, no queue builds up.
    ///
    /// A packet on Ethernet takes 66 octets more than its UDP payload (IPv6: 86), so at an MTU of
    /// 1 500 a link has room for 95.7 % of its rate.
    Rate(u64),
}

impl Default for Pacing {
    fn default() -> Self {
        Self::Share(0.9)
    }
}

/// The largest burst of a paced sender: how much it passes to the kernel at once. A burst contains at
/// least one packet, whatever these limits are. Without pacing ([`Pacing::Off`]) there are none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Burst {
    /// Octets of UDP payload, by default 32 KiB: small switches have queues of 128 KiB and more.
    pub octets: usize,
    /// With [`Pacing::Rate`], the time that a burst takes at that rate, by default 2 ms: at
    /// 5 Mbit/s each packet is sent alone, and from 131 Mbit/s on `octets` is the lower limit.
    pub time: Duration,
}

impl Default for Burst {
    fn default() -> Self {
        Self { octets: 32 << 10, time: Duration::from_millis(2) }
    }
}

/// Sleeps until `deadline`; returns at once if it is past. It may wake up to about 0.1 ms late,
/// which does not accumulate in an absolute schedule.
pub fn sleep_until(deadline: Instant) {
    let time = deadline.saturating_duration_since(Instant::now());
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

/// An upper bound of the lateness of a sleep.
const SLEEP_LATE: Duration = Duration::from_micros(150);

/// Waits until `deadline` to the microsecond: sleeps, then spins.
pub(crate) fn wait_until(deadline: Instant) {
    if let Some(asleep) = deadline.checked_sub(SLEEP_LATE) {
        sleep_until(asleep);
    }
    while Instant::now() < deadline {
        std::hint::spin_loop();
    }
}

/// The assumed interval before the second frame.
const FIRST_INTERVAL: Duration = Duration::from_millis(33);

/// Maximum measured interval: frames further apart count as single frames.
const INTERVAL_MAX: Duration = Duration::from_millis(100);

/// Minimum wait: shorter ones cost more than they smooth.
const WAIT_MIN: Duration = Duration::from_micros(50);

/// Maximum time that a late sender catches up by. It exceeds the lateness of a sleep, which a
/// stream near its link's rate would otherwise lose with every batch; slow links cannot take more.
const CATCH_UP_TIME: Duration = Duration::from_millis(1);

/// The same limit in octets, for fast streams: half of a small switch's queue.
const CATCH_UP_LEN: usize = 256 << 10;

/// The rate in bits per second from which the sender spins, since catching up after a late sleep
/// would itself be a burst.
const EXACT_RATE: u64 = 1_000_000_000;

/// Maximum octets that a spinning sender catches up by.
const CATCH_UP_EXACT: usize = 64 << 10;

/// Minimum wait of a spinning sender: shorter ones are not worth a second reading of the clock.
const WAIT_MIN_EXACT: Duration = Duration::from_micros(2);

/// The schedule of a stream's bursts.
#[derive(Debug)]
pub(crate) struct Pacer {
    pacing: Pacing,
    burst: Burst,
    interval: Option<Duration>,
    last_frame: Option<Instant>,
    /// When the latest burst of the last frame was sent, or due.
    last_burst: Option<Instant>,
    frame_start: Instant,
    frame_len: usize,
    frame_time: Duration,
    /// The part of the interval by which bursts may still be postponed.
    reserve: Duration,
    sent: usize,
    /// When the last burst at a rate was due, and its octets.
    rate_burst: (Instant, usize),
}

impl Pacer {
    /// Creates a pacer for frames that are `interval` apart; with `None` it measures the interval.
    pub(crate) fn new(
        pacing: Pacing,
        burst: Burst,
        interval: Option<Duration>,
        now: Instant,
    ) -> Result<Self, Error> {
        match pacing {
            Pacing::Share(share) if !(0.01..=1.0).contains(&share) => {
                return Err(Error::PacingShare { share });
            }
            Pacing::Rate(0) => return Err(Error::PacingRate),
            _ => {}
        }
        Ok(Self {
            pacing,
            burst,
            interval,
            last_frame: None,
            last_burst: None,
            frame_start: now,
            frame_len: 0,
            frame_time: Duration::ZERO,
            reserve: Duration::ZERO,
            sent: 0,
            rate_burst: (now, 0),
        })
    }

    /// Starts a frame of `len` octets at `now`.
    pub(crate) fn start(&mut self, now: Instant, len: usize) {
        let measured = match self.last_frame.replace(now) {
            Some(last) => now.saturating_duration_since(last).min(INTERVAL_MAX),
            None => FIRST_INTERVAL,
        };
        self.frame_start = now;
        self.frame_len = len.max(1);
        self.sent = 0;
        if let Pacing::Share(share) = self.pacing {
            let interval = self.interval.unwrap_or(measured);
            self.frame_time = interval.mul_f32(share);
            // Between frames that are on time, the sender is idle for the rest of the interval. One
            // that is not is behind, and catches up.
            let idle = self.last_burst.map(|last| now.saturating_duration_since(last));
            if idle.is_some_and(|idle| idle < interval.saturating_sub(self.frame_time) / 2) {
                self.frame_time /= 2;
            }
            self.reserve = interval.saturating_sub(self.frame_time);
        }
    }

    /// Returns the maximum octets of a burst; `None` if bursts are not limited.
    pub(crate) fn burst_len(&self) -> Option<usize> {
        let Burst { octets, time } = self.burst;
        match self.pacing {
            Pacing::Off => None,
            Pacing::Share(_) => Some(octets),
            Pacing::Rate(bits_per_second) => {
                let sent =
                    u128::from(bits_per_second).saturating_mul(time.as_nanos()) / 8_000_000_000;
                Some(octets.min(usize::try_from(sent).unwrap_or(usize::MAX)))
            }
        }
    }

    /// Returns when the next burst, of `len` octets, is due, or `None` if at once.
    pub(crate) fn due(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let due = match self.pacing {
            Pacing::Off => return None,
            Pacing::Share(_) => {
                let share = (self.sent as f64 / self.frame_len as f64).min(1.0);
                let due = self.frame_start + self.frame_time.mul_f64(share);
                let late = now.saturating_duration_since(due);
                let catch_up =
                    catch_up(time_of(CATCH_UP_LEN, self.frame_time, self.frame_len as u64));
                // The rest is postponed, but a frame does not use the time of the next one.
                let postponed = late.saturating_sub(catch_up).min(self.reserve);
                self.reserve -= postponed;
                self.frame_start += postponed;
                self.last_burst = Some(now.max(due + postponed));
                due + postponed
            }
            Pacing::Rate(bits_per_second) => {
                let most = if self.is_exact() { CATCH_UP_EXACT } else { CATCH_UP_LEN };
                let late = catch_up(time_at(most, bits_per_second));
                let earliest = now.checked_sub(late).unwrap_or(now);
                let due = self.rate_due(bits_per_second).max(earliest);
                self.rate_burst = (due, len);
                due
            }
        };
        self.sent += len;
        let shortest = if self.is_exact() { WAIT_MIN_EXACT } else { WAIT_MIN };
        (due > now + shortest).then_some(due)
    }

    /// Changes to a rate in bits per second, at which the next burst may then be sent. Returns when
    /// that is.
    pub(crate) fn follow(&mut self, bits_per_second: u64) -> Instant {
        self.pacing = Pacing::Rate(bits_per_second);
        self.rate_due(bits_per_second)
    }

    fn rate_due(&self, bits_per_second: u64) -> Instant {
        let (last, len) = self.rate_burst;
        last + time_at(len, bits_per_second)
    }

    /// Waits until a burst is due.
    pub(crate) fn wait(&self, due: Instant) {
        if self.is_exact() { wait_until(due) } else { sleep_until(due) }
    }

    fn is_exact(&self) -> bool {
        matches!(self.pacing, Pacing::Rate(bits_per_second) if bits_per_second >= EXACT_RATE)
    }
}

/// Returns the time that `len` octets take if `of` octets take `time`.
fn time_of(len: usize, time: Duration, of: u64) -> Duration {
    let nanos = len as u128 * time.as_nanos() / u128::from(of.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns the time that `len` octets take at a rate.
fn time_at(len: usize, bits_per_second: u64) -> Duration {
    // `bits_per_second` octets take eight seconds.
    time_of(len, Duration::from_secs(8), bits_per_second)
}

/// Returns the maximum delay to catch up by if the longest permitted burst takes `burst`.
fn catch_up(burst: Duration) -> Duration {
    burst.min(CATCH_UP_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pacing: Pacing, lens: &[usize]) -> Vec<Option<u128>> {
        let now = Instant::now();
        let mut pacer =
            Pacer::new(pacing, Burst::default(), Some(Duration::from_millis(20)), now).unwrap();
        pacer.start(now, lens.iter().sum());
        lens.iter().map(|len| pacer.due(now, *len).map(|due| (due - now).as_micros())).collect()
    }

    #[test]
    fn a_share_spreads_a_frame_by_octets() {
        let expected = [None, Some(2500), Some(5000), Some(7500)];
        assert_eq!(waits(Pacing::Share(0.5), &[1000; 4]), expected);
    }

    #[test]
    fn a_rate_is_kept_from_batch_to_batch() {
        let expected = [None, Some(1000), Some(2000)];
        assert_eq!(waits(Pacing::Rate(8_000_000), &[1000; 3]), expected);
    }

    #[test]
    fn a_burst_that_waits_follows_a_rate_that_changes() {
        let now = Instant::now();
        let burst = Burst::default();
        let mut pacer = Pacer::new(Pacing::default(), burst, None, now).unwrap();
        assert_eq!(pacer.follow(8000), now);
        assert_eq!(pacer.due(now, 1000), None);
        // A packet of a second, but of 10 ms when the rate has risen.
        assert_eq!(pacer.follow(8000), now + Duration::from_secs(1));
        assert_eq!(pacer.follow(800_000), now + Duration::from_millis(10));
        assert_eq!(pacer.burst_len(), Some(200));
    }

    #[test]
    fn no_pacing_waits_for_nothing() {
        assert_eq!(waits(Pacing::Off, &[1000; 3]), [None; 3]);
    }

    #[test]
    fn a_burst_is_limited_in_octets_and_at_a_rate_in_time() {
        let limit =
            |pacing, burst| Pacer::new(pacing, burst, None, Instant::now()).unwrap().burst_len();
        let burst = Burst::default();
        assert_eq!(limit(Pacing::Off, burst), None);
        assert_eq!(limit(Pacing::default(), burst), Some(32_768));
        assert_eq!(limit(Pacing::Rate(5_000_000), burst), Some(1250));
        assert_eq!(limit(Pacing::Rate(100_000_000), burst), Some(25_000));
        assert_eq!(limit(Pacing::Rate(u64::MAX), burst), Some(32_768));
        let endless = Burst { octets: usize::MAX, time: Duration::MAX };
        assert_eq!(limit(Pacing::Rate(u64::MAX), endless), Some(usize::MAX));
    }

    /// Returns the octets that are due at once if the sender is `late` with the second of many
    /// batches.
    fn burst(pacing: Pacing, interval: Duration, late: Duration) -> usize {
        const LEN: usize = 65_000;
        let start = Instant::now();
        let mut pacer = Pacer::new(pacing, Burst::default(), Some(interval), start).unwrap();
        pacer.start(start, 100 * LEN);
        pacer.due(start, LEN);
        // Skips batches that are sent early because their wait would be too short.
        let mut due = start;
        while due == start {
            due = pacer.due(start, LEN).unwrap_or(start);
        }
        let now = due + late;
        (0..98).take_while(|_| pacer.due(now, LEN).is_none()).count() * LEN
    }

    #[test]
    fn a_sender_that_is_late_catches_up_by_no_more_than_a_queue_holds() {
        // At 10 Gbit/s a batch takes 52 us, and 100 batches 5.2 ms.
        let over = Duration::from_micros(10_400);
        let share = |micros| burst(Pacing::Share(0.5), over, Duration::from_micros(micros));
        // The pacer catches up after a late sleep.
        assert!((2 * 65_000..=4 * 65_000).contains(&share(110)));
        for micros in [500, 4_000] {
            // Includes batches that are sent early because their wait would be too short.
            let most = CATCH_UP_LEN + 2 * 65_000;
            assert!((4 * 65_000..=most).contains(&share(micros)), "{micros}");
        }
        // A spinning sender is late only if it was not scheduled.
        for micros in [110, 500, 4_000] {
            let late = Duration::from_micros(micros);
            let burst = burst(Pacing::Rate(10_000_000_000), over, late);
            assert!((65_000..=2 * 65_000).contains(&burst), "{burst} {micros}");
        }
        // At 100 Mbit/s, 1 ms is less than a batch.
        let slow = burst(Pacing::Rate(100_000_000), over, Duration::from_millis(50));
        assert!(slow <= 65_000, "{slow}");
    }

    #[test]
    fn a_frame_that_is_late_does_not_take_the_time_of_the_next() {
        let start = Instant::now();
        let interval = Duration::from_millis(20);
        for (share, end) in [(0.5, 20), (1.0, 20)] {
            let mut pacer =
                Pacer::new(Pacing::Share(share), Burst::default(), Some(interval), start).unwrap();
            pacer.start(start, 100_000);
            // The sender was not scheduled for most of the interval.
            let now = start + Duration::from_millis(18);
            let due = (0..100).filter_map(|_| pacer.due(now, 1000)).last();
            let latest = start + Duration::from_millis(end);
            assert!(due.is_some_and(|due| due <= latest && due > now), "{share}");
        }
    }

    #[test]
    fn a_sender_that_is_behind_sends_in_half_the_time_until_it_has_caught_up() {
        let start = Instant::now();
        let interval = Duration::from_millis(20);
        let pacing = Pacing::default();
        let mut pacer = Pacer::new(pacing, Burst::default(), Some(interval), start).unwrap();
        let mut time_of_frame = |begin: Instant| {
            pacer.start(begin, 10_000);
            let ends = (0..10).filter_map(|_| pacer.due(begin, 1000));
            // The share is not exact in binary.
            ((ends.last().unwrap() - begin).as_nanos() + 500) / 1000
        };
        let (whole, half) = (16_200, 8_100);
        assert_eq!(time_of_frame(start), whole);
        assert_eq!(time_of_frame(start + interval), whole);
        // The third frame is pushed when the second has only just been sent, the fourth on time.
        let end = Duration::from_micros(16_200);
        assert_eq!(time_of_frame(start + interval + end), half);
        assert_eq!(time_of_frame(start + 3 * interval), whole);
    }

    #[test]
    fn shares_out_of_range_are_refused() {
        for share in [0.0, -1.0, 1.1, f32::NAN] {
            assert!(
                Pacer::new(Pacing::Share(share), Burst::default(), None, Instant::now()).is_err(),
                "{share}"
            );
        }
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        assert!(Pacer::new(Pacing::Rate(0), Burst::default(), None, Instant::now()).is_err());
        assert!(Pacer::new(Pacing::Rate(1), Burst::default(), None, Instant::now()).is_ok());
    }

    #[test]
    fn without_a_frame_rate_the_spacing_of_pushes_counts() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Pacing::Share(0.5), Burst::default(), None, start).unwrap();
        pacer.start(start, 2000);
        let now = start + Duration::from_millis(10);
        pacer.start(now, 2000);
        assert_eq!(pacer.due(now, 1000), None);
        let due = pacer.due(now, 1000).unwrap();
        assert_eq!((due - now).as_micros(), 2500);
    }
}
