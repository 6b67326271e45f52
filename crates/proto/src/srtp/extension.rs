//! Encrypted elements of header extensions (RFC 6904).

use core::fmt;
use core::ops::Range;

/// A set of header extension elements, given by their identifiers (RFC 8285), 1..=255.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct ExtensionIds([u64; 4]);

impl ExtensionIds {
    /// Creates the set of these identifiers; 0 names no element.
    pub fn new(ids: &[u8]) -> Self {
        let mut words = [0; 4];
        for id in ids {
            words[usize::from(id / 64)] |= 1 << (id % 64);
        }
        words[0] &= !1;
        Self(words)
    }

    /// Returns whether the set contains `id`.
    pub fn contains(self, id: u8) -> bool {
        self.0[usize::from(id / 64)] >> (id % 64) & 1 == 1
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }
}

impl fmt::Debug for ExtensionIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((1..=255_u8).filter(|id| self.contains(*id))).finish()
    }
}

/// An element exceeds the extension.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Truncated;

/// Applies `key_stream`, which is as long as `data`, to the data of the elements in `ids` only. An
/// extension in neither form of RFC 8285 is left unchanged.
pub(super) fn apply(
    profile: u16,
    data: &mut [u8],
    ids: ExtensionIds,
    key_stream: &[u8],
) -> Result<(), Truncated> {
    let two_byte = match profile {
        0xbede => false,
        profile if profile & 0xfff0 == 0x1000 => true,
        _ => return Ok(()),
    };
    // The whole list is checked first, because a malformed one must not be changed in part.
    for_each_element(data, two_byte, |_, _| ())?;
    let mut masked = [const { 0..0 }; 64];
    let mut begin = 0;
    loop {
        // The key stream is applied to groups of elements, because the list is parsed from the data
        // that is being changed.
        let mut count = 0;
        let end = for_each_element(data, two_byte, |id, range| {
            if range.start >= begin && ids.contains(id) && count < masked.len() {
                masked[count] = range;
                count += 1;
            }
        });
        end?;
        for range in &masked[..count] {
            begin = range.end;
            for (octet, key) in data[range.clone()].iter_mut().zip(&key_stream[range.clone()]) {
                *octet ^= key;
            }
        }
        if count < masked.len() {
            return Ok(());
        }
    }
}

/// Calls `on_element` with each element's identifier and the range of its data.
fn for_each_element(
    data: &[u8],
    two_byte: bool,
    mut on_element: impl FnMut(u8, Range<usize>),
) -> Result<(), Truncated> {
    let mut at = 0;
    while let Some(&head) = data.get(at) {
        if head == 0 {
            at += 1;
            continue;
        }
        let (id, len, start) = if two_byte {
            let len = data.get(at + 1).ok_or(Truncated)?;
            (head, usize::from(*len), at + 2)
        } else if head >> 4 == 15 {
            // RFC 8285 section 4.2: identifier 15 ends the list.
            return Ok(());
        } else {
            (head >> 4, usize::from(head & 0x0f) + 1, at + 1)
        };
        if start + len > data.len() {
            return Err(Truncated);
        }
        on_element(id, start..start + len);
        at = start + len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6904 section 3.1: the mask of its example, taken from a key stream of ones.
    #[test]
    fn the_mask_is_that_of_the_example() {
        let elements = [0x17, 7, 7, 7, 7, 7, 7, 7, 7, 0x22, 7, 7, 7, 0x30, 7, 0x46];
        let mut data = [&elements[..], &[7; 7], &[0]].concat();
        let before = data.clone();
        let ids = ExtensionIds::new(&[1, 3, 4]);
        apply(0xbede, &mut data, ids, &[0xff; 24]).unwrap();
        let mask: Vec<u8> = before.iter().zip(&data).map(|(a, b)| a ^ b).collect();
        let expected = [&[0][..], &[0xff; 8], &[0, 0, 0, 0], &[0, 0xff], &[0], &[0xff; 7], &[0]];
        assert_eq!(mask, expected.concat());
    }

    #[test]
    fn more_elements_than_a_group_are_all_encrypted() {
        let mut data: Vec<u8> = [0x10, 0].repeat(500);
        apply(0xbede, &mut data, ExtensionIds::new(&[1]), &[0xff; 1000]).unwrap();
        assert_eq!(data, [0x10, 0xff].repeat(500));
    }

    #[test]
    fn an_element_that_passes_the_end_changes_nothing() {
        let mut data = [0x10, 1, 0x1f, 2];
        let ids = ExtensionIds::new(&[1]);
        assert_eq!(apply(0xbede, &mut data, ids, &[0xff; 4]), Err(Truncated));
        assert_eq!(data, [0x10, 1, 0x1f, 2]);
        assert_eq!(apply(0x1000, &mut [1, 3, 0, 0], ids, &[0xff; 4]), Err(Truncated));
        assert_eq!(apply(0x1000, &mut [0, 0, 0, 1], ids, &[0xff; 4]), Err(Truncated));
    }

    #[test]
    fn an_unknown_form_stays_as_it_is() {
        let mut data = [0x10, 1, 2, 3];
        apply(0xabcd, &mut data, ExtensionIds::new(&[1]), &[0xff; 4]).unwrap();
        assert_eq!(data, [0x10, 1, 2, 3]);
    }
}
