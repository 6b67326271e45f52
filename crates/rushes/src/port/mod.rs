//! A local port: one socket, the streams on it, and the thread whose turn it is to read.
//!
//! A port has no thread of its own. A thread that wants a frame takes the turn, reads one batch,
//! hands each datagram to its stream and releases the turn; other threads wait until it has. With
//! one stream on the port that is a function call and two uncontended locks per batch.

mod reports;
mod run;

use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::TryLockError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use rushes_net::Arena;
use rushes_net::Datagrams;
use rushes_net::SendQueue;
use rushes_net::UdpSocket;
use rushes_net::Waker;
use rushes_proto::payload::Frame;
use rushes_proto::rtcp::is_rtcp;
use rushes_proto::stream::Demux;
use rushes_proto::stream::Event;
use rushes_proto::stream::Receiver;
use rushes_proto::stream::Route;

use self::run::Run;
use crate::error::Error;
use crate::reporter::Reporter;
use crate::reporter::earlier;
#[cfg(feature = "zrtp")]
use crate::zrtp::{Channel, is_zrtp};

/// Where a stream's datagrams go.
#[derive(Debug)]
pub(crate) struct Inbox {
    id: u64,
    receiver: Mutex<Receiver>,
    uncollected: AtomicU64,
}

impl Inbox {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn uncollected(&self) -> u64 {
        self.uncollected.load(Relaxed)
    }
}

/// What a reader waits for, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) deadline: Instant,
    /// How long to poll before sleeping.
    pub(crate) spin: Duration,
}

/// The result of waiting for a frame.
#[derive(Debug)]
pub(crate) enum Pulled {
    Frame(Frame),
    Timeout,
    Woken,
}

/// The only peer whose datagrams are accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OnlyFrom {
    pub(crate) host: IpAddr,
    /// The port of its media; `None` accepts any port of the host. Its reports may come from any
    /// port.
    pub(crate) port: Option<u16>,
}

impl OnlyFrom {
    fn sends_media(self, from: SocketAddr) -> bool {
        self.host == from.ip() && self.port.is_none_or(|port| port == from.port())
    }
}

/// Where a port's RTCP is.
#[derive(Debug)]
pub(crate) enum Control {
    /// Nowhere.
    Off,
    /// On the media's own port (RFC 5761).
    Muxed,
    /// On a socket of its own, one port above (RFC 3550 section 11).
    Beside(Box<UdpSocket>),
}

/// How long media may keep a reader from checking the socket for RTCP.
const CONTROL_PATIENCE: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(crate) struct Port {
    socket: UdpSocket,
    control: Control,
    waker: Waker,
    only_from: Option<OnlyFrom>,
    /// Held by the thread whose turn it is.
    turn: Mutex<Turn>,
    inboxes: Mutex<Inboxes>,
    reporters: Mutex<Vec<Arc<Reporter>>>,
    /// For datagrams of RTCP.
    queue: Mutex<SendQueue>,
    /// Nanoseconds since `epoch` at which a reporter has something to do.
    due: AtomicU64,
    epoch: Instant,
    news: Mutex<News>,
    news_came: Condvar,
    foreign: AtomicU64,
    unrouted: AtomicU64,
    /// Where datagrams of ZRTP go.
    #[cfg(feature = "zrtp")]
    channel: Mutex<Option<Channel>>,
}

/// The buffers of the thread whose turn it is.
#[derive(Debug)]
struct Turn {
    arena: Arena,
    control: Option<Arena>,
    /// When the socket for RTCP was looked at.
    looked: Instant,
}

