//! Receiving: takes messages from the kernel and splits them into datagrams.

use std::net::SocketAddr;
use std::time::Instant;
use std::{fmt, io, mem, slice};

use crate::counters::count;
use crate::error::NetError;
use crate::options::ReceivePath;
use crate::refusals::{Cause, Earlier};
use crate::socket::UdpSocket;
use crate::stamp::StampClock;
use crate::sys;
use crate::sys::{Fault, Head, Inbox, WaitOutcome, Waker};

/// Octets of the buffer for a message: more than any UDP datagram has. The odd number of cache
/// lines beyond 64 KiB prevents the starts of the buffers from sharing cache sets.
const STRIDE: usize = 65_536 + 17 * 64;

/// Messages per system call, with coalescing and without. Four buffers of 64 KiB stay in the
/// second-level cache until they are read; with eight the receiver takes 2 to 10 % more time
/// (bench/README.md).
const COALESCED: usize = 4;
const PLAIN: usize = 64;

/// Messages per system call with coalescing, after one that was filled by small messages: those of many
/// senders, or of one that does not send runs.
const SMALL: usize = 32;

/// Octets of a small message.
const SMALL_LEN: usize = 2048;

/// The buffers of one receiving thread, created by [`UdpSocket::arena`].
///
/// They are allocated when they are first used: 256 KiB with `UDP_GRO`, 2 MiB while datagrams are small,
/// and 4 MiB without `UDP_GRO`. Pages that receive nothing are never touched.
pub struct Arena {
    path: ReceivePath,
    /// Messages in the next system call.
    messages: usize,
    buffer: Vec<u8>,
    heads: Vec<Head>,
    /// Whether the last system call took everything that had arrived.
    is_drained: bool,
    inbox: Inbox,
    clock: StampClock,
}

impl Arena {
    pub(crate) fn new(path: ReceivePath) -> Self {
        let messages = match path {
            ReceivePath::Auto | ReceivePath::Gro => COALESCED,
            ReceivePath::Recvmmsg => PLAIN,
            ReceivePath::Single => 1,
        };
        Self {
            path,
            messages,
            buffer: Vec::new(),
            heads: Vec::new(),
            is_drained: false,
            inbox: Inbox::new(0),
            clock: StampClock::default(),
        }
    }

    /// Makes room for the next system call.
    fn prepare(&mut self) {
        let len = self.messages * STRIDE;
        if self.buffer.len() < len {
            // The old contents are not needed.
            self.buffer = Vec::new();
            self.buffer = vec![0; len];
            self.heads.reserve(self.messages);
            if self.path != ReceivePath::Single {
                self.inbox = Inbox::new(self.messages);
            }
        }
    }

    /// Chooses the messages of the next system call by those of the last one.
    fn adapt(&mut self) {
        if !matches!(self.path, ReceivePath::Auto | ReceivePath::Gro) {
            return;
        }
        let octets: usize = self.heads.iter().map(|head| head.length).sum();
        if octets > SMALL * SMALL_LEN {
            self.messages = COALESCED;
        } else if self.heads.len() == COALESCED && octets <= COALESCED * SMALL_LEN {
            self.messages = SMALL;
        }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("octets", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// One received datagram.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The payload, which may be changed in place, for example by decryption.
    pub data: &'a mut [u8],
    /// The source address.
    pub from: &'a SocketAddr,
    /// When the datagram was read or, after
    /// [`enable_arrival_details`](UdpSocket::enable_arrival_details), when the kernel received it.
    ///
    /// The kernel notes one time for datagrams that it has coalesced: that of the last one. They
    /// arrived within one poll of the device, and how far apart depends on the rate of a link that
    /// the kernel does not report, so all of them have this time. It never runs backwards in one
    /// arena, and steps of the system's clock do not affect it.
    pub arrival: Instant,
    /// The ECN codepoint with which the datagram arrived (RFC 3168 section 5): 0 Not-ECT, 1 ECT(1),
    /// 2 ECT(0), 3 CE. 0 without these details. The kernel coalesces only datagrams with equal
    /// codepoints.
    pub ecn: u8,
}

/// The datagrams of one [`receive`](UdpSocket::receive), in the order of their arrival.
#[derive(Debug)]
pub struct Datagrams<'a> {
    heads: slice::Iter<'a, Head>,
    /// The buffers of the messages in `heads`.
    buffers: &'a mut [u8],
    /// The rest of the current message, and its properties.
    message: &'a mut [u8],
    segment: usize,
    from: Option<&'a SocketAddr>,
    arrival: Instant,
    ecn: u8,
    left: usize,
    clock: &'a mut StampClock,
    read_at: Instant,
    is_drained: bool,
}

impl<'a> Datagrams<'a> {
    fn new(arena: &'a mut Arena) -> Self {
        let has_stamps = arena.heads.iter().any(|head| head.stamp.is_some());
        let now = arena.clock.read(has_stamps);
        let left = arena.heads.iter().map(Head::datagrams).sum();
        Self {
            heads: arena.heads.iter(),
            buffers: &mut arena.buffer,
            message: &mut [],
            segment: 0,
            from: None,
            arrival: now,
            ecn: 0,
            left,
            clock: &mut arena.clock,
            read_at: now,
            is_drained: arena.is_drained,
        }
    }

    /// Returns when the datagrams were read.
    pub fn read_at(&self) -> Instant {
        self.read_at
    }

