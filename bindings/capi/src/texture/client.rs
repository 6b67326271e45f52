//! Clients of texture video, and the frames that they receive.

use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rushes::texture::{FrameMemory, TextureShape, TextureSink};

use super::block::{Block, memory};
use super::options::{TextureOptions, settings};
use super::{address, gpu};
use crate::control_event::nanos;
use crate::error::{Failure, Status};
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::hook::{Callback, Release, TextureHook};
use crate::session::Sas;
use crate::turn::{Turn, busy};
use crate::{handle, pointer};

/// How long a wait blocks before it checks whether the client was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A client of texture video.
#[derive(Debug)]
pub struct TextureClient {
    client: Turn<Option<Arc<rushes::texture::TextureClient>>>,
    frames: Frames,
}
handle_type!(TextureClient, 9, "texture client");

/// Where a client's frames go.
#[derive(Debug)]
pub(super) enum Frames {
    Memory(Arc<Sink>),
    Device(gpu::Sink),
}

impl TextureClient {
    pub(super) fn new(client: rushes::texture::TextureClient, frames: Frames) -> Self {
        Self { client: Turn::new(Some(Arc::new(client))), frames }
    }

    pub(super) fn frames(&self) -> &Frames {
        &self.frames
    }
}

impl Frames {
    /// Returns whether the application's function is running on this thread.
    fn is_running_here(&self) -> bool {
        match self {
            Self::Memory(sink) => sink.callback.is_running_here(),
            Self::Device(sink) => sink.is_running_here(),
        }
    }
}

/// A received frame of texture video, lent to a hook. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TextureFrame {
    /// The frame's octets, contiguous, in the order of the tiles of its format.
    pub data: *const u8,
    /// The number of octets.
    pub len: usize,
    /// The frame's number in the stream, from 0.
    pub number: u64,
    /// Its format, such as "bc1".
    pub format: *const c_char,
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Packets that did not arrive in time; their octets were replaced with the previous frame's.
    pub packets_missing: u32,
    /// Nanoseconds from its first packet until it was complete.
    pub took: u64,
    /// What its values stand for, by ITU-T H.273: the code points of primaries, transfer and matrix, then the
    /// full-range flag (bit 7) and the type of the chroma location (bits 0 to 6). "yuv420" and "yuv422" have
    /// a matrix, a range and a location.
    pub colour: [u8; 4],
}

/// A texture client's counters. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TextureClientStatistics {
    /// Frames of which every packet arrived.
    pub frames_whole: u64,
    /// Frames delivered of which parts were concealed.
    pub frames_damaged: u64,
    /// Frames of which no packet arrived in time, or before the end.
    pub frames_lost: u64,
    /// Pictures that the server was too slow to encode.
    pub frames_dropped: u64,
    /// Packets stored in their frames.
    pub packets: u64,
    /// Packets that did not arrive in time.
    pub packets_lost: u64,
    /// Octets received, packet headers included.
    pub octets: u64,
    /// Median nanoseconds from the capture of the picture, by the server's clock, until the frame
    /// was complete, over the latest 1024 frames; 0 if it is not known.
    pub latency_median: u64,
    /// The 99th percentile of the same times.
    pub latency_p99: u64,
    /// Packets that did not arrive and were computed from repair packets.
    pub packets_repaired: u64,
    /// Stripes that arrived packed.
    pub stripes_unpacked: u64,
    /// Stripes that the server reported as unchanged, and whose octets the client had.
    pub stripes_unchanged: u64,
    /// Stripes that the server reported as unchanged, but whose octets had not arrived before. Their frames are
    /// damaged.
    pub stripes_stale: u64,
}

/// Receives frames into blocks, and passes them to a C function.
#[derive(Debug)]
pub(super) struct Sink {
    callback: Callback<TextureHook>,
    /// Locked during a call, because frames of an old shape and of a new one may be completed at
    /// the same time.
    calling: Mutex<()>,
    stream: Mutex<Stream>,
}

/// The memory and the format of a stream's frames.
#[derive(Default)]
struct Stream {
    blocks: Vec<Arc<Block>>,
    format: CString,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("format", &self.format).finish_non_exhaustive()
    }
}

impl TextureSink for Sink {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        let (blocks, memory) = memory(shape, slots);
        let format = CString::new(shape.layout().format().name()).unwrap_or_default();
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Stream { blocks, format };
        Ok(memory)
    }

    fn frame_done(&self, frame: &rushes::texture::TextureFrame<'_>) {
        let _calling = self.calling.lock().unwrap_or_else(PoisonError::into_inner);
        // A late frame of an earlier shape is in none of the current blocks.
        let first = frame.with_unit(0, |octets| octets.as_ptr().addr());
        let (block, format) = {
            let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            let block = stream.blocks.get(frame.slot());
            let Some(block) = block.filter(|block| first == Some(block.whole().0.addr())) else {
                return;
            };
            (block.clone(), stream.format.clone())
        };
        let (data, len) = block.whole();
        let layout = frame.shape().layout();
        let lent = TextureFrame {
            data,
            len,
            number: frame.number(),
            format: format.as_ptr(),
            width: layout.width(),
            height: layout.height(),
            packets_missing: frame.packets_missing(),
            took: nanos(frame.done_at().saturating_duration_since(frame.first_at())),
            colour: layout.colour().code_points(),
        };
        self.callback.call(|hook, user| {
            if let Some(hook) = hook {
                hook(user, &raw const lent);
            }
        });
    }
}

