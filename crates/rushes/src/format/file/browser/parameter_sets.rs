//! The parameter sets of a stream, repeated before key frames that lack them.

use rushes_proto::payload::nal::{NalCodec, parameter_set_id};

use crate::format::nal::{annex_b, units};

/// Maximum number of parameter sets kept, and of their octets; the oldest are dropped. Streams have one
/// set of each type, rarely a few.
const SETS_MAX: usize = 64;
const OCTETS_MAX: usize = 256 << 10;

/// A set that later ones of the same type and identifier replace.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Set {
    nal_type: u8,
    id: Option<u8>,
    unit: Vec<u8>,
}

impl Set {
    fn of(codec: NalCodec, unit: &[u8]) -> Option<Self> {
        let nal_type = codec.header(unit)?.nal_type;
        let id = parameter_set_id(codec, unit);
        codec.is_parameter_set(nal_type).then(|| Self { nal_type, id, unit: unit.to_vec() })
    }

    /// Returns whether a decoder keeps only one of the two.
    fn replaces(&self, other: &Self) -> bool {
        let is_same = match (self.id, other.id) {
            (Some(id), Some(other)) => id == other,
            _ => self.unit == other.unit,
        };
        self.nal_type == other.nal_type && is_same
    }
}

/// The latest parameter sets of a stream, oldest first.
#[derive(Debug)]
pub(super) struct ParameterSets {
    codec: NalCodec,
    sets: Vec<Set>,
}

impl ParameterSets {
    pub(super) fn new(codec: NalCodec) -> Self {
        Self { codec, sets: Vec::new() }
    }

    /// Takes the sets of an Annex B access unit.
    pub(super) fn note(&mut self, access_unit: &[u8]) {
        for unit in units(access_unit) {
            let Some(set) = Set::of(self.codec, unit) else { continue };
            self.sets.retain(|other| !set.replaces(other));
            self.sets.push(set);
            let len = |sets: &[Set]| sets.iter().map(|set| set.unit.len()).sum::<usize>();
            while self.sets.len() > SETS_MAX || len(&self.sets) > OCTETS_MAX {
                self.sets.remove(0);
            }
        }
    }

    /// Returns whether there is a set of each type that a decoder needs.
    pub(super) fn are_complete(&self) -> bool {
        let needed: &[u8] = match self.codec {
            NalCodec::H264 => &[7, 8],
            NalCodec::H265 => &[32, 33, 34],
            NalCodec::H266 => &[15, 16],
        };
        needed.iter().all(|nal_type| self.sets.iter().any(|set| set.nal_type == *nal_type))
    }

    /// Returns all sets, with start codes, in the order in which decoders need them.
    pub(super) fn all(&self) -> Vec<u8> {
        annex_b(self.missing_from(&[]).into_iter().map(|set| &set.unit))
    }

    /// Adds the sets that an Annex B access unit lacks: after an access unit delimiter, and after its own sets, which
    /// they may refer to.
    pub(super) fn complete(&self, access_unit: &mut Vec<u8>) {
        let own: Vec<Set> = units(access_unit)
            .filter_map(|unit| Set::of(self.codec, unit))
            .take(SETS_MAX)
            .collect();
        for set in self.missing_from(&own) {
            let at = self.place(access_unit, set.nal_type);
            access_unit.splice(at..at, annex_b([&set.unit]));
        }
    }

    /// Returns the sets that are not among `own`: VPS, SPS and PPS, in this order.
    fn missing_from(&self, own: &[Set]) -> Vec<&Set> {
        let is_missing = |set: &&Set| !own.iter().any(|other| set.replaces(other));
        let mut missing: Vec<&Set> = self.sets.iter().filter(is_missing).collect();
        missing.sort_by_key(|set| set.nal_type);
        missing
    }

