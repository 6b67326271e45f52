//! One thread for many ports and streams: whatever is readable, has changed or is due, and nothing else.
//!
//! A wait asks the kernel for the sockets that are ready, reads a bounded part of each, and the streams that
//! got packets note that themselves ([`Watch`]). So do ports that have something due earlier than before.
//! Streams give their frames in turn.

mod schedule;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use rushes_net::{Found, PollSet};
use rushes_proto::payload::Frame;

use self::schedule::Schedule;
use crate::error::Error;
use crate::lock::lock;
use crate::port::{BATCH_LEN, Changes, Inbox, Port, Watch, earlier};

/// Maximum frames that are given before the sockets are read again, although streams have more: what was
/// read at once may be many, and the kernel's buffers must not overflow meanwhile.
const FRAMES_MAX: u32 = 1024;

/// Maximum batches that are read from one port in turn.
const BATCHES_MAX: usize = 8;

/// Pause of a port after a socket error, which may be temporary.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// Whether the system says which sockets are ready; elsewhere all of them are read.
const IS_READINESS_KNOWN: bool = cfg!(target_os = "linux");

/// The interval at which they are read then.
const READ_INTERVAL: Duration = Duration::from_millis(1);

/// The interval at which a lasting error is reported.
const ERROR_INTERVAL: Duration = Duration::from_secs(1);

/// What a stream gives.
#[derive(Debug)]
pub(crate) enum Given {
    Frame(Frame),
    Nothing,
    /// The application has closed the stream.
    Gone,
}

/// A stream of a poller.
pub(crate) trait Source {
    /// Returns the next frame, and when to ask again even without new packets.
    fn take(&mut self, now: Instant) -> (Given, Option<Instant>);

    /// Reports that the stream's socket cannot be read.
    fn report(&mut self, error: &Error);
}

#[derive(Debug)]
enum Slot<S> {
    Free,
    Port(PortSlot),
    Stream(StreamSlot<S>),
}

#[derive(Debug)]
struct PortSlot {
    port: Weak<Port>,
    watch: Arc<Watch>,
    streams: BTreeSet<u32>,
    /// The end of a pause after an error, during which the port is not in the set.
    paused: Option<Instant>,
    reported: Option<Instant>,
}

#[derive(Debug)]
struct StreamSlot<S> {
    source: S,
    inbox: Weak<Inbox>,
    watch: Arc<Watch>,
    /// The key of its port.
    port: u32,
}

/// Many streams and their ports.
#[derive(Debug)]
pub(crate) struct Streams<S: Source> {
    set: PollSet,
    changes: Arc<Changes>,
    slots: Vec<Slot<S>>,
    free: Vec<u32>,
    /// The key of each port, by its address in memory, which a slot keeps from being used again.
    ports: HashMap<usize, u32>,
    schedule: Schedule,
    /// The keys of streams and ports to look at, in turn.
    round: VecDeque<u32>,
    found: Found,
    /// Frames given since the sockets were read.
    given: u32,
    /// Whether the last wait found sockets that were ready: only a part of what they have may be read.
    has_more: bool,
    /// Streams that have left by themselves.
    gone: Vec<S>,
    descriptor: Descriptor,
}

/// What the set's descriptor shows to other event loops.
#[derive(Debug, Default)]
struct Descriptor {
    is_used: AtomicBool,
    /// Whether it is readable because frames wait.
    is_readable: AtomicBool,
    /// The time of its timer.
    timer: Mutex<Option<Instant>>,
}

impl<S: Source> Streams<S> {
    pub(crate) fn new() -> Result<Self, Error> {
        let set = PollSet::new()?;
        let changes = Arc::new(Changes::new(set.waker().clone()));
        Ok(Self {
            set,
            changes,
            slots: Vec::new(),
            free: Vec::new(),
            ports: HashMap::new(),
            schedule: Schedule::default(),
            round: VecDeque::new(),
            found: Found::default(),
            given: 0,
            has_more: false,
            gone: Vec::new(),
            descriptor: Descriptor::default(),
        })
    }

