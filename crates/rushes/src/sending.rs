//! The sending state of a stream: the media sender, its batch, and its retransmissions.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::TryLockError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use rushes_net::LEND_MIN;
use rushes_net::Loan;
use rushes_net::SendError;
use rushes_net::SendErrorKind;
use rushes_net::SendQueue;
use rushes_net::UdpSocket;
use rushes_proto::Batch;
use rushes_proto::LentSlab;
use rushes_proto::RtpTimestamp;
use rushes_proto::SequenceNumber;
use rushes_proto::Ssrc;
use rushes_proto::control::MediaSent;
use rushes_proto::stream::Outgoing;
use rushes_proto::stream::SendStatistics;
use rushes_proto::stream::Sender;

/// Packets that may wait to be sent again.
const WANTED_MAX: usize = 4096;

/// A sender shared by the thread that pushes and, for retransmissions, the thread that reads.
///
/// The pushing thread locks it once per frame. The reading thread never waits for it: it queues the
/// requested packets, and the pushing thread sends them between two batches.
#[derive(Debug)]
pub(crate) struct Sending {
    core: Mutex<SendCore>,
    wanted: Mutex<Vec<SequenceNumber>>,
    any_wanted: AtomicBool,
    /// The SSRC to go on with.
    ssrc: AtomicU32,
    sent: Mutex<Sent>,
    to: Option<SocketAddr>,
    timeout: Duration,
}

/// Counters of sent packets, readable without the sender's lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) statistics: SendStatistics,
    /// The last frame's timestamp, and when it was captured.
    pub(crate) last_frame: Option<(RtpTimestamp, Instant)>,
    /// Octets of payload in packets sent again.
    pub(crate) retransmitted_octets: u64,
    /// The sequence number of the last packet.
    pub(crate) last_sequence: Option<SequenceNumber>,
    /// When anything was sent.
    pub(crate) last: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct SendCore {
    pub(crate) sender: Sender,
    pub(crate) batch: Batch,
    pub(crate) queue: SendQueue,
    pub(crate) again: Option<Again>,
}

impl SendCore {
    /// Waits for a slab to write to if all are lent, for `timeout` at most, and takes back returned
    /// slabs.
    pub(crate) fn make_ready(
        socket: &UdpSocket,
        batch: &mut Batch,
        queue: &mut SendQueue,
        timeout: Duration,
    ) -> Result<(), SendError> {
        if batch.is_ready() {
            return Ok(());
        }
        let deadline = Instant::now() + timeout;
        while !batch.is_ready() {
            let failed = |kind| SendError { kind, sent: 0 };
            match socket.reclaim(queue, deadline) {
                Ok(Some(loan)) => batch.give_back(loan.number, loan.slab),
                Ok(None) => return Err(failed(SendErrorKind::BufferFull)),
                Err(source) => return Err(failed(SendErrorKind::Reclaim(source))),
            }
            while let Some(loan) = queue.take_returned() {
                batch.give_back(loan.number, loan.slab);
            }
        }
        Ok(())
    }

    /// Sends the batch; without a copy, if that is enabled and worth while.
    pub(crate) fn send(
        socket: &UdpSocket,
        batch: &mut Batch,
        queue: &mut SendQueue,
        to: SocketAddr,
        deadline: Instant,
    ) -> Result<(), SendError> {
        if socket.zero_copy()
            && batch.bytes().len() >= LEND_MIN
            && let Some(LentSlab { number, memory, range }) = batch.lend()
        {
            let loan = Loan { slab: memory, start: range.start, number };
            return socket.send_lent(queue, loan, batch.lengths(), to, deadline);
        }
        socket.send(queue, batch.bytes(), batch.lengths(), to, deadline)
    }
}

/// The batch of retransmissions, which may wait for room in the send buffer.
#[derive(Debug)]
pub(crate) struct Again {
    batch: Batch,
    /// Datagrams of the batch that were sent already.
    sent: usize,
    /// Packets that the batch had no room for.
    wanted: Vec<SequenceNumber>,
}

impl Again {
    pub(crate) fn new() -> Self {
        Self { batch: Batch::new(), sent: 0, wanted: Vec::new() }
    }

