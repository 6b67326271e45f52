//! Repair packets of a sender: in a stream of their own (RFC 8627 and its draft 03), or between the
//! packets of media, all of them within RED (RFC 5109 section 14.2).
//!
//! The code works on unprotected RTP packets, as they are without RED; repair packets are protected
//! as media is (RFC 8627 section 9, RFC 5109 section 11).

use std::collections::VecDeque;
use std::time::Duration;

use super::PACKET_LEN_MIN;
use super::config::ConfigError;
use super::send::Sender;
use crate::batch::Batch;
use crate::repair::fec::{BlockSize, Encoder, FecFormat, red};
use crate::rtp::{HEADER_LEN, Header};
use crate::seq::{ExtendedSequence, SequenceNumber};
use crate::ssrc::{PayloadType, Ssrc};
use crate::time::RtpTimestamp;

/// Packets of a full block, unless a low ratio needs more for one repair packet. A burst as long as
/// the block's repair packets is recovered: 8 packets at 20 %.
const BLOCK_PACKETS: u16 = 40;

/// Octets of the CSRC that names the source (RFC 8627 section 4.2.1).
const CSRC_LEN: usize = 4;

/// The repair packets that a sender adds to its media.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FecSending {
    /// Their format.
    pub format: FecFormat,
    /// Their payload type.
    pub payload_type: PayloadType,
    /// The payload type of RED, within which media and repair packets are then sent; only for
    /// formats that [need it](FecFormat::is_in_red).
    pub red: Option<PayloadType>,
    /// Their synchronisation source, random; within RED it is that of the media.
    pub ssrc: Ssrc,
    /// The sequence number of the first of them, random; within RED they continue those of the media.
    pub first_sequence: SequenceNumber,
    /// Repair packets for 100 packets of media, at most 100; see [`Sender::set_fec_percent`].
    pub percent: u8,
    /// The longest time from the first packet of a block to its repair packets, if a frame is sent
    /// within its duration. A block ends with a frame if the next one would exceed this time, or
    /// when it is full.
    pub span: Duration,
}

/// The state for repair packets.
#[derive(Debug)]
pub(super) struct SendFec {
    config: FecSending,
    /// `None` if the ratio is zero, and before the first block.
    encoder: Option<Encoder>,
    /// The timestamp of the first packet of the block.
    begun: RtpTimestamp,
    /// The next repair packet.
    sequence: SequenceNumber,
    /// Repair packets that wait for room in a batch: those of one block at most, since they precede
    /// further media.
    waiting: VecDeque<Vec<u8>>,
}

impl SendFec {
    /// Returns the octets by which the longest repair packet exceeds the longest packet of media.
    fn overhead(&self) -> usize {
        let len = if self.config.red.is_some() { red::HEADER_LEN } else { CSRC_LEN };
        len + self.config.format.header_len_max()
    }

    /// Returns whether repair packets are in the stream of the media.
    pub(super) fn is_within(&self) -> bool {
        self.config.red.is_some()
    }

    /// Returns whether the block has packets.
    fn has_begun(&self) -> bool {
        self.encoder.as_ref().is_some_and(|encoder| encoder.pending() > 0)
    }

    /// Adds a packet of `source`, unprotected, to the block.
    fn push(&mut self, source: Ssrc, timestamp: RtpTimestamp, packet: &[u8]) {
        if !self.has_begun() {
            self.begun = timestamp;
            let size = block_size(self.config.format, self.config.percent);
            if self.encoder.as_ref().map(Encoder::size) != size {
                self.encoder = size.map(|size| Encoder::new(size, source));
            }
        }
        if let Some(encoder) = &mut self.encoder {
            encoder.push(packet);
        }
    }

