//! VP9 in RTP: RFC 9628.
//!
//! Every payload begins with a descriptor. What is sent has one layer, in the non-flexible mode:
//! frames of a file, superframes included, are cut at the packet limit and numbered by a picture ID of
//! 15 bits, which starts at zero; the first packet of a key frame has a scalability structure with the
//! size of the pictures. Streams of any mode and any number of layers are received; the layers of a
//! picture are one frame, in their order.

use super::bits::Bits;
use super::builder::FrameBuilder;
use super::cut::Cut;
use super::error::{FrameError, PayloadError};
use super::fragment::{Fragment, Run};
use super::layers::Layers;
use super::{Depacketiser, PacketInfo, Packetiser, PayloadFormat};
use crate::time::{ClockRate, RtpTimestamp};

/// VP9 as in RFC 9628. A frame is one picture, with all of its layers, or a superframe.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Vp9 {}

impl PayloadFormat for Vp9 {
    fn name(&self) -> &'static str {
        "VP9"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(Vp9Packetiser::default())
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(Vp9Depacketiser { picture: None, is_in_frame: false })
    }
}

/// Bits of the first octet of a descriptor (section 4.2).
const PICTURE_ID: u8 = 0x80;
const PREDICTED: u8 = 0x40;
const LAYERS: u8 = 0x20;
const FLEXIBLE: u8 = 0x10;
const BEGIN: u8 = 0x08;
const END: u8 = 0x04;
const STRUCTURE: u8 = 0x02;

/// The bit U of the layer indices.
const SWITCHING_UP_POINT: u8 = 0x10;

/// The bit before a picture ID that says that it has 15 bits.
const LONG: u16 = 0x8000;

/// Section 4.2: up to three reference indices.
const TOO_MANY_REFERENCES: &str = "the frame refers to more than three pictures";

/// Octets of the descriptors that are sent, and of the scalability structure after the first one of a
/// key frame.
const DESCRIPTOR_LEN: usize = 3;
const STRUCTURE_LEN: usize = 5;

/// The first octet of the structure: one spatial layer, whose resolution follows (section 4.2.1).
const HAS_RESOLUTION: u8 = 0x10;

/// The fields of the uncompressed header at the beginning of a frame that are needed here (VP9
/// bitstream specification section 6.2).
struct FrameHeader {
    profile: u32,
    is_key: bool,
    size: Option<[u16; 2]>,
}

impl FrameHeader {
    fn parse(frame: &[u8]) -> Option<Self> {
        let mut bits = Bits::new(frame);
        // `frame_marker`, then the profile, whose low bit comes first.
        if bits.read(2)? != 2 {
            return None;
        }
        let profile = bits.read(1)? | bits.read(1)? << 1;
        if profile == 3 && bits.flag()? {
            return None;
        }
        let shows_existing = bits.flag()?;
        if shows_existing {
            return Some(Self { profile, is_key: false, size: None });
        }
        let is_key = !bits.flag()?;
        // `show_frame` and `error_resilient_mode`.
        bits.read(2)?;
        let size = if is_key { key_frame_size(&mut bits, profile) } else { None };
        Some(Self { profile, is_key, size })
    }
}

/// Reads the colour and the size of a key frame.
fn key_frame_size(bits: &mut Bits<'_>, profile: u32) -> Option<[u16; 2]> {
    if bits.read(24)? != 0x49_83_42 {
        return None;
    }
    if profile >= 2 {
        bits.read(1)?;
    }
    let is_rgb = bits.read(3)? == 7;
    // The range, and the subsampling or a reserved bit.
    bits.read(match (is_rgb, profile & 1) {
        (false, 0) => 1,
        (false, _) => 4,
        (true, 0) => 0,
        (true, _) => 1,
    })?;
    let mut side = || u16::try_from(bits.read(16)? + 1).ok();
    Some([side()?, side()?])
}

/// Returns whether `frame` begins with a key frame.
pub fn is_key_frame(frame: &[u8]) -> bool {
    FrameHeader::parse(frame).is_some_and(|header| header.is_key)
}

