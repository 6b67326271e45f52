//! What is shown: the latest frames of each track, handed to every viewer.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rushes::Codec;
use rushes::sdp::Encoding;

/// Maximum octets of frames that wait for a viewer's thread. A viewer that is further behind goes on at the next
/// key frame.
const WAITING_OCTETS: usize = 16 << 20;
/// Maximum number of frames that wait for a viewer's thread.
const WAITING_FRAMES: usize = 512;

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
    pub(super) data: Vec<u8>,
    /// Ticks of its track's clock since an instant of the hub's.
    pub(super) ticks: u32,
    pub(super) captured: Instant,
    /// Whether a decoder can begin with it.
    pub(super) is_key: bool,
}

/// Hands frames from where they come from to those who watch.
#[derive(Debug, Default)]
pub(super) struct Hub {
    state: Mutex<State>,
    /// Whether a viewer waits for a key frame.
    wants_key: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    tracks: Vec<Track>,
    viewers: Vec<Weak<Queue>>,
    /// Frames handed over.
    frames: u64,
    /// Whether there will be no further frames.
    has_ended: bool,
}

impl Hub {
    /// Creates a hub of these tracks.
    pub(super) fn new(tracks: Vec<Track>) -> Self {
        let state = Mutex::new(State { tracks, ..State::default() });
        Self { state, wants_key: AtomicBool::new(false) }
    }

    /// Returns what is shown; nothing while nobody publishes.
    pub(super) fn tracks(&self) -> Vec<Track> {
        self.lock().tracks.clone()
    }

    /// Shows other tracks from now on: those of a publisher.
    pub(super) fn set_tracks(&self, tracks: Vec<Track>) {
        self.lock().tracks = tracks;
    }

    /// Adds a viewer; its queue begins with the next key frame.
    pub(super) fn watch(&self) -> Arc<Queue> {
        let mut state = self.lock();
        let queue = Arc::new(Queue::new(state.tracks.len(), state.has_ended));
        state.viewers.retain(|viewer| viewer.strong_count() > 0);
        state.viewers.push(Arc::downgrade(&queue));
        drop(state);
        self.request_key_frame();
        queue
    }

    /// Hands a frame to every viewer.
    pub(super) fn show(&self, sample: Sample) {
        let sample = Arc::new(sample);
        let mut state = self.lock();
        state.frames += 1;
        let viewers: Vec<_> = state.viewers.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for viewer in viewers {
            if !viewer.push(&sample) {
                self.request_key_frame();
            }
        }
    }

    /// Ends the show: viewers get what waits, and no more.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let viewers: Vec<_> = state.viewers.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        viewers.iter().for_each(|viewer| viewer.end());
    }

    /// Asks the source for a key frame, where it can make one.
    pub(super) fn request_key_frame(&self) {
        self.wants_key.store(true, Relaxed);
    }

    /// Returns whether a key frame was asked for since the last call.
    pub(super) fn take_key_request(&self) -> bool {
        self.wants_key.swap(false, Relaxed)
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

/// The frames that wait for one viewer.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting {
    samples: VecDeque<Arc<Sample>>,
    octets: usize,
    /// For each track, whether its next frame must be one with which a decoder can begin.
    needs_key: Vec<bool>,
    /// Frames left out because the viewer was behind.
    left_out: u64,
    has_ended: bool,
}

/// What a viewer's thread gets.
#[derive(Debug)]
pub(super) enum Next {
    Sample(Arc<Sample>),
    /// Nothing came in time.
    Nothing,
    /// The show is over.
    End,
}

