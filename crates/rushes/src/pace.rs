//! Pacing: spreading a frame's batches over time to avoid bursts.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::error::Error;

/// How the packets of a large frame are spread over time, in bursts no larger than [`Burst`].
///
/// A sender that was scheduled late catches up by at most 1 ms and at most 256 KiB (by
/// [`Share`](Self::Share) in any case by 64 KiB), so that what it sends then fits a switch's queue;
/// the rest is sent later. By [`Share`](Self::Share), a burst that is due within 0.25 ms is sent at
/// once, as long as no more than 96 KiB are early: so short a wait costs more than it smooths. From
/// 1 Gbit/s on, [`Rate`](Self::Rate) spins for the last 0.15 ms before a burst instead, and catches
/// up by at most 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pacing {
    /// No pacing: packets are sent in batches of 64 KiB, one after the other. The sender waits only while
    /// its socket's buffer is full, which a network device empties at the rate of its link.
    ///
    /// Within one host there is no device: what a receiver does not take at once waits in its socket's
    /// buffer, 4 MiB by default, and is lost beyond it, as with any UDP socket. Larger frames need
    /// [`Rate`](Self::Rate) there, below what the receiver can take.
    Off,
    /// Over this share of the frame interval, 0.01 to 1; by default 0.9. A link that a stream of
    /// equal frames fills by up to this share then needs no more queue than a burst, at the cost
    /// of a latency of up to this share of the interval for frames of many bursts. A frame that
    /// fits one burst is sent at once.
    ///
    /// The interval is that of the stream's frame rate, if it was set, at most 1 s; otherwise the
    /// time between the last two frames pushed, at most 100 ms. A frame of a sender that was
    /// scheduled late takes up to an interval longer, and the following frames, which then begin
    /// late, catch up in the rest of their intervals. A sender that is still behind after 16 frames
    /// sends each in half the time.
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

/// Longest wait before the next check for the end of sending.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until `deadline`, to the microsecond if `is_exact`. Calls `goes_on` at least every 100 ms;
/// returns `false` when it does.
pub(crate) fn wait(deadline: Instant, is_exact: bool, mut goes_on: impl FnMut() -> bool) -> bool {
    while goes_on() {
        let now = Instant::now();
        if deadline.saturating_duration_since(now) <= CHECK_INTERVAL {
            if is_exact {
                wait_until(deadline);
            } else {
                sleep_until(deadline);
            }
            return true;
        }
        sleep_until(now + CHECK_INTERVAL);
    }
    false
}

/// The assumed interval before the second frame.
const FIRST_INTERVAL: Duration = Duration::from_millis(33);

/// Maximum measured interval: frames further apart count as single frames.
const INTERVAL_MAX: Duration = Duration::from_millis(100);

/// Maximum interval by a frame rate: a frame is not spread over minutes.
const SET_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Minimum wait: shorter ones cost more than they smooth.
const WAIT_MIN: Duration = Duration::from_micros(50);

/// Minimum wait of fast streams whose frames are spread over a share of the interval: a sleep takes
/// up to 50 us of processor time and ends up to 0.1 ms late.
const WAIT_MIN_FAST: Duration = Duration::from_micros(250);

/// Maximum octets that such a stream sends early instead: with a burst, a quarter of a fast switch's
/// queue.
const EARLY_LEN: usize = 96 << 10;

/// Octets that a late sender of frames may catch up by, however slow it is: with a burst, the queue
/// of a small switch.
const CATCH_UP_MIN: usize = 64 << 10;

/// The time that fast streams catch up by. It exceeds the lateness of a sleep, which a stream near
/// its link's rate would otherwise lose with every batch.
const CATCH_UP_TIME: Duration = Duration::from_millis(1);

/// The limit for even faster streams: half the queue of a fast switch.
const CATCH_UP_LEN: usize = 256 << 10;

/// The number of frames in a row that may begin late before the sender sends faster than the share
/// says: its link may not be able to take that.
const BEHIND_MAX: u32 = 16;

/// The rate in bits per second from which the sender spins, since catching up after a late sleep
/// would itself be a burst.
const EXACT_RATE: u64 = 1_000_000_000;

/// Maximum octets that a spinning sender catches up by.
const CATCH_UP_EXACT: usize = 64 << 10;

/// Minimum wait of a spinning sender: shorter ones are not worth a second reading of the clock.
const WAIT_MIN_EXACT: Duration = Duration::from_micros(2);

/// When the bursts of frames are sent.
pub(crate) trait Pace: Debug + Send {
    /// Starts a frame of `len` octets at `now`.
    fn start(&mut self, now: Instant, len: usize);

