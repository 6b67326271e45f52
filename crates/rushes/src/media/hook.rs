//! Delivery of frames to a function, on a thread of the pool or on the stream's own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rushes_proto::payload::Frame;

use super::pool::PooledHook;
use super::receiver::{Pulled, StreamReceiver};
use crate::error::Error;
use crate::reports::Attached;
use crate::stats::Statistics;

/// The application's function for frames.
pub(crate) type FrameHook = Box<dyn FnMut(Frame) + Send>;

/// The application's function around a hook's loop: it runs the loop by calling its argument.
pub(crate) type LoopWrapper = Box<dyn FnOnce(&mut (dyn FnMut() + Send)) + Send>;

/// Maximum time for which the thread waits without a wake-up.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Pause after a socket error, which may be temporary.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// The interval at which a lasting error is reported.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// A running hook; dropping it stops it and waits until a call in progress has returned.
#[derive(Debug)]
pub struct Hook {
    attached: Arc<Attached>,
    _thread: HookThread,
}

#[derive(Debug)]
#[allow(dead_code, reason = "dropping it ends the hook")]
enum HookThread {
    Shared(PooledHook),
    Own(OwnThread),
}

/// The thread of one hook.
#[derive(Debug)]
struct OwnThread {
    attached: Arc<Attached>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hook {
    /// Starts a hook on a thread of the pool; on its own if it spins, since it would slow down others.
    pub(crate) fn start(receiver: StreamReceiver, hook: FrameHook) -> Result<Self, Error> {
        if !receiver.spin.is_zero() {
            return Self::start_within(receiver, hook, Box::new(|run| run()));
        }
        let attached = receiver.attached.clone();
        let thread = HookThread::Shared(PooledHook::start(receiver, hook)?);
        Ok(Self { attached, _thread: thread })
    }

    /// Starts a hook on a thread of its own.
    pub(crate) fn start_within(
        receiver: StreamReceiver,
        hook: FrameHook,
        within: LoopWrapper,
    ) -> Result<Self, Error> {
        let attached = receiver.attached.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name(format!("rushes-{}", attached.local_address().port()))
            .spawn(move || {
                let (mut receiver, mut hook) = (receiver, hook);
                within(&mut || run(&mut receiver, &mut hook, &stopped));
            })
            .map_err(Error::Thread)?;
        let thread = OwnThread { attached: attached.clone(), stop, thread: Some(thread) };
        Ok(Self { attached, _thread: HookThread::Own(thread) })
    }

    /// Returns the stream's counters.
    pub fn statistics(&self) -> Statistics {
        self.attached.statistics()
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.attached.port.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of the hook was reported by its own thread.
            let _ = thread.join();
        }
    }
}

fn run(receiver: &mut StreamReceiver, hook: &mut FrameHook, stop: &AtomicBool) {
    let mut warned_at: Option<Instant> = None;
    while !stop.load(Relaxed) {
        let now = Instant::now();
        match receiver.pull_until(now, now + WAIT_MAX) {
            // The hook for events may have stopped this thread.
            Ok(Pulled::Frame(_)) if stop.load(Relaxed) => {}
            Ok(Pulled::Frame(frame)) => hook(frame),
            Ok(Pulled::Timeout | Pulled::Woken) => {}
            Err(error) => {
                if warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
                    warned_at = Some(Instant::now());
                    receiver.report(&error);
                }
                thread::sleep(ERROR_PAUSE);
            }
        }
    }
}
