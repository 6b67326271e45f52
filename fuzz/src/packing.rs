//! Packed stripes of texture video: packets with any numbers and marks, beside plain ones.

use std::ops::Range;
use std::time::{Duration, Instant};

use rushes_delivery::{
    Assembly, AssemblyOptions, Claim, PackedClaim, PackedLanded, PackedPlace, Packing, Plan,
    UnitHeader,
};

const MS: Duration = Duration::from_millis(1);

/// Packets that were claimed and are still being received, at most.
const HELD_MAX: usize = 8;

/// A client that receives frames of two units, and the packets that it holds.
struct Model {
    assembly: Assembly,
    now: Instant,
    held: Vec<PackedPlace>,
    requests: Vec<Range<u32>>,
}

/// Receives packets: octets of a header and a mark, in steps that the first octet of each selects.
///
/// What is staged and unpacked stays inside its stripe, and a frame is whole exactly if it has no gaps.
pub fn packing(octets: &[u8]) {
    let Some((&[stripe, payload, flags], steps)) = octets.split_first_chunk() else { return };
    let stripe = usize::from(stripe) + 1;
    let units = [(2 * stripe, stripe), (stripe + stripe / 2 + 1, stripe)];
    let Ok(plan) = Plan::new(&units, usize::from(payload) + 1) else { return };
    let options = AssemblyOptions {
        packing: true,
        recovery: flags & 1 == 1,
        reliable: flags & 2 == 2,
        ..AssemblyOptions::default()
    };
    let assembly = Assembly::new(plan, options);
    let mut model = Model { assembly, now: Instant::now(), held: Vec::new(), requests: Vec::new() };
    let (steps, _) = steps.as_chunks::<8>();
    steps.iter().for_each(|step| model.step(*step));
    model.end();
}

impl Model {
    fn step(&mut self, [action, frame, high, low, packing @ ..]: [u8; 8]) {
        let header = UnitHeader { frame, index: u32::from_be_bytes([0, 0, high, low]) };
        match action % 8 {
            0 => {
                self.now += MS * u32::from(low);
                self.assembly.handle_timeout(self.now);
            }
            1 => drop(self.assembly.poll_requests(self.now, MS, &mut self.requests)),
            2 => self.plain(header),
            3 => self.land(low & 1 == 1),
            4 => self.held.drain(..).for_each(|place| self.assembly.unclaim_packed(&place)),
            _ => {
                let plan = self.assembly.plan();
                let index = plan.packed_index(header.index % plan.packets(), low & 1 == 1);
                self.packed(UnitHeader { index, ..header }, packing);
            }
        }
        self.endings();
    }

    fn plain(&mut self, header: UnitHeader) {
        let span = self.assembly.plan().locate(header.index);
        let octets = span.map_or(0, |span| span.bytes.len());
        if let Claim::Place(place) = self.assembly.claim(self.now, header, octets) {
            self.assembly.land(place.slot, place.unit, 1);
        }
    }

    fn packed(&mut self, header: UnitHeader, packing: [u8; 4]) {
        let octets = self.assembly.packed_len(header, packing);
        assert!(octets.is_none() || Packing::parse(packing).is_some());
        let with = (header, packing);
        let claim = self.assembly.claim_packed(self.now, with, octets.unwrap_or(7));
        if let PackedClaim::Stage(place) = claim {
            self.held.push(place);
            if self.held.len() > HELD_MAX {
                self.land(true);
            }
        }
    }

    fn land(&mut self, is_good: bool) {
        let Some(place) = self.held.pop() else { return };
        if let PackedLanded::Unpack(unpacking) = self.assembly.land_packed(&place) {
            assert!(unpacking.staged.end <= unpacking.stripe.bytes.end);
            self.assembly.land_unpacked(&unpacking, is_good);
        }
    }

    fn endings(&mut self) {
        while let Some(ending) = self.assembly.poll_ending() {
            let mut gaps = Vec::new();
            self.assembly.gaps(ending.slot, &mut gaps);
            assert_eq!(ending.whole, gaps.is_empty());
            self.assembly.release(self.now, ending.slot);
        }
    }

    fn end(&mut self) {
        self.held.drain(..).for_each(|place| self.assembly.unclaim_packed(&place));
        self.assembly.finish(u64::MAX >> 1);
        self.endings();
        assert!(self.assembly.is_idle());
    }
}
