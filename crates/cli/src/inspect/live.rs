//! One stream, fed into the library's receiver at the times of its capture.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rushes::file::FileError;
use rushes::payload::FrameSettings;
use rushes::proto::rtp::Packet;
use rushes::proto::stream::{ReceiveStatistics, Receiver, ReceiverConfig};
use rushes::{Delivery, Discard, PayloadType, SequenceNumber, Ssrc};

use super::census::Census;
use super::codec::Encoding;
use super::extract::Extraction;
use super::names::packet_type;

/// Maximum number of octets in one stream's reorder window: there may be many streams.
const REORDER_LEN_MAX: usize = 1 << 20;

/// The fixed part of an RTP header.
const HEADER_LEN: usize = 12;

/// A stream and its receiver.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) encoding: Encoding,
    pub(crate) payload_type: PayloadType,
    receiver: Receiver,
    pub(crate) census: Census,
    /// Number of payloads by packet type.
    pub(crate) packet_types: BTreeMap<&'static str, u64>,
    highest: Option<SequenceNumber>,
    /// Packets received after one with a higher sequence number, without duplicates.
    pub(crate) reordered: u64,
    scratch: Vec<u8>,
}

impl Live {
    /// Creates a receiver of `encoding`; returns `None` for payload types that are not valid in
    /// RTP.
    pub(crate) fn new(
        ssrc: Ssrc,
        payload_type: u8,
        encoding: Encoding,
        reorder_time: Duration,
    ) -> Option<Self> {
        let payload_type = PayloadType::new(payload_type)?;
        let mut config = ReceiverConfig::new(payload_type, encoding.clock_rate);
        config.remote_ssrc = Some(ssrc);
        config.frame = FrameSettings { delivery: Delivery::Unit, ..FrameSettings::default() };
        config.reorder_time = reorder_time;
        config.reorder_len_max = REORDER_LEN_MAX;
        // Silence does not end a stream within a capture.
        config.source_timeout = Duration::MAX;
        let receiver = Receiver::new(encoding.format(), config).ok()?;
        let census = Census::new(encoding.nal_codec(), encoding.codec);
        Some(Self {
            encoding,
            payload_type,
            receiver,
            census,
            packet_types: BTreeMap::new(),
            highest: None,
            reordered: 0,
            scratch: Vec::new(),
        })
    }

    /// Handles a packet of the stream that was received at `now`. Unless it is `whole`, only its
    /// header is used.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        datagram: &[u8],
        whole: bool,
        extraction: Option<&mut Extraction>,
    ) -> Result<(), FileError> {
        self.wait_until(now);
        let Ok(packet) = Packet::parse(datagram) else { return Ok(()) };
        let own = packet.payload_type() == self.payload_type.value();
        let behind = self.highest.is_some_and(|highest| packet.sequence().distance(highest) < 0);
        let duplicates = behind.then(|| self.duplicates());
        if own
            && let Some(nal) = self.encoding.nal_codec()
            && !packet.payload().is_empty()
        {
            *self.packet_types.entry(packet_type(nal, packet.payload())).or_default() += 1;
        }
        if own && whole {
            self.receiver.handle_datagram(now, datagram);
        } else {
            // Of a packet that was cut or has another payload type, only the sequence number and
            // the timestamp are used.
            self.scratch.clear();
            self.scratch.extend_from_slice(&datagram[..HEADER_LEN]);
            self.scratch[0] = 0x80;
            self.scratch[1] = datagram[1] & 0x80 | self.payload_type.value();
            self.receiver.handle_datagram(now, &self.scratch);
        }
        if let Some(before) = duplicates {
            self.reordered += u64::from(self.duplicates() == before);
        } else {
            self.highest = Some(packet.sequence());
        }
        self.drain(extraction)
    }

    /// Stops waiting for missing packets and handles the frames that this releases.
    pub(crate) fn finish(&mut self, extraction: Option<&mut Extraction>) -> Result<(), FileError> {
        while let Some(due) = self.receiver.poll_timeout() {
            self.receiver.handle_timeout(due);
        }
        self.drain(extraction)
    }

    pub(crate) fn statistics(&self) -> ReceiveStatistics {
        self.receiver.statistics()
    }

    fn duplicates(&self) -> u64 {
        self.receiver.statistics().discards.get(Discard::Duplicate)
    }

    /// Handles all timeouts due before `now`.
    fn wait_until(&mut self, now: Instant) {
        while let Some(due) = self.receiver.poll_timeout().filter(|due| *due <= now) {
            self.receiver.handle_timeout(due);
        }
    }

    fn drain(&mut self, mut extraction: Option<&mut Extraction>) -> Result<(), FileError> {
        while self.receiver.poll_event().is_some() {}
        while let Some(frame) = self.receiver.poll_frame() {
            self.census.take(&frame);
            if let Some(extraction) = &mut extraction {
                extraction.write(&frame)?;
            }
        }
        Ok(())
    }
}
