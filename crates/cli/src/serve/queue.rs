//! The frames that wait for one viewer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::hub::Sample;

/// Maximum octets of frames that wait for a viewer's thread. A viewer that is further behind goes on at the next
/// key frame.
const WAITING_OCTETS: usize = 16 << 20;
/// Maximum number of frames that wait for a viewer's thread.
pub(super) const WAITING_FRAMES: usize = 512;

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
    tracks: Vec<Place>,
    has_ended: bool,
}

/// Where a viewer is in a track.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// Before its first frame, which is one with which a decoder can begin.
    New,
    /// It gets every frame.
    Follows,
    /// It was too far behind: its next frame is one with which a decoder can begin.
    Behind,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pushed {
    /// It waits for the viewer, or is of no track of its own.
    Waits,
    /// It precedes the viewer's first frame.
    TooEarly,
    /// It is left out because the viewer is behind.
    LeftOut,
}

/// What a viewer's thread gets.
#[derive(Debug)]
pub(super) enum Next {
    Sample(Arc<Sample>),
    /// Nothing came in time.
    Nothing,
    /// What the viewer watches is over.
    End,
}

impl Queue {
    /// Creates the queue of a viewer of so many tracks; one that has ended stays empty.
    pub(super) fn new(tracks: usize, has_ended: bool) -> Self {
        let (samples, tracks) = (VecDeque::new(), vec![Place::New; tracks]);
        let waiting = Waiting { samples, octets: 0, tracks, has_ended };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    /// Adds a frame.
    pub(super) fn push(&self, sample: &Arc<Sample>) -> Pushed {
        let mut waiting = self.lock();
        let Waiting { samples, octets, tracks, .. } = &mut *waiting;
        let Some(place) = tracks.get_mut(sample.track) else { return Pushed::Waits };
        let is_full = *octets >= WAITING_OCTETS || samples.len() >= WAITING_FRAMES;
        if is_full {
            *place = Place::Behind;
        }
        match *place {
            Place::Behind if is_full || !sample.is_key => return Pushed::LeftOut,
            Place::New if !sample.is_key => return Pushed::TooEarly,
            _ => *place = Place::Follows,
        }
        *octets += sample.data.len();
        samples.push_back(sample.clone());
        drop(waiting);
        self.changed.notify_one();
        Pushed::Waits
    }

    /// Ends the queue: the viewer gets what waits, and no more.
    pub(super) fn end(&self) {
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

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
