//! Retransmissions of a stream: requested packets are sent again without waiting for room.

use std::sync::TryLockError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rushes_net::{SendError, SendErrorKind, SendQueue, UdpSocket};
use rushes_proto::stream::Outgoing;
use rushes_proto::{Batch, SequenceNumber};

use super::destinations::{Destinations, Targets};
use super::outbox::{Outbox, SendState};
use super::relay::Hop;
use crate::lock::lock;

/// Maximum number of requested packets in a queue.
const REQUESTED_MAX: usize = 4096;

/// Of this number of retransmissions to one of several destinations, one goes to all: under SRTP, a
/// receiver that got none of 2¹⁵ packets of the retransmission stream could not estimate the index of
/// the next (RFC 3711 section 3.3.1), and some of these may be lost.
const FOR_ALL_INTERVAL: u64 = 4096;

/// The batch of retransmissions, which is kept until the send buffer has room.
#[derive(Debug)]
pub(crate) struct Retransmissions {
    batch: Batch,
    /// The destinations that the batch is still to be sent to.
    targets: Targets,
    /// Datagrams of the batch that were sent to the first of them already.
    sent: usize,
    /// Packets that are not in the batch, and who requested them.
    requested: Vec<(SequenceNumber, Targets)>,
    /// The number of packets so far.
    written: u64,
}

impl Retransmissions {
    pub(crate) fn new() -> Self {
        let targets = Targets::default();
        Self { batch: Batch::new(), targets, sent: 0, requested: Vec::new(), written: 0 }
    }

    /// Writes requested packets with `write`, which returns whether there was room, and passes them
    /// to `note` and, for each destination that requested them, to `send`, batch after batch. Returns
    /// `false` if the send buffer is full before all are sent.
    ///
    /// # Errors
    /// The first error of a destination. What it requested is dropped, and others get theirs.
    fn serve(
        &mut self,
        destinations: &Destinations,
        mut write: impl FnMut((usize, SequenceNumber), &mut Batch) -> bool,
        note: impl Fn(&Batch),
        mut send: impl FnMut(Hop, &[u8], &[u16]) -> Result<(), SendError>,
    ) -> Result<bool, SendError> {
        let mut failed = None;
        loop {
            while let Some(target) = self.targets.first() {
                let (done, rest) = self.batch.lengths().split_at(self.sent);
                let start = done.iter().map(|len| usize::from(*len)).sum();
                let rest_of_bytes = &self.batch.bytes()[start..];
                match destinations.at(target).map(|to| send(to, rest_of_bytes, rest)) {
                    Some(Err(SendError { kind: SendErrorKind::BufferFull, sent })) => {
                        self.sent += sent;
                        return Ok(false);
                    }
                    Some(Err(error)) => {
                        let unsent = rest.len().saturating_sub(error.sent);
                        destinations.note_unsent(target, unsent, &error);
                        self.forget(target);
                        failed.get_or_insert(error);
                    }
                    Some(Ok(())) | None => {}
                }
                self.targets.remove(target);
                self.sent = 0;
            }
            self.batch.clear();
            let Some((_, targets)) = self.requested.first().copied() else {
                return failed.map_or(Ok(true), Err);
            };
            self.fill(targets, &mut write);
            note(&self.batch);
            if !self.batch.is_empty() {
                let before = self.written;
                self.written += self.batch.lengths().len() as u64;
                let is_for_all = before / FOR_ALL_INTERVAL != self.written / FOR_ALL_INTERVAL;
                self.targets = if is_for_all { destinations.all() } else { targets };
            }
        }
    }

    /// Fills the batch with the next packets that `targets` requested.
    fn fill(
        &mut self,
        targets: Targets,
        write: &mut impl FnMut((usize, SequenceNumber), &mut Batch) -> bool,
    ) {
        let Self { batch, requested, .. } = self;
        let receiver = targets.first().unwrap_or(0);
        let next = requested.iter().take_while(|(_, of)| *of == targets);
        let written = next.take_while(|(n, _)| write((receiver, *n), batch)).count();
        // A packet that fits no batch would be tried for ever.
        let fits_no_batch = written == 0 && batch.is_empty();
        requested.drain(..written.max(usize::from(fits_no_batch)));
    }

    /// Drops what only `target` has requested.
    fn forget(&mut self, target: usize) {
        self.requested.retain_mut(|(_, targets)| {
            targets.remove(target);
            !targets.is_empty()
        });
    }
}

impl Outbox {
    /// Returns whether requested packets are queued.
    pub(crate) fn has_requested(&self) -> bool {
        self.any_requested.load(Relaxed)
    }

