//! Opus in RTP: RFC 7587. One Opus packet in one RTP packet, timestamps at 48 kHz.
//!
//! An Opus packet cannot be split (RFC 7587 section 4.2). A packet that exceeds the limit is still
//! sent, as one datagram that the network layer fragments.

use super::builder::FrameBuilder;
use super::error::{FrameError, PayloadError};
use super::fragment::Fragment;
use super::{Depacketiser, PacketInfo, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// Opus as in RFC 7587. A frame is one Opus packet.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Opus {}

impl PayloadFormat for Opus {
    fn name(&self) -> &'static str {
        "opus"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::OPUS
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(OpusPacketiser { sent: true, silent: true })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(OpusDepacketiser)
    }

    fn has_one_packet_frames(&self) -> bool {
        true
    }
}

/// Ticks of 48 kHz in the longest Opus packet: 120 ms (RFC 6716 section 3.2.5).
const TICKS_MAX: u32 = 5760;

/// Octets in the largest Opus packet that fits a UDP datagram: far more than an encoder makes.
const PACKET_LEN_MAX: usize = crate::batch::SLAB_LEN - 12;

/// Maximum octets in a packet of discontinuous transmission (RFC 7587 section 3.1.3).
const SILENCE_LEN_MAX: usize = 2;

/// Returns the duration of an Opus packet in ticks of 48 kHz: 120 (2.5 ms) to 5 760 (120 ms).
///
/// ```
/// use rushes_proto::payload::opus::packet_duration;
/// // Two SILK frames of 20 ms each.
/// assert_eq!(packet_duration(&[0x09, 0, 0]), Ok(1920));
/// ```
///
/// # Errors
/// [`FrameError::Opus`] if the TOC octet or the frame count is missing, or the count is zero or
/// makes the packet longer than 120 ms (RFC 6716 section 3.2.5).
pub fn packet_duration(packet: &[u8]) -> Result<u32, FrameError> {
    ticks(packet).map_err(|reason| FrameError::Opus { reason })
}

fn ticks(packet: &[u8]) -> Result<u32, &'static str> {
    let toc = packet.first().ok_or("no TOC octet")?;
    // RFC 6716 section 3.1, table 2.
    let config = toc >> 3;
    let frame = match (config, config % 4) {
        (0..12, n) => [480, 960, 1920, 2880][usize::from(n)],
        (12..16, n) => [480, 960][usize::from(n % 2)],
        (_, n) => [120, 240, 480, 960][usize::from(n)],
    };
    let frames = match (toc & 3, packet.get(1)) {
        (0, _) => 1,
        (1 | 2, _) => 2,
        (_, Some(count)) => u32::from(count & 0x3f),
        (_, None) => return Err("no frame count"),
    };
    match frames * frame {
        0 => Err("no frames"),
        ticks if ticks > TICKS_MAX => Err("more than 120 ms"),
        ticks => Ok(ticks),
    }
}

struct OpusPacketiser {
    sent: bool,
    /// Whether the previous packet was silence, or there was none.
    silent: bool,
}

impl Packetiser for OpusPacketiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        packet_duration(frame)?;
        let (len, limit) = (frame.len(), limit.max(PACKET_LEN_MAX));
        if len > limit {
            return Err(FrameError::TooLargeForPacket { len, limit });
        }
        self.sent = false;
        Ok(())
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        if std::mem::replace(&mut self.sent, true) {
            return false;
        }
        fragment.push_frame(0..frame.len());
        // The first packet of a talkspurt is marked (RFC 7587 section 4.1, RFC 3551 section 4.1).
        let silent = frame.len() <= SILENCE_LEN_MAX;
        fragment.set_marker(self.silent && !silent);
        self.silent = silent;
        true
    }

    fn ends_unmarked(&self) -> bool {
        true
    }

    fn duration(&self, frame: &[u8]) -> Option<u32> {
        packet_duration(frame).ok()
    }
}

struct OpusDepacketiser;

impl Depacketiser for OpusDepacketiser {
    fn push(
        &mut self,
        payload: &[u8],
        _packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        if payload.is_empty() {
            // This is a keep-alive, or a packet of padding only.
            return Ok(());
        }
        ticks(payload).map_err(|reason| {
            let is_header = payload.starts_with(b"OpusHead") || payload.starts_with(b"OpusTags");
            if is_header { PayloadError::OggHeader } else { PayloadError::Opus { reason } }
        })?;
        frame.push_unit(payload)
    }

