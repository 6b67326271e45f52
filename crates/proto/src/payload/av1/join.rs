//! Packets into temporal units.

use super::super::builder::FrameBuilder;
use super::super::error::PayloadError;
use super::super::{Depacketiser, PacketInfo};
use super::obu::{
    HAS_SIZE, Leb128, ObuHeader, TEMPORAL_DELIMITER, is_late_part, is_left_out, kind_of,
    read_leb128,
};
use super::{BEGINS_SEQUENCE, CONTINUES, COUNT_MAX, COUNT_SHIFT, GOES_ON};
use crate::time::RtpTimestamp;

/// The first octet of a payload (section 4.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AggregationHeader {
    /// Z: the first OBU element continues one of the packet before.
    pub continues: bool,
    /// Y: the last OBU element goes on in the next packet.
    pub goes_on: bool,
    /// N: the packet is the first of a coded video sequence.
    pub begins_sequence: bool,
    /// W: the number of OBU elements, of which the last has no length field; `None` if all have one.
    pub count: Option<usize>,
}

impl AggregationHeader {
    /// Reads the first octet of a payload.
    pub fn parse(octet: u8) -> Self {
        let count = usize::from(octet >> COUNT_SHIFT) & COUNT_MAX;
        Self {
            continues: octet & CONTINUES != 0,
            goes_on: octet & GOES_ON != 0,
            begins_sequence: octet & BEGINS_SEQUENCE != 0,
            count: (count > 0).then_some(count),
        }
    }
}

/// Splits a payload after its aggregation header into OBU elements.
struct Elements<'p> {
    rest: &'p [u8],
    /// The number of elements left; `None` if every one has a length field.
    left: Option<usize>,
}

impl<'p> Elements<'p> {
    fn next(&mut self) -> Result<Option<&'p [u8]>, PayloadError> {
        match &mut self.left {
            Some(0) => return Ok(None),
            Some(left) => {
                *left -= 1;
                if *left == 0 {
                    return Self::not_empty(std::mem::take(&mut self.rest)).map(Some);
                }
            }
            None if self.rest.is_empty() => return Ok(None),
            None => {}
        }
        let malformed =
            PayloadError::Malformed { reason: "the length of an OBU element is malformed" };
        let (len, len_len) = read_leb128(self.rest).ok_or(malformed)?;
        let behind = &self.rest[len_len..];
        let long = PayloadError::Malformed { reason: "an OBU element is longer than the payload" };
        let (element, rest) = behind.split_at_checked(len).ok_or(long)?;
        self.rest = rest;
        Self::not_empty(element).map(Some)
    }

    fn not_empty(element: &'p [u8]) -> Result<&'p [u8], PayloadError> {
        let empty = PayloadError::Malformed { reason: "an OBU element is empty" };
        if element.is_empty() { Err(empty) } else { Ok(element) }
    }

    fn is_at_end(&self) -> bool {
        self.left.map_or(self.rest.is_empty(), |left| left == 0)
    }
}

