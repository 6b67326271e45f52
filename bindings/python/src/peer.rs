//! Connections with peers that are entered by offer and answer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rushes::peer::{Direction, PeerHandle, PeerStream as AgreedStream};
use rushes::{Codec, StreamBuilder};

use crate::error::{ConfigError, Failure, StateError};
use crate::log::take_level;
use crate::open::{Close, OPEN, Open, close_dropped};
use crate::options::{apply, codec};
use crate::stream::Stream;
use crate::wait::{Call, Exclusive, duration, in_slices};

const DIRECTIONS: [(&str, Direction); 3] = [
    ("sendrecv", Direction::SendRecv),
    ("sendonly", Direction::SendOnly),
    ("recvonly", Direction::RecvOnly),
];

fn direction_named(name: &str) -> PyResult<Direction> {
    let found = DIRECTIONS.iter().find(|(known, _)| *known == name);
    found.map(|(_, direction)| *direction).ok_or_else(|| {
        let text =
            format!("direction must be \"sendrecv\", \"sendonly\" or \"recvonly\", not {name:?}");
        ConfigError::new_err(text)
    })
}

/// A connection with a peer that is entered by offer and answer: a browser, or a server between
/// browsers (WebRTC); created by `Context.peer`.
///
/// Add streams, exchange the offer and the answer (two texts) in some way that both ends trust, then
/// `connect`. Leaving a `with` block closes the streams and the connection.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct PeerConnection {
    inner: Arc<Inner>,
}

struct Inner {
    peer: Exclusive<Option<Connection>>,
    handle: PeerHandle,
    streams: Open,
    /// Whether the connection is being closed, so that a wait for it ends.
    is_closing: AtomicBool,
}

struct Connection {
    peer: rushes::peer::Peer,
    /// The number of streams that were added.
    added: usize,
}

impl Inner {
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.peer.with(|connection| act(connection.as_mut().ok_or(Failure::Closed)?))
    }
}

impl Close for Inner {
    fn close(&self) -> Result<(), Failure> {
        if Call::is_running() {
            return Err(Failure::Reentered);
        }
        self.is_closing.store(true, Relaxed);
        // From here on, no streams are added.
        let connection = self.peer.with(|connection| Ok(connection.take()))?;
        // The connection carries the streams' BYE.
        if let Err(failure) = self.streams.close() {
            self.peer.with(|place| {
                *place = connection;
                Ok(())
            })?;
            self.is_closing.store(false, Relaxed);
            return Err(failure);
        }
        drop(connection);
        Ok(())
    }
}

impl PeerConnection {
    pub(crate) fn new(peer: rushes::peer::Peer) -> Self {
        let handle = peer.handle();
        let connection = Exclusive::new(Some(Connection { peer, added: 0 }));
        let inner = Arc::new(Inner {
            peer: connection,
            handle,
            streams: Open::default(),
            is_closing: AtomicBool::new(false),
        });
        OPEN.add(&inner);
        Self { inner }
    }

    fn act<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| self.inner.with(act))?)
    }

    fn builder(
        &self,
        py: Python<'_>,
        codec: Codec,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<StreamBuilder> {
        let builder = self.act(py, |connection| Ok(connection.peer.stream(codec)))?;
        apply(builder, options, None)
    }
}

#[pymethods]
impl PeerConnection {
    /// Adds a stream of `format` to what is offered or answered; returns its number, from 0.
    ///
    /// `direction` is "sendrecv", "sendonly" or "recvonly", as seen from this end. Keywords are
    /// settings as of `Session.stream`; those of address, ports, payload type, keys and header
    /// extensions have no effect, because these are agreed on with the peer. By default packets have
    /// at most 1280 octets, and lost packets of video are requested.
    #[pyo3(signature = (format, direction = "sendrecv", **options))]
    fn add(
        &self,
        py: Python<'_>,
        format: &str,
        direction: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<usize> {
        let direction = direction_named(direction)?;
        let builder = self.builder(py, codec(format)?, options)?;
        self.act(py, |connection| {
            connection.peer.add(builder, direction);
            connection.added += 1;
            Ok(connection.added - 1)
        })
    }

    /// Adds another format for the stream that was added last: the first one that the peer has, too,
    /// is taken. All of them are video, or all are audio.
    #[pyo3(signature = (format, **options))]
    fn add_alternative(
        &self,
        py: Python<'_>,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let builder = self.builder(py, codec(format)?, options)?;
        let is_added = self.act(py, |connection| {
            let has_stream = connection.added > 0;
            if has_stream {
                connection.peer.add_alternative(builder);
            }
            Ok(has_stream)
        })?;
        let none = || StateError::new_err("there is no stream that could have another format");
        is_added.then_some(()).ok_or_else(none)
    }

    /// Makes the offer for the peer, once. With STUN servers it waits for their answers, at most
    /// two seconds.
    fn offer(&self, py: Python<'_>) -> PyResult<String> {
        self.act(py, |connection| Ok(connection.peer.offer()?))
    }

    /// Takes the peer's offer, and returns the answer for it. Streams are matched with the offer's
    /// media in order, by kind.
    ///
    /// Once something is agreed on, the peer may offer again: with further addresses, or with other
    /// credentials of ICE, with which both ends look for a path again. If it changes more than that,
    /// `StateError` is raised, and the connection goes on as before.
    fn answer(&self, py: Python<'_>, offer: &str) -> PyResult<String> {
        self.act(py, |connection| Ok(connection.peer.answer(offer)?))
    }

    /// Takes the peer's answer to the offer.
    fn set_answer(&self, py: Python<'_>, answer: &str) -> PyResult<()> {
        self.act(py, |connection| Ok(connection.peer.set_answer(answer)?))
    }

    /// Waits until a path to the peer and the keys are found, at most for `timeout` seconds, and
    /// returns the streams that were agreed on. Then returns `None`, and `connect` may be called
    /// again.
    #[pyo3(signature = (timeout = None))]
    fn connect(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Vec<Py<PeerStream>>>> {
        take_level(py);
        let connected = in_slices(py, duration(timeout)?, |slice| {
            if self.inner.is_closing.load(Relaxed) {
                return Err(Failure::Closed);
            }
            self.inner.with(|connection| {
                let Some(streams) = connection.peer.connect(slice)? else { return Ok(None) };
                // Registered now, because closing the connection closes them.
                let opened = streams.into_iter().map(|it| Opened::new(it, &self.inner.streams));
                opened.collect::<Result<Vec<_>, _>>().map(Some)
            })
        })?;
        let Some(streams) = connected else { return Ok(None) };
        let of_python = |opened: Opened| Py::new(py, opened.into_python(py)?);
        streams.into_iter().map(of_python).collect::<PyResult<_>>().map(Some)
    }

    /// Adds an address of the peer that was found after its description was written: the value of
    /// `a=candidate`. Addresses that cannot be used are left out.
    fn add_candidate(&self, py: Python<'_>, candidate: &str) {
        py.detach(|| self.inner.handle.add_candidate(candidate));
    }

    /// Takes a fragment of a description, as WHIP and WHEP carry them: further addresses of the peer,
    /// or new credentials, with which both ends look for a path again. Returns the fragment that
    /// answers new credentials.
    fn add_fragment(&self, py: Python<'_>, fragment: &str) -> PyResult<Option<String>> {
        let answer = py.detach(|| self.inner.handle.handle_fragment(fragment));
        Ok(answer.map_err(Failure::from)?)
    }

    /// Offers to look for a path again (ICE restart): returns a fragment with new credentials and the
    /// addresses of this end, which WHIP and WHEP carry in a PATCH. Nothing else changes before
    /// `set_restart_answer`; a further offer replaces it.
    fn offer_restart(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| self.inner.handle.offer_restart()).map_err(Failure::from)?)
    }

