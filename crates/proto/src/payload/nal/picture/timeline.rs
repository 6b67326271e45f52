//! Converts picture order counts to positions.
//!
//! Each picture has a *due* position: the total duration of the pictures presented before it. This
//! is its position unless an earlier guess, of the step of the counts or of the number of leading
//! pictures, was wrong and left no room for it. In that case it gets the nearest position between
//! those of its neighbours in presentation order.

use super::position::Position;
use super::reading::Picture;
use super::recent::{Placed, Recent};
use super::step::Step;

/// Maximum distance of a count from the highest previous one in its sequence: the standards allow
/// half the range of a lower part of 16 bits.
const JUMP_MAX: i64 = 1 << 16;

/// Minimum distance from the last picture of a sequence to the first one of the next, if leading
/// pictures may have to fit between them.
const ROOM_MIN: i64 = Position::PER_FRAME / 2;

/// Assigns positions to the pictures of a stream, which are pushed in decoding order.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    step: Step,
    sequence: Option<Sequence>,
    /// The highest position assigned.
    highest: Option<i64>,
    /// The due position after all pictures of earlier sequences and all pictures without a count.
    next: i64,
    /// The duration of the leading pictures of the last sequence that could have any.
    leading: i64,
}

/// A coded video sequence.
#[derive(Clone, Debug)]
struct Sequence {
    /// The count of its first picture in decoding order.
    first: i64,
    /// The highest count, and the duration of its picture.
    last: (i64, i64),
    /// A count and its due position, from which the other due positions are calculated.
    anchor: (i64, i64),
    /// The due position of its first picture in presentation order; `None` in the first sequence,
    /// whose leading pictures may have any position.
    begin: Option<i64>,
    /// The lowest count.
    lowest: i64,
    may_have_leading: bool,
    /// Whether more leading pictures may follow: none has followed the first one in both orders.
    is_open: bool,
    recent: Recent,
}

impl Sequence {
    fn due(&self, count: i64, step: &Step) -> i64 {
        let (anchor, due) = self.anchor;
        due + ((count - anchor) * Position::PER_FRAME).div_euclid(step.counts())
    }

    /// Returns the duration of the leading pictures so far.
    fn leading(&self, step: &Step) -> i64 {
        self.due(self.first, step) - self.due(self.lowest, step)
    }
}

impl Timeline {
    /// Creates a timeline; `counts` is the usual difference of the counts of two adjacent frames.
    pub(super) fn new(counts: i64) -> Self {
        Self { step: Step::new(counts), sequence: None, highest: None, next: 0, leading: 0 }
    }

    /// Ends the sequence; returns the step that all sequences so far have shown.
    pub(super) fn end(&mut self) -> Step {
        self.end_sequence();
        self.step.clone()
    }

    /// Sets what is known about the next sequence: the step, and the difference of counts between
    /// its earliest leading picture and its first picture.
    pub(super) fn foresee(&mut self, step: Step, leading: Option<i64>) {
        self.step = step;
        if let Some(leading) = leading {
            self.leading = leading.clamp(0, JUMP_MAX) * Position::PER_FRAME / self.step.counts();
        }
    }

    /// Returns whether the next picture may continue a sequence.
    pub(super) fn is_in_sequence(&self) -> bool {
        self.sequence.is_some()
    }

    /// Returns the position of a picture without a count, after all others; it ends the sequence.
    pub(super) fn push_in_order(&mut self, is_field: bool) -> i64 {
        self.end_sequence();
        let due = self.next;
        self.next = due + duration(is_field);
        self.give(self.highest.map_or(due, |highest| due.max(highest + 1)))
    }

    /// Returns the position of a picture.
    pub(super) fn push(&mut self, picture: Picture, is_field: bool) -> i64 {
        let continued = match &self.sequence {
            Some(sequence)
                if !picture.starts && (picture.count - sequence.last.0).abs() <= JUMP_MAX =>
            {
                self.continue_sequence(picture.count, is_field)
            }
            _ => None,
        };
        let position = continued.unwrap_or_else(|| self.begin_sequence(picture, is_field));
        self.give(position)
    }

