//! Streams: sending and receiving frames.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rushes::{
    FrameElements, Hook, MediaStream, Pacing, Rtcp, RtpTimestamp, StreamHandle, StreamReceiver,
    StreamSender,
};

use crate::control::RtcpHookSlot;
use crate::error::{Failure, Status};
use crate::frame::Frame;
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::hook::{Callback, EventHook, FrameHook, Release};
use crate::poller::Polled;
use crate::turn::{Turn, busy, is_within_call};
use crate::{event, handle, pointer};

/// How long a call waits before it checks whether the stream was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a wait may hold the port of a stream that was closed.
const WAIT_SLICE: Duration = Duration::from_millis(5);

/// A media stream to and from a peer.
pub struct Stream {
    pub(crate) sender: Turn<Sending>,
    receiver: Turn<Receiving>,
    pub(crate) rtcp: Rtcp,
    pub(crate) rtcp_hook: Arc<RtcpHookSlot>,
    pub(crate) handle: StreamHandle,
    is_closed: Arc<AtomicBool>,
}
handle_type!(Stream, 3, "stream");

pub(crate) struct Sending {
    pub(crate) sender: StreamSender,
    /// The buffer in which frames pushed in parts are assembled.
    assembled: Vec<u8>,
}

/// The destination of received frames.
enum Receiving {
    /// Frames are pulled from the receiver, which owns the event hook.
    Pulled(StreamReceiver, Weak<Callback<EventHook>>),
    Hooked(#[allow(dead_code, reason = "dropping it ends the hook")] Hook),
    /// A poller has the receiver.
    Polled(Polled, Weak<Callback<EventHook>>),
    Nowhere,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(stream: MediaStream) -> Result<Self, Failure> {
        let (rtcp, handle) = (stream.rtcp(), stream.handle());
        let (sender, receiver) = stream.split()?;
        Ok(Self {
            sender: Turn::new(Sending { sender, assembled: Vec::new() }),
            receiver: Turn::new(Receiving::Pulled(receiver, Weak::new())),
            rtcp,
            rtcp_hook: Arc::new(RtcpHookSlot::new()),
            handle,
            is_closed: Arc::default(),
        })
    }

    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.is_closed.load(Relaxed) {
            return Err(Failure::new(Status::Closed, "the stream was closed meanwhile"));
        }
        Ok(())
    }

    /// Returns the error of a call that needs the receiver.
    fn no_receiver(&self, receiving: &Receiving) -> Failure {
        self.check_open().err().unwrap_or_else(|| match receiving {
            Receiving::Polled(..) => {
                Failure::new(Status::Hooked, "a poller receives the frames of the stream")
            }
            _ => rushes::Error::Hooked.into(),
        })
    }

    /// Gives the receiver to a poller.
    pub(crate) fn lend(
        &self,
        polled: Polled,
        add: impl FnOnce(StreamReceiver) -> Result<(), rushes::Error>,
    ) -> Result<(), Failure> {
        let mut receiving = self.receiver.take()?;
        let (receiver, event_hook) = match std::mem::replace(&mut *receiving, Receiving::Nowhere) {
            Receiving::Pulled(receiver, event_hook) => (receiver, event_hook),
            other => {
                *receiving = other;
                return Err(self.no_receiver(&receiving));
            }
        };
        // If it is refused, the receiver is dropped; its hooks are released after the turn.
        let held = event_hook.upgrade();
        let outcome = add(receiver);
        if outcome.is_ok() {
            *receiving = Receiving::Polled(polled, event_hook);
        }
        drop(receiving);
        drop(held);
        Ok(outcome?)
    }

    /// Takes the receiver back from a poller, which `remove` removes it from.
    pub(crate) fn take_back(
        &self,
        remove: impl FnOnce() -> Option<StreamReceiver>,
    ) -> Result<(), Failure> {
        let mut receiving = self.receiver.wait()?;
        let Receiving::Polled(_, event_hook) = &*receiving else { return Ok(()) };
        let event_hook = event_hook.clone();
        if let Some(receiver) = remove() {
            *receiving = Receiving::Pulled(receiver, event_hook);
        }
        Ok(())
    }

