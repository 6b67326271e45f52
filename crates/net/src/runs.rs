//! Runs of equal length: which datagrams may travel in one message.

/// Segments that the kernel takes in one message (`UDP_MAX_SEGMENTS` of Linux before 6.9).
const SEGMENTS_MAX: usize = 64;

/// Octets in one message: with its headers it must stay below 64 KiB, or the kernel says
/// `EMSGSIZE`.
pub(crate) const MESSAGE_LEN_MAX: usize = 65_000;

/// What one message holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Message {
    /// Where it begins among the octets of the batch.
    pub(crate) start: usize,
    /// Its octets.
    pub(crate) len: usize,
    /// Its datagrams.
    pub(crate) datagrams: usize,
    /// The length of each but the last, which may be shorter; only meaningful with several.
    pub(crate) segment: u16,
}

/// The longest message that begins with the first of `lengths`, at octet `start`.
///
/// All its datagrams but the last are equally long, and the last is no longer.
pub(crate) fn next_run(lengths: &[u16], start: usize, len_max: usize) -> Message {
    let Some(&segment) = lengths.first() else { return Message { start, ..Message::default() } };
    let mut message = Message { start, len: usize::from(segment), datagrams: 1, segment };
    // An empty datagram has no segments to be told apart by.
    if segment == 0 {
        return message;
    }
    for &len in lengths.iter().take(SEGMENTS_MAX).skip(1) {
        let fits = message.len + usize::from(len) <= len_max;
        if len == 0 || len > segment || !fits {
            break;
        }
        message.len += usize::from(len);
        message.datagrams += 1;
        if len < segment {
            break;
        }
    }
    message
}

/// The first of `lengths` alone.
pub(crate) fn next_single(lengths: &[u16], start: usize) -> Message {
    next_run(&lengths[..lengths.len().min(1)], start, MESSAGE_LEN_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn runs(lengths: &[u16], len_max: usize) -> Vec<Message> {
        let (mut rest, mut start, mut runs) = (lengths, 0, Vec::new());
        while !rest.is_empty() {
            let run = next_run(rest, start, len_max);
            rest = &rest[run.datagrams..];
            start += run.len;
            runs.push(run);
        }
        runs
    }

    fn counts(lengths: &[u16]) -> Vec<usize> {
        runs(lengths, MESSAGE_LEN_MAX).iter().map(|run| run.datagrams).collect()
    }

    #[test]
    fn a_shorter_datagram_ends_a_run() {
        assert_eq!(counts(&[10, 10, 4, 10, 10]), [3, 2]);
    }

    #[test]
    fn a_longer_datagram_starts_a_run() {
        assert_eq!(counts(&[4, 10, 10]), [1, 2]);
    }

    #[test]
    fn segments_and_octets_are_limited() {
        assert_eq!(counts(&[1; 130]), [64, 64, 2]);
        assert_eq!(counts(&[1400; 50]), [46, 4]);
        assert_eq!(counts(&[65_507, 10]), [1, 1]);
    }

    #[test]
    fn empty_datagrams_travel_alone() {
        assert_eq!(counts(&[0, 0, 5, 0]), [1, 1, 1, 1]);
    }

    proptest! {
        #[test]
        fn runs_cover_the_batch_and_keep_the_rules(
            lengths in prop::collection::vec(prop_oneof![0..3_u16, Just(1400), 0..9000_u16], 0..200),
            len_max in 1..70_000_usize,
        ) {
            let runs = runs(&lengths, len_max);
            let mut rest = &lengths[..];
            let mut start = 0;
            for run in runs {
                let (own, tail) = rest.split_at(run.datagrams);
                rest = tail;
                prop_assert_eq!(run.start, start);
                prop_assert_eq!(run.len, own.iter().map(|len| usize::from(*len)).sum::<usize>());
                start += run.len;
                prop_assert!(run.datagrams <= SEGMENTS_MAX);
                prop_assert!(run.datagrams == 1 || run.len <= len_max);
                let (last, equal) = own.split_last().unwrap();
                prop_assert!(equal.iter().all(|len| *len == run.segment));
                prop_assert!(*last <= run.segment);
            }
            prop_assert!(rest.is_empty());
        }
    }
}