    /// Ends the block: its repair packets wait for room in a batch. `next` is the number of the next
    /// packet of media, which repair packets within RED take.
    fn close(&mut self, source: Ssrc, timestamp: RtpTimestamp, next: &mut ExtendedSequence) {
        let Self { config, encoder: Some(encoder), sequence, waiting, .. } = self else { return };
        encoder.close(|payload| {
            let number = if config.red.is_some() { next.sequence() } else { *sequence };
            let Some(mut packet) = config.head(source, number, timestamp) else { return };
            packet.extend_from_slice(payload);
            waiting.push_back(packet);
            match config.red {
                Some(_) => *next = next.plus(1),
                None => *sequence = sequence.plus(1),
            }
        });
    }
}

impl FecSending {
    /// Returns what precedes the FEC header in a repair packet.
    fn head(
        &self,
        source: Ssrc,
        sequence: SequenceNumber,
        timestamp: RtpTimestamp,
    ) -> Option<Vec<u8>> {
        let mut header = match self.red {
            Some(red) => Header::new(red, sequence, timestamp, source),
            None => Header::new(self.payload_type, sequence, timestamp, self.ssrc),
        };
        if self.red.is_none() && self.format != FecFormat::FlexFec03 {
            header.contributing_sources = vec![source];
        }
        let mut head = vec![0; header.written_len()];
        header.write(&mut head).ok()?;
        head.extend(self.red.map(|_| red::header(self.payload_type)));
        Some(head)
    }
}

impl Sender {
    /// Makes the sender add repair packets to its media. Packets of media are shorter by the octets
    /// that a repair packet adds, so that both fit the largest datagram. To be called after
    /// [`secured`](Self::secured).
    ///
    /// # Errors
    /// [`ConfigError::FecFormat`] for ULPFEC without the payload type of RED, and `FlexFEC` with it;
    /// [`ConfigError::PacketLen`] if the largest datagram is too small for repair packets.
    pub fn with_fec(mut self, config: FecSending) -> Result<Self, ConfigError> {
        if config.red.is_some() != config.format.is_in_red() {
            return Err(ConfigError::FecFormat);
        }
        let fec = SendFec {
            config: FecSending { percent: config.percent.min(100), ..config },
            encoder: None,
            begun: RtpTimestamp(0),
            sequence: config.first_sequence,
            waiting: VecDeque::new(),
        };
        let len = self.config.packet_len_max;
        if len < PACKET_LEN_MIN / 2 + self.trailer_len() + fec.overhead() {
            return Err(ConfigError::PacketLen { len });
        }
        self.fec = Some(Box::new(fec));
        Ok(self)
    }

    /// Sets the repair packets for 100 packets of media, 0..=100, from the next block on; 0 sends
    /// none. Every block has at least one, so that a stream of few packets has more than the ratio.
    pub fn set_fec_percent(&mut self, percent: u8) {
        if let Some(fec) = &mut self.fec {
            fec.config.percent = percent.min(100);
        }
    }

    /// Returns the repair packets for 100 packets of media; 0 without any.
    pub fn fec_percent(&self) -> u8 {
        self.fec.as_ref().map_or(0, |fec| fec.config.percent)
    }

    /// Returns the SSRC of the repair packets, if they have a stream of their own.
    pub fn fec_ssrc(&self) -> Option<Ssrc> {
        self.fec.as_ref().filter(|fec| fec.config.red.is_none()).map(|fec| fec.config.ssrc)
    }

    /// Returns the payload type of RED, if media and repair packets are sent within it.
    pub(super) fn red(&self) -> Option<PayloadType> {
        self.fec.as_ref().and_then(|fec| fec.config.red)
    }

