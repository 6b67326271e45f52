//! Groups a batch of datagrams into messages for the kernel.

/// Maximum datagrams in one `UDP_SEGMENT` message (`UDP_MAX_SEGMENTS` of kernels before 6.9).
///
/// Later kernels take 128, which datagrams below 508 octets could fill. That saves some 15 ns for each
/// (Linux 6.18, loopback), of the microsecond that sending so small a packet takes: not worth a trial at
/// run time.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Maximum octets in one `UDP_SEGMENT` message of several datagrams. The kernel's limit is 65 535
/// with headers; it refuses a larger message as a whole (`EMSGSIZE`).
pub(crate) const MAX_MESSAGE: usize = 65_000;

/// The limits of one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum datagrams in a message, at least 1.
    pub(crate) segments: usize,
    /// Maximum octets of a message with more than one datagram.
    pub(crate) bytes: usize,
    /// Maximum octets of a datagram that shares a message; a longer one is sent alone.
    pub(crate) segment: usize,
}

/// Datagrams from the front of a batch that make one message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Group {
    /// Number of datagrams, at least 1.
    pub(crate) datagrams: usize,
    /// Total octets.
    pub(crate) bytes: usize,
    /// Octets of each datagram but the last, which may be shorter but not empty.
    pub(crate) segment: u16,
}

/// Returns the longest message that `limits` allow from the front of `lengths`, or `None` at the
/// end.
#[inline]
pub(crate) fn next_group(lengths: &[u16], limits: Limits) -> Option<Group> {
    let (&segment, rest) = lengths.split_first()?;
    let mut group = Group { datagrams: 1, bytes: usize::from(segment), segment };
    if group.bytes > limits.segment {
        return Some(group);
    }
    for &length in rest {
        let bytes = group.bytes + usize::from(length);
        // The kernel splits by length alone, so an empty datagram cannot follow another in a
        // message.
        if length > segment
            || length == 0
            || group.datagrams >= limits.segments
            || bytes > limits.bytes
        {
            break;
        }
        group.datagrams += 1;
        group.bytes = bytes;
        if length < segment {
            break;
        }
    }
    Some(group)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const GSO: Limits = Limits { segments: MAX_SEGMENTS, bytes: MAX_MESSAGE, segment: MAX_MESSAGE };

    fn groups(mut lengths: &[u16], limits: Limits) -> Vec<Group> {
        let mut groups = Vec::new();
        while let Some(group) = next_group(lengths, limits) {
            lengths = &lengths[group.datagrams..];
            groups.push(group);
        }
        groups
    }

    /// Splits a message by length, as the kernel does.
    fn cut(group: Group) -> Vec<u16> {
        if group.datagrams == 1 {
            return vec![group.segment];
        }
        let mut left = group.bytes;
        let mut pieces = Vec::new();
        while left > 0 {
            let piece = left.min(usize::from(group.segment));
            pieces.push(piece as u16);
            left -= piece;
        }
        pieces
    }

    #[test]
    fn a_run_ends_with_its_first_shorter_datagram() {
        let made = groups(&[1400, 1400, 900, 1400, 1400], GSO);
        assert_eq!(made[0], Group { datagrams: 3, bytes: 3700, segment: 1400 });
        assert_eq!(made[1], Group { datagrams: 2, bytes: 2800, segment: 1400 });
    }

    #[test]
    fn a_longer_datagram_begins_a_new_run() {
        assert_eq!(groups(&[100, 200], GSO).len(), 2);
    }

    #[test]
    fn an_empty_datagram_travels_alone() {
        let made = groups(&[0, 0, 5, 0, 5], GSO);
        assert!(made.iter().all(|group| group.datagrams == 1), "{made:?}");
    }

    #[test]
    fn a_datagram_beyond_the_limit_travels_alone() {
        assert_eq!(groups(&[65_507, 65_507], GSO).len(), 2);
        assert_eq!(groups(&[40_000, 25_001], GSO).len(), 2);
        assert_eq!(groups(&[40_000, 25_000], GSO).len(), 1);
    }

    #[test]
    fn a_message_has_no_more_segments_than_the_kernel_takes() {
        let made = groups(&[10; 129], GSO);
        assert_eq!(made.iter().map(|group| group.datagrams).collect::<Vec<_>>(), [64, 64, 1]);
    }

    fn lengths() -> impl Strategy<Value = Vec<u16>> {
        let length = prop_oneof![
            4 => Just(1400_u16),
            2 => 0_u16..=3,
            2 => 1_u16..=1500,
            1 => any::<u16>(),
        ];
        let run = (length, 1_usize..80).prop_map(|(length, times)| vec![length; times]);
        vec(run, 0..12).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn the_kernel_cuts_every_grouping_back_into_the_same_datagrams(
            lengths in lengths(),
            segments in 1_usize..=64,
            bytes in 1_usize..=MAX_MESSAGE,
            segment in 1_usize..=2800,
        ) {
            let made = groups(&lengths, Limits { segments, bytes, segment });
            let pieces: Vec<u16> = made.iter().copied().flat_map(cut).collect();
            prop_assert_eq!(pieces, lengths);
            for group in made {
                prop_assert!(group.datagrams <= segments);
                if group.datagrams > 1 {
                    prop_assert!(group.bytes <= bytes);
                    prop_assert!(usize::from(group.segment) <= segment);
                }
            }
        }

        #[test]
        fn a_limit_of_one_segment_gives_one_message_for_each_datagram(lengths in lengths()) {
            let made = groups(&lengths, Limits { segments: 1, ..GSO });
            prop_assert_eq!(made.len(), lengths.len());
        }
    }
}
