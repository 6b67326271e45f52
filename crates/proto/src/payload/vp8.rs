//! VP8 in RTP: RFC 7741.
//!
//! Every payload begins with a descriptor. Frames are cut without regard to their partitions
//! (section 4.4), and numbered by a `PictureID` of 15 bits, which starts at zero.

use super::builder::FrameBuilder;
use super::cut::Cut;
use super::error::{FrameError, PayloadError};
use super::fragment::{Fragment, Run};
use super::layers::Layers;
use super::{Depacketiser, PacketInfo, Packetiser, PayloadFormat};
use crate::time::{ClockRate, RtpTimestamp};

/// VP8 as in RFC 7741. A frame is one frame of VP8 (RFC 6386 section 9).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Vp8 {}

impl PayloadFormat for Vp8 {
    fn name(&self) -> &'static str {
        "VP8"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(Vp8Packetiser::default())
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(Vp8Depacketiser { frame: None })
    }
}

/// Bits of the first octet of a descriptor (section 4.2): extension octet, start of a partition, and
/// the partition's number.
const EXTENDED: u8 = 0x80;
const START: u8 = 0x10;
const PARTITION: u8 = 0x07;

/// Bits of the extension octet: what follows it.
const PICTURE_ID: u8 = 0x80;
const LAYER_ZERO_INDEX: u8 = 0x40;
const LAYER_OR_KEY_INDEX: u8 = 0x30;
const LAYER: u8 = 0x20;

/// The bit Y after the temporal layer: the frame depends on the base layer only.
const LAYER_SYNC: u8 = 0x20;

/// The bit before a `PictureID` that says that it has 15 bits.
const LONG: u16 = 0x8000;

/// Octets of the descriptors that are sent.
const DESCRIPTOR_LEN: usize = 4;

/// Octets before the size in a key frame: the frame tag and the start code (RFC 6386 section 9.1).
const START_CODE: [u8; 3] = [0x9d, 0x01, 0x2a];

/// Returns whether `frame` is a key frame: whether the inverse key frame flag is clear.
pub fn is_key_frame(frame: &[u8]) -> bool {
    frame.first().is_some_and(|octet| octet & 1 == 0)
}

/// Returns the width and height in pixels that a key frame declares (RFC 6386 section 9.1); `None` if
/// `frame` is not a key frame.
pub fn frame_size(frame: &[u8]) -> Option<[u16; 2]> {
    let (tag, rest) = frame.split_first_chunk::<3>()?;
    let rest = rest.strip_prefix(&START_CODE)?;
    let &[w0, w1, h0, h1] = rest.first_chunk()?;
    // The upper two bits of each are a scale.
    let size = [[w0, w1], [h0, h1]].map(|octets| u16::from_le_bytes(octets) & 0x3fff);
    (is_key_frame(tag) && !size.contains(&0)).then_some(size)
}

#[derive(Default)]
struct Vp8Packetiser {
    cut: Cut,
    /// The number of the next frame.
    next_id: u16,
    /// The descriptor of the frame's later packets.
    descriptor: [u8; DESCRIPTOR_LEN],
}

impl Packetiser for Vp8Packetiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        self.cut = Cut::default();
        self.cut = Cut::start(frame.len(), limit, DESCRIPTOR_LEN)?;
        let [high, low] = (LONG | self.next_id).to_be_bytes();
        self.descriptor = [EXTENDED, PICTURE_ID, high, low];
        self.next_id = (self.next_id + 1) & !LONG;
        Ok(())
    }

    fn next(&mut self, _frame: &[u8], fragment: &mut Fragment) -> bool {
        let mut descriptor = self.descriptor;
        if self.cut.is_at_start() {
            descriptor[0] |= START;
        }
        self.cut.next(&descriptor, fragment)
    }

    fn next_run(&mut self, _frame: &[u8], most: usize) -> Option<Run> {
        if self.cut.is_at_start() {
            return None;
        }
        self.cut.next_run(&self.descriptor, most)
    }
}

/// The parts of a descriptor that matter to reassembly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Descriptor {
    /// Whether the payload is the beginning of a frame.
    pub begins_frame: bool,
    /// The layers of the frame, of which only the temporal one is not 0; `None` if the descriptor has
    /// none.
    pub layers: Option<Layers>,
    /// Octets of the descriptor.
    pub len: usize,
}