/// Returns whether a payload consists of OBU elements, and each that is not the rest of another begins
/// with the header of an OBU without a reserved bit.
pub fn is_well_formed(payload: &[u8]) -> bool {
    let Some((&first, rest)) = payload.split_first() else { return false };
    let header = AggregationHeader::parse(first);
    let mut elements = Elements { rest, left: header.count };
    let mut is_rest = header.continues;
    loop {
        match elements.next() {
            Ok(None) => return true,
            Ok(Some(_)) if std::mem::take(&mut is_rest) => {}
            Ok(Some(element)) if ObuHeader::parse(element).is_some_and(ObuHeader::is_usual) => {}
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

/// The memory that is kept for the fragments of the next OBU.
const OPEN_KEPT: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Av1Depacketiser {
    /// The timestamp of the temporal unit that has begun, until it ends.
    unit: Option<RtpTimestamp>,
    /// Whether an OBU of it, and the temporal delimiter before that, are in the frame.
    has_begun: bool,
    /// The fragments of an OBU that goes on in the next packet. Its size, which precedes it in the
    /// frame, is known at its end only.
    open: Vec<u8>,
}

impl Av1Depacketiser {
    fn push_elements(
        &mut self,
        header: AggregationHeader,
        payload: &[u8],
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        let mut elements = Elements { rest: payload, left: header.count };
        let mut continues = header.continues;
        while let Some(element) = elements.next()? {
            let goes_on = header.goes_on && elements.is_at_end();
            if !std::mem::take(&mut continues) {
                self.begin_obu(element[0], frame)?;
                if !goes_on {
                    finish_obu(element, frame)?;
                    continue;
                }
            }
            self.hold(element, frame.frame_len_max())?;
            if !goes_on {
                finish_obu(&self.open, frame)?;
                self.open.clear();
            }
        }
        Ok(())
    }

    /// Begins an OBU with this first octet. Until it is finished, the frame is not whole.
    fn begin_obu(&mut self, first: u8, frame: &mut FrameBuilder) -> Result<(), PayloadError> {
        let kind = kind_of(first);
        if is_left_out(kind) {
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            if is_late_part(kind) {
                frame.continues_frame();
            }
            frame.push_unit(&[TEMPORAL_DELIMITER << 3 | HAS_SIZE, 0])?;
        }
        frame.open_unit();
        Ok(())
    }

    /// Holds a fragment until its OBU is whole.
    fn hold(&mut self, fragment: &[u8], limit: usize) -> Result<(), PayloadError> {
        let len = self.open.len() + fragment.len();
        if len > limit {
            return Err(PayloadError::FrameTooLarge { limit });
        }
        if len > self.open.capacity() {
            let room = (2 * self.open.capacity()).min(limit).max(len);
            self.open.reserve_exact(room - self.open.len());
        }
        self.open.extend_from_slice(fragment);
        Ok(())
    }

    /// Forgets the fragments of an OBU that cannot be completed.
    fn abandon(&mut self) {
        self.open.clear();
        self.open.shrink_to(OPEN_KEPT);
    }
}

/// Writes an OBU with its size to the open unit of the frame, and finishes it, unless it is of a type
/// that receivers ignore.
fn finish_obu(octets: &[u8], frame: &mut FrameBuilder) -> Result<(), PayloadError> {
    let wrong = PayloadError::Malformed { reason: "an OBU element does not begin with a header" };
    let header = ObuHeader::parse(octets).ok_or(wrong)?;
    let mut body = &octets[header.len..];
    if header.has_size() {
        // A sender should leave it out.
        let malformed = PayloadError::Malformed { reason: "the size of an OBU is malformed" };
        let (len, size_len) = read_leb128(body).ok_or(malformed)?;
        body = body.get(size_len..).filter(|body| body.len() == len).ok_or(malformed)?;
    }
    if !is_left_out(header.kind()) {
        frame.note_layers(header.layers(body));
        frame.extend(header.with_size(true).octets())?;
        frame.extend(Leb128::new(body.len()).octets())?;
        frame.extend(body)?;
        frame.finish_unit();
    }
    Ok(())
}

impl Depacketiser for Av1Depacketiser {
    fn push(
        &mut self,
        payload: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        let Some((&first, rest)) = payload.split_first() else {
            // This is a keep-alive, or a packet of padding only.
            return Ok(());
        };
        let header = AggregationHeader::parse(first);
        if self.unit != Some(packet.timestamp) {
            self.abandon();
            self.has_begun = false;
            if header.begins_sequence {
                frame.starts_frame();
            }
        }
        match (header.continues, self.open.is_empty()) {
            (true, true) => {
                frame.continues_frame();
                return Err(PayloadError::FragmentWithoutStart);
            }
            (false, false) => return Err(PayloadError::FragmentMismatch),
            _ => {}
        }
        self.unit = Some(packet.timestamp);
        self.push_elements(header, rest, frame)?;
        if packet.marker {
            self.unit = None;
            if !self.open.is_empty() {
                let reason = "the temporal unit ends within an OBU";
                return Err(PayloadError::Malformed { reason });
            }
        }
        Ok(())
    }

    fn begins(&self, payload: &[u8]) -> Option<bool> {
        payload.first().map(|first| AggregationHeader::parse(*first).begins_sequence)
    }

    fn lost(&mut self) {
        self.unit = None;
        self.abandon();
    }

    fn held_len(&self) -> usize {
        self.open.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::builder::Delivery;
    use super::super::super::rig::Listener;
    use super::super::Av1;
    use super::*;

    fn listener() -> Listener {
        Listener::new(&Av1::default(), Delivery::AccessUnit)
    }

    #[test]
    fn elements_with_and_without_length_fields_are_joined() {
        let expected = b"\x12\0\x0a\x02ab\x32\x03cde";
        for payload in [&b"\x20\x03\x08ab\x30cde"[..], b"\x00\x03\x08ab\x04\x30cde"] {
            let mut listener = listener();
            listener.take(payload, 1, true).unwrap();
            assert_eq!(listener.frames(), [expected]);
        }
    }

    #[test]
    fn fragments_are_joined_whatever_else_is_in_their_packets() {
        let mut listener = listener();
        listener.take(b"\x60\x03\x08ab\x30cd", 1, false).unwrap();
        listener.take(b"\xd0efg", 1, false).unwrap();
        listener.take(b"\xa0\x01h\x30i", 1, true).unwrap();
        assert_eq!(listener.frames(), [b"\x12\0\x0a\x02ab\x32\x06cdefgh\x32\x01i"]);
    }

    #[test]
    fn a_size_in_a_packet_is_taken_and_a_delimiter_ignored() {
        let mut listener = listener();
        listener.take(b"\x30\x02\x12\0\x03\x32\x01a\x32\x02bc", 1, true).unwrap();
        assert_eq!(listener.frames(), [b"\x12\0\x32\x01a\x32\x02bc"]);
        let wrong = listener.take(b"\x10\x32\x03a", 2, true);
        assert_eq!(
            wrong,
            Err(PayloadError::Malformed { reason: "the size of an OBU is malformed" })
        );
    }

    #[test]
    fn a_temporal_unit_of_ignored_obus_is_no_frame() {
        let mut listener = listener();
        listener.take(b"\x10\x10", 1, true).unwrap();
        listener.take(b"\x50\x40a", 2, false).unwrap();
        listener.take(b"\xa0\x01b\x30c", 2, true).unwrap();
        assert_eq!(listener.frames(), [b"\x12\0\x32\x01c"]);
    }

    #[test]
    fn reception_that_begins_with_a_tile_group_has_no_whole_temporal_unit() {
        let mut listener = listener();
        listener.take(b"\x10\x20a", 1, true).unwrap();
        listener.take(b"\x10\x30b", 2, true).unwrap();
        assert_eq!(listener.frames(), [b"\x12\0\x32\x01b"]);
    }

    #[test]
    fn a_missing_packet_of_a_sender_without_markers_may_have_been_a_beginning() {
        let mut listener = listener();
        for (at, payload) in [&b"\x18\x30a"[..], b"\x10\x30b", b"\x10\x30c"].iter().enumerate() {
            listener.take(payload, at as u32, false).unwrap();
        }
        listener.lose(1);
        for (at, payload) in [&b"\x10\x20d"[..], b"\x10\x30e", b"\x10\x30f"].iter().enumerate() {
            listener.take(payload, 3 + at as u32, false).unwrap();
        }
        let frame = |last| [b"\x12\0\x32\x01", &[last][..]].concat();
        assert_eq!(listener.frames(), [frame(b'a'), frame(b'b'), frame(b'e')]);
    }

    #[test]
    fn the_memory_of_an_abandoned_obu_is_given_back() {
        let mut depacketiser = Av1Depacketiser::default();
        depacketiser.hold(&vec![0; 1 << 20], 1 << 21).unwrap();
        assert!(depacketiser.held_len() >= 1 << 20);
        assert!(depacketiser.hold(&vec![0; (1 << 20) + 1], 1 << 21).is_err());
        depacketiser.lost();
        assert!(depacketiser.held_len() <= OPEN_KEPT);
    }

    #[test]
    fn a_new_timestamp_ends_a_temporal_unit_without_a_marker() {
        let mut listener = listener();
        for (payload, timestamp) in [(b"\x10\x30a", 1), (b"\x10\x30b", 1), (b"\x10\x30c", 2)] {
            listener.take(payload, timestamp, false).unwrap();
        }
        assert_eq!(listener.frames(), [b"\x12\0\x32\x01a\x32\x01b"]);
    }

    #[test]
    fn a_fragment_without_its_beginning_is_refused() {
        let mut listener = listener();
        assert_eq!(listener.take(b"\x90b", 1, true), Err(PayloadError::FragmentWithoutStart));
        listener.take(b"\x10\x30c", 2, true).unwrap();
        listener.take(b"\x50\x30d", 3, false).unwrap();
        assert_eq!(listener.take(b"\x10\x30e", 3, true), Err(PayloadError::FragmentMismatch));
        listener.take(b"\x50\x30f", 4, false).unwrap();
        // The end of that one never comes.
        assert_eq!(listener.take(b"\x90g", 5, true), Err(PayloadError::FragmentWithoutStart));
        listener.take(b"\x10\x30h", 6, true).unwrap();
        assert_eq!(listener.frames(), [b"\x12\0\x32\x01c", b"\x12\0\x32\x01h"]);
    }

    #[test]
    fn a_temporal_unit_with_a_missing_packet_is_dropped() {
        let mut listener = listener();
        listener.take(b"\x10\x30a", 1, false).unwrap();
        listener.lose(1);
        listener.take(b"\x10\x30c", 1, true).unwrap();
        listener.take(b"\x10\x30d", 2, true).unwrap();
        assert_eq!((listener.frames(), listener.dropped()), (vec![b"\x12\0\x32\x01d".to_vec()], 1));
    }

    #[test]
    fn payloads_of_obus_are_told_from_others() {
        for payload in
            [&b"\x10\x30a"[..], b"\x20\x03\x08ab\x30cde", b"\xd0any", b"\x90any", b"\x10\x34\x20"]
        {
            assert!(is_well_formed(payload), "{payload:02x?}");
        }
        // A reserved bit, reserved types, lengths that are wrong, and nothing.
        for payload in
            [&b"\x10\x31a"[..], b"\x10\x00", b"\x10\x48", b"\0\x10\x0b\x38", b"\x10", b""]
        {
            assert!(!is_well_formed(payload), "{payload:02x?}");
        }
    }

    #[test]
    fn malformed_payloads_are_errors() {
        for payload in [
            &b"\x10"[..],     // no element
            b"\x20\x05\x30",  // longer than the payload
            b"\x20\x80",      // a length without an end
            b"\x00\x00",      // an empty element
            b"\x20\x02\x30a", // two elements, one there
            b"\x10\xb0",      // the forbidden bit
            b"\x10\x34",      // half of a header
            b"\x50\x30a",     // the marker within an OBU
        ] {
            let outcome = listener().take(payload, 1, true);
            assert!(matches!(outcome, Err(PayloadError::Malformed { .. })), "{payload:02x?}");
        }
    }
}