/// Returns the profile of a frame, 0 to 3; `None` if it is not a frame of VP9.
pub fn profile(frame: &[u8]) -> Option<u32> {
    Some(FrameHeader::parse(frame)?.profile)
}

/// Returns the width and height in pixels that a key frame declares; `None` if `frame` does not begin
/// with a key frame.
pub fn frame_size(frame: &[u8]) -> Option<[u16; 2]> {
    FrameHeader::parse(frame)?.size
}

#[derive(Default)]
struct Vp9Packetiser {
    cut: Cut,
    /// The number of the next frame.
    next_id: u16,
    /// The descriptor of the packets between the frame's first and last.
    descriptor: [u8; DESCRIPTOR_LEN],
    /// The width and height of a key frame, for its first packet.
    size: Option<[u16; 2]>,
}

impl Packetiser for Vp9Packetiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        self.cut = Cut::default();
        let header = FrameHeader::parse(frame);
        self.size = header.as_ref().and_then(|header| header.size);
        let structure_len = self.size.map_or(0, |_| STRUCTURE_LEN);
        self.cut = Cut::start(frame.len(), limit, DESCRIPTOR_LEN + structure_len)?;
        let predicted = if header.is_some_and(|it| it.is_key) { 0 } else { PREDICTED };
        let [high, low] = (LONG | self.next_id).to_be_bytes();
        self.descriptor = [PICTURE_ID | predicted, high, low];
        self.next_id = (self.next_id + 1) & !LONG;
        Ok(())
    }

    fn next(&mut self, _frame: &[u8], fragment: &mut Fragment) -> bool {
        let mut octets = [0; DESCRIPTOR_LEN + STRUCTURE_LEN];
        octets[..DESCRIPTOR_LEN].copy_from_slice(&self.descriptor);
        let mut len = DESCRIPTOR_LEN;
        if self.cut.is_at_start() {
            octets[0] |= BEGIN;
            if let Some([width, height]) = self.size {
                let ([w0, w1], [h0, h1]) = (width.to_be_bytes(), height.to_be_bytes());
                octets[0] |= STRUCTURE;
                octets[DESCRIPTOR_LEN..].copy_from_slice(&[HAS_RESOLUTION, w0, w1, h0, h1]);
                len += STRUCTURE_LEN;
            }
        }
        if self.cut.is_at_last(len) {
            octets[0] |= END;
        }
        self.cut.next(&octets[..len], fragment)
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
    /// Whether the payload is the beginning of a frame, of any layer.
    pub begins_frame: bool,
    /// Whether the payload is the end of a frame.
    pub ends_frame: bool,
    /// Whether the frame refers to earlier pictures.
    pub is_predicted: bool,
    /// The layers of the frame; `None` if the descriptor has none.
    pub layers: Option<Layers>,
    /// Octets of the descriptor.
    pub len: usize,
}

impl Descriptor {
    /// Reads the descriptor at the beginning of `payload` (section 4.2).
    ///
    /// # Errors
    /// [`PayloadError::Truncated`] if nothing follows it, or it is cut off;
    /// [`PayloadError::Malformed`] if it refers to more than three pictures.
    pub fn parse(payload: &[u8]) -> Result<Self, PayloadError> {
        let octet = |at: usize| {
            let truncated = PayloadError::Truncated {
                field: "the VP9 payload descriptor",
                need: at + 1,
                have: payload.len(),
            };
            payload.get(at).copied().ok_or(truncated)
        };
        let first = octet(0)?;
        let has = |bit: u8| first & bit != 0;
        // Without a picture ID there is no flexible mode, whatever the bit says.
        let is_flexible = has(FLEXIBLE) && has(PICTURE_ID);
        let (mut len, mut layers) = (1, None);
        if has(PICTURE_ID) {
            len += if octet(len)? & 0x80 == 0 { 1 } else { 2 };
        }
        if has(LAYERS) {
            let indices = octet(len)?;
            layers = Some(Layers {
                temporal_id: indices >> 5,
                spatial_id: indices >> 1 & 7,
                begins_layer: !has(PREDICTED),
                begins_higher: indices & SWITCHING_UP_POINT != 0,
                needs_earlier: false,
            });
            len += if is_flexible { 1 } else { 2 };
        }
        if is_flexible && has(PREDICTED) {
            let begin = len;
            while octet(len)? & 1 != 0 {
                len += 1;
                if len - begin == 3 {
                    return Err(PayloadError::Malformed { reason: TOO_MANY_REFERENCES });
                }
            }
            len += 1;
        }
        if has(STRUCTURE) {
            len = structure_end(len, &octet)?;
        }
        octet(len)?;
        Ok(Self {
            begins_frame: has(BEGIN),
            ends_frame: has(END),
            is_predicted: has(PREDICTED),
            layers,
            len,
        })
    }
}