    fn pull(&self, timeout: Duration) -> Result<Option<rushes::Frame>, Failure> {
        let mut receiving = self.receiver.take()?;
        let Receiving::Pulled(receiver, _) = &mut *receiving else {
            return Err(self.no_receiver(&receiving));
        };
        // Most frames arrive in the first slice; then the clock need not be read.
        let mut slice = timeout.min(POLL_INTERVAL);
        let mut deadline = None;
        loop {
            if let Some(frame) = receiver.pull_frame(slice)? {
                return Ok(Some(frame));
            }
            self.check_open()?;
            let rest = timeout.saturating_sub(POLL_INTERVAL);
            let deadline = deadline.get_or_insert_with(|| Instant::now().checked_add(rest));
            let left = deadline.map_or(POLL_INTERVAL, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(None);
            }
            slice = left.min(POLL_INTERVAL);
        }
    }

    pub(crate) fn push(
        &self,
        frame: &[u8],
        timestamp: Option<u32>,
        captured: Option<Instant>,
    ) -> Result<(), Failure> {
        let mut sending = self.sender.wait()?;
        let captured = captured.unwrap_or_else(Instant::now);
        let timestamp = timestamp.map(RtpTimestamp);
        Ok(sending.sender.push_frame_captured(frame, timestamp, captured)?)
    }

    /// Delivers the stream's frames to a hook.
    fn start_hook(
        &self,
        hook: extern "C-unwind" fn(*mut c_void, *mut Frame),
        callback: &Arc<Callback<FrameHook>>,
    ) -> Result<(), Failure> {
        let mut receiving = self.receiver.take()?;
        let (receiver, event_hook) = match std::mem::replace(&mut *receiving, Receiving::Nowhere) {
            Receiving::Pulled(receiver, event_hook) => (receiver, event_hook.upgrade()),
            other => {
                *receiving = other;
                return Err(self.no_receiver(&receiving));
            }
        };
        let (callback, is_closed) = (callback.clone(), self.is_closed.clone());
        let started = receiver.on_frame(move |frame| {
            if !is_closed.load(Relaxed) {
                lend(frame, hook, &callback);
            }
        });
        let outcome = started.map(|started| *receiving = Receiving::Hooked(started));
        // If no thread was started, the receiver was dropped; its hooks are released after the
        // turn.
        drop(receiving);
        drop(event_hook);
        Ok(outcome?)
    }

    /// Sets an event hook. The caller must drop the returned previous one after releasing the turn.
    fn replace_event_hook(
        &self,
        hook: extern "C-unwind" fn(*mut c_void, *const event::Event),
        callback: Arc<Callback<EventHook>>,
    ) -> Result<Option<Arc<Callback<EventHook>>>, Failure> {
        let mut receiving = self.receiver.take()?;
        let Receiving::Pulled(receiver, event_hook) = &mut *receiving else {
            return Err(self.no_receiver(&receiving));
        };
        let before = std::mem::replace(event_hook, Arc::downgrade(&callback)).upgrade();
        let (is_closed, errors) = (self.is_closed.clone(), callback.clone());
        receiver.on_error(move |error| {
            if !is_closed.load(Relaxed) {
                errors.call(|_, user| event::with_error(error, |event| hook(user, event)));
            }
        });
        let is_closed = self.is_closed.clone();
        receiver.on_event(move |event| {
            if !is_closed.load(Relaxed) {
                callback.call(|_, user| event::with(&event, |event| hook(user, event)));
            }
        });
        Ok(before)
    }

    /// Ends the stream's hooks. The last call in progress ends the stream.
    fn close(&self) {
        self.is_closed.store(true, Relaxed);
        // A call in progress on another thread checks this flag, and ends soon.
        let receiving = self
            .receiver
            .wait()
            .map(|mut receiving| std::mem::replace(&mut *receiving, Receiving::Nowhere));
        if let Ok(Receiving::Polled(polled, _)) = &receiving {
            polled.leave(self);
        }
        // Dropped without the turn, because its hook may use the stream.
        drop(receiving);
        self.rtcp_hook.end();
    }
}

