//! Opening streams with keys agreed on by ZRTP.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rushes::MediaStream;
use rushes::zrtp::ZrtpError;

use crate::error::{Failure, Status};
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::hook::{Callback, SasHook};
use crate::options::{Settings, StreamOptions, settings};
use crate::stream::Stream;
use crate::turn::Turn;
use crate::{handle, pointer};

/// How long a wait blocks before it checks whether the opening was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A SAS hook with its `user` pointer.
pub(crate) type SasCallback = Callback<SasHook>;

/// A stream whose keys are being agreed on.
pub struct Opening {
    begun: Turn<Option<rushes::zrtp::Opening>>,
    local_port: u16,
    approval: Approval,
    is_closed: AtomicBool,
}
handle_type!(Opening, 6, "opening");

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("local_port", &self.local_port).finish_non_exhaustive()
    }
}

impl Opening {
    fn wait(&self, timeout: Duration) -> Result<Option<MediaStream>, Failure> {
        let ended = || Failure::new(Status::Closed, "the stream is open already, or was refused");
        let mut begun = self.begun.take()?;
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            let opened = begun.as_mut().ok_or_else(ended)?.wait(left.min(POLL_INTERVAL));
            if !matches!(opened, Ok(None)) || self.is_closed.load(Relaxed) {
                *begun = None;
            }
            if let Some(stream) = opened? {
                return Ok(Some(stream));
            }
            if left <= POLL_INTERVAL && begun.is_some() {
                return Ok(None);
            }
        }
    }
}

/// Approves a key agreement through the SAS hook.
struct Approval {
    session: rushes::Session,
    hook: Option<Arc<SasCallback>>,
}

impl Approval {
    fn ask(&self) -> Result<(), Failure> {
        let (Some(status), Some(callback)) = (self.session.sas(), &self.hook) else {
            return Ok(());
        };
        let sas = CString::new(status.sas.to_string()).unwrap_or_default();
        let answer = callback
            .call(|hook, user| hook.map_or(0, |hook| hook(user, sas.as_ptr(), status.is_verified)));
        match answer {
            Some(answer) if answer > 0 => {
                self.session.verify_sas(true);
                Ok(())
            }
            Some(answer) if answer < 0 => {
                self.session.verify_sas(false);
                let message =
                    "the short authentication strings differ: there is a man in the middle";
                Err(Failure::new(Status::Sas, message))
            }
            _ => Ok(()),
        }
    }
}

fn begin(settings: Settings) -> Result<(rushes::zrtp::Opening, Approval), Failure> {
    let Settings { builder, session, secrets, sas_hook, .. } = settings;
    let security = secrets.security().ok_or(rushes::Error::NoZrtp)?;
    let opening = builder.security(security).begin()?;
    Ok((opening, Approval { session, hook: sas_hook }))
}

/// Opens a stream, and agrees on its keys by ZRTP if that is configured.
pub(crate) fn open(settings: Settings) -> Result<MediaStream, Failure> {
    let Some(timeout) = settings.secrets.zrtp_timeout() else {
        let builder = settings.builder;
        return Ok(match settings.secrets.security() {
            Some(security) => builder.security(security),
            None => builder,
        }
        .open()?);
    };
    let (mut opening, approval) = begin(settings)?;
    let stream = opening.wait(timeout)?;
    let stream = stream.ok_or(rushes::Error::Zrtp(ZrtpError::Timeout))?;
    approval.ask()?;
    Ok(stream)
}

/// Begins to open a stream with rushes_stream_options_zrtp(): sends a Hello to the peer, or waits
/// for one. Close the opening with rushes_opening_close(), even after the stream is open.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_begin(
    options: *const StreamOptions,
    opening: *mut *mut Opening,
) -> Status {
    guard(|| {
        pointer::write(opening, std::ptr::null_mut())?;
        let (begun, approval) = begin(settings(options)?)?;
        let local_port = begun.local_address().port();
        let is_closed = AtomicBool::new(false);
        let new = Opening { begun: Turn::new(Some(begun)), local_port, approval, is_closed };
        pointer::write(opening, handle::insert(new)?)
    })
}

/// Gets the UDP port of the stream's socket.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_opening_local_port(opening: *const Opening, port: *mut u16) -> Status {
    guard(|| pointer::write(port, handle::get(opening)?.local_port))
}

/// Waits until the keys are agreed on, for at most `timeout` nanoseconds, then returns
/// RUSHES_TIMEOUT and may be called again. Close the stream with rushes_stream_close().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_opening_wait(
    opening: *const Opening,
    timeout: u64,
    stream: *mut *mut Stream,
) -> Status {
    guard_with(|| {
        pointer::write(stream, std::ptr::null_mut())?;
        let opening = handle::get(opening)?;
        let opened = opening.wait(Duration::from_nanos(timeout))?;
        let Some(opened) = opened else { return Ok(Status::Timeout) };
        opening.approval.ask()?;
        pointer::write(stream, handle::insert(Stream::new(opened)?)?)?;
        Ok(Status::Ok)
    })
}

/// Closes an opening. If the stream is not open yet, it will not be opened. A wait in progress on
/// another thread ends within 0.1 s with RUSHES_ERROR_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_opening_close(opening: *mut Opening) -> Status {
    guard(|| {
        handle::remove(opening)?.is_closed.store(true, Relaxed);
        Ok(())
    })
}
