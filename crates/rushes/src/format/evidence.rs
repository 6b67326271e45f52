//! Recognising the format of a stream by its packets.

use rushes_proto::rtp::Packet;

use super::Codec;

/// Minimum share of evidence for a format.
const CONVINCING: f64 = 0.9;

/// Minimum evidence: for the format whose default payload type the stream has, and for others.
const ENOUGH_BY_DEFAULT: u64 = 2;
const ENOUGH: u64 = 3;

/// Evidence for and against a format: properties of packets that another format or noise would not
/// have by chance.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Evidence {
    /// Observed properties that the format has.
    pub for_it: u64,
    /// Observed properties that the format does not have.
    pub against: u64,
}

impl Evidence {
    /// Counts one property.
    pub fn count(&mut self, is_for_it: bool) {
        *(if is_for_it { &mut self.for_it } else { &mut self.against }) += 1;
    }

    /// Returns the share of evidence for the format, or 0 if there is none at all.
    pub fn share(self) -> f64 {
        self.for_it as f64 / (self.for_it + self.against).max(1) as f64
    }
}

/// Returns whether `later` is the packet after `earlier`.
pub fn follows(later: &Packet<'_>, earlier: &Packet<'_>) -> bool {
    later.sequence() == earlier.sequence().plus(1)
}

/// Returns the format that the packets of a stream match, or `None` if they match none.
///
/// The packets must be in order, without duplicates and without empty payloads.
///
/// A payload type alone is not evidence: other senders use other numbers.
pub fn guess(packets: &[Packet<'_>]) -> Option<Codec> {
    let payload_type = packets.first()?.payload_type();
    Codec::all().find(|codec| {
        let evidence = (codec.evidence)(packets);
        let is_default = codec.payload_type.value() == payload_type;
        let enough = if is_default { ENOUGH_BY_DEFAULT } else { ENOUGH };
        evidence.for_it >= enough && evidence.share() >= CONVINCING
    })
}