/// Connects to the server at `address` ("192.0.2.7:7000") and returns when the stream has begun;
/// close the client with rushes_texture_client_close(). `options` may be NULL.
///
/// `hook` receives every frame, in order, in the memory into which it was received; it must not
/// throw. `user` is passed to the hook, and to `release` (may be NULL) when the hook will not be
/// called any more.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_connect(
    address: *const c_char,
    options: *const TextureOptions,
    hook: TextureHook,
    user: *mut c_void,
    release: Release,
    client: *mut *mut TextureClient,
) -> Status {
    let callback = Callback::new(hook, user, release);
    guard(|| {
        pointer::write(client, std::ptr::null_mut())?;
        if hook.is_none() {
            return Err(Failure::new(Status::Null, "the hook is null"));
        }
        let server = self::address(pointer::text(address)?)?;
        let sink = Arc::new(Sink { callback, calling: Mutex::default(), stream: Mutex::default() });
        let options = settings(options)?.client;
        let new = rushes::texture::TextureClient::connect(server, sink.clone(), options)?;
        let new = TextureClient::new(new, Frames::Memory(sink));
        pointer::write(client, handle::insert(new)?)
    })
}

fn get(client: *const TextureClient) -> Result<Arc<rushes::texture::TextureClient>, Failure> {
    let client = handle::get(client)?;
    let inner = client.client.wait()?.clone();
    inner.ok_or_else(|| Failure::new(Status::Closed, "the client was closed meanwhile"))
}

/// Waits until the stream has ended, for at most `timeout` nanoseconds. Returns RUSHES_TIMEOUT if
/// it has not ended, otherwise RUSHES_ERROR_ENDED with the reason as the message.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_client_wait(client: *const TextureClient, timeout: u64) -> Status {
    guard_with(|| {
        let mut left = Duration::from_nanos(timeout);
        loop {
            let slice = left.min(POLL_INTERVAL);
            if let Some(stopped) = get(client)?.wait(slice) {
                return Err(Failure::new(Status::Ended, stopped.to_string()));
            }
            left = left.saturating_sub(slice);
            if left.is_zero() {
                return Ok(Status::Timeout);
            }
        }
    })
}

/// Gets a client's counters; `size` is sizeof(rushes_texture_client_counts).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_client_statistics(
    client: *const TextureClient,
    statistics: *mut TextureClientStatistics,
    size: usize,
) -> Status {
    guard(|| {
        let seen = get(client)?.statistics();
        let of = TextureClientStatistics {
            frames_whole: seen.frames_whole,
            frames_damaged: seen.frames_damaged,
            frames_lost: seen.frames_lost,
            frames_dropped: seen.frames_dropped,
            packets: seen.packets,
            packets_lost: seen.packets_lost,
            octets: seen.octets,
            latency_median: seen.latency_p50.map_or(0, nanos),
            latency_p99: seen.latency_p99.map_or(0, nanos),
            packets_repaired: seen.packets_repaired,
            stripes_unpacked: seen.stripes_unpacked,
            stripes_unchanged: seen.stripes_unchanged,
            stripes_stale: seen.stripes_stale,
        };
        pointer::write_prefix(statistics, size, of)
    })
}

/// Removes the latencies of the frames since the last call and writes the latest `size` of them to
/// `latencies`, the oldest first: the times from the server's picture to the frame in place, in
/// nanoseconds. `count` gets their number. The latest 1024 are kept, so an array of that size loses
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_client_take_latencies(
    client: *const TextureClient,
    latencies: *mut u64,
    size: usize,
    count: *mut usize,
) -> Status {
    guard(|| {
        pointer::check(count)?;
        if size > 0 {
            pointer::check(latencies)?;
        }
        let taken = get(client)?.take_latencies();
        let latest = &taken[taken.len().saturating_sub(size)..];
        for (n, latency) in latest.iter().enumerate() {
            pointer::write(latencies.wrapping_add(n), nanos(*latency))?;
        }
        pointer::write(count, latest.len())
    })
}

/// Gets the short authentication string if keys were agreed on by ZRTP, otherwise returns
/// RUSHES_TIMEOUT. `size` is sizeof(rushes_sas).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_client_sas(
    client: *const TextureClient,
    sas: *mut Sas,
    size: usize,
) -> Status {
    guard_with(|| {
        pointer::check(sas)?;
        let Some(status) = get(client)?.sas() else { return Ok(Status::Timeout) };
        pointer::write_prefix(sas, size, Sas::from(&status))?;
        Ok(Status::Ok)
    })
}

/// Closes a client: notifies the server, and returns when the hook will not be called any more.
/// From the hook itself it returns RUSHES_ERROR_BUSY and the client stays open. Two clients' hooks
/// must not close each other's client at the same time, since each would wait for the other.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_client_close(client: *mut TextureClient) -> Status {
    guard(|| {
        let owner = handle::get(client)?;
        if owner.frames.is_running_here() {
            return Err(busy("a texture client cannot be closed from its own hook"));
        }
        // The turn comes first, so that the handle stays valid if the turn is refused.
        let mut turn = owner.client.wait()?;
        handle::remove(client)?;
        let mut inner = turn.take();
        drop(turn);
        // A waiting thread releases its reference within one slice.
        while let Some(shared) = inner.take() {
            match Arc::try_unwrap(shared) {
                Ok(last) => drop(last),
                Err(shared) => {
                    std::thread::sleep(Duration::from_millis(1));
                    inner = Some(shared);
                }
            }
        }
        Ok(())
    })
}
