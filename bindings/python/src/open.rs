//! Registry of open objects, which must be closed before the interpreter ends: threads of the
//! library must not call the interpreter afterwards.

use std::sync::{Arc, Mutex, Weak};
use std::thread;

use pyo3::prelude::*;

use crate::error::Failure;
use crate::log;
use crate::wait::lock;

/// An object that is closed when the interpreter ends.
pub(crate) trait Close: Send + Sync {
    /// Closes the object if it is open. Call it without the interpreter lock.
    ///
    /// # Errors
    /// [`Failure::Reentered`] if called from a hook that a call on this thread runs; the object
    /// stays open.
    fn close(&self) -> Result<(), Failure>;
}

/// Closes an object that has been dropped. If a hook may not close it, another thread does.
pub(crate) fn close_dropped(open: &Arc<impl Close + 'static>) {
    if open.close().is_err() {
        let open = Arc::clone(open);
        // If no thread can be started, the object stays open until the interpreter ends.
        let _ = thread::Builder::new().spawn(move || open.close());
    }
}

/// A list of open objects.
#[derive(Default)]
pub(crate) struct Open(Mutex<Vec<Weak<dyn Close>>>);

impl Open {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(crate) fn add(&self, open: &Arc<impl Close + 'static>) {
        let open: Arc<dyn Close> = open.clone();
        let mut list = lock(&self.0);
        list.retain(|open| open.strong_count() > 0);
        list.push(Arc::downgrade(&open));
    }

    /// Closes all objects; an object that refuses stays open and in the list.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        let list = std::mem::take(&mut *lock(&self.0));
        let mut outcome = Ok(());
        let mut refused = Vec::new();
        for weak in list {
            let Some(open) = weak.upgrade() else { continue };
            let closed = open.close();
            if closed.is_err() {
                refused.push(weak);
            }
            outcome = outcome.and(closed);
        }
        lock(&self.0).append(&mut refused);
        outcome
    }
}

/// All open objects of this process.
pub(crate) static OPEN: Open = Open::new();

/// Closes every open stream, server and client, and waits until the messages so far have been
/// passed to `logging`. This happens automatically when the interpreter ends.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    let closed = py.detach(|| {
        let closed = OPEN.close();
        log::finish();
        closed
    });
    Ok(closed?)
}