    fn lost(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::super::builder::Delivery;
    use super::super::rig::{Listener, send};
    use super::*;

    #[test]
    fn durations_are_those_of_the_toc_octet() {
        for (packet, ticks) in [
            (&[0x00][..], 480),    // SILK, 10 ms
            (&[0x18], 2880),       // SILK, 60 ms
            (&[0x60], 480),        // hybrid, 10 ms
            (&[0x78], 960),        // hybrid, 20 ms
            (&[0x80], 120),        // CELT, 2.5 ms
            (&[0xf8], 960),        // CELT, 20 ms
            (&[0xfa, 0], 1920),    // two frames of different sizes
            (&[0x1b, 0x82], 5760), // two of 60 ms, variable
            (&[0x83, 48], 5760),   // 48 of 2.5 ms
        ] {
            assert_eq!(packet_duration(packet), Ok(ticks), "{packet:02x?}");
        }
    }

    #[test]
    fn packets_that_are_not_opus_are_refused() {
        for packet in [&[][..], &[0x03], &[0x03, 0], &[0x1b, 3], &[0x83, 49]] {
            assert!(packet_duration(packet).is_err(), "{packet:02x?}");
            assert!(Opus::default().packetiser().start(packet, 100).is_err());
        }
        let error = PayloadError::Opus { reason: "no frame count" };
        let mut listener = Listener::new(&Opus::default(), Delivery::AccessUnit);
        assert_eq!(listener.take(&[0x03], 0, false), Err(error));
        assert_eq!(listener.take(&[], 0, false), Ok(()));
        assert!(listener.frames().is_empty());
    }

    #[test]
    fn the_headers_of_an_ogg_file_are_distinguished_from_damage() {
        let mut listener = Listener::new(&Opus::default(), Delivery::AccessUnit);
        for header in [&b"OpusHead\x01\x02\x38\x01"[..], b"OpusTags\x06\0\0\0rushes"] {
            assert_eq!(listener.take(header, 0, false), Err(PayloadError::OggHeader));
        }
        assert!(listener.frames().is_empty());
    }

    #[test]
    fn a_packet_over_the_limit_is_sent_whole() {
        let mut packetiser = Opus::default().packetiser();
        let packet = [8; 1276];
        packetiser.start(&packet, 100).unwrap();
        let mut fragment = Fragment::default();
        assert!(packetiser.next(&packet, &mut fragment));
        assert_eq!(fragment.len(), 1276);
        assert!(!packetiser.next(&packet, &mut fragment));
    }

    #[test]
    fn a_packet_larger_than_any_datagram_is_refused() {
        let mut packetiser = Opus::default().packetiser();
        let error = FrameError::TooLargeForPacket { len: 70_000, limit: PACKET_LEN_MAX };
        assert_eq!(packetiser.start(&vec![8; 70_000], 100), Err(error));
        assert!(!packetiser.next(&vec![8; 70_000], &mut Fragment::default()));
    }

    #[test]
    fn the_marker_is_on_the_first_packet_after_silence() {
        let mut packetiser = Opus::default().packetiser();
        let markers = [3, 3, 1, 1, 3, 3].map(|len| {
            let mut fragment = Fragment::default();
            packetiser.start(&vec![8; len], 100).unwrap();
            assert!(packetiser.next(&vec![8; len], &mut fragment));
            fragment.marker()
        });
        assert_eq!(markers, [true, false, false, false, true, false]);
    }

    #[test]
    fn a_packet_is_sent_and_received_as_it_is() {
        let mut listener = Listener::new(&Opus::default(), Delivery::AccessUnit);
        let mut packetiser = Opus::default().packetiser();
        for (n, packet) in [&[0x08, 1, 2][..], &[0x08], &[0x0b, 0x82, 1, 2]].iter().enumerate() {
            let sent = send(packetiser.as_mut(), packet, 100);
            assert_eq!(sent.len(), 1);
            assert_eq!(sent[0].octets, *packet);
            listener.take(&sent[0].octets, n as u32 * 960, sent[0].marker).unwrap();
            assert_eq!(listener.frames(), [*packet]);
        }
    }

    #[test]
    fn a_missing_packet_touches_no_other() {
        let mut listener = Listener::new(&Opus::default(), Delivery::AccessUnit);
        listener.take(&[0x08, 1], 0, false).unwrap();
        listener.lose(3);
        // This packet has the same timestamp, as from a faulty sender.
        listener.take(&[0x08, 2], 0, false).unwrap();
        assert_eq!(listener.frames(), [[0x08, 1], [0x08, 2]]);
    }
}