    /// Spreads packets in another way, from the next frame on. A schedule that several senders share stays.
    fn set_pacing(&mut self, _pacing: Pacing) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the maximum octets of a burst; `None` if bursts are not limited.
    fn burst_len(&self) -> Option<usize>;

    /// Returns whether a frame of `len` octets is sent at once whenever it starts.
    fn sends_at_once(&self, _len: usize) -> bool {
        false
    }

    /// Returns when the next burst, of `len` octets, is due, or `None` if at once.
    fn due(&mut self, now: Instant, len: usize) -> Option<Instant>;

    /// Changes to a rate in bits per second; returns when the next burst may then be sent. A
    /// schedule that several senders share keeps its own rate, and returns `None`.
    fn follow(&mut self, _bits_per_second: u64) -> Option<Instant> {
        None
    }

    /// Waits until a burst is due, and calls `goes_on` at least every 100 ms; returns `false` when
    /// it does, or if the schedule has ended.
    fn wait(&self, due: Instant, goes_on: &mut dyn FnMut() -> bool) -> bool;
}

/// The schedule of a stream's bursts.
#[derive(Debug)]
pub(crate) struct Pacer {
    pacing: Pacing,
    /// That of the next frames, if it is another.
    next: Option<Pacing>,
    burst: Burst,
    interval: Option<Duration>,
    last_frame: Option<Instant>,
    /// When the latest burst of the last frame was sent, or due.
    last_burst: Option<Instant>,
    frame_start: Instant,
    frame_len: usize,
    frame_time: Duration,
    /// The time by which the frame's bursts may still be postponed.
    reserve: Duration,
    /// The number of frames in a row that began late.
    behind: u32,
    sent: usize,
    /// When the last burst at a rate was due, and its octets.
    rate_burst: (Instant, usize),
    /// When the next burst between frames is due.
    #[cfg(feature = "texture")]
    beyond: Instant,
}

/// Refuses values out of range.
fn check(pacing: Pacing) -> Result<(), Error> {
    match pacing {
        Pacing::Share(share) if !(0.01..=1.0).contains(&share) => Err(Error::PacingShare { share }),
        Pacing::Rate(0) => Err(Error::PacingRate),
        _ => Ok(()),
    }
}

impl Pacer {
    /// Creates a pacer for frames that are `interval` apart; with `None` it measures the interval.
    pub(crate) fn new(
        pacing: Pacing,
        burst: Burst,
        interval: Option<Duration>,
        now: Instant,
    ) -> Result<Self, Error> {
        check(pacing)?;
        Ok(Self {
            pacing,
            next: None,
            burst,
            interval,
            last_frame: None,
            last_burst: None,
            frame_start: now,
            frame_len: 0,
            frame_time: Duration::ZERO,
            reserve: Duration::ZERO,
            behind: 0,
            sent: 0,
            rate_burst: (now, 0),
            #[cfg(feature = "texture")]
            beyond: now,
        })
    }

    /// Sets the time between frames, from the next frame on.
    #[cfg(feature = "texture")]
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = Some(interval);
    }

    /// Returns when a burst is due that is not a part of the frame: among those of the frame, which take
    /// no longer with it, or between frames at the rate of the last one.
    #[cfg(feature = "texture")]
    pub(crate) fn due_beyond(&mut self, now: Instant, len: usize) -> Option<Instant> {
        if matches!(self.pacing, Pacing::Share(_)) && self.sent >= self.frame_len {
            let due = self.beyond.max(now);
            self.beyond = due + time_of(len, self.frame_time, self.frame_len as u64);
            return (due > now + WAIT_MIN).then_some(due);
        }
        self.frame_len += len;
        self.due(now, len)
    }

    /// Returns when the next burst is due at a rate in bits per second.
    fn rate_due(&self, bits_per_second: u64) -> Instant {
        let (last, len) = self.rate_burst;
        last + time_at(len, bits_per_second)
    }

    /// Returns the shortest wait that is worth it.
    fn wait_min(&self) -> Duration {
        match self.pacing {
            _ if self.is_exact() => WAIT_MIN_EXACT,
            Pacing::Share(_) => {
                let early = time_of(EARLY_LEN, self.frame_time, self.frame_len as u64);
                WAIT_MIN_FAST.min(early).max(WAIT_MIN)
            }
            _ => WAIT_MIN,
        }
    }

    /// Returns whether waits end to the microsecond.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.pacing, Pacing::Rate(bits_per_second) if bits_per_second >= EXACT_RATE)
    }
}

