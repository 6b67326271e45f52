//! Exclusive access: locks with which a hook cannot deadlock its own thread.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::{Failure, Status};

thread_local! {
    /// The number of turns that this thread holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// Returns whether this thread holds a turn, that is, runs a hook from within a call.
pub(crate) fn is_within_call() -> bool {
    HELD.try_with(Cell::get).is_ok_and(|held| held > 0)
}

pub(crate) fn busy(what: &str) -> Failure {
    Failure::new(Status::Busy, what)
}

/// A value that one thread uses at a time.
///
/// **Invariant:** a thread that holds a turn never waits for another turn, which could deadlock.
#[derive(Debug, Default)]
pub(crate) struct Turn<T>(Mutex<T>);

impl<T> Turn<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the turn. If this thread already holds a turn, does the same as
    /// [`take`](Self::take).
    pub(crate) fn wait(&self) -> Result<Taken<'_, T>, Failure> {
        if is_within_call() {
            return self.take();
        }
        Ok(Taken::new(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Takes the turn if it is free; fails otherwise.
    pub(crate) fn take(&self) -> Result<Taken<'_, T>, Failure> {
        match self.0.try_lock() {
            Ok(guard) => Ok(Taken::new(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Ok(Taken::new(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => Err(busy(
                "another call is in progress that excludes this one, on another thread or further up \
                 on this one",
            )),
        }
    }
}

/// A turn that is held until this is dropped.
pub(crate) struct Taken<'a, T>(MutexGuard<'a, T>);

impl<'a, T> Taken<'a, T> {
    fn new(guard: MutexGuard<'a, T>) -> Self {
        let _ = HELD.try_with(|held| held.set(held.get() + 1));
        Self(guard)
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(1)));
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_a_turn_never_waits() {
        let (one, two) = (Turn::new(1), Turn::new(2));
        let taken = one.wait().unwrap();
        assert_eq!(one.wait().err().map(|failure| failure.status), Some(Status::Busy));
        std::thread::scope(|scope| {
            let (started, has_started) = std::sync::mpsc::channel();
            let (done, is_done) = std::sync::mpsc::channel::<()>();
            let two = &two;
            scope.spawn(move || {
                let _taken = two.wait().unwrap();
                started.send(()).unwrap();
                is_done.recv().unwrap();
            });
            has_started.recv().unwrap();
            assert!(two.wait().is_err());
            done.send(()).unwrap();
        });
        assert_eq!(*two.wait().unwrap() + *taken, 3);
        drop(taken);
        assert!(!is_within_call());
    }
}
