//! The units of the frame that is being split, found as they are needed.

use std::marker::PhantomData;
use std::ops::Range;

use super::builder::Framing;
use super::error::FrameError;
use super::layout::Layout;
use super::nal::{UnitSearch, find_units};

/// Octets that are searched at a time: they are still in the first-level cache when they are copied.
const STEP: usize = 16 << 10;

/// A unit as far as it is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Known {
    pub(super) start: usize,
    /// The end of the octets that are known to belong to it.
    pub(super) end: usize,
    /// Whether these are all of its octets.
    pub(super) is_whole: bool,
}

impl Known {
    #[inline]
    pub(super) fn range(self) -> Range<usize> {
        self.start..self.end
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }
}

/// The units of one frame that can be sent.
#[derive(Debug)]
pub(super) struct Units<L> {
    whole: Vec<Range<usize>>,
    /// The unit after them, as far as it is known.
    open: Option<Known>,
    /// The search for more; `None` if all are known.
    search: Option<UnitSearch>,
    /// Number of units found that cannot be sent, and why the first of them cannot.
    left_out: usize,
    refused: Option<FrameError>,
    layout: PhantomData<L>,
}

impl<L: Layout> Units<L> {
    pub(super) fn new() -> Self {
        Self {
            whole: Vec::new(),
            open: None,
            search: None,
            left_out: 0,
            refused: None,
            layout: PhantomData,
        }
    }

    /// Forgets the units of the last frame.
    pub(super) fn clear(&mut self) {
        self.whole.clear();
        self.open = None;
        self.search = None;
        self.left_out = 0;
        self.refused = None;
    }

    /// Begins with `frame`, and finds its first unit that can be sent.
    ///
    /// # Errors
    /// [`FrameError`] if there is none, or if length fields contradict the frame; there are then no units.
    pub(super) fn start(&mut self, frame: &[u8], framing: Framing) -> Result<(), FrameError> {
        self.clear();
        match framing {
            Framing::AnnexB => self.search = Some(UnitSearch::new(frame)?),
            Framing::LengthPrefixed => {
                let mut found = std::mem::take(&mut self.whole);
                let outcome = find_units(frame, framing, &mut found);
                found.retain(|unit| outcome.is_ok() && self.can_be_sent(frame, unit));
                self.whole = found;
                outcome?;
            }
        }
        if self.has(frame, 0) {
            Ok(())
        } else {
            Err(self.refused.take().unwrap_or(FrameError::Empty))
        }
    }

    /// Returns whether a unit can be sent, and counts it if it cannot.
    fn can_be_sent(&mut self, frame: &[u8], unit: &Range<usize>) -> bool {
        let Err(error) = check_unit::<L>(frame, unit.clone()) else { return true };
        self.left_out += 1;
        self.refused.get_or_insert(error);
        false
    }

    /// Returns unit `n`, if it is known.
    #[inline]
    pub(super) fn get(&self, n: usize) -> Option<Known> {
        match self.whole.get(n) {
            Some(&Range { start, end }) => Some(Known { start, end, is_whole: true }),
            None => self.open.filter(|_| n == self.whole.len()),
        }
    }

    /// Returns whether there is a unit `n`; searches on until that is known.
    #[inline]
    pub(super) fn has(&mut self, frame: &[u8], n: usize) -> bool {
        while self.get(n).is_none() {
            if !self.search_on(frame) {
                return false;
            }
        }
        true
    }

    /// Returns whether the whole frame was searched.
    pub(super) fn are_all_known(&self) -> bool {
        self.search.is_none()
    }

    /// Returns how far the frame was searched.
    pub(super) fn searched(&self) -> usize {
        self.search.map_or(usize::MAX, |search| search.searched())
    }

    /// Searches some more octets; returns `false` if the whole frame was searched before.
    pub(super) fn search_on(&mut self, frame: &[u8]) -> bool {
        let Some(mut search) = self.search.take() else { return false };
        let to = search.searched().saturating_add(STEP);
        while let Some(unit) = search.next_before(frame, to) {
            if self.can_be_sent(frame, &unit) {
                self.whole.push(unit);
            }
        }
        let open = search.open();
        self.search = open.is_some().then_some(search);
        let open = open.filter(|unit| check_unit::<L>(frame, unit.clone()).is_ok());
        self.open = open.map(|Range { start, end }| Known { start, end, is_whole: false });
        true
    }

    /// Returns the number of units found so far that cannot be sent.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }
}

fn check_unit<L: Layout>(frame: &[u8], unit: Range<usize>) -> Result<(), FrameError> {
    let offset = unit.start;
    if unit.len() < L::HEADER_LEN {
        return Err(FrameError::NalHeader { offset, len: unit.len() });
    }
    let nal_type = L::nal_type(L::header(&frame[unit]));
    if L::NAL_TYPES.contains(&nal_type) {
        Ok(())
    } else {
        Err(FrameError::NalType { offset, nal_type })
    }
}
