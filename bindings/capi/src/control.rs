//! RTCP: what peers report, and what is asked of them.

use std::ffi::c_char;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::Once;

use rushes::AppData;
use rushes::KeyFrameRequest;
use rushes::Ssrc;
use rushes::proto::rtcp::BitRateLimit;

use crate::control_event;
use crate::error::Failure;
use crate::error::Status;
use crate::guard::guard;
use crate::handle;
use crate::hook::Callback;
use crate::hook::Release;
use crate::hook::RtcpHook;
use crate::options::argument;
use crate::pointer;
use crate::stream::Stream;
use crate::turn::Turn;

/// A stream's RTCP hook, which can be changed and taken away while reports come.
#[derive(Debug)]
pub(crate) struct RtcpTurn {
    callback: Turn<Option<Callback<RtcpHook>>>,
    listening: Once,
}

impl RtcpTurn {
    pub(crate) fn new() -> Self {
        Self { callback: Turn::default(), listening: Once::new() }
    }

    /// Sets the hook, unless the stream is closed; the one before is to be dropped without the turn.
    fn replace(
        &self,
        stream: &Stream,
        callback: Callback<RtcpHook>,
    ) -> Result<Option<Callback<RtcpHook>>, Failure> {
        let mut hook = self.callback.wait()?;
        // Looked at in turn: who closes it later takes the hook away again.
        stream.check_open()?;
        Ok(hook.replace(callback))
    }

    /// Takes the hook away, once it is not running.
    pub(crate) fn end(&self) {
        let callback = self.callback.wait().map(|mut callback| callback.take());
        drop(callback);
    }
}

/// Sets a function to be told of every report and request, on whichever thread reads the stream's
/// port: the one that pulls, pushes, waits or runs the receive hook. Until it is set they wait, the
/// last 256 of them. It takes the place of an earlier one. `user` is passed to it, and to `release`
/// (may be NULL) once it will not be called any more.
///
/// The hook may ask for reports and push to other streams. A call that would have to wait for
/// another, such as pushing to the stream whose push called the hook, is RUSHES_ERROR_BUSY: leave it
/// to the thread that pushes. It must not throw: that ends the process.
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
        let turn = &stream.rtcp_hook;
        let before = turn.replace(&stream, callback)?;
        drop(before);
        turn.listening.call_once(|| {
            let turn = turn.clone();
            stream.rtcp.on_event(move |event| tell(&turn, &event));
        });
        Ok(())
    })
}

fn tell(turn: &Arc<RtcpTurn>, event: &rushes::ControlEvent) {
    // Busy while the hook is changed: nobody is there to be told.
    let Ok(callback) = turn.callback.wait() else { return };
    if let Some(callback) = &*callback {
        callback.call(|hook, user| {
            if let Some(hook) = hook {
                control_event::with(event, |event| hook(user, event));
            }
        });
    }
}

/// How a key frame is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum KeyFrame {
    /// Pictures were lost (PLI).
    PictureLoss = 1,
    /// A decoder refresh point is needed, as when someone joins (FIR).
    FullIntra = 2,
}

/// Asks every media source for a key frame; `request` is a rushes_key_frame. With feedback
/// (rushes_stream_options_feedback()) it goes at once, otherwise with the next report, up to some
/// seconds later. Any thread may.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_request_key_frame(stream: *const Stream, request: i32) -> Status {
    guard(|| {
        let request = match request {
            1 => KeyFrameRequest::PictureLoss,
            2 => KeyFrameRequest::FullIntra,
            _ => return Err(argument(format!("{request} is no way to ask for a key frame"))),
        };
        Ok(handle::get(stream)?.rtcp.request_key_frame(request)?)
    })
}

/// Asks the media source `ssrc` to keep to a bit rate (TMMBR, RFC 5104), each packet counted with
/// `overhead` octets of header (0..=511).
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

/// Tells `count` media sources what the path is estimated to carry together (REMB).
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

/// Sends an application's own packet with the next report: `subtype` is 0..=31, `name` has four ASCII
/// characters, and zeros fill the `len` octets of data up to a multiple of four. RUSHES_ERROR_BUSY if
/// 64 such packets wait already.
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

/// Leaves: says BYE, with a reason or NULL, at once in sessions of fewer than 50. Closing the stream
/// does so too.
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
        let handle = handle::keep(Stream::new(stream).unwrap()).unwrap();
        // As a call on another thread has it that began before the stream was closed.
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