impl Queue {
    fn new(tracks: usize, has_ended: bool) -> Self {
        let waiting = Waiting {
            samples: VecDeque::new(),
            octets: 0,
            needs_key: vec![true; tracks],
            left_out: 0,
            has_ended,
        };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    /// Adds a frame; returns `false` if the viewer needs a key frame first.
    fn push(&self, sample: &Arc<Sample>) -> bool {
        let mut waiting = self.lock();
        let Waiting { samples, octets, needs_key, left_out, .. } = &mut *waiting;
        let Some(needs_key) = needs_key.get_mut(sample.track) else { return true };
        if *octets >= WAITING_OCTETS || samples.len() >= WAITING_FRAMES {
            *needs_key = true;
        }
        if *needs_key && !sample.is_key {
            *left_out += 1;
            return false;
        }
        if *octets >= WAITING_OCTETS || samples.len() >= WAITING_FRAMES {
            *left_out += 1;
            return true;
        }
        *needs_key = false;
        *octets += sample.data.len();
        samples.push_back(sample.clone());
        drop(waiting);
        self.changed.notify_one();
        true
    }

    fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for the next frame, at most for `timeout`.
    pub(super) fn next(&self, timeout: Duration) -> Next {
        let waiting = self.lock();
        let is_idle = |waiting: &mut Waiting| waiting.samples.is_empty() && !waiting.has_ended;
        let waited = self.changed.wait_timeout_while(waiting, timeout, is_idle);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match waiting.samples.pop_front() {
            Some(sample) => {
                waiting.octets -= sample.data.len();
                Next::Sample(sample)
            }
            None if waiting.has_ended => Next::End,
            None => Next::Nothing,
        }
    }

    /// Returns the number of frames left out because the viewer was behind, or had just come.
    pub(super) fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> Hub {
        let track = |codec| Track { codec, encoding: None };
        Hub::new(vec![track(Codec::H264), track(Codec::Opus)])
    }

    fn sample(track: usize, ticks: u32, is_key: bool) -> Sample {
        Sample { track, data: vec![0; 1000], ticks, captured: Instant::now(), is_key }
    }

    /// Returns the times of the frames that wait.
    fn waiting(queue: &Queue) -> Vec<u32> {
        let next = || match queue.next(Duration::ZERO) {
            Next::Sample(sample) => Some(sample.ticks),
            Next::Nothing | Next::End => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_viewer_begins_with_a_key_frame_and_asks_for_one() {
        let hub = hub();
        hub.show(sample(0, 1, true));
        let queue = hub.watch();
        assert!(hub.take_key_request() && !hub.take_key_request());
        hub.show(sample(0, 2, false));
        assert!(hub.take_key_request());
        hub.show(sample(1, 3, true));
        hub.show(sample(0, 4, true));
        hub.show(sample(0, 5, false));
        assert_eq!(waiting(&queue), [3, 4, 5]);
        assert_eq!(queue.left_out(), 1);
    }

    #[test]
    fn a_viewer_that_is_behind_goes_on_at_the_next_key_frame_and_others_lose_nothing() {
        let hub = hub();
        let (slow, fast) = (hub.watch(), hub.watch());
        let mut seen = 0;
        for ticks in 0..10_000 {
            hub.show(sample(0, ticks, ticks % 100 == 0));
            seen += waiting(&fast).len();
        }
        assert_eq!(seen, 10_000);
        let late = waiting(&slow);
        assert!(late.len() <= WAITING_FRAMES && late[..3] == [0, 1, 2], "{}", late.len());
        hub.show(sample(0, 10_001, false));
        hub.show(sample(0, 10_002, true));
        assert_eq!(waiting(&slow), [10_002]);
    }

    #[test]
    fn the_end_is_told_after_the_last_frame() {
        let hub = hub();
        let queue = hub.watch();
        hub.show(sample(0, 1, true));
        hub.end();
        assert!(matches!(queue.next(Duration::from_secs(10)), Next::Sample(_)));
        assert!(matches!(queue.next(Duration::from_secs(10)), Next::End));
        assert!(matches!(hub.watch().next(Duration::from_secs(10)), Next::End));
    }

    #[test]
    fn viewers_that_have_gone_are_forgotten() {
        let hub = hub();
        for _ in 0..1000 {
            drop(hub.watch());
        }
        let _queue = hub.watch();
        assert_eq!((hub.counts(), hub.lock().viewers.len()), ((0, 1), 1));
    }
}
