//! Tiles of texture video: every packet states its position and is independent of others.
//!
//! A payload begins with the header of four octets that the other transports also use (the frame's
//! number modulo 256, the packet's number in the frame). The octets of that packet in the frame's
//! plan follow; both ends compute the plan from parameters of the control connection. All packets
//! of a frame have one timestamp; the marker bit is on the last packet of a stripe.
//! `docs/rtp-texture.md` has the format in full.
//!
//! The packetiser is given the header of a stripe's first packet
//! ([`set_first_packet`](super::Packetiser::set_first_packet)) and the stripe's octets. The depacketiser
//! delivers one frame for each packet, including the header.

use super::builder::FrameBuilder;
use super::error::{FrameError, PayloadError};
use super::fragment::Fragment;
use super::{Depacketiser, PacketInfo, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// Octets of the header at the beginning of each payload.
const HEADER_LEN: usize = 4;

/// Tiles that are cut into packets of equal length.
#[derive(Clone, Copy, Debug)]
pub struct Texture {
    /// Octets of a packet after its header; the last packet of a stripe may have fewer.
    pub payload: usize,
}

impl PayloadFormat for Texture {
    fn name(&self) -> &'static str {
        "X-RUSHES-TEXTURE"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(TexturePacketiser { payload: self.payload.max(1), header: 0, sent: 0, len: 0 })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(TextureDepacketiser { payload: self.payload })
    }

    fn has_one_packet_frames(&self) -> bool {
        true
    }

    fn is_unordered(&self) -> bool {
        true
    }
}

struct TexturePacketiser {
    payload: usize,
    /// The header of the next packet.
    header: u32,
    sent: usize,
    len: usize,
}

impl Packetiser for TexturePacketiser {
    fn set_first_packet(&mut self, number: u32) {
        self.header = number;
    }

    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        (self.sent, self.len) = (0, 0);
        if frame.is_empty() {
            return Err(FrameError::Empty);
        }
        let need = HEADER_LEN + self.payload.min(frame.len());
        if need > limit {
            return Err(FrameError::PacketTooSmall { limit, need });
        }
        self.len = frame.len();
        Ok(())
    }

    fn next(&mut self, _frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.sent == self.len {
            return false;
        }
        let end = self.len.min(self.sent + self.payload);
        fragment.push_own(&self.header.to_be_bytes());
        fragment.push_frame(self.sent..end);
        fragment.set_marker(end == self.len);
        self.sent = end;
        // No plan exceeds the 24 bits of the packet's number; the frame's number must not change.
        self.header = (self.header & 0xff00_0000) | (self.header.wrapping_add(1) & 0x00ff_ffff);
        true
    }
}

struct TextureDepacketiser {
    payload: usize,
}

impl Depacketiser for TextureDepacketiser {
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
        let limit = HEADER_LEN + self.payload;
        if payload.len() > limit {
            return Err(PayloadError::FrameTooLarge { limit });
        }
        frame.push_unit(payload)
    }

    fn lost(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::super::builder::Delivery;
    use proptest::prelude::*;

    use super::super::rig::{Listener, send};
    use super::*;

    fn format() -> Texture {
        Texture { payload: 3 }
    }

    #[test]
    fn each_packet_states_its_position() {
        let mut packetiser = format().packetiser();
        packetiser.set_first_packet(0x0700_01ff);
        let sent = send(packetiser.as_mut(), b"abcdefg", 100);
        let sent: Vec<_> = sent.iter().map(|sent| (&sent.octets[..], sent.marker)).collect();
        let expected = [
            (&[7, 0, 1, 255, b'a', b'b', b'c'][..], false),
            (&[7, 0, 2, 0, b'd', b'e', b'f'], false),
            (&[7, 0, 2, 1, b'g'], true),
        ];
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_packet_longer_than_the_path_takes_is_refused() {
        let mut packetiser = format().packetiser();
        let error = FrameError::PacketTooSmall { limit: 6, need: 7 };
        assert_eq!(packetiser.start(b"abc", 6), Err(error));
        assert_eq!(packetiser.start(b"abc", 7), Ok(()));
        assert_eq!(packetiser.start(b"", 7), Err(FrameError::Empty));
    }

    #[test]
    fn a_lost_packet_takes_no_other_with_it() {
        let mut listener = Listener::new(&format(), Delivery::AccessUnit);
        listener.take(b"\0\0\0\0abc", 0, false).unwrap();
        listener.lose(1);
        listener.take(b"\0\0\0\x02ghi", 0, false).unwrap();
        listener.take(b"\0\0\0\x03j", 0, true).unwrap();
        let frames = listener.frames();
        assert_eq!(frames, [&b"\0\0\0\0abc"[..], b"\0\0\0\x02ghi", b"\0\0\0\x03j"]);
    }

    #[test]
    fn a_packet_that_is_too_long_is_refused() {
        let mut listener = Listener::new(&format(), Delivery::AccessUnit);
        assert!(listener.take(b"\0\0\0\0abcd", 0, true).is_err());
        assert!(listener.frames().is_empty());
    }

    proptest! {
        #[test]
        fn a_stripe_of_any_length_is_delivered_packet_by_packet(
            stripe in prop::collection::vec(any::<u8>(), 1..400),
            header in any::<[u8; 4]>(),
            payload in 1_usize..90,
        ) {
            let format = Texture { payload };
            let mut listener = Listener::new(&format, Delivery::AccessUnit);
            let mut packetiser = format.packetiser();
            packetiser.set_first_packet(u32::from_be_bytes(header));
            for sent in send(packetiser.as_mut(), &stripe, 4 + payload) {
                listener.take(&sent.octets, 0, sent.marker).unwrap();
            }
            let frames = listener.frames();
            let octets: Vec<u8> = frames.iter().flat_map(|frame| frame[4..].to_vec()).collect();
            prop_assert_eq!(&octets, &stripe);
            let number = |frame: &[u8]| u32::from_be_bytes([0, frame[1], frame[2], frame[3]]);
            let first = number(&header);
            for (at, frame) in frames.iter().enumerate() {
                prop_assert_eq!(frame[0], header[0]);
                prop_assert_eq!(number(frame), (first + at as u32) & 0x00ff_ffff);
            }
        }

        #[test]
        fn no_octets_break_it(payloads in prop::collection::vec(
            prop::collection::vec(any::<u8>(), 0..100), 0..50,
        )) {
            let mut listener = Listener::new(&Texture { payload: 64 }, Delivery::AccessUnit);
            for payload in &payloads {
                let taken = listener.take(payload, 0, payload.len() % 2 == 0);
                prop_assert_eq!(taken.is_err(), payload.len() > 68);
            }
        }
    }
}
