//! The sending end of texture video.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rushes::texture::TextureServer as Server;

use super::options::{format, of_server, resolve};
use super::source;
use super::stats::{SentTextureFrame, TextureServerCounts};
use crate::error::Failure;
use crate::integer::address;
use crate::log::take_level;
use crate::open::{Close, OPEN, close_dropped};
use crate::wait::{Call, lock};
use crate::zrtp::Sas;

/// Sends a source's frames to every client that connects, on its own threads.
///
/// `address` is a host and a port, a tuple of both or a text such as "0.0.0.0:7000"; port 0 selects
/// a free one. `source` is a path (Y4M, KTX 2.0, PNG), a pattern such as "pattern:1920x1080@60",
/// `Pictures` or `RenderedFrames`. Leaving a `with` block closes the server.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct TextureServer {
    inner: Arc<Inner>,
}

struct Inner {
    server: Mutex<Option<Arc<Server>>>,
    local: SocketAddr,
}

impl Inner {
    fn server(&self) -> Result<Arc<Server>, Failure> {
        lock(&self.server).clone().ok_or(Failure::Closed)
    }
}

impl Close for Inner {
    fn close(&self) -> Result<(), Failure> {
        if Call::is_running() {
            return Err(Failure::Reentered);
        }
        let server = lock(&self.server).take();
        // Not dropped under the lock, because it waits until the server's threads have ended.
        drop(server);
        Ok(())
    }
}

impl TextureServer {
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&Server) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| ask(&*self.inner.server()?))?)
    }
}

#[pymethods]
impl TextureServer {
    #[new]
    #[pyo3(signature = (address, source, **options))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = address)] address: (String, u16),
        source: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        take_level(py);
        let (options, colour) = of_server(options)?;
        let address = resolve(py, address)?;
        let source = source::of(py, source, colour)?;
        let server = py.detach(|| Server::serve(address, source, options));
        let server = server.map_err(Failure::from)?;
        let local = server.local_address();
        let inner = Arc::new(Inner { server: Mutex::new(Some(Arc::new(server))), local });
        OPEN.add(&inner);
        Ok(Self { inner })
    }

    /// The host and port on which the server listens.
    #[getter]
    fn local_address(&self) -> (String, u16) {
        (self.inner.local.ip().to_string(), self.inner.local.port())
    }

    /// Encodes to another format from now on, for current and new clients.
    fn set_format(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let format = format(name)?;
        self.ask(py, |server| Ok(server.set_format(format)?))
    }

    /// Returns the server's counters.
    fn counts(&self, py: Python<'_>) -> PyResult<TextureServerCounts> {
        self.ask(py, |server| Ok(TextureServerCounts::of(&server.counts())))
    }

    /// Removes and returns the timings of the latest frames, oldest first. The last 1 024 are kept.
    fn take_frames(&self, py: Python<'_>) -> PyResult<Vec<SentTextureFrame>> {
        self.ask(py, |server| Ok(server.take_frames().iter().map(SentTextureFrame::of).collect()))
    }

    /// Removes and returns the client's host and port and the reason of each ended session.
    fn take_ends(&self, py: Python<'_>) -> PyResult<Vec<((String, u16), String)>> {
        let ends = self.ask(py, |server| Ok(server.take_ends()))?;
        let to_python = |(peer, end): (SocketAddr, rushes::texture::Stopped)| {
            ((peer.ip().to_string(), peer.port()), end.to_string())
        };
        Ok(ends.into_iter().map(to_python).collect())
    }

    /// Returns the short authentication strings of sessions whose keys were agreed on by ZRTP.
    fn sas(&self, py: Python<'_>) -> PyResult<Vec<Sas>> {
        let strings = self.ask(py, |server| Ok(server.sas()))?;
        Ok(strings.into_iter().map(Sas).collect())
    }

    /// Stops the server and notifies its clients. Waits for a picture that Python is making.
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

    fn __repr__(&self) -> String {
        format!("<rushes.TextureServer on {}>", self.inner.local)
    }
}

impl Drop for TextureServer {
    fn drop(&mut self) {
        // Detached, because the server's threads may need the interpreter lock before they end.
        Python::try_attach(|py| py.detach(|| close_dropped(&self.inner)));
    }
}
