//! Frames given to a function, on a thread of the stream's own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rushes_proto::payload::Frame;

use super::receiver::{Pulled, StreamReceiver};
use crate::error::Error;
use crate::reports::Attached;
use crate::stats::Statistics;

/// A function that is given frames.
pub(crate) type FrameHook = Box<dyn FnMut(Frame) + Send>;

/// A function that runs a hook's thread, by calling what it is given.
pub(crate) type Within = Box<dyn FnOnce(&mut (dyn FnMut() + Send)) + Send>;

/// How long the thread sleeps when nothing wakes it.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How long it rests after an error of the socket, which may pass.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// How often an error that lasts is told.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// A running hook; dropping it stops the thread and waits until a call in progress has returned.
#[derive(Debug)]
pub struct Hook {
    attached: Arc<Attached>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hook {
    pub(crate) fn start(
        receiver: StreamReceiver,
        hook: FrameHook,
        within: Within,
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
        Ok(Self { attached, stop, thread: Some(thread) })
    }

    /// The stream's counters.
    pub fn statistics(&self) -> Statistics {
        self.attached.statistics()
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.attached.port.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of the hook has been reported where it happened.
            let _ = thread.join();
        }
    }
}

fn run(receiver: &mut StreamReceiver, hook: &mut FrameHook, stop: &AtomicBool) {
    let mut warned_at: Option<Instant> = None;
    while !stop.load(Relaxed) {
        match receiver.pull_until(Instant::now() + WAIT_MAX) {
            // What was told of on the way may have ended it.
            Ok(Pulled::Frame(_)) if stop.load(Relaxed) => {}
            Ok(Pulled::Frame(frame)) => hook(frame),
            Ok(Pulled::Timeout | Pulled::Woken) => {}
            Err(error) => {
                if warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
                    warned_at = Some(Instant::now());
                    tracing::warn!(%error, "the stream cannot read its socket");
                    if let Some(on_error) = &mut receiver.on_error {
                        on_error(&error);
                    }
                }
                thread::sleep(ERROR_PAUSE);
            }
        }
    }
}
