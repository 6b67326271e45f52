//! What is shown: the latest frames of each track, handed to every viewer.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rushes::Codec;
use rushes::sdp::Encoding;

use super::queue::{Pushed, Queue};
use super::workers::Waker;

/// The shortest interval of requests for key frames on behalf of viewers whose paths carry less than the video.
const LIMITED_INTERVAL: Duration = Duration::from_secs(4);

/// A track of what is shown.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub(super) codec: Codec,
    /// What is known of its media, for descriptions.
    pub(super) encoding: Option<Encoding>,
}

/// A frame on its way to the viewers.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) track: usize,
    pub(super) data: Arc<[u8]>,
    /// Ticks of its track's clock since an instant that all tracks share.
    pub(super) ticks: u32,
    pub(super) captured: Instant,
    /// When it was handed over.
    pub(super) shown: Instant,
    /// Whether a decoder can begin with it.
    pub(super) is_key: bool,
}

/// One show: a file or a live source, or what one publisher sends. A viewer watches one of them, and its tracks and
/// times are those of this one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Show(u64);

/// Hands frames from where they come from to those who watch.
#[derive(Debug, Default)]
pub(super) struct Hub {
    state: Mutex<State>,
    /// Whether a viewer waits for a key frame.
    wants_key: AtomicBool,
    /// Frames that a viewer has not been sent.
    left_out: AtomicU64,
    /// How often a viewer's path carried less than the video.
    limited: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    show: Show,
    tracks: Vec<Track>,
    /// The queues of those who watch the current show.
    viewers: Vec<Weak<Queue>>,
    /// Frames handed over.
    frames: u64,
    /// Whether there will be no further frames.
    has_ended: bool,
    /// When a key frame was last asked for on behalf of viewers whose paths carry less than the video.
    asked_for_limited: Option<Instant>,
}

impl State {
    /// Goes on to a show of these tracks: viewers get what waits of the one before, and no more.
    fn begin(&mut self, tracks: Vec<Track>) {
        self.show.0 += 1;
        self.tracks = tracks;
        self.end_queues();
    }

    fn end_queues(&mut self) {
        let viewers = std::mem::take(&mut self.viewers);
        viewers.iter().filter_map(Weak::upgrade).for_each(|viewer| viewer.end());
    }
}

impl Hub {
    /// Creates a hub that shows these tracks first, as the show [`Show::default`].
    pub(super) fn new(tracks: Vec<Track>) -> Self {
        Self { state: Mutex::new(State { tracks, ..State::default() }), ..Self::default() }
    }

    /// Returns the current show, and its tracks: none while nobody publishes.
    pub(super) fn shown(&self) -> (Show, Vec<Track>) {
        let state = self.lock();
        (state.show, state.tracks.clone())
    }

    /// Begins the show of a publisher. Those who watch the one before are to enter again.
    pub(super) fn begin(&self, tracks: Vec<Track>) -> Show {
        let mut state = self.lock();
        state.begin(tracks);
        state.show
    }

    /// Ends the show of a publisher who has left, if it is still the current one.
    pub(super) fn leave(&self, show: Show) {
        let mut state = self.lock();
        if state.show == show {
            state.begin(Vec::new());
        }
    }

    /// Adds a viewer of `show`, whose thread `waker` wakes; its queue begins with the next key frame. It has ended if that
    /// show is over.
    pub(super) fn watch(&self, show: Show, waker: Option<Waker>) -> Arc<Queue> {
        let mut state = self.lock();
        let is_over = state.has_ended || state.show != show;
        let queue = Arc::new(Queue::new(state.tracks.len(), is_over, waker));
        if !is_over {
            state.viewers.retain(|viewer| viewer.strong_count() > 0);
            state.viewers.push(Arc::downgrade(&queue));
            drop(state);
            self.request_key_frame();
        }
        queue
    }