/// Counts batches and wakes, so that no thread sleeps through one, and the waiting threads.
#[derive(Debug, Default)]
struct News {
    count: u64,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Inboxes {
    demux: Demux,
    list: Vec<Arc<Inbox>>,
    next_id: u64,
}

impl Port {
    pub(crate) fn new(
        socket: UdpSocket,
        control: Control,
        only_from: Option<OnlyFrom>,
    ) -> Result<Self, Error> {
        let now = Instant::now();
        let control_arena = match &control {
            Control::Beside(socket) => Some(socket.arena()),
            Control::Off | Control::Muxed => None,
        };
        let turn = Turn { arena: socket.arena(), control: control_arena, looked: now };
        Ok(Self {
            turn: Mutex::new(turn),
            reporters: Mutex::default(),
            queue: Mutex::new(socket.send_queue()),
            due: AtomicU64::new(u64::MAX),
            epoch: now,
            control,
            socket,
            waker: Waker::new()?,
            only_from,
            inboxes: Mutex::default(),
            news: Mutex::default(),
            news_came: Condvar::new(),
            foreign: AtomicU64::new(0),
            unrouted: AtomicU64::new(0),
            #[cfg(feature = "zrtp")]
            channel: Mutex::default(),
        })
    }

    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Counts a datagram from another host or port than its source's.
    pub(crate) fn note_foreign(&self) {
        self.foreign.fetch_add(1, Relaxed);
    }

    /// Datagrams from other hosts, and datagrams that no stream takes.
    pub(crate) fn ignored(&self) -> (u64, u64) {
        (self.foreign.load(Relaxed), self.unrouted.load(Relaxed))
    }

    /// Adds a stream for the datagrams that `route` selects.
    pub(crate) fn add(&self, route: Route, receiver: Receiver) -> Result<Arc<Inbox>, Error> {
        let mut inboxes = lock(&self.inboxes);
        let id = inboxes.next_id;
        if !inboxes.demux.add(id, route) {
            return Err(Error::SharedPort { port: self.local_address().port() });
        }
        inboxes.next_id += 1;
        let receiver = Mutex::new(receiver);
        let inbox = Arc::new(Inbox { id, receiver, uncollected: AtomicU64::new(0) });
        inboxes.list.push(inbox.clone());
        Ok(inbox)
    }

    /// Removes a stream.
    pub(crate) fn remove(&self, inbox: &Inbox) {
        let mut inboxes = lock(&self.inboxes);
        inboxes.demux.remove(inbox.id);
        inboxes.list.retain(|other| other.id != inbox.id);
    }

    /// Lets datagrams of ZRTP go to `channel`; `false` if they go somewhere already.
    #[cfg(feature = "zrtp")]
    pub(crate) fn set_channel(&self, channel: Channel) -> bool {
        let mut place = lock(&self.channel);
        let is_free = place.is_none();
        if is_free {
            *place = Some(channel);
        }
        is_free
    }

    /// Takes the way back that stream `id` of a session had.
    #[cfg(feature = "zrtp")]
    pub(crate) fn clear_channel(&self, id: crate::zrtp::StreamId) {
        lock(&self.channel).take_if(|channel| channel.id == id);
    }

    /// Makes every [`pull`](Self::pull) in progress return [`Pulled::Woken`] or look again.
    pub(crate) fn wake(&self) {
        self.waker.wake();
        self.tell();
    }

    /// Waits for the next frame of `inbox`; its events are added to `events`.
    pub(crate) fn pull(
        &self,
        inbox: &Inbox,
        wait: Wait,
        events: &mut Vec<Event>,
    ) -> Result<Pulled, Error> {
        let (mut read, mut told) = (false, false);
        loop {
            let news = lock(&self.news).count;
            let now = Instant::now();
            self.serve(now);
            let due = {
                let mut receiver = inbox.lock();
                if receiver.poll_timeout().is_some_and(|due| due <= now) {
                    receiver.handle_timeout(now);
                }
                let frame = receiver.poll_frame();
                while let Some(event) = receiver.poll_event() {
                    events.push(event);
                }
                if let Some(frame) = frame {
                    return Ok(Pulled::Frame(frame));
                }
                earlier(receiver.poll_timeout(), self.due())
            };
            if !events.is_empty() {
                return Ok(Pulled::Woken);
            }
            // A deadline in the past still reads what is there, once.
            if read && now >= wait.deadline {
                return Ok(Pulled::Timeout);
            }
            if told {
                // It may have been a wake, which only the caller understands.
                return Ok(Pulled::Woken);
            }
            let until = due.map_or(wait.deadline, |due| due.min(wait.deadline));
            match self.turn.try_lock() {
                Ok(mut turn) => {
                    let taken = self.read(inbox, &mut turn, Wait { deadline: until, ..wait });
                    drop(turn);
                    self.tell();
                    if taken? == 0 && Instant::now() < until {
                        return Ok(Pulled::Woken);
                    }
                }
                Err(TryLockError::Poisoned(poisoned)) => {
                    // A panicking hook of ours cannot get here; the arena is plain memory.
                    drop(poisoned.into_inner());
                    self.turn.clear_poison();
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    self.wait_for_news(news, until);
                    told = true;
                }
            }
            read = true;
        }
    }

