//! A session: one peer and the streams with it.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rushes::StreamBuilder;

use crate::error::{Failure, ZrtpError};
use crate::open::Open;
use crate::options::{apply, codec};
use crate::security::Security;
use crate::stream::Stream;
use crate::wait::lock;
use crate::zrtp::{Opening, Sas, ask, warning};

/// One peer, and the streams with it; made by `Context.session`.
///
/// Streams on the same local port share one socket. Leaving a `with` block closes all of them.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
}

/// What a session's streams and openings keep of it.
pub(crate) struct Shared {
    pub(crate) session: rushes::Session,
    pub(crate) open: Open,
    /// Whether somebody was asked to compare the short authentication strings.
    pub(crate) asked: Mutex<bool>,
}

impl Session {
    pub(crate) fn new(session: rushes::Session) -> Self {
        let shared = Shared { session, open: Open::new(), asked: Mutex::new(false) };
        Self { shared: Arc::new(shared) }
    }

    fn builder(
        &self,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(StreamBuilder, Patience)> {
        let builder = self.shared.session.stream(codec(format)?);
        let builder = apply(builder, options, self.shared.session.peer())?;
        let mut patience = Patience::default();
        if let Some(options) = options
            && let Some(security) = options.get_item("security")?
            && let Ok(security) = security.extract::<PyRef<'_, Security>>()
        {
            patience.on_sas = security.on_sas.as_ref().map(|hook| hook.clone_ref(options.py()));
            if let rushes::Security::Zrtp(config) = &security.security {
                patience.timeout = Some(config.timeout);
            }
        }
        Ok((builder, patience))
    }
}

/// What opening a stream takes besides its settings.
#[derive(Default)]
struct Patience {
    on_sas: Option<Py<PyAny>>,
    /// How long keys may be agreed on.
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
    /// Every setting has a default that works; those of the library are keywords here, times in
    /// seconds. The most used: `remote_port`, without which the stream only receives; `local_port`;
    /// `frame_rate`; `security`; `recovery`. A stream that agrees on its keys by ZRTP waits for the
    /// peer; see `begin`.
    #[pyo3(signature = (format, **options))]
    fn stream(
        &self,
        py: Python<'_>,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        let (builder, patience) = self.builder(format, options)?;
        if builder.agrees_on_keys() {
            let timeout = patience.timeout;
            let opening = Opening::begin(py, &self.shared, builder, patience.on_sas)?;
            let stream = opening.wait_for(py, timeout)?;
            let late = || ZrtpError::new_err("no agreement on keys within the time given");
            return stream.ok_or_else(late);
        }
        let stream = py.detach(|| builder.open()).map_err(Failure::from)?;
        Stream::new(stream, &self.shared)
    }

    /// Begins to open a stream whose keys are agreed on by ZRTP: says Hello to the peer, or waits
    /// for one. `Opening.wait` gives the stream.
    #[pyo3(signature = (format, **options))]
    fn begin(
        &self,
        py: Python<'_>,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Opening> {
        let (builder, patience) = self.builder(format, options)?;
        Opening::begin(py, &self.shared, builder, patience.on_sas)
    }

    /// The short authentication string, for people to read to each other, once the session's first
    /// stream has agreed on a key by ZRTP.
    #[getter]
    fn sas(&self, py: Python<'_>) -> Option<Sas> {
        py.detach(|| self.shared.session.sas()).map(Sas)
    }

    /// Tells whether the strings of both ends were found equal. If not, somebody is in between:
    /// close the streams. `False` if there is no string yet.
    fn verify_sas(&self, py: Python<'_>, are_equal: bool) -> bool {
        py.detach(|| self.shared.session.verify_sas(are_equal))
    }

    /// What is not as it should be with the key agreement, each told once.
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
    /// Has the strings compared, if nobody was asked yet.
    pub(crate) fn compare(&self, py: Python<'_>, on_sas: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(hook) = on_sas else { return Ok(()) };
        let Some(sas) = py.detach(|| self.session.sas()) else { return Ok(()) };
        if std::mem::replace(&mut *lock(&self.asked), true) {
            return Ok(());
        }
        let Some(are_equal) = ask(py, hook, sas)? else { return Ok(()) };
        py.detach(|| self.session.verify_sas(are_equal));
        if are_equal {
            return Ok(());
        }
        let text = "the short authentication strings differ: somebody is in between";
        Err(ZrtpError::new_err(text))
    }
}