impl Descriptor {
    /// Reads the descriptor at the beginning of `payload` (section 4.2).
    ///
    /// # Errors
    /// [`PayloadError::Truncated`] if nothing follows it, or it is cut off.
    pub fn parse(payload: &[u8]) -> Result<Self, PayloadError> {
        let octet = |at: usize| {
            let truncated = PayloadError::Truncated {
                field: "the VP8 payload descriptor",
                need: at + 1,
                have: payload.len(),
            };
            payload.get(at).copied().ok_or(truncated)
        };
        let first = octet(0)?;
        let (mut len, mut layers) = (1, None);
        if first & EXTENDED != 0 {
            let present = octet(1)?;
            len = 2;
            if present & PICTURE_ID != 0 {
                len += if octet(2)? & 0x80 == 0 { 1 } else { 2 };
            }
            len += usize::from(present & LAYER_ZERO_INDEX != 0);
            if present & LAYER != 0 {
                let indices = octet(len)?;
                let layer = Layers::new(indices >> 6, 0, false);
                layers = Some(Layers { begins_layer: indices & LAYER_SYNC != 0, ..layer });
            }
            len += usize::from(present & LAYER_OR_KEY_INDEX != 0);
        }
        octet(len)?;
        Ok(Self { begins_frame: first & (START | PARTITION) == START, layers, len })
    }
}

struct Vp8Depacketiser {
    /// The timestamp of the frame whose beginning was received, until it ends.
    frame: Option<RtpTimestamp>,
}

impl Depacketiser for Vp8Depacketiser {
    fn push(
        &mut self,
        payload: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        if payload.is_empty() {
            // This is a keep-alive, or a packet of padding only.
            return Ok(());
        }
        let Descriptor { begins_frame, layers, len } = Descriptor::parse(payload)?;
        let before = self.frame.take().filter(|timestamp| *timestamp == packet.timestamp);
        match (begins_frame, before) {
            (true, None) => frame.starts_frame(),
            (false, Some(_)) => {}
            (true, Some(_)) => return Err(PayloadError::FragmentMismatch),
            (false, None) => {
                frame.continues_frame();
                return Err(PayloadError::FragmentWithoutStart);
            }
        }
        if !packet.marker {
            self.frame = Some(packet.timestamp);
        }
        if begins_frame {
            let key = |it: Layers| Layers::new(it.temporal_id, 0, true);
            let is_key = is_key_frame(&payload[len..]);
            frame.note_layers(layers.map(|it| if is_key { key(it) } else { it }));
        }
        frame.push_unit(&payload[len..])
    }

    fn begins(&self, payload: &[u8]) -> Option<bool> {
        let descriptor = Descriptor::parse(payload).ok()?;
        Some(descriptor.begins_frame && is_key_frame(&payload[descriptor.len..]))
    }

