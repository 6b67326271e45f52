//! Messages of the library, passed to a C function.
//!
//! The library logs through `tracing`, which passes messages on to `log` if no subscriber is
//! installed, as is the case here.

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
    /// Nothing is logged.
    Off = 0,
    /// An operation failed permanently: for example, retained secrets were not saved.
    Error = 1,
    /// The library works, but not as well as requested: a socket buffer is smaller, or a stream
    /// continues unencrypted. The message contains advice, if there is any.
    Warning = 2,
    /// Normal events of servers: a client was refused or disconnected.
    Info = 3,
    /// Events that a peer or the network causes, such as malformed reports or unsent datagrams, and
    /// substitutes for features that the system lacks. A peer can cause any number of these.
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

/// Returns whether this thread runs the log hook, which may be called under any lock of the
/// library.
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
        // Checked again under the lock, since the level may have changed.
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

/// Returns the filter of a rushes_log_level.
fn filter(level: i32) -> Option<LevelFilter> {
    LevelFilter::iter().find(|filter| *filter as i32 == level)
}

/// Passes the messages of the whole library up to `level`, a rushes_log_level, to `hook` from now
/// on. By default, with RUSHES_LOG_LEVEL_OFF and without a hook, nothing is logged. An earlier hook
/// is replaced: when this returns, it is not running and will not be called any more. `user` is
/// passed to the hook, and to `release` (may be NULL) when the hook will not be called any more; if
/// this fails, `release` is called at once.
///
/// The hook is called on any thread that uses the library or belongs to it, one call at a time. It
/// may be called in the middle of other calls: functions that return a status return
/// RUSHES_ERROR_BUSY in it, and it must not wait for a thread that is in a call of the library. It
/// should be quick. If it throws, the process ends.
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
        // This fails only if there is a logger already.
        INSTALLED.call_once(|| drop(::log::set_logger(&LOGGER)));
        let callback = Some(callback).filter(|_| filter != LevelFilter::Off);
        let mut place = CALLBACK.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, callback);
        ::log::set_max_level(filter);
        drop(place);
        // Dropped without the lock, because the C function may do anything.
        drop(before);
        Ok(())
    })
}
