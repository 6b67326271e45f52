//! How much of the video one viewer is sent: all of it, or what its path carries.

use std::time::{Duration, Instant};

/// A path that loses more of the packets than this, in 1/256 as reports say it (RFC 3550 section 6.4.1), for
/// [`LOSSY_TIME`] carries less than the video: 10 %.
const LOSSY: u8 = 26;
/// A path that loses no more than this may carry more: 2 %.
const CLEAN: u8 = 5;
/// How long a path is lossy before the viewer is sent less, and less again. Radio links recover within that.
const LOSSY_TIME: Duration = Duration::from_secs(2);
/// How long a path is clean before the viewer is sent more.
const CLEAN_TIME: Duration = Duration::from_secs(4);
/// What is taken of the rate that arrives: headers, retransmissions and sound take the rest.
const OF_ARRIVING: f64 = 0.8;
/// By how much the rate grows at a time.
const GROWTH: f64 = 1.2;
/// The lowest rate, in bits a second: below it even key frames would take many seconds.
const MIN: f64 = 100_000.0;
/// How late a picture is sent at most to a viewer whose path carries less.
const LATE: Duration = Duration::from_secs(1);
/// How long a viewer whose path carries less waits for a key frame that comes by itself, before the source is asked.
const WAIT: Duration = Duration::from_secs(3);
/// Requests that arrive so soon after a key frame was sent were made before it arrived, and are ignored.
const ANSWERED: Duration = Duration::from_millis(500);
/// Over how long the rate of the video is measured, at least at first and then: groups of pictures are shorter.
const MEASURED_FIRST: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);

/// A change of what a viewer is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Change {
    /// Its path carries less than the video, or less than that before: so many bits per second.
    Less(u64),
    /// It may carry so many.
    More(u64),
    /// It carries the video.
    All,
}

/// What of a video one viewer is sent. Behind a path that carries less, pictures are sent one after the other at the
/// rate of the path; once they are too late, nothing is sent until a key frame. So the viewer gets whole pictures
/// with pauses, rather than damaged ones.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Bits a second that are sent, if that is not everything.
    limit: Option<f64>,
    /// Since when everything is left out until a key frame.
    waiting: Option<Instant>,
    /// When the last key frame was sent.
    key_sent: Option<Instant>,
    /// Since when the path is lossy, or clean.
    lossy: Option<Instant>,
    clean: Option<Instant>,
    video: Rate,
}

/// The bit rate of the video.
#[derive(Debug, Default)]
struct Rate {
    since: Option<Instant>,
    octets: usize,
    /// Bits a second before that.
    measured: Option<f64>,
}

impl Rate {
    fn count(&mut self, octets: usize) {
        self.octets = self.octets.saturating_add(octets);
    }

    /// Returns the rate; `None` before it is known.
    fn bits_per_second(&mut self, now: Instant) -> Option<f64> {
        let Some(since) = self.since else {
            (self.since, self.octets) = (Some(now), 0);
            return None;
        };
        let elapsed = now.saturating_duration_since(since);
        let rate = self.octets as f64 * 8.0 / elapsed.as_secs_f64().max(1e-3);
        if elapsed >= MEASURED {
            (self.since, self.octets, self.measured) = (Some(now), 0, Some(rate));
        }
        self.measured.or_else(|| (elapsed >= MEASURED_FIRST).then_some(rate))
    }
}

impl Share {
    /// Returns whether a frame of `len` octets is sent, which was handed over `late` before `now`.
    pub(super) fn takes(&mut self, len: usize, is_key: bool, late: Duration, now: Instant) -> bool {
        self.video.count(len);
        if self.is_limited() && late > LATE {
            self.waiting.get_or_insert(now);
        } else if is_key {
            self.waiting = None;
        }
        self.waiting.is_none()
    }

    /// Notes that a key frame was sent, all of it.
    pub(super) fn note_key_frame(&mut self, now: Instant) {
        self.key_sent = Some(now);
    }

    /// Takes a report of the viewer: the fraction of the packets that it has lost since its last, in 1/256. Returns a
    /// change of what it is sent.
    pub(super) fn take_report(&mut self, fraction_lost: u8, now: Instant) -> Option<Change> {
        let video = self.video.bits_per_second(now)?;
        if fraction_lost >= LOSSY {
            self.clean = None;
            let since = *self.lossy.get_or_insert(now);
            let is_lasting = now.saturating_duration_since(since) >= LOSSY_TIME;
            return if is_lasting { self.shrink(fraction_lost, video, now) } else { None };
        }
        self.lossy = None;
        if fraction_lost > CLEAN {
            self.clean = None;
            return None;
        }
        let since = *self.clean.get_or_insert(now);
        let is_lasting = now.saturating_duration_since(since) >= CLEAN_TIME;
        if is_lasting { self.grow(video, now) } else { None }
    }