/// Returns where the scalability structure at `start` ends (section 4.2.1).
fn structure_end(
    start: usize,
    octet: &impl Fn(usize) -> Result<u8, PayloadError>,
) -> Result<usize, PayloadError> {
    let first = octet(start)?;
    let mut at = start + 1;
    if first & 0x10 != 0 {
        at += 4 * (usize::from(first >> 5) + 1);
    }
    if first & 0x08 != 0 {
        let pictures = octet(at)?;
        at += 1;
        for _ in 0..pictures {
            at += 1 + usize::from(octet(at)? >> 2 & 3);
        }
    }
    Ok(at)
}

struct Vp9Depacketiser {
    /// The timestamp of the picture whose beginning was received, until it ends.
    picture: Option<RtpTimestamp>,
    /// Whether a frame of the picture has begun and not ended.
    is_in_frame: bool,
}

impl Depacketiser for Vp9Depacketiser {
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
        let descriptor = Descriptor::parse(payload)?;
        let part = &payload[descriptor.len..];
        let spatial_id = descriptor.layers.map_or(0, |layers| layers.spatial_id);
        let is_same = self.picture.take() == Some(packet.timestamp);
        let was_in_frame = std::mem::take(&mut self.is_in_frame) && is_same;
        match (descriptor.begins_frame, was_in_frame) {
            (true, true) => return Err(PayloadError::FragmentMismatch),
            (false, false) => {
                frame.continues_frame();
                return Err(PayloadError::FragmentWithoutStart);
            }
            (true, false) if is_same => {}
            // Lower layers may be left out by a server, but not the lowest of a whole stream.
            (true, false) if spatial_id == 0 => frame.starts_frame(),
            (true, false) => frame.continues_frame(),
            (false, true) => {}
        }
        if !packet.marker {
            self.picture = Some(packet.timestamp);
            self.is_in_frame = !descriptor.ends_frame;
        }
        if descriptor.begins_frame {
            let begins =
                |it: Layers| it.begins_higher || !descriptor.is_predicted && is_key_frame(part);
            let layers = descriptor.layers.map(|it| Layers { begins_higher: begins(it), ..it });
            frame.note_layers(layers);
        }
        frame.push_unit(part)
    }

    fn begins(&self, payload: &[u8]) -> Option<bool> {
        let it = Descriptor::parse(payload).ok()?;
        // Some senders never say that a frame is predicted.
        let is_key = !it.is_predicted && is_key_frame(&payload[it.len..]);
        let is_lowest = it.layers.is_none_or(|layers| layers.spatial_id == 0);
        Some(it.begins_frame && is_lowest && is_key)
    }

    fn lost(&mut self) {
        self.picture = None;
        self.is_in_frame = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::builder::Delivery;
    use super::super::rig::{Listener, send};
    use super::*;

    fn listener() -> Listener {
        Listener::new(&Vp9::default(), Delivery::AccessUnit)
    }

    /// Returns what the descriptor of `payload` says: begin, end, predicted, spatial layer, length.
    fn parsed(payload: &[u8]) -> Option<(bool, bool, bool, u8, usize)> {
        let it = Descriptor::parse(payload).ok()?;
        let spatial_id = it.layers.map_or(0, |layers| layers.spatial_id);
        Some((it.begins_frame, it.ends_frame, it.is_predicted, spatial_id, it.len))
    }

    #[test]
    fn descriptors_of_every_form_are_read() {
        for (payload, expected) in [
            // Only the first octet; a short and a long picture ID.
            (&[0x0c, 9][..], (true, true, false, 0, 1)),
            (&[0xc8, 0x11, 9], (true, false, true, 0, 2)),
            (&[0x84, 0x91, 0x11, 9], (false, true, false, 0, 3)),
            // Layers: with the index of the base layer, and in the flexible mode without.
            (&[0xa8, 0x11, 0x04, 7, 9], (true, false, false, 2, 4)),
            (&[0xb8, 0x11, 0x23, 9], (true, false, false, 1, 3)),
            // The flexible mode with one reference and with three; not without a picture ID.
            (&[0xd8, 0x11, 0x02, 9], (true, false, true, 0, 3)),
            (&[0xd8, 0x11, 0x03, 0x05, 0x06, 9], (true, false, true, 0, 5)),
            (&[0x58, 9], (true, false, true, 0, 1)),
            // A structure of two layers with sizes, and two pictures with one reference and none.
            (
                &[0x0a, 0x38, 1, 0, 0, 9, 2, 0, 1, 9, 2, 0x04, 1, 0x00, 9],
                (true, false, false, 0, 14),
            ),
            (&[0x0a, 0x00, 9], (true, false, false, 0, 2)),
        ] {
            assert_eq!(parsed(payload), Some(expected), "{payload:02x?}");
            for end in 0..payload.len() {
                assert_eq!(parsed(&payload[..end]), None, "{:02x?}", &payload[..end]);
            }
        }
        assert_eq!(parsed(&[0xd8, 0x11, 3, 3, 3, 2, 9]), None, "four references");
    }

    #[test]
    fn the_layers_of_a_picture_are_told_with_the_frame() {
        let mut listener = listener();
        let key = [0x82, 0x49, 0x83, 0x42, 0x00];
        let frame = |descriptor: &[u8]| [descriptor, &key[..]].concat();
        // A key frame of two spatial layers; a frame of temporal layer 2 at which higher ones can begin;
        // one of layer 1 that needs no earlier picture; one that tells nothing.
        listener.take(&frame(&[0xac, 1, 0x00, 0]), 0, false).unwrap();
        listener.take(b"\xec\x01\x03\x00\x86", 0, true).unwrap();
        listener.take(b"\xec\x02\x50\x00\x86", 1, true).unwrap();
        listener.take(b"\xac\x03\x20\x00\x86", 2, true).unwrap();
        listener.take(b"\x8c\x04\x86", 3, true).unwrap();
        let key = Layers { spatial_id: 1, ..Layers::new(0, 0, true) };
        let switch = Layers { begins_higher: true, ..Layers::new(2, 0, false) };
        let free = Layers { begins_layer: true, ..Layers::new(1, 0, false) };
        assert_eq!(listener.layers(), [Some(key), Some(switch), Some(free), None]);
    }

    #[test]
    fn a_frame_is_numbered_and_its_ends_are_marked() {
        let mut packetiser = Vp9::default().packetiser();
        // A key frame, and one that is not.
        for (id, first, frame) in [(0, 0x80, b"\x82bcdefg"), (1, 0xc0, b"\x86bcdefg")] {
            let sent = send(packetiser.as_mut(), frame, 6);
            let sent: Vec<_> = sent.iter().map(|it| (it.octets.clone(), it.marker)).collect();
            let expected = [
                ([&[first | 8, 0x80, id], &frame[..3]].concat(), false),
                ([&[first, 0x80, id], &frame[3..6]].concat(), false),
                ([&[first | 4, 0x80, id], &frame[6..]].concat(), true),
            ];
            assert_eq!(sent, expected);
        }
        assert_eq!(send(packetiser.as_mut(), b"\x82", 9)[0].octets, b"\x8c\x80\x02\x82");
    }

    #[test]
    fn the_first_packet_of_a_key_frame_has_the_size() {
        let key = [0x82, 0x49, 0x83, 0x42, 0x00, 0x13, 0xf0, 0x0b, 0x30, 7];
        let sent = send(Vp9::default().packetiser().as_mut(), &key, 12);
        let first = [&[0x8a, 0x80, 0, 0x10, 1, 64, 0, 180], &key[..4]].concat();
        let expected = [first, [&[0x84, 0x80, 0], &key[4..]].concat()];
        assert_eq!(sent.into_iter().map(|it| it.octets).collect::<Vec<_>>(), expected);
        let error = FrameError::PacketTooSmall { limit: 8, need: 9 };
        assert_eq!(Vp9::default().packetiser().start(&key, 8), Err(error));
    }

    #[test]
    fn the_layers_of_a_picture_are_one_frame() {
        let mut listener = listener();
        for (payload, marker) in [
            (b"\xbc\x01\x00a", false),
            (b"\xb8\x01\x02b", false),
            (b"\xb4\x01\x02c", false),
            (b"\xbc\x01\x04d", true),
        ] {
            listener.take(payload, 1, marker).unwrap();
        }
        listener.take(b"\x0ce", 2, true).unwrap();
        assert_eq!(listener.frames(), [&b"abcd"[..], b"e"]);
    }

    #[test]
    fn a_frame_without_its_first_packet_is_not_delivered() {
        let mut listener = listener();
        assert_eq!(listener.take(b"\x04b", 1, true), Err(PayloadError::FragmentWithoutStart));
        listener.take(b"\x0cc", 2, true).unwrap();
        listener.lose(1);
        assert_eq!(listener.take(b"\x04e", 3, true), Err(PayloadError::FragmentWithoutStart));
        listener.take(b"\x08f", 4, false).unwrap();
        assert_eq!(listener.take(b"\x08g", 4, false), Err(PayloadError::FragmentMismatch));
        listener.take(b"\x0ch", 5, true).unwrap();
        assert_eq!(listener.frames(), [b"c", b"h"]);
    }

    #[test]
    fn reception_that_begins_with_an_upper_layer_has_no_whole_picture() {
        let mut listener = listener();
        listener.take(b"\xbc\x01\x02b", 1, true).unwrap();
        listener.take(b"\xbc\x02\x00c", 2, true).unwrap();
        assert_eq!(listener.frames(), [b"c"]);
    }

    #[test]
    fn key_frames_have_a_size() {
        // Profile 0: 320 by 180; and profile 1 with subsampling, 16 by 16.
        let key = [0x82, 0x49, 0x83, 0x42, 0x00, 0x13, 0xf0, 0x0b, 0x30];
        assert!(is_key_frame(&key));
        assert_eq!(frame_size(&key), Some([320, 180]));
        let key = [0xa2, 0x49, 0x83, 0x42, 0x00, 0x00, 0x1e, 0x00, 0x1e];
        assert_eq!(frame_size(&key), Some([16, 16]));
        // Predicted; the display of an existing frame; the reserved profile; no frame marker.
        for octets in [&[0x86][..], &[0x88], &[0xba], &[0x42], &[]] {
            assert!(!is_key_frame(octets) && frame_size(octets).is_none(), "{octets:02x?}");
        }
        assert_eq!(frame_size(&key[..8]), None);
        assert_eq!([profile(&key), profile(b"\x82"), profile(b"")], [Some(1), Some(0), None]);
        let depacketiser = Vp9::default().depacketiser();
        let begins = |octets: &[u8]| depacketiser.begins(octets);
        assert_eq!(begins(b"\x0c\x82"), Some(true));
        for payload in [&b"\x0c\x86"[..], b"\x04\x82", b"\x4c\x82", b"\x2c\x02\x00\x82"] {
            assert_eq!(begins(payload), Some(false), "{payload:02x?}");
        }
        assert_eq!(begins(b"\x80"), None);
    }

    proptest! {
        #[test]
        fn frames_are_received_as_they_were_sent(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..400), 1..9),
            limit in 9_usize..90,
        ) {
            let (mut packetiser, mut listener) = (Vp9::default().packetiser(), listener());
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
                let _ = FrameHeader::parse(payload);
            }
            listener.finish();
            // Memory grows by doubling.
            prop_assert!(listener.held() <= 4 * 50 * 20);
        }
    }
}
