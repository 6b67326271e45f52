//! Frames that are loaded into memory in advance.

use crate::layout::Layout;
use crate::rate::Rate;
use crate::source::{Frame, Source, SourceError};

/// A source's frames, read once and returned any number of times without a copy.
#[derive(Clone, Debug)]
pub struct Preloaded {
    frames: Vec<Frame>,
    layout: Layout,
    rate: Rate,
    next: usize,
    endless: bool,
}

impl Preloaded {
    /// Reads frames from the position of `source` to its end, or up to `bound` bytes in total.
    ///
    /// # Errors
    ///
    /// [`SourceError::Bound`] if the first frame does not fit, [`SourceError::Empty`] if there is
    /// no frame, [`SourceError::Mismatch`] if they change, and the errors of the source.
    pub fn new(source: &mut dyn Source, bound: usize) -> Result<Self, SourceError> {
        let (layout, rate) = (*source.layout(), source.rate());
        let frame = layout.bytes();
        let most = bound / frame;
        if most == 0 {
            return Err(SourceError::Bound { frame, bound });
        }
        let mut frames = Vec::new();
        while frames.len() < most {
            let Some(frame) = source.next_frame()? else { break };
            if *source.layout() != layout {
                let of = |it: &Layout| (it.format(), it.width(), it.height());
                let (have, want) = (of(source.layout()), of(&layout));
                return Err(SourceError::Mismatch { path: "preloaded frames".into(), have, want });
            }
            frames.push(frame);
        }
        Self::of_frames(frames, layout, rate)
    }

    fn of_frames(frames: Vec<Frame>, layout: Layout, rate: Rate) -> Result<Self, SourceError> {
        if frames.is_empty() {
            return Err(SourceError::Empty("preloaded frames".into()));
        }
        Ok(Self { frames, layout, rate, next: 0, endless: false })
    }

    /// Repeats the frames endlessly.
    #[must_use]
    pub fn endless(self) -> Self {
        Self { endless: true, ..self }
    }

    /// Returns the frames, in order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }
}

impl Source for Preloaded {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        (!self.endless).then_some(self.frames.len() as u64)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        if self.endless && self.next == self.frames.len() {
            self.next = 0;
        }
        let frame = self.frames.get(self.next).cloned();
        self.next += usize::from(frame.is_some());
        Ok(frame)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Pattern, PatternSpec};

    fn pattern(frames: u64) -> Pattern {
        let spec = format!("pattern:30x26,frames={frames}");
        Pattern::new(&spec.parse::<PatternSpec>().unwrap()).unwrap()
    }

    #[test]
    fn frames_are_lent_from_the_same_memory_each_time_round() {
        let mut source = Preloaded::new(&mut pattern(3), usize::MAX).unwrap().endless();
        assert_eq!((source.frames().len(), source.length()), (3, None));
        let mut round = || -> Vec<*const u8> {
            (0..3).map(|_| source.next_frame().unwrap().unwrap().as_ptr()).collect()
        };
        let first = round();
        assert_eq!(round(), first);
    }

    #[test]
    fn the_end_is_an_end_until_rewound() {
        let mut source = Preloaded::new(&mut pattern(2), usize::MAX).unwrap();
        assert_eq!(source.length(), Some(2));
        for _ in 0..2 {
            assert!(source.next_frame().unwrap().is_some());
            assert!(source.next_frame().unwrap().is_some());
            assert!(source.next_frame().unwrap().is_none());
            source.rewind().unwrap();
        }
    }

    #[test]
    fn no_more_is_read_than_the_bound_holds() {
        let bytes = 30 * 26 * 3;
        let source = Preloaded::new(&mut pattern(9), 2 * bytes + 1).unwrap();
        assert_eq!(source.frames().len(), 2);
        let error = Preloaded::new(&mut pattern(9), bytes - 1).unwrap_err();
        assert!(matches!(error, SourceError::Bound { .. }));
        let error = Preloaded::new(&mut pattern(0), usize::MAX).unwrap_err();
        assert!(matches!(error, SourceError::Empty(_)));
    }
}
