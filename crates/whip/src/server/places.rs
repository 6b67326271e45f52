//! A limited number of connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// The connections of a server, oldest first.
pub(super) struct Places {
    max: usize,
    held: Mutex<VecDeque<Arc<State>>>,
}

#[derive(Default)]
struct State {
    /// The request is complete.
    is_complete: AtomicBool,
    evicted: Notify,
}

/// The place of one connection, free again when this is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    state: Arc<State>,
}

impl Places {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, held: Mutex::default() })
    }

    /// Takes a place, if need be that of the oldest connection whose request is incomplete.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= self.max {
            let is_waiting = |state: &Arc<State>| !state.is_complete.load(Ordering::Relaxed);
            let oldest = held.iter().position(is_waiting)?;
            held.remove(oldest)?.evicted.notify_one();
        }
        let state = Arc::<State>::default();
        held.push_back(state.clone());
        drop(held);
        Some(Place { places: self.clone(), state })
    }
}

impl Place {
    /// Returns when another connection took the place.
    pub(super) async fn evicted(&self) {
        self.state.evicted.notified().await;
    }

    /// A function that keeps the place from others from then on.
    pub(super) fn keep(&self) -> impl FnOnce() + use<> {
        let state = self.state.clone();
        move || state.is_complete.store(true, Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_takes_the_place_of_the_oldest_incomplete_one() {
        let places = Places::new(2);
        let first = places.take().unwrap();
        let second = places.take().unwrap();
        first.keep()();
        let third = places.take().unwrap();
        assert_eq!(places.held.lock().unwrap().len(), 2);
        third.keep()();
        assert!(places.take().is_none(), "both are complete");
        drop(second);
        assert!(places.take().is_none(), "its place was taken before");
        drop(first);
        assert!(places.take().is_some());
    }
}
