//! Received frames.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::control_event::nanos;
use crate::error::Status;
use crate::guard::guard;
use crate::handle::handle_type;
use crate::{handle, pointer};

/// A received frame, lent by the stream: its octets stay in the stream's memory.
#[derive(Debug)]
pub struct Frame {
    frame: rushes::Frame,
    /// Whether the frame outlives the call of the hook that received it.
    is_kept: AtomicBool,
}
handle_type!(Frame, 4, "frame");

impl Frame {
    pub(crate) fn new(frame: rushes::Frame) -> Self {
        Self { frame, is_kept: AtomicBool::new(false) }
    }

    pub(crate) fn frame(&self) -> &rushes::Frame {
        &self.frame
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Relaxed)
    }
}

/// A frame's data and properties. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FrameView {
    /// The frame's octets: NAL units with start codes, by default, or one frame of another format.
    /// They are valid until rushes_frame_release(), and must not be written to.
    pub data: *const u8,
    /// The number of octets.
    pub len: usize,
    /// The sampling instant, in ticks of the stream's clock rate.
    pub timestamp: u32,
    /// The source that sent it.
    pub ssrc: u32,
    /// The number of NAL units; 1 for formats without NAL units.
    pub units: u32,
    /// Whether it ends an access unit.
    pub marker: bool,
    /// Whether its packets carry the time of its capture (rushes_stream_options_extension()).
    pub has_capture_time: bool,
    /// That time by the sender's wall clock: seconds since 1900 in units of 2^-32 s, as in NTP.
    pub capture_time: u64,
    /// Whether its headers or packets tell its layers.
    pub has_layers: bool,
    /// The temporal layer: 0 is the base, and the frame needs none of a higher layer.
    pub temporal_id: u8,
    /// The highest spatial or quality layer in it: 0 is the base.
    pub spatial_id: u8,
    /// Whether it needs no earlier frame of its own temporal layer, so that a receiver of the layers
    /// below can begin with that layer here.
    pub begins_layer: bool,
    /// Whether no later frame of a higher temporal layer needs one of that layer before this frame.
    pub begins_higher: bool,
    /// The number of ranges that are missing, which rushes_frame_missing() returns; 0 for a whole frame.
    pub missing: usize,
    /// Whether it is the second field of a frame of interlaced uncompressed video.
    pub is_second_field: bool,
}

/// Reads a frame's data and properties. `size` is sizeof(rushes_frame_view). May be called on any
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_look(
    frame: *const Frame,
    view: *mut FrameView,
    size: usize,
) -> Status {
    guard(|| {
        let lent = handle::get(frame)?;
        let frame = &lent.frame;
        let layers = frame.layers();
        let view_of = FrameView {
            data: frame.data().as_ptr(),
            len: frame.data().len(),
            timestamp: frame.timestamp().0,
            ssrc: frame.ssrc().0,
            units: frame.units(),
            marker: frame.marker(),
            has_capture_time: frame.capture_time().is_some(),
            capture_time: frame.capture_time().map_or(0, |capture| capture.by_sender().0),
            has_layers: layers.is_some(),
            temporal_id: layers.map_or(0, |layers| layers.temporal_id),
            spatial_id: layers.map_or(0, |layers| layers.spatial_id),
            begins_layer: layers.is_some_and(|layers| layers.begins_layer),
            begins_higher: layers.is_some_and(|layers| layers.begins_higher),
            missing: frame.missing().len(),
            is_second_field: frame.is_second_field(),
        };
        pointer::write_prefix(view, size, view_of)
    })
}

/// Gets the octets of an element of header extensions that the frame's first packet carried or, if
/// `is_last`, its last; `data` becomes NULL if there is none. They are valid until
/// rushes_frame_release(). May be called on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_element(
    frame: *const Frame,
    id: u8,
    is_last: bool,
    data: *mut *const u8,
    len: *mut usize,
) -> Status {
    guard(|| {
        let lent = handle::get(frame)?;
        let element = if is_last {
            lent.frame.last_elements().find(|element| element.id == id)
        } else {
            lent.frame.first_elements().find(|element| element.id == id)
        };
        pointer::write(len, element.map_or(0, |element| element.data.len()))?;
        pointer::write(data, element.map_or(std::ptr::null(), |element| element.data.as_ptr()))
    })
}

/// Returns the nanoseconds since the frame's last datagram arrived.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_age(frame: *const Frame, age: *mut u64) -> Status {
    guard(|| {
        let arrival = handle::get(frame)?.frame.arrival();
        pointer::write(age, nanos(arrival.elapsed()))
    })
}

/// Keeps a frame that was passed to a hook: the application then owns it until
/// rushes_frame_release(). Nothing is copied. Call it within the hook. Pulled frames need no such
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_keep(frame: *const Frame) -> Status {
    guard(|| {
        handle::get(frame)?.is_kept.store(true, Relaxed);
        Ok(())
    })
}

/// Returns a frame's memory to the stream, even if that is closed. May be called on any thread. The
/// frame's octets must not be read afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_release(frame: *mut Frame) -> Status {
    guard(|| handle::remove(frame).map(drop))
}