    fn shrink(&mut self, fraction_lost: u8, video: f64, now: Instant) -> Option<Change> {
        // The next rate is judged by what it does.
        self.lossy = Some(now);
        let sent = self.limit.unwrap_or(video);
        let arriving = sent * (1.0 - f64::from(fraction_lost) / 256.0);
        let limit = (arriving * OF_ARRIVING).max(MIN);
        if limit >= sent {
            return None;
        }
        self.limit = Some(limit);
        Some(Change::Less(whole(limit)))
    }

    fn grow(&mut self, video: f64, now: Instant) -> Option<Change> {
        let limit = self.limit? * GROWTH;
        self.clean = Some(now);
        let carries_all = limit > video * GROWTH;
        self.limit = Some(limit).filter(|_| !carries_all);
        Some(if carries_all { Change::All } else { Change::More(whole(limit)) })
    }

    /// Leaves out all pictures until the next key frame, as the viewer cannot decode them. Does nothing just after a
    /// key frame was sent: the viewer had not received it when it made the request.
    pub(super) fn await_key_frame(&mut self, now: Instant) {
        let is_answered = |at: Instant| now.saturating_duration_since(at) < ANSWERED;
        if !self.key_sent.is_some_and(is_answered) {
            self.waiting.get_or_insert(now);
        }
    }

    /// Returns whether no key frame comes by itself: the source is to be asked for one.
    pub(super) fn is_starved(&self, now: Instant) -> bool {
        self.waiting.is_some_and(|since| now.saturating_duration_since(since) >= WAIT)
    }

    /// Returns whether the viewer is sent less than everything.
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }
}

