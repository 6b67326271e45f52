//! Waiting without the interpreter lock, and locks that no hook can hang on.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::thread::ThreadId;
use std::time::Duration;
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::Failure;

/// How long a wait lasts before Python may look at signals.
const SLICE: Duration = Duration::from_millis(50);

/// A wait of so many seconds; `None` has no end.
pub(crate) fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds.filter(|&seconds| seconds != f64::INFINITY) else {
        return Ok(None);
    };
    let wrong = |_| PyValueError::new_err(format!("{seconds} is no number of seconds"));
    Duration::try_from_secs_f64(seconds).map(Some).map_err(wrong)
}

/// Waits by short waits, without the interpreter lock, until one gives something; `None` if none
/// has within `timeout`. Signals are handled between them, so that Ctrl-C ends it.
pub(crate) fn in_slices<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut wait: impl FnMut(Duration) -> Result<Option<T>, Failure> + Send,
) -> PyResult<Option<T>> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let slice = left.unwrap_or(SLICE).min(SLICE);
        if let Some(got) = py.detach(|| wait(slice))? {
            return Ok(Some(got));
        }
        py.check_signals()?;
        if left.is_some_and(|left| left <= slice) {
            return Ok(None);
        }
    }
}

/// A lock that a panicking thread has left is taken over: what it guards is whole between calls.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that uses something, if one does.
type User = Arc<Mutex<Option<ThreadId>>>;

/// Who waits for whom: a thread, and what is used by the thread that it waits for.
static WAITING: Mutex<Vec<(ThreadId, User)>> = Mutex::new(Vec::new());

/// Something that one thread at a time uses. A thread that uses it already, as a hook does that was
/// called meanwhile, is refused rather than left to wait for itself. So is one that waits for itself
/// by way of others: two hooks that want what the other's caller uses would wait for ever.
///
/// To be used without the interpreter lock only: who has this one may wait for that one.
#[derive(Debug)]
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    user: User,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), user: User::default() }
    }

    /// Whether it is this thread that uses it.
    pub(crate) fn is_mine(&self) -> bool {
        *lock(&self.user) == Some(thread::current().id())
    }

    pub(crate) fn with<R>(
        &self,
        act: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait()?,
        };
        // Given back before the value is, also where `act` panics.
        let _use = Use::begin(&self.user);
        act(&mut value)
    }

    /// As [`with`](Self::with), but `None` where a thread uses it.
    pub(crate) fn try_with<R>(
        &self,
        act: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Option<Result<R, Failure>> {
        let mut value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let _use = Use::begin(&self.user);
        Some(act(&mut value))
    }

    /// Whether another thread waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        lock(&WAITING).iter().any(|(_, user)| Arc::ptr_eq(user, &self.user))
    }

    /// Waits until no thread uses it.
    fn wait(&self) -> Result<MutexGuard<'_, T>, Failure> {
        let me = thread::current().id();
        let mut waiting = lock(&WAITING);
        let mut user = self.user.clone();
        // Every step leads to another thread that waits.
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

/// While a thread uses something.
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

/// While a thread is in a call that may run hooks.
pub(crate) struct Call(());

impl Call {
    pub(crate) fn begin() -> Self {
        CALLS.set(CALLS.get() + 1);
        Self(())
    }

    /// Whether this thread is in one: it runs a hook then, and must wait for no other thread that may
    /// want what the call has.
    pub(crate) fn is_running() -> bool {
        CALLS.get() > 0
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.set(CALLS.get() - 1);
    }
}