    /// Returns the place of a further set: after the access unit delimiter, if there is one, and after the sets of the
    /// same type or of those before it.
    fn place(&self, access_unit: &[u8], nal_type: u8) -> usize {
        let mut starts = rushes_proto::payload::nal::find_start_codes(access_unit).peekable();
        let mut place = 0;
        while let Some(start) = starts.next() {
            let Some(header) = self.codec.header(&access_unit[start + 3..]) else { continue };
            let is_before = self.codec.is_access_unit_delimiter(header.nal_type)
                || (self.codec.is_parameter_set(header.nal_type) && header.nal_type <= nal_type);
            if is_before {
                place = match starts.peek() {
                    // A zero before a start code belongs to it.
                    Some(next) if access_unit[next - 1] == 0 => next - 1,
                    Some(next) => *next,
                    None => access_unit.len(),
                };
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An SPS or PPS of H.264 with identifier 0 and this last octet.
    fn set(nal_type: u8, last: u8) -> Vec<u8> {
        match nal_type {
            7 => vec![0, 0, 0, 1, 0x67, 66, 0xc0, 30, 0x80, last],
            _ => vec![0, 0, 0, 1, 0x68, 0x80, last],
        }
    }

    const KEY: &[u8] = &[0, 0, 0, 1, 0x65, 0x88, 1, 2];
    const DELIMITER: &[u8] = &[0, 0, 0, 1, 9, 0xf0];

    fn of(access_units: &[Vec<u8>]) -> ParameterSets {
        let mut sets = ParameterSets::new(NalCodec::H264);
        for access_unit in access_units {
            sets.note(access_unit);
        }
        sets
    }

    fn completed(sets: &ParameterSets, access_unit: &[u8]) -> Vec<u8> {
        let mut access_unit = access_unit.to_vec();
        sets.complete(&mut access_unit);
        access_unit
    }

    #[test]
    fn the_last_sets_are_repeated_in_order_after_the_delimiter() {
        let sets = of(&[[set(7, 1), set(8, 1)].concat(), set(8, 2), set(7, 3)]);
        assert!(sets.are_complete());
        assert_eq!(completed(&sets, KEY), [set(7, 3), set(8, 2), KEY.to_vec()].concat());
        let delimited = [DELIMITER, KEY].concat();
        let expected = [DELIMITER.to_vec(), set(7, 3), set(8, 2), KEY.to_vec()].concat();
        assert_eq!(completed(&sets, &delimited), expected);
        assert_eq!(sets.all(), [set(7, 3), set(8, 2)].concat());
    }

    #[test]
    fn a_key_frame_keeps_its_own_sets() {
        let sets = of(&[[set(7, 1), set(8, 1)].concat()]);
        let whole = [set(7, 9), set(8, 9), KEY.to_vec()].concat();
        assert_eq!(completed(&sets, &whole), whole);
        let half = [set(7, 9), KEY.to_vec()].concat();
        let expected = [set(7, 9), set(8, 1), KEY.to_vec()].concat();
        assert_eq!(completed(&sets, &half), expected, "a PPS after the SPS that it refers to");
        let other = [DELIMITER, &set(8, 9), KEY].concat();
        let expected = [DELIMITER.to_vec(), set(7, 1), set(8, 9), KEY.to_vec()].concat();
        assert_eq!(completed(&sets, &other), expected);
    }

    #[test]
    fn a_thousand_sets_take_no_more_room_than_there_is() {
        let mut sets = ParameterSets::new(NalCodec::H264);
        for n in 0..1000_u16 {
            // Damaged sets have no identifier, and each is another one.
            let [a, b] = (n | 0x8080).to_be_bytes();
            sets.note(&[&[0, 0, 0, 1, 0x6f, a, b][..], &[7; 1000]].concat());
        }
        assert!(sets.sets.len() <= SETS_MAX, "{}", sets.sets.len());
        let large = [&[0, 0, 0, 1, 0x68, 0x80][..], &vec![7; OCTETS_MAX]].concat();
        sets.note(&large);
        assert!(sets.sets.is_empty());
    }
}
