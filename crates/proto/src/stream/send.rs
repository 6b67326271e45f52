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
use std::time::Instant;

#[cfg(feature = "srtp")]
use super::PACKET_LEN_MIN;
use super::config::{ConfigError, SenderConfig};
use super::event::Event;
use super::frame_elements::FrameElements;
use super::outgoing::Outgoing;
use super::send_elements::SendElements;
use super::send_fec::SendFec;
use super::stats::SendStatistics;
use crate::batch::Batch;
use crate::payload::{Fragment, FrameError, Packetiser, PaddingLimit, TemporalLayers};
use crate::repair::fec::red;
use crate::repair::{History, Refusal, rtx};
use crate::rtp::{CaptureTime, ExtensionMap, HEADER_LEN, Header, Packet};
use crate::seq::{ExtendedSequence, SequenceNumber};
use crate::srtp::Protector;
use crate::ssrc::{PayloadType, Ssrc};
use crate::time::RtpTimestamp;

/// How packets are retransmitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retransmission {
    /// Packets are sent again unchanged, in the stream to which they belong.
    Verbatim,
    /// Packets are sent again in a separate stream (RFC 4588, SSRC multiplexing).
    Rtx {
        /// The payload type of that stream.
        payload_type: PayloadType,
        /// The synchronisation source of that stream, random.
        ssrc: Ssrc,
        /// The sequence number of the first packet of that stream, random.
        first_sequence: SequenceNumber,
    },
}

/// The state for retransmissions.
#[derive(Debug)]
pub(super) struct Repair {
    pub(super) history: History,
    retransmission: Retransmission,
    /// The next packet of the retransmission stream.
    sequence: SequenceNumber,
    scratch: Vec<u8>,
}

/// The sending half of a stream: splits frames, numbers packets, writes them into batches.
pub struct Sender {
    pub(super) packetiser: Box<dyn Packetiser>,
    /// The temporal layers that are sent; `None` if all are.
    layers: Option<TemporalLayers>,
    /// The limit of padding, in thousandths of what is sent.
    padding_per_mille: u16,
    pub(super) config: SenderConfig,
    /// The sequence number of the next packet.
    pub(super) sequence: ExtendedSequence,
    /// Automatic timestamps begin here and advance by one frame interval (or frame duration) each.
    clock_base: RtpTimestamp,
    clock_frames: u64,
    pub(super) fragment: Fragment,
    /// What header extensions carry; `None` if none were agreed on.
    pub(super) extending: Option<Box<SendElements>>,
    /// Memory for the elements of a packet.
    pub(super) elements: Vec<u8>,
    /// Memory for a packet with a header extension.
    pub(super) scratch: Vec<u8>,
    pub(super) repair: Option<Repair>,
    pub(super) fec: Option<Box<SendFec>>,
    pub(super) protector: Option<Box<Protector>>,
    pub(super) statistics: SendStatistics,
    /// Octets of payload in retransmitted packets.
    retransmitted_octets: u64,
    /// Octets of payload in repair packets.
    pub(super) repair_octets: u64,
}

/// The outcome of writing a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Written {
    /// The packet is in the batch.
    Placed,
    /// The packet does not fit the batch.
    Full,
    /// The packet could not be protected and must not be sent clear, or its format is faulty.
    Refused,
}