    /// Takes the peer's answer to `offer_restart`: both ends look for a path with the new credentials.
    /// Keys and streams stay. An answer that is refused changes nothing.
    fn set_restart_answer(&self, py: Python<'_>, answer: &str) -> PyResult<()> {
        let set = py.detach(|| self.inner.handle.set_restart_answer(answer));
        Ok(set.map_err(Failure::from)?)
    }

    /// For how many seconds the peer has not answered on the path that is used; `None` while there is
    /// none. From 10 s on `offer_restart` is worthwhile.
    #[getter]
    fn silence(&self, py: Python<'_>) -> Option<f64> {
        py.detach(|| self.inner.handle.silence()).map(|time| time.as_secs_f64())
    }

    /// Whether a path to the peer is found and answers.
    #[getter]
    fn is_connected(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.handle.is_connected())
    }

    /// Why the connection has ended; `None` while it has not.
    #[getter]
    fn ended(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.inner.handle.ended()).map(|error| error.to_string())
    }

    /// Closes the streams, then the connection. A waiting `connect` raises `ClosedError`.
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

    fn __repr__(&self, py: Python<'_>) -> String {
        let is_connected = self.is_connected(py);
        let state = match self.ended(py) {
            Some(why) => why,
            None if is_connected => "connected".to_owned(),
            None => "not connected".to_owned(),
        };
        format!("<rushes.PeerConnection, {state}>")
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        // Detached, because threads of its streams may need the interpreter lock before they end.
        Python::try_attach(|py| py.detach(|| close_dropped(&self.inner)));
    }
}

/// A stream that was agreed on, before it becomes an object of Python.
struct Opened {
    index: usize,
    mid: Option<String>,
    codec: Codec,
    sends: bool,
    receives: bool,
    stream: Stream,
}

impl Opened {
    fn new(of: AgreedStream, open: &Open) -> Result<Self, Failure> {
        Ok(Self {
            index: of.index,
            mid: of.mid,
            codec: of.codec,
            sends: of.sends,
            receives: of.receives,
            stream: Stream::new(of.stream, open)?,
        })
    }

    fn into_python(self, py: Python<'_>) -> PyResult<PeerStream> {
        let Self { index, mid, codec, sends, receives, stream } = self;
        let (kind, format, stream) = (codec.media, codec.name, Py::new(py, stream)?);
        Ok(PeerStream { index, mid, kind, format, sends, receives, stream })
    }
}

/// A stream that was agreed on with a peer; returned by `PeerConnection.connect`.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct PeerStream {
    /// Its number among the streams that were added, from 0.
    #[pyo3(get)]
    index: usize,
    /// The identification of the media in the description.
    #[pyo3(get)]
    mid: Option<String>,
    /// "audio" or "video".
    #[pyo3(get)]
    kind: &'static str,
    /// The format.
    #[pyo3(get)]
    format: &'static str,
    /// Whether frames can be pushed.
    #[pyo3(get)]
    sends: bool,
    /// Whether frames are received.
    #[pyo3(get)]
    receives: bool,
    /// The stream, an ordinary one.
    #[pyo3(get)]
    stream: Py<Stream>,
}

#[pymethods]
impl PeerStream {
    fn __repr__(&self) -> String {
        format!("<rushes.PeerStream {} of {}>", self.index, self.format)
    }
}
