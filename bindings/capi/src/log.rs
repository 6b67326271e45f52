//! Messages of the library, passed to a C function.
//!
//! The library logs by `tracing`, which passes messages on to `log` where no subscriber is
//! installed; here none is.

use std::cell::Cell;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, Once, PoisonError};

use ::log::LevelFilter;

use crate::error::Status;
use crate::guard::guard;
use crate::hook::{Callback, LogHook, Release};
use crate::options::argument;

/// The severity of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum LogLevel {
    /// No message: to log nothing.
    Off = 0,
    /// Something failed and was given up: retained secrets were not saved, for example.
    Error = 1,
    /// The library works, but worse than requested: a socket buffer is smaller, or a stream
    /// continues unencrypted. The message contains the advice, if there is any.
    Warning = 2,
    /// Normal events of servers: a client was refused, or has left.
    Info = 3,
    /// What a peer or a network can cause: malformed reports, datagrams that were not sent; and ways
    /// around features that the system lacks. A peer can cause any number of these.
    Debug = 4,
    /// Details.
    Trace = 5,
}

struct Logger;

static LOGGER: Logger = Logger;
static CALLBACK: Mutex<Option<Callback<LogHook>>> = Mutex::new(None);

thread_local! {
    /// Whether this thread runs the hook.
    static IS_HOOKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs the log hook, which may be called under any lock of the library.
pub(crate) fn is_hook_running() -> bool {
    IS_HOOKED.try_with(Cell::get).unwrap_or(false)
}

impl ::log::Log for Logger {
    fn enabled(&self, metadata: &::log::Metadata<'_>) -> bool {
        metadata.level() <= ::log::max_level() && metadata.target().starts_with("rushes")
    }

    fn log(&self, record: &::log::Record<'_>) {
        let text = record.args().to_string().replace('\0', "");
        let text = CString::new(text).unwrap_or_default();
        let callback = CALLBACK.lock().unwrap_or_else(PoisonError::into_inner);
        // Checked again: the level changes under the lock.
        if let Some(callback) = callback.as_ref().filter(|_| self.enabled(record.metadata())) {
            let _ = IS_HOOKED.try_with(|hooked| hooked.set(true));
            callback.call(|hook, user| {
                if let Some(hook) = hook {
                    hook(user, record.level() as i32, text.as_ptr());
                }
            });
            let _ = IS_HOOKED.try_with(|hooked| hooked.set(false));
        }
    }

    fn flush(&self) {}
}

/// The filter of a rushes_log_level.
fn filter(level: i32) -> Option<LevelFilter> {
    LevelFilter::iter().find(|filter| *filter as i32 == level)
}

/// Passes the messages of the whole library from now on to `hook`, up to `level`, a
/// rushes_log_level; by default there are none. It replaces an earlier hook, which is not running
/// and will not be called any more when this returns. With RUSHES_LOG_LEVEL_OFF, or without a hook,
/// there are no messages. `user` is passed to the hook, and to `release` (may be NULL) once the hook
/// will not be called any more; if this fails, `release` is called at once.
///
/// The hook is called on any thread that uses the library or belongs to it, one call at a time. It
/// may be called in the midst of other calls: every function that returns a status is
/// RUSHES_ERROR_BUSY in it, and it must not wait for a thread that is in a call of the library. It
/// should be quick. It must not throw: that ends the process.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_set_log(
    level: i32,
    hook: LogHook,
    user: *mut c_void,
    release: Release,
) -> Status {
    static INSTALLED: Once = Once::new();
    let callback = Callback::new(hook, user, release);
    guard(|| {
        let filter =
            filter(level).ok_or_else(|| argument(format!("{level} is not a log level")))?;
        let filter = if hook.is_some() { filter } else { LevelFilter::Off };
        // Fails only if there is a logger already.
        INSTALLED.call_once(|| drop(::log::set_logger(&LOGGER)));
        let callback = Some(callback).filter(|_| filter != LevelFilter::Off);
        let mut place = CALLBACK.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, callback);
        ::log::set_max_level(filter);
        drop(place);
        // Without the lock: C's function may do anything.
        drop(before);
        Ok(())
    })
}
