//! One thread that receives from many streams.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rushes::PollerWaker;

use crate::control_event::nanos;
use crate::error::{Failure, Status};
use crate::frame::Frame;
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::stream::Stream;
use crate::turn::{Turn, busy, is_within_call};
use crate::{handle, pointer};

/// How long a thread that pulls leaves the poller to threads that change it.
const YIELD_TIME: Duration = Duration::from_millis(1);

/// How long a wait lasts before the poller is left to other threads.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Receives from many streams on one thread.
pub struct Poller {
    active: Turn<Option<Active>>,
    waker: PollerWaker,
    /// Whether the next pull that gets no frame ends.
    is_woken: AtomicBool,
    /// The number of threads that wait to change the poller.
    changing: AtomicUsize,
    descriptor: Option<c_int>,
}
handle_type!(Poller, 13, "poller");

/// A poller that is not closed.
struct Active {
    poller: rushes::Poller,
    /// The streams whose receivers the poller has.
    streams: HashMap<u64, Weak<Stream>>,
}

/// The place of a stream in a poller.
pub(crate) struct Polled {
    poller: Weak<Poller>,
    token: u64,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}

impl Polled {
    /// Removes the stream, which is closed.
    pub(crate) fn leave(&self, stream: &Stream) {
        let Some(poller) = self.poller.upgrade() else { return };
        let removed = poller.change(|active| {
            let held = active.streams.get(&self.token);
            // Another one may have the token by now.
            if !held.is_some_and(|held| std::ptr::eq(held.as_ptr(), stream)) {
                return Ok(None);
            }
            active.streams.remove(&self.token);
            Ok(active.poller.remove(self.token))
        });
        // Dropped without the turn.
        drop(removed);
    }
}

fn closed() -> Failure {
    Failure::new(Status::Closed, "the poller was closed meanwhile")
}

impl Poller {
    fn new() -> Result<Self, Failure> {
        let poller = rushes::Poller::new()?;
        #[cfg(target_os = "linux")]
        let descriptor = Some(poller.as_raw_fd());
        #[cfg(not(target_os = "linux"))]
        let descriptor = None;
        Ok(Self {
            waker: poller.waker(),
            active: Turn::new(Some(Active { poller, streams: HashMap::new() })),
            is_woken: AtomicBool::new(false),
            changing: AtomicUsize::new(0),
            descriptor,
        })
    }

    /// Uses the poller; lets a pull on another thread pause for that.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Option<Active>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.changing.fetch_add(1, SeqCst);
        let taken = self.active.take().or_else(|_| {
            self.waker.wake();
            self.active.wait()
        });
        self.changing.fetch_sub(1, SeqCst);
        act(&mut *taken?)
    }

    fn change<T>(&self, act: impl FnOnce(&mut Active) -> Result<T, Failure>) -> Result<T, Failure> {
        self.with(|active| act(active.as_mut().ok_or_else(closed)?))
    }

    fn add(self: &Arc<Self>, stream: &Arc<Stream>, token: u64) -> Result<(), Failure> {
        self.change(|active| {
            if active.poller.contains(token) {
                return Err(rushes::Error::TokenTaken { token }.into());
            }
            let polled = Polled { poller: Arc::downgrade(self), token };
            stream.lend(polled, |receiver| active.poller.add(receiver, token))?;
            active.streams.insert(token, Arc::downgrade(stream));
            Ok(())
        })
    }

    /// Returns whether it was added; otherwise a push on another thread is in progress.
    fn add_sender(&self, stream: &Stream, token: u64, may_wait: bool) -> Result<bool, Failure> {
        self.change(|active| match stream.sender.take() {
            Ok(sending) => {
                active.poller.add_sender(&sending.sender, token)?;
                Ok(true)
            }
            Err(_) if may_wait => Ok(false),
            Err(failure) => Err(failure),
        })
    }

    /// Removes a stream.
    fn remove(&self, token: u64) -> Result<(), Failure> {
        let removed = self.change(|active| {
            if !active.poller.contains(token) {
                let message = format!("no stream of the poller has the token {token}");
                return Err(Failure::new(Status::Argument, message));
            }
            if let Some(stream) = active.streams.get(&token).and_then(Weak::upgrade) {
                stream.take_back(|| active.poller.remove(token))?;
            }
            active.streams.remove(&token);
            // The receiver of a stream that is being closed.
            Ok(active.poller.remove(token))
        })?;
        // Dropped without the turn.
        drop(removed);
        Ok(())
    }

    /// Waits for a frame; `None` if it was woken, too.
    fn pull(&self, timeout: Duration) -> Result<Option<(u64, rushes::Frame)>, Failure> {
        let end = Instant::now().checked_add(timeout);
        loop {
            if self.changing.load(SeqCst) > 0 {
                // Unlocking and locking again at once would starve the waiting threads.
                thread::sleep(YIELD_TIME);
            }
            let left = end.map_or(POLL_INTERVAL, |end| {
                end.saturating_duration_since(Instant::now()).min(POLL_INTERVAL)
            });
            let left = if self.is_woken.load(SeqCst) { Duration::ZERO } else { left };
            let mut active = self.active.wait()?;
            let pulled = active.as_mut().ok_or_else(closed)?.poller.pull(left)?;
            drop(active);
            if pulled.is_some() {
                return Ok(pulled);
            }
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            if self.is_woken.swap(false, SeqCst) || is_over {
                return Ok(None);
            }
        }
    }

    fn close(&self) -> Result<(), Failure> {
        let Some(mut active) = self.with(|active| Ok(active.take()))? else { return Ok(()) };
        for (token, stream) in active.streams {
            if let Some(stream) = stream.upgrade() {
                stream.take_back(|| active.poller.remove(token))?;
            }
        }
        Ok(())
    }
}

