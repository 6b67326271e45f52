//! The recent pictures of a sequence in presentation order, and the room between them.

/// Maximum number of pictures kept. A decoded picture buffer has at most 16 frames (ITU-T H.264
/// section A.3.1, H.265 section A.4.2, H.266 section A.4.2), so that at most 32 fields wait for
/// presentation.
const KEPT_MAX: usize = 64;

/// A picture with its position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Placed {
    pub(super) count: i64,
    pub(super) position: i64,
    pub(super) is_field: bool,
}

/// The pictures of a sequence with the highest counts, at most 64.
///
/// The positions of any two of them differ at least as much as their counts.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// The pictures in the order of their counts and positions.
    placed: Vec<Placed>,
    /// The highest position of a picture that is no longer kept, and the count of that picture if
    /// it belongs to the sequence.
    floor: Option<(i64, Option<i64>)>,
}

impl Recent {
    /// Creates an empty list, whose pictures will all be presented after the position `highest`.
    pub(super) fn after(highest: Option<i64>) -> Self {
        Self { placed: Vec::new(), floor: highest.map(|position| (position, None)) }
    }

    /// Returns the pictures on either side of `count`, the first possibly with the same count.
    pub(super) fn neighbours(&self, count: i64) -> [Option<Placed>; 2] {
        let place = self.place(count);
        let before = place.checked_sub(1).map(|before| self.placed[before]);
        [before, self.placed.get(place).copied()]
    }

    fn place(&self, count: i64) -> usize {
        self.placed.partition_point(|placed| placed.count <= count)
    }

    /// Returns the position nearest to `due` that a picture with `count` may have, if any.
    pub(super) fn fit(&self, count: i64, due: i64) -> Option<i64> {
        let (first, last) = self.room(count)?;
        let is_first = self.placed.first().is_none_or(|lowest| count < lowest.count);
        // The first leading picture to arrive is seldom the earliest; others need room below it.
        Some(if is_first && due < first { last } else { due.clamp(first, last) })
    }

    /// Returns the first and the last position that a picture with `count` may have, if any.
    fn room(&self, count: i64) -> Option<(i64, i64)> {
        let [before, after] = self.neighbours(count);
        let first = match (before, self.floor) {
            (Some(before), _) => before.position + (count - before.count).max(1),
            (None, Some((_, Some(forgotten)))) if count <= forgotten => return None,
            (None, Some((floor, forgotten))) => floor + forgotten.map_or(1, |it| count - it),
            (None, None) => i64::MIN,
        };
        let last = after.map_or(i64::MAX, |after| after.position - (after.count - count));
        (first <= last).then_some((first, last))
    }

    /// Adds a picture whose position is within the [`room`](Self::room) of its count.
    pub(super) fn insert(&mut self, picture: Placed) {
        self.placed.insert(self.place(picture.count), picture);
        if self.placed.len() > KEPT_MAX {
            let lowest = self.placed.remove(0);
            self.floor = Some((lowest.position, Some(lowest.count)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(count: i64, position: i64) -> Placed {
        Placed { count, position, is_field: false }
    }

    #[test]
    fn between_two_pictures_is_room_for_all_counts_between_theirs() {
        let mut recent = Recent::after(Some(-7));
        recent.insert(placed(10, 3));
        recent.insert(placed(4, -4));
        assert_eq!(recent.room(5), Some((-3, -2)));
        assert_eq!(recent.room(9), Some((1, 2)));
        assert_eq!(recent.room(10), Some((4, i64::MAX)));
        assert_eq!(recent.room(3), Some((-6, -5)));
        assert_eq!(recent.room(2), Some((-6, -6)));
        assert_eq!(recent.room(1), None);
    }

    #[test]
    fn forgotten_pictures_leave_no_room_below() {
        let mut recent = Recent::after(None);
        for count in 0..=64 {
            recent.insert(placed(count, 2 * count));
        }
        assert_eq!(recent.placed.len(), KEPT_MAX);
        assert_eq!(recent.room(0), None);
        assert_eq!(recent.room(64), Some((129, i64::MAX)));
    }
}
