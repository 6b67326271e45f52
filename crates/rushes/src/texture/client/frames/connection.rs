//! Places chunks of a connection, whose octets are read directly into the frame.

use std::sync::atomic::Ordering;
use std::time::Instant;

use rushes_delivery::{
    Assembly, Claim, Landed, PACKING_BYTES, PackedClaim, PackedLanded, PackedPlace, Place,
    UnitHeader,
};

use super::super::super::lock;
use super::super::super::packing::unpack;
use super::{Frames, STUCK_MAX};

impl Frames {
    /// Claims the place of a packet whose octets follow. Returns `None` if the packet must be
    /// discarded.
    ///
    /// Waits for memory until `stopped` returns true.
    pub(in super::super) fn claim(
        &self,
        header: UnitHeader,
        stopped: &impl Fn() -> bool,
    ) -> Option<Place> {
        let octets = self.shape.plan().locate(header.index)?.bytes.len();
        let claim = |assembly: &mut Assembly| match assembly.claim(Instant::now(), header, octets) {
            Claim::Place(place) => Ok(Some(place)),
            Claim::Discard(_) => Ok(None),
            Claim::Blocked => Err(()),
        };
        self.claim_with(claim, stopped)
    }

    /// Claims something, waiting for memory while `claim` fails.
    fn claim_with<T>(
        &self,
        claim: impl Fn(&mut Assembly) -> Result<Option<T>, ()>,
        stopped: &impl Fn() -> bool,
    ) -> Option<T> {
        if let Ok(claimed) = claim(&mut lock(&self.assembly)) {
            return claimed;
        }
        self.blocked.fetch_add(1, Ordering::Relaxed);
        let claimed = self.claim_when_free(claim, stopped);
        self.blocked.fetch_sub(1, Ordering::Relaxed);
        claimed
    }

    fn claim_when_free<T>(
        &self,
        claim: impl Fn(&mut Assembly) -> Result<Option<T>, ()>,
        stopped: &impl Fn() -> bool,
    ) -> Option<T> {
        let mut stuck_since = None;
        while self.wait_for_room(None, stopped) {
            let now = Instant::now();
            let mut assembly = lock(&self.assembly);
            if let Ok(claimed) = claim(&mut assembly) {
                return claimed;
            }
            let all_waiting = self.blocked.load(Ordering::Relaxed) == self.threads;
            if !all_waiting || !assembly.is_waiting() {
                stuck_since = None;
            } else if *stuck_since.get_or_insert(now) + STUCK_MAX <= now {
                return None;
            }
        }
        None
    }

    /// Calls `write` with the memory of a claimed place.
    pub(in super::super) fn fill<T>(&self, place: &Place, write: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut region = lock(&self.memory[place.slot][place.unit]);
        write(&mut region.octets()[place.bytes.clone()])
    }

    /// Claims the place of a packed stripe's packet, whose octets follow; tells how many. Returns `None` if
    /// the packet must be discarded.
    ///
    /// Waits for memory until `stopped` returns true.
    pub(in super::super) fn claim_packed(
        &self,
        header: UnitHeader,
        packing: [u8; PACKING_BYTES],
        stopped: &impl Fn() -> bool,
    ) -> Option<PackedClaim> {
        let octets = lock(&self.assembly).packed_len(header, packing)?;
        let claim = |assembly: &mut Assembly| match assembly.claim_packed(
            Instant::now(),
            (header, packing),
            octets,
        ) {
            PackedClaim::Nothing(Claim::Blocked) => Err(()),
            PackedClaim::Nothing(_) => Ok(None),
            claimed => Ok(Some(claimed)),
        };
        let claimed = self.claim_with(claim, stopped)?;
        if let PackedClaim::Unchanged(Landed { ended: true, .. }) = claimed {
            self.hand_over();
        }
        Some(claimed)
    }

    /// Calls `write` with the place of a packet in the stage.
    pub(in super::super) fn fill_stage<T>(
        &self,
        place: &PackedPlace,
        write: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let mut stage = lock(&self.stages[place.slot][place.unit]);
        write(&mut stage[place.bytes.clone()])
    }

    /// Records that a packet's octets are in the stage; unpacks its stripe if they are the last ones.
    /// Returns false if that is impossible.
    pub(in super::super) fn land_staged(&self, place: &PackedPlace) -> bool {
        let landed = lock(&self.assembly).land_packed(place);
        let unpacking = match landed {
            PackedLanded::Waiting(landed) => {
                if landed.ended {
                    self.hand_over();
                }
                return true;
            }
            PackedLanded::Unpack(unpacking) => unpacking,
        };
        let (slot, unit) = (place.slot, place.unit);
        let is_unpacked = {
            let stage = lock(&self.stages[slot][unit]);
            let mut region = lock(&self.memory[slot][unit]);
            let to = &mut region.octets()[unpacking.stripe.bytes.clone()];
            unpack(unpacking.packing, &stage[unpacking.staged.clone()], to)
        };
        self.land_by(slot, unit, |assembly| assembly.land_unpacked(&unpacking, is_unpacked));
        is_unpacked
    }

    /// Releases a claimed place of the stage, which will not be filled.
    pub(in super::super) fn abandon_staged(&self, place: &PackedPlace) {
        let mut assembly = lock(&self.assembly);
        assembly.unclaim_packed(place);
        let is_ready = assembly.is_ready();
        drop(assembly);
        if is_ready {
            self.hand_over();
        }
    }
}
