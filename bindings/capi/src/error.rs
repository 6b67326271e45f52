//! Status codes and error messages.

use std::ffi::{CStr, c_char};

use rushes::file::FileError;
use rushes::net::NetError;
use rushes::payload::FrameError;
use rushes::peer::PeerError;
use rushes::texture::TextureError;

use crate::guard;

/// The result of every function. Negative values are errors, which rushes_last_error_message()
/// describes. Later versions may add values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// Nothing arrived in the given time. This is not an error.
    Timeout = 1,
    /// A pointer is null where that is not allowed.
    Null = -1,
    /// Not a handle of this kind.
    Handle = -2,
    /// The handle was closed or released before.
    Closed = -3,
    /// An argument is outside its range.
    Argument = -4,
    /// A string is not UTF-8.
    Text = -5,
    /// The buffer given is too small.
    Buffer = -6,
    /// Another thread, or a caller of the current hook on this thread, is in a call that excludes
    /// this one.
    Busy = -7,
    /// An internal error: the library panicked, and the panic was caught.
    Panic = -8,
    /// The stream's frames are delivered to a hook, or received by a poller.
    Hooked = -9,
    /// The frame cannot be sent in the stream's format.
    Frame = -10,
    /// A network operation failed, or there is no path to a peer.
    Net = -11,
    /// The port is in use.
    AddressInUse = -12,
    /// The stream has no peer, or no remote port.
    NoDestination = -13,
    /// The stream has no RTCP.
    NoRtcp = -14,
    /// Part of a frame could not be sent.
    Send = -15,
    /// A key cannot be used here, is exhausted, or could not be agreed on with a peer.
    Key = -16,
    /// Key agreement by ZRTP failed.
    Zrtp = -17,
    /// The application reported that the short authentication strings differ.
    Sas = -18,
    /// The function is not available in this build, on this system or in this state.
    Unsupported = -19,
    /// The operating system could not provide a thread or random numbers.
    System = -20,
    /// Texture video could not start.
    Texture = -21,
    /// Texture video or a peer's connection has ended, a file has no more frames, or the application
    /// stopped sending.
    Ended = -22,
    /// A media file cannot be read.
    File = -23,
    /// The stream has stopped sending, to protect the network (RFC 8083):
    /// rushes_stream_resume().
    CircuitBreaker = -24,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

/// Formats an error and its causes, each only once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !message.contains(&more) {
            message = format!("{message}: {more}");
        }
        cause = error.source();
    }
    message
}

fn of_net(error: &NetError) -> Status {
    match error {
        NetError::AddressInUse { .. } => Status::AddressInUse,
        NetError::Unsupported { .. } => Status::Unsupported,
        NetError::Range { .. } => Status::Argument,
        _ => Status::Net,
    }
}

fn of_stream(error: &rushes::Error) -> Status {
    use rushes::Error;
    match error {
        Error::Frame(FrameError::KeyExpired | FrameError::TooManySources)
        | Error::Key(_)
        | Error::Policy(_)
        | Error::Sdes(_) => Status::Key,
        Error::Frame(_) => Status::Frame,
        Error::CircuitBreaker { .. } => Status::CircuitBreaker,
        Error::Hooked => Status::Hooked,
        Error::Net(error) | Error::RtcpPort { source: error, .. } => of_net(error),
        Error::NoRtcp => Status::NoRtcp,
        Error::NoDestination => Status::NoDestination,
        Error::Random(_) | Error::Thread(_) => Status::System,
        Error::RtcpBusy => Status::Busy,
        Error::Zrtp(_) => Status::Zrtp,
        Error::Peer(error) => of_peer(error),
        Error::NoPath => Status::Net,
        Error::Send(_) => Status::Send,
        Error::SendingStopped => Status::Ended,
        Error::SharedPort { .. } => Status::AddressInUse,
        Error::NoZrtp | Error::NoKeys | Error::Unsupported(_) => Status::Unsupported,
        _ => Status::Argument,
    }
}

fn of_peer(error: &PeerError) -> Status {
    match error {
        PeerError::Closed | PeerError::ClosedByPeer => Status::Ended,
        PeerError::NoPath | PeerError::Lost => Status::Net,
        PeerError::Dtls(_) | PeerError::Certificate(_) => Status::Key,
        PeerError::Order(_) => Status::Unsupported,
        _ => Status::Argument,
    }
}

impl From<rushes::Error> for Failure {
    fn from(error: rushes::Error) -> Self {
        Self::new(of_stream(&error), chain(&error))
    }
}

impl From<rushes::srtp::KeyError> for Failure {
    fn from(error: rushes::srtp::KeyError) -> Self {
        Self::new(Status::Key, chain(&error))
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::new(Status::File, chain(&error))
    }
}

impl From<NetError> for Failure {
    fn from(error: NetError) -> Self {
        Self::new(of_net(&error), chain(&error))
    }
}

impl From<TextureError> for Failure {
    fn from(error: TextureError) -> Self {
        let status = match &error {
            TextureError::Net(error) => of_net(error),
            TextureError::Stream(error) => of_stream(error),
            TextureError::Ended(_) => Status::Ended,
            TextureError::Thread(_) => Status::System,
            _ => Status::Texture,
        };
        Self::new(status, chain(&error))
    }
}

/// Returns the failure of an index that is out of range.
pub(crate) fn out_of_range(what: &str) -> Failure {
    Failure::new(Status::Argument, format!("the index is out of range: there are fewer {what}"))
}

/// Returns the name of a status, such as "closed", or "unknown" for any other number. The text is
/// static: never free it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_status_name(status: i32) -> *const c_char {
    let name: &CStr = match status {
        0 => c"ok",
        1 => c"timeout",
        -1 => c"null pointer",
        -2 => c"invalid handle",
        -3 => c"closed",
        -4 => c"argument",
        -5 => c"text",
        -6 => c"buffer",
        -7 => c"busy",
        -8 => c"panic",
        -9 => c"hooked",
        -10 => c"frame",
        -11 => c"network",
        -12 => c"address in use",
        -13 => c"no destination",
        -14 => c"no RTCP",
        -15 => c"send",
        -16 => c"key",
        -17 => c"ZRTP",
        -18 => c"authentication string",
        -19 => c"unsupported",
        -20 => c"system",
        -21 => c"texture",
        -22 => c"ended",
        -23 => c"file",
        -24 => c"circuit breaker",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// Returns the error message of the last failed call on this thread, in English; empty if none
/// failed. The text stays valid until the next failure on this thread; never free it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_last_error_message() -> *const c_char {
    guard::last_message()
}
