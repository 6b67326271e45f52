//! The receiving end of texture video.

use std::sync::{Arc, Mutex};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use rushes::texture::{ClientStatistics, TextureClient as Client, TextureSink};

use super::gpu::{Gpu, Handle};
use super::options::{changed_size_max, format, name_of, of_client, rate, requested_rate, resolve};
use super::queue::{Frame, Next, Queue};
use super::stats::TextureClientStatistics;
use crate::error::{ConfigError, Failure, NetError, StateError};
use crate::integer::{address, arguments};
use crate::log::take_level;
use crate::open::{Close, OPEN, close_dropped};
use crate::options::Setting;
use crate::stream::{call, callable};
use crate::wait::{Call, duration, in_slices, lock};
use crate::zrtp::Sas;

arguments! {
    queue_of: usize = "queue";
}

/// How long a hook's thread sleeps when no frame arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Receives a server's frames into memory, on its own threads.
///
/// `address` is the server's host and port: a tuple of both, or a text such as `localhost:7000` or
/// `[::1]:7000`. Frames are stored in a queue of `queue` frames. When it is full, the oldest frame
/// is dropped (`skipped`), or with `every_frame` the server has to wait. Leaving a `with` block
/// closes the client.
///
/// With a `gpu`, frames are received into its memory, and are `GpuFrame`s. Other graphics interfaces
/// import that memory by a descriptor, of which `export` is the kind: "opaque-fd" (by default) for the
/// same device and driver, or "dma-buf" for others, too.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct TextureClient {
    inner: Arc<Inner>,
}

struct Inner {
    client: Mutex<Option<Arc<Client>>>,
    queue: Arc<Queue>,
    /// The statistics when the client was closed.
    last: Mutex<ClientStatistics>,
    hook: Mutex<Option<JoinHandle<()>>>,
}

impl Inner {
    fn client(&self) -> Result<Arc<Client>, Failure> {
        lock(&self.client).clone().ok_or(Failure::Closed)
    }

    /// Returns the next frame, or `None` after `timeout` and at the end.
    fn next(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<Frame>> {
        let next = in_slices(py, timeout, |slice| match self.queue.next(slice) {
            Next::Nothing => Ok(None),
            next => Ok(Some(next)),
        })?;
        match next {
            Some(Next::Frame(frame)) => Ok(Some(frame)),
            _ => Ok(None),
        }
    }
}

impl Close for Inner {
    fn close(&self) -> Result<(), Failure> {
        if Call::is_running() {
            return Err(Failure::Reentered);
        }
        self.queue.close();
        if let Some(client) = lock(&self.client).take() {
            let statistics = match Arc::try_unwrap(client) {
                Ok(client) => client.stop(),
                // Another thread still uses the client and stops it when it drops the last
                // reference.
                Err(client) => client.statistics(),
            };
            *lock(&self.last) = statistics;
        }
        let hook = lock(&self.hook).take();
        if let Some(hook) = hook.filter(|hook| hook.thread().id() != thread::current().id()) {
            // The hook's exceptions have been reported already.
            let _ = hook.join();
        }
        Ok(())
    }
}

impl TextureClient {
    fn ask<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Client) -> T + Send) -> PyResult<T> {
        Ok(py.detach(|| Ok::<_, Failure>(ask(&*self.inner.client()?)))?)
    }
}

