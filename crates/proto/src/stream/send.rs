//! The send path: one frame in, batches of datagrams out.
//!
//! ```text
//! frame ─▶ split ─▶ write ─▶ place
//!          │        │        │
//!          payload  rtp      batch
//! ```
//!
//! The mirror of this module is `receive`; the wire layouts are in `rtp` and `payload`.

use std::fmt;

use super::config::ConfigError;
use super::config::SenderConfig;
use super::stats::SendStatistics;
use crate::batch::Batch;
use crate::payload::Fragment;
use crate::payload::FrameError;
use crate::payload::Packetiser;
use crate::rtp::HEADER_LEN;
use crate::seq::SequenceNumber;
use crate::time::RtpTimestamp;

/// The sending half of a stream: splits frames, numbers packets, writes them into batches.
pub struct Sender {
    packetiser: Box<dyn Packetiser>,
    config: SenderConfig,
    sequence: SequenceNumber,
    /// Automatic timestamps count from here, one frame interval (or frame duration) each.
    clock_base: RtpTimestamp,
    clock_frames: u64,
    fragment: Fragment,
    statistics: SendStatistics,
}

impl Sender {
    /// A sender of frames that `packetiser` splits.
    ///
    /// # Errors
    /// [`ConfigError::PacketLen`].
    pub fn new(packetiser: Box<dyn Packetiser>, config: SenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            packetiser,
            sequence: config.first_sequence,
            clock_base: config.first_timestamp,
            clock_frames: 0,
            config,
            fragment: Fragment::default(),
            statistics: SendStatistics::default(),
        })
    }

    /// Takes up `frame`, sampled at `timestamp` or, without one, one frame interval (or, in
    /// formats that know it, one frame duration) after the frame before.
    ///
    /// # Errors
    /// [`FrameError`]; nothing changes then.
    pub fn push<'s, 'f>(
        &'s mut self,
        frame: &'f [u8],
        timestamp: Option<RtpTimestamp>,
    ) -> Result<Outgoing<'s, 'f>, FrameError> {
        self.packetiser.start(frame, self.config.packet_len_max - HEADER_LEN)?;
        if let Some(timestamp) = timestamp {
            self.clock_base = timestamp;
            self.clock_frames = 0;
        }
        let timestamp = self.next_timestamp();
        match self.packetiser.duration(frame) {
            Some(ticks) => {
                self.clock_base = timestamp.plus(ticks);
                self.clock_frames = 0;
            }
            None => self.clock_frames += 1,
        }
        self.statistics.frames += 1;
        self.statistics.frame_octets += frame.len() as u64;
        Ok(Outgoing { sender: self, frame, timestamp, waiting: false, done: false })
    }

    /// Writes one packet without payload into `batch`, emptied first.
    ///
    /// Receivers ignore it but count it, and so learn of packets lost at the end of a stream. Its
    /// timestamp is that of the next frame, so that it belongs to none that was sent.
    pub fn keep_alive(&mut self, batch: &mut Batch) {
        batch.clear();
        self.fragment.clear();
        let timestamp = self.next_timestamp();
        self.write(&[], timestamp, batch);
    }

    /// The timestamp of the next frame that is given none.
    pub fn next_timestamp(&self) -> RtpTimestamp {
        let ticks = self.config.frame_rate.ticks(self.clock_frames, self.config.clock_rate);
        self.clock_base.plus(ticks)
    }

    /// What was sent so far.
    pub fn statistics(&self) -> SendStatistics {
        self.statistics
    }

    /// What the sender was told.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Writes the packet of the fragment in hand; `false` if it is too long for the batch.
    #[inline]
    fn write(&mut self, frame: &[u8], timestamp: RtpTimestamp, batch: &mut Batch) -> bool {
        let payload_len = self.fragment.len();
        let Some(packet) = batch.place(HEADER_LEN + payload_len) else { return false };
        let Some((header, payload)) = packet.split_first_chunk_mut::<HEADER_LEN>() else {
            return false;
        };
        header[0] = 0x80;
        header[1] = u8::from(self.fragment.marker()) << 7 | self.config.payload_type.value();
        header[2..4].copy_from_slice(&self.sequence.0.to_be_bytes());
        header[4..8].copy_from_slice(&timestamp.0.to_be_bytes());
        header[8..12].copy_from_slice(&self.config.ssrc.0.to_be_bytes());
        self.fragment.write(frame, payload);
        self.sequence = self.sequence.plus(1);
        self.statistics.packets += 1;
        self.statistics.payload_octets += payload_len as u64;
        true
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("config", &self.config)
            .field("sequence", &self.sequence)
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}

/// A frame on its way out. Dropped early, the rest of the frame is not sent.
#[derive(Debug)]
pub struct Outgoing<'s, 'f> {
    sender: &'s mut Sender,
    frame: &'f [u8],
    timestamp: RtpTimestamp,
    /// The fragment in hand did not fit the last batch.
    waiting: bool,
    done: bool,
}

impl Outgoing<'_, '_> {
    /// Empties `batch` and fills it with the next packets; `false` if there are none left.
    pub fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.clear();
        while !self.done && batch.free() >= self.sender.config.packet_len_max {
            if !std::mem::take(&mut self.waiting) {
                self.sender.fragment.clear();
                if !self.sender.packetiser.next(self.frame, &mut self.sender.fragment) {
                    self.done = true;
                    break;
                }
            }
            if !self.sender.write(self.frame, self.timestamp, batch) {
                // Formats that cannot split make packets longer than asked for; one that is
                // longer than a datagram can be is a mistake of its format.
                self.waiting = !batch.is_empty();
                self.done = batch.is_empty();
                debug_assert!(self.waiting, "a payload longer than any datagram");
                break;
            }
        }
        !batch.is_empty()
    }

    /// The frame's timestamp.
    pub fn timestamp(&self) -> RtpTimestamp {
        self.timestamp
    }
}
