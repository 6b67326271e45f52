//! One thread that receives from many streams.

use std::collections::HashMap;
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rushes::{PollerWaker, StreamReceiver};

use crate::error::Failure;
use crate::frame::Frame;
use crate::integer::arguments;
use crate::open::{Close, close_dropped};
use crate::stream::{Inner, Receiving, Stream, YIELD_TIME};
use crate::wait::{Exclusive, duration, in_slices};

arguments! {
    token_of: u64 = "token";
}

/// A poller and what belongs to it.
struct Polling {
    active: Exclusive<Option<Active>>,
    waker: PollerWaker,
    /// Whether the next pull that gets no frame ends.
    is_woken: AtomicBool,
    is_closed: AtomicBool,
    #[cfg(target_os = "linux")]
    descriptor: RawFd,
}

/// A poller that is not closed.
struct Active {
    poller: rushes::Poller,
    /// The streams whose receivers the poller has; they stay open.
    streams: HashMap<u64, Py<Stream>>,
    /// Frames that streams had received for event loops before they were added.
    kept: Vec<(u64, rushes::Frame)>,
}

/// Why a wait ended before its timeout.
enum Pulled {
    Frame(u64, rushes::Frame),
    Woken,
}

/// What the poller had of a stream.
struct Removed {
    stream: Py<Stream>,
    receiver: Option<StreamReceiver>,
    kept: Option<rushes::Frame>,
}

impl Removed {
    fn give_back(self) -> Result<(), Failure> {
        let Some(receiver) = self.receiver else { return Ok(()) };
        self.stream.get().inner.take_back(receiver, self.kept)
    }
}

/// The place of a stream in a poller.
pub(crate) struct Polled {
    polling: Weak<Polling>,
    token: u64,
}

impl Polled {
    /// Removes the stream, which is closed.
    pub(crate) fn leave(&self, stream: &Inner) {
        let Some(polling) = self.polling.upgrade() else { return };
        let removed = polling.change(|active| {
            let held = active.streams.get(&self.token);
            // Another one may have the token by now.
            let is_there =
                held.is_some_and(|held| std::ptr::eq(Arc::as_ptr(&held.get().inner), stream));
            Ok(is_there.then(|| active.remove(self.token)))
        });
        // Dropped without the lock.
        drop(removed);
    }
}

impl Active {
    fn pull(&mut self, timeout: Duration) -> Result<Option<(u64, rushes::Frame)>, Failure> {
        match self.kept.pop() {
            Some(kept) => Ok(Some(kept)),
            None => Ok(self.poller.pull(timeout)?),
        }
    }

    fn remove(&mut self, token: u64) -> Option<Removed> {
        let receiver = self.poller.remove(token);
        let place = self.kept.iter().position(|(of, _)| *of == token);
        let kept = place.map(|place| self.kept.swap_remove(place).1);
        Some(Removed { stream: self.streams.remove(&token)?, receiver, kept })
    }
}

impl Polling {
    fn new() -> Result<Self, Failure> {
        let poller = rushes::Poller::new()?;
        Ok(Self {
            waker: poller.waker(),
            is_woken: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            #[cfg(target_os = "linux")]
            descriptor: poller.as_raw_fd(),
            active: Exclusive::new(Some(Active {
                poller,
                streams: HashMap::new(),
                kept: Vec::new(),
            })),
        })
    }

    /// Uses the poller; lets a pull on another thread pause for that.
    fn with<T>(
        &self,
        mut act: impl FnMut(&mut Option<Active>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Some(outcome) = self.active.try_with(&mut act) {
            return outcome;
        }
        self.waker.wake();
        self.active.with(act)
    }

    fn change<T>(
        &self,
        mut act: impl FnMut(&mut Active) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.with(|active| act(active.as_mut().ok_or(Failure::Closed)?))
    }

    /// Waits for a frame, or until it is woken; `None` after the timeout.
    fn pull(&self, timeout: Duration) -> Result<Option<Pulled>, Failure> {
        let end = Instant::now() + timeout;
        loop {
            if self.active.is_awaited() {
                // Unlocking and locking again at once would starve the waiting threads.
                thread::sleep(YIELD_TIME);
            }
            let is_woken = self.is_woken.load(SeqCst);
            let left = end.saturating_duration_since(Instant::now());
            let left = if is_woken { Duration::ZERO } else { left };
            let pulled =
                self.active.with(|active| active.as_mut().ok_or(Failure::Closed)?.pull(left))?;
            if let Some((token, frame)) = pulled {
                return Ok(Some(Pulled::Frame(token, frame)));
            }
            if self.is_woken.swap(false, SeqCst) {
                return Ok(Some(Pulled::Woken));
            }
            // It may have paused for another thread.
            if left.is_zero() || Instant::now() >= end {
                return Ok(None);
            }
        }
    }
}

impl Close for Polling {
    fn close(&self) -> Result<(), Failure> {
        let Some(mut active) = self.with(|active| Ok(active.take()))? else { return Ok(()) };
        self.is_closed.store(true, SeqCst);
        let tokens: Vec<_> = active.streams.keys().copied().collect();
        tokens
            .into_iter()
            .try_for_each(|token| active.remove(token).map_or(Ok(()), Removed::give_back))
    }
}

/// Receives from many streams on one thread: `pull` waits for all of them at once.
///
/// It also does what a pulling thread does for each of them: it reads RTCP, answers requests, and
/// sends reports and what is due of key agreement. Its cost follows what arrives and is due, not the
/// number of streams.
///
/// On Linux it has a descriptor (`fileno`) that is readable while `pull` has something to do, for
/// the event loops of `asyncio` and `selectors`. Leaving a `with` block closes it; its streams stay
/// open.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Poller {
    polling: Arc<Polling>,
}

