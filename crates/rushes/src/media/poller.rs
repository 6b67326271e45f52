//! One thread that receives from many streams.

use std::collections::HashMap;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rushes_proto::payload::Frame;

use super::receiver::{StreamReceiver, deadline};
use super::sender::StreamSender;
use crate::error::Error;
use crate::poll::{Given, Source, Streams};
use crate::port::{Changes, Inbox, Port};
use crate::reports::Attached;

/// Receives from many streams on one thread: [`pull`](Self::pull) waits for all of them at once.
///
/// It also does what a pulling thread does for each of them: it reads RTCP, answers requests, sends reports
/// and what is due of key agreement and ICE. Its cost follows what arrives and is due, not the number of
/// streams: with 1 000 of them, one that sends costs what it would cost alone.
///
/// Streams give their frames in turn, and a bounded part of each socket is read at a time, so that no stream
/// delays the others for long, whatever it is sent.
///
/// ```
/// use rushes::{Codec, Context, Poller};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), rushes::Error> {
/// let session = Context::new().session("127.0.0.1")?;
/// let mut poller = Poller::new()?;
/// let mut cameras = Vec::new();
/// for token in 0..3 {
///     let stream = session.stream(Codec::Opus).open()?;
///     let port = stream.local_address().port();
///     let (_, receiver) = stream.split()?;
///     poller.add(receiver, token)?;
///     cameras.push(session.stream(Codec::Opus).remote_port(port).open()?);
/// }
/// for camera in &mut cameras {
///     camera.push_frame(b"\xfc first", None)?;
///     camera.push_frame(b"\xfc second", None)?;
/// }
/// let mut received = [0; 3];
/// while received != [2; 3] {
///     let (token, _frame) = poller.pull(Duration::from_secs(1))?.expect("a frame");
///     received[token as usize] += 1;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # In another event loop
///
/// On Linux a poller is a descriptor (`AsFd`) that is readable while `pull` has something to do: frames,
/// packets, or reports that are due. Wait for it with `poll(2)`, `epoll`, mio or tokio, and then call
/// [`pull`](Self::pull) with a timeout of zero until it returns `None`. Elsewhere, call it at least every few
/// milliseconds. Loops that cannot wait for a descriptor by time need nothing else, because its timer is
/// among what makes it readable; [`timeout`](Self::timeout) is for those that sleep themselves.
#[derive(Debug)]
pub struct Poller {
    streams: Streams<Entry>,
    keys: HashMap<u64, u32>,
    /// Whether a pull has not returned: a function of the application has panicked in it.
    is_pulling: bool,
}

/// A stream and the application's name for it.
#[derive(Debug)]
struct Entry {
    token: u64,
    stream: Kept,
}

#[derive(Debug)]
enum Kept {
    Receiver(Box<StreamReceiver>),
    /// The application's own half keeps the stream open.
    Sender(Weak<Attached>),
    /// Nothing but the port, which is read as long as others keep it.
    #[cfg(feature = "webrtc")]
    Port(Weak<Port>),
}

impl Entry {
    fn is_gone(&self) -> bool {
        match &self.stream {
            Kept::Receiver(_) => false,
            Kept::Sender(attached) => attached.strong_count() == 0,
            #[cfg(feature = "webrtc")]
            Kept::Port(port) => port.strong_count() == 0,
        }
    }
}

impl Source for Entry {
    fn take(&mut self, now: Instant) -> (Given, Option<Instant>) {
        if self.is_gone() {
            return (Given::Gone, None);
        }
        let Kept::Receiver(receiver) = &mut self.stream else {
            return (Given::Nothing, None);
        };
        let (frame, due) = receiver.take(now);
        (frame.map_or(Given::Nothing, Given::Frame), due)
    }

    fn report(&mut self, error: &Error) {
        if let Kept::Receiver(receiver) = &mut self.stream {
            receiver.report(error);
        }
    }
}

