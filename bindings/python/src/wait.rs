//! Waiting without the interpreter lock, and locks that report a deadlock with a hook.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::Failure;
use crate::log::take_level;

/// Maximum time of a wait before Python handles signals.
pub(crate) const WAIT_SLICE: Duration = Duration::from_millis(50);

/// Converts a timeout in seconds; `None` means no limit.
pub(crate) fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds.filter(|&seconds| seconds != f64::INFINITY) else {
        return Ok(None);
    };
    let wrong = |_| PyValueError::new_err(format!("{seconds} is not a valid number of seconds"));
    Duration::try_from_secs_f64(seconds).map(Some).map_err(wrong)
}

/// Waits repeatedly for short times, without the interpreter lock, until a wait returns a value.
/// Returns `None` after `timeout`. In between it handles signals, so that Ctrl-C interrupts it, and
/// changes of the log level.
pub(crate) fn in_slices<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut wait: impl FnMut(Duration) -> Result<Option<T>, Failure> + Send,
) -> PyResult<Option<T>> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let slice = left.unwrap_or(WAIT_SLICE).min(WAIT_SLICE);
        if let Some(got) = py.detach(|| wait(slice))? {
            return Ok(Some(got));
        }
        py.check_signals()?;
        take_level(py);
        if left.is_some_and(|left| left <= slice) {
            return Ok(None);
        }
    }
}

/// Locks a mutex, ignoring poisoning: its value is consistent between calls.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that uses a value, if one does.
type User = Arc<Mutex<Option<ThreadId>>>;

/// Waiting threads, each with the user of the value that it waits for.
static WAITING: Mutex<Vec<(ThreadId, User)>> = Mutex::new(Vec::new());

/// A value that only one thread at a time uses. A thread that already uses it, for example in a
/// hook called meanwhile, gets an error instead of waiting for itself. A thread that would wait for
/// itself through others gets the error, too: two hooks that each need the value in use by the
/// other's caller would deadlock.
///
/// It must be used without the interpreter lock, because the thread that uses the value may wait
/// for that lock.
#[derive(Debug)]
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    user: User,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), user: User::default() }
    }

    /// Returns whether this thread uses the value.
    pub(crate) fn is_used_here(&self) -> bool {
        *lock(&self.user) == Some(thread::current().id())
    }

    pub(crate) fn with<R>(
        &self,
        act: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait()?,
        };
        act(&mut Used::begin(value, &self.user).value)
    }

    /// Like [`with`](Self::with), but returns `None` if a thread uses the value.
    pub(crate) fn try_with<R>(
        &self,
        act: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Option<Result<R, Failure>> {
        Some(act(&mut self.try_use()?.value))
    }

    /// Uses the value until the result is dropped; returns `None` if a thread uses it.
    pub(crate) fn try_use(&self) -> Option<Used<'_, T>> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Used::begin(value, &self.user))
    }

    /// Returns whether another thread waits for the value.
    pub(crate) fn is_awaited(&self) -> bool {
        lock(&WAITING).iter().any(|(_, user)| Arc::ptr_eq(user, &self.user))
    }

    /// Waits until no thread uses the value.
    fn wait(&self) -> Result<MutexGuard<'_, T>, Failure> {
        let me = thread::current().id();
        let mut waiting = lock(&WAITING);
        let mut user = self.user.clone();
        // Each step leads to another waiting thread, so there are at most as many steps as waiting
        // threads.
        for _ in 0..=waiting.len() {
            let Some(thread) = *lock(&user) else { break };
            if thread == me {
                return Err(Failure::Reentered);
            }
            let next = waiting.iter().find(|(waiter, _)| *waiter == thread);
            let Some((_, next)) = next else { break };
            user = next.clone();
        }
        waiting.push((me, self.user.clone()));
        drop(waiting);
        let value = lock(&self.value);
        lock(&WAITING).retain(|(waiter, _)| *waiter != me);
        Ok(value)
    }
}

/// A value that this thread uses.
pub(crate) struct Used<'a, T> {
    /// Dropped before the value is unlocked, even after a panic.
    _use: Use<'a>,
    pub(crate) value: MutexGuard<'a, T>,
}

impl<'a, T> Used<'a, T> {
    fn begin(value: MutexGuard<'a, T>, user: &'a Mutex<Option<ThreadId>>) -> Self {
        Self { _use: Use::begin(user), value }
    }
}

/// Marks a value as used by a thread.
struct Use<'a>(&'a Mutex<Option<ThreadId>>, Call);

impl<'a> Use<'a> {
    fn begin(user: &'a Mutex<Option<ThreadId>>) -> Self {
        *lock(user) = Some(thread::current().id());
        Self(user, Call::begin())
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Marks a thread as being in a call that may run hooks.
pub(crate) struct Call(());

impl Call {
    pub(crate) fn begin() -> Self {
        CALLS.set(CALLS.get() + 1);
        Self(())
    }

    /// Returns whether this thread is in such a call. It then runs a hook and must not wait for a
    /// thread that may need an object held by the call.
    pub(crate) fn is_running() -> bool {
        CALLS.get() > 0
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.set(CALLS.get() - 1);
    }
}
