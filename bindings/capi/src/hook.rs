//! C callbacks.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use crate::control_event::ControlEvent;
use crate::event::Event;
use crate::frame::Frame;
use crate::texture::TextureFrame;

/// Receives a frame. The frame is released when the hook returns, unless the hook called
/// rushes_frame_keep(). `user` is the pointer given with the hook.
pub type FrameHook = Option<extern "C-unwind" fn(user: *mut c_void, frame: *mut Frame)>;

/// Receives events about losses and sources. The event is valid during the call only.
pub type EventHook = Option<extern "C-unwind" fn(user: *mut c_void, event: *const Event)>;

/// Receives RTCP reports and requests. The event and the memory that it points to are valid during
/// the call only.
pub type RtcpHook = Option<extern "C-unwind" fn(user: *mut c_void, event: *const ControlEvent)>;

/// Receives a message of the library: its severity, a rushes_log_level, and a text in English that
/// is valid during the call only. rushes_set_log() documents what the hook may do.
pub type LogHook =
    Option<extern "C-unwind" fn(user: *mut c_void, level: i32, text: *const std::ffi::c_char)>;

/// Receives the short authentication string of a ZRTP key agreement, for people to compare: a text
/// that is valid during the call only, and whether it was compared in an earlier session that this
/// one continues. It may block. It returns 1 if the strings are equal, 0 if they were not compared
/// yet (see rushes_session_verify_sas()), and -1 if they differ: then there is a man in the middle,
/// and the stream is not opened.
pub type SasHook = Option<
    extern "C-unwind" fn(user: *mut c_void, sas: *const std::ffi::c_char, verified: bool) -> i32,
>;

/// Receives a frame of texture video, valid during the call only. It is called on the receiving
/// threads, one call at a time.
pub type TextureHook = Option<extern "C-unwind" fn(user: *mut c_void, frame: *const TextureFrame)>;

/// Writes the next picture into all `len` octets at `octets`; with `rewind` it starts again with
/// the first picture. It returns 1 if it wrote a picture, 0 at the end, and -1 on failure. It is
/// called on a thread of the server, one call at a time.
pub type TextureSourceHook = Option<
    extern "C-unwind" fn(user: *mut c_void, octets: *mut u8, len: usize, rewind: bool) -> i32,
>;

/// Reports that rushes_texture_client_last() has another frame. It is called on a thread of the client, one call
/// at a time; the next frame waits until it returns. It must not close the client, and may be called before
/// rushes_texture_connect_gpu() has returned: wake another thread, which asks for the frame.
pub type GpuHook = Option<extern "C-unwind" fn(user: *mut c_void)>;

/// Frees `user`. Called once, when the hook will not be called any more.
pub type Release = Option<extern "C-unwind" fn(user: *mut c_void)>;

thread_local! {
    /// Addresses of the callbacks that are running on this thread.
    static RUNNING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A C function with its `user` pointer; released on drop.
#[derive(Debug)]
pub(crate) struct Callback<F> {
    function: F,
    /// An address; since only C dereferences it, it may be sent to another thread.
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

    /// Calls the function through `call`. If the function throws, the process ends, because an
    /// exception must not unwind into the library.
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

    /// Returns whether the function is running on this thread.
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

/// Unwinding out of an `extern "C"` function aborts the process.
#[allow(improper_ctypes_definitions, reason = "it is called from here only")]
extern "C" fn without_unwinding(act: &mut dyn FnMut()) {
    act();
}
