//! The queue of RTCP events for the application, and the hook that receives them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use rushes_proto::control::ControlEvent;

use crate::lock::lock;

/// Maximum number of queued events, and of those until the application asks for the first; the oldest are
/// dropped. Many applications never ask, and a thousand streams of theirs should not hold 20 MB for it.
const EVENTS_MAX: usize = 256;
const UNASKED_MAX: usize = 32;

/// The application's function for control events.
pub(crate) type ReportHook = Box<dyn FnMut(ControlEvent) + Send>;

/// Queued events, and the hook for them.
#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<Queue>,
    hook: Mutex<HookState>,
    returned: Condvar,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<ControlEvent>,
    /// Whether the application has asked for an event, or set a hook.
    is_asked: bool,
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
        let most = if queue.is_asked { EVENTS_MAX } else { UNASKED_MAX };
        if queue.events.len() >= most {
            queue.events.pop_front();
        }
        queue.events.push_back(event);
    }

    pub(crate) fn poll(&self) -> Option<ControlEvent> {
        let mut queue = lock(&self.queue);
        queue.is_asked = true;
        queue.events.pop_front()
    }

    /// Passes queued events to the hook, if there is one.
    pub(crate) fn dispatch(&self) {
        if lock(&self.queue).events.is_empty() {
            return;
        }
        while let Some(mut running) = self.take_hook() {
            let Some(hook) = &mut running.hook else { return };
            // Stops when the hook is replaced.
            while lock(&self.hook).hook.is_none() {
                let event = lock(&self.queue).events.pop_front();
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
        has_hook && !lock(&self.queue).events.is_empty()
    }

    /// Replaces the hook; waits first while the old one runs on another thread. A hook may replace
    /// itself and is then not called again.
    pub(crate) fn set_hook(&self, hook: ReportHook) {
        let own = std::thread::current().id();
        lock(&self.queue).is_asked = true;
        let mut state = lock(&self.hook);
        while state.running.is_some_and(|thread| thread != own) {
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let old = state.hook.replace(hook);
        drop(state);
        drop(old);
    }
}

#[cfg(test)]
mod tests {
    use rushes_proto::Ssrc;

    use super::*;

    fn event(from: u32) -> ControlEvent {
        ControlEvent::TimedOut { from: Ssrc(from) }
    }

    #[test]
    fn the_latest_events_are_kept_and_more_of_them_once_the_application_asks() {
        let events = Events::default();
        (0..1_000).for_each(|n| events.push(event(n)));
        assert_eq!(lock(&events.queue).events.len(), UNASKED_MAX);
        assert_eq!(events.poll(), Some(event(1_000 - UNASKED_MAX as u32)));
        (1_000..2_000).for_each(|n| events.push(event(n)));
        assert_eq!(events.poll(), Some(event(2_000 - EVENTS_MAX as u32)));
    }

    #[test]
    fn a_hook_counts_as_asking() {
        let events = Events::default();
        let (sender, seen) = std::sync::mpsc::channel();
        events.set_hook(Box::new(move |event| sender.send(event).unwrap()));
        (0..100).for_each(|n| events.push(event(n)));
        events.dispatch();
        assert!(seen.try_iter().eq((0..100).map(event)));
    }
}
