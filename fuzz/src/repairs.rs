//! Repair packets of texture video: real ones, in any order, and any others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rushes_delivery::{
    Assembly, AssemblyOptions, Claim, Decoder, Encoder, GapFinder, Plan, RepairOutcome, UnitHeader,
};

use crate::packets;

/// Octets of the units of a frame, and a client that receives it.
struct Model {
    assembly: Assembly,
    finder: GapFinder,
    decoder: Decoder,
    now: Instant,
    percent: u8,
    sent: Vec<Vec<u8>>,
    /// The packets of a frame and its repair packets, by their numbers.
    packets: Vec<(u32, Vec<u8>)>,
    /// By slot and unit.
    memory: Vec<Vec<Vec<u8>>>,
    /// Which packets of each slot arrived, and whether a packet came that was not sent.
    arrived: HashMap<usize, (Vec<bool>, bool)>,
    /// Whether a packet was kept that was not sent.
    has_forged: bool,
}

impl Model {
    fn new([units, bytes, stripe, payload, percent, slots, flags]: [u8; 7]) -> Option<Self> {
        let of = |unit: u8| (usize::from(bytes) * 3 + usize::from(unit) + 1, usize::from(stripe) * 2 + 1);
        let units: Vec<_> = (0..=units & 3).map(of).collect();
        let plan = Plan::new(&units, usize::from(payload & 31) + 1).ok()?;
        let percent = percent % 100 + 1;
        let sent: Vec<Vec<u8>> =
            units.iter().map(|(octets, _)| (0..*octets).map(|at| (at * 7 + 1) as u8).collect()).collect();
        let (mut encoder, mut packets) = (Encoder::new(), Vec::new());
        for (unit, octets) in sent.iter().enumerate() {
            for stripe in (0..plan.stripe_count(unit)).filter_map(|at| plan.stripe(unit, at)) {
                let octets = &octets[stripe.bytes.clone()];
                let parts = octets.chunks(plan.payload()).map(<[u8]>::to_vec);
                packets.extend(plan.stripe_packets(&stripe).zip(parts));
                let repairs = encoder.encode(&plan, &stripe, percent, octets);
                packets.extend(repairs.map(|(number, octets)| (number, octets.to_vec())));
            }
        }
        assert_eq!(packets.len(), (plan.packets() + plan.repairs(percent)) as usize);
        let options = AssemblyOptions {
            slots: usize::from(slots & 15),
            recovery: flags & 1 == 1,
            fec: true,
            ..AssemblyOptions::default()
        };
        let assembly = Assembly::new(plan, options);
        let slot: Vec<_> = units.iter().map(|(octets, _)| vec![0; *octets]).collect();
        Some(Self {
            memory: vec![slot; assembly.slots()],
            assembly,
            finder: GapFinder::new(flags & 2 == 2),
            decoder: Decoder::new(),
            now: Instant::now(),
            percent,
            sent,
            packets,
            arrived: HashMap::new(),
            has_forged: false,
        })
    }

    fn take(&mut self, header: UnitHeader, octets: &[u8], is_real: bool) {
        let gaps = if self.assembly.is_repair(header) {
            let all = self.assembly.statistics();
            match self.assembly.take_repair(self.now, header, octets) {
                RepairOutcome::Kept => {
                    // A forged one may belong to any frame that is being received.
                    if !is_real {
                        self.arrived.values_mut().for_each(|(_, is_forged)| *is_forged = true);
                        self.has_forged = true;
                    }
                    assert_eq!(self.assembly.statistics().repairs, all.repairs + 1);
                    self.finder.handle_repair(self.assembly.plan(), header)
                }
                RepairOutcome::Discarded(_) | RepairOutcome::Blocked => None,
            }
        } else {
            let Claim::Place(place) = self.assembly.claim(self.now, header, octets.len()) else { return };
            self.memory[place.slot][place.unit][place.bytes.clone()].copy_from_slice(octets);
            let packets = self.assembly.plan().packets();
            let is_forged = self.has_forged;
            let fresh = || (vec![false; packets as usize], is_forged);
            let (arrived, _) = self.arrived.entry(place.slot).or_insert_with(fresh);
            let index = header.index % packets;
            assert!(!std::mem::replace(&mut arrived[index as usize], true), "placed twice");
            let is_in_order = self.assembly.is_in_order(header);
            let gaps =
                is_in_order.then(|| self.finder.handle_packet(self.assembly.plan(), header)).flatten();
            self.assembly.land(place.slot, place.unit, 1);
            gaps
        };
        if let Some(gaps) = gaps {
            self.assembly.handle_gaps(self.now, gaps);
        }
        self.repair();
        self.hand_over();
    }

