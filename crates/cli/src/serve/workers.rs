//! The threads of viewers: each has many sessions, and wakes when one of them has something to do.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rushes::peer::Peer;
use rushes::{Error, Poller, PollerWaker};
use rushes_whip::{Reason, Refusal};

/// The longest wait, if nothing is due.
const LONGEST: Duration = Duration::from_secs(3600);
/// Pause after an error of a wait, which may be temporary.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// What a thread does for one session.
pub(super) trait Task: Send {
    /// Returns the connection of the session, which the thread reads.
    fn peer(&self) -> &Peer;

    /// Does what there is to do, without waiting.
    fn advance(&mut self, now: Instant) -> Turn;
}

/// When a session has something to do again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// When it is woken, or at this time.
    Until(Option<Instant>),
    /// Never: the session is over.
    Over,
}

/// Wakes the thread of a session to do what there is to do for it.
#[derive(Clone, Debug)]
pub(super) struct Waker(Arc<WakerInner>);

#[derive(Debug)]
struct WakerInner {
    worker: Arc<Worker>,
    number: u64,
    /// Whether the thread has not looked since it was woken.
    is_woken: AtomicBool,
}

impl Waker {
    pub(super) fn wake(&self) {
        if self.0.is_woken.swap(true, AcqRel) {
            return;
        }
        let mut inbox = self.0.worker.inbox();
        inbox.woken.push(self.0.number);
        if std::mem::take(&mut inbox.must_wake) {
            drop(inbox);
            self.0.worker.waker.wake();
        }
    }
}

/// A thread, as others see it.
#[derive(Debug)]
struct Worker {
    inbox: Mutex<Inbox>,
    waker: PollerWaker,
}

#[derive(Default)]
struct Inbox {
    enter: Vec<Member>,
    /// The sessions that were woken.
    woken: Vec<u64>,
    /// Number of the last session.
    last: u64,
    /// Sessions that are open, or about to be.
    sessions: usize,
    /// Whether the thread waits, so that the next entry must wake it.
    must_wake: bool,
    /// Whether the thread ends, or has ended.
    has_ended: bool,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("sessions", &self.sessions).finish_non_exhaustive()
    }
}

impl Worker {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session of a worker, which is counted until this is dropped.
#[derive(Debug)]
struct Counted(Arc<Worker>);

impl Counted {
    fn new(worker: &Arc<Worker>) -> Self {
        worker.inbox().sessions += 1;
        Self(worker.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.inbox().sessions -= 1;
    }
}

/// A number of threads, each started when it is first needed. Sessions that are left when this is dropped end.
#[derive(Debug)]
pub(super) struct Workers {
    name: &'static str,
    max: usize,
    started: Mutex<Vec<Arc<Worker>>>,
}

impl Workers {
    /// Creates at most `max` threads.
    pub(super) fn new(name: &'static str, max: usize) -> Self {
        Self { name, max, started: Mutex::default() }
    }

    /// Creates as many threads as there are cores, at most.
    pub(super) fn of_cores(name: &'static str) -> Self {
        Self::new(name, thread::available_parallelism().map_or(1, usize::from))
    }

    /// Gives the session that `make` returns to the thread with the fewest sessions. The waker is that of the session.
    ///
    /// # Errors
    /// Those of `make`, or [`Reason::Busy`] if the system has no thread or descriptor left.
    pub(super) fn enter<T>(
        &self,
        make: impl FnOnce(Waker) -> Result<(T, Box<dyn Task>), Refusal>,
    ) -> Result<T, Refusal> {
        let failed = |error: Error| Refusal::new(Reason::Busy, error.to_string());
        let counted = self.worker().map_err(failed)?;
        let worker = counted.0.clone();
        let number = {
            let mut inbox = worker.inbox();
            inbox.last += 1;
            inbox.last
        };
        let is_woken = AtomicBool::new(false);
        let waker = Waker(Arc::new(WakerInner { worker: worker.clone(), number, is_woken }));
        let (made, task) = make(waker.clone())?;
        let member = Member { task, waker, due: None, _counted: counted };
        {
            let mut inbox = worker.inbox();
            if inbox.has_ended {
                // Dropping the session locks it.
                drop(inbox);
                return Err(Refusal::new(Reason::Busy, "the thread of this session has ended"));
            }
            inbox.enter.push(member);
            inbox.must_wake = false;
        }
        worker.waker.wake();
        Ok(made)
    }