impl Pace for Pacer {
    fn set_pacing(&mut self, pacing: Pacing) -> Result<(), Error> {
        check(pacing)?;
        self.next = Some(pacing);
        Ok(())
    }

    fn start(&mut self, now: Instant, len: usize) {
        self.pacing = self.next.take().unwrap_or(self.pacing);
        let measured = match self.last_frame.replace(now) {
            Some(last) => now.saturating_duration_since(last).min(INTERVAL_MAX),
            None => FIRST_INTERVAL,
        };
        self.frame_start = now;
        self.frame_len = len.max(1);
        self.sent = 0;
        if let Pacing::Share(share) = self.pacing {
            let interval = self.interval.map_or(measured, |set| set.min(SET_INTERVAL_MAX));
            self.frame_time = interval.mul_f32(share);
            // Between frames that are on time, the sender is idle for the rest of the interval, or for
            // a part of it if the last burst was late. One that begins at once was waiting.
            let idle = self.last_burst.map(|last| now.saturating_duration_since(last));
            let rest = interval.saturating_sub(self.frame_time);
            let is_late = idle.is_some_and(|idle| idle < rest / 8);
            self.behind = if is_late { self.behind.saturating_add(1) } else { 0 };
            self.reserve = interval;
            if self.behind > BEHIND_MAX {
                self.frame_time /= 2;
                self.reserve = interval.saturating_sub(self.frame_time);
            }
        }
    }

