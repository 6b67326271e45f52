//! Repair packets of a sender, in a stream of their own (RFC 8627 and its draft 03).
//!
//! The code works on unprotected RTP packets; repair packets are protected as media is (RFC 8627
//! section 9).

use std::collections::VecDeque;
use std::time::Duration;

use super::PACKET_LEN_MIN;
use super::config::ConfigError;
use super::send::Sender;
use crate::batch::Batch;
use crate::repair::fec::{BlockSize, Encoder, FecFormat};
use crate::rtp::{HEADER_LEN, Header};
use crate::seq::SequenceNumber;
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
    /// Their format, one of those with a stream of its own.
    pub format: FecFormat,
    /// Their payload type.
    pub payload_type: PayloadType,
    /// Their synchronisation source, random.
    pub ssrc: Ssrc,
    /// The sequence number of the first of them, random.
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
    /// `None` if the ratio is zero.
    encoder: Option<Encoder>,
    /// The ratio of the encoder's blocks.
    percent: u8,
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
        CSRC_LEN + self.config.format.header_len_max()
    }

    /// Returns whether the block has packets.
    fn has_begun(&self) -> bool {
        self.encoder.as_ref().is_some_and(|encoder| encoder.pending() > 0)
    }

    /// Adds a packet of `source`, unprotected, to the block, and ends the block if it is full.
    fn push(&mut self, source: Ssrc, timestamp: RtpTimestamp, packet: &[u8]) {
        if !self.has_begun() {
            self.begun = timestamp;
            if self.percent != self.config.percent {
                self.percent = self.config.percent;
                let size = block_size(self.config.format, self.percent);
                self.encoder = size.map(|size| Encoder::new(size, source));
            }
        }
        if let Some(encoder) = &mut self.encoder {
            encoder.push(packet);
            if encoder.is_full() {
                self.close(source, timestamp);
            }
        }
    }

    /// Ends the block: its repair packets wait for room in a batch.
    fn close(&mut self, source: Ssrc, timestamp: RtpTimestamp) {
        let Self { config, encoder: Some(encoder), sequence, waiting, .. } = self else { return };
        let FecSending { payload_type, ssrc, .. } = *config;
        encoder.close(|payload| {
            let mut header = Header::new(payload_type, *sequence, timestamp, ssrc);
            if config.format != FecFormat::FlexFec03 {
                header.contributing_sources = vec![source];
            }
            let mut packet = vec![0; header.written_len()];
            if header.write(&mut packet).is_ok() {
                packet.extend_from_slice(payload);
                waiting.push_back(packet);
                *sequence = sequence.plus(1);
            }
        });
    }
}

impl Sender {
    /// Makes the sender add repair packets to its media, in a stream of their own. Packets of media
    /// are shorter by the octets that a repair packet adds, so that both fit the largest datagram.
    /// To be called after [`secured`](Self::secured).
    ///
    /// # Errors
    /// [`ConfigError::FecFormat`] for ULPFEC, whose packets are in the stream of the media;
    /// [`ConfigError::PacketLen`] if the largest datagram is too small for repair packets.
    pub fn with_fec(mut self, config: FecSending) -> Result<Self, ConfigError> {
        if config.format == FecFormat::Ulp {
            return Err(ConfigError::FecFormat);
        }
        let fec = SendFec {
            config: FecSending { percent: config.percent.min(100), ..config },
            encoder: None,
            percent: 0,
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

    /// Returns the SSRC of the repair packets, if there are any.
    pub fn fec_ssrc(&self) -> Option<Ssrc> {
        self.fec.as_ref().map(|fec| fec.config.ssrc)
    }

    /// Returns whether the last packets have no repair packets yet, because their block has not ended:
    /// the next frame or [`keep_alive`](Self::keep_alive) ends it.
    pub fn has_repairs_due(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.has_begun())
    }

    /// Returns the octets that packets of media leave for repair packets.
    pub(super) fn fec_len(&self) -> usize {
        self.fec.as_ref().map_or(0, |fec| fec.overhead())
    }

    /// Adds a packet, unprotected, to the block of repair packets.
    pub(super) fn note_for_fec(&mut self, timestamp: RtpTimestamp, packet: &[u8]) {
        if let Some(fec) = &mut self.fec {
            fec.push(self.config.ssrc, timestamp, packet);
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
            fec.close(self.config.ssrc, timestamp);
        }
    }

    /// Forgets the block, as when the source has changed.
    pub(super) fn clear_fec(&mut self) {
        if let Some(fec) = &mut self.fec {
            (fec.encoder, fec.percent) = (None, 0);
            fec.waiting.clear();
        }
    }

    /// Writes waiting repair packets into `batch`, which is not to exceed `len_max` octets; returns
    /// `false` if some of them have no room.
    pub(super) fn write_repairs(&mut self, batch: &mut Batch, len_max: usize) -> bool {
        while let Some(len) = self.fec.as_ref().and_then(|fec| fec.waiting.front()).map(Vec::len) {
            let len = len + self.trailer_len();
            let room = batch.free().min(len_max.saturating_sub(batch.bytes().len()));
            // A packet longer than the limit has a batch of its own.
            if room < len && !batch.is_empty() {
                return false;
            }
            let packet = self.fec.as_mut().and_then(|fec| fec.waiting.pop_front());
            let Some(mut packet) = packet.filter(|_| len <= batch.free()) else { continue };
            if let Some(protector) = &mut self.protector
                && protector.protect(&mut packet).is_err()
            {
                continue;
            }
            if let Some(place) = batch.place(packet.len()) {
                place.copy_from_slice(&packet);
                self.statistics.repairs += 1;
                self.repair_octets += (len - HEADER_LEN - self.trailer_len()) as u64;
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
