//! Small frames of many streams, sent in few system calls.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use rushes::{FramePush, FramePusher, RtpTimestamp};

use crate::error::{Failure, Status};
use crate::guard::guard;
use crate::stream::Stream;
use crate::{handle, pointer};

thread_local! {
    static PUSHER: RefCell<FramePusher> = RefCell::default();
}

/// A frame for rushes_push_many().
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Push {
    /// The stream to send it on.
    pub stream: *const Stream,
    /// The octets of the frame.
    pub data: *const u8,
    /// The number of octets.
    pub len: usize,
    /// The timestamp, as for rushes_stream_push_frame(); NULL for that after the stream's last frame.
    pub timestamp: *const u32,
}

/// A frame whose stream exists.
struct Job<'a> {
    place: usize,
    stream: Arc<Stream>,
    frame: &'a [u8],
    timestamp: Option<u32>,
}

impl Push {
    fn job<'a>(&self, place: usize) -> Result<Job<'a>, Failure> {
        let stream = handle::get(self.stream)?;
        let frame = pointer::slice(self.data, self.len)?;
        Ok(Job { place, stream, frame, timestamp: pointer::optional(self.timestamp)? })
    }
}

/// Sends the frames; returns the places of those that were not sent, and why.
fn push(frames: &[Push]) -> Vec<(usize, Failure)> {
    let (mut failed, mut jobs) = (Vec::new(), Vec::new());
    for (place, frame) in frames.iter().enumerate() {
        match frame.job(place) {
            Ok(job) => jobs.push(job),
            Err(failure) => failed.push((place, failure)),
        }
    }
    let (mut used, mut turns, mut later) = (HashSet::new(), Vec::new(), Vec::new());
    for job in &jobs {
        let is_first = used.insert(Arc::as_ptr(&job.stream).addr());
        match is_first.then(|| job.stream.sender.take().ok()).flatten() {
            Some(turn) => turns.push((job, turn)),
            None => later.push(job),
        }
    }
    let places: Vec<_> = turns.iter().map(|(job, _)| job.place).collect();
    let pushes = turns.iter_mut().map(|(job, turn)| FramePush {
        stream: &mut turn.sender,
        frame: job.frame,
        timestamp: job.timestamp.map(RtpTimestamp),
    });
    let mut pushes: Vec<_> = pushes.collect();
    // A hook that is called meanwhile may push, too.
    let mut pusher = PUSHER.take();
    let refused = pusher.push_many(&mut pushes);
    PUSHER.set(pusher);
    failed.extend(refused.into_iter().map(|(at, error)| (places[at], error.into())));
    drop(pushes);
    drop(turns);
    for job in later {
        let outcome = job.stream.push(job.frame, job.timestamp, None);
        failed.extend(outcome.err().map(|failure| (job.place, failure)));
    }
    failed.sort_by_key(|(place, _)| *place);
    failed
}

/// Sends `count` frames of many streams in few system calls, each as rushes_stream_push_frame() sends
/// it; the octets are unchanged and may be reused. Writes the status of each to `results`, an array of
/// `count` that may be NULL; returns RUSHES_OK if all were sent, and otherwise the status of the first
/// one that was not, which rushes_last_error_message() describes. The others are sent nevertheless.
///
/// Streams share system calls if they share a local port. Several frames of one stream are sent in
/// order, but each after the first by a call of its own, and so is a frame of a stream on which
/// another thread sends.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_push_many(
    frames: *const Push,
    count: usize,
    results: *mut Status,
) -> Status {
    guard(|| {
        let frames = pointer::slice(frames, count)?;
        let has_results = !results.is_null() && count > 0;
        if has_results {
            pointer::check(results)?;
        }
        let failed = push(frames);
        if has_results {
            for place in 0..count {
                pointer::write(results.wrapping_add(place), Status::Ok)?;
            }
            for (place, failure) in &failed {
                pointer::write(results.wrapping_add(*place), failure.status)?;
            }
        }
        failed.into_iter().next().map_or(Ok(()), |(_, failure)| Err(failure))
    })
}
