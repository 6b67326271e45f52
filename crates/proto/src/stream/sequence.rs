//! Sequence numbers of one source: which packets are believed (RFC 3550 appendix A.1).

use crate::seq::ExtendedSequence;
use crate::seq::SequenceNumber;

/// Packets that may be missing in a row before a jump is suspected.
pub(super) const MAX_DROPOUT: i16 = 3000;

/// Packets that one may be behind the newest before it is suspected.
pub(super) const MAX_MISORDER: i16 = 100;

/// What a sequence number says about its packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It belongs here.
    Accept(ExtendedSequence),
    /// It is far off; if the next one follows it, the source has jumped.
    Suspect,
    /// It follows a suspect: the source has jumped, and this packet's place is the given one.
    Jumped(ExtendedSequence),
}

/// The newest packet of a believed source, and the suspect if there is one.
#[derive(Clone, Debug)]
pub(super) struct SequenceState {
    first: ExtendedSequence,
    highest: ExtendedSequence,
    expected_after_suspect: Option<SequenceNumber>,
}

impl SequenceState {
    pub(super) fn new(first: ExtendedSequence) -> Self {
        Self { first, highest: first, expected_after_suspect: None }
    }

    /// Judges the next packet.
    #[inline]
    pub(super) fn judge(&mut self, sequence: SequenceNumber) -> Verdict {
        let step = sequence.distance(self.highest.sequence());
        if (-MAX_MISORDER..MAX_DROPOUT).contains(&step) {
            let extended = self.highest.nearest(sequence);
            self.highest = self.highest.max(extended);
            self.expected_after_suspect = None;
            return Verdict::Accept(extended);
        }
        if self.expected_after_suspect == Some(sequence) {
            // Always forwards: after a burst of losses longer than MAX_DROPOUT that is true, and
            // after a restart the distance means nothing.
            let forwards = sequence.0.wrapping_sub(self.highest.sequence().0);
            self.highest = self.highest.plus(u64::from(forwards));
            self.expected_after_suspect = None;
            return Verdict::Jumped(self.highest);
        }
        self.expected_after_suspect = Some(sequence.plus(1));
        Verdict::Suspect
    }

    /// Accepts the packet after the newest.
    #[inline]
    pub(super) fn advance(&mut self) -> ExtendedSequence {
        self.highest = self.highest.plus(1);
        self.expected_after_suspect = None;
        self.highest
    }

    /// The newest packet.
    pub(super) fn highest(&self) -> ExtendedSequence {
        self.highest
    }

    /// Packets that should have come so far (RFC 3550 appendix A.3).
    pub(super) fn expected(&self) -> u64 {
        self.highest.since(self.first) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(first: u16) -> SequenceState {
        SequenceState::new(ExtendedSequence::first(SequenceNumber(first)))
    }

    fn accepted(state: &mut SequenceState, sequence: u16) -> Option<u64> {
        match state.judge(SequenceNumber(sequence)) {
            Verdict::Accept(extended) => Some(extended.0),
            _ => None,
        }
    }

    #[test]
    fn a_wrap_counts_on() {
        let mut state = state(65_534);
        assert_eq!(accepted(&mut state, 65_535), Some(0x1_ffff));
        assert_eq!(accepted(&mut state, 0), Some(0x2_0000));
        assert_eq!(state.expected(), 3);
        assert_eq!(accepted(&mut state, 65_535), Some(0x1_ffff));
    }

    #[test]
    fn limits_of_dropout_and_misorder_are_the_rfcs() {
        assert_eq!(accepted(&mut state(1000), 3999), Some(0x1_0f9f));
        assert_eq!(accepted(&mut state(1000), 4000), None);
        assert_eq!(accepted(&mut state(1000), 900), Some(0x1_0384));
        assert_eq!(accepted(&mut state(1000), 899), None);
    }

    #[test]
    fn a_single_stray_packet_changes_nothing() {
        let mut state = state(1000);
        assert_eq!(state.judge(SequenceNumber(30_000)), Verdict::Suspect);
        assert_eq!(accepted(&mut state, 1001), Some(0x1_03e9));
        assert_eq!(state.judge(SequenceNumber(30_001)), Verdict::Suspect);
    }

    #[test]
    fn two_packets_in_a_row_elsewhere_are_a_jump_forwards() {
        let mut state = state(1000);
        state.judge(SequenceNumber(10));
        let place = ExtendedSequence(0x1_03e8 + u64::from(11_u16.wrapping_sub(1000)));
        assert_eq!(state.judge(SequenceNumber(11)), Verdict::Jumped(place));
        assert_eq!(accepted(&mut state, 12), Some(place.0 + 1));
    }
}
