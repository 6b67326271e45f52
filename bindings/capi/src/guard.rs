//! The boundary to C: a panic becomes a status, and a failure stores its message.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, Status};
use crate::log;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Runs the body of a C function; a failure's message is stored for
/// [`rushes_last_error_message`](crate::error::rushes_last_error_message).
pub(crate) fn guard(act: impl FnOnce() -> Result<(), Failure>) -> Status {
    guard_with(|| act().map(|()| Status::Ok))
}

/// Like [`guard`], for functions that can return another status than [`Status::Ok`] on success.
pub(crate) fn guard_with(act: impl FnOnce() -> Result<Status, Failure>) -> Status {
    if log::is_hook_running() {
        store_message("a log hook cannot call the library".to_owned());
        return Status::Busy;
    }
    let outcome = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Failure::new(Status::Panic, message.unwrap_or_else(|| "a panic".to_owned())))
    });
    outcome.unwrap_or_else(|failure| {
        store_message(failure.message);
        failure.status
    })
}

fn store_message(message: String) {
    let mut octets = message.into_bytes();
    octets.retain(|octet| *octet != 0);
    let message = CString::new(octets).unwrap_or_default();
    // While the thread exits, the thread-local may already be destroyed.
    let _ = MESSAGE.try_with(|stored| *stored.borrow_mut() = message);
}

pub(crate) fn last_message() -> *const c_char {
    MESSAGE.try_with(|stored| stored.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let status = guard(|| Err(Failure::new(Status::Net, "a\0b")));
        assert_eq!(status, Status::Net);
        assert_eq!(MESSAGE.with(|stored| stored.borrow().clone()).as_c_str(), c"ab");
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let status = guard(|| std::panic::panic_any("words".to_owned()));
        std::panic::set_hook(hook);
        assert_eq!(status, Status::Panic);
        assert_eq!(MESSAGE.with(|stored| stored.borrow().clone()).as_c_str(), c"words");
        assert_eq!(guard(|| Ok(())), Status::Ok);
    }
}