    fn give(&mut self, position: i64) -> i64 {
        self.highest = Some(self.highest.map_or(position, |highest| highest.max(position)));
        position
    }

    fn begin_sequence(&mut self, picture: Picture, is_field: bool) -> i64 {
        self.end_sequence();
        let Picture { count, may_have_leading, .. } = picture;
        let (leading, room) = if may_have_leading { (self.leading, ROOM_MIN) } else { (0, 1) };
        let due = self.next + leading;
        let position = self.highest.map_or(due, |highest| due.max(highest + room));
        let mut recent = Recent::after(self.highest);
        recent.insert(Placed { count, position, is_field });
        self.step.start();
        self.step.push(count, is_field);
        self.sequence = Some(Sequence {
            first: count,
            last: (count, duration(is_field)),
            anchor: (count, due),
            begin: self.highest.map(|_| self.next),
            lowest: count,
            may_have_leading,
            is_open: true,
            recent,
        });
        position
    }

    fn end_sequence(&mut self) {
        let Some(sequence) = self.sequence.take() else { return };
        let (last, duration) = sequence.last;
        self.next = sequence.due(last, &self.step) + duration;
        if sequence.may_have_leading {
            self.leading = sequence.leading(&self.step);
        }
        if let Some(step) = self.step.larger(true) {
            self.step.set(step);
        }
    }

    /// Returns the position of a picture of the current sequence; `None` without room for it.
    fn continue_sequence(&mut self, count: i64, is_field: bool) -> Option<i64> {
        let Self { step, sequence, .. } = self;
        let sequence = sequence.as_mut()?;
        let neighbours = sequence.recent.neighbours(count);
        let twin = neighbours[0].filter(|before| before.count == count);
        if twin.is_none() {
            step.push(count, is_field);
            correct_step(step, sequence, count, neighbours.map(|it| it.filter(|_| !is_field)));
        }
        let is_pair = is_field && twin.is_some_and(|twin| twin.is_field);
        if count > sequence.last.0 {
            sequence.last = (count, duration(is_field));
        } else if is_pair && count == sequence.last.0 {
            sequence.last.1 = Position::PER_FRAME;
        }
        sequence.lowest = sequence.lowest.min(count);
        correct_leading(step, sequence, count);
        let due = match twin {
            // Two fields may have the same count. Otherwise, one picture was mistaken for two.
            Some(twin) => twin.position + if is_pair { duration(true) } else { 1 },
            None => sequence.due(count, step),
        };
        let position = sequence.recent.fit(count, due)?;
        sequence.recent.insert(Placed { count, position, is_field });
        Some(position)
    }
}

/// Corrects the guess of the step by a picture and its neighbours, if these are frames.
fn correct_step(
    step: &mut Step,
    sequence: &mut Sequence,
    count: i64,
    neighbours: [Option<Placed>; 2],
) {
    let frames = neighbours.into_iter().flatten().filter(|it| !it.is_field);
    let nearest = frames.map(|it| (it.count - count).abs()).min();
    if nearest.is_some_and(|nearest| step.show(nearest)) {
        // The due positions so far were too early. Later ones use the smaller step.
    } else if let Some(larger) = step.larger(false) {
        // The due positions so far were too late. Later ones continue from here.
        let last = sequence.last.0;
        sequence.anchor = (last, sequence.due(last, step));
        step.set(larger);
    }
}

/// Corrects the guess of the duration of leading pictures by the picture with `count`.
fn correct_leading(step: &Step, sequence: &mut Sequence, count: i64) {
    let Some(begin) = sequence.begin else { return };
    let excess = sequence.due(sequence.lowest, step) - begin;
    let is_settled = count > sequence.first && std::mem::take(&mut sequence.is_open);
    if excess < 0 || is_settled {
        sequence.anchor.1 -= excess;
    }
}

/// Returns the duration of a picture: half a frame interval for a field.
fn duration(is_field: bool) -> i64 {
    if is_field { Position::PER_FRAME / 2 } else { Position::PER_FRAME }
}