#[pymethods]
impl TextureClient {
    #[new]
    #[pyo3(signature = (
        address, *, gpu = None, export = None, queue = 3, every_frame = false, **options
    ))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = address)] address: (String, u16),
        gpu: Option<Py<Gpu>>,
        export: Option<&str>,
        #[pyo3(from_py_with = queue_of)] queue: usize,
        every_frame: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        take_level(py);
        let options = of_client(options)?;
        let address = resolve(py, address)?;
        let queue = Arc::new(Queue::new(queue, every_frame));
        let export = match (&gpu, export) {
            (None, Some(_)) => return Err(ConfigError::new_err("export: only with a gpu")),
            (_, kind) => kind.map_or(Ok(Handle::OpaqueFd), Handle::named)?,
        };
        let client = py.detach(|| {
            let sink: Arc<dyn TextureSink> = match &gpu {
                None => queue.clone(),
                Some(gpu) => gpu.get().device().sink(export, queue.clone())?,
            };
            Client::connect(address, sink, options).map_err(Failure::from)
        });
        let client = Mutex::new(Some(Arc::new(client?)));
        let inner = Inner { client, queue, last: Mutex::default(), hook: Mutex::default() };
        let inner = Arc::new(inner);
        OPEN.add(&inner);
        Ok(Self { inner })
    }

    /// Waits for the next frame, at most for `timeout` seconds; `None` if none arrived, or if the
    /// stream has ended.
    #[pyo3(signature = (timeout = None))]
    fn pull_frame(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        self.ask(py, |_| ())?;
        let next = self.inner.next(py, duration(timeout)?)?;
        next.map(|frame| frame.wrap(py)).transpose()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = self.inner.next(py, None)?;
        next.map(|frame| frame.wrap(py)).transpose()
    }

    /// Delivers every frame from now on to `hook`, on one thread, until the stream ends. Its
    /// exceptions go to `sys.unraisablehook`.
    fn on_frame(&self, hook: &Bound<'_, PyAny>) -> PyResult<()> {
        let hook = callable(hook)?;
        let queue = self.inner.queue.clone();
        let mut place = lock(&self.inner.hook);
        if place.is_some() {
            return Err(StateError::new_err("the client has a hook already"));
        }
        let thread = thread::Builder::new().name("rushes-frames".into()).spawn(move || {
            loop {
                match queue.next(POLL_INTERVAL) {
                    Next::Frame(frame) => call(&hook, |py| frame.wrap(py)),
                    Next::Nothing => {}
                    Next::End => return,
                }
            }
        });
        *place = Some(thread.map_err(|error| NetError::new_err(error.to_string()))?);
        Ok(())
    }

    /// Waits for the end of the stream, at most for `timeout` seconds; returns why it ended, or
    /// `None` if it has not.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<String>> {
        in_slices(py, duration(timeout)?, |slice| {
            Ok(self.inner.client()?.wait(slice).map(|end| end.to_string()))
        })
    }

    /// Returns the statistics; after closing, the last ones.
    fn statistics(&self, py: Python<'_>) -> TextureClientStatistics {
        let statistics = py.detach(|| match self.inner.client() {
            Ok(client) => client.statistics(),
            Err(_) => *lock(&self.inner.last),
        });
        TextureClientStatistics::of(&statistics)
    }

    /// Removes and returns the latencies in seconds of the frames since the last call, the oldest
    /// first: those of which `latency_p50` is the median. The latest 1024 are kept.
    fn take_latencies(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        let taken = self.ask(py, Client::take_latencies)?;
        Ok(taken.iter().map(Duration::as_secs_f64).collect())
    }

    /// Frames dropped because the queue was full.
    #[getter]
    fn skipped(&self) -> u64 {
        self.inner.queue.skipped()
    }

    /// The format, width and height of frames, which may change during the stream.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Option<(&'static str, u32, u32)>> {
        self.ask(py, |client| {
            let shape = client.shape()?;
            let layout = shape.layout();
            Some((layout.format().name(), layout.width(), layout.height()))
        })
    }

    /// The transport of the frames, "udp", "tcp", "rtp" or "multicast", or `None` before one is chosen.
    #[getter]
    fn transport(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.ask(py, |client| client.transport().and_then(name_of))
    }

    /// Frames per second.
    #[getter]
    fn rate(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.ask(py, |client| {
            client.rate().map(|rate| f64::from(rate.numerator) / f64::from(rate.denominator))
        })
    }

    /// The short authentication string, if keys were agreed on by ZRTP.
    #[getter]
    fn sas(&self, py: Python<'_>) -> PyResult<Option<Sas>> {
        Ok(self.ask(py, Client::sas)?.map(Sas))
    }

    /// Requests another format, rate or largest size of frames from the server, which may ignore the request.
    ///
    /// ``size_max`` is a width and a height, or (0, 0) for the size of the source's own pictures.
    #[pyo3(signature = (*, format = None, rate = None, size_max = None))]
    fn change(
        &self,
        py: Python<'_>,
        format: Option<&str>,
        rate: Option<Bound<'_, PyAny>>,
        size_max: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let format = format.map(self::format).transpose()?;
        let rate = rate.map(|value| self::rate(&Setting { name: "rate", value })).transpose()?;
        let rate = rate.map(requested_rate);
        let size_max = size_max
            .map(|value| changed_size_max(&Setting { name: "size_max", value }))
            .transpose()?;
        self.ask(py, |client| {
            if let Some(size_max) = size_max {
                client.set_size_max(size_max);
            }
            if format.is_some() || rate.is_some() {
                client.change(format, rate);
            }
        })
    }

    /// Returns the class for annotations: `TextureClient[GpuFrame]` gives frames in graphics memory.
    #[classmethod]
    #[pyo3(signature = (frame, /))]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        frame: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        cls.py().import("types")?.call_method1("GenericAlias", (cls, frame))
    }

    /// Ends the stream and notifies the server.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.inner.close())?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

impl Drop for TextureClient {
    fn drop(&mut self) {
        // Detached, because the client's threads may need the interpreter lock before they end.
        Python::try_attach(|py| py.detach(|| close_dropped(&self.inner)));
    }
}
