//! What a stream sends with: the media sender, its batch, and what it keeps to send again.

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

/// A sender that the pushing thread and, for retransmissions, the thread that reads may use.
///
/// The pushing thread locks it once per frame. The other never waits for it: it leaves what is
/// wanted behind, and the pushing thread sends it between two batches.
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

/// What was sent, as others may see it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) statistics: SendStatistics,
    /// The last frame's timestamp, and when it was captured.
    pub(crate) last_frame: Option<(RtpTimestamp, Instant)>,
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
    /// Waits for a slab to write to, if all are lent, for `timeout` at most; those that are back are
    /// taken back.
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

    /// Sends what is in the batch; without a copy, where that is asked for and worth while.
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

/// Where retransmissions are written.
#[derive(Debug)]
pub(crate) struct Again {
    batch: Batch,
    wanted: Vec<SequenceNumber>,
}

impl Again {
    pub(crate) fn new() -> Self {
        Self { batch: Batch::new(), wanted: Vec::new() }
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

    /// What a report says of the media.
    pub(crate) fn media(&self) -> MediaSent {
        let sent = self.sent();
        MediaSent {
            packets: sent.statistics.packets,
            octets: sent.statistics.payload_octets,
            last: sent.last_frame,
        }
    }

    /// Notes what was sent until `now`, and the frame if there was one.
    pub(crate) fn note(
        &self,
        now: Instant,
        sender: &Sender,
        frame: Option<(RtpTimestamp, Instant)>,
    ) {
        let mut sent = lock(&self.sent);
        sent.statistics = sender.statistics();
        sent.last_frame = frame.or(sent.last_frame);
        sent.last = Some(now);
    }

    /// Notes that something else than media was sent.
    pub(crate) fn note_keep_alive(&self, now: Instant) {
        lock(&self.sent).last = Some(now);
    }

    /// Wants packets sent again; does so at once unless a frame is being sent.
    pub(crate) fn send_again(&self, socket: &UdpSocket, sequences: &[SequenceNumber]) {
        {
            let mut wanted = lock(&self.wanted);
            let room = WANTED_MAX.saturating_sub(wanted.len());
            wanted.extend(sequences.iter().take(room));
        }
        self.any_wanted.store(true, Relaxed);
        self.serve(socket);
    }

    /// Sends what is wanted, unless another thread has the sender: that one will.
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
            if let Err(error) = outcome {
                tracing::debug!(%error, "packets asked for were not sent again");
            }
            let sender = &core.sender;
            lock(&self.sent).statistics = sender.statistics();
        }
    }

    /// Sends what is wanted in the middle of a frame.
    pub(crate) fn serve_between(
        &self,
        socket: &UdpSocket,
        outgoing: &mut Outgoing<'_, '_>,
        batch: &mut Batch,
        queue: &mut SendQueue,
        again: &mut Option<Again>,
    ) -> Result<(), SendError> {
        if !self.any_wanted.load(Relaxed) {
            return Ok(());
        }
        take_back(socket, batch, queue);
        let batch = &*batch;
        self.send_wanted(socket, again, queue, |sequence, again| {
            outgoing.retransmit(Instant::now(), sequence, batch, again).unwrap_or(true)
        })
    }

    /// Writes wanted packets with `write`, which says whether there was room, and sends them.
    fn send_wanted(
        &self,
        socket: &UdpSocket,
        again: &mut Option<Again>,
        queue: &mut SendQueue,
        mut write: impl FnMut(SequenceNumber, &mut Batch) -> bool,
    ) -> Result<(), SendError> {
        self.any_wanted.store(false, Relaxed);
        let (Some(again), Some(to)) = (again, self.to) else {
            lock(&self.wanted).clear();
            return Ok(());
        };
        again.wanted.clear();
        again.wanted.append(&mut lock(&self.wanted));
        let mut rest = &again.wanted[..];
        while !rest.is_empty() {
            again.batch.clear();
            let written = rest.iter().take_while(|n| write(**n, &mut again.batch)).count();
            rest = &rest[written..];
            if again.batch.is_empty() {
                break;
            }
            let deadline = Instant::now() + self.timeout;
            socket.send(queue, again.batch.bytes(), again.batch.lengths(), to, deadline)?;
        }
        Ok(())
    }
}

/// Takes back the slabs that are, so that what is in them can be sent again.
fn take_back(socket: &UdpSocket, batch: &mut Batch, queue: &mut SendQueue) {
    while let Ok(Some(loan)) = socket.reclaim(queue, Instant::now()) {
        batch.give_back(loan.number, loan.slab);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
