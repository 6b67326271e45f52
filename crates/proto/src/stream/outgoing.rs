//! One frame while it is sent: batch after batch, until its last packet or its abandonment.

use std::time::Instant;

use super::send::{Sender, Written};
use crate::batch::Batch;
use crate::repair::Refusal;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// A frame being sent. If it is dropped before its last packet is made, the remaining packets are
/// not sent. If any packet was made, a sequence number is then skipped, so that receivers do not
/// take the part for a whole frame or append later packets to it.
#[derive(Debug)]
pub struct Outgoing<'s, 'f> {
    sender: &'s mut Sender,
    frame: &'f [u8],
    timestamp: RtpTimestamp,
    /// The timestamp of the current packet.
    packet_timestamp: RtpTimestamp,
    /// Number of packets that the sender had made before this frame.
    packets_before: u64,
    /// Maximum octets of a batch.
    batch_len_max: usize,
    /// The current fragment did not fit the last batch.
    waiting: bool,
    /// No more packets will be made.
    done: bool,
    /// All packets of the frame were made.
    whole: bool,
}

/// A frame that was begun and whose rest is sent later; see [`Outgoing::suspend`].
#[derive(Debug)]
pub struct Suspended {
    timestamp: RtpTimestamp,
    packet_timestamp: RtpTimestamp,
    packets_before: u64,
    waiting: bool,
    done: bool,
    whole: bool,
    /// Its number among the sender's frames.
    number: u64,
    len: usize,
    ssrc: Ssrc,
}

impl Sender {
    /// Goes on with a frame that was [suspended](Outgoing::suspend); `frame` has the octets that it was begun with.
    ///
    /// Nothing more is sent of a frame after which another was begun, of one of another length, or if the SSRC has
    /// changed meanwhile.
    pub fn resume<'s, 'f>(
        &'s mut self,
        frame: &'f [u8],
        suspended: &Suspended,
    ) -> Outgoing<'s, 'f> {
        let is_current = self.statistics.frames == suspended.number
            && frame.len() == suspended.len
            && self.config.ssrc == suspended.ssrc;
        let mut outgoing = Outgoing::new(self, frame, suspended.timestamp);
        outgoing.packet_timestamp = suspended.packet_timestamp;
        outgoing.packets_before = suspended.packets_before;
        outgoing.waiting = suspended.waiting;
        outgoing.done = suspended.done || !is_current;
        outgoing.whole = suspended.whole;
        outgoing
    }
}

impl<'s, 'f> Outgoing<'s, 'f> {
    /// Starts `frame`, from which `sender`'s packetiser takes the payloads.
    pub(super) fn new(sender: &'s mut Sender, frame: &'f [u8], timestamp: RtpTimestamp) -> Self {
        let packets_before = sender.statistics.packets;
        Self {
            sender,
            frame,
            timestamp,
            packet_timestamp: timestamp,
            packets_before,
            batch_len_max: usize::MAX,
            waiting: false,
            done: false,
            whole: false,
        }
    }

    /// Creates a frame of which nothing is sent.
    pub(super) fn left_out(
        sender: &'s mut Sender,
        frame: &'f [u8],
        timestamp: RtpTimestamp,
    ) -> Self {
        let mut outgoing = Self::new(sender, frame, timestamp);
        (outgoing.done, outgoing.whole) = (true, true);
        outgoing
    }

    /// Returns whether nothing of the frame is sent, because it is of a temporal layer that is left out.
    pub fn is_left_out(&self) -> bool {
        self.whole && self.sender.statistics.packets == self.packets_before
    }

    /// Limits the batches that follow to `octets` each, but to no less than one of the largest
    /// packets. Returns the limit. Without this call a batch is as large as its slab.
    pub fn limit_batches(&mut self, octets: usize) -> usize {
        self.batch_len_max = octets.max(self.sender.config.packet_len_max);
        self.batch_len_max
    }

