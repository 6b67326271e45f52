//! An RTP header to be written.

use super::error::WriteError;
use super::extension::ExtensionForm;
use super::packet::Packet;
use super::{CSRC_MAX, HEADER_LEN};
use crate::seq::SequenceNumber;
use crate::ssrc::{PayloadType, Ssrc};
use crate::time::RtpTimestamp;

/// An RTP header in plain fields (RFC 3550 section 5.1).
///
/// ```
/// use rushes_proto::rtp::{Header, Packet};
/// use rushes_proto::{PayloadType, RtpTimestamp, SequenceNumber, Ssrc};
/// let header = Header::new(PayloadType::H265, SequenceNumber(7), RtpTimestamp(90_000), Ssrc(1));
/// let mut packet = [0; 15];
/// let len = header.write(&mut packet)?;
/// packet[len..].copy_from_slice(b"abc");
/// assert_eq!(Packet::parse(&packet).unwrap().payload(), b"abc");
/// # Ok::<(), rushes_proto::rtp::WriteError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header {
    /// The marker bit.
    pub marker: bool,
    /// Whether padding follows the payload; the caller writes it.
    pub padding: bool,
    /// The payload type.
    pub payload_type: PayloadType,
    /// The sequence number.
    pub sequence: SequenceNumber,
    /// The sampling instant, in ticks.
    pub timestamp: RtpTimestamp,
    /// The synchronisation source.
    pub ssrc: Ssrc,
    /// Contributing sources, at most 15.
    pub contributing_sources: Vec<Ssrc>,
    /// The header extension.
    pub extension: Option<HeaderExtension>,
}

/// A header extension to be written (RFC 3550 section 5.3.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeaderExtension {
    /// The 16 bits "defined by profile".
    pub profile: u16,
    /// The data, a multiple of 4 octets.
    pub data: Vec<u8>,
}

impl HeaderExtension {
    /// Creates an extension of RFC 8285 elements.
    ///
    /// # Errors
    /// [`WriteError::Element`] if an element does not fit the form.
    pub fn of_elements(
        form: ExtensionForm,
        elements: &[super::Element<'_>],
    ) -> Result<Self, WriteError> {
        let mut data = Vec::new();
        super::write_elements(form, elements, &mut data)?;
        Ok(Self { profile: form.profile(), data })
    }
}

impl Header {
    /// Creates a header without marker, padding, contributing sources and extension.
    pub fn new(
        payload_type: PayloadType,
        sequence: SequenceNumber,
        timestamp: RtpTimestamp,
        ssrc: Ssrc,
    ) -> Self {
        Self {
            marker: false,
            padding: false,
            payload_type,
            sequence,
            timestamp,
            ssrc,
            contributing_sources: Vec::new(),
            extension: None,
        }
    }

    /// Returns the number of octets that [`write`](Self::write) writes.
    pub fn written_len(&self) -> usize {
        let extension = self.extension.as_ref().map_or(0, |extension| 4 + extension.data.len());
        HEADER_LEN + 4 * self.contributing_sources.len() + extension
    }

    /// Writes the header to the front of `out` and returns its length in octets.
    ///
    /// # Errors
    /// [`WriteError::ContributingSources`], [`WriteError::ExtensionLength`] or
    /// [`WriteError::Space`]; nothing is written in these cases.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, WriteError> {
        let sources = self.contributing_sources.len();
        if sources > CSRC_MAX {
            return Err(WriteError::ContributingSources(sources));
        }
        let extension_words = match &self.extension {
            Some(HeaderExtension { data, .. }) => match u16::try_from(data.len() / 4) {
                Ok(words) if data.len() % 4 == 0 => words,
                _ => return Err(WriteError::ExtensionLength(data.len())),
            },
            None => 0,
        };
        let (need, have) = (self.written_len(), out.len());
        let Some(out) = out.get_mut(..need) else {
            return Err(WriteError::Space { need, have });
        };
        out[0] = 0x80
            | u8::from(self.padding) << 5
            | u8::from(self.extension.is_some()) << 4
            | sources as u8;
        out[1] = u8::from(self.marker) << 7 | self.payload_type.value();
        out[2..4].copy_from_slice(&self.sequence.0.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.0.to_be_bytes());
        out[8..12].copy_from_slice(&self.ssrc.0.to_be_bytes());
        let mut rest = &mut out[HEADER_LEN..];
        for source in &self.contributing_sources {
            let (word, tail) = rest.split_at_mut(4);
            word.copy_from_slice(&source.0.to_be_bytes());
            rest = tail;
        }
        if let Some(extension) = &self.extension {
            rest[..2].copy_from_slice(&extension.profile.to_be_bytes());
            rest[2..4].copy_from_slice(&extension_words.to_be_bytes());
            rest[4..].copy_from_slice(&extension.data);
        }
        Ok(need)
    }
}

impl From<&Packet<'_>> for Header {
    /// Copies the fields of a received packet, whatever its payload type is.
    fn from(packet: &Packet<'_>) -> Self {
        let payload_type = PayloadType::from_wire(packet.payload_type());
        Self {
            marker: packet.marker(),
            padding: packet.padding_len() > 0,
            payload_type,
            sequence: packet.sequence(),
            timestamp: packet.timestamp(),
            ssrc: packet.ssrc(),
            contributing_sources: packet.contributing_sources().collect(),
            extension: packet.extension().map(|extension| HeaderExtension {
                profile: extension.profile,
                data: extension.data.to_vec(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::Element;

    fn full() -> Header {
        Header {
            marker: true,
            contributing_sources: vec![Ssrc(1), Ssrc(2)],
            extension: Some(
                HeaderExtension::of_elements(
                    ExtensionForm::OneByte,
                    &[Element { id: 3, data: &[1, 2] }],
                )
                .unwrap(),
            ),
            ..Header::new(PayloadType::OPUS, SequenceNumber(65_535), RtpTimestamp(5), Ssrc(6))
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = vec![0xa5; 40];
        let len = full().write(&mut out).unwrap();
        assert_eq!(len, 28);
        assert_eq!(out[len], 0xa5);
        assert_eq!(Header::from(&Packet::parse(&out[..len]).unwrap()), full());
    }

    #[test]
    fn a_short_buffer_is_left_alone() {
        let mut out = [0xa5; 27];
        assert_eq!(full().write(&mut out), Err(WriteError::Space { need: 28, have: 27 }));
        assert_eq!(out, [0xa5; 27]);
    }

    #[test]
    fn sixteen_contributing_sources_are_too_many() {
        let mut header = full();
        header.contributing_sources = vec![Ssrc(0); 16];
        assert_eq!(header.write(&mut [0; 200]), Err(WriteError::ContributingSources(16)));
    }

    #[test]
    fn an_extension_of_odd_length_is_refused() {
        let mut header = full();
        header.extension = Some(HeaderExtension { profile: 0, data: vec![0; 5] });
        assert_eq!(header.write(&mut [0; 200]), Err(WriteError::ExtensionLength(5)));
    }
}