#[pymethods]
impl Poller {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self { polling: Arc::new(Polling::new()?) })
    }

    /// Adds a stream: from now on `pull` returns its frames, with `token`, a number that no other
    /// stream of the poller has. Set `on_event` before.
    ///
    /// The poller keeps the stream open until it is removed. The stream still sends, and has its
    /// counters and its RTCP. It leaves the poller when it is closed.
    fn add(
        &self,
        py: Python<'_>,
        stream: Py<Stream>,
        #[pyo3(from_py_with = token_of)] token: u64,
    ) -> PyResult<()> {
        let mut adding = Some(stream);
        Ok(py.detach(|| {
            let polling = Arc::downgrade(&self.polling);
            self.polling.change(|active| {
                if active.poller.contains(token) {
                    return Err(rushes::Error::TokenTaken { token }.into());
                }
                let Some(stream) = adding.take() else { return Ok(()) };
                let inner = &stream.get().inner;
                inner.hook(|receiver| {
                    let kept = inner.take_kept();
                    active.poller.add(*receiver, token)?;
                    active.kept.extend(kept.map(|frame| (token, frame)));
                    Ok(Receiving::Polled(Polled { polling: polling.clone(), token }))
                })?;
                if !active.kept.is_empty() {
                    // Makes the descriptor readable.
                    active.poller.waker().wake();
                }
                active.streams.insert(token, stream);
                Ok(())
            })
        })?)
    }

    /// Adds a stream that only sends: `pull` reads and answers its reports and requests, and gives
    /// no frame of it. It leaves the poller when it is closed; the poller does not keep it open.
    ///
    /// A push of such a stream makes no system call to look for reports, so `pull` must be called a
    /// few times a second at least.
    fn add_sender(
        &self,
        py: Python<'_>,
        stream: Py<Stream>,
        #[pyo3(from_py_with = token_of)] token: u64,
    ) -> PyResult<()> {
        let inner = &stream.get().inner;
        Ok(py.detach(|| {
            self.polling
                .change(|active| inner.send(|sender| active.poller.add_sender(sender, token)))
        })?)
    }

    /// Removes the stream of a token, which can then be pulled again; returns it, or `None` if none
    /// was added with `add`.
    fn remove(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = token_of)] token: u64,
    ) -> PyResult<Option<Py<Stream>>> {
        let removed = py.detach(|| self.polling.change(|active| Ok(active.remove(token))))?;
        let Some(removed) = removed else { return Ok(None) };
        let stream = removed.stream.clone_ref(py);
        py.detach(|| removed.give_back())?;
        Ok(Some(stream))
    }

    /// Waits for the next frame of any stream, at most for `timeout` seconds; returns the stream's
    /// token and the frame. `None` if none arrived, or after `wake`. With 0 it reads what has
    /// arrived, does what is due, and does not wait; with `None` it waits until there is one.
    #[pyo3(signature = (timeout = None))]
    fn pull(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<(u64, Py<Frame>)>> {
        let pulled = in_slices(py, duration(timeout)?, |slice| self.polling.pull(slice))?;
        let Some(Pulled::Frame(token, frame)) = pulled else { return Ok(None) };
        Ok(Some((token, Frame::wrap(py, frame)?)))
    }

    /// Returns for how many seconds `pull` has nothing to do if no packet arrives; 0 if it has now,
    /// and `None` for ever. Each pull may change it.
    fn timeout(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let timeout = py.detach(|| {
            self.polling.change(|active| {
                let is_now = !active.kept.is_empty();
                Ok(if is_now { Some(Duration::ZERO) } else { active.poller.timeout() })
            })
        })?;
        Ok(timeout.map(|timeout| timeout.as_secs_f64()))
    }

    /// Returns the descriptor that is readable while `pull` has something to do: wait for it, then
    /// call `pull(0)` until it returns `None`. It must neither be read nor closed. Linux only;
    /// elsewhere it raises `NotImplementedError`, and `pull` is called every few milliseconds.
    fn fileno(&self) -> PyResult<i32> {
        if self.closed() {
            return Err(Failure::Closed.into());
        }
        #[cfg(target_os = "linux")]
        return Ok(self.polling.descriptor);
        #[cfg(not(target_os = "linux"))]
        return Err(pyo3::exceptions::PyNotImplementedError::new_err(
            "pollers have descriptors on Linux only",
        ));
    }

    /// Lets a `pull` on another thread return `None`, or the next one if there is none.
    fn wake(&self) {
        self.polling.is_woken.store(true, SeqCst);
        self.polling.waker.wake();
    }

    /// Closes the poller. Its streams stay open, and can be pulled again; a waiting `pull` raises
    /// `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.polling.close())?)
    }

    /// Whether the poller was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.polling.is_closed.load(SeqCst)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<rushes.Poller, {}>", if self.closed() { "closed" } else { "open" })
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        Python::try_attach(|py| py.detach(|| close_dropped(&self.polling)));
    }
}