    fn repair(&mut self) {
        while let Some(repair) = self.assembly.poll_repair(&mut self.decoder) {
            let octets = &mut self.memory[repair.slot][repair.unit];
            let before = octets.clone();
            let is_computed = self.decoder.repair(self.assembly.plan(), &repair, octets);
            assert!(is_computed, "there are enough repair packets");
            let (mut lost, mut index) = (vec![false; octets.len()], 0);
            for packet in repair.packets() {
                assert!(packet >= index && packet < self.assembly.plan().packets());
                index = packet + 1;
                let span = self.assembly.plan().locate(packet).unwrap();
                assert_eq!(span.unit, repair.unit);
                lost[span.bytes].fill(true);
            }
            let is_kept = |at: usize| lost[at] || octets[at] == before[at];
            assert!((0..octets.len()).all(is_kept), "an octet that arrived has changed");
            self.assembly.land_repair(&repair, is_computed);
        }
    }

    fn hand_over(&mut self) {
        let mut gaps = Vec::new();
        while let Some(ending) = self.assembly.poll_ending() {
            let fresh = || (vec![false; self.assembly.plan().packets() as usize], true);
            let (arrived, is_forged) = self.arrived.remove(&ending.slot).unwrap_or_else(fresh);
            self.assembly.gaps(ending.slot, &mut gaps);
            for (index, has_arrived) in (0..).zip(arrived) {
                let span = self.assembly.plan().locate(index).unwrap();
                let is_in = |gap: &rushes_delivery::Gap| {
                    gap.unit == span.unit && gap.bytes.contains(&span.bytes.start)
                };
                let is_missing = gaps.iter().any(is_in);
                assert!(!has_arrived || !is_missing);
                let octets = &self.memory[ending.slot][span.unit][span.bytes.clone()];
                let is_right = *octets == self.sent[span.unit][span.bytes];
                assert!(is_missing || is_right || is_forged && !has_arrived, "a wrong octet");
            }
            self.assembly.release(self.now, ending.slot);
        }
    }

    fn request(&mut self) {
        let mut packets = Vec::new();
        while self.assembly.poll_requests(self.now, Duration::ZERO, &mut packets).is_some() {
            assert!(packets.last().unwrap().end <= self.assembly.plan().packets());
        }
    }
}

/// Lets a client receive packets and repair packets of frames, in the order that `octets` describe.
pub fn repair(octets: &[u8]) {
    let Some((head, octets)) = octets.split_first_chunk::<7>() else { return };
    let Some(mut model) = Model::new(*head) else { return };
    let mut frame = 0_u8;
    for (flags, body) in packets(octets) {
        match flags & 7 {
            // Packets in order, of which some are lost.
            0..=3 => {
                let [step, first, count, lost, ..] = *body else { continue };
                frame = frame.wrapping_add(step & 3);
                let first = usize::from(first) * model.packets.len() / 256;
                for at in (0..count).map(usize::from) {
                    let is_lost = lost >> (at % 8) & 1 == 1 && at % 5 == usize::from(lost % 5);
                    let packet = model.packets.get(first + at).filter(|_| !is_lost).cloned();
                    if let Some((index, octets)) = packet {
                        model.take(UnitHeader { frame, index }, &octets, true);
                    }
                }
            }
            // Any packet of the numbers of repair packets.
            4 => {
                let [percent, a, b, ref octets @ ..] = *body else { continue };
                let packets = model.assembly.plan().packets();
                let percent = if percent < 100 { percent.max(1) } else { model.percent };
                let number = u32::from_be_bytes([0, 0, a, b]) % (packets + 3);
                let index = packets * (1 + u32::from(percent)) + number;
                let mut octets = octets.to_vec();
                if flags & 8 == 0 {
                    octets.resize(model.assembly.plan().payload().next_multiple_of(2), 9);
                }
                model.take(UnitHeader { frame, index }, &octets, false);
            }
            5 => {
                model.now += Duration::from_micros(u64::from(flags) * 500);
                model.assembly.handle_timeout(model.now);
                model.hand_over();
            }
            6 => model.assembly.note_announced(model.now, model.assembly.oldest()),
            _ => model.request(),
        }
    }
    let sent = model.assembly.oldest();
    model.assembly.finish(sent);
    model.hand_over();
    assert!(model.assembly.is_idle());
}
