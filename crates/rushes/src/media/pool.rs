//! The threads of hooks: as many as cores at most, each for many streams.
//!
//! A thread pulls the frames of its streams as an application with a poller does. While it is in a hook it
//! holds no lock, so that another thread can take its place if the hook does not return.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, TryLockError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use std::{mem, thread};

use rushes_proto::payload::Frame;

use super::hook::FrameHook;
use super::receiver::StreamReceiver;
use crate::error::Error;
use crate::lock::lock;
use crate::poll::{Given, Source, Streams};
use crate::port::{Changes, Inbox};

/// Maximum time for which a thread waits without a wake-up.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Pause after an error of a wait, which may be temporary.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// The time after which another thread takes the place of one whose hook has not returned, and the interval
/// at which this is checked.
const STUCK_AFTER: Duration = Duration::from_millis(100);

/// The threads that have streams.
static POOL: Mutex<Pool> = Mutex::new(Pool { workers: Vec::new(), is_watched: false });

/// The instant from which times are counted.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

thread_local! {
    /// Whether this is a thread of the pool.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug)]
struct Pool {
    workers: Vec<Arc<Worker>>,
    /// Whether a thread looks for hooks that do not return.
    is_watched: bool,
}

/// The streams of one thread.
#[derive(Debug)]
struct Worker {
    /// Locked by the thread except within a hook.
    streams: Mutex<Streams<Hooked>>,
    orders: Mutex<Orders>,
    changes: Arc<Changes>,
    /// The number of threads that were replaced.
    turn: AtomicU32,
    /// When the current call of a hook began, in milliseconds after the epoch plus one; 0 if there is none.
    since: AtomicU64,
    hooks: AtomicUsize,
}

/// What a thread does before it pulls again.
#[derive(Debug, Default)]
struct Orders {
    add: Vec<Hooked>,
    remove: Vec<Arc<Call>>,
    /// The number of streams on each port, by its address in memory.
    ports: HashMap<usize, usize>,
}

/// A stream with a hook.
#[derive(Debug)]
struct Hooked {
    receiver: StreamReceiver,
    call: Arc<Call>,
}

/// The hook of a stream.
pub(super) struct Call {
    state: Mutex<CallState>,
    changed: Condvar,
    is_running: AtomicBool,
    /// The stream's key in its thread's streams.
    key: AtomicU32,
    port: usize,
    inbox: Arc<Inbox>,
}

#[derive(Default)]
struct CallState {
    /// `None` while it runs, and after the end.
    hook: Option<FrameHook>,
    running: Option<ThreadId>,
    is_stopped: bool,
    /// Whether the stream has left its thread.
    is_removed: bool,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Source for Hooked {
    fn take(&mut self, now: Instant) -> (Given, Option<Instant>) {
        // Frames wait while the hook has not returned: they are passed to it in order.
        if self.call.is_running.load(Acquire) {
            return (Given::Nothing, None);
        }
        let (frame, due) = self.receiver.take(now);
        (frame.map_or(Given::Nothing, Given::Frame), due)
    }

    fn report(&mut self, error: &Error) {
        self.receiver.report(error);
    }
}

/// A stream in the pool; dropping it ends its hook, and waits until a call in progress has returned.
#[derive(Debug)]
pub(super) struct PooledHook {
    worker: Arc<Worker>,
    call: Arc<Call>,
}

impl PooledHook {
    pub(super) fn start(receiver: StreamReceiver, hook: FrameHook) -> Result<Self, Error> {
        let port = Arc::as_ptr(&receiver.attached.port).addr();
        let state = CallState { hook: Some(hook), ..CallState::default() };
        let call = Arc::new(Call {
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_running: AtomicBool::new(false),
            key: AtomicU32::new(u32::MAX),
            port,
            inbox: receiver.attached.reporter.inbox.clone(),
        });
        let mut pool = lock(&POOL);
        let worker = pool.worker_for(port)?;
        {
            let mut orders = lock(&worker.orders);
            *orders.ports.entry(port).or_default() += 1;
            orders.add.push(Hooked { receiver, call: call.clone() });
        }
        let hooks = worker.hooks.fetch_add(1, AcqRel) + 1;
        if hooks > 1 {
            pool.watch();
        }
        drop(pool);
        worker.changes.interrupt();
        Ok(Self { worker, call })
    }
}

impl Pool {
    /// Returns the thread that has streams of the port, a new one while there are fewer than cores, or that
    /// with the fewest streams.
    fn worker_for(&mut self, port: usize) -> Result<Arc<Worker>, Error> {
        let has_port = |worker: &&Arc<Worker>| lock(&worker.orders).ports.contains_key(&port);
        if let Some(worker) = self.workers.iter().find(has_port) {
            return Ok(worker.clone());
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if self.workers.len() >= cores
            && let Some(worker) = self.workers.iter().min_by_key(|it| it.hooks.load(Relaxed))
        {
            return Ok(worker.clone());
        }
        let streams = Streams::new()?;
        let worker = Arc::new(Worker {
            changes: streams.changes().clone(),
            streams: Mutex::new(streams),
            orders: Mutex::default(),
            turn: AtomicU32::new(0),
            since: AtomicU64::new(0),
            hooks: AtomicUsize::new(0),
        });
        // Added first: the thread ends as soon as it finds no stream.
        self.workers.push(worker.clone());
        if let Err(error) = worker.spawn(None) {
            self.workers.pop();
            return Err(error);
        }
        Ok(worker)
    }

    /// Starts the thread that looks for hooks that do not return, unless it runs.
    fn watch(&mut self) {
        if self.is_watched {
            return;
        }
        let name = "rushes-watch".to_owned();
        self.is_watched = thread::Builder::new().name(name).spawn(watch).is_ok();
    }
}

/// Replaces threads whose hook has not returned for a while, as long as threads have several streams.
fn watch() {
    loop {
        thread::sleep(STUCK_AFTER);
        let mut pool = lock(&POOL);
        if !pool.workers.iter().any(|worker| worker.hooks.load(Relaxed) > 1) {
            pool.is_watched = false;
            return;
        }
        for worker in &pool.workers {
            worker.replace_if_stuck();
        }
    }
}

impl Worker {
    /// Starts the worker's thread, or one that takes the place of that which has been in a hook since `stuck`.
    fn spawn(self: &Arc<Self>, stuck: Option<u64>) -> Result<(), Error> {
        let worker = self.clone();
        let spawned = thread::Builder::new().name("rushes-hooks".to_owned()).spawn(move || {
            IS_WORKER.set(true);
            let turn = match stuck {
                None => Some(0),
                Some(since) => worker.take_over(since),
            };
            let Some(turn) = turn else { return };
            // A function for events, errors or reports that panics must not end the others' thread. The
            // panic was reported.
            while catch_unwind(AssertUnwindSafe(|| worker.run(turn))).is_err() {
                lock(&worker.streams).note_all();
            }
        });
        spawned.map(drop).map_err(Error::Thread)
    }

    /// Ends the turn of the thread that has been in a hook since `since`; returns the next turn, or `None` if
    /// the hook has returned.
    fn take_over(&self, since: u64) -> Option<u32> {
        self.since.compare_exchange(since, 0, AcqRel, Relaxed).ok()?;
        Some(self.turn.fetch_add(1, AcqRel) + 1)
    }

    fn replace_if_stuck(self: &Arc<Self>) {
        let since = self.since.load(Acquire);
        let is_stuck =
            since > 0 && millis().saturating_sub(since) >= STUCK_AFTER.as_millis() as u64;
        if !is_stuck || self.hooks.load(Relaxed) < 2 {
            return;
        }
        if let Err(error) = self.spawn(Some(since)) {
            tracing::warn!(%error, "a hook does not return, and delays others");
        }
    }

    /// Passes frames to hooks until there are no streams, or until another thread has taken this one's place.
    fn run(self: &Arc<Self>, turn: u32) {
        while self.turn.load(Acquire) == turn {
            let mut streams = lock(&self.streams);
            let gone = self.obey(&mut streams);
            if !gone.is_empty() {
                drop(streams);
                gone.into_iter().for_each(Hooked::end);
                continue;
            }
            if self.retires() {
                return;
            }
            match streams.pull(Instant::now() + WAIT_MAX) {
                Ok(Some((key, frame))) => {
                    let Some(call) = streams.source(key).map(|it| it.call.clone()) else {
                        continue;
                    };
                    let hook = call.begin();
                    drop(streams);
                    if let Some(hook) = hook {
                        self.call(&call, hook, frame);
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    drop(streams);
                    tracing::warn!(%error, "the thread of hooks cannot wait");
                    thread::sleep(ERROR_PAUSE);
                }
            }
        }
    }

    fn call(&self, call: &Arc<Call>, mut hook: FrameHook, frame: Frame) {
        let since = millis();
        self.since.store(since, Release);
        let has_panicked = catch_unwind(AssertUnwindSafe(|| hook(frame))).is_err();
        // Unless another thread has taken this one's place.
        let _ = self.since.compare_exchange(since, 0, AcqRel, Relaxed);
        if call.end(hook, has_panicked) {
            // The panic was reported by the thread; the stream is read no longer.
            lock(&self.orders).remove.push(call.clone());
        }
        // Frames may have arrived meanwhile.
        call.inbox.watches().note();
    }

    /// Adds and removes streams; returns those removed, which must be dropped without the lock.
    fn obey(&self, streams: &mut Streams<Hooked>) -> Vec<Hooked> {
        let (add, remove) = {
            let mut orders = lock(&self.orders);
            (mem::take(&mut orders.add), mem::take(&mut orders.remove))
        };
        let mut gone = Vec::new();
        for hooked in add {
            let (port, inbox, call) = {
                let attached = &hooked.receiver.attached;
                (attached.port.clone(), attached.reporter.inbox.clone(), hooked.call.clone())
            };
            match streams.add(hooked, &port, Some(&inbox)) {
                Ok(key) => call.key.store(key, Release),
                Err((error, mut hooked)) => {
                    hooked.receiver.report(&error);
                    self.forget(&hooked.call);
                    gone.push(hooked);
                }
            }
        }
        for call in remove {
            let key = call.key.load(Acquire);
            // It may have been removed already, and its key be another's.
            let is_own = streams.source(key).is_some_and(|it| Arc::ptr_eq(&it.call, &call));
            if is_own && let Some(hooked) = streams.remove(key) {
                self.forget(&call);
                gone.push(hooked);
            }
        }
        gone
    }

    /// Counts a stream that leaves.
    fn forget(&self, call: &Call) {
        self.hooks.fetch_sub(1, AcqRel);
        let ports = &mut lock(&self.orders).ports;
        if let Some(streams) = ports.get_mut(&call.port) {
            *streams -= 1;
            if *streams == 0 {
                ports.remove(&call.port);
            }
        }
    }

    /// Leaves the pool if there are no streams; returns whether it did.
    fn retires(self: &Arc<Self>) -> bool {
        if self.hooks.load(Acquire) > 0 {
            return false;
        }
        let mut pool = lock(&POOL);
        // A stream may have been added meanwhile.
        if self.hooks.load(Acquire) > 0 || !lock(&self.orders).add.is_empty() {
            return false;
        }
        pool.workers.retain(|worker| !Arc::ptr_eq(worker, self));
        true
    }
}

impl Hooked {
    /// Drops the receiver, then lets those that wait for it go on.
    fn end(self) {
        let Self { receiver, call } = self;
        drop(receiver);
        lock(&call.state).is_removed = true;
        call.changed.notify_all();
    }
}

impl Call {
    /// Takes the hook to call it; `None` after the end.
    fn begin(&self) -> Option<FrameHook> {
        let mut state = lock(&self.state);
        let hook = state.hook.take()?;
        state.running = Some(thread::current().id());
        self.is_running.store(true, Release);
        Some(hook)
    }

    /// Puts the hook back after a call, unless it ends; returns whether it ends by a panic.
    fn end(&self, hook: FrameHook, has_panicked: bool) -> bool {
        let mut hook = Some(hook);
        let mut state = lock(&self.state);
        state.running = None;
        self.is_running.store(false, Release);
        let is_new = has_panicked && !mem::replace(&mut state.is_stopped, true);
        if !state.is_stopped {
            state.hook = hook.take();
        }
        drop(state);
        // Dropped without the lock, and before anyone is told of the end.
        drop(hook);
        self.changed.notify_all();
        is_new
    }
}

impl Drop for PooledHook {
    fn drop(&mut self) {
        let Self { worker, call } = self;
        let hook = {
            let mut state = lock(&call.state);
            state.is_stopped = true;
            state.hook.take()
        };
        drop(hook);
        lock(&worker.orders).remove.push(call.clone());
        worker.changes.interrupt();
        let is_worker = IS_WORKER.get();
        let streams = match is_worker.then(|| worker.streams.try_lock()) {
            Some(Ok(streams)) => Some(streams),
            Some(Err(TryLockError::Poisoned(poisoned))) => Some(poisoned.into_inner()),
            Some(Err(TryLockError::WouldBlock)) | None => None,
        };
        if let Some(mut streams) = streams {
            // Within a hook of the same thread, which cannot do it meanwhile.
            let gone = worker.obey(&mut streams);
            drop(streams);
            gone.into_iter().for_each(Hooked::end);
        }
        let own = thread::current().id();
        let must_wait = |state: &mut CallState| {
            let is_elsewhere = state.running.is_some_and(|thread| thread != own);
            // Threads of the pool must not wait for each other.
            is_elsewhere || (!is_worker && !state.is_removed)
        };
        let state = lock(&call.state);
        drop(call.changed.wait_while(state, must_wait).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Milliseconds after the epoch, plus one.
fn millis() -> u64 {
    EPOCH.elapsed().as_millis() as u64 + 1
}