impl Sender {
    /// Creates a sender of frames that `packetiser` splits.
    ///
    /// # Errors
    /// [`ConfigError::PacketLen`] if the configured length of datagrams is out of range.
    pub fn new(packetiser: Box<dyn Packetiser>, config: SenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            packetiser,
            layers: None,
            padding_per_mille: 0,
            sequence: ExtendedSequence(config.first_sequence.0.into()),
            clock_base: config.first_timestamp,
            clock_frames: 0,
            config,
            fragment: Fragment::default(),
            extending: None,
            elements: Vec::new(),
            scratch: Vec::new(),
            repair: None,
            fec: None,
            protector: None,
            statistics: SendStatistics::default(),
            retransmitted_octets: 0,
            repair_octets: 0,
        })
    }

    /// Lets the sender add up to `per_mille` thousandths to the octets of its datagrams, so that packets
    /// of neighbouring NAL units have one length: as padding (RFC 3550 section 5.1), and as headers of
    /// additional packets. Many equal packets cost the system as much as one. By default, and with 0,
    /// nothing is added.
    #[must_use]
    pub fn with_padding_limit(mut self, per_mille: u16) -> Self {
        self.padding_per_mille = per_mille;
        self
    }

    /// Makes the sender write the elements of `extensions` into header extensions: the capture time
    /// of a frame into its first packet, the sending time and the transport-wide number of a packet
    /// into each, and those that the application gives for a [frame](Self::push_with).
    #[must_use]
    pub fn with_extensions(mut self, extensions: ExtensionMap) -> Self {
        let is_any = !extensions.is_empty();
        self.extending = is_any.then(|| Box::new(SendElements::new(extensions)));
        self
    }

    /// Makes the sender remember its last `packets` packets, so that it can retransmit them.
    ///
    /// It must then be used with a single batch, made [with a history](Batch::with_history).
    #[must_use]
    pub fn with_history(mut self, packets: usize, retransmission: Retransmission) -> Self {
        let sequence = match retransmission {
            Retransmission::Rtx { first_sequence, .. } => first_sequence,
            Retransmission::Verbatim => SequenceNumber(0),
        };
        let (history, scratch) = (History::new(packets), Vec::new());
        self.repair = Some(Repair { history, retransmission, sequence, scratch });
        self
    }

    /// Makes the sender limit the retransmissions to each of this number of receivers, 1..=64, by
    /// themselves; by default there is one. Set it after
    /// [`with_history`](Self::with_history).
    #[must_use]
    pub fn with_receivers(mut self, receivers: usize) -> Self {
        if let Some(repair) = &mut self.repair {
            repair.history = History::for_receivers(repair.history.packets(), receivers);
        }
        self
    }

    /// Protects all packets of the sender (RFC 3711).
    ///
    /// # Errors
    /// [`ConfigError::PacketLen`] if the largest datagram is too small for the added octets.
    #[cfg(feature = "srtp")]
    pub fn secured(mut self, protector: Protector) -> Result<Self, ConfigError> {
        let len = self.config.packet_len_max;
        if len < PACKET_LEN_MIN / 2 + protector.overhead() {
            return Err(ConfigError::PacketLen { len });
        }
        self.protector = Some(Box::new(protector));
        Ok(self)
    }

    /// Switches to another master key with the next packet. Packets under the previous key can no
    /// longer be retransmitted in a separate stream.
    ///
    /// # Errors
    /// [`PolicyError`](crate::srtp::PolicyError) if the key does not fit, or the stream is not
    /// secured.
    #[cfg(feature = "srtp")]
    pub fn set_master_key(
        &mut self,
        key: &crate::srtp::MasterKey,
    ) -> Result<(), crate::srtp::PolicyError> {
        let Some(protector) = &mut self.protector else {
            return Err(crate::srtp::PolicyError::KeyOfAnotherSuite);
        };
        protector.set_master_key(key)?;
        if let Some(repair) = &mut self.repair
            && repair.retransmission != Retransmission::Verbatim
        {
            repair.history.clear();
        }
        Ok(())
    }

    /// Returns the protection of the packets, if the stream is secured.
    #[cfg(feature = "srtp")]
    pub fn protector(&mut self) -> Option<&mut Protector> {
        self.protector.as_deref_mut()
    }

    /// Adds packet `sequence`, found in `sent`, once more to `batch`; `false` if `batch` is full.
    ///
    /// # Errors
    /// [`Refusal`], counted in the statistics, if the packet is gone or was requested too often.
    pub fn retransmit(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        sent: &Batch,
        batch: &mut Batch,
    ) -> Result<bool, Refusal> {
        self.retransmit_to(now, (0, sequence), sent, batch)
    }

    /// As [`retransmit`](Self::retransmit), for receiver number `receiver` of
    /// [several](Self::with_receivers): the requests of each are limited by themselves.
    ///
    /// # Errors
    /// As [`retransmit`](Self::retransmit).
    pub fn retransmit_to(
        &mut self,
        now: Instant,
        (receiver, sequence): (usize, SequenceNumber),
        sent: &Batch,
        batch: &mut Batch,
    ) -> Result<bool, Refusal> {
        if batch.free() < self.config.packet_len_max + rtx::HEADER_LEN {
            return Ok(false);
        }
        self.set_now(now);
        let rest = (self.protector.as_deref_mut(), self.extending.as_deref_mut());
        let outcome = match &mut self.repair {
            Some(repair) => repair.write(now, (receiver, sequence), sent, batch, rest),
            None => Err(Refusal::Unknown),
        };
        match outcome {
            Ok(written) => {
                if written {
                    let len = batch.lengths().last().map_or(0, |len| usize::from(*len));
                    let headers_len = HEADER_LEN + self.trailer_len();
                    self.statistics.retransmitted += 1;
                    self.retransmitted_octets += len.saturating_sub(headers_len) as u64;
                }
                Ok(written)
            }
            Err(refusal) => {
                self.statistics.retransmissions_refused += 1;
                Err(refusal)
            }
        }
    }

    /// Returns the octets of RTP payload in retransmitted packets.
    pub fn retransmitted_octets(&self) -> u64 {
        self.retransmitted_octets
    }

    /// Returns the packets sent under the SSRC of the media and the octets of their payload, as
    /// sender reports count them (RFC 3550 section 6.4.1): repair packets are among them only within
    /// RED.
    pub fn reported(&self) -> (u64, u64) {
        let SendStatistics { packets, payload_octets, repairs, .. } = self.statistics;
        match self.red() {
            Some(_) => (packets + repairs, payload_octets + self.repair_octets),
            None => (packets, payload_octets),
        }
    }

    /// Leaves out the frames of temporal layers above `max`, from the next frame on; `None` sends all.
    /// Those of a higher layer than before are sent from the next one on at which a decoder can
    /// [begin](crate::payload::Layers::begins_layer) with it. Frames that do not tell their layer are
    /// sent.
    pub fn set_max_temporal_id(&mut self, max: Option<u8>) {
        match &mut self.layers {
            Some(layers) => layers.set_max(max.unwrap_or(u8::MAX)),
            None => self.layers = max.map(TemporalLayers::up_to),
        }
    }

    /// Returns the SSRC of the retransmission stream, if there is one (RFC 4588).
    pub fn retransmission_ssrc(&self) -> Option<Ssrc> {
        match self.repair.as_ref()?.retransmission {
            Retransmission::Rtx { ssrc, .. } => Some(ssrc),
            Retransmission::Verbatim => None,
        }
    }

    /// Switches to another synchronisation source, as after a collision (RFC 3550 section 8.2);
    /// packets of the previous one are not retransmitted.
    pub fn set_ssrc(&mut self, ssrc: Ssrc) {
        self.config.ssrc = ssrc;
        if self.protector.is_some() {
            // RFC 4568 section 6.4: a receiver without the first packets must still find the index.
            self.sequence.0 &= !0x8000;
        }
        if let Some(repair) = &mut self.repair {
            repair.history.clear();
        }
        if let Some(extending) = &mut self.extending {
            extending.is_acknowledged = false;
        }
        self.clear_fec();
    }

    /// Returns the next event of the master key of sent packets: [`Event::KeyExpiring`] or
    /// [`Event::KeyExpired`].
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.protector.as_mut()?.poll_event()?;
        Some(event.into())
    }

    /// Starts sending `frame`, sampled at `timestamp`. Without a timestamp, the frame follows the
    /// previous one by one frame interval or, in formats that know it, one frame duration.
    ///
    /// # Errors
    /// [`FrameError`]; the sender is then unchanged.
    pub fn push<'s, 'f>(
        &'s mut self,
        frame: &'f [u8],
        timestamp: Option<RtpTimestamp>,
    ) -> Result<Outgoing<'s, 'f>, FrameError> {
        self.push_captured(frame, timestamp, None)
    }

    /// As [`push`](Self::push), of a frame that was captured at `capture`. Its first packet carries
    /// that time if it was [agreed on](Self::with_extensions); the payloads of all its packets have
    /// room for it.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_captured<'s, 'f>(
        &'s mut self,
        frame: &'f [u8],
        timestamp: Option<RtpTimestamp>,
        capture: Option<CaptureTime>,
    ) -> Result<Outgoing<'s, 'f>, FrameError> {
        self.push_with(frame, timestamp, capture, &FrameElements::default())
    }

    /// As [`push_captured`](Self::push_captured), of a frame whose packets carry `elements`. The
    /// payloads of all its packets have room for the packet with most of them.
    ///
    /// # Errors
    /// As [`push`](Self::push), and [`FrameError::Element`] if an element was not agreed on or has a
    /// length that cannot be sent.
    pub fn push_with<'s, 'f>(
        &'s mut self,
        frame: &'f [u8],
        timestamp: Option<RtpTimestamp>,
        capture: Option<CaptureTime>,
        elements: &FrameElements,
    ) -> Result<Outgoing<'s, 'f>, FrameError> {
        if self.protector.as_mut().is_some_and(|protector| protector.is_expired()) {
            return Err(FrameError::KeyExpired);
        }
        let ssrc = self.config.ssrc;
        if self.protector.as_ref().is_some_and(|protector| !protector.has_room(ssrc)) {
            return Err(FrameError::TooManySources);
        }
        self.set_elements(capture, elements)?;
        let limit = self.payload_len_max();
        self.packetiser.set_padding_limit(self.padding_limit());
        self.packetiser.start(frame, limit)?;
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
        if let Some(layers) = &mut self.layers
            && !layers.takes(self.packetiser.layers(frame))
        {
            self.statistics.frames_left_out += 1;
            return Ok(Outgoing::left_out(self, frame, timestamp));
        }
        self.statistics.frames += 1;
        self.statistics.frame_octets += frame.len() as u64;
        Ok(Outgoing::new(self, frame, timestamp))
    }

    /// Sets the number of the first packet of the next frame, in a format whose packets are
    /// [numbered by the application](crate::payload::Packetiser::set_first_packet).
    pub fn set_first_packet(&mut self, number: u32) {
        self.packetiser.set_first_packet(number);
    }

    /// Checks that packets have room for the format's payloads, before there is a frame.
    ///
    /// # Errors
    /// [`FrameError`] if no frame could be sent.
    pub fn check(&self) -> Result<(), FrameError> {
        self.packetiser.check(self.payload_len_max())
    }

    /// Returns how much the packetiser may add to the frame whose elements are set.
    fn padding_limit(&self) -> PaddingLimit {
        let per_mille = self.padding_per_mille;
        if per_mille == 0 {
            return PaddingLimit::default();
        }
        let red_len = if self.red().is_some() { red::HEADER_LEN } else { 0 };
        let fixed_len = HEADER_LEN + red_len + self.trailer_len();
        let [first, middle, last] = self.elements_len_of_each();
        let header_len = fixed_len + first.min(middle).min(last);
        PaddingLimit { per_mille, header_len, more_header_len: fixed_len + middle }
    }

    /// Returns the maximum octets of a payload in the next packets.
    fn payload_len_max(&self) -> usize {
        let extension_len = self.packetiser.extension_len_max() + self.elements_len();
        let overhead = HEADER_LEN + extension_len + self.trailer_len() + self.fec_len();
        self.config.packet_len_max.saturating_sub(overhead)
    }

    /// Empties `batch` and writes one packet without payload into it.
    ///
    /// Receivers ignore the packet but count it, and so detect packets lost at the end of a stream.
    /// Its timestamp is that of the next frame, so that it belongs to no frame sent before.
    pub fn keep_alive(&mut self, batch: &mut Batch) {
        batch.clear();
        self.fragment.clear();
        // A frame without elements cannot be refused.
        let _ = self.set_elements(None, &FrameElements::default());
        let timestamp = self.next_timestamp();
        self.write(&[], timestamp, batch);
        self.finish(batch);
        self.end_fec_block(timestamp);
        self.write_repairs(batch, usize::MAX);
    }

    /// Returns the timestamp of the next frame that is pushed without one.
    pub fn next_timestamp(&self) -> RtpTimestamp {
        let ticks = self.config.frame_rate.ticks(self.clock_frames, self.config.clock_rate);
        self.clock_base.plus(ticks)
    }

    /// Returns the sequence number of the next packet.
    pub fn next_sequence(&self) -> SequenceNumber {
        self.sequence.sequence()
    }

    /// Returns the statistics of the packets sent so far.
    pub fn statistics(&self) -> SendStatistics {
        self.statistics
    }

    /// Returns the sender's configuration.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Returns the octets that protection adds to a packet.
    #[inline]
    pub(super) fn trailer_len(&self) -> usize {
        self.protector.as_ref().map_or(0, |protector| protector.overhead())
    }

    /// Completes the protection of the packets in `batch`.
    #[inline]
    pub(super) fn finish(&mut self, batch: &mut Batch) {
        if let Some(protector) = &mut self.protector {
            protector.finish(batch.bytes_mut());
        }
    }

    /// Writes the packet of the current fragment.
    #[inline]
    pub(super) fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        batch: &mut Batch,
    ) -> Written {
        let has_extension = self.fragment.extension().is_some() || self.has_elements_due();
        if has_extension || self.has_fec_work() {
            return self.write_extended(frame, timestamp, batch);
        }
        let payload_len = self.fragment.len();
        let padding_len = usize::from(self.fragment.padding());
        let len = HEADER_LEN + payload_len + padding_len + self.trailer_len();
        let (position, at) = (batch.position(), batch.bytes().len());
        let Some(packet) = batch.place(len) else { return Written::Full };
        let Some((header, payload)) = packet.split_first_chunk_mut::<HEADER_LEN>() else {
            return Written::Full;
        };
        *header = self.header(timestamp);
        if let Some(protector) = &mut self.protector {
            let (written, rest) = if padding_len > 0 {
                let padded = payload_len + padding_len;
                write_padded(&self.fragment, frame, &mut payload[..padded]);
                (padded, &[][..])
            } else {
                self.fragment.write_except_last(frame, payload)
            };
            if protector.protect_in_place(at, packet, HEADER_LEN + written, rest).is_err() {
                batch.take_back();
                return Written::Refused;
            }
            if protector.is_full() {
                protector.finish(batch.bytes_mut());
            }
        } else {
            write_padded(&self.fragment, frame, payload);
        }
        self.note_written(position, len, payload_len);
        Written::Placed
    }

    /// Counts a packet of `len` octets that was written at `position`.
    #[inline]
    pub(super) fn note_written(&mut self, position: u64, len: usize, payload_len: usize) {
        if let Some(repair) = &mut self.repair {
            repair.history.note(self.sequence.sequence(), position, len);
        }
        if let Some(extending) = &mut self.extending {
            extending.note_written();
        }
        self.sequence = self.sequence.plus(1);
        self.statistics.packets += 1;
        self.statistics.payload_octets += payload_len as u64;
        self.statistics.padding_octets += u64::from(self.fragment.padding());
    }

    /// Returns the header of the packet of the current fragment.
    #[inline]
    pub(super) fn header(&self, timestamp: RtpTimestamp) -> [u8; HEADER_LEN] {
        let kind = u8::from(self.fragment.marker()) << 7 | self.config.payload_type.value();
        let [q1, q0] = self.sequence.sequence().0.to_be_bytes();
        let [t3, t2, t1, t0] = timestamp.0.to_be_bytes();
        let [s3, s2, s1, s0] = self.config.ssrc.0.to_be_bytes();
        let first = 0x80 | u8::from(self.fragment.padding() > 0) << 5;
        [first, kind, q1, q0, t3, t2, t1, t0, s3, s2, s1, s0]
    }
}

