//! The queue of RTCP events for the application, and the hook that receives them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use rushes_proto::control::ControlEvent;

use crate::lock::lock;

/// Maximum number of queued events; the oldest are dropped.
const EVENTS_MAX: usize = 256;

/// The application's function for control events.
pub(crate) type ReportHook = Box<dyn FnMut(ControlEvent) + Send>;

/// Queued events, and the hook for them.
#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<VecDeque<ControlEvent>>,
    hook: Mutex<HookState>,
    returned: Condvar,
}

/// The application's hook, and the thread that runs it.
#[derive(Default)]
struct HookState {
    /// The hook; `None` while it runs, or if none is set.
    hook: Option<ReportHook>,
    running: Option<ThreadId>,
}

/// A running hook. When it returns it is stored again, unless it was replaced meanwhile.
struct Running<'a> {
    events: &'a Events,
    hook: Option<ReportHook>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // A hook that panicked is not called again.
        let hook = self.hook.take().filter(|_| !std::thread::panicking());
        let mut state = lock(&self.events.hook);
        state.running = None;
        let old = if state.hook.is_none() {
            state.hook = hook;
            None
        } else {
            hook
        };
        drop(state);
        self.events.returned.notify_all();
        drop(old);
    }
}

impl Events {
    pub(super) fn push(&self, event: ControlEvent) {
        let mut queue = lock(&self.queue);
        if queue.len() >= EVENTS_MAX {
            queue.pop_front();
        }
        queue.push_back(event);
    }

    pub(crate) fn poll(&self) -> Option<ControlEvent> {
        lock(&self.queue).pop_front()
    }

    /// Passes queued events to the hook, if there is one.
    pub(crate) fn dispatch(&self) {
        if lock(&self.queue).is_empty() {
            return;
        }
        while let Some(mut running) = self.take_hook() {
            let Some(hook) = &mut running.hook else { return };
            // Stops when the hook is replaced.
            while lock(&self.hook).hook.is_none() {
                let event = lock(&self.queue).pop_front();
                let Some(event) = event else { return };
                hook(event);
            }
        }
    }

    /// Takes the hook to run it on this thread. Returns `None` if none is set or if it is running
    /// already, since a hook that calls the stream must not be called recursively.
    fn take_hook(&self) -> Option<Running<'_>> {
        let mut state = lock(&self.hook);
        let HookState { hook, running } = &mut *state;
        let hook = hook.take_if(|_| running.is_none())?;
        *running = Some(std::thread::current().id());
        Some(Running { events: self, hook: Some(hook) })
    }

    /// Returns whether events are queued and a hook is set.
    pub(crate) fn has_events(&self) -> bool {
        let state = lock(&self.hook);
        let has_hook = state.hook.is_some() || state.running.is_some();
        drop(state);
        has_hook && !lock(&self.queue).is_empty()
    }

    /// Replaces the hook; waits first while the old one runs on another thread. A hook may replace
    /// itself and is then not called again.
    pub(crate) fn set_hook(&self, hook: ReportHook) {
        let own = std::thread::current().id();
        let mut state = lock(&self.hook);
        while state.running.is_some_and(|thread| thread != own) {
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let old = state.hook.replace(hook);
        drop(state);
        drop(old);
    }
}
