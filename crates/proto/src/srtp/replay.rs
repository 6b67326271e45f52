//! Replay windows (RFC 3711 section 3.3.2).

/// The packet was received before, or is older than the window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Replayed;

/// A ring of bits that records which of the newest packets were received.
#[derive(Clone, Debug)]
pub(super) struct Window {
    highest: Option<u64>,
    /// Bit `n` is for indices that are `n` modulo the number of bits.
    bits: Box<[u64]>,
}

impl Window {
    /// Creates a window of `packets`, rounded up to a power of two of at least 64.
    pub(super) fn new(packets: usize) -> Self {
        let words = packets.div_ceil(64).next_power_of_two();
        Self { highest: None, bits: vec![0; words].into_boxed_slice() }
    }

    /// Returns the highest index received.
    #[inline]
    pub(super) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Sets the highest index; no packet in the window counts as received.
    pub(super) fn start_at(&mut self, highest: Option<u64>) {
        self.bits.fill(0);
        self.highest = highest;
    }

    /// Sets the highest index; all packets up to it count as received.
    pub(super) fn start_after(&mut self, highest: u64) {
        self.bits.fill(u64::MAX);
        self.highest = Some(highest);
    }

    #[inline]
    fn len(&self) -> u64 {
        self.bits.len() as u64 * 64
    }

    #[inline]
    fn place(&self, index: u64) -> (usize, u64) {
        let bit = index & (self.len() - 1);
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    /// Checks that the packet with `index` is new.
    #[inline]
    pub(super) fn check(&self, index: u64) -> Result<(), Replayed> {
        let Some(highest) = self.highest else { return Ok(()) };
        if index > highest {
            return Ok(());
        }
        let (word, bit) = self.place(index);
        if highest - index >= self.len() || self.bits[word] & bit != 0 {
            return Err(Replayed);
        }
        Ok(())
    }

    /// Marks `index`, which [`check`](Self::check) found new, as received.
    #[inline]
    pub(super) fn note(&mut self, index: u64) {
        match self.highest {
            Some(highest) if index <= highest => {}
            Some(highest) if index - highest < self.len() => {
                for passed in highest + 1..index {
                    let (word, bit) = self.place(passed);
                    self.bits[word] &= !bit;
                }
                self.highest = Some(index);
            }
            _ => self.start_at(Some(index)),
        }
        let (word, bit) = self.place(index);
        self.bits[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_window_has_the_contents_of_a_set() {
        let mut window = Window::new(128);
        let mut seen = BTreeSet::new();
        let mut state = 1_u64;
        let mut base = 0_u64;
        for step in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = state >> 33;
            base += if step % 5000 == 0 { 1000 } else { random % 2 };
            let index = (base + random % 190).saturating_sub(150);
            let highest = seen.last().copied();
            let known =
                seen.contains(&index) || highest.is_some_and(|highest: u64| highest >= index + 128);
            assert_eq!(window.check(index).is_err(), known, "{index} after {highest:?}");
            if !known {
                window.note(index);
                seen.insert(index);
            }
        }
    }

    /// A model of a window of 64: the set of indices that were received or count as received.
    #[derive(Clone, Default)]
    struct Model {
        highest: Option<u64>,
        seen: BTreeSet<u64>,
    }

    impl Model {
        fn is_known(&self, index: u64) -> bool {
            let is_old = self.highest.is_some_and(|highest| highest >= index + 64);
            is_old || self.seen.contains(&index)
        }
    }

    /// Indices at the edges of a window of 64, and far beyond.
    const INDICES: [u64; 11] = [0, 1, 2, 62, 63, 64, 65, 127, 128, 129, 1000];

    fn go_on(window: &Window, model: &Model, depth: usize) {
        for index in INDICES {
            assert_eq!(window.check(index).is_err(), model.is_known(index), "{index} {window:?}");
            if depth == 0 {
                continue;
            }
            let (mut window, mut model) = (window.clone(), model.clone());
            if window.check(index).is_ok() {
                window.note(index);
                model.highest = model.highest.max(Some(index));
                model.seen.insert(index);
            }
            go_on(&window, &model, depth - 1);
        }
    }

    #[test]
    fn in_every_order_a_window_has_the_contents_of_a_set() {
        go_on(&Window::new(64), &Model::default(), 5);
        for highest in [0, 1, 63, 64, 127] {
            let (mut window, mut model) = (Window::new(64), Model::default());
            window.start_after(highest);
            model.highest = Some(highest);
            model.seen.extend(0..=highest);
            go_on(&window, &model, 4);
            window.start_at(Some(highest));
            model.seen.clear();
            go_on(&window, &model, 4);
        }
    }
}