    /// Empties `batch` and fills it with the next packets; returns `false` if none are left.
    pub fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.clear();
        let packet_len_max = self.sender.config.packet_len_max;
        while self.sender.write_repairs(batch, self.batch_len_max) && !self.done {
            let room = batch.free().min(self.batch_len_max.saturating_sub(batch.bytes().len()));
            if room < packet_len_max {
                break;
            }
            let mut written = None;
            if !std::mem::take(&mut self.waiting) {
                let most = room / packet_len_max;
                written = self.sender.write_run(self.frame, self.timestamp, batch, most);
                self.sender.fragment.clear();
                self.sender.fragment.set_sequence(self.sender.sequence.0 as u32);
                if written.is_none()
                    && !self.sender.packetiser.next(self.frame, &mut self.sender.fragment)
                {
                    (self.done, self.whole) = (true, true);
                    self.sender.end_fec_block_if_due(self.packet_timestamp);
                    continue;
                }
            }
            let sender = &mut *self.sender;
            if written.is_none() {
                self.packet_timestamp = self.timestamp.plus(sender.fragment.time_offset());
            }
            let timestamp = self.packet_timestamp;
            match written.unwrap_or_else(|| sender.write(self.frame, timestamp, batch)) {
                Written::Placed => {}
                Written::Full => {
                    // A packet may exceed the limit if its format cannot split frames. A packet
                    // that is longer than any datagram is a fault of its format.
                    self.waiting = !batch.is_empty();
                    self.done = batch.is_empty();
                    debug_assert!(self.waiting, "a payload longer than any datagram");
                    break;
                }
                Written::Refused => {
                    self.done = true;
                    break;
                }
            }
        }
        self.sender.finish(batch);
        !batch.is_empty()
    }

    /// Leaves the rest of the frame for later: [`Sender::resume`] goes on. Meanwhile packets may be retransmitted, but
    /// nothing else be sent: a frame or a keep-alive in between ends this one. To give the rest up, resume it and drop
    /// the outcome.
    #[must_use = "the rest of the frame would be missing unnoticed"]
    pub fn suspend(mut self) -> Suspended {
        let suspended = Suspended {
            timestamp: self.timestamp,
            packet_timestamp: self.packet_timestamp,
            packets_before: self.packets_before,
            waiting: self.waiting,
            done: self.done,
            whole: self.whole,
            number: self.sender.statistics.frames,
            len: self.frame.len(),
            ssrc: self.sender.config.ssrc,
        };
        // When this is dropped, the frame is not given up, and nothing is counted.
        (self.whole, self.packets_before) = (true, self.sender.statistics.packets);
        suspended
    }

    /// Gives the frame up, also if all its packets were made: some of them were not sent.
    pub fn abandon(mut self) {
        self.whole = false;
    }

    /// Sets the time at which the next packets are sent; see [`Sender::set_now`].
    pub fn set_now(&mut self, now: Instant) {
        self.sender.set_now(now);
    }

    /// Retransmits a packet in the middle of the frame; see [`Sender::retransmit`].
    ///
    /// # Errors
    /// Those of [`Sender::retransmit`].
    pub fn retransmit(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        sent: &Batch,
        batch: &mut Batch,
    ) -> Result<bool, Refusal> {
        self.sender.retransmit(now, sequence, sent, batch)
    }

    /// Retransmits a packet to one of several receivers in the middle of the frame; see
    /// [`Sender::retransmit_to`].
    ///
    /// # Errors
    /// Those of [`Sender::retransmit`].
    pub fn retransmit_to(
        &mut self,
        now: Instant,
        (receiver, sequence): (usize, SequenceNumber),
        sent: &Batch,
        batch: &mut Batch,
    ) -> Result<bool, Refusal> {
        self.sender.retransmit_to(now, (receiver, sequence), sent, batch)
    }

    /// Returns the frame's timestamp.
    pub fn timestamp(&self) -> RtpTimestamp {
        self.timestamp
    }
}

impl Drop for Outgoing<'_, '_> {
    fn drop(&mut self) {
        if self.sender.statistics.packets > self.packets_before {
            let units_left_out = self.sender.packetiser.units_left_out() as u64;
            self.sender.statistics.units_left_out += units_left_out;
        }
        if self.whole {
            return;
        }
        self.sender.statistics.frames_cut += 1;
        if self.sender.statistics.packets > self.packets_before {
            self.sender.sequence = self.sender.sequence.plus(1);
        }
    }
}
