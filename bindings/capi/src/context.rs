//! Contexts.

use std::ffi::c_char;

use crate::error::Status;
use crate::guard::guard;
use crate::handle::handle_type;
use crate::{handle, pointer};

/// The identity that streams share: one canonical name, one wall clock.
#[derive(Debug)]
pub struct Context(pub(crate) rushes::Context);
handle_type!(Context, 1, "context");

/// Returns the library's version, such as "0.1.0", in static memory: never free it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Creates a context; close it with rushes_context_close(). `cname` is the canonical name that its
/// streams announce to their peers (1 to 255 octets), or NULL for a random one.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_context_new(cname: *const c_char, context: *mut *mut Context) -> Status {
    guard(|| {
        pointer::write(context, std::ptr::null_mut())?;
        let new = match pointer::optional_text(cname)? {
            Some(cname) => rushes::Context::with_cname(cname)?,
            None => rushes::Context::new(),
        };
        pointer::write(context, handle::insert(Context(new))?)
    })
}

/// Closes a context. Sessions made from it stay open.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_context_close(context: *mut Context) -> Status {
    guard(|| handle::remove(context).map(drop))
}
