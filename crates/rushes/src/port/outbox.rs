//! The sending half of a stream, shared by the pushing thread and, for retransmissions, the reading
//! thread.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rushes_net::{SendError, SendQueue, UdpSocket};
use rushes_proto::control::MediaSent;
use rushes_proto::repair::fec::LossRatio;
use rushes_proto::stream::{SendStatistics, Sender};
use rushes_proto::{Batch, RtpTimestamp, SequenceNumber, Ssrc};

use super::{Destinations, Retransmissions, Scratch, Targets};
use crate::lock::lock;
use crate::rate::RateShare;

/// The sender of a stream on a port.
///
/// The pushing thread locks it once per frame. The reading thread never waits for it: it queues the
/// requested packets, and the pushing thread sends them between two batches.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(super) state: Mutex<SendState>,
    /// Requested packets, and who requested them.
    pub(super) requested: Mutex<Vec<(SequenceNumber, Targets)>>,
    pub(super) any_requested: AtomicBool,
    /// Whether a circuit breaker has stopped the stream.
    is_stopped: AtomicBool,
    /// Whether the application sends no more frames.
    has_ended: AtomicBool,
    /// Whether the peer has reported on the current SSRC.
    is_acknowledged: AtomicBool,
    /// The current SSRC; a collision changes it.
    ssrc: AtomicU32,
    pub(super) sent: Mutex<Sent>,
    destinations: Destinations,
    timeout: Duration,
    /// The congestion controller, with rate control.
    pub(crate) rate: Option<RateShare>,
    /// The ratio of repair packets, if it depends on the loss that receivers report.
    loss_ratio: Option<Mutex<LossRatio>>,
}

/// Counters of sent packets, readable without the sender's lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) statistics: SendStatistics,
    /// The last frame's timestamp, and when it was captured.
    pub(crate) last_frame: Option<(RtpTimestamp, Instant)>,
    /// Payload octets in retransmitted packets.
    pub(crate) retransmitted_octets: u64,
    /// The packets and octets that sender reports count.
    pub(crate) reported: (u64, u64),
    /// The sequence number of the last packet.
    pub(crate) last_sequence: Option<SequenceNumber>,
    /// The time of the last datagram.
    pub(crate) last: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct SendState {
    pub(crate) sender: Sender,
    pub(crate) batch: Batch,
    pub(crate) queue: SendQueue,
    pub(crate) retransmissions: Option<Retransmissions>,
}

impl SendState {
    /// Returns the sender, the memory to send a frame with, and the retransmissions. The memory is that in
    /// `scratch`, if there is any; packets that may be requested again lie in the stream's own.
    pub(crate) fn with<'s>(
        &'s mut self,
        scratch: Option<&'s mut Scratch>,
    ) -> (&'s mut Sender, &'s mut Batch, &'s mut SendQueue, &'s mut Option<Retransmissions>) {
        let Self { sender, batch, queue, retransmissions } = self;
        let (batch, queue) = match scratch {
            None => (batch, queue),
            Some(scratch) if retransmissions.is_some() => (batch, &mut scratch.queue),
            Some(scratch) => (&mut scratch.batch, &mut scratch.queue),
        };
        (sender, batch, queue, retransmissions)
    }

    /// Sends the batch to every destination.
    pub(crate) fn send(
        socket: &UdpSocket,
        batch: &Batch,
        queue: &mut SendQueue,
        destinations: &Destinations,
        deadline: Instant,
    ) -> Result<(), SendError> {
        destinations.send(batch.lengths().len(), |to| {
            to.send(socket, queue, (batch.bytes(), batch.lengths()), deadline)
        })
    }
}

impl Outbox {
    pub(crate) fn new(
        state: SendState,
        destinations: Destinations,
        timeout: Duration,
        loss_ratio: Option<LossRatio>,
    ) -> Self {
        let ssrc = AtomicU32::new(state.sender.config().ssrc.0);
        Self {
            state: Mutex::new(state),
            requested: Mutex::default(),
            any_requested: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_acknowledged: AtomicBool::new(false),
            ssrc,
            sent: Mutex::default(),
            destinations,
            timeout,
            loss_ratio: loss_ratio.map(Mutex::new),
            rate: None,
        }
    }

    /// Notes packets that are about to be sent, with rate control.
    pub(crate) fn note_packets(&self, batch: &Batch) {
        if let Some(rate) = &self.rate {
            rate.note_sent(Instant::now(), batch, self.ssrc());
        }
    }

