//! Events of RTCP on their way to the application: a queue, and the hook that empties it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use rushes_proto::control::ControlEvent;

use crate::lock::lock;

/// Maximum number of waiting events; the oldest are dropped.
const EVENTS_MAX: usize = 256;

/// The application's function for control events.
pub(crate) type ReportHook = Box<dyn FnMut(ControlEvent) + Send>;

/// Waiting events, and the hook for them.
#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<VecDeque<ControlEvent>>,
    hook: Mutex<Hooked>,
    returned: Condvar,
}

/// The application's hook, and the thread that runs it.
#[derive(Default)]
struct Hooked {
    /// `None` while it runs, too.
    hook: Option<ReportHook>,
    running: Option<ThreadId>,
}

/// A running hook; it is put back when it returns, unless it was replaced meanwhile.
struct Running<'a> {
    events: &'a Events,
    hook: Option<ReportHook>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // One that panics is not called again.
        let hook = self.hook.take().filter(|_| !std::thread::panicking());
        let mut hooked = lock(&self.events.hook);
        hooked.running = None;
        let old = if hooked.hook.is_none() {
            hooked.hook = hook;
            None
        } else {
            hook
        };
        drop(hooked);
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

    /// Gives waiting events to the hook, if there is one.
    pub(crate) fn dispatch(&self) {
        if lock(&self.queue).is_empty() {
            return;
        }
        while let Some(mut running) = self.take_hook() {
            let Some(hook) = &mut running.hook else { return };
            // Until it is replaced.
            while lock(&self.hook).hook.is_none() {
                let event = lock(&self.queue).pop_front();
                let Some(event) = event else { return };
                hook(event);
            }
        }
    }

    /// The hook, to be run by this thread; `None` if there is none, or it runs already: a hook that
    /// drives the stream must not be called again while it runs.
    fn take_hook(&self) -> Option<Running<'_>> {
        let mut hooked = lock(&self.hook);
        let Hooked { hook, running } = &mut *hooked;
        let hook = hook.take_if(|_| running.is_none())?;
        *running = Some(std::thread::current().id());
        Some(Running { events: self, hook: Some(hook) })
    }

    /// Whether events wait, and a hook is set.
    pub(crate) fn has_events(&self) -> bool {
        let hooked = lock(&self.hook);
        let has_hook = hooked.hook.is_some() || hooked.running.is_some();
        drop(hooked);
        has_hook && !lock(&self.queue).is_empty()
    }

    /// Replaces the hook, after waiting for one that runs on another thread. A hook that replaces
    /// itself is not called again.
    pub(crate) fn set_hook(&self, hook: ReportHook) {
        let own = std::thread::current().id();
        let mut hooked = lock(&self.hook);
        while hooked.running.is_some_and(|thread| thread != own) {
            hooked = self.returned.wait(hooked).unwrap_or_else(PoisonError::into_inner);
        }
        let old = hooked.hook.replace(hook);
        drop(hooked);
        drop(old);
    }
}
