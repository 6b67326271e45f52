//! A media stream, with its sending and its receiving half.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rushes::{
    FrameElements, Hook, Pacing, Placement, RtpTimestamp, StreamHandle, StreamReceiver,
    StreamSender,
};

use crate::error::{ConfigError, Failure, report_unraisable};
use crate::events;
use crate::frame::{Frame, instant};
use crate::input::Input;
use crate::integer::optional_arguments;
use crate::open::{Close, OPEN, Open, close_dropped};
use crate::poller::Polled;
use crate::rtcp::Rtcp;
use crate::security::MasterKey;
use crate::stats::Statistics;
use crate::wait::{Call, Exclusive, duration, in_slices, lock};

optional_arguments! {
    timestamp_of: i64 = "timestamp";
    rate_of: u64 = "rate";
}

/// How long a thread that receives repeatedly leaves the stream to waiting threads.
pub(crate) const YIELD_TIME: Duration = Duration::from_millis(1);

/// The parts of a stream, which different threads may use at the same time.
pub(crate) struct Inner {
    pub(crate) sender: Exclusive<Option<StreamSender>>,
    receiver: Exclusive<Receiving>,
    /// Used by the thread that waits for requests.
    waiting: Exclusive<()>,
    handle: Mutex<Option<Handle>>,
    /// A frame that was received for an event loop and is not delivered yet.
    kept: Mutex<Option<rushes::Frame>>,
    /// The counters when the stream was closed.
    last: Mutex<rushes::Statistics>,
    /// Reusable memory for data that must be copied before it is sent.
    scratch: Mutex<Vec<u8>>,
    local: SocketAddr,
}

/// Handles that remain usable while the stream's halves are in use.
#[derive(Clone)]
pub(crate) struct Handle {
    stream: StreamHandle,
    pub(crate) rtcp: rushes::Rtcp,
}

/// The destination of received frames.
pub(crate) enum Receiving {
    Pulled(Box<StreamReceiver>),
    /// Kept alive until the stream is closed.
    Hooked(#[allow(dead_code, reason = "dropping it ends the hook")] Hook),
    /// A poller has the receiver.
    Polled(Polled),
    Closed,
}

impl Receiving {
    fn pull(&mut self, timeout: Duration) -> Result<Option<rushes::Frame>, Failure> {
        match self {
            Self::Pulled(receiver) => Ok(receiver.pull_frame(timeout)?),
            Self::Hooked(_) => Err(rushes::Error::Hooked.into()),
            Self::Polled(_) => Err(Failure::Polled),
            Self::Closed => Err(Failure::Closed),
        }
    }
}

impl Inner {
    fn new(stream: rushes::MediaStream) -> Result<Self, Failure> {
        let handle = Handle { stream: stream.handle(), rtcp: stream.rtcp() };
        let local = stream.local_address();
        let (sender, receiver) = stream.split()?;
        Ok(Self {
            sender: Exclusive::new(Some(sender)),
            receiver: Exclusive::new(Receiving::Pulled(Box::new(receiver))),
            waiting: Exclusive::new(()),
            handle: Mutex::new(Some(handle)),
            kept: Mutex::default(),
            last: Mutex::default(),
            scratch: Mutex::default(),
            local,
        })
    }

    /// Returns the handles; fails if the stream is closed.
    pub(crate) fn handle(&self) -> Result<Handle, Failure> {
        lock(&self.handle).clone().ok_or(Failure::Closed)
    }

    fn is_closed(&self) -> bool {
        lock(&self.handle).is_none()
    }

    fn pull(&self, timeout: Duration) -> Result<Option<rushes::Frame>, Failure> {
        if self.is_closed() {
            return Err(Failure::Closed);
        }
        self.receiver.with(|receiver| self.kept_or(|| receiver.pull(timeout)))
    }

    /// Like [`pull`](Self::pull), for callers that cannot wait long: returns `None` if another
    /// thread receives.
    pub(crate) fn take(&self, timeout: Duration) -> Option<Result<Option<rushes::Frame>, Failure>> {
        self.receiver.try_with(|receiver| self.kept_or(|| receiver.pull(timeout)))
    }

    /// Waits until a frame is kept for the next call that takes one.
    fn keep(&self, timeout: Duration) -> Result<Option<()>, Failure> {
        if self.is_closed() {
            return Err(Failure::Closed);
        }
        if self.receiver.is_awaited() {
            // Unlocking and locking again at once would starve the waiting threads.
            thread::sleep(YIELD_TIME);
        }
        self.receiver.with(|receiver| {
            let frame = self.kept_or(|| receiver.pull(timeout))?;
            let is_kept = frame.is_some();
            *lock(&self.kept) = frame;
            Ok(is_kept.then_some(()))
        })
    }

