//! Retransmissions of a stream: requested packets are sent again without waiting for room.

use std::sync::TryLockError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rushes_net::{SendError, SendErrorKind, SendQueue, UdpSocket};
use rushes_proto::stream::Outgoing;
use rushes_proto::{Batch, SequenceNumber};

use super::outbox::{Outbox, SendState};
use crate::lock::lock;

/// Maximum number of requested packets in a queue.
const REQUESTED_MAX: usize = 4096;

/// The batch of retransmissions, which is kept until the send buffer has room.
#[derive(Debug)]
pub(crate) struct Retransmissions {
    batch: Batch,
    /// Datagrams of the batch that were sent already.
    sent: usize,
    /// Packets that the batch had no room for.
    requested: Vec<SequenceNumber>,
}

impl Retransmissions {
    pub(crate) fn new() -> Self {
        Self { batch: Batch::new(), sent: 0, requested: Vec::new() }
    }

    /// Writes requested packets with `write`, which returns whether there was room, and passes them
    /// to `note` and `send`, batch after batch. Returns `false` if the send buffer is full before
    /// all are sent.
    fn serve(
        &mut self,
        mut write: impl FnMut(SequenceNumber, &mut Batch) -> bool,
        note: impl Fn(&Batch),
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
            if self.requested.is_empty() {
                return Ok(true);
            }
            let written = self.requested.iter().take_while(|n| write(**n, &mut self.batch)).count();
            note(&self.batch);
            // A packet that fits no batch would be tried for ever.
            let fits_no_batch = written == 0 && self.batch.is_empty();
            self.requested.drain(..written.max(usize::from(fits_no_batch)));
        }
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.sent = 0;
        self.requested.clear();
    }
}

impl Outbox {
    /// Returns whether requested packets are queued.
    pub(crate) fn has_requested(&self) -> bool {
        self.any_requested.load(Relaxed)
    }

    /// Queues packets for retransmission; sends them at once unless a frame is being sent.
    pub(crate) fn retransmit_soon(&self, socket: &UdpSocket, sequences: &[SequenceNumber]) {
        if self.is_stopped() {
            return;
        }
        {
            let mut requested = lock(&self.requested);
            let room = REQUESTED_MAX.saturating_sub(requested.len());
            requested.extend(sequences.iter().take(room));
        }
        self.any_requested.store(true, Relaxed);
        self.retransmit_requested(socket);
    }

    /// Sends requested packets while the send buffer has room. Does nothing if another thread has
    /// locked the sender, which then sends them. Never waits, because reading threads call it.
    pub(crate) fn retransmit_requested(&self, socket: &UdpSocket) {
        while self.any_requested.load(Relaxed) {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let SendState { sender, batch, queue, retransmissions } = &mut *state;
            reclaim_slabs(socket, batch, queue);
            let outcome =
                self.send_requested(socket, retransmissions, queue, |sequence, retransmissions| {
                    sender
                        .retransmit(Instant::now(), sequence, batch, retransmissions)
                        .unwrap_or(true)
                });
            {
                let mut sent = lock(&self.sent);
                sent.statistics = state.sender.statistics();
                sent.retransmitted_octets = state.sender.retransmitted_octets();
            }
            match outcome {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::debug!(%error, "requested packets were not retransmitted"),
            }
        }
    }

    /// Sends requested packets in the middle of a frame, without waiting for room.
    pub(crate) fn retransmit_within_frame(
        &self,
        socket: &UdpSocket,
        outgoing: &mut Outgoing<'_, '_>,
        batch: &mut Batch,
        queue: &mut SendQueue,
        retransmissions: &mut Option<Retransmissions>,
    ) {
        if !self.any_requested.load(Relaxed) {
            return;
        }
        reclaim_slabs(socket, batch, queue);
        let batch = &*batch;
        let outcome =
            self.send_requested(socket, retransmissions, queue, |sequence, retransmissions| {
                outgoing
                    .retransmit(Instant::now(), sequence, batch, retransmissions)
                    .unwrap_or(true)
            });
        if let Err(error) = outcome {
            tracing::debug!(%error, "requested packets were not retransmitted");
        }
    }