    /// Writes wanted packets with `write`, which returns whether there was room, and gives them to
    /// `send`, batch after batch; `false` if the send buffer is full before all are sent.
    fn serve(
        &mut self,
        mut write: impl FnMut(SequenceNumber, &mut Batch) -> bool,
        mut send: impl FnMut(&[u8], &[u16]) -> Result<(), SendError>,
    ) -> Result<bool, SendError> {
        loop {
            let (done, rest) = self.batch.lengths().split_at(self.sent);
            if !rest.is_empty() {
                let start = done.iter().map(|len| usize::from(*len)).sum();
                match send(&self.batch.bytes()[start..], rest) {
                    Ok(()) => {}
                    Err(SendError { kind: SendErrorKind::BufferFull, sent }) => {
                        self.sent += sent;
                        return Ok(false);
                    }
                    Err(error) => {
                        self.clear();
                        return Err(error);
                    }
                }
            }
            self.batch.clear();
            self.sent = 0;
            if self.wanted.is_empty() {
                return Ok(true);
            }
            let written = self.wanted.iter().take_while(|n| write(**n, &mut self.batch)).count();
            // A packet that no batch has room for would be tried for ever.
            let stuck = written == 0 && self.batch.is_empty();
            self.wanted.drain(..written.max(usize::from(stuck)));
        }
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.sent = 0;
        self.wanted.clear();
    }
}

impl Sending {
    pub(crate) fn new(core: SendCore, to: Option<SocketAddr>, timeout: Duration) -> Self {
        let ssrc = AtomicU32::new(core.sender.config().ssrc.0);
        Self {
            core: Mutex::new(core),
            wanted: Mutex::default(),
            any_wanted: AtomicBool::new(false),
            ssrc,
            sent: Mutex::default(),
            to,
            timeout,
        }
    }

