//! Small frames of many streams, sent in few system calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_net::{SendError, SendErrorKind, SendQueue};
use rushes_proto::rtp::CaptureTime;
use rushes_proto::stream::FrameElements;
use rushes_proto::{Batch, RtpTimestamp};

use super::sender::StreamSender;
use crate::error::Error;
use crate::port::{Hop, Port, SendState};

/// Maximum octets of a frame that is collected. With larger ones, a system call of its own costs little.
const FRAME_MAX: usize = 4096;

/// Octets that are passed to the kernel at once: they stay in the second-level cache until it has read them.
const COLLECTED_MAX: usize = 256 << 10;

/// A frame for [`FramePusher::push_many`].
#[derive(Debug)]
pub struct FramePush<'a> {
    /// The stream to send it on.
    pub stream: &'a mut StreamSender,
    /// The frame, as for [`StreamSender::push_frame`].
    pub frame: &'a [u8],
    /// Its timestamp; `None` for that after the stream's last frame.
    pub timestamp: Option<RtpTimestamp>,
}

/// Sends frames of many streams in few system calls; it keeps memory for that from call to call.
///
/// Streams share system calls if they share a local port: equally long packets to one destination become one
/// message (GSO), and up to 64 messages, to any destinations, one call. Each frame is otherwise sent as
/// [`StreamSender::push_frame`] sends it: encrypted, protected, kept for retransmission, counted. Frames of
/// more than 4 KiB, and those of streams with several destinations, [rate
/// control](crate::StreamBuilder::rate_control), [`Pacing::Rate`](crate::Pacing::Rate), a path
/// through a relay, or packets that carry the time at which they are sent, are sent one by one.
///
/// ```
/// use rushes::{Codec, Context, FramePush, FramePusher, PayloadType, Ssrc};
///
/// # fn main() -> Result<(), rushes::Error> {
/// let session = Context::new().session("127.0.0.1")?;
/// let mut streams = Vec::new();
/// let mut port = 0;
/// for n in 1..=100 {
///     // All from one local port.
///     let stream = session.stream(Codec::Opus).local_port(port).remote_port(5004);
///     let stream = stream.remote_ssrc(Ssrc(n)).rtcp(false).open()?;
///     port = stream.local_address().port();
///     streams.push(stream.split()?.0);
/// }
/// let mut pusher = FramePusher::new();
/// let frames = streams.iter_mut().map(|stream| FramePush::new(stream, b"\xfc twenty ms"));
/// let failed = pusher.push_many(&mut frames.collect::<Vec<_>>());
/// assert!(failed.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct FramePusher {
    order: Vec<Place>,
    queue: Option<SendQueue>,
    collected: Collected,
    /// Ports whose reports were not looked at yet.
    ports: Vec<Arc<Port>>,
}

/// The place of a frame in the order in which frames are sent: those of one port, of one destination and of
/// one length follow each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    port: usize,
    to: Option<SocketAddr>,
    len: usize,
    index: usize,
}

/// Packets that are sent together.
#[derive(Debug, Default)]
struct Collected {
    bytes: Vec<u8>,
    lengths: Vec<u16>,
    /// Where the packets of a frame are written, unless they may be requested again.
    batch: Batch,
    runs: Vec<(SocketAddr, usize)>,
    /// The frames that the packets are of, and their numbers of packets.
    frames: Vec<(usize, usize)>,
    /// Frames that were the first of their streams.
    first: Vec<usize>,
}

impl<'a> FramePush<'a> {
    /// A frame with the timestamp that follows that of the stream's last one.
    pub fn new(stream: &'a mut StreamSender, frame: &'a [u8]) -> Self {
        Self { stream, frame, timestamp: None }
    }

    fn port(&self) -> &Arc<Port> {
        &self.stream.attached.port
    }

    /// Returns whether the frame can be collected.
    fn is_collected(&self) -> bool {
        let outbox = &self.stream.outbox;
        self.frame.len() <= FRAME_MAX
            && outbox.destinations().count() == 1
            && outbox.destinations().at(0).is_some_and(Hop::is_direct)
            && self.stream.sends_at_once(self.frame.len())
    }
}