    fn burst_len(&self) -> Option<usize> {
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

    fn sends_at_once(&self, len: usize) -> bool {
        match self.next.unwrap_or(self.pacing) {
            Pacing::Off => true,
            Pacing::Share(_) => len <= self.burst.octets,
            Pacing::Rate(_) => false,
        }
    }

    fn due(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let due = match self.pacing {
            Pacing::Off => return None,
            Pacing::Share(_) => {
                let share = (self.sent as f64 / self.frame_len as f64).min(1.0);
                let due = self.frame_start + self.frame_time.mul_f64(share);
                let late = now.saturating_duration_since(due);
                let time = |len| time_of(len, self.frame_time, self.frame_len as u64);
                let catch_up = time(CATCH_UP_MIN).max(catch_up(time(CATCH_UP_LEN)));
                // The rest is postponed.
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
        (due > now + self.wait_min()).then_some(due)
    }

    fn follow(&mut self, bits_per_second: u64) -> Option<Instant> {
        self.pacing = Pacing::Rate(bits_per_second);
        Some(self.rate_due(bits_per_second))
    }

    fn wait(&self, due: Instant, goes_on: &mut dyn FnMut() -> bool) -> bool {
        wait(due, self.is_exact(), goes_on)
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

    #[cfg(feature = "texture")]
    #[test]
    fn bursts_beyond_a_frame_take_their_turn_in_it_and_make_it_no_longer() {
        let now = Instant::now();
        let interval = Duration::from_millis(20);
        let mut pacer =
            Pacer::new(Pacing::Share(0.5), Burst::default(), Some(interval), now).unwrap();
        pacer.start(now, 4_000);
        let micros = |due: Option<Instant>| due.map(|due| (due - now).as_micros());
        assert_eq!(micros(pacer.due(now, 2_000)), None);
        // Half of 4 000 octets were sent; of 5 000, that is 4 ms.
        assert_eq!(micros(pacer.due_beyond(now, 1_000)), Some(4_000));
        assert_eq!(micros(pacer.due(now, 1_000)), Some(6_000));
        assert_eq!(micros(pacer.due(now, 1_000)), Some(8_000));
        // Between frames they follow each other at the frame's rate, 5 000 octets in 10 ms.
        assert_eq!(micros(pacer.due_beyond(now, 1_000)), None);
        assert_eq!(micros(pacer.due_beyond(now, 1_000)), Some(2_000));
        assert_eq!(micros(pacer.due_beyond(now, 500)), Some(4_000));
        assert_eq!(micros(pacer.due_beyond(now, 500)), Some(5_000));
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
        assert_eq!(pacer.follow(8000), Some(now));
        assert_eq!(pacer.due(now, 1000), None);
        // A packet of a second, but of 10 ms when the rate has risen.
        assert_eq!(pacer.follow(8000), Some(now + Duration::from_secs(1)));
        assert_eq!(pacer.follow(800_000), Some(now + Duration::from_millis(10)));
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
        let slow = burst(Pacing::Share(0.9), Duration::from_millis(500), over);
        assert!((65_000..=CATCH_UP_MIN + 65_000).contains(&slow), "{slow}");
    }

    #[test]
    fn a_fast_stream_waits_less_often_and_sends_little_early() {
        const BURST: usize = 32 << 10;
        let start = Instant::now();
        // Frames of 20 bursts in 0.9 of the interval: 0.17, 1.0, 1.3, 4.7 and 17 Gbit/s.
        for (micros, bursts) in [(33_333, 1), (5_600, 1), (4_166, 2), (1_250, 4), (333, 4)] {
            let interval = Some(Duration::from_micros(micros));
            let mut pacer =
                Pacer::new(Pacing::default(), Burst::default(), interval, start).unwrap();
            pacer.start(start, 20 * BURST);
            let (mut now, mut at_once) = (start, vec![0]);
            for _ in 0..20 {
                if let Some(due) = pacer.due(now, BURST) {
                    now = due;
                    at_once.push(0);
                }
                *at_once.last_mut().unwrap() += 1;
            }
            assert_eq!(at_once.iter().max(), Some(&bursts), "{micros} us: {at_once:?}");
        }
    }

    /// Sends a frame of 1 MB, in bursts of 10 KB, from `begin` on. Every wait ends on time, but the
    /// first one `late`. Returns when the last burst was sent, and the most octets sent within 1 ms.
    fn send(pacer: &mut Pacer, begin: Instant, late: Duration) -> (Instant, usize) {
        pacer.start(begin, 1_000_000);
        let mut sent = vec![begin];
        for at in 1..=100 {
            let now = *sent.last().unwrap() + if at == 2 { late } else { Duration::ZERO };
            sent.push(pacer.due(now, 10_000).unwrap_or(now).max(now));
        }
        let within =
            |from: &Instant| sent.iter().filter(|at| *at >= from && **at <= *from + MS).count();
        let most = sent.iter().map(within).max().unwrap() * 10_000;
        (*sent.last().unwrap(), most)
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_sender_that_was_not_scheduled_catches_up_in_the_rest_of_the_next_intervals() {
        let start = Instant::now();
        let interval = 20 * MS;
        let pacing = Pacing::default();
        let mut pacer = Pacer::new(pacing, Burst::default(), Some(interval), start).unwrap();
        let (mut end, mut behind) = (start, 0);
        for frame in 0..20 {
            let late = if frame == 3 { 15 * MS } else { Duration::ZERO };
            let (due, begin) = (start + frame * interval, end.max(start + frame * interval));
            behind += u32::from(begin > due);
            let (sent, most) = send(&mut pacer, begin, late);
            // 18 ms for 1 MB are 56 KB in a millisecond.
            assert!(most <= CATCH_UP_MIN + 80_000, "{most}");
            end = sent;
        }
        assert!((5..9).contains(&behind), "{behind}");
        assert!(end <= start + 20 * interval);
    }

    #[test]
    fn a_sender_whose_frames_end_late_but_begin_on_time_is_not_behind() {
        let start = Instant::now();
        let pacing = Pacing::default();
        let mut pacer = Pacer::new(pacing, Burst::default(), Some(20 * MS), start).unwrap();
        for frame in 0..100 {
            let begin = start + frame * 20 * MS;
            // Catches up by 1.2 ms, and ends 0.7 ms before the next frame.
            let takes = send(&mut pacer, begin, Duration::from_micros(2_700)).0 - begin;
            assert!(takes > 19 * MS && takes < 20 * MS, "{frame}: {takes:?}");
        }
    }

    #[test]
    fn a_sender_that_stays_behind_sends_in_half_the_time() {
        let start = Instant::now();
        let pacing = Pacing::default();
        let mut pacer = Pacer::new(pacing, Burst::default(), Some(20 * MS), start).unwrap();
        let mut begin = start;
        let takes: Vec<_> = (0..20)
            .map(|_| {
                let end = send(&mut pacer, begin, Duration::ZERO).0;
                let takes = (end - begin).as_millis();
                begin = end;
                takes
            })
            .collect();
        assert!(takes[..17].iter().all(|takes| (17..=18).contains(takes)), "{takes:?}");
        assert!(takes[17..].iter().all(|takes| (8..=9).contains(takes)), "{takes:?}");
    }

    #[test]
    fn a_frame_of_a_very_slow_stream_is_not_spread_over_its_interval() {
        let start = Instant::now();
        let interval = Some(Duration::from_secs(3600));
        let mut pacer = Pacer::new(Pacing::default(), Burst::default(), interval, start).unwrap();
        pacer.start(start, 10_000);
        let last = (0..10).filter_map(|_| pacer.due(start, 1000)).last().unwrap() - start;
        assert!(last > Duration::from_millis(800) && last < Duration::from_secs(1), "{last:?}");
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
