//! Sent packets with a header extension, within RED, or that repair packets protect: composed and
//! protected in separate memory.

use super::send::{Sender, Written};
use crate::batch::Batch;
use crate::repair::fec::red;
use crate::rtp::{CaptureTime, Element, Elements, ExtensionForm, write_elements};
use crate::time::RtpTimestamp;

/// The octets of a header extension before its data (RFC 3550 section 5.3.1).
const INTRODUCTION_LEN: usize = 4;

impl Sender {
    /// Sets the elements of the next packet, the first of its frame; without a capture time none.
    pub(super) fn set_elements(&mut self, capture: Option<CaptureTime>) {
        self.elements.clear();
        if let Some(capture) = capture.filter(|_| !self.extensions.is_empty()) {
            // They fit: their identifiers have been checked.
            let _ = self.extensions.write(capture, &mut self.elements);
        }
    }

    /// Returns the length in octets of the extension with the elements that are set; 0 without any.
    pub(super) fn elements_len(&self) -> usize {
        if self.elements.is_empty() { 0 } else { INTRODUCTION_LEN + self.elements.len() }
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
        let has_extension = self.fragment.extension().is_some() || !self.elements.is_empty();
        packet[0] |= if has_extension { 0x10 } else { 0 };
        let written = if !has_extension || self.write_extension(&mut packet) {
            self.complete_extended((frame, timestamp), &mut packet, batch)
        } else {
            Written::Refused
        };
        self.scratch = packet;
        written
    }

    /// Writes the header extension of the current fragment; `false` if its format sets a longer one
    /// than it announced.
    fn write_extension(&self, packet: &mut Vec<u8>) -> bool {
        let form = self.extensions.form();
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
        packet.resize(header_len + self.fragment.len(), 0);
        self.fragment.write(frame, &mut packet[header_len..]);
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
        let payload_len = packet.len() - header_len;
        if let Some(protector) = &mut self.protector
            && protector.protect(packet).is_err()
        {
            return Written::Refused;
        }
        let position = batch.position();
        let Some(place) = batch.place(packet.len()) else { return Written::Full };
        place.copy_from_slice(packet);
        self.elements.clear();
        self.note_written(position, packet.len(), payload_len);
        self.end_fec_block_if_full(timestamp);
        Written::Placed
    }
}

/// Appends an extension; `false` if its length cannot be expressed.
fn introduce(profile: u16, data: &[u8], packet: &mut Vec<u8>) -> bool {
    let Some(words) = u16::try_from(data.len() / 4).ok().filter(|_| data.len().is_multiple_of(4))
    else {
        return false;
    };
    packet.extend_from_slice(&profile.to_be_bytes());
    packet.extend_from_slice(&words.to_be_bytes());
    packet.extend_from_slice(data);
    true
}
