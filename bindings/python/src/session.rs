//! A session: one peer and the streams exchanged with it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::thread::ThreadId;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rushes::StreamBuilder;

use crate::error::{Failure, ZrtpError};
use crate::log::take_level;
use crate::open::Open;
use crate::options::{apply, codec};
use crate::security::Security;
use crate::stream::Stream;
use crate::wait::{in_slices, lock};
use crate::zrtp::{Opening, Sas, ask, warning};

/// One peer, and the streams exchanged with it; created by `Context.session`.
///
/// Streams on the same local port share one socket. Leaving a `with` block closes all of them.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
}

/// The state of a session that its streams and openings share.
pub(crate) struct Shared {
    pub(crate) session: rushes::Session,
    pub(crate) open: Open,
    comparison: Mutex<Comparison>,
    /// Notified when `comparison` changes.
    compared: Condvar,
}

/// The state of the comparison of the short authentication strings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// No function was called yet, or it raised an exception.
    NotStarted,
    /// A Python function is being called on this thread.
    Running(ThreadId),
    Equal,
    Differs,
    /// The function returned `None`.
    NotCompared,
}

impl Session {
    pub(crate) fn new(session: rushes::Session) -> Self {
        let comparison = Mutex::new(Comparison::NotStarted);
        let compared = Condvar::new();
        Self { shared: Arc::new(Shared { session, open: Open::new(), comparison, compared }) }
    }

    fn builder(
        &self,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(StreamBuilder, OpeningParameters)> {
        let builder = self.shared.session.stream(codec(format)?);
        let builder = apply(builder, options, self.shared.session.peer())?;
        let mut parameters = OpeningParameters::default();
        if let Some(options) = options
            && let Some(security) = options.get_item("security")?
            && let Ok(security) = security.extract::<PyRef<'_, Security>>()
        {
            parameters.on_sas = security.on_sas.as_ref().map(|hook| hook.clone_ref(options.py()));
            if let rushes::Security::Zrtp(config) = &security.security {
                parameters.timeout = Some(config.timeout);
            }
        }
        Ok((builder, parameters))
    }
}

/// Parameters of opening a stream besides its settings.
#[derive(Default)]
struct OpeningParameters {
    on_sas: Option<Py<PyAny>>,
    /// The time limit of the key agreement.
    timeout: Option<Duration>,
}

#[pymethods]
impl Session {
    /// The peer's address, if there is one.
    #[getter]
    fn peer(&self) -> Option<String> {
        self.shared.session.peer().map(|peer| peer.to_string())
    }

    /// Opens a stream of `format`: "h264", "h265", "h266", "opus" or "generic".
    ///
    /// The library's settings are keywords here, with times in seconds, and each has a working
    /// default. The most common are `remote_port`, without which the stream only receives,
    /// `local_port`, `frame_rate`, `security` and `recovery`. A stream that agrees on its keys by
    /// ZRTP waits for the peer; see `begin`.
    #[pyo3(signature = (format, **options))]
    fn stream(
        &self,
        py: Python<'_>,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        take_level(py);
        let (builder, parameters) = self.builder(format, options)?;
        if builder.agrees_on_keys() {
            let timeout = parameters.timeout;
            let opening = Opening::begin(py, &self.shared, builder, parameters.on_sas)?;
            let stream = opening.wait_for(py, timeout)?;
            let late = || ZrtpError::new_err("no key agreement within the time limit");
            return stream.ok_or_else(late);
        }
        let stream = py.detach(|| builder.open()).map_err(Failure::from)?;
        Ok(Stream::new(stream, &self.shared.open)?)
    }

    /// Begins to open a stream whose keys are agreed on by ZRTP: sends a Hello to the peer, or
    /// waits for one. `Opening.wait` returns the stream.
    #[pyo3(signature = (format, **options))]
    fn begin(
        &self,
        py: Python<'_>,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Opening> {
        take_level(py);
        let (builder, parameters) = self.builder(format, options)?;
        Opening::begin(py, &self.shared, builder, parameters.on_sas)
    }

    /// The short authentication string, for people to read to each other; `None` until the
    /// session's first stream has agreed on a key by ZRTP.
    #[getter]
    fn sas(&self, py: Python<'_>) -> Option<Sas> {
        py.detach(|| self.shared.session.sas()).map(Sas)
    }

    /// Reports whether the strings of both ends were found equal. If not, there is a man in the
    /// middle: close the streams. Returns `False` if there is no string yet.
    fn verify_sas(&self, py: Python<'_>, are_equal: bool) -> bool {
        py.detach(|| self.shared.session.verify_sas(are_equal))
    }

    /// Removes and returns the warnings about the key agreement.
    fn zrtp_warnings(&self, py: Python<'_>) -> Vec<String> {
        let session = &self.shared.session;
        py.detach(|| std::iter::from_fn(|| session.poll_zrtp_warning()).map(warning).collect())
    }

    /// Closes every stream of the session.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.shared.open.close())?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let peer = self.peer().unwrap_or_else(|| "anyone".to_owned());
        format!("<rushes.Session with {peer}>")
    }
}

impl Shared {
    /// Calls the function that compares the strings, unless the result is already known.
    pub(crate) fn compare(&self, py: Python<'_>, on_sas: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(hook) = on_sas else { return allowed(*lock(&self.comparison)) };
        let Some(sas) = py.detach(|| self.session.sas()) else { return Ok(()) };
        let known = in_slices(py, None, |slice| self.known_within(slice))?;
        if let Some(known) = known.filter(|&known| known != Comparison::NotStarted) {
            return allowed(known);
        }
        let mut guard = ComparisonGuard { shared: self, answer: Comparison::NotStarted };
        guard.answer = match ask(py, hook, sas)? {
            Some(true) => Comparison::Equal,
            Some(false) => Comparison::Differs,
            None => Comparison::NotCompared,
        };
        let answer = guard.answer;
        if answer != Comparison::NotCompared {
            py.detach(|| self.session.verify_sas(answer == Comparison::Equal));
        }
        drop(guard);
        allowed(answer)
    }

    /// Returns the known result; `NotStarted` if this thread must call the function, `None` if
    /// another thread is still doing so.
    fn known_within(&self, slice: Duration) -> Result<Option<Comparison>, Failure> {
        let me = thread::current().id();
        let mut comparison = lock(&self.comparison);
        if let Comparison::Running(thread) = *comparison
            && thread != me
        {
            let waited = self.compared.wait_timeout(comparison, slice);
            comparison = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match *comparison {
            Comparison::NotStarted => {
                *comparison = Comparison::Running(me);
                Ok(Some(Comparison::NotStarted))
            }
            Comparison::Running(thread) if thread == me => Err(Failure::Reentered),
            Comparison::Running(_) => Ok(None),
            known => Ok(Some(known)),
        }
    }
}

/// Returns whether a stream may be opened.
fn allowed(comparison: Comparison) -> PyResult<()> {
    if comparison != Comparison::Differs {
        return Ok(());
    }
    let text = "the short authentication strings differ: there is a man in the middle";
    Err(ZrtpError::new_err(text))
}

/// Exists while a function is called; dropping it stores the result. If the function raised an
/// exception, the next stream's function is called.
struct ComparisonGuard<'a> {
    shared: &'a Shared,
    answer: Comparison,
}

impl Drop for ComparisonGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.shared.comparison) = self.answer;
        self.shared.compared.notify_all();
    }
}
