//! Key agreement by ZRTP.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rushes::StreamBuilder;
use rushes::zrtp::{SasStatus, Warning};

use crate::error::Failure;
use crate::session::Shared;
use crate::stream::Stream;
use crate::wait::{Exclusive, duration, in_slices};

/// The short authentication string of a session, for two people to compare.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct Sas(pub(crate) SasStatus);

#[pymethods]
impl Sas {
    /// The string for the two people to read to each other.
    #[getter]
    fn text(&self) -> String {
        self.0.sas.to_string()
    }

    /// Whether both ends have compared it, in this session or in one that it continues.
    #[getter]
    fn is_verified(&self) -> bool {
        self.0.is_verified
    }

    /// Whether both ends have the same secret (`aux_secret`), so that no comparison is needed.
    #[getter]
    fn shares_secret(&self) -> bool {
        self.0.shares_secret
    }

    /// The complete hash; the string is derived from its beginning.
    #[getter]
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.sas_hash)
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("<rushes.Sas {:?}>", self.text())
    }
}

/// Calls `hook` to ask whether the peer's string is `sas`; `None` if it was not compared.
pub(crate) fn ask(py: Python<'_>, hook: &Py<PyAny>, sas: SasStatus) -> PyResult<Option<bool>> {
    hook.call1(py, (Sas(sas),))?.extract(py)
}

/// Returns the text of a warning.
pub(crate) fn warning(warning: Warning) -> String {
    match warning {
        Warning::CacheMismatch => "the peer does not know the secret of an earlier session".into(),
        Warning::VerifiedBefore => {
            "the peer does not know the secret of an earlier session, whose strings were compared"
                .into()
        }
        Warning::AuxMismatch => "the auxiliary secret differs from the peer's".into(),
        Warning::Disclosure => "the peer discloses the session to third parties".into(),
        Warning::Signature => {
            "the peer signed its string; the signature is not verified here".into()
        }
        Warning::Forged => "a forged or modified message was discarded".into(),
        Warning::HelloHash => "a Hello does not match the announced one".into(),
        Warning::ForgedGoClear => "a request for unencrypted media is not from the peer".into(),
        other => format!("{other:?}"),
    }
}

/// A stream whose keys are being agreed on by ZRTP; created by `Session.begin`.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Opening {
    session: Arc<Shared>,
    waiting: Exclusive<Option<rushes::zrtp::Opening>>,
    local: std::net::SocketAddr,
    on_sas: Option<Py<PyAny>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        // Detached, because it may wait for a thread that reads the port.
        let _ = Python::try_attach(|py| py.detach(|| self.abandon()));
    }
}

impl Opening {
    fn abandon(&self) -> Result<(), Failure> {
        self.waiting.with(|opening| {
            drop(opening.take());
            Ok(())
        })
    }

    pub(crate) fn begin(
        py: Python<'_>,
        session: &Arc<Shared>,
        builder: StreamBuilder,
        on_sas: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let opening = py.detach(|| builder.begin()).map_err(Failure::from)?;
        Ok(Self {
            session: session.clone(),
            local: opening.local_address(),
            waiting: Exclusive::new(Some(opening)),
            on_sas,
        })
    }

    pub(crate) fn wait_for(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Option<Stream>> {
        let stream = in_slices(py, timeout, |slice| {
            self.waiting.with(|opening| {
                let waiting = opening.as_mut().ok_or(Failure::Closed)?;
                let stream = waiting.wait(slice)?;
                if stream.is_some() {
                    *opening = None;
                }
                Ok(stream)
            })
        })?;
        let Some(stream) = stream else { return Ok(None) };
        let stream = Stream::new(stream, &self.session.open)?;
        if let Err(error) = self.session.compare(py, self.on_sas.as_ref()) {
            stream.close(py)?;
            return Err(error);
        }
        Ok(Some(stream))
    }
}

#[pymethods]
impl Opening {
    /// Waits until the keys are agreed on, at most for `timeout` seconds. Then returns `None`, and
    /// `wait` may be called again.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Stream>> {
        self.wait_for(py, duration(timeout)?)
    }

    /// The host and port of the stream's socket.
    #[getter]
    fn local_address(&self) -> (String, u16) {
        (self.local.ip().to_string(), self.local.port())
    }

    /// Abandons the opening if the stream is not open yet.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.abandon())?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