    /// Reads one batch and hands it out; returns the number of datagrams.
    fn read(&self, own: &Inbox, turn: &mut Turn, wait: Wait) -> Result<usize, Error> {
        let asked = Instant::now();
        while asked.elapsed() < wait.spin && Instant::now() < wait.deadline {
            // A deadline in the past asks once without sleeping.
            let taken = self.read_once(Some(own), turn, asked)?;
            if taken > 0 {
                return Ok(taken);
            }
        }
        self.read_once(Some(own), turn, wait.deadline)
    }

    /// Reads pending datagrams, or waits for some until `until`; returns how many were of media.
    fn read_once(
        &self,
        own: Option<&Inbox>,
        turn: &mut Turn,
        until: Instant,
    ) -> Result<usize, Error> {
        let Turn { arena, control, looked } = turn;
        let beside = match &self.control {
            Control::Beside(socket) => Some(&**socket),
            Control::Off | Control::Muxed => None,
        };
        let datagrams = self.socket.receive_beside(arena, until, Some(&self.waker), beside)?;
        let now = Instant::now();
        let stale = now.saturating_duration_since(*looked) > CONTROL_PATIENCE;
        if datagrams.is_empty() || stale {
            // Before the media: a source that says goodbye may return at once.
            *looked = now;
            self.read_control(control)?;
        }
        Ok(self.hand_out(own, now, datagrams))
    }

    /// Hands datagrams to the streams that they are for; returns how many there were.
    fn hand_out(&self, own: Option<&Inbox>, now: Instant, datagrams: Datagrams<'_>) -> usize {
        let inboxes = lock(&self.inboxes);
        #[cfg(feature = "zrtp")]
        let channel = lock(&self.channel).clone();
        let mut taken = 0;
        // Datagrams come in runs of one stream, so its lock is kept until another comes, and a
        // secured stream authenticates many at once.
        let mut run = Run::new(now);
        for datagram in datagrams {
            taken += 1;
            if self.is_muxed() && is_rtcp(datagram.data) {
                self.finish(run.end());
                self.take_report(now, *datagram.from, datagram.data);
                continue;
            }
            if self.only_from.is_some_and(|only| !only.sends_media(*datagram.from)) {
                self.foreign.fetch_add(1, Relaxed);
                continue;
            }
            #[cfg(feature = "zrtp")]
            if let Some(Channel { agreement, id }) = &channel
                && is_zrtp(datagram.data)
            {
                agreement.take(now, *id, *datagram.from, datagram.data);
                continue;
            }
            let Some(id) = inboxes.demux.route(datagram.data) else {
                self.unrouted.fetch_add(1, Relaxed);
                continue;
            };
            if !run.is_of(id) {
                self.finish(run.end());
                let Some(inbox) = inboxes.list.iter().find(|inbox| inbox.id == id) else {
                    continue;
                };
                run.begin(inbox, own.is_some_and(|own| own.id == id));
            }
            run.add(datagram.from, datagram.data);
        }
        self.finish(run.end());
        taken
    }

    /// Wakes the waiting threads: a batch was read, or the turn is free.
    fn tell(&self) {
        let mut news = lock(&self.news);
        news.count += 1;
        // A notification is a system call even if no thread waits.
        if news.waiting > 0 {
            self.news_came.notify_all();
        }
    }

    /// Waits for a batch or a wake later than `seen`, or until `until`.
    fn wait_for_news(&self, seen: u64, until: Instant) {
        let time = until.saturating_duration_since(Instant::now());
        let mut news = lock(&self.news);
        news.waiting += 1;
        let (mut news, _) = self
            .news_came
            .wait_timeout_while(news, time, |news| news.count == seen)
            .unwrap_or_else(PoisonError::into_inner);
        news.waiting -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