    /// Queues packets for retransmission to `targets`; sends them at once unless a frame is being sent.
    pub(crate) fn retransmit_soon(
        &self,
        socket: &UdpSocket,
        sequences: &[SequenceNumber],
        targets: Targets,
    ) {
        if self.is_stopped() || targets.is_empty() {
            return;
        }
        {
            let mut requested = lock(&self.requested);
            // Each destination has its share of the queue.
            let queued = requested.iter().filter(|(_, of)| *of == targets).count();
            let share = REQUESTED_MAX / self.destinations().count().max(1);
            let room = share.saturating_sub(queued).min(REQUESTED_MAX - requested.len());
            requested.extend(sequences.iter().take(room).map(|sequence| (*sequence, targets)));
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
            let outcome =
                self.send_requested(socket, retransmissions, queue, |packet, retransmissions| {
                    sender
                        .retransmit_to(Instant::now(), packet, batch, retransmissions)
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
        batch: &Batch,
        queue: &mut SendQueue,
        retransmissions: &mut Option<Retransmissions>,
    ) {
        if !self.any_requested.load(Relaxed) {
            return;
        }
        let outcome =
            self.send_requested(socket, retransmissions, queue, |packet, retransmissions| {
                outgoing
                    .retransmit_to(Instant::now(), packet, batch, retransmissions)
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
        write: impl FnMut((usize, SequenceNumber), &mut Batch) -> bool,
    ) -> Result<bool, SendError> {
        self.any_requested.store(false, Relaxed);
        let destinations = self.destinations();
        let Some(retransmissions) = retransmissions.as_mut().filter(|_| destinations.count() > 0)
        else {
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
        let all = retransmissions.serve(destinations, write, note, |to, bytes, lengths| {
            to.send(socket, queue, (bytes, lengths), now)
        })?;
        if !all {
            self.any_requested.store(true, Relaxed);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn destinations(count: u8) -> Destinations {
        let address = |host| (SocketAddr::from(([192, 0, 2, host], 5004)), None);
        Destinations::new((0..count).map(address))
    }

    fn only(target: usize) -> Targets {
        let mut targets = Targets::default();
        targets.add(target);
        targets
    }

    /// Writes packet `sequence` as its two octets.
    fn write((_, sequence): (usize, SequenceNumber), batch: &mut Batch) -> bool {
        let place = batch.place(2);
        place.map(|place| place.copy_from_slice(&sequence.0.to_be_bytes())).is_some()
    }

    fn numbers(bytes: &[u8]) -> impl Iterator<Item = u16> {
        bytes.chunks_exact(2).map(|packet| u16::from_be_bytes([packet[0], packet[1]]))
    }

    fn refused(lengths: &[u16]) -> SendError {
        SendError { kind: SendErrorKind::Mismatch { lengths: 0, bytes: lengths.len() }, sent: 0 }
    }

    #[test]
    fn a_full_send_buffer_delays_no_reader_and_loses_no_retransmission() {
        let mut retransmissions = Retransmissions::new();
        let requested: Vec<u16> = (0..1000).collect();
        let queued = requested.iter().map(|n| (SequenceNumber(*n), only(0)));
        retransmissions.requested.extend(queued);
        let mut arrived = Vec::new();
        let mut calls = 0;
        loop {
            // In each round, the send buffer has room for three datagrams.
            let outcome = retransmissions.serve(
                &destinations(1),
                write,
                |_| {},
                |_, bytes, lengths| {
                    calls += 1;
                    let sent = lengths.len().min(3);
                    arrived.extend(numbers(&bytes[..2 * sent]));
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
        let all = destinations(1);
        let mut retransmissions = Retransmissions::new();
        retransmissions.requested.push((SequenceNumber(1), only(0)));
        let fail = |_, _: &[u8], lengths: &[u16]| Err(refused(lengths));
        assert!(retransmissions.serve(&all, write, |_| {}, fail).is_err());
        let nothing = |_, _: &[u8], _: &[u16]| panic!("nothing is requested");
        assert!(retransmissions.serve(&all, write, |_| {}, nothing).unwrap());
        // A packet that fits no batch is dropped, too.
        retransmissions.requested.push((SequenceNumber(2), only(0)));
        assert!(retransmissions.serve(&all, |_, _| false, |_| {}, nothing).unwrap());
    }

    #[test]
    fn each_destination_gets_what_it_requested_although_the_buffer_is_full_or_another_is_dead() {
        let all = destinations(3);
        let mut retransmissions = Retransmissions::new();
        let both = {
            let mut both = only(0);
            both.add(2);
            both
        };
        for (n, targets) in [(1, only(0)), (2, only(1)), (3, both), (4, both), (5, only(2))] {
            retransmissions.requested.push((SequenceNumber(n), targets));
        }
        let mut arrived = vec![Vec::new(); 3];
        let mut rounds = 0;
        let mut outcome = Ok(false);
        while matches!(outcome, Ok(false)) {
            rounds += 1;
            assert!(rounds < 100, "requests are repeated for ever");
            let mut room = 1;
            outcome = retransmissions.serve(
                &all,
                write,
                |_| {},
                |to, bytes, lengths| {
                    let at = all.addresses().position(|it| it == to.peer).unwrap();
                    if at == 1 {
                        return Err(refused(lengths));
                    }
                    let sent = lengths.len().min(room);
                    room -= sent;
                    arrived[at].extend(numbers(&bytes[..2 * sent]));
                    if sent == lengths.len() {
                        return Ok(());
                    }
                    Err(SendError { kind: SendErrorKind::BufferFull, sent })
                },
            );
        }
        assert_eq!(arrived, [vec![1, 3, 4], vec![], vec![3, 4, 5]]);
        let unsent: Vec<_> = all.statistics().iter().map(|it| it.datagrams_unsent).collect();
        assert_eq!(unsent, [0, 1, 0]);
    }

    #[test]
    fn now_and_then_a_retransmission_goes_to_all() {
        let all = destinations(2);
        let mut retransmissions = Retransmissions::new();
        let mut gap = [0_u64; 2];
        for n in 0..60_000 {
            retransmissions.requested.push((SequenceNumber(n), only(0)));
            let sent = retransmissions.serve(
                &all,
                write,
                |_| {},
                |to, _, _| {
                    gap[all.addresses().position(|it| it == to.peer).unwrap()] = 0;
                    Ok(())
                },
            );
            assert!(sent.unwrap());
            gap = gap.map(|gap| gap + 1);
            assert!(gap[1].max(gap[0]) <= FOR_ALL_INTERVAL, "{gap:?}");
        }
    }
}