    /// Returns the kept frame or, if there is none, the result of `pull`. The caller must hold the
    /// receiver, so that frames stay in order.
    fn kept_or(
        &self,
        pull: impl FnOnce() -> Result<Option<rushes::Frame>, Failure>,
    ) -> Result<Option<rushes::Frame>, Failure> {
        let kept = lock(&self.kept).take();
        kept.map_or_else(pull, |frame| Ok(Some(frame)))
    }

    /// Answers requests and reports for `time`, or sleeps if another thread is answering them.
    fn answer(&self, time: Duration) -> Result<(), Failure> {
        if self.waiting.is_used_here() {
            return Err(Failure::Reentered);
        }
        let deadline = Instant::now() + time;
        let answered = self.waiting.try_with(|()| {
            self.handle()?.stream.wait_until(deadline)?;
            Ok(())
        });
        answered.unwrap_or_else(|| {
            thread::sleep(time);
            if self.is_closed() { Err(Failure::Closed) } else { Ok(()) }
        })
    }

    pub(crate) fn send<T>(
        &self,
        send: impl FnOnce(&mut StreamSender) -> Result<T, rushes::Error>,
    ) -> Result<T, Failure> {
        self.sender.with(|sender| Ok(send(sender.as_mut().ok_or(Failure::Closed)?)?))
    }

    /// Takes the frame that was received for an event loop and is not delivered yet.
    pub(crate) fn take_kept(&self) -> Option<rushes::Frame> {
        lock(&self.kept).take()
    }

    /// Takes the receiver back from a poller, with a frame that the poller has not delivered.
    pub(crate) fn take_back(
        &self,
        back: StreamReceiver,
        kept: Option<rushes::Frame>,
    ) -> Result<(), Failure> {
        let mut back = Some(Box::new(back));
        // A receiver of a stream that was closed meanwhile is dropped without the lock.
        self.receiver.with(|receiver| {
            if matches!(receiver, Receiving::Polled(_))
                && let Some(back) = back.take()
            {
                *lock(&self.kept) = kept;
                *receiver = Receiving::Pulled(back);
            }
            Ok(())
        })
    }

    /// Changes the destination of frames and events.
    pub(crate) fn hook(
        &self,
        change: impl FnOnce(Box<StreamReceiver>) -> Result<Receiving, rushes::Error>,
    ) -> Result<(), Failure> {
        self.receiver.with(|receiver| match std::mem::replace(receiver, Receiving::Closed) {
            Receiving::Pulled(pulled) => {
                *receiver = change(pulled)?;
                Ok(())
            }
            Receiving::Hooked(hook) => {
                *receiver = Receiving::Hooked(hook);
                Err(rushes::Error::Hooked.into())
            }
            Receiving::Polled(polled) => {
                *receiver = Receiving::Polled(polled);
                Err(Failure::Polled)
            }
            Receiving::Closed => Err(Failure::Closed),
        })
    }

    /// Returns whether all peers have sent BYE.
    fn all_have_left(&self) -> bool {
        let peers = self.handle().map(|handle| handle.rtcp.peers()).unwrap_or_default();
        !peers.is_empty() && peers.iter().all(|peer| peer.left)
    }
}

impl Close for Inner {
    fn close(&self) -> Result<(), Failure> {
        // This also applies to a call on another stream, since this stream's hook may wait for
        // objects that the call holds.
        if Call::is_running() {
            return Err(Failure::Reentered);
        }
        // From here on, no thread begins to wait.
        let handle = lock(&self.handle).take();
        if let Some(handle) = &handle {
            *lock(&self.last) = handle.stream.statistics();
        }
        // A thread that waits for requests also holds the port.
        let halves = self.waiting.with(|()| Ok(())).and_then(|()| {
            self.receiver.with(|receiver| {
                self.sender.with(|sender| {
                    let kept = lock(&self.kept).take();
                    Ok((std::mem::replace(receiver, Receiving::Closed), sender.take(), kept))
                })
            })
        });
        match halves {
            // Dropped without the locks, because a hook that is still running may need them.
            Ok(halves) => {
                if let Receiving::Polled(polled) = &halves.0 {
                    polled.leave(self);
                }
                drop(halves);
            }
            Err(failure) => {
                if handle.is_some() {
                    *lock(&self.handle) = handle;
                }
                return Err(failure);
            }
        }
        drop(handle);
        Ok(())
    }
}

/// A media stream to and from a peer; created by `Session.stream` or `PeerConnection.connect`.
///
/// It has no thread unless `on_frame` or asynchronous iteration needs one: frames are sent on the
/// thread that pushes and received on the thread that pulls, both without the interpreter lock.
/// Leaving a `with` block closes it.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Stream {
    pub(crate) inner: Arc<Inner>,
}

