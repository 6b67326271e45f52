//! The frames that wait for one viewer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::hub::Sample;

/// Maximum octets of a track's frames that wait for a viewer's thread. A viewer that is further behind goes on at the
/// next key frame.
const WAITING_OCTETS: usize = 16 << 20;
/// Maximum number of a track's frames that wait for a viewer's thread.
pub(super) const WAITING_FRAMES: usize = 512;

/// The frames that wait for one viewer.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting {
    tracks: Vec<Lane>,
    has_ended: bool,
}

/// The frames of one track that wait: video that is behind takes no room from sound.
#[derive(Debug)]
struct Lane {
    samples: VecDeque<Arc<Sample>>,
    octets: usize,
    place: Place,
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
        let lane = || Lane { samples: VecDeque::new(), octets: 0, place: Place::New };
        let tracks = std::iter::repeat_with(lane).take(tracks).collect();
        Self { waiting: Mutex::new(Waiting { tracks, has_ended }), changed: Condvar::new() }
    }

    /// Adds a frame.
    pub(super) fn push(&self, sample: &Arc<Sample>) -> Pushed {
        let mut waiting = self.lock();
        let Some(lane) = waiting.tracks.get_mut(sample.track) else { return Pushed::Waits };
        let is_full = lane.octets >= WAITING_OCTETS || lane.samples.len() >= WAITING_FRAMES;
        if is_full {
            lane.place = Place::Behind;
        }
        match lane.place {
            Place::Behind if is_full || !sample.is_key => return Pushed::LeftOut,
            Place::New if !sample.is_key => return Pushed::TooEarly,
            _ => lane.place = Place::Follows,
        }
        lane.octets += sample.data.len();
        lane.samples.push_back(sample.clone());
        drop(waiting);
        self.changed.notify_all();
        Pushed::Waits
    }

    /// Ends the queue: the viewer gets what waits, and no more.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for the next frame of the tracks that `takes` names, at most for `timeout`. Of several tracks' frames the
    /// one that was handed over first is the next.
    pub(super) fn next(&self, timeout: Duration, takes: impl Fn(usize) -> bool) -> Next {
        let waiting = self.lock();
        let first = |waiting: &Waiting| {
            let fronts = waiting.tracks.iter().filter_map(|lane| lane.samples.front());
            fronts.filter(|it| takes(it.track)).min_by_key(|it| it.shown).map(|it| it.track)
        };
        let is_idle = |waiting: &mut Waiting| first(waiting).is_none() && !waiting.has_ended;
        let waited = self.changed.wait_timeout_while(waiting, timeout, is_idle);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let Some(track) = first(&waiting) else {
            return if waiting.has_ended { Next::End } else { Next::Nothing };
        };
        let Some(lane) = waiting.tracks.get_mut(track) else { return Next::Nothing };
        let Some(sample) = lane.samples.pop_front() else { return Next::Nothing };
        lane.octets -= sample.data.len();
        Next::Sample(sample)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