/// Writes the payload of `fragment` and its padding into `out`, which has their length.
#[inline]
pub(super) fn write_padded(fragment: &Fragment, frame: &[u8], out: &mut [u8]) {
    let (payload, padding) = out.split_at_mut(fragment.len());
    fragment.write(frame, payload);
    if let Some((count, zeros)) = padding.split_last_mut() {
        zeros.fill(0);
        *count = fragment.padding();
    }
}

impl Repair {
    fn write(
        &mut self,
        now: Instant,
        (receiver, sequence): (usize, SequenceNumber),
        sent: &Batch,
        batch: &mut Batch,
        (protector, extending): (Option<&mut Protector>, Option<&mut SendElements>),
    ) -> Result<bool, Refusal> {
        let packet = self.history.recall_for(now, receiver, sequence, sent)?;
        let Retransmission::Rtx { payload_type, ssrc, .. } = self.retransmission else {
            let Some(place) = batch.place(packet.len()) else { return Ok(false) };
            place.copy_from_slice(packet);
            return Ok(true);
        };
        let has_elements = extending.as_ref().is_some_and(|it| it.are_due_in_repair());
        // A header extension precedes the original number; padding is left out (RFC 4588 section 4).
        if packet[0] & 0x30 != 0 || has_elements {
            let rest = (protector, extending);
            return self.write_extended(packet.to_vec(), sequence, batch, rest);
        }
        let (at, len) = (batch.bytes().len(), packet.len() + rtx::HEADER_LEN);
        let Some(place) = batch.place(len) else { return Ok(false) };
        let header = |place: &mut [u8], original: &[u8]| {
            place[..HEADER_LEN].copy_from_slice(&original[..HEADER_LEN]);
            place[1] = original[1] & 0x80 | payload_type.value();
            place[2..4].copy_from_slice(&self.sequence.0.to_be_bytes());
            place[8..12].copy_from_slice(&ssrc.0.to_be_bytes());
            place[12..14].copy_from_slice(&sequence.0.to_be_bytes());
        };
        header(place, packet);
        if let Some(protector) = protector {
            // The packet in the slab is encrypted under the SSRC and sequence number of the media.
            self.scratch.clear();
            self.scratch.extend_from_slice(packet);
            let clear = protector.decrypt_own(&mut self.scratch);
            let outcome = clear.map(|clear| {
                let payload = &self.scratch[HEADER_LEN..clear];
                protector.protect_in_place(at, place, HEADER_LEN + rtx::HEADER_LEN, payload)
            });
            if !matches!(outcome, Some(Ok(()))) {
                batch.take_back();
                return Err(Refusal::Unknown);
            }
            protector.finish(batch.bytes_mut());
        } else {
            place[HEADER_LEN + rtx::HEADER_LEN..].copy_from_slice(&packet[HEADER_LEN..]);
        }
        self.sequence = self.sequence.plus(1);
        Ok(true)
    }