    /// Returns the number of threads.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns a place on the thread with the fewest sessions.
    fn worker(&self) -> Result<Counted, Error> {
        let mut workers = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| !worker.inbox().has_ended);
        let fewest = workers.iter().min_by_key(|worker| worker.inbox().sessions);
        if let Some(worker) = fewest
            && (workers.len() >= self.max || worker.inbox().sessions == 0)
        {
            return Ok(Counted::new(worker));
        }
        let poller = Poller::new()?;
        let worker = Arc::new(Worker { inbox: Mutex::default(), waker: poller.waker() });
        let event_loop = EventLoop {
            worker: worker.clone(),
            poller,
            members: HashMap::new(),
            due: BTreeSet::new(),
        };
        let named = thread::Builder::new().name(self.name.to_owned());
        named.spawn(move || event_loop.run()).map_err(Error::Thread)?;
        workers.push(worker.clone());
        Ok(Counted::new(&worker))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in self.started.get_mut().unwrap_or_else(PoisonError::into_inner) {
            worker.inbox().has_ended = true;
            worker.waker.wake();
        }
    }
}

/// A thread and its sessions.
struct EventLoop {
    worker: Arc<Worker>,
    poller: Poller,
    members: HashMap<u64, Member>,
    /// When sessions have something to do.
    due: BTreeSet<(Instant, u64)>,
}

struct Member {
    task: Box<dyn Task>,
    waker: Waker,
    due: Option<Instant>,
    _counted: Counted,
}

impl Drop for EventLoop {
    /// Sessions that were about to enter end with the thread.
    fn drop(&mut self) {
        let mut inbox = self.worker.inbox();
        inbox.has_ended = true;
        let late = std::mem::take(&mut inbox.enter);
        drop(inbox);
        drop(late);
    }
}

impl EventLoop {
    fn run(mut self) {
        loop {
            let (enter, woken) = {
                let mut inbox = self.worker.inbox();
                if inbox.has_ended {
                    return;
                }
                (std::mem::take(&mut inbox.enter), std::mem::take(&mut inbox.woken))
            };
            for member in enter {
                self.add(member);
            }
            for number in woken {
                self.advance(number);
            }
            // What they have to do next waits for the others.
            let due = self.due.range(..=(Instant::now(), u64::MAX));
            let due: Vec<_> = due.map(|(_, number)| *number).collect();
            for number in due {
                self.advance(number);
            }
            let wait = self.wait();
            // What one session is sent must not end others.
            match catch_unwind(AssertUnwindSafe(|| self.poller.pull(wait))) {
                // Viewers send no frames; a panic was reported by the thread.
                Ok(Ok(_)) | Err(_) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the thread of sessions cannot wait");
                    thread::sleep(ERROR_PAUSE);
                }
            }
        }
    }

    /// Returns how long nothing is due; the next entry of the inbox ends the wait.
    fn wait(&self) -> Duration {
        let mut inbox = self.worker.inbox();
        inbox.must_wake = inbox.woken.is_empty() && inbox.enter.is_empty();
        if !inbox.must_wake {
            return Duration::ZERO;
        }
        let due = self.due.first();
        due.map_or(LONGEST, |(due, _)| due.saturating_duration_since(Instant::now()))
    }

    fn add(&mut self, member: Member) {
        let number = member.waker.0.number;
        let added = self.poller.add_peer(member.task.peer(), number);
        self.members.insert(number, member);
        match added {
            Ok(()) => self.advance(number),
            Err(error) => {
                tracing::warn!(%error, "a session cannot be served");
                self.remove(number);
            }
        }
    }

    /// Lets a session do what there is to do.
    fn advance(&mut self, number: u64) {
        let Some(member) = self.members.get_mut(&number) else { return };
        // Not only a store: what was written before a wake-up that this takes is seen below.
        member.waker.0.is_woken.swap(false, AcqRel);
        if let Some(due) = member.due.take() {
            self.due.remove(&(due, number));
        }
        // What one session does must not end others. The panic was reported by the thread.
        let turn = catch_unwind(AssertUnwindSafe(|| member.task.advance(Instant::now())));
        let Ok(Turn::Until(due)) = turn else { return self.remove(number) };
        member.due = due;
        self.due.extend(due.map(|due| (due, number)));
    }

    fn remove(&mut self, number: u64) {
        let Some(member) = self.members.remove(&number) else { return };
        if let Some(due) = member.due {
            self.due.remove(&(due, number));
        }
        self.poller.remove(number);
        // Ends the connection.
        drop(catch_unwind(AssertUnwindSafe(|| drop(member))));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use rushes::Context;

    use super::*;

    /// Says when it is called, and is over after `turns` of them.
    struct Limited {
        peer: Peer,
        turns: u32,
        calls: mpsc::Sender<thread::ThreadId>,
    }

    impl Task for Limited {
        fn peer(&self) -> &Peer {
            &self.peer
        }

        fn advance(&mut self, _: Instant) -> Turn {
            let _ = self.calls.send(thread::current().id());
            self.turns -= 1;
            assert!(self.turns < 100, "a task that panics");
            if self.turns == 0 { Turn::Over } else { Turn::Until(None) }
        }
    }

    fn enter(workers: &Workers, turns: u32) -> (Waker, mpsc::Receiver<thread::ThreadId>) {
        let peer = Context::new().peer().local_address("127.0.0.1").unwrap().open().unwrap();
        let (calls, called) = mpsc::channel();
        let make = |waker| Ok((waker, Box::new(Limited { peer, turns, calls }) as Box<dyn Task>));
        (workers.enter(make).unwrap(), called)
    }

    #[test]
    fn each_wake_up_is_answered_until_the_end_and_one_that_panics_ends_alone() {
        let workers = Workers::new("test", 1);
        let (waker, called) = enter(&workers, 4);
        for _ in 0..3 {
            called.recv().unwrap();
            waker.wake();
        }
        let (_waker, panics) = enter(&workers, 1000);
        assert!(panics.recv().is_ok() && panics.recv().is_err());
        assert!(called.recv().is_ok() && called.recv().is_err(), "it is over, and gone");
        waker.wake();
        let (_waker, called) = enter(&workers, 1);
        assert!(called.recv().is_ok() && called.recv().is_err());
    }

    #[test]
    fn many_sessions_share_few_threads_and_end_with_them() {
        let workers = Workers::new("test", 2);
        let entered: Vec<_> = (0..20).map(|_| enter(&workers, 2)).collect();
        let threads: std::collections::HashSet<_> =
            entered.iter().map(|(_, called)| called.recv().unwrap()).collect();
        assert_eq!(threads.len(), 2);
        drop(workers);
        assert!(entered.iter().all(|(_, called)| called.recv().is_err()));
    }
}