    /// Returns whether there are no datagrams, because the deadline passed or a waker was woken.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Returns whether these were all the datagrams that had arrived, if
    /// [`receive`](UdpSocket::receive) did not wait. With false there may be more.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Opens the next message that is not truncated.
    fn open(&mut self) -> Option<&'a SocketAddr> {
        loop {
            let head = self.heads.next()?;
            let (buffer, rest) = mem::take(&mut self.buffers).split_at_mut(STRIDE);
            self.buffers = rest;
            if head.truncated {
                continue;
            }
            self.message = &mut buffer[..head.length];
            self.segment = if head.segment == 0 { head.length } else { head.segment };
            self.arrival = self.clock.arrival(head.stamp);
            self.ecn = head.ecn;
            self.from = Some(&head.from);
            return self.from;
        }
    }
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = Datagram<'a>;

    #[inline]
    fn next(&mut self) -> Option<Datagram<'a>> {
        let from = match self.from {
            Some(from) => from,
            None => self.open()?,
        };
        let cut = self.segment.min(self.message.len());
        let (data, rest) = mem::take(&mut self.message).split_at_mut(cut);
        if rest.is_empty() {
            self.from = None;
        }
        self.message = rest;
        self.left -= 1;
        let (arrival, ecn) = (self.arrival, self.ecn);
        Some(Datagram { data, from, arrival, ecn })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Datagrams<'_> {}

impl Head {
    /// Returns the number of datagrams in the message.
    fn datagrams(&self) -> usize {
        match (self.truncated, self.segment) {
            (true, _) => 0,
            (false, 0) => 1,
            // An empty message is one empty datagram.
            (false, segment) => self.length.div_ceil(segment).max(1),
        }
    }
}

impl UdpSocket {
    /// Receives the datagrams that have arrived, waiting until `deadline` if there are none.
    ///
    /// The result is empty at the deadline and after [`Waker::wake`]. With a deadline in the past
    /// it does not wait. Datagrams that arrived before a wake are returned before the wake takes
    /// effect. Nothing is allocated.
    ///
    /// # Errors
    /// [`NetError::Receive`] and [`NetError::Wait`] if the system refuses.
    pub fn receive<'a>(
        &self,
        arena: &'a mut Arena,
        deadline: Instant,
        waker: Option<&Waker>,
    ) -> Result<Datagrams<'a>, NetError> {
        self.receive_beside(arena, deadline, waker, None)
    }

    /// Receives like [`receive`](Self::receive), but also returns an empty result as soon as
    /// `beside` has data to read. Where the system cannot wait for two sockets, it returns after a
    /// short sleep.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_beside<'a>(
        &self,
        arena: &'a mut Arena,
        deadline: Instant,
        waker: Option<&Waker>,
        beside: Option<&UdpSocket>,
    ) -> Result<Datagrams<'a>, NetError> {
        let other = beside.map(|beside| &beside.socket);
        while self.receive_now(arena)? == 0 && Instant::now() < deadline {
            count(&self.tally.wait_calls, 1);
            let outcome =
                sys::wait_readable(&self.socket, other, waker, deadline).map_err(NetError::Wait)?;
            // What is in the error queue would end every wait until it is read.
            if outcome == WaitOutcome::Errors {
                self.read_errors();
            }
            if outcome == WaitOutcome::Beside {
                self.receive_now(arena)?;
                break;
            }
            if outcome == WaitOutcome::Woken {
                // Datagrams that arrived before the wake come first; the wake is kept for the next
                // call.
                if self.receive_now(arena)? > 0 {
                    waker.into_iter().for_each(Waker::wake);
                }
                break;
            }
        }
        Ok(Datagrams::new(arena))
    }

    /// Receives without waiting; returns the number of whole datagrams.
    fn receive_now(&self, arena: &mut Arena) -> Result<usize, NetError> {
        arena.prepare();
        arena.heads.clear();
        let mut earlier = Earlier::default();
        loop {
            count(&self.tally.receive_calls, 1);
            let result = if self.receive_path() == ReceivePath::Single {
                self.receive_one(arena)
            } else {
                let buffer = &mut arena.buffer[..arena.messages * STRIDE];
                arena.inbox.receive(&self.socket, buffer, STRIDE, &mut arena.heads)
            };
            let Err(error) = result else { break };
            if self.cause(&error, &mut earlier) != Cause::This {
                continue;
            }
            match sys::fault(&error) {
                Fault::WouldBlock => {
                    arena.is_drained = true;
                    return Ok(0);
                }
                Fault::Interrupted => {}
                _ => return Err(NetError::Receive(error)),
            }
        }
        arena.is_drained = arena.heads.len() < arena.messages;
        arena.adapt();
        self.unmap(&mut arena.heads);
        Ok(self.count_received(&arena.heads))
    }

    /// Receives one datagram; works on every system.
    fn receive_one(&self, arena: &mut Arena) -> io::Result<()> {
        let (length, from) = self.socket.recv_from(&mut arena.buffer[..STRIDE])?;
        // The buffer is longer than any datagram, so none can be truncated.
        arena.heads.push(Head { length, segment: 0, from, truncated: false, stamp: None, ecn: 0 });
        Ok(())
    }

    fn count_received(&self, heads: &[Head]) -> usize {
        let datagrams = heads.iter().map(Head::datagrams).sum();
        let whole = heads.iter().filter(|head| !head.truncated);
        count(&self.tally.received_datagrams, datagrams);
        count(&self.tally.received_bytes, whole.map(|head| head.length).sum());
        let truncated = heads.iter().filter(|head| head.truncated).count();
        if truncated > 0 {
            count(&self.tally.truncated, truncated);
        }
        datagrams
    }
}
