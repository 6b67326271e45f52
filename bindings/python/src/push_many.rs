//! Small frames of many streams, sent in few system calls.

use std::cell::RefCell;
use std::collections::HashSet;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rushes::{FramePush, FramePusher, RtpTimestamp};

use crate::error::Failure;
use crate::input::Input;
use crate::integer::integer;
use crate::stream::Stream;

thread_local! {
    static PUSHER: RefCell<FramePusher> = RefCell::default();
}

/// A frame to be sent.
struct Push {
    stream: Py<Stream>,
    input: Input,
    timestamp: Option<RtpTimestamp>,
}

impl Push {
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "modulo 2³²")]
    fn of(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = || PyTypeError::new_err("expected (stream, data) or (stream, data, timestamp)");
        let item = item.cast::<PyTuple>().map_err(|_| wrong())?;
        if !(2..=3).contains(&item.len()) {
            return Err(wrong());
        }
        let stream = item.get_item(0)?.cast::<Stream>().map_err(|_| wrong())?.clone().unbind();
        let input = Input::of(&item.get_item(1)?, Vec::new())?;
        let timestamp = item.get_item(2).ok().filter(|timestamp| !timestamp.is_none());
        let timestamp = timestamp.map(|it| integer::<i64>("timestamp", &it)).transpose()?;
        Ok(Self { stream, input, timestamp: timestamp.map(|ticks| RtpTimestamp(ticks as u32)) })
    }

    fn push(&self) -> Result<(), Failure> {
        let (data, timestamp) = (self.input.octets(), self.timestamp);
        self.stream.get().inner.send(|sender| sender.push_frame(data, timestamp))
    }
}

/// Sends the frames; returns the places of those that were not sent, and why.
fn push(frames: &[Push]) -> Vec<(usize, Failure)> {
    let (mut used, mut senders, mut later) = (HashSet::new(), Vec::new(), Vec::new());
    for (place, push) in frames.iter().enumerate() {
        let inner = &push.stream.get().inner;
        let is_first = used.insert(std::sync::Arc::as_ptr(inner).addr());
        // Streams are not waited for while others are held.
        match is_first.then(|| inner.sender.try_use()).flatten() {
            Some(sender) => senders.push((place, sender)),
            None => later.push(place),
        }
    }
    let (mut failed, mut places, mut pushes) = (Vec::new(), Vec::new(), Vec::new());
    for (place, sender) in &mut senders {
        let Some(stream) = sender.value.as_mut() else {
            failed.push((*place, Failure::Closed));
            continue;
        };
        let Push { input, timestamp, .. } = &frames[*place];
        places.push(*place);
        pushes.push(FramePush { stream, frame: input.octets(), timestamp: *timestamp });
    }
    // A hook that is called meanwhile may push, too.
    let mut pusher = PUSHER.take();
    let refused = pusher.push_many(&mut pushes);
    PUSHER.set(pusher);
    failed.extend(refused.into_iter().map(|(at, error)| (places[at], error.into())));
    drop(pushes);
    drop(senders);
    for place in later {
        failed.extend(frames[place].push().err().map(|failure| (place, failure)));
    }
    failed.sort_by_key(|(place, _)| *place);
    failed
}

/// Sends frames of many streams in few system calls: each is `(stream, data)` or
/// `(stream, data, timestamp)`, as for `Stream.push_frame`. Returns the places of those that were not
/// sent, each with its exception; the others were accepted by the kernel.
///
/// Streams share system calls if they share a local port. Several frames of one stream are sent in
/// order, but each after the first by a call of its own, and so is a frame of a stream on which
/// another thread sends.
#[pyfunction]
pub(crate) fn push_many(
    py: Python<'_>,
    frames: &Bound<'_, PyAny>,
) -> PyResult<Vec<(usize, PyErr)>> {
    let items = frames.try_iter()?;
    let frames = items.map(|item| Push::of(&item?)).collect::<PyResult<Vec<_>>>()?;
    let failed = py.detach(|| push(&frames));
    Ok(failed.into_iter().map(|(place, failure)| (place, failure.into())).collect())
}
