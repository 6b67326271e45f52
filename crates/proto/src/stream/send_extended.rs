//! Sent packets with a header extension, within RED, or that repair packets protect: composed and
//! protected in separate memory.

use std::time::Instant;

use super::config::ConfigError;
use super::frame_elements::FrameElements;
use super::send::{Sender, Written, write_padded};
use super::send_elements::{Stream, introduce};
use crate::batch::Batch;
use crate::repair::fec::red;
use crate::rtp::{
    CaptureTime, Element, ElementError, Elements, ExtensionForm, ExtensionKind, ExtensionMap,
    HEADER_LEN, TransportCounter, write_elements,
};
use crate::time::{NtpTime, RtpTimestamp};

/// The octets of a header extension before its data (RFC 3550 section 5.3.1).
const INTRODUCTION_LEN: usize = 4;

impl Sender {
    /// Makes the sender name its media and its stream in every packet, until a receiver
    /// [knows its SSRC](Self::set_acknowledged): by the identification of the media description (MID,
    /// RFC 9143 section 15) and that of the stream (RID, RFC 8852), if these elements are among its
    /// [extensions](Self::with_extensions). Retransmissions and repair packets in a stream of their
    /// own always have them, as MID and repaired RID.
    ///
    /// # Errors
    /// [`ConfigError::StreamName`] if a name is no token of SDP or does not fit the form of the
    /// extensions.
    pub fn with_names(mut self, mid: Option<&str>, rid: Option<&str>) -> Result<Self, ConfigError> {
        let form = self.extending.as_ref().map(|extending| extending.map().form());
        let len_max = if form == Some(ExtensionForm::OneByte) { 16 } else { 255 };
        for name in [mid, rid].into_iter().flatten() {
            let len = name.len();
            if !(1..=len_max).contains(&len) || !name.bytes().all(is_of_token) {
                return Err(ConfigError::StreamName { len });
            }
        }
        let Some(extending) = &mut self.extending else { return Ok(self) };
        extending.mid = mid.unwrap_or_default().into();
        extending.rid = rid.unwrap_or_default().into();
        Ok(self)
    }

    /// Makes the sender take its transport-wide numbers from `counter`, which all senders of a
    /// connection share. Without this call it counts alone.
    #[must_use]
    pub fn with_transport_counter(mut self, counter: TransportCounter) -> Self {
        if let Some(extending) = &mut self.extending {
            extending.set_counter(counter);
        }
        self
    }

    /// Returns whether packets have transport-wide numbers.
    pub fn has_transport_sequence(&self) -> bool {
        let map = self.extending.as_ref().map(|extending| extending.map());
        map.is_some_and(|map| map.id(ExtensionKind::TransportSequence).is_some())
    }

    /// Sets whether a receiver knows the source by its SSRC, for example because it has reported on it.
    /// Another SSRC is unknown again.
    pub fn set_acknowledged(&mut self, is_acknowledged: bool) {
        if let Some(extending) = &mut self.extending {
            extending.is_acknowledged = is_acknowledged;
        }
    }

    /// Gives the sender the wall-clock time `ntp` at `instant`, without which packets do not carry the
    /// times at which they are sent ([`AbsSendTime`](crate::rtp::AbsSendTime)).
    #[must_use]
    pub fn with_wall_clock(mut self, (instant, ntp): (Instant, NtpTime)) -> Self {
        if let Some(extending) = &mut self.extending {
            extending.wall_clock = Some((instant, ntp));
        }
        self
    }

    /// Returns whether packets carry the times at which they are sent: then
    /// [`set_now`](Self::set_now) is to be called before each batch.
    pub fn has_send_time(&self) -> bool {
        self.extending.as_ref().is_some_and(|extending| extending.has_send_time())
    }

    /// Sets the time at which the next packets are sent, for those that carry it.
    pub fn set_now(&mut self, now: Instant) {
        if let Some(extending) = &mut self.extending {
            extending.set_now(now);
        }
    }

    /// Sets the elements of the next frame.
    pub(super) fn set_elements(
        &mut self,
        capture: Option<CaptureTime>,
        elements: &FrameElements,
    ) -> Result<(), ElementError> {
        match &mut self.extending {
            Some(extending) => extending.start(capture, elements),
            None => elements.check(ExtensionMap::default()).map(|_| ()),
        }
    }

    /// Returns the octets that payloads leave for the elements of the frame; 0 without any.
    pub(super) fn elements_len(&self) -> usize {
        self.extending.as_ref().map_or(0, |extending| extending.len_max())
    }

    /// Returns the octets of the header extensions of the first packet of a frame of several, of those
    /// between, and of the last; the first may have a capture time, too.
    pub(super) fn elements_len_of_each(&self) -> [usize; 3] {
        let places = [(true, false), (false, false), (false, true)];
        places.map(|at| self.extending.as_ref().map_or(0, |extending| extending.len_at(at)))
    }

    /// Returns the octets that packets of media leave for the elements of repair packets.
    pub(super) fn repair_elements_len(&self) -> usize {
        self.extending.as_ref().map_or(0, |extending| extending.repair_len())
    }

    /// Returns whether the packet of the current fragment has elements.
    #[inline]
    pub(super) fn has_elements_due(&self) -> bool {
        self.extending.as_ref().is_some_and(|extending| extending.are_due(self.is_last()))
    }

