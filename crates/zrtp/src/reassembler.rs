//! Reassembly of fragments, in bounded buffers.

use super::fragment::Fragment;

/// Maximum number of incomplete messages. With only one, a single forged fragment could displace a
/// whole message of the peer.
const PARTIAL_MAX: usize = 2;

/// Reassembles messages from their fragments.
///
/// Two messages may be incomplete at a time; a fragment of a third one displaces the message that
/// was continued least recently. Each takes at most [`MESSAGE_LEN_MAX`](super::MESSAGE_LEN_MAX)
/// octets and a flag for each of its words.
///
/// The draft requires messages with IDs older than the current one to be refused. They are accepted
/// here, because otherwise one forged fragment with a high ID could end an exchange.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    /// The incomplete messages; the most recently continued one is the last.
    partial: Vec<Partial>,
    whole: Vec<u8>,
}

/// An incomplete message.
#[derive(Clone, Debug)]
struct Partial {
    id: u16,
    message: Vec<u8>,
    /// For each word of `message`, whether it was received.
    present: Vec<bool>,
    /// Words that are still missing.
    missing: usize,
}

impl Reassembler {
    /// Creates a reassembler without fragments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops incomplete messages.
    pub fn clear(&mut self) {
        self.partial.clear();
    }

    /// Adds a fragment and returns the message once it is complete.
    ///
    /// Fragments may arrive in any order and repeatedly. They may also overlap, if the sender
    /// changes their length between two attempts. A fragment that contradicts earlier ones restarts
    /// the message: one of them is forged, but the sender repeats the message until it is answered.
    pub fn push(&mut self, fragment: &Fragment<'_>) -> Option<&[u8]> {
        let known = self.partial.iter().position(|one| one.is_of(fragment));
        let mut partial = match known {
            Some(at) => self.partial.remove(at),
            None => Partial::new(fragment),
        };
        if !partial.agrees(fragment) {
            partial = Partial::new(fragment);
        }
        partial.add(fragment);
        if partial.missing == 0 {
            self.whole = partial.message;
            return Some(&self.whole);
        }
        if self.partial.len() >= PARTIAL_MAX {
            self.partial.remove(0);
        }
        self.partial.push(partial);
        None
    }
}

impl Partial {
    /// Creates the message of `fragment`, whose length [`Fragment::parse`] has limited.
    fn new(fragment: &Fragment<'_>) -> Self {
        let words = usize::from(fragment.total);
        Self {
            id: fragment.id,
            message: vec![0; words * 4],
            present: vec![false; words],
            missing: words,
        }
    }

    fn is_of(&self, fragment: &Fragment<'_>) -> bool {
        self.id == fragment.id && self.present.len() == usize::from(fragment.total)
    }

    /// Returns whether all words of `fragment` that were received earlier have the same contents.
    fn agrees(&self, fragment: &Fragment<'_>) -> bool {
        let (words, _) = fragment.octets.as_chunks::<4>();
        let (held, _) = self.message.as_chunks::<4>();
        let held = held.iter().zip(&self.present).skip(fragment.offset() / 4);
        words.iter().zip(held).all(|(word, (held, &present))| !present || word == held)
    }