    /// Returns whether packets need more than to be written: they are added to a block, or are sent
    /// within RED.
    #[inline]
    pub(super) fn has_fec_work(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| {
            fec.config.percent > 0 || fec.config.red.is_some() || fec.has_begun()
        })
    }

    /// Returns whether the last packets have no repair packets yet, because their block has not ended:
    /// the next frame or [`keep_alive`](Self::keep_alive) ends it.
    pub fn has_repairs_due(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.has_begun())
    }

    /// Returns the octets that packets of media leave for repair packets.
    pub(super) fn fec_len(&self) -> usize {
        self.fec.as_ref().map_or(0, |fec| fec.overhead() + self.repair_elements_len())
    }

    /// Adds a packet, unprotected, to the block of repair packets.
    pub(super) fn note_for_fec(&mut self, timestamp: RtpTimestamp, packet: &[u8]) {
        if let Some(fec) = &mut self.fec {
            fec.push(self.config.ssrc, timestamp, packet);
        }
    }

    /// Ends the block if it is full.
    pub(super) fn end_fec_block_if_full(&mut self, timestamp: RtpTimestamp) {
        let encoder = self.fec.as_ref().and_then(|fec| fec.encoder.as_ref());
        if encoder.is_some_and(Encoder::is_full) {
            self.end_fec_block(timestamp);
        }
    }

    /// Ends the block at the end of a frame if it would otherwise exceed its span with the next one.
    pub(super) fn end_fec_block_if_due(&mut self, timestamp: RtpTimestamp) {
        let Some(fec) = &self.fec else { return };
        let next = self.next_timestamp();
        // The end of the next frame, if that takes as long as this one.
        let end = i64::from(next.distance(fec.begun)) + i64::from(next.distance(timestamp));
        let span = self.config.clock_rate.ticks(fec.config.span);
        // A timestamp before that of the block's start is a jump.
        if !(0..=i64::from(span)).contains(&end) {
            self.end_fec_block(timestamp);
        }
    }

    /// Ends the block.
    pub(super) fn end_fec_block(&mut self, timestamp: RtpTimestamp) {
        if let Some(fec) = &mut self.fec {
            fec.close(self.config.ssrc, timestamp, &mut self.sequence);
        }
    }

    /// Forgets the block, as when the source has changed.
    pub(super) fn clear_fec(&mut self) {
        if let Some(fec) = &mut self.fec {
            fec.encoder = None;
            fec.waiting.clear();
        }
    }

    /// Writes waiting repair packets into `batch`, which is not to exceed `len_max` octets; returns
    /// `false` if some of them have no room.
    pub(super) fn write_repairs(&mut self, batch: &mut Batch, len_max: usize) -> bool {
        while let Some(len) = self.fec.as_ref().and_then(|fec| fec.waiting.front()).map(Vec::len) {
            let len = len + self.repair_elements_len() + self.trailer_len();
            let room = batch.free().min(len_max.saturating_sub(batch.bytes().len()));
            // A packet longer than the limit has a batch of its own.
            if room < len && !batch.is_empty() {
                return false;
            }
            let packet = self.fec.as_mut().and_then(|fec| fec.waiting.pop_front());
            let Some(mut packet) = packet.filter(|_| len <= batch.free()) else { continue };
            let payload_len = packet.len() - HEADER_LEN;
            self.extend_repair(&mut packet);
            if let Some(protector) = &mut self.protector
                && protector.protect(&mut packet).is_err()
            {
                continue;
            }
            let position = batch.position();
            let Some(place) = batch.place(packet.len()) else { continue };
            place.copy_from_slice(&packet);
            if let Some(extending) = &mut self.extending {
                extending.note_placed(batch);
            }
            self.statistics.repairs += 1;
            self.repair_octets += payload_len as u64;
            // Within RED a lost repair packet leaves a gap in the numbers of the media, so receivers
            // request it.
            if self.red().is_some()
                && let (Some(repair), [_, _, high, low, ..]) = (&mut self.repair, &packet[..])
            {
                let sequence = SequenceNumber(u16::from_be_bytes([*high, *low]));
                repair.history.note(sequence, position, packet.len());
            }
        }
        true
    }
}

/// Returns the block of `percent` repair packets for 100 packets; `None` if the ratio is zero.
fn block_size(format: FecFormat, percent: u8) -> Option<BlockSize> {
    let percent = u16::from(percent);
    let packets = 100_u16.checked_div(percent)?.clamp(BLOCK_PACKETS, format.packets_max());
    let repairs = (packets * percent / 100).max(1);
    BlockSize::new(format, packets, repairs).ok()
}