    /// Returns whether the current fragment is the last of its frame.
    fn is_last(&self) -> bool {
        self.fragment.marker() || self.packetiser.ends_unmarked()
    }

    /// Does the work of [`write`](Self::write) for a packet with a header extension, or of a stream
    /// with repair packets.
    #[cold]
    pub(super) fn write_extended(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        batch: &mut Batch,
    ) -> Written {
        let mut packet = std::mem::take(&mut self.scratch);
        packet.clear();
        packet.extend_from_slice(&self.header(timestamp));
        let form = self.compose_elements();
        let has_extension = self.fragment.extension().is_some() || !self.elements.is_empty();
        packet[0] |= if has_extension { 0x10 } else { 0 };
        let written = if !has_extension || self.write_extension(form, &mut packet) {
            self.complete_extended((frame, timestamp), &mut packet, batch)
        } else {
            Written::Refused
        };
        self.scratch = packet;
        written
    }

    /// Writes the elements of the current fragment into separate memory; returns their form.
    fn compose_elements(&mut self) -> ExtensionForm {
        let is_last = self.is_last();
        match &mut self.extending {
            Some(extending) => extending.compose(is_last, &mut self.elements),
            None => ExtensionForm::OneByte,
        }
    }

    /// Adds the elements of a repair packet to `packet`, whose header is without an extension.
    pub(super) fn extend_repair(&mut self, packet: &mut Vec<u8>) {
        let Self { extending: Some(extending), elements, .. } = self else { return };
        let stream = match self.fec.as_ref() {
            Some(fec) if fec.is_within() => Stream::RepairWithin,
            _ => Stream::RepairBeside,
        };
        let form = extending.compose_repair(stream, elements);
        let mut extension = std::mem::take(&mut self.scratch);
        extension.clear();
        if !elements.is_empty() && introduce(form.profile(), elements, &mut extension) {
            let at = HEADER_LEN + 4 * usize::from(packet[0] & 0x0f);
            packet[0] |= 0x10;
            packet.splice(at..at, extension.iter().copied());
        }
        self.scratch = extension;
    }

    /// Writes the header extension of the current fragment; `false` if its format sets a longer one
    /// than it announced.
    fn write_extension(&self, form: ExtensionForm, packet: &mut Vec<u8>) -> bool {
        let Some(own) = self.fragment.extension() else {
            return introduce(form.profile(), &self.elements, packet);
        };
        if INTRODUCTION_LEN + own.data.len() > self.packetiser.extension_len_max() {
            return false;
        }
        let len_max = self.packetiser.extension_len_max() + self.elements_len();
        match self.with_elements(own.profile, &own.data, form) {
            Some((profile, data)) if INTRODUCTION_LEN + data.len() <= len_max => {
                introduce(profile, &data, packet)
            }
            // An extension that is no list of elements stays as it is.
            _ => introduce(own.profile, &own.data, packet),
        }
    }

    /// Returns the elements of the format's own extension and those that are set, in one list.
    fn with_elements(
        &self,
        profile: u16,
        own: &[u8],
        form: ExtensionForm,
    ) -> Option<(u16, Vec<u8>)> {
        if self.elements.is_empty() {
            return None;
        }
        let set = Elements::new(form.profile(), &self.elements)?;
        let all: Result<Vec<Element<'_>>, _> = Elements::new(profile, own)?.chain(set).collect();
        let forms = [ExtensionForm::of(profile)?, form];
        let form = if forms.contains(&ExtensionForm::TwoByte) {
            ExtensionForm::TwoByte
        } else {
            ExtensionForm::OneByte
        };
        let mut data = Vec::new();
        write_elements(form, &all.ok()?, &mut data).ok()?;
        Some((form.profile(), data))
    }

    /// Writes the payload behind the header of `packet`, and protects and places the packet.
    fn complete_extended(
        &mut self,
        (frame, timestamp): (&[u8], RtpTimestamp),
        packet: &mut Vec<u8>,
        batch: &mut Batch,
    ) -> Written {
        let (header_len, red) = (packet.len(), self.red());
        let padding_len = usize::from(self.fragment.padding());
        packet.resize(header_len + self.fragment.len() + padding_len, 0);
        write_padded(&self.fragment, frame, &mut packet[header_len..]);
        let red_len = if red.is_some() { red::HEADER_LEN } else { 0 };
        // Checked before protection, which uses up the packet's index.
        if batch.free() < packet.len() + red_len + self.trailer_len() {
            return Written::Full;
        }
        self.note_for_fec(timestamp, packet);
        if let Some(red) = red {
            packet[1] = packet[1] & 0x80 | red.value();
            packet.insert(header_len, red::header(self.config.payload_type));
        }
        let payload_len = packet.len() - header_len - padding_len;
        if let Some(protector) = &mut self.protector
            && protector.protect(packet).is_err()
        {
            return Written::Refused;
        }
        let position = batch.position();
        let Some(place) = batch.place(packet.len()) else { return Written::Full };
        place.copy_from_slice(packet);
        if let Some(extending) = &mut self.extending {
            extending.note_placed(batch);
        }
        self.note_written(position, packet.len(), payload_len);
        self.end_fec_block_if_full(timestamp);
        Written::Placed
    }
}

/// Returns whether an octet may be in a token (RFC 8866 section 9).
fn is_of_token(octet: u8) -> bool {
    octet.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]".contains(&octet)
}