    /// Hands a frame of `show` to every viewer, if that show is the current one.
    pub(super) fn show(&self, show: Show, sample: Sample) {
        let sample = Arc::new(sample);
        let mut state = self.lock();
        if state.show != show {
            return;
        }
        state.frames += 1;
        let viewers: Vec<_> = state.viewers.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for viewer in viewers {
            let pushed = viewer.push(&sample);
            if pushed == Pushed::LeftOut {
                self.note_left_out();
            }
            if pushed != Pushed::Waits && !sample.is_key {
                self.request_key_frame();
            }
        }
    }

    /// Ends the show: viewers get what waits, and no more.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.end_queues();
    }

    /// Asks the source for a key frame, where it can make one.
    pub(super) fn request_key_frame(&self) {
        self.wants_key.store(true, Relaxed);
    }

    /// Asks for a key frame for a viewer whose path carries less than the video. All viewers get that frame, so all
    /// such viewers together ask once within [`LIMITED_INTERVAL`] at most.
    pub(super) fn request_key_frame_for_limited(&self, now: Instant) {
        let mut state = self.lock();
        let is_recent = |at: Instant| now.saturating_duration_since(at) < LIMITED_INTERVAL;
        if !state.asked_for_limited.is_some_and(is_recent) {
            state.asked_for_limited = Some(now);
            self.request_key_frame();
        }
    }

    /// Returns whether a key frame was asked for since the last call.
    pub(super) fn take_key_request(&self) -> bool {
        self.wants_key.swap(false, Relaxed)
    }

    /// Counts a frame that a viewer is not sent, because it is behind or cannot be reached.
    pub(super) fn note_left_out(&self) {
        self.left_out.fetch_add(1, Relaxed);
    }

    /// Counts a viewer's path that carries less than the video, or still less.
    pub(super) fn note_limited(&self) {
        self.limited.fetch_add(1, Relaxed);
    }

    /// Returns how often a viewer was sent less because its path carries no more.
    pub(super) fn limited(&self) -> u64 {
        self.limited.load(Relaxed)
    }

    /// Returns the number of frames that viewers were not sent; one that two viewers lack counts twice.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    /// Returns the number of frames shown, and of viewers.
    pub(super) fn counts(&self) -> (u64, usize) {
        let state = self.lock();
        let viewers = state.viewers.iter().filter(|viewer| viewer.strong_count() > 0).count();
        (state.frames, viewers)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::{Next, WAITING_FRAMES};
    use super::*;

    const FIRST: Show = Show(0);

    fn tracks() -> Vec<Track> {
        [Codec::H264, Codec::Opus].map(|codec| Track { codec, encoding: None }).to_vec()
    }

    fn hub() -> Hub {
        Hub::new(tracks())
    }

    fn sample(track: usize, ticks: u32, is_key: bool) -> Sample {
        let now = Instant::now();
        Sample { track, data: [0; 1000].into(), ticks, captured: now, shown: now, is_key }
    }

    /// Returns the times of the frames that wait.
    fn waiting(queue: &Queue) -> Vec<u32> {
        let next = || match queue.next(|_| true) {
            Next::Sample(sample) => Some(sample.ticks),
            Next::Nothing | Next::End => None,
        };
        std::iter::from_fn(next).collect()
    }

    fn has_ended(queue: &Queue) -> bool {
        matches!(queue.next(|_| true), Next::End)
    }

    #[test]
    fn a_viewer_begins_with_a_key_frame_and_asks_for_one() {
        let hub = hub();
        hub.show(FIRST, sample(0, 1, true));
        let queue = hub.watch(FIRST, None);
        assert!(hub.take_key_request() && !hub.take_key_request());
        hub.show(FIRST, sample(0, 2, false));
        assert!(hub.take_key_request());
        hub.show(FIRST, sample(1, 3, true));
        hub.show(FIRST, sample(0, 4, true));
        hub.show(FIRST, sample(0, 5, false));
        assert_eq!(waiting(&queue), [3, 4, 5]);
        assert_eq!(hub.left_out(), 0, "it was not behind");
    }

    #[test]
    fn a_viewer_that_is_behind_goes_on_at_the_next_key_frame_and_others_lose_nothing() {
        let hub = hub();
        let (slow, fast) = (hub.watch(FIRST, None), hub.watch(FIRST, None));
        let mut seen = 0;
        for ticks in 0..10_000 {
            hub.show(FIRST, sample(0, ticks, ticks % 100 == 0));
            seen += waiting(&fast).len();
        }
        assert_eq!(seen, 10_000);
        let late = waiting(&slow);
        assert!(late.len() <= WAITING_FRAMES && late[..3] == [0, 1, 2], "{}", late.len());
        hub.show(FIRST, sample(0, 10_001, false));
        hub.show(FIRST, sample(0, 10_002, true));
        assert_eq!(waiting(&slow), [10_002]);
        drop(slow);
        assert_eq!(hub.left_out(), 10_001 - late.len() as u64, "although it has left");
    }

    #[test]
    fn video_that_is_behind_takes_no_room_from_sound() {
        let hub = hub();
        let queue = hub.watch(FIRST, None);
        for ticks in 0..2 * WAITING_FRAMES as u32 {
            hub.show(FIRST, sample(0, ticks, true));
        }
        hub.show(FIRST, sample(1, 7, true));
        let of_sound = |track| track == 1;
        let Next::Sample(sound) = queue.next(of_sound) else { panic!("no sound") };
        assert_eq!(sound.ticks, 7);
        hub.end();
        assert!(matches!(queue.next(of_sound), Next::Nothing), "video still waits");
        assert_eq!(waiting(&queue).len(), WAITING_FRAMES);
        assert!(has_ended(&queue));
    }

    #[test]
    fn limited_viewers_ask_together_and_rarely() {
        let (hub, start) = (hub(), Instant::now());
        let asked = (0..120_u32).filter(|tenth| {
            let now = start + *tenth * Duration::from_millis(100);
            (0..3).for_each(|_| hub.request_key_frame_for_limited(now));
            hub.take_key_request()
        });
        assert_eq!(asked.collect::<Vec<_>>(), [0, 40, 80]);
    }

    #[test]
    fn the_end_is_told_after_the_last_frame() {
        let hub = hub();
        let queue = hub.watch(FIRST, None);
        hub.show(FIRST, sample(0, 1, true));
        hub.end();
        assert_eq!(waiting(&queue), [1]);
        assert!(has_ended(&queue) && has_ended(&hub.watch(FIRST, None)));
    }

    #[test]
    fn viewers_that_have_gone_are_forgotten() {
        let hub = hub();
        for _ in 0..1000 {
            drop(hub.watch(FIRST, None));
        }
        let _queue = hub.watch(FIRST, None);
        assert_eq!((hub.counts(), hub.lock().viewers.len()), ((0, 1), 1));
    }

    #[test]
    fn a_viewer_gets_nothing_of_another_publisher() {
        let hub = Hub::new(Vec::new());
        let first = hub.begin(tracks());
        let (queue, connecting) = (hub.watch(first, None), hub.shown().0);
        hub.show(first, sample(0, 1, true));
        let second = hub.begin(tracks());
        hub.show(second, sample(0, 2, true));
        assert_eq!(waiting(&queue), [1]);
        assert!(has_ended(&queue) && has_ended(&hub.watch(connecting, None)));
        let queue = hub.watch(second, None);
        hub.show(first, sample(0, 3, true));
        hub.show(second, sample(0, 4, true));
        assert_eq!(waiting(&queue), [4]);
        hub.leave(second);
        assert!(has_ended(&queue) && has_ended(&hub.watch(second, None)));
    }

    #[test]
    fn one_who_leaves_late_takes_nothing_from_the_next() {
        let hub = Hub::new(Vec::new());
        let first = hub.begin(tracks());
        let second = hub.begin(tracks());
        let queue = hub.watch(second, None);
        hub.leave(first);
        assert_eq!((hub.shown().0, hub.shown().1.len()), (second, 2));
        assert!(!has_ended(&queue));
        hub.leave(second);
        assert!(hub.shown().1.is_empty());
    }
}