impl Poller {
    /// Creates a poller without streams.
    ///
    /// # Errors
    /// [`Error::Net`] if the process has no file descriptor left; a poller takes three on Linux, and none for
    /// a stream.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { streams: Streams::new()?, keys: HashMap::new(), is_pulling: false })
    }

    /// Adds the receiving half of a stream. [`pull`](Self::pull) returns its frames with `token`, any number
    /// that no other stream of the poller has.
    ///
    /// The setting [`spin`](crate::StreamBuilder::spin) has no effect here. The poller keeps the half until it is
    /// [removed](Self::remove) or the poller is dropped. Functions for events and errors that were set before are
    /// called on the thread that pulls.
    ///
    /// # Errors
    /// [`Error::TokenTaken`], or [`Error::Net`] if the system refuses to watch another socket; the half is
    /// then dropped.
    pub fn add(&mut self, receiver: StreamReceiver, token: u64) -> Result<(), Error> {
        let attached = receiver.attached.clone();
        let place = (&attached.port, Some(&attached.reporter.inbox));
        self.insert(token, place, Kept::Receiver(Box::new(receiver)))
    }

    /// Adds a stream that only sends: its reports and requests are read and answered by
    /// [`pull`](Self::pull), which gives no frame of it. When its last half is dropped it leaves the poller.
    ///
    /// Not needed for a stream whose receiving half was added. Pushing such a stream makes no system call to
    /// look for reports within 20 ms of a `pull` that has read some, so `pull` should be called again and again.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_sender(&mut self, sender: &StreamSender, token: u64) -> Result<(), Error> {
        let attached = &sender.attached;
        let place = (&attached.port, Some(&attached.reporter.inbox));
        self.insert(token, place, Kept::Sender(Arc::downgrade(attached)))
    }

    /// Adds a port, which is read whether streams on it are added or not.
    #[cfg(feature = "webrtc")]
    pub(crate) fn add_port(&mut self, port: &Arc<Port>, token: u64) -> Result<(), Error> {
        self.insert(token, (port, None), Kept::Port(Arc::downgrade(port)))
    }

    fn insert(
        &mut self,
        token: u64,
        (port, inbox): (&Arc<Port>, Option<&Arc<Inbox>>),
        stream: Kept,
    ) -> Result<(), Error> {
        if self.contains(token) {
            return Err(Error::TokenTaken { token });
        }
        // The half of a sender may have been dropped just now.
        self.remove(token);
        let entry = Entry { token, stream };
        let key = self.streams.add(entry, port, inbox).map_err(|(error, _)| error)?;
        self.keys.insert(token, key);
        Ok(())
    }

    /// Removes the stream of a token; returns its receiving half if that was added.
    pub fn remove(&mut self, token: u64) -> Option<StreamReceiver> {
        self.forget_gone();
        let key = self.keys.remove(&token)?;
        let Kept::Receiver(receiver) = self.streams.remove(key)?.stream else {
            return None;
        };
        Some(*receiver)
    }

    /// Returns the receiving half of a token's stream, to flush it or to read its counters.
    pub fn receiver(&mut self, token: u64) -> Option<&mut StreamReceiver> {
        self.forget_gone();
        let key = *self.keys.get(&token)?;
        let Kept::Receiver(receiver) = &mut self.streams.source_mut(key)?.stream else {
            return None;
        };
        Some(receiver)
    }

    /// Returns whether a stream or peer has the token, so that another cannot be added with it.
    pub fn contains(&self, token: u64) -> bool {
        let entry = self.keys.get(&token).and_then(|key| self.streams.source(*key));
        entry.is_some_and(|entry| !entry.is_gone())
    }

    /// Frees the tokens of senders that were dropped.
    fn forget_gone(&mut self) {
        while let Some(entry) = self.streams.take_gone() {
            self.keys.remove(&entry.token);
        }
    }

    /// Returns the number of streams and peers, some of which may be senders that were just dropped.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there is neither a stream nor a peer.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Waits for the next frame of any stream, at most for `timeout`; returns it with the stream's token.
    /// `None` if none arrived, or after [`PollerWaker::wake`]. With a timeout of zero it reads what has
    /// arrived, does what is due, and does not wait. It may return up to a millisecond late.
    ///
    /// Frames of one source are in order, complete, and given once each, as by
    /// [`StreamReceiver::pull_frame`]. If a function for events or errors panics, so does this function: a frame and
    /// further events of that stream may be lost, and the poller can still be used.
    ///
    /// # Errors
    /// [`Error::Net`] if the system refuses to wait. A socket that cannot be read is reported to the function
    /// set with [`StreamReceiver::on_error`], once a second at most, and does not concern other streams.
    pub fn pull(&mut self, timeout: Duration) -> Result<Option<(u64, Frame)>, Error> {
        if std::mem::replace(&mut self.is_pulling, true) {
            self.streams.note_all();
        }
        let pulled = self.streams.pull(deadline(Instant::now(), timeout));
        self.is_pulling = false;
        let pulled = pulled?;
        self.forget_gone();
        Ok(pulled.and_then(|(key, frame)| Some((self.streams.source(key)?.token, frame))))
    }

    /// Returns how long [`pull`](Self::pull) has nothing to do if no packet arrives; zero if it has now, and
    /// `None` for ever. Each pull may change it. Elsewhere than on Linux it is a millisecond at most while there
    /// are streams, since only a pull shows what has arrived.
    pub fn timeout(&self) -> Option<Duration> {
        self.streams.due().map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Returns what ends a [`pull`](Self::pull) from another thread.
    pub fn waker(&self) -> PollerWaker {
        PollerWaker { changes: self.streams.changes().clone() }
    }
}

/// The descriptor is readable while [`Poller::pull`] has something to do. Only wait for it: it must neither be
/// read nor closed.
#[cfg(target_os = "linux")]
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.streams.set().as_fd()
    }
}

#[cfg(target_os = "linux")]
impl AsRawFd for Poller {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Ends a [`Poller::pull`] from another thread, for example to add a stream. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PollerWaker {
    changes: Arc<Changes>,
}

impl PollerWaker {
    /// Lets the `pull` in progress return `None`, or the next one if there is none.
    pub fn wake(&self) {
        self.changes.interrupt();
    }
}
