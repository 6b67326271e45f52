//! Temporal units into packets.

use super::super::Packetiser;
use super::super::error::FrameError;
use super::super::fragment::{Fragment, MAX_OWN_OCTETS, Run};
use super::super::layers::Layers;
use super::obu::{Leb128, Obu, SEQUENCE_HEADER, is_left_out, obus};
use super::{BEGINS_SEQUENCE, CONTINUES, COUNT_MAX, COUNT_SHIFT, GOES_ON, is_key_frame};

/// Minimum octets of an OBU element that is added to a packet with others: fewer are not worth their
/// length field.
const ELEMENT_LEN_MIN: usize = 16;

/// Minimum octets of a payload: the aggregation header, and of an OBU its header and one octet.
const LIMIT_MIN: usize = 4;

/// Returns whether an OBU may follow others of a layer in the same packet, which has at most one layer,
/// and a sequence header only at its beginning.
fn may_follow(obu: &Obu, layer: Option<u8>) -> bool {
    let has_layer = layer.is_none() || [None, layer].contains(&obu.header.layer());
    obu.header.kind() != SEQUENCE_HEADER && has_layer
}

#[derive(Default)]
pub(super) struct Av1Packetiser {
    limit: usize,
    /// The OBUs of the temporal unit that streams carry.
    obus: Vec<Obu>,
    /// The OBU to be sent next, and the number of its octets, header included, that were sent.
    at: usize,
    sent: usize,
    /// Whether the next packet begins a coded video sequence.
    begins_sequence: bool,
}

impl Av1Packetiser {
    /// Returns the octets of the next OBU that are not sent, and of the header that it has then.
    fn rest(&self) -> Option<(&Obu, usize)> {
        let obu = self.obus.get(self.at)?;
        Some((obu, obu.header.len + obu.body.len() - self.sent))
    }

    /// Adds octets of the OBU at `self.at`, from `self.sent` on.
    fn push(&mut self, len: usize, fragment: &mut Fragment) {
        let obu = &self.obus[self.at];
        let header = obu.header.with_size(false);
        let (own, end) = (header.octets(), self.sent + len);
        if self.sent < own.len() {
            fragment.push_own(&own[self.sent..end.min(own.len())]);
        }
        let body = |at: usize| obu.body.start + at.saturating_sub(own.len());
        if end > own.len() {
            fragment.push_frame(body(self.sent)..body(end));
        }
        self.sent = end;
        if end == own.len() + obu.body.len() {
            (self.at, self.sent) = (self.at + 1, 0);
        }
    }

    /// Returns the lengths of the next packet's OBU elements; all but the last have a length field.
    fn plan(&self) -> ([usize; COUNT_MAX], usize) {
        let (mut lens, mut count, mut room) = ([0; COUNT_MAX], 0, self.limit - 1);
        let mut sent = self.sent;
        let mut layer = None;
        for (n, obu) in self.obus[self.at..].iter().enumerate().take(COUNT_MAX) {
            let rest = obu.header.len + obu.body.len() - sent;
            if n > 0 && !may_follow(obu, layer) {
                break;
            }
            layer = layer.or_else(|| obu.header.layer());
            sent = 0;
            lens[n] = rest.min(room);
            count = n + 1;
            // The next one needs room for the length of this one.
            room = (room - lens[n]).saturating_sub(Leb128::new(lens[n]).octets().len());
            if room < ELEMENT_LEN_MIN {
                break;
            }
        }
        (lens, count)
    }
}