    /// Writes requested packets with `write`, which returns whether there was room, and sends them.
    /// Returns `false` if the send buffer is full before all are sent; the rest remains queued.
    fn send_requested(
        &self,
        socket: &UdpSocket,
        retransmissions: &mut Option<Retransmissions>,
        queue: &mut SendQueue,
        write: impl FnMut(SequenceNumber, &mut Batch) -> bool,
    ) -> Result<bool, SendError> {
        self.any_requested.store(false, Relaxed);
        let (Some(retransmissions), Some(to)) = (retransmissions, self.to()) else {
            lock(&self.requested).clear();
            return Ok(true);
        };
        {
            let mut requested = lock(&self.requested);
            let room = REQUESTED_MAX.saturating_sub(retransmissions.requested.len());
            let taken = requested.len().min(room);
            retransmissions.requested.extend(requested.drain(..taken));
            self.any_requested.store(!requested.is_empty(), Relaxed);
        }
        // The deadline is now, because waiting would block threads that need the sender's lock or
        // the lock for reading.
        let now = Instant::now();
        let note = |batch: &Batch| self.note_packets(batch);
        let all = retransmissions
            .serve(write, note, |bytes, lengths| socket.send(queue, bytes, lengths, to, now))?;
        if !all {
            self.any_requested.store(true, Relaxed);
        }
        Ok(all)
    }
}

/// Takes back returned slabs, so that the packets in them can be retransmitted.
fn reclaim_slabs(socket: &UdpSocket, batch: &mut Batch, queue: &mut SendQueue) {
    while let Ok(Some(loan)) = socket.reclaim(queue, Instant::now()) {
        batch.give_back(loan.number, loan.slab);
    }
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
    fn a_full_send_buffer_delays_no_reader_and_loses_no_retransmission() {
        let mut retransmissions = Retransmissions::new();
        let requested: Vec<u16> = (0..1000).collect();
        retransmissions.requested.extend(requested.iter().copied().map(SequenceNumber));
        let mut arrived = Vec::new();
        let mut calls = 0;
        loop {
            // In each round, the send buffer has room for three datagrams.
            let outcome = retransmissions.serve(
                write,
                |_| {},
                |bytes, lengths| {
                    calls += 1;
                    let sent = lengths.len().min(3);
                    let octets = bytes.chunks_exact(2).take(sent);
                    arrived.extend(octets.map(|packet| u16::from_be_bytes([packet[0], packet[1]])));
                    if sent == lengths.len() {
                        return Ok(());
                    }
                    Err(SendError { kind: SendErrorKind::BufferFull, sent })
                },
            );
            if outcome.unwrap() {
                break;
            }
        }
        assert_eq!(arrived, requested);
        assert_eq!(calls, 334, "a full send buffer must end the attempt");
    }

    #[test]
    fn a_packet_that_cannot_be_sent_is_dropped_and_blocks_no_other() {
        let mut retransmissions = Retransmissions::new();
        retransmissions.requested.push(SequenceNumber(1));
        let refused = |_: &[u8], lengths: &[u16]| {
            Err(SendError {
                kind: SendErrorKind::Mismatch { lengths: 0, bytes: lengths.len() },
                sent: 0,
            })
        };
        assert!(retransmissions.serve(write, |_| {}, refused).is_err());
        let nothing = |_: &[u8], _: &[u16]| panic!("nothing is requested");
        assert!(retransmissions.serve(write, |_| {}, nothing).unwrap());
        // A packet that fits no batch is dropped, too.
        retransmissions.requested.push(SequenceNumber(2));
        assert!(retransmissions.serve(|_, _| false, |_| {}, nothing).unwrap());
    }
}
