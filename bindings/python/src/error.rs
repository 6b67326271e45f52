//! Exceptions: the library's messages, in classes according to how they can be handled.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use rushes::payload::FrameError as FrameKind;
use rushes::peer::PeerError;
use rushes::texture::TextureError as Texture;
use rushes::zrtp::ZrtpError as Zrtp;

create_exception!(rushes, Error, PyException, "The base class of the library's exceptions.");
create_exception!(rushes, ConfigError, Error, "A setting is out of range, or contradicts another.");
create_exception!(rushes, FileError, Error, "A media file cannot be read or written.");
create_exception!(
    rushes,
    FrameError,
    Error,
    "A frame cannot be sent in the stream's format; no part of it was sent."
);
create_exception!(rushes, NetError, Error, "A socket or a thread is not available, or failed.");
create_exception!(
    rushes,
    SendError,
    NetError,
    "Part of a frame could not be sent; the receiver will drop it."
);
create_exception!(
    rushes,
    CircuitBreakerError,
    NetError,
    "The stream has stopped sending, to protect the network (RFC 8083); see MediaStream.resume."
);
create_exception!(
    rushes,
    RtcpError,
    Error,
    "RTCP is needed and is off, or too many of its packets are queued."
);
create_exception!(
    rushes,
    SecurityError,
    Error,
    "The keys or the policy of a secured stream are invalid."
);
create_exception!(
    rushes,
    ZrtpError,
    SecurityError,
    "Key agreement by ZRTP failed; nothing was sent unencrypted."
);
create_exception!(
    rushes,
    StateError,
    Error,
    "Not possible now: the stream has a hook, only receives, or is in use by this thread."
);
create_exception!(rushes, ClosedError, StateError, "The object is closed.");
create_exception!(rushes, TextureError, Error, "Texture video could not start, or has ended.");
create_exception!(
    rushes,
    GpuError,
    TextureError,
    "There is no graphics processor, it cannot do what is asked, or the package was built without."
);

/// An error, before it becomes a Python exception.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// A hook called an object that waits for the hook, directly or through other threads.
    Reentered,
    /// A poller receives the frames of the stream.
    Polled,
    Rushes(rushes::Error),
    Security(String),
    Texture(Box<Texture>),
    Gpu(String),
}

impl From<rushes::Error> for Failure {
    fn from(error: rushes::Error) -> Self {
        Self::Rushes(error)
    }
}

impl From<Texture> for Failure {
    fn from(error: Texture) -> Self {
        match error {
            Texture::Stream(error) => Self::Rushes(error),
            error => Self::Texture(Box::new(error)),
        }
    }
}

impl From<rushes::srtp::KeyError> for Failure {
    fn from(error: rushes::srtp::KeyError) -> Self {
        Self::Security(error.to_string())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Closed => ClosedError::new_err("the object is closed"),
            Failure::Reentered => StateError::new_err(
                "a hook cannot use an object that has called it or that waits for it, nor close any \
                 object; use another thread",
            ),
            Failure::Polled => StateError::new_err("a poller receives the frames of the stream"),
            Failure::Rushes(error) => of_library(&error),
            Failure::Security(text) => SecurityError::new_err(text),
            Failure::Texture(error) => of_texture(&error),
            Failure::Gpu(text) => GpuError::new_err(text),
        }
    }
}

fn of_library(error: &rushes::Error) -> PyErr {
    use rushes::Error as E;
    let text = error.to_string();
    match error {
        E::Zrtp(Zrtp::Config(_))
        | E::AddressFamily { .. }
        | E::Channels
        | E::Cname { .. }
        | E::Config(_)
        | E::Destinations(_)
        | E::Format { .. }
        | E::FrameLen { .. }
        | E::FecPayloadType { .. }
        | E::FecPercent { .. }
        | E::FecSharesSsrc
        | E::FecSsrc { .. }
        | E::Mtu { .. }
        | E::Extension(_)
        | E::NoFec
        | E::PacingRate
        | E::RatePriority
        | E::RateOfGroup { .. }
        | E::NoRtx
        | E::NoTransportSequence
        | E::PacingShare { .. }
        | E::PaddingLimit { .. }
        | E::PacketTime { .. }
        | E::RtxPayloadType { .. }
        | E::RtxSsrc { .. }
        | E::TokenTaken { .. }
        | E::SharedPort { .. }
        | E::SourceWithoutGroup
        | E::StaticPayloadType { .. }
        | E::UnspecifiedPeer { .. }
        | E::Unsupported(_) => ConfigError::new_err(text),
        E::Peer(error) => of_peer(error, text),
        E::CircuitBreaker { .. } => CircuitBreakerError::new_err(text),
        E::Hooked | E::NoDestination | E::SendingStopped => StateError::new_err(text),
        E::Net(_) | E::NoPath | E::RtcpPort { .. } | E::Random(_) | E::Thread(_) => {
            NetError::new_err(text)
        }
        E::NoRtcp | E::RtcpBusy => RtcpError::new_err(text),
        E::Send(_) => SendError::new_err(text),
        E::Zrtp(_) | E::NoZrtp | E::NoKeys => ZrtpError::new_err(text),
        E::Frame(FrameKind::KeyExpired | FrameKind::TooManySources)
        | E::Sdes(_)
        | E::Key(_)
        | E::Policy(_) => SecurityError::new_err(text),
        E::Frame(_) => FrameError::new_err(text),
        _ => Error::new_err(text),
    }
}

fn of_peer(error: &PeerError, text: String) -> PyErr {
    match error {
        PeerError::Closed => ClosedError::new_err(text),
        PeerError::Order(_) => StateError::new_err(text),
        PeerError::ClosedByPeer | PeerError::NoPath | PeerError::Lost => NetError::new_err(text),
        PeerError::Dtls(_) | PeerError::Certificate(_) => SecurityError::new_err(text),
        _ => ConfigError::new_err(text),
    }
}

fn of_texture(error: &Texture) -> PyErr {
    let text = error.to_string();
    match error {
        Texture::Net(_) | Texture::Thread(_) => NetError::new_err(text),
        Texture::Layout(_) | Texture::Tiling(_) | Texture::Plan(_) | Texture::Codec(_) => {
            ConfigError::new_err(text)
        }
        _ => TextureError::new_err(text),
    }
}

/// Passes a hook's exception to `sys.unraisablehook`; `KeyboardInterrupt` goes to the main thread.
pub(crate) fn report_unraisable(py: Python<'_>, error: PyErr, hook: &Bound<'_, PyAny>) {
    if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
        let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
        if again.is_ok() {
            return;
        }
    }
    error.write_unraisable(py, Some(hook));
}