    fn lost(&mut self) {
        self.frame = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::builder::Delivery;
    use super::super::rig::{Listener, send};
    use super::*;

    fn listener() -> Listener {
        Listener::new(&Vp8::default(), Delivery::AccessUnit)
    }

    #[test]
    fn the_descriptors_of_the_rfc_are_read() {
        // RFC 7741 sections 4.6.1 to 4.6.5.
        for (payload, begins_frame, len) in [
            (&[0x90, 0x80, 0x11, 0x10][..], true, 3),
            (&[0x10, 0x11], true, 1),
            (&[0x91, 0x80, 0x11, 0], false, 3),
            (&[0x90, 0x80, 0x80, 0x11, 0x10], true, 4),
            (&[0x90, 0xf0, 0x91, 0x11, 1, 2, 0x10], true, 6),
            (&[0x90, 0x20, 0x40, 0x10], true, 3),
            (&[0x80, 0x10, 0x40, 0x10], false, 3),
            (&[0x90, 0x00, 0x10], true, 2),
        ] {
            let parsed = Descriptor::parse(payload).map(|it| (it.begins_frame, it.len));
            assert_eq!(parsed, Ok((begins_frame, len)));
            for end in 0..payload.len() {
                assert!(Descriptor::parse(&payload[..end]).is_err(), "{:02x?}", &payload[..end]);
            }
        }
    }

    #[test]
    fn the_temporal_layer_is_told_with_the_frame() {
        let mut listener = listener();
        // A key frame of layer 0, a frame of layer 2 that refers to layer 0 only, one of layer 1, one
        // that tells nothing.
        for (n, payload) in
            [b"\x90\x20\x00\x00", b"\x90\x20\xa0\x01", b"\x90\x20\x40\x01", b"\x90\x00\x01\x01"]
                .into_iter()
                .enumerate()
        {
            listener.take(payload, n as u32, true).unwrap();
        }
        let layers = listener.layers();
        let [sync, other] = [Layers::new(2, 0, false), Layers::new(1, 0, false)];
        let sync = Layers { begins_layer: true, ..sync };
        assert_eq!(layers, [Some(Layers::new(0, 0, true)), Some(sync), Some(other), None]);
    }

    #[test]
    fn a_frame_is_numbered_and_its_first_packet_marked_as_the_start() {
        let mut packetiser = Vp8::default().packetiser();
        for (id, frame) in [(0, b"abcde"), (1, b"fghij")] {
            let sent = send(packetiser.as_mut(), frame, 7);
            let sent: Vec<_> = sent.iter().map(|it| (it.octets.clone(), it.marker)).collect();
            let expected = [
                ([&[0x90, 0x80, 0x80, id], &frame[..3]].concat(), false),
                ([&[0x80, 0x80, 0x80, id], &frame[3..]].concat(), true),
            ];
            assert_eq!(sent, expected);
        }
    }

    #[test]
    fn the_numbers_of_frames_wrap() {
        let mut packetiser = Vp8Packetiser { next_id: 0x7fff, ..Vp8Packetiser::default() };
        assert_eq!(send(&mut packetiser, b"a", 9)[0].octets[2..4], [0xff, 0xff]);
        assert_eq!(send(&mut packetiser, b"a", 9)[0].octets[2..4], [0x80, 0x00]);
    }

    #[test]
    fn frames_that_do_not_fit_are_refused() {
        let mut packetiser = Vp8::default().packetiser();
        assert_eq!(packetiser.start(b"", 9), Err(FrameError::Empty));
        let error = FrameError::PacketTooSmall { limit: 4, need: 5 };
        assert_eq!(packetiser.start(b"a", 4), Err(error));
        assert!(!packetiser.next(b"a", &mut Fragment::default()));
        assert_eq!(packetiser.next_run(b"a", 3), None);
    }

    #[test]
    fn a_frame_without_its_first_packet_is_not_delivered() {
        let mut listener = listener();
        assert_eq!(listener.take(b"\x00b", 1, true), Err(PayloadError::FragmentWithoutStart));
        listener.take(b"\x10c", 2, true).unwrap();
        listener.lose(1);
        assert_eq!(listener.take(b"\x00e", 3, true), Err(PayloadError::FragmentWithoutStart));
        listener.lose(7);
        listener.take(b"\x10f", 4, true).unwrap();
        assert_eq!(listener.frames(), [b"c", b"f"]);
    }

    #[test]
    fn a_frame_with_a_missing_packet_is_dropped_and_the_next_stands() {
        let mut listener = listener();
        listener.take(b"\x10a", 1, false).unwrap();
        listener.lose(1);
        let _ = listener.take(b"\x00c", 1, true);
        listener.take(b"\x10d", 2, true).unwrap();
        assert_eq!((listener.frames(), listener.dropped()), (vec![b"d".to_vec()], 1));
    }

    #[test]
    fn partitions_in_packets_of_their_own_are_joined() {
        let mut listener = listener();
        for (payload, marker) in [(b"\x10a", false), (b"\x11b", false), (b"\x12c", true)] {
            listener.take(payload, 1, marker).unwrap();
        }
        assert_eq!(listener.frames(), [b"abc"]);
    }

    #[test]
    fn two_beginnings_of_one_frame_damage_it() {
        let mut listener = listener();
        listener.take(b"\x10a", 1, false).unwrap();
        assert_eq!(listener.take(b"\x10b", 1, true), Err(PayloadError::FragmentMismatch));
        // A hidden frame may have the time of the next one.
        listener.take(b"\x10c", 2, true).unwrap();
        listener.take(b"\x10d", 2, true).unwrap();
        assert_eq!(listener.frames(), [b"c", b"d"]);
    }

    #[test]
    fn key_frames_have_a_size() {
        let key = b"\x50\x01\0\x9d\x01\x2a\x40\x41\xb4\x00rest";
        assert!(is_key_frame(key));
        assert_eq!(frame_size(key), Some([320, 180]));
        assert_eq!(frame_size(b"\x51\x01\0\x9d\x01\x2a\x40\x01\xb4\x00"), None);
        assert_eq!(frame_size(&key[..9]), None);
        assert!(!is_key_frame(b"") && !is_key_frame(b"\x51"));
        let depacketiser = Vp8::default().depacketiser();
        let begins = |octets: &[u8]| depacketiser.begins(octets);
        assert_eq!(begins(b"\x10\x50"), Some(true));
        assert_eq!([begins(b"\x10\x51"), begins(b"\x00\x50")], [Some(false); 2]);
        assert_eq!(begins(b"\x80"), None);
    }

    proptest! {
        #[test]
        fn frames_are_received_as_they_were_sent(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..400), 1..9),
            limit in 5_usize..90,
        ) {
            let (mut packetiser, mut listener) = (Vp8::default().packetiser(), listener());
            for (n, frame) in frames.iter().enumerate() {
                for sent in send(packetiser.as_mut(), frame, limit) {
                    listener.take(&sent.octets, n as u32, sent.marker).unwrap();
                }
            }
            prop_assert_eq!(listener.frames(), frames);
        }

        #[test]
        fn no_octets_break_it(payloads in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..20), 0_u32..3, any::<bool>()), 0..50,
        )) {
            let mut listener = listener();
            for (payload, timestamp, marker) in &payloads {
                let _ = listener.take(payload, *timestamp, *marker);
            }
            listener.finish();
            // Memory grows by doubling.
            prop_assert!(listener.held() <= 4 * 50 * 20);
        }
    }
}