/// Creates a poller without streams; close it with rushes_poller_close(). On Linux it takes three
/// file descriptors.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_new(poller: *mut *mut Poller) -> Status {
    guard(|| {
        pointer::write(poller, std::ptr::null_mut())?;
        pointer::write(poller, handle::insert(Poller::new()?)?)
    })
}

/// Adds a stream: from now on rushes_poller_pull() gives its frames, with `token`, a number that no
/// other stream of the poller has. Call rushes_stream_on_event() before.
///
/// The poller takes the stream's receiving half. The handle of the stream stays valid and the
/// application's: push frames on it, read its statistics, and close it with rushes_stream_close(),
/// which removes it from the poller. rushes_stream_pull_frame() and the functions that set hooks
/// return RUSHES_ERROR_HOOKED meanwhile, and so does this one for a stream that has a hook or is in
/// a poller. RUSHES_ERROR_ARGUMENT if the token is taken; the stream then stays as it was.
///
/// Streams may be added and removed on any thread while another pulls, but not in a hook that runs
/// within a pull of this poller: RUSHES_ERROR_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_add(
    poller: *const Poller,
    stream: *const Stream,
    token: u64,
) -> Status {
    guard(|| handle::get(poller)?.add(&handle::get(stream)?, token))
}

/// Adds a stream that only sends: rushes_poller_pull() reads and answers its reports and requests,
/// and gives no frame of it. It leaves the poller when it is closed.
///
/// A push on such a stream makes no system call to look for reports, so rushes_poller_pull() must be
/// called a few times a second at least. Not needed for a stream that was added with
/// rushes_poller_add().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_add_sender(
    poller: *const Poller,
    stream: *const Stream,
    token: u64,
) -> Status {
    guard(|| {
        let (poller, stream) = (handle::get(poller)?, handle::get(stream)?);
        let may_wait = !is_within_call();
        // Neither turn is waited for while the other is held.
        while !poller.add_sender(&stream, token, may_wait)? {
            thread::sleep(YIELD_TIME);
        }
        Ok(())
    })
}

/// Removes the stream of a token; its frames can then be pulled again, with
/// rushes_stream_pull_frame(). RUSHES_ERROR_ARGUMENT if no stream has the token.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_remove(poller: *const Poller, token: u64) -> Status {
    guard(|| handle::get(poller)?.remove(token))
}

/// Waits for the next frame of any stream, at most for `timeout` nanoseconds (RUSHES_FOREVER:
/// without limit); gets it and the token of its stream. RUSHES_TIMEOUT, and NULL in `*frame`, if none
/// arrived, or after rushes_poller_wake(). With 0 it reads what has arrived, does what is due, and
/// does not wait.
///
/// It also does what a pulling thread does for each stream: it reads RTCP, answers requests and
/// sends reports, and calls the hooks for events. Frames of one source are in order, complete and
/// given once each, as by rushes_stream_pull_frame(); the frame is lent until
/// rushes_frame_release(). RUSHES_ERROR_CLOSED if another thread closes the poller meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_pull(
    poller: *const Poller,
    timeout: u64,
    token: *mut u64,
    frame: *mut *mut Frame,
) -> Status {
    guard_with(|| {
        pointer::write(frame, std::ptr::null_mut())?;
        pointer::check(token)?;
        let timeout =
            if timeout == u64::MAX { Duration::MAX } else { Duration::from_nanos(timeout) };
        let Some((of, pulled)) = handle::get(poller)?.pull(timeout)? else {
            return Ok(Status::Timeout);
        };
        pointer::write(token, of)?;
        pointer::write(frame, handle::insert(Frame::new(pulled))?)?;
        Ok(Status::Ok)
    })
}

/// Gets for how many nanoseconds rushes_poller_pull() has nothing to do if no packet arrives: 0 if it
/// has now, RUSHES_FOREVER for ever. Each pull may change it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_timeout(poller: *const Poller, timeout: *mut u64) -> Status {
    guard(|| {
        let due = handle::get(poller)?.change(|active| Ok(active.poller.timeout()))?;
        pointer::write(timeout, due.map_or(u64::MAX, nanos))
    })
}

/// Gets a descriptor that is readable while rushes_poller_pull() has something to do: frames,
/// packets, or reports that are due. Wait for it with poll() or in an event loop, then call
/// rushes_poller_pull() with a timeout of 0 until it returns RUSHES_TIMEOUT. It is valid until
/// rushes_poller_close(), and must neither be read nor closed. Linux only; elsewhere
/// RUSHES_ERROR_UNSUPPORTED, and rushes_poller_pull() is called every few milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_descriptor(
    poller: *const Poller,
    descriptor: *mut c_int,
) -> Status {
    guard(|| {
        let of = handle::get(poller)?.descriptor;
        let none = || Failure::new(Status::Unsupported, "pollers have descriptors on Linux only");
        pointer::write(descriptor, of.ok_or_else(none)?)
    })
}

/// Lets a rushes_poller_pull() on another thread return RUSHES_TIMEOUT, or the next one if there is
/// none. May be called on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_wake(poller: *const Poller) -> Status {
    guard(|| {
        let poller = handle::get(poller)?;
        poller.is_woken.store(true, SeqCst);
        poller.waker.wake();
        Ok(())
    })
}

/// Closes a poller. Its streams stay open, and can be pulled again. From a hook that runs within a
/// call on this thread it returns RUSHES_ERROR_BUSY, and the poller stays open.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_poller_close(poller: *mut Poller) -> Status {
    guard(|| {
        handle::get(poller)?;
        if is_within_call() {
            return Err(busy(
                "a poller cannot be closed from a hook that runs within a call on this thread",
            ));
        }
        handle::remove(poller)?.close()
    })
}
