//! Feedback messages (RFC 4585 section 6, RFC 5104 section 4).

use super::compound::Part;
use super::congestion::CongestionFeedback;
use super::error::{RtcpError, need};
use super::nack::Nack;
use super::report::source;
use super::transport_wide::TransportWide;
use super::word;
use crate::ssrc::Ssrc;

/// Feedback on packets (RFC 4585 section 6.2).
#[derive(Clone, Copy, Debug)]
pub struct TransportFeedback<'p> {
    format: u8,
    sender: Ssrc,
    media: Ssrc,
    control: &'p [u8],
}

impl<'p> TransportFeedback<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let (sender, rest) = source(part.body)?;
        if part.count == CongestionFeedback::FORMAT {
            // In RFC 8888, each block names its media source.
            return Ok(Self { format: part.count, sender, media: Ssrc(0), control: rest });
        }
        let (media, control) = source(rest)?;
        Ok(Self { format: part.count, sender, media, control })
    }

    /// Returns the sender of the feedback.
    pub fn sender(&self) -> Ssrc {
        self.sender
    }

    /// Returns the media source that it concerns; 0 if the control information names the sources.
    pub fn media(&self) -> Ssrc {
        self.media
    }

    /// Returns the message type: 1 generic NACK, 3 TMMBR, 4 TMMBN, 11 congestion control,
    /// 15 transport-wide.
    pub fn format(&self) -> u8 {
        self.format
    }

    /// Returns the feedback control information, as on the wire.
    pub fn control(&self) -> &'p [u8] {
        self.control
    }

    /// Returns the missing packets, if it is a generic NACK (RFC 4585 section 6.2.1).
    pub fn nacks(&self) -> Option<impl Iterator<Item = Nack> + use<'p>> {
        let control = self.control;
        (self.format == 1)
            .then(|| control.as_chunks::<4>().0.iter().map(|nack| Nack::from_bytes(*nack)))
    }

    /// Returns the limits that it requests, if it is a TMMBR (RFC 5104 section 4.2.1).
    pub fn bit_rate_requests(&self) -> Option<impl Iterator<Item = BitRateLimit> + use<'p>> {
        (self.format == 3).then(|| BitRateLimit::all(self.control))
    }

    /// Returns the limits that are in force, if it is a TMMBN (RFC 5104 section 4.2.2).
    pub fn bit_rate_notification(&self) -> Option<impl Iterator<Item = BitRateLimit> + use<'p>> {
        (self.format == 4).then(|| BitRateLimit::all(self.control))
    }

    /// Returns the arrival times, if it is congestion control feedback (RFC 8888); `None` also if
    /// malformed.
    pub fn congestion(&self) -> Option<CongestionFeedback<'p>> {
        (self.format == CongestionFeedback::FORMAT).then_some(())?;
        CongestionFeedback::parse(self.control).ok()
    }

    /// Returns the arrival times by transport-wide numbers, if it is such a message
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01); `None` also if malformed.
    pub fn transport_wide(&self) -> Option<TransportWide<'p>> {
        (self.format == TransportWide::FORMAT).then_some(())?;
        TransportWide::parse(self.control).ok()
    }
}

/// A limit of a media sender's bit rate (RFC 5104 section 4.2.1.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BitRateLimit {
    /// The media sender in a request, or the requester in a notification.
    pub ssrc: Ssrc,
    /// Bits per second; written with 17 significant bits, rounded down.
    pub bit_rate: u64,
    /// Octets of header that are counted for each packet, 0..=511.
    pub overhead: u16,
}

impl BitRateLimit {
    fn all(control: &[u8]) -> impl Iterator<Item = Self> + use<'_> {
        control.chunks_exact(8).map(|entry| {
            let limit = word(entry, 4);
            Self {
                ssrc: Ssrc(word(entry, 0)),
                bit_rate: scaled(limit >> 26, u64::from(limit >> 9 & 0x1_ffff)),
                overhead: (limit & 0x1ff) as u16,
            }
        })
    }

    pub(super) fn to_bytes(self) -> [u8; 8] {
        let (exponent, mantissa) = unscaled(self.bit_rate, 17);
        let limit = exponent << 26 | mantissa << 9 | u32::from(self.overhead & 0x1ff);
        (u64::from(self.ssrc.0) << 32 | u64::from(limit)).to_be_bytes()
    }
}

/// Returns `mantissa` · 2^`exponent`, or `u64::MAX` if that is larger.
fn scaled(exponent: u32, mantissa: u64) -> u64 {
    if mantissa == 0 {
        return 0;
    }
    if exponent > mantissa.leading_zeros() { u64::MAX } else { mantissa << exponent }
}

/// Returns the exponent, and the mantissa of `bits` bits, of `value` rounded down.
fn unscaled(value: u64, bits: u32) -> (u32, u32) {
    let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(bits);
    (exponent, (value >> exponent) as u32)
}