    /// Returns what ends a wait from another thread.
    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Adds a stream on `port`, or only the port, whose packets and due times need a thread; returns its key.
    ///
    /// # Errors
    /// [`Error::Net`] and the source if the system refuses to watch another socket.
    pub(crate) fn add(
        &mut self,
        source: S,
        port: &Arc<Port>,
        inbox: Option<&Arc<Inbox>>,
    ) -> Result<u32, (Error, S)> {
        let port_key = match self.port_key(port) {
            Ok(key) => key,
            Err(error) => return Err((error, source)),
        };
        let key = self.free_key();
        let watch = Arc::new(Watch::new(self.changes.clone(), key));
        if let Some(inbox) = inbox {
            inbox.watches().add(watch.clone());
            // There may be frames already.
            watch.note();
        }
        if let Slot::Port(slot) = &mut self.slots[port_key as usize] {
            slot.streams.insert(key);
        }
        let inbox = inbox.map(Arc::downgrade).unwrap_or_default();
        self.slots[key as usize] =
            Slot::Stream(StreamSlot { source, inbox, watch, port: port_key });
        Ok(key)
    }

    /// Returns the key of a port, which is added if it is new.
    fn port_key(&mut self, port: &Arc<Port>) -> Result<u32, Error> {
        let address = Arc::as_ptr(port).addr();
        if let Some(key) = self.ports.get(&address) {
            return Ok(*key);
        }
        let key = self.free_key();
        if let Err(error) = port.join(&self.set, u64::from(key) << 1) {
            self.free.push(key);
            return Err(error);
        }
        let watch = Arc::new(Watch::new(self.changes.clone(), key));
        port.watches().add(watch.clone());
        // Something may be due already.
        watch.note();
        let (streams, port) = (BTreeSet::new(), Arc::downgrade(port));
        let slot = PortSlot { port, watch, streams, paused: None, reported: None };
        self.slots[key as usize] = Slot::Port(slot);
        self.ports.insert(address, key);
        Ok(key)
    }

