//! The frames that wait for one viewer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hub::Sample;
use super::workers::Waker;

/// Maximum octets of a track's frames that wait for a viewer's thread. A viewer that is further behind goes on at the
/// next key frame.
const WAITING_OCTETS: usize = 16 << 20;
/// Maximum number of a track's frames that wait for a viewer's thread.
pub(super) const WAITING_FRAMES: usize = 512;

/// The frames that wait for one viewer.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// Wakes the thread of the viewer when there is something new.
    waker: Option<Waker>,
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
    /// Nothing waits at present.
    Nothing,
    /// What the viewer watches is over.
    End,
}

impl Queue {
    /// Creates the queue of a viewer of so many tracks; one that has ended stays empty.
    pub(super) fn new(tracks: usize, has_ended: bool, waker: Option<Waker>) -> Self {
        let lane = || Lane { samples: VecDeque::new(), octets: 0, place: Place::New };
        let tracks = std::iter::repeat_with(lane).take(tracks).collect();
        Self { waiting: Mutex::new(Waiting { tracks, has_ended }), waker }
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
        self.wake();
        Pushed::Waits
    }

    /// Ends the queue: the viewer gets what waits, and no more.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.wake();
    }

    /// Takes the next frame of the tracks that `takes` names. Of several tracks' frames the one that was handed over
    /// first is the next. The end comes after the frames of all tracks.
    pub(super) fn next(&self, takes: impl Fn(usize) -> bool) -> Next {
        let mut waiting = self.lock();
        let fronts = waiting.tracks.iter().filter_map(|lane| lane.samples.front());
        let first = fronts.filter(|it| takes(it.track)).min_by_key(|it| it.shown);
        let Some(track) = first.map(|it| it.track) else {
            let is_empty = waiting.tracks.iter().all(|lane| lane.samples.is_empty());
            return if waiting.has_ended && is_empty { Next::End } else { Next::Nothing };
        };
        let Some(lane) = waiting.tracks.get_mut(track) else { return Next::Nothing };
        let Some(sample) = lane.samples.pop_front() else { return Next::Nothing };
        lane.octets -= sample.data.len();
        Next::Sample(sample)
    }

    fn wake(&self) {
        self.waker.iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