/// Closes a stream: sends BYE, ends its hooks and releases its port.
///
/// When it returns, no hook of the stream is running or will be called. On other threads, a pull or
/// a wait in progress ends within 0.1 s with RUSHES_ERROR_CLOSED; a push in progress completes and
/// then releases the port. The receive hook of the stream may call it, and so may the event hook of
/// a stream with a receive hook; neither is called again. From an RTCP hook, or from the event hook
/// of a stream that is pulled, it returns RUSHES_ERROR_BUSY and the stream stays open. Two hooks
/// must not close each other's streams at the same time, since each would wait for the other.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_close(stream: *mut Stream) -> Status {
    guard(|| {
        handle::get(stream)?;
        if is_within_call() {
            return Err(busy(
                "a stream cannot be closed from a hook that runs within a call on this thread",
            ));
        }
        handle::remove(stream)?.close();
        Ok(())
    })
}

/// Sends one frame: an access unit with start codes, an Opus packet, or a frame as the stream's
/// codec defines it. Returns when the kernel has accepted all of it; the octets are unchanged and
/// may be reused.
///
/// `timestamp` is the sampling instant in ticks of the stream's clock rate; with NULL it is one
/// frame interval after the previous frame. With pacing (rushes_stream_options_pacing_share()),
/// sending a large frame takes the set share of the frame interval. Any thread may push; frames
/// pushed at the same time are sent one after the other.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_push_frame(
    stream: *const Stream,
    data: *const u8,
    len: usize,
    timestamp: *const u32,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        stream.push(pointer::slice(data, len)?, pointer::optional(timestamp)?, None)
    })
}

/// Like rushes_stream_push_frame(), for a frame that was captured `age` nanoseconds ago. Reports
/// carry this time to the receiver, which can then synchronise streams of several devices.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_push_frame_captured(
    stream: *const Stream,
    data: *const u8,
    len: usize,
    timestamp: *const u32,
    age: u64,
) -> Status {
    guard(|| {
        let captured = Instant::now().checked_sub(Duration::from_nanos(age));
        let stream = handle::get(stream)?;
        stream.push(pointer::slice(data, len)?, pointer::optional(timestamp)?, captured)
    })
}

/// The packets of a frame that carry an element of header extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Placement {
    /// The first packet.
    First = 0,
    /// The last packet.
    Last = 1,
    /// Every packet.
    Every = 2,
}

/// An element of RTP header extensions for the packets of a frame.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Element {
    /// The packets that carry it: a rushes_placement.
    pub placement: i32,
    /// Its identifier.
    pub id: u8,
    /// Its octets.
    pub data: *const u8,
    /// The number of octets.
    pub len: usize,
}

fn elements_of(elements: &[Element]) -> Result<FrameElements, Failure> {
    elements.iter().try_fold(FrameElements::default(), |all, element| {
        let placement = match element.placement {
            place if place == Placement::First as i32 => rushes::Placement::First,
            place if place == Placement::Last as i32 => rushes::Placement::Last,
            place if place == Placement::Every as i32 => rushes::Placement::Every,
            other => {
                let message = format!("{other} is not a placement of an element");
                return Err(crate::options::argument(message));
            }
        };
        Ok(all.with(placement, element.id, pointer::slice(element.data, element.len)?))
    })
}

/// Like rushes_stream_push_frame_captured(), for a frame whose packets carry `count` elements of
/// header extensions, each of an identifier that was agreed on
/// (rushes_stream_options_extension_uri()).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_push_frame_with(
    stream: *const Stream,
    data: *const u8,
    len: usize,
    timestamp: *const u32,
    age: u64,
    elements: *const Element,
    count: usize,
) -> Status {
    guard(|| {
        let captured = Instant::now().checked_sub(Duration::from_nanos(age));
        let captured = captured.unwrap_or_else(Instant::now);
        let stream = handle::get(stream)?;
        let elements = elements_of(pointer::slice(elements, count)?)?;
        let (frame, timestamp) = (pointer::slice(data, len)?, pointer::optional(timestamp)?);
        let mut sending = stream.sender.wait()?;
        let timestamp = timestamp.map(RtpTimestamp);
        Ok(sending.sender.push_frame_with(frame, timestamp, captured, &elements)?)
    })
}

/// A part of a frame.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Part {
    /// The octets of the part.
    pub data: *const u8,
    /// The number of octets.
    pub len: usize,
}