    /// Writes a packet with a header extension, which precedes the original sequence number, or with
    /// padding, which is left out (RFC 4588 section 4); otherwise like [`write`](Self::write).
    #[cold]
    fn write_extended(
        &mut self,
        mut packet: Vec<u8>,
        sequence: SequenceNumber,
        batch: &mut Batch,
        (mut protector, mut extending): (Option<&mut Protector>, Option<&mut SendElements>),
    ) -> Result<bool, Refusal> {
        let Retransmission::Rtx { payload_type, ssrc, .. } = self.retransmission else {
            return Err(Refusal::Unknown);
        };
        if let Some(protector) = &mut protector {
            let len = protector.decrypt_own(&mut packet).ok_or(Refusal::Unknown)?;
            packet.truncate(len);
        }
        let original = Packet::parse(&packet).map_err(|_| Refusal::Unknown)?;
        let mut header = Header {
            padding: false,
            payload_type,
            sequence: self.sequence,
            ssrc,
            ..Header::from(&original)
        };
        if let Some(extending) = &mut extending {
            header.extension = extending.of_retransmission(header.extension);
        }
        let mut rtx_packet = vec![0; header.written_len()];
        header.write(&mut rtx_packet).map_err(|_| Refusal::Unknown)?;
        rtx_packet.extend_from_slice(&sequence.0.to_be_bytes());
        rtx_packet.extend_from_slice(original.payload());
        // The space is checked before protection, which uses up the packet's index.
        let overhead = protector.as_ref().map_or(0, |protector| protector.overhead());
        if batch.free() < rtx_packet.len() + overhead {
            return Ok(false);
        }
        if let Some(protector) = protector {
            protector.protect(&mut rtx_packet).map_err(|_| Refusal::Unknown)?;
        }
        let Some(place) = batch.place(rtx_packet.len()) else { return Ok(false) };
        place.copy_from_slice(&rtx_packet);
        if let Some(extending) = extending {
            extending.note_placed(batch);
        }
        self.sequence = self.sequence.plus(1);
        Ok(true)
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
