//! What becomes of a packet of a socket.

use std::time::Instant;

use rushes_delivery::{
    Assembly, Claim, Decoder, Discard, GapFinder, HEADER_BYTES, Landed, PackedClaim, PackedPlace,
    Place, RepairOutcome, UnitHeader,
};

/// What the packets of one socket show, and the memory to compute those that are missing.
pub(in super::super) struct Reception {
    pub(super) finder: GapFinder,
    pub(super) decoder: Option<Decoder>,
}

impl Reception {
    /// Creates the state of a socket; the server may send repair packets if `has_fec`.
    pub(in super::super) fn new(has_fec: bool) -> Self {
        Self { finder: GapFinder::new(has_fec), decoder: has_fec.then(Decoder::new) }
    }
}

/// What becomes of a packet.
pub(super) enum Claimed {
    /// It has a place.
    Packet(Place),
    /// It has a place in the stage.
    Staged(PackedPlace),
    /// It tells its stripe as unchanged.
    Unchanged(Landed),
    /// It is a repair packet, which arrived for the first time.
    Repair,
    /// It is discarded.
    Nothing,
    /// There is no memory for it yet.
    Blocked,
}

pub(super) fn claim(assembly: &mut Assembly, now: Instant, packet: &[u8]) -> Claimed {
    let (header, octets) = match packet.split_first_chunk::<HEADER_BYTES>() {
        Some((header, octets)) => (UnitHeader::parse(*header), octets),
        None => (UnitHeader { frame: 0, index: u32::MAX }, packet),
    };
    if assembly.is_repair(header) {
        return match assembly.take_repair(now, header, octets) {
            RepairOutcome::Kept | RepairOutcome::Discarded(Discard::Unneeded) => Claimed::Repair,
            RepairOutcome::Discarded(_) => Claimed::Nothing,
            RepairOutcome::Blocked => Claimed::Blocked,
        };
    }
    if assembly.is_packed(header)
        && let Some((packing, octets)) = octets.split_first_chunk()
    {
        return match assembly.claim_packed(now, (header, *packing), octets.len()) {
            PackedClaim::Stage(place) => Claimed::Staged(place),
            PackedClaim::Unchanged(landed) => Claimed::Unchanged(landed),
            PackedClaim::Nothing(Claim::Blocked) => Claimed::Blocked,
            PackedClaim::Nothing(_) => Claimed::Nothing,
        };
    }
    match assembly.claim(now, header, octets.len()) {
        Claim::Place(place) => Claimed::Packet(place),
        Claim::Discard(_) => Claimed::Nothing,
        Claim::Blocked => Claimed::Blocked,
    }
}

/// Notes the packets that are missing before one that arrived. Returns whether one may be due to be
/// requested earlier than any other.
pub(super) fn find_gaps(
    assembly: &mut Assembly,
    now: Instant,
    (finder, packet): (Option<&mut GapFinder>, &[u8]),
) -> bool {
    let header = packet.first_chunk().map(|header| UnitHeader::parse(*header));
    let (Some(finder), Some(header)) = (finder, header) else { return false };
    let gaps = if assembly.is_in_order(header) {
        finder.handle_packet(assembly.plan(), assembly.unpacked(header))
    } else if assembly.is_repair(header) {
        finder.handle_repair(assembly.plan(), header)
    } else {
        None
    };
    gaps.is_some_and(|gaps| assembly.handle_gaps(now, gaps))
}
