//! Received frames.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::control_event::nanos;
use crate::error::Status;
use crate::guard::guard;
use crate::handle;
use crate::handle::kept;
use crate::pointer;

/// A received frame, lent by the stream: its octets are where the stream put them.
#[derive(Debug)]
pub struct Frame {
    frame: rushes::Frame,
    /// Whether it stays when the hook that it was given to has returned.
    is_kept: AtomicBool,
}
kept!(Frame, 4, "frame");

impl Frame {
    pub(crate) fn new(frame: rushes::Frame) -> Self {
        Self { frame, is_kept: AtomicBool::new(false) }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Relaxed)
    }
}

/// What a frame is. Later versions may have more at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FrameView {
    /// The frame's octets: NAL units with start codes, by default, or one frame of another format.
    /// They stay until rushes_frame_release(), and must not be written to.
    pub data: *const u8,
    /// How many there are.
    pub len: usize,
    /// The sampling instant, in ticks of the stream's clock rate.
    pub timestamp: u32,
    /// The source that sent it.
    pub ssrc: u32,
    /// NAL units in it; 1 for formats without.
    pub units: u32,
    /// Whether it ends an access unit.
    pub marker: bool,
}

/// Looks at a frame. `size` is sizeof(rushes_frame_view). Any thread may.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_look(
    frame: *const Frame,
    view: *mut FrameView,
    size: usize,
) -> Status {
    guard(|| {
        let kept = handle::get(frame)?;
        let frame = &kept.frame;
        let view_of = FrameView {
            data: frame.data().as_ptr(),
            len: frame.data().len(),
            timestamp: frame.timestamp().0,
            ssrc: frame.ssrc().0,
            units: frame.units(),
            marker: frame.marker(),
        };
        pointer::give_part(view, size, view_of)
    })
}

/// Nanoseconds since the frame's last datagram came in.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_age(frame: *const Frame, age: *mut u64) -> Status {
    guard(|| {
        let arrival = handle::get(frame)?.frame.arrival();
        pointer::give(age, nanos(arrival.elapsed()))
    })
}

/// Keeps a frame that a hook was given: from now on it is the application's, and stays until
/// rushes_frame_release(). Nothing is copied. To be called within the hook; frames that were pulled
/// are kept already.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_keep(frame: *const Frame) -> Status {
    guard(|| {
        handle::get(frame)?.is_kept.store(true, Relaxed);
        Ok(())
    })
}

/// Gives a frame's memory back to the stream, also when that is closed. Any thread may. Its octets
/// are not to be looked at any more.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_release(frame: *mut Frame) -> Status {
    guard(|| handle::take(frame).map(drop))
}
