//! Generic NACKs: requests for missing packets (RFC 4585 section 6.2.1).

use crate::seq::SequenceNumber;

/// A missing packet, and a bit mask of the missing ones among the next sixteen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Nack {
    /// The missing packet.
    pub first: SequenceNumber,
    /// Bit `n` is set if the packet `n` + 1 after it is also missing.
    pub following: u16,
}

impl Nack {
    /// Returns the missing packets in order.
    pub fn sequences(self) -> impl Iterator<Item = SequenceNumber> {
        let later = (0..16).filter(move |bit| self.following >> bit & 1 == 1);
        std::iter::once(self.first).chain(later.map(move |bit| self.first.plus(bit + 1)))
    }

    pub(super) fn from_bytes(bytes: [u8; 4]) -> Self {
        let [a, b, c, d] = bytes;
        Self {
            first: SequenceNumber(u16::from_be_bytes([a, b])),
            following: u16::from_be_bytes([c, d]),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.first.0.to_be_bytes(), self.following.to_be_bytes());
        [a, b, c, d]
    }
}

/// Packs missing packets, given in order, into the fewest NACKs that this order allows.
pub fn pack_nacks(
    sequences: impl IntoIterator<Item = SequenceNumber>,
) -> impl Iterator<Item = Nack> {
    let mut sequences = sequences.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut nack = Nack { first: sequences.next()?, following: 0 };
        while let Some(next) = sequences.next_if(|next| near(nack.first, *next)) {
            nack.following |= 1 << (next.distance(nack.first) - 1);
        }
        Some(nack)
    })
}

fn near(first: SequenceNumber, next: SequenceNumber) -> bool {
    (1..=16).contains(&next.distance(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_packed_and_unpacked_across_a_wrap() {
        let missing: Vec<_> = [65_530, 65_531, 10, 11, 26, 27, 28, 5000].map(SequenceNumber).into();
        let nacks: Vec<_> = pack_nacks(missing.iter().copied()).collect();
        // The NACK of 65 530 covers packets up to 10, that of 11 up to 27.
        assert_eq!(nacks.len(), 4);
        assert_eq!(nacks[0], Nack { first: SequenceNumber(65_530), following: 1 | 1 << 15 });
        let back: Vec<_> = nacks
            .iter()
            .flat_map(|nack| Nack::from_bytes(nack.to_bytes()).sequences().collect::<Vec<_>>())
            .collect();
        assert_eq!(back, missing);
    }
}