/// Like rushes_stream_push_frame(), for a frame in `count` separate parts, such as parameter sets
/// and a slice. Two or more parts are copied once, into memory that the stream keeps.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_push_frame_parts(
    stream: *const Stream,
    parts: *const Part,
    count: usize,
    timestamp: *const u32,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        let timestamp = pointer::optional(timestamp)?;
        let parts = pointer::slice(parts, count)?;
        if let [part] = parts {
            return stream.push(pointer::slice(part.data, part.len)?, timestamp, None);
        }
        let mut sending = stream.sender.wait()?;
        let Sending { sender, assembled } = &mut *sending;
        assembled.clear();
        for part in parts {
            assembled.extend_from_slice(pointer::slice(part.data, part.len)?);
        }
        Ok(sender.push_frame(assembled, timestamp.map(RtpTimestamp))?)
    })
}

/// Sends one packet without payload. By its sequence number receivers detect packets lost before
/// it, which is useful at the end of a stream.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_send_keep_alive(stream: *const Stream) -> Status {
    guard(|| Ok(handle::get(stream)?.sender.wait()?.sender.send_keep_alive()?))
}

/// Lets the stream send again after RUSHES_ERROR_CIRCUIT_BREAKER, which it also returns if it is
/// too early: a stop lasts at least 15 seconds (RFC 8083 section 4.5).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_resume(stream: *const Stream) -> Status {
    guard(|| Ok(handle::get(stream)?.sender.wait()?.sender.resume()?))
}

/// Ends sending, from any thread: a thread that is pushing a frame returns RUSHES_ERROR_ENDED within
/// about 100 ms, however slow the pacing is, and so does every later push. Receivers drop the frame.
/// Keep-alives, reports and BYE are still sent.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_stop_sending(stream: *const Stream) -> Status {
    guard(|| {
        handle::get(stream)?.handle.stop_sending();
        Ok(())
    })
}

/// Leaves out the frames of temporal layers above `max` from the next frame on; UINT8_MAX sends
/// all. Frames of a higher layer than before are sent from the next one on at which a decoder can begin
/// with it. Only frames whose headers tell their layer are left out: of H.265, H.266, AV1, and H.264
/// with prefix units. While another thread pushes a frame, the call waits for its end.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_set_max_temporal_id(stream: *const Stream, max: u8) -> Status {
    guard(|| {
        let max = Some(max).filter(|max| *max != u8::MAX);
        handle::get(stream)?.handle.set_max_temporal_id(max);
        Ok(())
    })
}

fn set_pacing(stream: *const Stream, pacing: Pacing) -> Status {
    guard(|| Ok(handle::get(stream)?.sender.wait()?.sender.set_pacing(pacing)?))
}

/// Sends packets without pacing from the next frame on, as rushes_stream_options_pacing_off(). Under
/// rate control the rate of that applies instead. While another thread pushes a frame, the call waits
/// for its end.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_set_pacing_off(stream: *const Stream) -> Status {
    set_pacing(stream, Pacing::Off)
}

/// Spreads the packets of a frame over this share of the frame interval from the next frame on, as
/// rushes_stream_options_pacing_share(). Otherwise as rushes_stream_set_pacing_off().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_set_pacing_share(stream: *const Stream, share: f32) -> Status {
    set_pacing(stream, Pacing::Share(share))
}

/// Sends packets at this rate from the next frame on, in bits of UDP payload per second, as
/// rushes_stream_options_pacing_rate(), for example on a path that has turned out to be narrow.
/// Otherwise as rushes_stream_set_pacing_off().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_set_pacing_rate(
    stream: *const Stream,
    bits_per_second: u64,
) -> Status {
    set_pacing(stream, Pacing::Rate(bits_per_second))
}

/// Waits for `time` nanoseconds and answers requests and reports meanwhile. An application that
/// only sends should call it between frames. Other threads may push meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_wait(stream: *const Stream, time: u64) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        let start = Instant::now();
        let time = Duration::from_nanos(time);
        loop {
            stream.check_open()?;
            let left = time.saturating_sub(start.elapsed());
            stream.handle.wait_until(Instant::now() + left.min(WAIT_SLICE))?;
            if left <= WAIT_SLICE {
                return Ok(());
            }
        }
    })
}

