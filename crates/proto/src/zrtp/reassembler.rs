//! The receiving end of fragments: one message at a time, in a bounded buffer.

use super::fragment::{Fragment, FragmentError};

/// Puts one message at a time together from its fragments.
///
/// The draft keeps one buffer: a newer message id displaces an unfinished message, an older one is
/// refused. Holds at most [`MESSAGE_LEN_MAX`](super::MESSAGE_LEN_MAX) octets and a bit for each word of them.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    /// The id that was last heard of, if any.
    id: Option<u16>,
    total: u16,
    /// Words that are still missing.
    missing: usize,
    message: Vec<u8>,
    /// One for each word of `message`: whether it has come.
    present: Vec<bool>,
}

impl Reassembler {
    /// Expects any message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the message that is being received, so that any id may follow.
    pub fn clear(&mut self) {
        self.id = None;
        self.missing = 0;
    }

    /// Takes a fragment and returns the message when it is whole.
    ///
    /// Fragments may come in any order, and again. They may also overlap, as they do when the
    /// sender changes their length between two attempts, but must then agree. After a message is
    /// whole, the same id starts it afresh: its sender repeats it until it is answered.
    ///
    /// # Errors
    /// [`FragmentError::Stale`], [`FragmentError::Total`] or [`FragmentError::Contradiction`]; the
    /// fragment is then left out and everything else stays.
    pub fn push(&mut self, fragment: &Fragment<'_>) -> Result<Option<&[u8]>, FragmentError> {
        let Fragment { id, total, octets, .. } = *fragment;
        let unfinished = self.missing > 0;
        match self.id {
            Some(current) if id == current && unfinished => {
                if total != self.total {
                    return Err(FragmentError::Total { claimed: total, total: self.total });
                }
            }
            // Ids are compared modulo 2^16, since they start at random.
            Some(current) if id.wrapping_sub(current).cast_signed() < 0 => {
                return Err(FragmentError::Stale { id, current });
            }
            _ => self.start(id, total),
        }
        self.agrees(fragment)?;
        let offset = fragment.offset();
        if let Some(place) = self.message.get_mut(offset..offset + octets.len()) {
            place.copy_from_slice(octets);
        }
        let words = offset / 4..(offset + octets.len()) / 4;
        for present in self.present.get_mut(words).unwrap_or_default() {
            self.missing -= usize::from(!*present);
            *present = true;
        }
        Ok((self.missing == 0).then_some(self.message.as_slice()))
    }

    /// Starts a message of `total` words, which [`Fragment::parse`] has bounded.
    fn start(&mut self, id: u16, total: u16) {
        self.id = Some(id);
        self.total = total;
        self.missing = usize::from(total);
        self.message.clear();
        self.message.resize(self.missing * 4, 0);
        self.present.clear();
        self.present.resize(self.missing, false);
    }

    /// Whether all words of `fragment` that have come before had the same contents.
    fn agrees(&self, fragment: &Fragment<'_>) -> Result<(), FragmentError> {
        let first = fragment.offset() / 4;
        let (words, _) = fragment.octets.as_chunks::<4>();
        let (held, _) = self.message.as_chunks::<4>();
        let held = held.iter().zip(&self.present).skip(first);
        let contradiction =
            words.iter().zip(held).position(|(word, (held, &present))| present && word != held);
        match contradiction {
            Some(at) => Err(FragmentError::Contradiction { at: first + at }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::zrtp::fragment::{OVERHEAD, WORDS_MAX};
    use crate::zrtp::{Fragments, MESSAGE_LEN_MAX};

    fn message(words: usize) -> Vec<u8> {
        (0..words * 4).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn a_duplicate_changes_nothing() {
        let message = message(4);
        let fragments: Vec<_> = Fragments::new(&message, 1, OVERHEAD + 8).unwrap().collect();
        let mut reassembler = Reassembler::new();
        assert_eq!(reassembler.push(&fragments[0]), Ok(None));
        assert_eq!(reassembler.push(&fragments[0]), Ok(None));
        assert_eq!(reassembler.push(&fragments[1]), Ok(Some(&message[..])));
    }

    #[test]
    fn fragments_cut_anew_may_overlap_if_they_agree() {
        let message = message(10);
        let mut reassembler = Reassembler::new();
        let small: Vec<_> = Fragments::new(&message, 1, OVERHEAD + 12).unwrap().collect();
        assert_eq!(reassembler.push(&small[1]), Ok(None));
        let large: Vec<_> = Fragments::new(&message, 1, OVERHEAD + 20).unwrap().collect();
        assert_eq!(reassembler.push(&large[0]), Ok(None));
        assert_eq!(reassembler.push(&large[1]), Ok(Some(&message[..])));
    }

    #[test]
    fn a_contradiction_leaves_the_first_contents() {
        let message = message(3);
        let mut reassembler = Reassembler::new();
        let whole = Fragment { id: 1, total: 3, offset: 0, octets: &message };
        let first = Fragment { octets: &message[..8], ..whole };
        assert_eq!(reassembler.push(&first), Ok(None));
        let forged = Fragment { offset: 1, octets: &[0xee; 8], ..whole };
        assert_eq!(reassembler.push(&forged), Err(FragmentError::Contradiction { at: 1 }));
        assert_eq!(reassembler.push(&whole), Ok(Some(&message[..])));
    }

    #[test]
    fn another_total_is_refused() {
        let mut reassembler = Reassembler::new();
        let first = Fragment { id: 1, total: 3, offset: 0, octets: &[0; 4] };
        assert_eq!(reassembler.push(&first), Ok(None));
        let other = Fragment { total: 4, ..first };
        let error = FragmentError::Total { claimed: 4, total: 3 };
        assert_eq!(reassembler.push(&other), Err(error));
    }

    #[test]
    fn a_newer_message_displaces_an_older_one_across_the_wrap_of_ids() {
        let mut reassembler = Reassembler::new();
        let old = Fragment { id: u16::MAX, total: 2, offset: 0, octets: &[1; 4] };
        assert_eq!(reassembler.push(&old), Ok(None));
        let new = Fragment { id: 0, total: 2, offset: 0, octets: &[2; 4] };
        assert_eq!(reassembler.push(&new), Ok(None));
        let stale = FragmentError::Stale { id: u16::MAX, current: 0 };
        assert_eq!(reassembler.push(&old), Err(stale));
        let rest = Fragment { offset: 1, ..new };
        assert_eq!(reassembler.push(&rest), Ok(Some(&[2; 8][..])));
        reassembler.clear();
        assert_eq!(reassembler.push(&old), Ok(None));
    }

    #[test]
    fn a_message_that_is_sent_again_comes_again() {
        let message = message(2);
        let whole = Fragment { id: 1, total: 2, offset: 0, octets: &message };
        let mut reassembler = Reassembler::new();
        for _ in 0..3 {
            assert_eq!(reassembler.push(&whole), Ok(Some(&message[..])));
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
                prop_assert_eq!(reassembler.push(fragment), Ok(None));
            }
            prop_assert_eq!(reassembler.push(last), Ok(Some(&message[..])));
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
                prop_assert!(reassembler.message.capacity() <= 2 * MESSAGE_LEN_MAX);
                prop_assert!(reassembler.present.capacity() <= 2 * WORDS_MAX);
            }
        }
    }
}
