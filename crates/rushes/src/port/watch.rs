//! Changes on ports, noted for pollers: streams with new packets, and ports with another due time.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};

use rushes_net::{PollSet, UdpSocket, Waker};

use super::{Control, Port};
use crate::error::Error;
use crate::lock::lock;

/// What has changed since a poller looked, by its keys.
#[derive(Debug)]
pub(crate) struct Changes {
    state: Mutex<Changed>,
    waker: Arc<Waker>,
    /// Whether the application ended the wait.
    is_interrupted: AtomicBool,
}

#[derive(Debug, Default)]
struct Changed {
    keys: Vec<u32>,
    /// Whether the next change must wake the poller, which may be waiting.
    must_wake: bool,
}

impl Changes {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self { state: Mutex::default(), waker, is_interrupted: AtomicBool::new(false) }
    }

    fn push(&self, key: u32) {
        let mut state = lock(&self.state);
        state.keys.push(key);
        if std::mem::take(&mut state.must_wake) {
            drop(state);
            self.waker.wake();
        }
    }

    /// Moves the keys of what has changed to `keys`; from now on, changes wake nothing.
    pub(crate) fn take(&self, keys: &mut impl Extend<u32>) {
        let mut state = lock(&self.state);
        state.must_wake = false;
        keys.extend(state.keys.drain(..));
    }

    /// Lets the next change wake the poller; returns `false` if there has been one already.
    pub(crate) fn wake_at_next(&self) -> bool {
        let mut state = lock(&self.state);
        state.must_wake = state.keys.is_empty();
        state.must_wake
    }

    /// Makes the poller's descriptor readable, and ends its wait.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Ends the poller's wait, or the next one, before its time.
    pub(crate) fn interrupt(&self) {
        self.is_interrupted.store(true, Release);
        self.waker.wake();
    }

    /// Returns whether the application has ended the wait since the last call.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.is_interrupted.load(Relaxed) && self.is_interrupted.swap(false, Acquire)
    }
}

/// A place that notes changes of one stream or port for one poller.
#[derive(Debug)]
pub(crate) struct Watch {
    changes: Arc<Changes>,
    key: u32,
    is_noted: AtomicBool,
}

impl Watch {
    pub(crate) fn new(changes: Arc<Changes>, key: u32) -> Self {
        Self { changes, key, is_noted: AtomicBool::new(false) }
    }

    /// Notes a change, once until [`begin`](Self::begin).
    pub(crate) fn note(&self) {
        if self.mark() {
            self.changes.push(self.key);
        }
    }

    /// Marks the change as noted; returns whether it was not.
    pub(crate) fn mark(&self) -> bool {
        !self.is_noted.swap(true, AcqRel)
    }

    /// Begins to look at what has changed: a change from now on is noted again.
    pub(crate) fn begin(&self) {
        // A read-modify-write, so that what was changed before a note that it replaces is visible.
        self.is_noted.swap(false, AcqRel);
    }
}

/// The watches of a stream or a port.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    any: AtomicBool,
    list: Mutex<Vec<Arc<Watch>>>,
}

impl Watches {
    pub(crate) fn add(&self, watch: Arc<Watch>) {
        let mut list = lock(&self.list);
        list.push(watch);
        self.any.store(true, Relaxed);
    }

    pub(crate) fn remove(&self, watch: &Arc<Watch>) {
        let mut list = lock(&self.list);
        list.retain(|other| !Arc::ptr_eq(other, watch));
        self.any.store(!list.is_empty(), Relaxed);
    }

    pub(crate) fn are_any(&self) -> bool {
        self.any.load(Relaxed)
    }

    #[inline]
    pub(crate) fn note(&self) {
        if self.are_any() {
            lock(&self.list).iter().for_each(|watch| watch.note());
        }
    }
}

impl Port {
    /// Returns the places that note when something is due earlier than before.
    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    /// Adds the sockets of the port to a poller's, media under `key` and RTCP under the next.
    pub(crate) fn join(&self, set: &PollSet, key: u64) -> Result<(), Error> {
        set.add(&self.socket, key)?;
        if let Some(control) = self.control_socket() {
            let added = set.add(control, key + 1);
            added.inspect_err(|_| set.remove(&self.socket, key))?;
        }
        Ok(())
    }

    /// Removes the sockets of the port from a poller's.
    pub(crate) fn part(&self, set: &PollSet, key: u64) {
        set.remove(&self.socket, key);
        if let Some(control) = self.control_socket() {
            set.remove(control, key + 1);
        }
    }

    /// Reads what the kernel reports of datagrams that were sent.
    pub(crate) fn settle_errors(&self, is_control: bool) {
        let control = self.control_socket().filter(|_| is_control);
        control.unwrap_or(&self.socket).settle_errors();
    }

    /// Returns the socket for RTCP, if there is a separate one.
    fn control_socket(&self) -> Option<&UdpSocket> {
        match &self.control {
            Control::Separate(socket) => Some(socket),
            Control::Off | Control::Muxed => None,
        }
    }
}
