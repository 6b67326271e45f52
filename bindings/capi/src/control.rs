//! RTCP: events from peers, and requests to them.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Once};

use rushes::proto::rtcp::BitRateLimit;
use rushes::{AppData, KeyFrameRequest, Ssrc};

use crate::error::{Failure, Status};
use crate::guard::guard;
use crate::hook::{Callback, Release, RtcpHook};
use crate::options::argument;
use crate::stream::Stream;
use crate::turn::Turn;
use crate::{control_event, handle, pointer};

/// A stream's RTCP hook, which can be replaced and removed while reports arrive.
#[derive(Debug)]
pub(crate) struct RtcpHookSlot {
    callback: Turn<Option<Callback<RtcpHook>>>,
    listening: Once,
}

impl RtcpHookSlot {
    pub(crate) fn new() -> Self {
        Self { callback: Turn::default(), listening: Once::new() }
    }

    /// Sets the hook unless the stream is closed. The caller must drop the returned previous hook
    /// after releasing the turn.
    fn replace(
        &self,
        stream: &Stream,
        callback: Callback<RtcpHook>,
    ) -> Result<Option<Callback<RtcpHook>>, Failure> {
        let mut hook = self.callback.wait()?;
        // Checked while the turn is held, so that a later close removes the hook again.
        stream.check_open()?;
        Ok(hook.replace(callback))
    }

    /// Removes the hook; waits while it is running.
    pub(crate) fn end(&self) {
        let callback = self.callback.wait().map(|mut callback| callback.take());
        drop(callback);
    }
}

/// Sets a function that receives every RTCP report and request, on the thread that reads the
/// stream's port: one that pulls, pushes, waits or runs the receive hook. Until a function is set,
/// the latest 32 events are queued. It replaces an earlier one. `user` is passed to the function,
/// and to `release` (may be NULL) when the function will not be called any more.
///
/// The hook may request reports and push to other streams. A call that would have to wait for
/// another, such as pushing to the stream whose push called the hook, returns RUSHES_ERROR_BUSY;
/// make it on the thread that pushes. If the hook throws, the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_on_rtcp(
    stream: *const Stream,
    hook: RtcpHook,
    user: *mut c_void,
    release: Release,
) -> Status {
    let callback = Callback::new(hook, user, release);
    guard(|| {
        if hook.is_none() {
            return Err(Failure::new(Status::Null, "the hook is null"));
        }
        let stream = handle::get(stream)?;
        let slot = &stream.rtcp_hook;
        let before = slot.replace(&stream, callback)?;
        drop(before);
        slot.listening.call_once(|| {
            let slot = slot.clone();
            stream.rtcp.on_event(move |event| dispatch(&slot, &event));
        });
        Ok(())
    })
}

fn dispatch(slot: &Arc<RtcpHookSlot>, event: &rushes::ControlEvent) {
    // This fails while the hook is being replaced; then there is none to call.
    let Ok(callback) = slot.callback.wait() else { return };
    if let Some(callback) = &*callback {
        callback.call(|hook, user| {
            if let Some(hook) = hook {
                control_event::with(event, |event| hook(user, event));
            }
        });
    }
}

/// Gets the bit rate that the stream's encoder should produce, in bits per second; 0 without rate
/// control. May be called on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_target_rate(
    stream: *const Stream,
    bits_per_second: *mut u64,
) -> Status {
    guard(|| {
        let rate = handle::get(stream)?.rtcp.target_rate();
        pointer::write(bits_per_second, rate.unwrap_or(0))
    })
}

/// The kind of a key frame request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum KeyFrame {
    /// Pictures were lost (PLI).
    PictureLoss = 1,
    /// A decoder refresh point is needed, for example when a receiver joins (FIR).
    FullIntra = 2,
}