impl Packetiser for Av1Packetiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        self.obus.clear();
        (self.limit, self.at, self.sent) = (limit, 0, 0);
        if frame.is_empty() {
            return Err(FrameError::Empty);
        }
        if limit < LIMIT_MIN {
            return Err(FrameError::PacketTooSmall { limit, need: LIMIT_MIN });
        }
        for obu in obus(frame) {
            match obu {
                Ok(obu) if is_left_out(obu.header.kind()) => {}
                Ok(obu) => self.obus.push(obu),
                Err((offset, reason)) => {
                    self.obus.clear();
                    return Err(FrameError::Obu { offset, reason });
                }
            }
        }
        if self.obus.is_empty() {
            return Err(FrameError::Empty);
        }
        self.begins_sequence = is_key_frame(frame);
        Ok(())
    }

    fn next(&mut self, _frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.at == self.obus.len() {
            return false;
        }
        let (lens, count) = self.plan();
        let last = self.at + count - 1;
        let mut header = (count as u8) << COUNT_SHIFT;
        if self.sent > 0 {
            header |= CONTINUES;
        }
        if std::mem::take(&mut self.begins_sequence) {
            header |= BEGINS_SEQUENCE;
        }
        let before = if count == 1 { self.sent } else { 0 };
        let obu = &self.obus[last];
        if before + lens[count - 1] < obu.header.len + obu.body.len() {
            header |= GOES_ON;
        }
        fragment.push_own(&[header]);
        for (n, len) in lens.into_iter().take(count).enumerate() {
            if n + 1 < count {
                fragment.push_own(Leb128::new(len).octets());
            }
            self.push(len, fragment);
        }
        fragment.set_marker(self.at == self.obus.len());
        true
    }

    fn layers(&mut self, frame: &[u8]) -> Option<Layers> {
        let parts = self.obus.iter();
        let parts = parts.map(|obu| obu.header.layers(frame.get(obu.body.clone())?));
        parts.reduce(Layers::join).flatten()
    }

    fn next_run(&mut self, _frame: &[u8], most: usize) -> Option<Run> {
        let (obu, rest) = self.rest()?;
        let start = obu.body.start + self.sent.checked_sub(obu.header.len)?;
        let len = self.limit - 1;
        // The packet with the end of the OBU may have others.
        let count = ((rest - 1) / len).min(most);
        if self.sent == 0 || count == 0 {
            return None;
        }
        self.sent += count * len;
        let mut own = [0; MAX_OWN_OCTETS];
        own[0] = CONTINUES | GOES_ON | 1 << COUNT_SHIFT;
        Some(Run { own, own_len: 1, start, len, count })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rig::send;
    use super::*;

    fn sent(unit: &[u8], limit: usize) -> Vec<(Vec<u8>, bool)> {
        let sent = send(&mut Av1Packetiser::default(), unit, limit);
        sent.into_iter().map(|it| (it.octets, it.marker)).collect()
    }

    #[test]
    fn the_example_of_the_specification_is_one_packet_for_each_layer() {
        // TD SH MD(0,0) FR(0,0) MD(0,1) FR(0,1), section 5.1.
        let unit = [
            &[0x12, 0][..],
            &[0x0a, 2, 0xa1, 0xa2],
            &[0x2e, 0x00, 1, 0xb1],
            &[0x36, 0x00, 2, 0xc1, 0xc2],
            &[0x2e, 0x08, 1, 0xd1],
            &[0x36, 0x08, 2, 0xe1, 0xe2],
        ];
        let expected = [
            (b"\x30\x03\x08\xa1\xa2\x03\x2c\x00\xb1\x34\x00\xc1\xc2".to_vec(), false),
            (b"\x20\x03\x2c\x08\xd1\x34\x08\xe1\xe2".to_vec(), true),
        ];
        assert_eq!(sent(&unit.concat(), 100), expected);
    }

    #[test]
    fn an_obu_that_is_too_long_is_sent_in_fragments() {
        let expected = [
            (b"\x50\x30abc".to_vec(), false),
            (b"\xd0defg".to_vec(), false),
            (b"\x90hi".to_vec(), true),
        ];
        assert_eq!(sent(b"\x12\0\x32\x09abcdefghi", 5), expected);
        // The same without a delimiter and a size.
        assert_eq!(sent(b"\x30abcdefghi", 5), expected);
    }

    #[test]
    fn the_first_packet_of_a_sequence_says_so() {
        let unit = b"\x12\0\x0a\x06\x18\x15\x7f\xfc\x00\x08\x32\x03abc";
        assert_eq!(sent(unit, 100)[0].0[0], 0x28);
        let later = b"\x12\0\x32\x03\x30bc";
        assert_eq!(sent(later, 100)[0].0[0], 0x10);
    }

    #[test]
    fn what_streams_do_not_carry_is_left_out() {
        // A tile list.
        assert_eq!(sent(b"\x12\0\x42\x01a\x32\x01b", 9), [(b"\x10\x30b".to_vec(), true)]);
        let mut packetiser = Av1Packetiser::default();
        assert_eq!(packetiser.start(b"\x12\0", 9), Err(FrameError::Empty));
        assert_eq!(packetiser.start(b"", 9), Err(FrameError::Empty));
        let error = FrameError::PacketTooSmall { limit: 3, need: 4 };
        assert_eq!(packetiser.start(b"\x32\x01b", 3), Err(error));
        let damaged = packetiser.start(b"\x12\0\x32\x05b", 9);
        assert!(matches!(damaged, Err(FrameError::Obu { offset: 2, .. })), "{damaged:?}");
        assert!(!packetiser.next(b"", &mut Fragment::default()));
    }
}
