//! Lip sync: streams of one participant, presented on one clock.

use std::time::{Duration, Instant};

use crate::time::NtpTime;

/// Minimum time for which the slowest frame is remembered; the maximum is twice that.
const MEMORY: Duration = Duration::from_secs(5);

/// Schedules the frames of all streams of one canonical name.
///
/// Frames captured together are presented together (NTP timestamp, RFC 3550 section 6.4.1).
///
/// Every frame of every stream is noted when it is complete. The slowest frame of the last seconds,
/// in any stream, determines the delay of all streams. The peer's wall clock need not agree with
/// ours, because only its differences are used.
///
/// ```
/// use rushes_proto::control::{ClockMapping, LipSync};
/// use rushes_proto::{ClockRate, NtpTime, RtpTimestamp};
/// use std::time::{Duration, Instant};
/// # #[allow(clippy::disallowed_methods)]
/// # fn main() {
/// // Sender reports of one participant: its video's and its audio's clocks at one instant.
/// let ntp = NtpTime::from_unix(Duration::from_secs(1_700_000_000));
/// let video = ClockMapping { ntp, rtp: RtpTimestamp(900_000), clock_rate: ClockRate::VIDEO };
/// let audio = ClockMapping { ntp, rtp: RtpTimestamp(48_000), clock_rate: ClockRate::OPUS };
///
/// // A picture and a sound captured at that instant; the picture takes 80 ms longer.
/// let start = Instant::now();
/// let mut sync = LipSync::new(Duration::from_millis(10));
/// sync.note_frame(audio.to_ntp(RtpTimestamp(48_000)), start);
/// sync.note_frame(video.to_ntp(RtpTimestamp(900_000)), start + Duration::from_millis(80));
///
/// // The sound waits for its picture; a picture 40 ms later is presented 40 ms later.
/// let sound = sync.present_at(audio.to_ntp(RtpTimestamp(48_000))).unwrap();
/// assert_eq!(sound, start + Duration::from_millis(90));
/// let picture = sync.present_at(video.to_ntp(RtpTimestamp(900_000 + 3_600))).unwrap();
/// assert_eq!(picture, sound + Duration::from_millis(40));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LipSync {
    margin: Duration,
    /// An arbitrary instant on both clocks, from which transit times are counted.
    origin: Option<(NtpTime, Instant)>,
    /// The longest transit time of this period and of the previous one, in nanoseconds.
    longest: [Option<i64>; 2],
    stretch: Option<Instant>,
}

impl LipSync {
    /// Creates a schedule that presents frames `margin` later than the slowest frame requires.
    pub fn new(margin: Duration) -> Self {
        Self { margin, origin: None, longest: [None; 2], stretch: None }
    }

    /// Notes that a frame captured at `captured`, on the peer's clock, is complete at `now`.
    pub fn note_frame(&mut self, captured: NtpTime, now: Instant) {
        let (ntp, instant) = *self.origin.get_or_insert((captured, now));
        let transit = nanos(now, instant) - captured.nanos_since(ntp);
        let stretch = *self.stretch.get_or_insert(now);
        if now.saturating_duration_since(stretch) > MEMORY {
            self.longest = [None, self.longest[0]];
            self.stretch = Some(now);
        }
        self.longest[0] = Some(self.longest[0].map_or(transit, |longest| longest.max(transit)));
    }

    /// Returns when to present a frame captured at `captured`; `None` before any frame was noted.
    pub fn present_at(&self, captured: NtpTime) -> Option<Instant> {
        let (ntp, instant) = self.origin?;
        let longest = self.longest.into_iter().flatten().max()?;
        let offset = captured.nanos_since(ntp).checked_add(longest)?;
        let time = Duration::from_nanos(offset.unsigned_abs());
        let presented =
            if offset < 0 { instant.checked_sub(time) } else { instant.checked_add(time) };
        presented?.checked_add(self.margin)
    }
}

/// Returns the nanoseconds from `earlier` to `later`; negative if `later` is the earlier one.
fn nanos(later: Instant, earlier: Instant) -> i64 {
    let forwards = later.saturating_duration_since(earlier).as_nanos() as i64;
    let backwards = earlier.saturating_duration_since(later).as_nanos() as i64;
    forwards - backwards
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_slow_frame_is_forgotten_after_a_while() {
        let (ntp, start) = (NtpTime(1 << 40), Instant::now());
        let mut sync = LipSync::new(Duration::ZERO);
        assert_eq!(sync.present_at(ntp), None);
        sync.note_frame(ntp, start + 500 * MS);
        for n in 1..400_u32 {
            let captured = ntp.plus(n * 40 * MS);
            sync.note_frame(captured, start + n * 40 * MS + 20 * MS);
        }
        let presented = sync.present_at(ntp.plus(20_000 * MS)).unwrap();
        let delay = presented - (start + 20_000 * MS);
        assert!((19 * MS..21 * MS).contains(&delay), "{delay:?}");
    }

    #[test]
    fn wild_clocks_do_not_overflow() {
        let start = Instant::now();
        let mut sync = LipSync::new(Duration::ZERO);
        sync.note_frame(NtpTime(0), start);
        sync.note_frame(NtpTime(1 << 63), start);
        sync.note_frame(NtpTime((1 << 63) - 1), start);
        let _ = sync.present_at(NtpTime(1 << 63));
        let _ = sync.present_at(NtpTime((1 << 63) - 1));
    }
}
