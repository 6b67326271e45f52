//! Finds the NAL units of a frame with start codes, as far into the frame as they are needed.
//!
//! A sender that searches a large frame as a whole reads it twice from memory: once to find its units
//! and once to copy them. Searched piece by piece, the octets are still in the cache when they are copied.

use std::ops::Range;

use rushes_scan::find_start_code;

use super::super::error::FrameError;
use super::START_CODE_LEN;

/// A search for the units of one frame, whose octets are passed to each call.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct UnitSearch {
    /// Where the unit begins whose end is not known yet; `None` if the whole frame was searched.
    start: Option<usize>,
    /// No start code after that unit begins before this octet.
    searched: usize,
    /// The end of the octets before `searched` that belong to the unit: zeros may follow that do not.
    end: usize,
}

impl UnitSearch {
    /// Begins with the first start code of `frame`. If there is none, the search has ended.
    ///
    /// # Errors
    /// [`FrameError::NoStartCode`] if octets other than zeros precede the first start code.
    pub(in super::super) fn new(frame: &[u8]) -> Result<Self, FrameError> {
        let Some(first) = frame.iter().position(|octet| *octet != 0) else {
            return Ok(Self { start: None, searched: frame.len(), end: 0 });
        };
        if first < START_CODE_LEN - 1 || frame[first] != 1 {
            let mut found = [0; 4];
            let len = frame.len().min(found.len());
            found[..len].copy_from_slice(&frame[..len]);
            return Err(FrameError::NoStartCode { found });
        }
        Ok(Self::at(first + 1))
    }

    fn at(start: usize) -> Self {
        Self { start: Some(start), searched: start, end: start }
    }

    /// Returns the octets that are known to belong to the unit whose end is not known yet; `None` if the
    /// whole frame was searched.
    pub(in super::super) fn open(&self) -> Option<Range<usize>> {
        Some(self.start?..self.end)
    }

    /// Returns how far the frame was searched.
    pub(in super::super) fn searched(&self) -> usize {
        self.searched
    }

    /// Searches `frame` up to octet `to`. Returns the next unit, without the zeros after it, if it ends
    /// before `to` or with the frame; empty units are left out.
    pub(in super::super) fn next_before(
        &mut self,
        frame: &[u8],
        to: usize,
    ) -> Option<Range<usize>> {
        let to = to.min(frame.len());
        loop {
            let start = self.start?;
            let unsearched = frame.get(self.searched..to)?;
            let code = find_start_code(unsearched).map(|at| self.searched + at);
            // A start code may begin with the last two of these octets.
            let certain = match code {
                Some(code) => code,
                None if to == frame.len() => to,
                None => to.saturating_sub(START_CODE_LEN - 1).max(self.searched),
            };
            let zeros = frame[self.searched..certain].iter().rev().take_while(|octet| **octet == 0);
            let solid = certain - zeros.count();
            if solid > self.searched {
                self.end = solid;
            }
            self.searched = certain;
            let unit = start..self.end;
            match code {
                Some(code) => *self = Self::at(code + START_CODE_LEN),
                None if to == frame.len() => self.start = None,
                None => return None,
            }
            if !unit.is_empty() {
                return Some(unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns the units, octet by octet.
    fn naive(frame: &[u8]) -> Vec<Range<usize>> {
        let codes: Vec<usize> = (0..frame.len().saturating_sub(2))
            .filter(|at| frame[*at..at + 3] == [0, 0, 1])
            .collect();
        let ends = codes.iter().skip(1).copied().chain([frame.len()]);
        let units = codes.iter().zip(ends).map(|(code, end)| {
            let start = code + 3;
            let len =
                frame[start..end].iter().rposition(|octet| *octet != 0).map_or(0, |at| at + 1);
            start..start + len
        });
        units.filter(|unit| !unit.is_empty()).collect()
    }

    proptest! {
        #[test]
        fn a_search_in_steps_finds_the_units_of_a_loop_over_octets(
            octets in vec(prop_oneof![3 => Just(0_u8), 2 => Just(1), 1 => any::<u8>()], 0..900),
            steps in vec(0..50_usize, 1..10),
        ) {
            let frame = [&[0, 0, 1][..], &octets].concat();
            let expected = naive(&frame);
            let mut search = UnitSearch::new(&frame).unwrap();
            let (mut units, mut to) = (Vec::new(), 0);
            for step in steps.into_iter().chain([usize::MAX / 2]) {
                to += step;
                while let Some(unit) = search.next_before(&frame, to) {
                    units.push(unit);
                }
                if let Some(open) = search.open() {
                    let next = expected.get(units.len());
                    // What is known of a unit belongs to it; a unit of which nothing is known may be empty.
                    prop_assert!(open.is_empty() || next.is_some_and(|unit| {
                        unit.start == open.start && unit.end >= open.end
                    }), "{open:?} of {next:?}");
                    prop_assert!(search.searched() + 2 >= to.min(frame.len()));
                }
            }
            prop_assert_eq!(search.open(), None);
            prop_assert_eq!(units, expected);
        }
    }

    #[test]
    fn a_frame_of_zeros_has_no_units_and_other_octets_need_a_start_code() {
        for frame in [&b""[..], b"\0\0\0\0"] {
            let mut search = UnitSearch::new(frame).unwrap();
            assert_eq!((search.open(), search.next_before(frame, 9)), (None, None));
        }
        for frame in [&b"\x01a"[..], b"\0\x01a", b"\0\0\x02\0\0\x01a"] {
            assert!(matches!(UnitSearch::new(frame), Err(FrameError::NoStartCode { .. })));
        }
    }
}
