//! Functions of C's that the library calls.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use crate::control_event::ControlEvent;
use crate::event::Event;
use crate::frame::Frame;
use crate::texture::TextureFrame;

/// Is given a received frame. It is lent: it goes back when the hook returns, unless the hook called
/// rushes_frame_keep(). `user` is what was given with the hook.
pub type FrameHook = Option<extern "C-unwind" fn(user: *mut c_void, frame: *mut Frame)>;

/// Is told of losses and sources. The event is lent for the call.
pub type EventHook = Option<extern "C-unwind" fn(user: *mut c_void, event: *const Event)>;

/// Is told of reports and requests. The event, and what it points to, is lent for the call.
pub type RtcpHook = Option<extern "C-unwind" fn(user: *mut c_void, event: *const ControlEvent)>;

/// Is told the short authentication string on which both ends agreed by ZRTP, for people to compare:
/// a text that is lent for the call, and whether it was compared in an earlier session that this one
/// continues. It may take its time. It returns 1 if the strings are equal, 0 if nobody compared
/// them (yet; see rushes_session_verify_sas()), and -1 if they differ: then somebody is in between,
/// and the stream is not opened.
pub type SasHook = Option<
    extern "C-unwind" fn(user: *mut c_void, sas: *const std::ffi::c_char, verified: bool) -> i32,
>;

/// Is given a received frame of texture video, lent for the call. It is called by the threads that
/// receive, one call at a time.
pub type TextureHook = Option<extern "C-unwind" fn(user: *mut c_void, frame: *const TextureFrame)>;

/// Writes the next picture into `octets`, `len` of them, all of which it must set. It returns 1 if it
/// did, 0 at the end, and -1 if it failed. It is called by a thread of the server's own, one call at
/// a time; `rewind` says that the first picture is wanted (again).
pub type TextureSourceHook = Option<
    extern "C-unwind" fn(user: *mut c_void, octets: *mut u8, len: usize, rewind: bool) -> i32,
>;

/// Is called once when the hook that it was given with will not be called any more: frees `user`.
pub type Release = Option<extern "C-unwind" fn(user: *mut c_void)>;

thread_local! {
    /// The callbacks that this thread is in, by where they are.
    static RUNNING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A function of C's with what it is called with; released when it is dropped.
#[derive(Debug)]
pub(crate) struct Callback<F> {
    function: F,
    /// An address, which only C follows: so it may go to another thread.
    user: usize,
    release: Release,
}

impl<F: Copy> Callback<F> {
    pub(crate) fn new(function: F, user: *mut c_void, release: Release) -> Self {
        Self { function, user: user.expose_provenance(), release }
    }

    fn user(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.user)
    }

    /// Calls the function by `call`. What it throws ends the process: nothing of it may get into the
    /// library.
    pub(crate) fn call<T>(&self, call: impl FnOnce(F, *mut c_void) -> T) -> Option<T> {
        let mut call = Some(call);
        let mut outcome = None;
        let this = ptr::from_ref(self).addr();
        let _ = RUNNING.try_with(|running| running.borrow_mut().push(this));
        without_unwinding(&mut || {
            outcome = call.take().map(|call| call(self.function, self.user()));
        });
        let _ = RUNNING.try_with(|running| running.borrow_mut().pop());
        outcome
    }

    /// Whether this thread is in a call of it.
    pub(crate) fn is_running_here(&self) -> bool {
        let this = ptr::from_ref(self).addr();
        RUNNING.try_with(|running| running.borrow().contains(&this)).unwrap_or(false)
    }
}

impl<F> Drop for Callback<F> {
    fn drop(&mut self) {
        let (release, user) = (self.release, self.user);
        without_unwinding(&mut || {
            if let Some(release) = release {
                release(ptr::with_exposed_provenance_mut(user));
            }
        });
    }
}

/// What unwinds out of a function of C's convention aborts the process.
#[allow(improper_ctypes_definitions, reason = "it is called from here only")]
extern "C" fn without_unwinding(act: &mut dyn FnMut()) {
    act();
}