impl Stream {
    pub(crate) fn new(stream: rushes::MediaStream, open: &Open) -> Result<Self, Failure> {
        let inner = Arc::new(Inner::new(stream)?);
        open.add(&inner);
        OPEN.add(&inner);
        Ok(Self { inner })
    }
}

/// Returns the hook if it is callable, otherwise a `TypeError` with its type.
pub(crate) fn callable(hook: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if hook.is_callable() {
        return Ok(hook.clone().unbind());
    }
    Err(PyTypeError::new_err(format!("{} is not callable", hook.get_type())))
}

/// Runs a thread that calls `hook`, first with the kept frame. Python keeps one state for the
/// thread throughout, because creating and discarding a state around each call would cost two
/// system calls and a new page.
fn with_thread_state(
    run: &mut (dyn FnMut() + Send),
    hook: &Py<PyAny>,
    kept: Option<rushes::Frame>,
) {
    // Without an interpreter there is no hook to call.
    let _ = Python::try_attach(|py| {
        if let Some(frame) = kept {
            call(hook, |py| Frame::wrap(py, frame));
        }
        py.detach(run);
    });
}

/// Calls a hook with the result of `argument`; its exception is reported, not propagated.
pub(crate) fn call<T>(hook: &Py<PyAny>, argument: impl FnOnce(Python<'_>) -> PyResult<T>)
where
    T: for<'py> IntoPyObject<'py>,
{
    // Without an interpreter there is no hook to call.
    let _ = Python::try_attach(|py| {
        let outcome = argument(py).and_then(|argument| hook.call1(py, (argument,)).map(drop));
        if let Err(error) = outcome {
            report_unraisable(py, error, hook.bind(py));
        }
    });
}

fn elements_of(elements: Vec<(String, u8, Vec<u8>)>) -> PyResult<FrameElements> {
    elements.into_iter().try_fold(FrameElements::default(), |all, (place, id, data)| {
        let placement = match &*place {
            "first" => Placement::First,
            "last" => Placement::Last,
            "every" => Placement::Every,
            _ => {
                let message = format!("elements: {place:?} is not first, last or every");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(all.with(placement, id, data))
    })
}

#[pymethods]
impl Stream {
    /// Sends one frame: an access unit with start codes, an Opus packet, or a frame as the stream's
    /// format defines it. Returns when the kernel has accepted all of it.
    ///
    /// `bytes`, received frames and views of either are sent in place; buffers that other threads
    /// could write to (`bytearray`, arrays) are copied once before. `timestamp` is the sampling
    /// instant in ticks of the stream's clock rate; by default it is one frame interval after the
    /// previous frame. `captured` is when the frame was captured, in seconds of `time.monotonic()`;
    /// by default now. `elements` are elements of header extensions for its packets: each a placement
    /// ("first", "last" or "every"), an identifier of the setting `extensions`, and octets.
    #[pyo3(signature = (data, timestamp = None, *, captured = None, elements = None))]
    #[allow(clippy::cast_sign_loss, reason = "timestamps are modulo 2³²")]
    fn push_frame(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = timestamp_of)] timestamp: Option<i64>,
        captured: Option<f64>,
        elements: Option<Vec<(String, u8, Vec<u8>)>>,
    ) -> PyResult<()> {
        let elements = elements_of(elements.unwrap_or_default())?;
        let captured = captured.map(|captured| instant(py, captured)).transpose()?;
        let timestamp = timestamp.map(|ticks| RtpTimestamp(ticks as u32));
        let inner = &self.inner;
        let scratch = std::mem::take(&mut *lock(&inner.scratch));
        let input = Input::of(data, scratch)?;
        let outcome = py.detach(|| {
            inner.send(|sender| {
                let captured = captured.unwrap_or_else(Instant::now);
                sender.push_frame_with(input.octets(), timestamp, captured, &elements)
            })
        });
        if let Some(scratch) = input.into_scratch() {
            *lock(&inner.scratch) = scratch;
        }
        Ok(outcome?)
    }

    /// Waits for the next frame, at most for `timeout` seconds; `None` if none arrived. With 0 it
    /// returns a frame only if one is ready, with `None` it waits until there is one.
    #[pyo3(signature = (timeout = None))]
    fn pull_frame(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<Frame>>> {
        let frame = in_slices(py, duration(timeout)?, |slice| self.inner.pull(slice))?;
        frame.map(|frame| Frame::wrap(py, frame)).transpose()
    }

    /// Waits until a frame is kept for the next call that takes one, at most for `timeout` seconds;
    /// returns whether one is. It is for the thread of an event loop.
    fn _keep_frame(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let kept = in_slices(py, duration(Some(timeout))?, |slice| self.inner.keep(slice))?;
        Ok(kept.is_some())
    }

    /// Iterates over the frames, until none arrives for `timeout` seconds, until all peers have
    /// sent BYE if `until_bye` is set, or until the stream is closed.
    #[pyo3(signature = (timeout = None, *, until_bye = false))]
    fn frames(slf: Py<Self>, timeout: Option<f64>, until_bye: bool) -> PyResult<Frames> {
        Ok(Frames { stream: slf, timeout: duration(timeout)?, until_bye })
    }

    fn __iter__(slf: Py<Self>) -> Frames {
        Frames { stream: slf, timeout: None, until_bye: false }
    }

    fn __aiter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("rushes._aio")?.getattr("AsyncFrames")?.call1((&slf,))
    }

    /// Delivers every frame from now on to `hook`, on a dedicated thread of the stream, which ends
    /// when the stream is closed. The hook's exceptions go to `sys.unraisablehook`.
    fn on_frame(&self, py: Python<'_>, hook: &Bound<'_, PyAny>) -> PyResult<()> {
        let hook = callable(hook)?;
        let around = hook.clone_ref(py);
        let take = move |frame| call(&hook, |py| Frame::wrap(py, frame));
        Ok(py.detach(|| {
            self.inner.hook(|receiver| {
                let kept = lock(&self.inner.kept).take();
                let within = move |run: &mut (dyn FnMut() + Send)| {
                    with_thread_state(run, &around, kept);
                };
                receiver.on_frame_within(take, within).map(Receiving::Hooked)
            })
        })?)
    }

    /// Sets a function that receives events about lost packets, dropped frames and sources that
    /// start or end, on the thread that pulls. It also receives errors of the thread of `on_frame`
    /// when it cannot read the socket. Set it before `on_frame`.
    fn on_event(&self, py: Python<'_>, hook: &Bound<'_, PyAny>) -> PyResult<()> {
        let hook = callable(hook)?;
        let errors = hook.clone_ref(py);
        let take_error = move |error: &rushes::Error| {
            call(&errors, |py| events::of_error(py, error));
        };
        let take = move |event| call(&hook, |py| events::of_stream(py, &event));
        Ok(py.detach(|| {
            self.inner.hook(|mut receiver| {
                receiver.on_event(take);
                receiver.on_error(take_error);
                Ok(Receiving::Pulled(receiver))
            })
        })?)
    }

    /// Sends one packet without payload, which is useful at the end of a stream and keeps a path
    /// open.
    fn send_keep_alive(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.inner.send(StreamSender::send_keep_alive))?)
    }

    /// Lets the stream send again after a `CircuitBreakerError`, which it also raises if it is too
    /// early: a stop lasts at least 15 seconds (RFC 8083 section 4.5).
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.inner.send(StreamSender::resume))?)
    }

    /// Ends sending, from any thread: a thread that is pushing a frame raises `StateError` within
    /// about 100 ms, however slow the pacing is, and so does every later push. Receivers drop the
    /// frame. Keep-alives, reports and BYE are still sent.
    fn stop_sending(&self) -> PyResult<()> {
        self.inner.handle()?.stream.stop_sending();
        Ok(())
    }

    /// Leaves out the frames of temporal layers above `max` from the next frame on; `None` sends all.
    /// Frames of a higher layer than before are sent from the next one on at which a decoder can begin
    /// with it. Only frames whose headers tell their layer are left out: of H.265, H.266, AV1, and H.264
    /// with prefix units. While another thread pushes a frame, the call waits for its end.
    fn set_max_temporal_id(&self, py: Python<'_>, max: Option<u8>) -> PyResult<()> {
        let handle = self.inner.handle()?;
        py.detach(|| handle.stream.set_max_temporal_id(max));
        Ok(())
    }

    /// Spreads packets in another way from the next frame on, as the settings of the same names do:
    /// with neither `share` nor `rate`, as usual or, if `pacing` is false, not at all. Under rate
    /// control the rate of that applies instead.
    #[pyo3(signature = (pacing = true, *, share = None, rate = None))]
    fn set_pacing(
        &self,
        py: Python<'_>,
        pacing: bool,
        share: Option<f32>,
        #[pyo3(from_py_with = rate_of)] rate: Option<u64>,
    ) -> PyResult<()> {
        let pacing = match (pacing, share, rate) {
            (true, None, None) => Pacing::default(),
            (false, None, None) => Pacing::Off,
            (true, Some(share), None) => Pacing::Share(share),
            (true, None, Some(rate)) => Pacing::Rate(rate),
            _ => return Err(ConfigError::new_err("pacing is off, by share or by rate")),
        };
        Ok(py.detach(|| self.inner.send(|sender| sender.set_pacing(pacing)))?)
    }

    /// Waits for `seconds` and answers requests and reports meanwhile. A program that only sends
    /// should call it to wait between frames. Other threads may push meanwhile.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        in_slices::<()>(py, duration(Some(seconds))?, |slice| {
            self.inner.answer(slice)?;
            Ok(None)
        })
        .map(drop)
    }

    /// The stream's RTCP: reports, requests, BYE.
    #[getter]
    fn rtcp(slf: Py<Self>) -> Rtcp {
        Rtcp { stream: slf }
    }

    /// The stream's own SSRC; a collision may change it.
    #[getter]
    fn ssrc(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(py.detach(|| self.inner.handle().map(|handle| handle.stream.ssrc().0))?)
    }

    /// The host and port of the stream's socket.
    #[getter]
    fn local_address(&self) -> (String, u16) {
        (self.inner.local.ip().to_string(), self.inner.local.port())
    }

    /// Returns the stream's counters; after closing, the last ones.
    fn statistics(&self, py: Python<'_>) -> Statistics {
        let statistics = py.detach(|| match self.inner.handle() {
            Ok(handle) => handle.stream.statistics(),
            Err(_) => lock(&self.inner.last).clone(),
        });
        Statistics::of(&statistics)
    }

    /// Sends under another master key from the next packet on. The peer must accept this key
    /// before.
    fn set_send_key(&self, py: Python<'_>, key: PyRef<'_, MasterKey>) -> PyResult<()> {
        let (inner, key) = (&self.inner, &key.key);
        Ok(py.detach(|| Ok::<_, Failure>(inner.handle()?.stream.set_send_key(key)?))?)
    }

    /// Also accepts packets and reports under another master key from now on.
    fn add_receive_key(&self, py: Python<'_>, key: PyRef<'_, MasterKey>) -> PyResult<()> {
        let (inner, key) = (&self.inner, &key.key);
        Ok(py.detach(|| Ok::<_, Failure>(inner.handle()?.stream.add_receive_key(key)?))?)
    }

    /// Closes the stream: sends BYE, stops its thread and releases its socket. A waiting
    /// `pull_frame` raises `ClosedError`.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.inner.close())?)
    }

    /// Whether the stream was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { "closed" } else { "open" };
        format!("<rushes.Stream on {}, {state}>", self.inner.local)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Detached, because the stream's thread may need the interpreter lock before it ends.
        Python::try_attach(|py| py.detach(|| close_dropped(&self.inner)));
    }
}

/// Iterator over the frames of a stream, in order; created by `Stream.frames` and by `iter`.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Frames {
    /// Keeps the stream open while a loop iterates over it.
    stream: Py<Stream>,
    timeout: Option<Duration>,
    until_bye: bool,
}

#[pymethods]
impl Frames {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Frame>>> {
        let inner = &self.stream.get().inner;
        let frame = in_slices(py, self.timeout, |slice| match inner.pull(slice) {
            Ok(Some(frame)) => Ok(Some(Some(frame))),
            Ok(None) if self.until_bye && inner.all_have_left() => Ok(Some(None)),
            Ok(None) => Ok(None),
            Err(Failure::Closed) => Ok(Some(None)),
            Err(error) => Err(error),
        })?;
        frame.flatten().map(|frame| Frame::wrap(py, frame)).transpose()
    }
}