/// Waits for the next frame, at most for `timeout` nanoseconds (RUSHES_FOREVER: until the stream is
/// closed); with 0 it returns a frame only if one is ready. RUSHES_TIMEOUT, and NULL in `*frame`,
/// if none arrived.
///
/// Frames of one source are delivered in order, complete and once each. The frame is lent until
/// rushes_frame_release(). Only one thread may pull at a time; others get RUSHES_ERROR_BUSY.
/// RUSHES_ERROR_HOOKED if the frames are delivered to a hook.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_pull_frame(
    stream: *const Stream,
    timeout: u64,
    frame: *mut *mut Frame,
) -> Status {
    guard_with(|| {
        pointer::write(frame, std::ptr::null_mut())?;
        let timeout =
            if timeout == u64::MAX { Duration::MAX } else { Duration::from_nanos(timeout) };
        let Some(pulled) = handle::get(stream)?.pull(timeout)? else {
            return Ok(Status::Timeout);
        };
        pointer::write(frame, handle::insert(Frame::new(pulled))?)?;
        Ok(Status::Ok)
    })
}

/// Delivers every frame from now on to `hook`, in order and one at a time. `user` is passed to the
/// hook, and to `release` (may be NULL) when the hook will not be called any more; if this fails,
/// `release` is called at once. RUSHES_ERROR_HOOKED if there is a hook already.
///
/// The hooks of all streams share as many threads as there are cores. While a hook has not returned
/// for 0.1 s or more, another thread calls those of the other streams on its thread.
///
/// The hook may call every function of the library, including rushes_stream_close() on its own
/// stream. If it throws, the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_on_frame(
    stream: *const Stream,
    hook: FrameHook,
    user: *mut c_void,
    release: Release,
) -> Status {
    let callback = Arc::new(Callback::new(hook, user, release));
    guard(|| {
        let hook = hook.ok_or_else(|| Failure::new(Status::Null, "the hook is null"))?;
        handle::get(stream)?.start_hook(hook, &callback)
    })
}

/// Lends a frame to a hook.
fn lend(
    frame: rushes::Frame,
    hook: extern "C-unwind" fn(*mut c_void, *mut Frame),
    callback: &Callback<FrameHook>,
) {
    let frame = Arc::new(Frame::new(frame));
    let Ok(lent) = handle::insert_shared(frame.clone()) else { return };
    callback.call(|_, user| hook(user, lent));
    if !frame.is_kept() {
        // This fails if the hook has released the frame itself.
        let _ = handle::remove(lent);
    }
}

/// Sets a function that receives events about lost packets, dropped frames and sources that start
/// or end, on the thread that pulls or runs the receive hook. It also receives errors of the
/// receive hook's thread when it cannot read the socket. Set it before rushes_stream_on_frame();
/// `user` and `release` are as for that function. When called within a pull, it may push and
/// request reports; a call that would have to wait for another thread then returns
/// RUSHES_ERROR_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_on_event(
    stream: *const Stream,
    hook: EventHook,
    user: *mut c_void,
    release: Release,
) -> Status {
    let callback = Arc::new(Callback::new(hook, user, release));
    guard(|| {
        let hook = hook.ok_or_else(|| Failure::new(Status::Null, "the hook is null"))?;
        let before = handle::get(stream)?.replace_event_hook(hook, callback)?;
        drop(before);
        Ok(())
    })
}

/// Gets the stream's own SSRC. A collision may change it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_ssrc(stream: *const Stream, ssrc: *mut u32) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        pointer::write(ssrc, stream.handle.ssrc().0)
    })
}

/// Gets the UDP port of the stream's socket.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_local_port(stream: *const Stream, port: *mut u16) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        pointer::write(port, stream.handle.local_address().port())
    })
}

/// Writes the local address and port of the stream's socket as a text, such as "127.0.0.1:5004",
/// into `size` octets; 64 are enough.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_local_address(
    stream: *const Stream,
    text: *mut c_char,
    size: usize,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        pointer::write_text(text, size, &stream.handle.local_address().to_string())
    })
}

/// Gets the timestamp, in ticks, that the next frame will have if none is given.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_next_timestamp(
    stream: *const Stream,
    timestamp: *mut u32,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        let next = stream.sender.wait()?.sender.next_timestamp();
        pointer::write(timestamp, next.0)
    })
}