    /// Returns the sender for the pushing thread, under its current SSRC, with the current ratio of
    /// repair packets.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SendState> {
        let mut state = lock(&self.state);
        let ssrc = self.ssrc();
        if state.sender.config().ssrc != ssrc {
            state.sender.set_ssrc(ssrc);
        }
        state.sender.set_acknowledged(self.is_acknowledged.load(Relaxed));
        if let Some(ratio) = &self.loss_ratio {
            state.sender.set_fec_percent(lock(ratio).percent(Instant::now()));
        }
        if let Some(rate) = &self.rate {
            rate.set_repair_percent(state.sender.fec_percent());
        }
        state
    }

    /// Notes a report of a receiver: `fraction_lost` / 256 of the packets were lost.
    pub(crate) fn note_loss(&self, fraction_lost: u8) {
        if let Some(ratio) = &self.loss_ratio {
            lock(ratio).handle_report(Instant::now(), fraction_lost);
        }
    }

    /// Returns the first destination.
    pub(crate) fn to(&self) -> Option<SocketAddr> {
        self.destinations.first()
    }

    pub(crate) fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn ssrc(&self) -> Ssrc {
        Ssrc(self.ssrc.load(Relaxed))
    }

    /// Notes that a receiver has reported on the current SSRC. The members of a group and the
    /// programs at several destinations join at any time, so one of them does not speak for the others.
    pub(crate) fn note_acknowledged(&self) {
        let is_single = !self.destinations.are_several();
        let is_host = self.to().is_some_and(|to| !to.ip().is_multicast());
        self.is_acknowledged.store(is_single && is_host, Relaxed);
    }

    pub(crate) fn set_ssrc(&self, ssrc: Ssrc) {
        self.is_acknowledged.store(false, Relaxed);
        self.ssrc.store(ssrc.0, Relaxed);
    }

    pub(crate) fn sent(&self) -> Sent {
        *lock(&self.sent)
    }

    /// Returns the counts of sent media, for reports.
    pub(crate) fn media(&self) -> MediaSent {
        let sent = self.sent();
        let (packets, octets) = sent.reported;
        MediaSent {
            packets,
            octets,
            retransmitted: sent.statistics.retransmitted,
            retransmitted_octets: sent.retransmitted_octets,
            last: sent.last_frame,
        }
    }

    /// Returns whether no media may be sent.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    pub(crate) fn set_stopped(&self, stopped: bool) {
        self.is_stopped.store(stopped, Relaxed);
    }

    /// Returns whether the application has ended sending.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    /// Ends sending: the frame that is being sent is cut.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Relaxed);
    }

    /// Returns whether the rest of a frame that is being sent must not be.
    pub(crate) fn cuts_frames(&self) -> bool {
        self.has_ended() || self.is_stopped()
    }

    /// Records the first frame, which is about to be sent; returns `false` if it was not the first.
    pub(crate) fn begin(&self, frame: (RtpTimestamp, Instant)) -> bool {
        let mut sent = lock(&self.sent);
        let is_first = sent.last_frame.is_none();
        sent.last_frame.get_or_insert(frame);
        is_first
    }

    /// Records the counters at `now` and the frame, if there is one; returns whether these are the
    /// first packets sent.
    pub(crate) fn note(
        &self,
        now: Instant,
        sender: &Sender,
        frame: Option<(RtpTimestamp, Instant)>,
    ) -> bool {
        let mut sent = lock(&self.sent);
        let is_first = sent.statistics.packets == 0 && sender.statistics().packets > 0;
        sent.statistics = sender.statistics();
        sent.retransmitted_octets = sender.retransmitted_octets();
        sent.reported = sender.reported();
        sent.last_frame = frame.or(sent.last_frame);
        let any = sent.statistics.packets > 0;
        sent.last_sequence = any.then(|| sender.next_sequence().plus(u16::MAX));
        sent.last = Some(now);
        is_first
    }

    /// Records that a frame was left out, of which nothing was sent.
    pub(crate) fn note_left_out(&self, sender: &Sender) {
        lock(&self.sent).statistics = sender.statistics();
    }

    /// Records that a keep-alive was sent.
    pub(crate) fn note_keep_alive(&self, now: Instant) {
        lock(&self.sent).last = Some(now);
    }
}