    /// The sender for the pushing thread, under its current SSRC.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SendCore> {
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let ssrc = self.ssrc();
        if core.sender.config().ssrc != ssrc {
            core.sender.set_ssrc(ssrc);
        }
        core
    }

    pub(crate) fn to(&self) -> Option<SocketAddr> {
        self.to
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn ssrc(&self) -> Ssrc {
        Ssrc(self.ssrc.load(Relaxed))
    }

    pub(crate) fn set_ssrc(&self, ssrc: Ssrc) {
        self.ssrc.store(ssrc.0, Relaxed);
    }

    pub(crate) fn sent(&self) -> Sent {
        *lock(&self.sent)
    }

    /// The counts of sent media, for reports.
    pub(crate) fn media(&self) -> MediaSent {
        let sent = self.sent();
        MediaSent {
            packets: sent.statistics.packets,
            octets: sent.statistics.payload_octets,
            retransmitted: sent.statistics.retransmitted,
            retransmitted_octets: sent.retransmitted_octets,
            last: sent.last_frame,
        }
    }

    /// Notes the counters at `now`, and the frame if any; returns whether nothing was sent before.
    pub(crate) fn note(
        &self,
        now: Instant,
        sender: &Sender,
        frame: Option<(RtpTimestamp, Instant)>,
    ) -> bool {
        let mut sent = lock(&self.sent);
        let is_first = sent.statistics.packets == 0;
        sent.statistics = sender.statistics();
        sent.retransmitted_octets = sender.retransmitted_octets();
        sent.last_frame = frame.or(sent.last_frame);
        let any = sent.statistics.packets > 0;
        sent.last_sequence = any.then(|| sender.next_sequence().plus(u16::MAX));
        sent.last = Some(now);
        is_first
    }

    /// Notes that something else than media was sent.
    pub(crate) fn note_keep_alive(&self, now: Instant) {
        lock(&self.sent).last = Some(now);
    }

    /// Whether packets wait to be sent again.
    pub(crate) fn has_wanted(&self) -> bool {
        self.any_wanted.load(Relaxed)
    }

    /// Queues packets for retransmission; sends them at once unless a frame is being sent.
    pub(crate) fn send_again(&self, socket: &UdpSocket, sequences: &[SequenceNumber]) {
        {
            let mut wanted = lock(&self.wanted);
            let room = WANTED_MAX.saturating_sub(wanted.len());
            wanted.extend(sequences.iter().take(room));
        }
        self.any_wanted.store(true, Relaxed);
        self.serve(socket);
    }

    /// Sends wanted packets, as far as the send buffer has room, unless another thread has the
    /// sender and will do so. It never waits, because readers call it.
    pub(crate) fn serve(&self, socket: &UdpSocket) {
        while self.any_wanted.load(Relaxed) {
            let mut core = match self.core.try_lock() {
                Ok(core) => core,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let SendCore { sender, batch, queue, again } = &mut *core;
            take_back(socket, batch, queue);
            let outcome = self.send_wanted(socket, again, queue, |sequence, again| {
                sender.retransmit(Instant::now(), sequence, batch, again).unwrap_or(true)
            });
            {
                let mut sent = lock(&self.sent);
                sent.statistics = core.sender.statistics();
                sent.retransmitted_octets = core.sender.retransmitted_octets();
            }
            match outcome {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::debug!(%error, "packets asked for were not sent again"),
            }
        }
    }

    /// Sends wanted packets in the middle of a frame, without waiting for room.
    pub(crate) fn serve_between(
        &self,
        socket: &UdpSocket,
        outgoing: &mut Outgoing<'_, '_>,
        batch: &mut Batch,
        queue: &mut SendQueue,
        again: &mut Option<Again>,
    ) {
        if !self.any_wanted.load(Relaxed) {
            return;
        }
        take_back(socket, batch, queue);
        let batch = &*batch;
        let outcome = self.send_wanted(socket, again, queue, |sequence, again| {
            outgoing.retransmit(Instant::now(), sequence, batch, again).unwrap_or(true)
        });
        if let Err(error) = outcome {
            tracing::debug!(%error, "packets asked for were not sent again");
        }
    }

    /// Writes wanted packets with `write`, which returns whether there was room, and sends them;
    /// `false` if the send buffer is full before all are sent: the rest remains queued.
    fn send_wanted(
        &self,
        socket: &UdpSocket,
        again: &mut Option<Again>,
        queue: &mut SendQueue,
        write: impl FnMut(SequenceNumber, &mut Batch) -> bool,
    ) -> Result<bool, SendError> {
        self.any_wanted.store(false, Relaxed);
        let (Some(again), Some(to)) = (again, self.to) else {
            lock(&self.wanted).clear();
            return Ok(true);
        };
        {
            let mut wanted = lock(&self.wanted);
            let room = WANTED_MAX.saturating_sub(again.wanted.len());
            let taken = wanted.len().min(room);
            again.wanted.extend(wanted.drain(..taken));
            self.any_wanted.store(!wanted.is_empty(), Relaxed);
        }
        // A deadline in the past: the sender's lock is held, and perhaps the reader's turn.
        let now = Instant::now();
        let all =
            again.serve(write, |bytes, lengths| socket.send(queue, bytes, lengths, to, now))?;
        if !all {
            self.any_wanted.store(true, Relaxed);
        }
        Ok(all)
    }
}

/// Takes back returned slabs, so that the packets in them can be retransmitted.
fn take_back(socket: &UdpSocket, batch: &mut Batch, queue: &mut SendQueue) {
    while let Ok(Some(loan)) = socket.reclaim(queue, Instant::now()) {
        batch.give_back(loan.number, loan.slab);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes packet `sequence` as its two octets.
    fn write(sequence: SequenceNumber, batch: &mut Batch) -> bool {
        let place = batch.place(2);
        place.map(|place| place.copy_from_slice(&sequence.0.to_be_bytes())).is_some()
    }

    #[test]
    fn a_full_send_buffer_holds_nobody_up_and_loses_no_retransmission() {
        let mut again = Again::new();
        let wanted: Vec<u16> = (0..1000).collect();
        again.wanted.extend(wanted.iter().copied().map(SequenceNumber));
        let mut arrived = Vec::new();
        let mut calls = 0;
        loop {
            // The buffer has room for three datagrams each time.
            let outcome = again.serve(write, |bytes, lengths| {
                calls += 1;
                let sent = lengths.len().min(3);
                let octets = bytes.chunks_exact(2).take(sent);
                arrived.extend(octets.map(|packet| u16::from_be_bytes([packet[0], packet[1]])));
                if sent == lengths.len() {
                    return Ok(());
                }
                Err(SendError { kind: SendErrorKind::BufferFull, sent })
            });
            if outcome.unwrap() {
                break;
            }
        }
        assert_eq!(arrived, wanted);
        assert_eq!(calls, 334, "asked again before the caller came back");
    }

    #[test]
    fn what_cannot_be_sent_is_dropped_and_does_not_stand_in_the_way() {
        let mut again = Again::new();
        again.wanted.push(SequenceNumber(1));
        let refused = |_: &[u8], lengths: &[u16]| {
            Err(SendError {
                kind: SendErrorKind::Mismatch { lengths: 0, bytes: lengths.len() },
                sent: 0,
            })
        };
        assert!(again.serve(write, refused).is_err());
        assert!(again.serve(write, |_, _| panic!("nothing is wanted")).unwrap());
        // Nor does one that no batch has room for.
        again.wanted.push(SequenceNumber(2));
        assert!(again.serve(|_, _| false, |_, _| panic!("nothing was written")).unwrap());
    }
}