/// Feedback on pictures (RFC 4585 section 6.3).
#[derive(Clone, Copy, Debug)]
pub struct PayloadFeedback<'p> {
    format: u8,
    sender: Ssrc,
    media: Ssrc,
    control: &'p [u8],
}

impl<'p> PayloadFeedback<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let (sender, rest) = source(part.body)?;
        let (media, control) = source(rest)?;
        if part.count == 4 {
            need("the control information of a FIR", 8, control.len())?;
        }
        Ok(Self { format: part.count, sender, media, control })
    }

    /// Returns the sender of the feedback.
    pub fn sender(&self) -> Ssrc {
        self.sender
    }

    /// Returns the media source that it concerns; 0 if the control information names the sources.
    pub fn media(&self) -> Ssrc {
        self.media
    }

    /// Returns the message type: 1 PLI, 2 SLI, 3 RPSI, 4 FIR, 15 application layer feedback.
    pub fn format(&self) -> u8 {
        self.format
    }

    /// Returns the feedback control information, as on the wire.
    pub fn control(&self) -> &'p [u8] {
        self.control
    }

    /// Returns whether it is a picture loss indication (RFC 4585 section 6.3.1).
    pub fn is_picture_loss(&self) -> bool {
        self.format == 1
    }

    /// Returns the full intra requests, if it is such a message (RFC 5104 section 4.3.1).
    pub fn full_intra_requests(&self) -> Option<impl Iterator<Item = Fir> + use<'p>> {
        let control = self.control;
        (self.format == 4).then(|| {
            control
                .chunks_exact(8)
                .map(|entry| Fir { ssrc: Ssrc(word(entry, 0)), number: entry[4] })
        })
    }

    /// Returns the receiver's estimate, if it is the application layer feedback known as REMB.
    pub fn estimate(&self) -> Option<Remb<'p>> {
        (self.format == 15).then_some(())?;
        let (head, sources) = self.control.split_first_chunk::<8>()?;
        let estimate = word(head, 4);
        let len = (estimate >> 24) as usize * 4;
        (head[..4] == *b"REMB" && sources.len() >= len).then(|| Remb {
            bit_rate: scaled(estimate >> 18 & 0x3f, u64::from(estimate & 0x3_ffff)),
            sources: &sources[..len],
        })
    }
}

/// A full intra request: a command to send a decoder refresh point (RFC 5104 section 4.3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fir {
    /// The media sender.
    pub ssrc: Ssrc,
    /// The number of the request among those of one sender to one media sender, modulo 2⁸; a
    /// repetition has the same number.
    pub number: u8,
}

/// A receiver's estimate of the bit rate that the path can carry (draft-alvestrand-rmcat-remb).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Remb<'p> {
    /// Bits per second of all named sources together.
    pub bit_rate: u64,
    sources: &'p [u8],
}

impl<'p> Remb<'p> {
    /// Returns the media senders that share the bit rate.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = Ssrc> + use<'p> {
        self.sources.chunks_exact(4).map(|source| Ssrc(word(source, 0)))
    }

    /// Returns the count of sources and `bit_rate`, rounded down to 18 significant bits, in four
    /// octets.
    pub(super) fn to_word(bit_rate: u64, sources: u8) -> u32 {
        let (exponent, mantissa) = unscaled(bit_rate, 18);
        u32::from(sources) << 24 | exponent << 18 | mantissa
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(control: &[u8]) -> Vec<u8> {
        [&[0, 0, 0, 1, 0, 0, 0, 2], control].concat()
    }

    #[test]
    fn bit_rates_keep_their_leading_bits() {
        for (rate, expected) in
            [(0, 0), (131_071, 131_071), (131_073, 131_072), (u64::MAX, 0x1_ffff << 47)]
        {
            let limit = BitRateLimit { ssrc: Ssrc(5), bit_rate: rate, overhead: 40 };
            let back = BitRateLimit::all(&limit.to_bytes()).next().unwrap();
            assert_eq!(back, BitRateLimit { bit_rate: expected, ..limit });
        }
        assert_eq!(scaled(63, 2), u64::MAX);
    }

    #[test]
    fn an_estimate_must_name_the_sources_it_counts() {
        let mut control = b"REMB".to_vec();
        control.extend(Remb::to_word(2_500_000, 1).to_be_bytes());
        control.extend([0, 0, 0, 9]);
        let body = payload(&control);
        let feedback = PayloadFeedback::parse(Part { count: 15, body: &body }).unwrap();
        let remb = feedback.estimate().unwrap();
        assert_eq!(remb.bit_rate, 2_500_000 / 16 * 16);
        assert_eq!(remb.sources().collect::<Vec<_>>(), [Ssrc(9)]);
        let body = payload(&control[..8]);
        let feedback = PayloadFeedback::parse(Part { count: 15, body: &body }).unwrap();
        assert_eq!(feedback.estimate(), None);
    }

    #[test]
    fn an_empty_full_intra_request_is_refused() {
        let body = payload(&[]);
        assert!(PayloadFeedback::parse(Part { count: 4, body: &body }).is_err());
    }
}