/// Returns a rate without its fraction.
#[allow(clippy::cast_sign_loss, reason = "rates are not negative")]
fn whole(rate: f64) -> u64 {
    rate as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Plays a video of 2.2 Mbit/s to a viewer.
    struct Viewer {
        share: Share,
        start: Instant,
        /// When the last picture was sent.
        now: Duration,
        picture: u32,
        /// Whether key frames come on request only, and the next picture is one.
        on_request: Option<bool>,
        /// Whether a frame was sent since the last report.
        has_sent: bool,
        changes: Vec<Change>,
    }

    impl Viewer {
        fn new() -> Self {
            let (share, start) = (Share::default(), Instant::now());
            let (now, changes, on_request) = (Duration::ZERO, Vec::new(), None);
            Self { share, start, now, picture: 0, on_request, has_sent: false, changes }
        }

        /// Plays a second, of which the path carries so many bits; returns the numbers of the pictures that are sent.
        /// Of 30 a second every 60th is a key frame, or those that are asked for. There is a report if a picture was
        /// sent, as of receivers.
        fn second(&mut self, capacity: f64) -> Vec<u32> {
            let (mut numbers, mut bits) = (Vec::new(), 0.0);
            for _ in 0..30 {
                let is_key = match &mut self.on_request {
                    None => self.picture.is_multiple_of(60),
                    Some(is_asked) => std::mem::take(is_asked) || self.picture == 0,
                };
                let len = if is_key { 60_000 } else { 8_000 };
                let shown = self.picture * SECOND / 30;
                self.now = self.now.max(shown);
                let late = self.now.saturating_sub(shown);
                if self.share.takes(len, is_key, late, self.start + self.now) {
                    numbers.push(self.picture);
                    bits += len as f64 * 8.0;
                    let pace = self.share.limit.map_or(0.0, |limit| len as f64 * 8.0 / limit);
                    self.now += Duration::from_secs_f64(pace);
                    if is_key {
                        self.share.note_key_frame(self.start + self.now);
                    }
                } else if let Some(is_asked) = &mut self.on_request {
                    *is_asked = self.share.is_starved(self.start + self.now);
                }
                self.picture += 1;
            }
            self.has_sent |= !numbers.is_empty();
            let sent = self.share.limit.map_or(bits, |limit| bits.min(limit));
            let lost = (1.0 - capacity / sent.max(1.0)).max(0.0);
            let now = self.start + self.picture * SECOND / 30;
            let lost = u8::try_from(whole(lost * 255.0)).unwrap();
            if std::mem::take(&mut self.has_sent) {
                self.changes.extend(self.share.take_report(lost, now));
            }
            numbers
        }

        fn seconds(&mut self, seconds: u32, capacity: f64) -> Vec<u32> {
            (0..seconds).flat_map(|_| self.second(capacity)).collect()
        }
    }

    #[test]
    fn a_viewer_whose_path_carries_the_video_is_sent_everything() {
        let mut viewer = Viewer::new();
        assert_eq!(viewer.seconds(60, 1e9).len(), 1_800);
        assert_eq!(viewer.changes, []);
    }

    #[test]
    fn a_short_disturbance_changes_nothing() {
        let mut viewer = Viewer::new();
        for second in 0..60 {
            let capacity = if second % 10 < 2 { 1e5 } else { 1e9 };
            assert_eq!(viewer.second(capacity).len(), 30);
        }
        assert_eq!(viewer.changes, []);
    }

    #[test]
    fn behind_half_the_rate_whole_groups_of_pictures_come_with_pauses() {
        let mut viewer = Viewer::new();
        viewer.seconds(20, 1e6);
        assert!(matches!(viewer.changes[0], Change::Less(rate) if rate < 1_000_000));
        let sent = viewer.seconds(60, 1e6);
        // What is sent can be decoded: each picture follows the one before it, or is a key frame.
        let is_decodable = |pair: &[u32]| pair[1] == pair[0] + 1 || pair[1].is_multiple_of(60);
        assert!(sent.windows(2).all(is_decodable), "{sent:?}");
        // About half of them, and more than key frames.
        assert!((300..1_300).contains(&sent.len()), "{}", sent.len());
        assert!(!viewer.changes.contains(&Change::All), "{:?}", viewer.changes);
    }

    #[test]
    fn everything_is_sent_again_when_the_path_carries_it() {
        let mut viewer = Viewer::new();
        viewer.seconds(20, 500_000.0);
        assert!(viewer.share.is_limited());
        viewer.seconds(120, 1e9);
        assert_eq!(viewer.changes.last(), Some(&Change::All));
        assert_eq!(viewer.seconds(10, 1e9).len(), 300);
    }

    #[test]
    fn a_source_that_makes_key_frames_on_request_is_asked() {
        let mut viewer = Viewer { on_request: Some(false), ..Viewer::new() };
        viewer.seconds(20, 500_000.0);
        assert!(viewer.share.is_limited());
        let sent = viewer.seconds(60, 500_000.0);
        // A key frame of 60 kB alone takes longer than a second; there is no pause of five.
        let is_near = |pair: &[u32]| pair[1] - pair[0] < 150;
        assert!(sent.len() >= 12 && sent.windows(2).all(is_near), "{sent:?}");
        viewer.seconds(120, 1e9);
        assert_eq!(viewer.changes.last(), Some(&Change::All));
        assert_eq!(viewer.seconds(10, 1e9).len(), 300);
    }

    #[test]
    fn after_a_pause_a_viewer_goes_on_with_a_key_frame() {
        let now = Instant::now();
        let mut share = Share { limit: Some(1e6), ..Share::default() };
        let takes = |share: &mut Share, is_key, late| share.takes(1, is_key, late, now);
        assert!(takes(&mut share, true, Duration::ZERO) && takes(&mut share, false, LATE));
        assert!(!takes(&mut share, false, 2 * LATE) && !takes(&mut share, false, Duration::ZERO));
        share.limit = None;
        assert!(
            !takes(&mut share, false, Duration::ZERO) && takes(&mut share, true, Duration::ZERO)
        );
        assert!(takes(&mut share, false, 2 * LATE), "it gets everything");
        share.await_key_frame(now);
        assert!(
            !takes(&mut share, false, Duration::ZERO) && takes(&mut share, true, Duration::ZERO)
        );
    }

    #[test]
    fn a_request_that_a_key_frame_has_answered_changes_nothing() {
        let now = Instant::now();
        let mut share = Share { limit: Some(1e6), ..Share::default() };
        share.note_key_frame(now);
        share.await_key_frame(now + ANSWERED / 2);
        assert!(share.takes(1, false, Duration::ZERO, now + ANSWERED / 2));
        share.await_key_frame(now + ANSWERED);
        assert!(!share.takes(1, false, Duration::ZERO, now + ANSWERED));
        assert!(!share.is_starved(now + WAIT) && share.is_starved(now + ANSWERED + WAIT));
    }

    #[test]
    fn a_path_that_carries_nothing_leaves_a_trickle() {
        let mut viewer = Viewer::new();
        viewer.seconds(60, 0.0);
        assert_eq!(viewer.changes.last(), Some(&Change::Less(whole(MIN))));
        let sent = viewer.seconds(60, 0.0);
        assert!(
            !sent.is_empty() && sent.iter().all(|number| number.is_multiple_of(60)),
            "{sent:?}"
        );
    }
}
