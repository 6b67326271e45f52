//! The thread that waits for the device, and passes complete frames to the application.

use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::{ReceivedFrame, Stream, lock};
use crate::device::Gpu;
use crate::error::GpuError;

/// The application's function for complete frames.
pub(super) type OnFrame = Arc<dyn Fn(&ReceivedFrame) + Send + Sync>;

/// A frame whose copies are all submitted to the device.
pub(super) struct Submitted {
    pub(super) stream: Arc<Stream>,
    pub(super) slot: usize,
    pub(super) submission: wgpu::SubmissionIndex,
    /// What the application gets; the time of the last copy is not known yet.
    pub(super) received: ReceivedFrame,
}

/// Passes on one frame at a time, so that no receiving thread waits for the device.
pub(super) struct HandOver {
    gpu: Gpu,
    on_frame: OnFrame,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: Option<Submitted>,
    /// Whether a frame was taken and is not passed on yet.
    is_busy: bool,
    /// Whether the thread ends, or has ended.
    is_over: bool,
}

impl HandOver {
    pub(super) fn new(gpu: &Gpu, on_frame: OnFrame) -> Self {
        let (gpu, shared, thread) = (gpu.clone(), Arc::default(), Mutex::new(None));
        Self { gpu, on_frame, shared, thread }
    }

    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    ///
    /// A text if the operating system could not start it.
    pub(super) fn start(&self) -> Result<(), String> {
        let mut thread = lock(&self.thread);
        if thread.is_some() {
            return Ok(());
        }
        let (gpu, on_frame) = (self.gpu.clone(), self.on_frame.clone());
        let shared = self.shared.clone();
        let run = move || {
            let _end = EndOnDrop(&shared);
            while let Some(submitted) = shared.next() {
                pass_on(&gpu, submitted, &on_frame);
                shared.update(|state| state.is_busy = false);
            }
        };
        self.shared.update(|state| *state = State::default());
        let spawned = thread::Builder::new().name("rushes-frames".into()).spawn(run);
        *thread = Some(spawned.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Gives the thread a frame, once the frame before is passed on.
    pub(super) fn give(&self, submitted: Submitted) {
        self.wait_and(|state| state.next = Some(submitted));
        self.shared.changed.notify_all();
    }

    /// Waits until the frame before is passed on, and its slot can be written again.
    ///
    /// A panic of the application's function continues here.
    pub(super) fn wait(&self) {
        self.wait_and(|_| ());
    }

    fn wait_and(&self, then: impl FnOnce(&mut State)) {
        if self.is_own_thread() {
            return;
        }
        let is_passing =
            |state: &mut State| !state.is_over && (state.is_busy || state.next.is_some());
        let state = self.shared.changed.wait_while(lock(&self.shared.state), is_passing);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let is_over = state.is_over;
        if !is_over {
            then(&mut state);
        }
        drop(state);
        let ended = if is_over { lock(&self.thread).take() } else { None };
        if let Some(Err(panic)) = ended.map(JoinHandle::join) {
            resume_unwind(panic);
        }
    }

    fn is_own_thread(&self) -> bool {
        let own = thread::current().id();
        lock(&self.thread).as_ref().is_some_and(|thread| thread.thread().id() == own)
    }
}

impl Drop for HandOver {
    fn drop(&mut self) {
        self.shared.update(|state| state.is_over = true);
        // The application's function may drop the sink; its thread must not join itself.
        if !self.is_own_thread()
            && let Some(thread) = lock(&self.thread).take()
        {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }

    /// Waits for the next frame; `None` at the end.
    fn next(&self) -> Option<Submitted> {
        let is_idle = |state: &mut State| !state.is_over && state.next.is_none();
        let state = self.changed.wait_while(lock(&self.state), is_idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let next = state.next.take();
        state.is_busy = next.is_some();
        next
    }
}

/// Ends all waits when the thread ends, even by a panic.
struct EndOnDrop<'a>(&'a Shared);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.update(|state| state.is_over = true);
    }
}

/// Waits until the device has copied a frame, makes its slot writable again, and passes the frame on.
fn pass_on(gpu: &Gpu, submitted: Submitted, on_frame: &OnFrame) {
    let Submitted { stream, slot, submission, received } = submitted;
    let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
    let copied = gpu.device.poll(wait);
    if let Some(staging) = stream.slots.get(slot) {
        staging.reuse(gpu);
    }
    match copied {
        Ok(_) => on_frame(&ReceivedFrame { copied_at: Instant::now(), ..received }),
        Err(error) => tracing::error!("{}", GpuError::Device(error.to_string())),
    }
}
