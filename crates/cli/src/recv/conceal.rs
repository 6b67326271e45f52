//! Missing parts of uncompressed video, concealed by the frame before.

use std::borrow::Cow;
use std::ops::Range;

use rushes::{Frame, Ssrc};

/// A source, and whether it is about its second fields.
type Origin = (Ssrc, bool);

/// The latest first field and second field, or frame.
#[derive(Debug, Default)]
pub(super) struct Conceal {
    before: [Option<(Origin, Vec<u8>)>; 2],
}

impl Conceal {
    /// Returns the octets of a frame. Parts that did not arrive are as in the frame before, or zero if
    /// there was none of the same source.
    pub(super) fn take<'f>(&mut self, frame: &'f Frame) -> Cow<'f, [u8]> {
        let origin = (frame.ssrc(), frame.is_second_field());
        self.conceal(origin, frame.data(), frame.missing())
    }

    fn conceal<'f>(
        &mut self,
        origin: Origin,
        octets: &'f [u8],
        missing: &[Range<usize>],
    ) -> Cow<'f, [u8]> {
        let before = &mut self.before[usize::from(origin.1)];
        let mut octets = Cow::Borrowed(octets);
        if let Some((of, before)) = before
            && (*of, before.len()) == (origin, octets.len())
        {
            for range in missing {
                octets.to_mut()[range.clone()].copy_from_slice(&before[range.clone()]);
            }
        }
        let (of, copy) = before.get_or_insert_with(|| (origin, Vec::new()));
        *of = origin;
        copy.clear();
        copy.extend_from_slice(&octets);
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_those_of_the_frame_before_of_the_same_source_and_field() {
        let mut conceal = Conceal::default();
        let [one, two] = [Ssrc(1), Ssrc(2)].map(|ssrc| (ssrc, false));
        let mut take = |origin, octets, missing: &[Range<usize>]| {
            String::from_utf8(conceal.conceal(origin, octets, missing).into_owned()).unwrap()
        };
        assert_eq!(take(one, b"0bcd", &[0..1; 1]), "0bcd", "nothing was before");
        assert_eq!(take(one, b"ABCD", &[]), "ABCD");
        assert_eq!(take(one, b"0000", &[1..2, 3..4]), "0B0D");
        assert_eq!(take((Ssrc(1), true), b"00", &[0..2; 1]), "00", "of another field");
        assert_eq!(take(one, b"0000", &[0..4; 1]), "0B0D");
        assert_eq!(take(two, b"0123", &[0..4; 1]), "0123", "of another source");
        assert_eq!(take(two, b"012", &[0..3; 1]), "012", "of another length");
    }
}