impl FramePusher {
    /// Creates a pusher.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends the frames; returns the places in `frames` of those that were not sent, and why, which is what
    /// [`push_frame`](StreamSender::push_frame) would have returned. The others were accepted by the kernel.
    ///
    /// RTCP is looked at once for each port; for a port that a [`Poller`](crate::Poller) reads, only if that
    /// has not done so for 20 ms.
    /// While a send buffer is full, the call waits for as long as the first stream of the port
    /// [allows](crate::StreamBuilder::send_timeout), in all.
    #[must_use = "frames that were not sent are returned"]
    pub fn push_many(&mut self, frames: &mut [FramePush<'_>]) -> Vec<(usize, Error)> {
        let mut failed = Vec::new();
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(frames.iter().enumerate().map(|(index, push)| {
            let to = push.stream.outbox.to();
            let port = Arc::as_ptr(push.port()).addr();
            Place { port, to, len: push.frame.len(), index }
        }));
        order.sort_unstable();
        let mut current = None;
        for place in &order {
            let is_same = current == Some(place.port);
            if !is_same || self.collected.bytes.len() >= COLLECTED_MAX {
                self.flush(frames, &mut failed);
            }
            let push = &mut frames[place.index];
            if !is_same {
                current = Some(place.port);
                self.ports.push(push.port().clone());
            }
            let outcome = if push.is_collected() {
                self.collected.add(push, place)
            } else {
                push.stream.push_frame(push.frame, push.timestamp)
            };
            failed.extend(outcome.err().map(|error| (place.index, error)));
        }
        self.flush(frames, &mut failed);
        self.order = order;
        for port in self.ports.drain(..) {
            port.poll();
        }
        for push in &mut *frames {
            let attached = &push.stream.attached;
            push.stream.outbox.retransmit_requested(attached.port.socket());
            push.stream.warn_of_refusals();
        }
        failed
    }

    /// Sends what was collected, all of one port.
    fn flush(&mut self, frames: &mut [FramePush<'_>], failed: &mut Vec<(usize, Error)>) {
        if let Some((index, _)) = self.collected.frames.first() {
            let port = frames[*index].port().clone();
            let timeout = frames[*index].stream.attached.outbox().timeout();
            let queue = self.queue.get_or_insert_with(|| port.socket().send_queue());
            self.collected.send(&port, queue, timeout, |index, error| {
                frames[index].stream.skip_number();
                failed.push((index, error.into()));
            });
        }
        for index in self.collected.first.drain(..) {
            let attached = &frames[index].stream.attached;
            attached.port.serve_now(attached.inbox());
        }
        self.collected.clear();
    }
}

impl Collected {
    /// Adds the packets of a frame.
    fn add(&mut self, push: &mut FramePush<'_>, place: &Place) -> Result<(), Error> {
        // Where the peer is may change at any time.
        let Some(to) = place.to else {
            return push.stream.push_frame(push.frame, push.timestamp);
        };
        push.stream.cut();
        let StreamSender { attached, outbox, span, pacer, .. } = &mut *push.stream;
        let (port, reporter, now) = (&attached.port, &attached.reporter, Instant::now());
        let entered = span.enter();
        if outbox.cuts_frames() {
            reporter.check_frame()?;
        }
        let mut state = outbox.lock();
        if state.sender.has_send_time() {
            drop(state);
            drop(entered);
            return push.stream.push_frame(push.frame, push.timestamp);
        }
        let SendState { sender, batch, retransmissions, .. } = &mut *state;
        let batch = if retransmissions.is_some() { batch } else { &mut self.batch };
        let capture = CaptureTime::new(attached.ntp(now));
        let elements = FrameElements::default();
        let mut outgoing =
            sender.push_with(push.frame, push.timestamp, Some(capture), &elements)?;
        if outgoing.is_left_out() {
            drop(outgoing);
            outbox.note_left_out(&state.sender);
            return Ok(());
        }
        let sampled = (outgoing.timestamp(), now);
        if retransmissions.is_none() && outbox.begin(sampled) {
            reporter.announce(port);
        }
        pacer.start(now, push.frame.len());
        let before = self.lengths.len();
        while outgoing.fill(batch) {
            let _ = pacer.due(now, batch.bytes().len());
            self.bytes.extend_from_slice(batch.bytes());
            self.lengths.extend_from_slice(batch.lengths());
        }
        drop(outgoing);
        let packets = self.lengths.len() - before;
        if packets > 0 {
            match self.runs.last_mut() {
                Some((last, datagrams)) if *last == to => *datagrams += packets,
                _ => self.runs.push((to, packets)),
            }
            self.frames.push((place.index, packets));
        }
        if outbox.note(now, &state.sender, Some(sampled)) {
            self.first.push(place.index);
        }
        let key_event = state.sender.poll_event();
        drop(state);
        if let Some(event) = key_event {
            reporter.note_key_event(event);
            port.stream_due_at(&reporter.inbox, now);
        }
        drop(entered);
        Ok(())
    }

    /// Sends the packets within `timeout`; calls `fail` with each frame of which one was refused.
    fn send(
        &self,
        port: &Port,
        queue: &mut SendQueue,
        timeout: Duration,
        mut fail: impl FnMut(usize, SendError),
    ) {
        let deadline = Instant::now() + timeout;
        let outcome =
            port.socket().send_runs(queue, &self.bytes, &self.lengths, &self.runs, deadline);
        let Err(mut error) = outcome else { return };
        // From the first refused packet on, frame by frame.
        let (mut packet, mut octet) = (0, 0);
        let mut runs = self.runs.iter().copied();
        let mut run = runs.next();
        let mut refused = Some(error.sent);
        for (index, packets) in &self.frames {
            let lengths = &self.lengths[packet..packet + packets];
            let len: usize = lengths.iter().map(|length| usize::from(*length)).sum();
            let bytes = &self.bytes[octet..octet + len];
            while run.is_some_and(|(_, left)| left == 0) {
                run = runs.next();
            }
            let Some((to, left)) = &mut run else { return };
            *left -= packets;
            let before = packet;
            (packet, octet) = (packet + packets, octet + len);
            match refused {
                Some(at) if packet <= at => {}
                Some(at) => {
                    refused = None;
                    let kind = std::mem::replace(&mut error.kind, SendErrorKind::BufferFull);
                    fail(*index, SendError { kind, sent: at.saturating_sub(before) });
                }
                None => {
                    let sent = port.socket().send(queue, bytes, lengths, *to, deadline);
                    if let Err(error) = sent {
                        fail(*index, error);
                    }
                }
            }
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
        self.runs.clear();
        self.frames.clear();
    }
}
