//! What a function says of its outcome, and why it failed.

use std::ffi::CStr;
use std::ffi::c_char;

use rushes::net::NetError;
use rushes::payload::FrameError;
use rushes::texture::TextureError;

use crate::guard;

/// What every function returns. Negative values are errors, of which rushes_last_error_message()
/// says more. Later versions may have further ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Nothing came in the time given. Not an error.
    Timeout = 1,
    /// A pointer is null that must not be.
    Null = -1,
    /// This is no handle of that kind.
    Handle = -2,
    /// The handle was closed or released before.
    Closed = -3,
    /// An argument is outside its range.
    Argument = -4,
    /// A text is not UTF-8.
    Text = -5,
    /// The buffer given is too small.
    Buffer = -6,
    /// Another thread, or the caller further up, is in a call that excludes this one.
    Busy = -7,
    /// The library failed: an error of its own, which it caught.
    Panic = -8,
    /// The stream's frames go to a hook.
    Hooked = -9,
    /// The frame cannot be sent in the stream's format.
    Frame = -10,
    /// The network refused something.
    Net = -11,
    /// The port is in use.
    AddressInUse = -12,
    /// The stream has no peer, or no remote port.
    NoDestination = -13,
    /// The stream has no RTCP.
    NoRtcp = -14,
    /// Part of a frame could not be sent.
    Send = -15,
    /// A key is of no use here, or used up.
    Key = -16,
    /// There was no agreement on keys (ZRTP).
    Zrtp = -17,
    /// The application said that the short authentication strings differ.
    Sas = -18,
    /// Not to be had in this build, on this system or in this state.
    Unsupported = -19,
    /// The operating system has no threads or no random numbers left.
    System = -20,
    /// Texture video could not begin.
    Texture = -21,
    /// Texture video has ended.
    Ended = -22,
}

/// Why something was not done.
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

/// An error and what caused it, each said once.
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
        Error::Hooked => Status::Hooked,
        Error::Net(error) | Error::RtcpPort { source: error, .. } => of_net(error),
        Error::NoRtcp => Status::NoRtcp,
        Error::NoDestination => Status::NoDestination,
        Error::Random(_) | Error::Thread(_) => Status::System,
        Error::RtcpBusy => Status::Busy,
        Error::Zrtp(_) => Status::Zrtp,
        Error::Send(_) => Status::Send,
        Error::SharedPort { .. } => Status::AddressInUse,
        Error::NoZrtp | Error::NoKeys | Error::Unsupported(_) => Status::Unsupported,
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

/// The name of a status, such as "closed"; "unknown" for a number that is none. Static: never to be
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_status_name(status: i32) -> *const c_char {
    let name: &CStr = match status {
        0 => c"ok",
        1 => c"timeout",
        -1 => c"null pointer",
        -2 => c"no such handle",
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
        _ => c"unknown",
    };
    name.as_ptr()
}

/// Why the last call of this thread that failed did so, in English; empty if none did. It stays
/// as it is until the next failure on this thread, and is never to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_last_error_message() -> *const c_char {
    guard::last_message()
}
