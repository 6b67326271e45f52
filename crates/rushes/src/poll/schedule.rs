//! When something is due next, of many things.

use std::collections::BTreeSet;
use std::time::Instant;

/// The due time of each key, at most one.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    due: BTreeSet<(Instant, u32)>,
    /// The entry of each key.
    entries: Vec<Option<Instant>>,
}

impl Schedule {
    /// Notes when something is due for `key`. A later time than the noted one changes nothing: the key is
    /// due at the noted one, and its owner then finds nothing to do. Packets postpone timeouts all the time.
    pub(super) fn set(&mut self, key: u32, due: Option<Instant>) {
        let Some(due) = due else { return };
        let place = key as usize;
        if self.entries.len() <= place {
            self.entries.resize(place + 1, None);
        }
        let entry = &mut self.entries[place];
        match *entry {
            Some(before) if before <= due => return,
            Some(before) => {
                self.due.remove(&(before, key));
            }
            None => {}
        }
        *entry = Some(due);
        self.due.insert((due, key));
    }

    pub(super) fn remove(&mut self, key: u32) {
        if let Some(due) = self.entries.get_mut(key as usize).and_then(Option::take) {
            self.due.remove(&(due, key));
        }
    }

    /// Returns the earliest time.
    pub(super) fn first(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Removes and returns the key that is due first, if it is due at `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<u32> {
        let (_, key) = *self.due.first().filter(|(due, _)| *due <= now)?;
        self.remove(key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_key_is_due_once_at_its_earliest_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut schedule = Schedule::default();
        for (key, ms) in [(3, 30), (1, 10), (2, 20), (3, 5), (1, 40), (2, 20)] {
            schedule.set(key, Some(at(ms)));
        }
        schedule.set(9, None);
        assert_eq!(schedule.first(), Some(at(5)));
        assert_eq!(schedule.pop(at(4)), None);
        let mut due = std::iter::from_fn(|| schedule.pop(at(15)));
        assert_eq!([due.next(), due.next(), due.next()], [Some(3), Some(1), None]);
        schedule.remove(2);
        schedule.remove(7);
        assert_eq!(schedule.first(), None);
    }

    #[test]
    fn times_that_change_all_the_time_take_no_more_room() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        for n in 0..10_000_u64 {
            schedule.set((n % 7) as u32, Some(start + Duration::from_secs(20_000 - n)));
        }
        assert_eq!(schedule.due.len(), 7);
    }
}
