//! A queue of frames from the receiving threads to Python's threads.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use rushes::texture::TextureSink;

use super::frame::{Received, TextureFrame};
use super::gpu::{self, GpuFrame};
use super::pool::Pool;
use crate::wait::lock;

/// A received frame.
pub(super) enum Frame {
    Memory(Box<Received>),
    #[cfg_attr(not(all(feature = "gpu", unix)), allow(dead_code, reason = "nothing makes one"))]
    Device(Box<gpu::Received>),
}

impl Frame {
    /// Returns the frame's Python object.
    pub(super) fn wrap(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Memory(frame) => Ok(TextureFrame::wrap(py, *frame)?.into_any()),
            Self::Device(frame) => Ok(GpuFrame::wrap(py, *frame)?.into_any()),
        }
    }
}

/// The outcome of waiting for a frame.
pub(super) enum Next {
    Frame(Frame),
    Nothing,
    End,
}

/// The queue is also a sink in main memory: each frame is copied once, from its tiles into contiguous
/// memory.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    pool: Arc<Pool>,
    depth: usize,
    /// Whether a full queue blocks the stream, instead of dropping its oldest frame.
    every_frame: bool,
}

#[derive(Default)]
struct State {
    frames: VecDeque<Frame>,
    skipped: u64,
    has_ended: bool,
}

impl Queue {
    pub(super) fn new(depth: usize, every_frame: bool) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            pool: Arc::default(),
            depth: depth.max(1),
            every_frame,
        }
    }

    /// Waits for the next frame, at most for `timeout`.
    pub(super) fn next(&self, timeout: Duration) -> Next {
        let is_idle = |state: &mut State| state.frames.is_empty() && !state.has_ended;
        let waited = self.changed.wait_timeout_while(lock(&self.state), timeout, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match state.frames.pop_front() {
            Some(frame) => {
                self.changed.notify_all();
                Next::Frame(frame)
            }
            None if state.has_ended => Next::End,
            None => Next::Nothing,
        }
    }

    /// Returns the number of frames dropped because the queue was full.
    pub(super) fn skipped(&self) -> u64 {
        lock(&self.state).skipped
    }

    /// Closes the queue and wakes every waiting thread.
    pub(super) fn close(&self) {
        lock(&self.state).has_ended = true;
        self.changed.notify_all();
    }

    /// Adds a frame.
    pub(super) fn push(&self, frame: Frame) {
        let mut state = lock(&self.state);
        if self.every_frame {
            let is_full = |state: &mut State| state.frames.len() >= self.depth && !state.has_ended;
            let waited = self.changed.wait_while(state, is_full);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if state.has_ended {
            return;
        }
        if state.frames.len() >= self.depth {
            state.frames.pop_front();
            state.skipped += 1;
        }
        state.frames.push_back(frame);
        drop(state);
        self.changed.notify_all();
    }
}

impl TextureSink for Queue {
    fn frame_done(&self, frame: &rushes::texture::TextureFrame<'_>) {
        let layout = *frame.shape().layout();
        let mut memory = self.pool.take(layout.bytes());
        frame.copy_to(memory.octets_mut());
        self.push(Frame::Memory(Box::new(Received {
            memory,
            layout,
            number: frame.number(),
            missing: frame.packets_missing(),
            first_at: frame.first_at(),
            done_at: frame.done_at(),
        })));
    }

    fn end(&self) {
        self.close();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("depth", &self.depth).finish_non_exhaustive()
    }
}