    fn free_key(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            self.slots.len() as u32 - 1
        })
    }

    /// Removes a stream, and its port if no other stream is on it.
    pub(crate) fn remove(&mut self, key: u32) -> Option<S> {
        let place = self.slots.get_mut(key as usize)?;
        let Slot::Stream(slot) = std::mem::replace(place, Slot::Free) else { return None };
        self.free(key);
        if let Some(inbox) = slot.inbox.upgrade() {
            inbox.watches().remove(&slot.watch);
        }
        if let Slot::Port(port) = &mut self.slots[slot.port as usize] {
            port.streams.remove(&key);
            if port.streams.is_empty() {
                self.remove_port(slot.port);
            }
        }
        Some(slot.source)
    }

    fn remove_port(&mut self, key: u32) {
        let place = &mut self.slots[key as usize];
        let Slot::Port(slot) = std::mem::replace(place, Slot::Free) else { return };
        self.free(key);
        self.ports.remove(&slot.port.as_ptr().addr());
        if let Some(port) = slot.port.upgrade() {
            port.watches().remove(&slot.watch);
            if slot.paused.is_none() {
                port.part(&self.set, u64::from(key) << 1);
            }
        }
    }

    fn free(&mut self, key: u32) {
        self.schedule.remove(key);
        self.free.push(key);
    }

    /// Looks at every stream and port again, after a panic of an application's function in between.
    pub(crate) fn note_all(&self) {
        for slot in &self.slots {
            match slot {
                Slot::Port(slot) => slot.watch.note(),
                Slot::Stream(slot) => slot.watch.note(),
                Slot::Free => {}
            }
        }
    }

    /// Removes and returns a stream that has left by itself, if there is one.
    pub(crate) fn take_gone(&mut self) -> Option<S> {
        self.gone.pop()
    }

    pub(crate) fn source(&self, key: u32) -> Option<&S> {
        match self.slots.get(key as usize)? {
            Slot::Stream(slot) => Some(&slot.source),
            Slot::Free | Slot::Port(_) => None,
        }
    }

    /// Returns a stream that the application may change, after which it may have frames.
    pub(crate) fn source_mut(&mut self, key: u32) -> Option<&mut S> {
        match self.slots.get_mut(key as usize)? {
            Slot::Stream(slot) => {
                slot.watch.note();
                Some(&mut slot.source)
            }
            Slot::Free | Slot::Port(_) => None,
        }
    }

    /// Waits until `deadline` for the next frame of any stream; returns it and the stream's key. `None` at
    /// the deadline or after an [interrupt](Changes::interrupt).
    ///
    /// # Errors
    /// [`Error::Net`] if the system does not wait. Errors of a single port go to its streams.
    pub(crate) fn pull(&mut self, deadline: Instant) -> Result<Option<(u32, Frame)>, Error> {
        let pulled = self.pull_until(deadline);
        if self.descriptor.is_used.load(Relaxed) {
            self.show()?;
        }
        pulled
    }

    fn pull_until(&mut self, deadline: Instant) -> Result<Option<(u32, Frame)>, Error> {
        let mut has_read = false;
        loop {
            if self.given < FRAMES_MAX
                && let Some(found) = self.next_frame()
            {
                self.given += 1;
                return Ok(Some(found));
            }
            // A deadline in the past still reads what is there, once.
            let is_over = has_read && Instant::now() >= deadline;
            if is_over || self.changes.take_interrupt() {
                return Ok(None);
            }
            self.read(deadline)?;
            self.given = 0;
            has_read = true;
        }
    }

    /// Returns a frame of what was read or has changed, of one stream after the other.
    fn next_frame(&mut self) -> Option<(u32, Frame)> {
        // What changes because of a change waits for the sockets to be read.
        for _ in 0..2 {
            if self.round.is_empty() {
                self.changes.take(&mut self.round);
            }
            let now = Instant::now();
            while let Some(key) = self.round.pop_front() {
                let Slot::Stream(slot) = &mut self.slots[key as usize] else {
                    self.serve(key, now);
                    continue;
                };
                slot.watch.begin();
                let (given, due) = slot.source.take(now);
                match given {
                    Given::Frame(frame) => {
                        if slot.watch.mark() {
                            self.round.push_back(key);
                        }
                        return Some((key, frame));
                    }
                    Given::Nothing => self.schedule.set(key, due),
                    Given::Gone => {
                        let source = self.remove(key);
                        self.gone.extend(source);
                    }
                }
            }
        }
        None
    }

    /// Lets a port send what is due at `now`, and notes when it has something due next.
    fn serve(&mut self, key: u32, now: Instant) {
        let Slot::Port(slot) = &mut self.slots[key as usize] else { return };
        let Some(port) = slot.port.upgrade() else { return };
        slot.watch.begin();
        let mut due = None;
        match slot.paused {
            Some(end) if end > now => due = Some(end),
            Some(_) => match port.join(&self.set, u64::from(key) << 1) {
                Ok(()) => slot.paused = None,
                Err(error) => {
                    let end = now + ERROR_PAUSE;
                    slot.paused = Some(end);
                    due = Some(end);
                    self.report(key, now, &error);
                }
            },
            None => {}
        }
        port.serve(now);
        self.schedule.set(key, earlier(due, port.due()));
    }

    /// Waits until `deadline` for sockets that are ready, and reads them; does what is due.
    fn read(&mut self, deadline: Instant) -> Result<(), Error> {
        let is_idle = self.round.is_empty() && self.changes.wake_at_next();
        let until = match self.schedule.first() {
            _ if !is_idle => Instant::now(),
            Some(due) => due.min(deadline),
            None => deadline,
        };
        let mut found = std::mem::take(&mut self.found);
        let waited = self.set.wait(&mut found, until);
        self.changes.take(&mut self.round);
        // Even if the wake-up was not among what was found: a further one does no harm, but one that is
        // missing does, in a loop that is told of changes only.
        self.descriptor.is_readable.store(false, Relaxed);
        for key in &found.failed {
            if let Some(port) = self.port((key >> 1) as u32) {
                port.settle_errors(key & 1 == 1);
            }
        }
        self.has_more = IS_READINESS_KNOWN && !found.ready.is_empty();
        let mut any = found.ready.is_empty();
        for key in &found.ready {
            any |= self.read_port((key >> 1) as u32, key & 1 == 1);
        }
        self.found = found;
        if !any {
            // Another thread is reading them.
            std::thread::yield_now();
        }
        let now = Instant::now();
        while let Some(key) = self.schedule.pop(now) {
            match &self.slots[key as usize] {
                Slot::Stream(slot) => {
                    if slot.watch.mark() {
                        self.round.push_back(key);
                    }
                }
                Slot::Port(_) => self.serve(key, now),
                Slot::Free => {}
            }
        }
        Ok(waited?)
    }

    fn port(&self, key: u32) -> Option<Arc<Port>> {
        match self.slots.get(key as usize)? {
            Slot::Port(slot) => slot.port.upgrade(),
            Slot::Free | Slot::Stream(_) => None,
        }
    }

    /// Reads one socket of a port; returns `false` if another thread is reading it.
    fn read_port(&mut self, key: u32, is_control: bool) -> bool {
        let Some(port) = self.port(key) else { return true };
        for _ in 0..BATCHES_MAX {
            match port.read_ready(!is_control, is_control) {
                Ok(Some(taken)) if taken >= BATCH_LEN => {}
                Ok(Some(_)) => return true,
                Ok(None) => return false,
                Err(error) => {
                    self.pause(key, &port, &error);
                    return true;
                }
            }
        }
        true
    }

    /// Leaves a port alone for a while, which the system would otherwise report as ready all the time.
    fn pause(&mut self, key: u32, port: &Port, error: &Error) {
        let now = Instant::now();
        let Slot::Port(slot) = &mut self.slots[key as usize] else { return };
        let end = now + ERROR_PAUSE;
        slot.paused = Some(end);
        port.part(&self.set, u64::from(key) << 1);
        self.schedule.set(key, Some(end));
        self.report(key, now, error);
    }

    fn report(&mut self, key: u32, now: Instant, error: &Error) {
        let Slot::Port(slot) = &mut self.slots[key as usize] else { return };
        let is_new = slot.reported.is_none_or(|at| now - at >= ERROR_INTERVAL);
        if !is_new {
            return;
        }
        slot.reported = Some(now);
        for key in slot.streams.clone() {
            if let Slot::Stream(slot) = &mut self.slots[key as usize] {
                slot.source.report(error);
            }
        }
    }

    /// Returns whether there is nothing to do before a packet arrives or something is due.
    fn is_idle(&self) -> bool {
        self.round.is_empty() && !self.has_more && self.changes.wake_at_next()
    }

    /// Returns when [`pull`](Self::pull) has something to do even if no packet arrives; in the past if it
    /// has something to do now.
    pub(crate) fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        if !self.is_idle() {
            return Some(now);
        }
        let read = (!IS_READINESS_KNOWN && !self.ports.is_empty()).then(|| now + READ_INTERVAL);
        earlier(self.schedule.first(), read)
    }

    /// Returns the set, whose descriptor shows from now on when there is something to do.
    pub(crate) fn set(&self) -> &PollSet {
        if !self.descriptor.is_used.swap(true, Relaxed)
            && let Err(error) = self.show()
        {
            tracing::warn!(%error, "the poller's descriptor does not show what is due");
        }
        &self.set
    }

    /// Makes the descriptor readable if there is something to do, or when there will be.
    fn show(&self) -> Result<(), Error> {
        let is_idle = self.is_idle();
        if !is_idle && !self.descriptor.is_readable.swap(true, Relaxed) {
            self.changes.wake();
        }
        let (mut timer, next) = (lock(&self.descriptor.timer), self.schedule.first());
        // A timer that is too early only costs a turn.
        let is_early = |at: Instant| at > Instant::now() && next.is_some_and(|next| at <= next);
        if (timer.is_some() || next.is_some()) && !timer.is_some_and(is_early) {
            self.set.set_timer(next)?;
            *timer = next;
        }
        Ok(())
    }
}

impl<S: Source> Drop for Streams<S> {
    fn drop(&mut self) {
        for key in 0..self.slots.len() as u32 {
            drop(self.remove(key));
        }
    }
}