/// Requests a key frame from every media source; `request` is a rushes_key_frame. With feedback
/// (rushes_stream_options_feedback()) the request is sent at once, otherwise with the next report,
/// up to some seconds later. May be called on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_request_key_frame(stream: *const Stream, request: i32) -> Status {
    guard(|| {
        let request = match request {
            1 => KeyFrameRequest::PictureLoss,
            2 => KeyFrameRequest::FullIntra,
            _ => return Err(argument(format!("{request} is not a kind of key frame request"))),
        };
        Ok(handle::get(stream)?.rtcp.request_key_frame(request)?)
    })
}

/// Requests that the media source `ssrc` limit its bit rate (TMMBR, RFC 5104). `overhead`, 0..=511,
/// is the number of header octets that count for each packet.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_request_bit_rate(
    stream: *const Stream,
    ssrc: u32,
    bits_per_second: u64,
    overhead: u16,
) -> Status {
    guard(|| {
        let limit = BitRateLimit { ssrc: Ssrc(ssrc), bit_rate: bits_per_second, overhead };
        Ok(handle::get(stream)?.rtcp.request_bit_rate(limit)?)
    })
}

/// Sends `count` media sources an estimate of the bit rate that the path can carry for all of them
/// together (REMB).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_send_estimate(
    stream: *const Stream,
    bits_per_second: u64,
    sources: *const u32,
    count: usize,
) -> Status {
    guard(|| {
        let sources: Vec<_> = pointer::slice(sources, count)?.iter().copied().map(Ssrc).collect();
        Ok(handle::get(stream)?.rtcp.send_estimate(bits_per_second, &sources)?)
    })
}

/// Sends an application-defined packet with the next report: `subtype` is 0..=31, `name` has four
/// ASCII characters, and zeros pad the `len` octets of data to a multiple of four.
/// RUSHES_ERROR_BUSY if 64 such packets are queued already.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_send_app(
    stream: *const Stream,
    subtype: u8,
    name: *const c_char,
    data: *const u8,
    len: usize,
) -> Status {
    guard(|| {
        let name = pointer::text(name)?;
        let four = name.as_bytes().try_into().ok().filter(|_| name.is_ascii());
        let name =
            four.ok_or_else(|| argument(format!("{name:?} is not four ASCII characters")))?;
        if subtype > 31 {
            return Err(argument(format!("a subtype of {subtype} is above 31")));
        }
        let data = pointer::slice(data, len)?.to_vec();
        Ok(handle::get(stream)?.rtcp.send_app(AppData { subtype, name, data })?)
    })
}

/// Leaves the session: sends BYE with a reason, which may be NULL; immediately in sessions of fewer
/// than 50 participants. Closing the stream also sends BYE.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_send_bye(stream: *const Stream, reason: *const c_char) -> Status {
    guard(|| {
        let reason = pointer::optional_text(reason)?.unwrap_or_default();
        Ok(handle::get(stream)?.rtcp.send_bye(reason)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::rushes_stream_close;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::SeqCst;

    static RELEASED: AtomicU32 = AtomicU32::new(0);

    extern "C-unwind" fn count(_: *mut c_void) {
        RELEASED.fetch_add(1, SeqCst);
    }

    #[test]
    fn a_closed_stream_takes_no_hook() {
        let session = rushes::Context::new().session("127.0.0.1").unwrap();
        let stream = session.stream(rushes::Codec::Generic).open().unwrap();
        let handle = handle::insert(Stream::new(stream).unwrap()).unwrap();
        // Stands for a call on another thread that began before the stream was closed.
        let stream = handle::get(handle).unwrap();
        let callback = || Callback::<RtcpHook>::new(None, std::ptr::null_mut(), Some(count));
        assert!(stream.rtcp_hook.replace(&stream, callback()).unwrap().is_none());
        assert_eq!(rushes_stream_close(handle), Status::Ok);
        assert_eq!(RELEASED.load(SeqCst), 1);
        let refused = stream.rtcp_hook.replace(&stream, callback());
        assert_eq!(refused.err().map(|failure| failure.status), Some(Status::Closed));
        assert_eq!(RELEASED.load(SeqCst), 2);
    }
}