    fn add(&mut self, fragment: &Fragment<'_>) {
        let (offset, octets) = (fragment.offset(), fragment.octets);
        if let Some(place) = self.message.get_mut(offset..offset + octets.len()) {
            place.copy_from_slice(octets);
        }
        let words = offset / 4..(offset + octets.len()) / 4;
        for present in self.present.get_mut(words).unwrap_or_default() {
            self.missing -= usize::from(!*present);
            *present = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fragment::{OVERHEAD, WORDS_MAX};
    use crate::{Fragments, MESSAGE_LEN_MAX};

    fn message(words: usize) -> Vec<u8> {
        (0..words * 4).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn a_duplicate_changes_nothing() {
        let message = message(4);
        let fragments: Vec<_> = Fragments::new(&message, 1, OVERHEAD + 8).unwrap().collect();
        let mut reassembler = Reassembler::new();
        assert_eq!(reassembler.push(&fragments[0]), None);
        assert_eq!(reassembler.push(&fragments[0]), None);
        assert_eq!(reassembler.push(&fragments[1]), Some(&message[..]));
    }

    #[test]
    fn fragments_cut_anew_may_overlap_if_they_agree() {
        let message = message(10);
        let mut reassembler = Reassembler::new();
        let small: Vec<_> = Fragments::new(&message, 1, OVERHEAD + 12).unwrap().collect();
        assert_eq!(reassembler.push(&small[1]), None);
        let large: Vec<_> = Fragments::new(&message, 1, OVERHEAD + 20).unwrap().collect();
        assert_eq!(reassembler.push(&large[0]), None);
        assert_eq!(reassembler.push(&large[1]), Some(&message[..]));
    }

    #[test]
    fn a_forged_fragment_discards_only_the_fragments_before_it() {
        let message = message(3);
        let mut reassembler = Reassembler::new();
        let whole = Fragment { id: 1, total: 3, offset: 0, octets: &message };
        let first = Fragment { octets: &message[..8], ..whole };
        let rest = Fragment { offset: 2, octets: &message[8..], ..whole };
        let forged = Fragment { offset: 1, octets: &[0xee; 8], ..whole };
        assert_eq!(reassembler.push(&first), None);
        assert_eq!(reassembler.push(&forged), None, "it begins the message again");
        assert_eq!(reassembler.push(&first), None, "and so does this");
        assert_eq!(reassembler.push(&rest), Some(&message[..]));
    }

    #[test]
    fn a_forged_fragment_of_a_higher_id_or_another_length_changes_nothing() {
        let message = message(3);
        let first = Fragment { id: 1, total: 3, offset: 0, octets: &message[..8] };
        let rest = Fragment { offset: 2, octets: &message[8..], ..first };
        let forged = Fragment { id: 0x4000, total: 9, ..first };
        for forged in [forged, Fragment { id: 1, ..forged }, Fragment { total: 3, ..forged }] {
            let mut reassembler = Reassembler::new();
            assert_eq!(reassembler.push(&first), None);
            assert_eq!(reassembler.push(&forged), None);
            assert_eq!(reassembler.push(&rest), Some(&message[..]));
        }
    }

    #[test]
    fn a_third_message_displaces_the_one_continued_longest_ago() {
        let fragment = |id, offset| Fragment { id, total: 2, offset, octets: &[7; 4] };
        let mut reassembler = Reassembler::new();
        for id in [1, 2, 3] {
            assert_eq!(reassembler.push(&fragment(id, 0)), None);
        }
        assert_eq!(reassembler.push(&fragment(2, 1)), Some(&[7; 8][..]));
        assert_eq!(reassembler.push(&fragment(1, 1)), None);
        reassembler.clear();
        assert_eq!(reassembler.push(&fragment(3, 1)), None);
    }

    #[test]
    fn a_repeated_message_is_returned_again() {
        let message = message(2);
        let whole = Fragment { id: 1, total: 2, offset: 0, octets: &message };
        let mut reassembler = Reassembler::new();
        for _ in 0..3 {
            assert_eq!(reassembler.push(&whole), Some(&message[..]));
        }
    }

    proptest! {
        #[test]
        fn any_order_gives_the_message_back(
            words in 1_usize..600, part in 1_usize..100, seed: u64, id: u16,
        ) {
            let message = message(words);
            let mut fragments: Vec<_> =
                Fragments::new(&message, id, OVERHEAD + part * 4).unwrap().collect();
            let mut state = seed | 1;
            for at in (1..fragments.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                fragments.swap(at, (state >> 33) as usize % (at + 1));
            }
            let mut reassembler = Reassembler::new();
            let (last, before) = fragments.split_last().unwrap();
            for fragment in before {
                prop_assert_eq!(reassembler.push(fragment), None);
            }
            prop_assert_eq!(reassembler.push(last), Some(&message[..]));
        }

        #[test]
        fn hostile_fragments_stay_bounded(
            bodies in prop::collection::vec(
                (0_u16..3, 0_u16..6000, 0_u16..6000, 0_u16..40, any::<u8>()), 1..200,
            ),
        ) {
            let mut reassembler = Reassembler::new();
            for (id, total, offset, len, fill) in bodies {
                let mut body: Vec<u8> = [id, total, offset, len]
                    .iter().flat_map(|field| field.to_be_bytes()).collect();
                body.resize(body.len() + usize::from(len) * 4, fill);
                if let Ok(fragment) = Fragment::parse(&body) {
                    let _ = reassembler.push(&fragment);
                }
                let held = |partial: &Partial| {
                    partial.message.capacity() + partial.present.capacity()
                };
                let held: usize = reassembler.partial.iter().map(held).sum();
                prop_assert!(held <= PARTIAL_MAX * (MESSAGE_LEN_MAX + WORDS_MAX));
            }
        }
    }
}
