//! Plans of arbitrary units, and frames assembled from arbitrary packets in guarded memory.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rushes_delivery::{
    Assembly, AssemblyOptions, Claim, Ending, GapFinder, Place, Plan, UnitHeader,
};

use crate::packets;

/// Octets around each unit that must not be written to.
const GUARD: usize = 32;

/// The value of a guard's octets.
const GUARD_OCTET: u64 = u64::MAX;

/// Maximum number of packets of a plan that are checked individually.
const PACKETS_MAX: u32 = 5_000;

fn number(octets: &[u8]) -> usize {
    octets.iter().fold(0, |number, octet| number << 8 | usize::from(*octet))
}

/// Cuts units of any size, and checks that packets and stripes cover them once.
pub fn plan(octets: &[u8]) {
    let Some((head, octets)) = octets.split_first_chunk::<4>() else { return };
    // Small and large numbers with equal probability.
    let number = |octets: &[u8]| number(&octets[1..]) >> (octets[0] & 63);
    let payload = number(head);
    let units: Vec<_> =
        octets.chunks_exact(16).map(|it| (number(&it[..8]), number(&it[8..]))).collect();
    let Ok(plan) = Plan::new(&units, payload) else { return };
    assert_eq!(plan.units(), units.len());
    assert_eq!(plan.bytes(), units.iter().map(|(bytes, _)| bytes).sum::<usize>());
    assert_eq!(plan.locate(plan.packets()), None);
    assert_eq!(plan.locate(u32::MAX), None);
    let mut first = 0;
    for (unit, (bytes, stripe_bytes)) in units.iter().enumerate() {
        let numbers = plan.unit_packets(unit);
        assert_eq!((numbers.start, plan.unit_bytes(unit)), (first, *bytes));
        first = numbers.end;
        check_packets(&plan, unit);
        check_stripes(&plan, unit, *stripe_bytes);
    }
    assert_eq!(first, plan.packets());
}

/// The first packets of a unit are contiguous, and its last one ends it.
fn check_packets(plan: &Plan, unit: usize) {
    let (numbers, mut at) = (plan.unit_packets(unit), 0);
    for index in numbers.clone().take(PACKETS_MAX as usize) {
        let span = plan.locate(index).unwrap();
        assert_eq!((span.unit, span.bytes.start), (unit, at));
        assert!(!span.bytes.is_empty() && span.bytes.len() <= plan.payload());
        at = span.bytes.end;
    }
    let last = plan.locate(numbers.end - 1).unwrap();
    assert_eq!((last.unit, last.bytes.end), (unit, plan.unit_bytes(unit)));
}

fn check_stripes(plan: &Plan, unit: usize, stripe_bytes: usize) {
    let (count, mut at) = (plan.stripe_count(unit), 0);
    assert_eq!(plan.stripe(unit, count), None);
    for index in 0..count.min(PACKETS_MAX as usize) {
        let stripe = plan.stripe(unit, index).unwrap();
        let first = plan.locate(stripe.first_packet).unwrap();
        assert_eq!((first.unit, first.bytes.start), (unit, stripe.bytes.start));
        assert_eq!(stripe.bytes.start, at);
        assert!(stripe.bytes.len() <= stripe_bytes && stripe.bytes.end <= plan.unit_bytes(unit));
        at = stripe.bytes.end;
    }
}

/// Frames in memory: the value of each octet identifies the packet and the frame that wrote it.
struct Model {
    assembly: Assembly,
    now: Instant,
    /// By slot and unit: guard, octets, guard.
    memory: Vec<Vec<Vec<u64>>>,
    /// Packets claimed and not in place yet.
    claimed: Vec<(Place, u64)>,
    /// Since when the frame in each slot has waited, and which of its packets were claimed.
    arrived: HashMap<usize, (Instant, Vec<bool>)>,
    /// The last frame handed over: its number, its slot and its contents.
    before: Option<(u64, usize, Vec<Vec<u64>>)>,
    frames: u64,
    deadline_max: Duration,
    is_reliable: bool,
    recovery: bool,
    finder: GapFinder,
}

impl Model {
    fn new(head: [u8; 12]) -> Option<Self> {
        let [
            units,
            size,
            size_low,
            stripe,
            stripe_low,
            payload,
            slots,
            flags,
            min,
            max,
            first,
            low,
        ] = head;
        let bytes = number(&[size & 7, size_low]) + 1;
        let stripe = number(&[stripe & 7, stripe_low]) + 1;
        let of = |unit: usize| (bytes / (unit + 1) + 1, stripe);
        let units: Vec<_> = (0..usize::from(units & 7) + 1).map(of).collect();
        let plan = Plan::new(&units, usize::from(payload) + 1).ok()?;
        let is_reliable = flags & 1 == 1;
        let deadline_max = Duration::from_millis(max.into());
        let options = AssemblyOptions {
            slots: usize::from(slots & 15),
            reliable: is_reliable,
            recovery: flags & 2 == 2,
            fec: flags & 4 == 4,
            packing: false,
            // Not the very highest numbers, which leave no room to count on.
            first_frame: if first > 127 { u64::MAX - (1 << 40) } else { u64::from(low) },
            deadline_min: Duration::from_millis(min.into()),
            deadline_max,
        };
        let guarded = |unit: &(usize, usize)| vec![GUARD_OCTET; unit.0 + 2 * GUARD];
        let slot: Vec<_> = units.iter().map(guarded).collect();
        let assembly = Assembly::new(plan, options);
        Some(Self {
            now: Instant::now(),
            memory: vec![slot; assembly.slots()],
            assembly,
            claimed: Vec::new(),
            arrived: HashMap::new(),
            before: None,
            frames: 0,
            deadline_max,
            is_reliable,
            recovery: flags & 2 == 2 && !is_reliable,
            finder: GapFinder::default(),
        })
    }

    fn claim(&mut self, mut header: UnitHeader, octets: usize) {
        let oldest = self.assembly.oldest();
        let Claim::Place(place) = self.assembly.claim(self.now, header, octets) else { return };
        if !self.assembly.is_in_order(header) {
            assert!(self.recovery, "nothing is sent again");
            header.index -= self.assembly.plan().packets();
        } else if let Some(gaps) = self.finder.handle_packet(self.assembly.plan(), header) {
            self.assembly.handle_gaps(self.now, gaps);
        }
        let span = self.assembly.plan().locate(header.index).unwrap();
        assert_eq!((place.unit, &place.bytes), (span.unit, &span.bytes));
        assert_eq!(place.bytes.len(), octets);
        assert!(place.slot < self.memory.len());
        assert!(self.before.as_ref().is_none_or(|(_, slot, _)| *slot != place.slot));
        let packets = self.assembly.plan().packets() as usize;
        let fresh = || (self.now, vec![false; packets]);
        let (latest, arrived) = self.arrived.entry(place.slot).or_insert_with(fresh);
        *latest = self.now;
        assert!(
            !std::mem::replace(&mut arrived[header.index as usize], true),
            "a packet was placed twice"
        );
        assert_eq!(self.assembly.oldest(), oldest);
        let mark = u64::from(header.frame) << 32 | u64::from(header.index);
        self.claimed.push((place, mark));
    }

    /// Puts one claimed packet in place.
    fn land(&mut self, which: usize) {
        if self.claimed.is_empty() {
            return;
        }
        let (place, mark) = self.claimed.swap_remove(which % self.claimed.len());
        let unit = &mut self.memory[place.slot][place.unit];
        unit[GUARD + place.bytes.start..GUARD + place.bytes.end].fill(mark);
        self.assembly.land(place.slot, place.unit, 1);
    }

    fn hand_over(&mut self) {
        while let Some(ending) = self.assembly.poll_ending() {
            self.check(&ending);
            self.assembly.release(self.now, ending.slot);
            self.arrived.values_mut().for_each(|(since, _)| *since = self.now);
        }
    }

    fn check(&mut self, ending: &Ending) {
        let previous = self.before.as_ref().map(|(_, slot, _)| *slot);
        assert_eq!(ending.previous, previous);
        assert!(self.before.as_ref().is_none_or(|(frame, ..)| *frame < ending.frame));
        assert!(self.claimed.iter().all(|(place, _)| place.slot != ending.slot));
        if let Some((_, slot, units)) = &self.before {
            assert!(self.memory[*slot] == *units, "the previous frame has changed");
        }
        let (_, arrived) = self.arrived.remove(&ending.slot).unwrap();
        let missing = arrived.iter().filter(|arrived| !**arrived).count();
        assert_eq!((ending.missing as usize, ending.whole), (missing, missing == 0));
        let mut gaps = Vec::new();
        self.assembly.gaps(ending.slot, &mut gaps);
        let plan = self.assembly.plan();
        for (index, arrived) in (0..).zip(&arrived) {
            let span = plan.locate(index).unwrap();
            let is_in = |gap: &&rushes_delivery::Gap| {
                let covers = gap.bytes.start <= span.bytes.start && span.bytes.end <= gap.bytes.end;
                let apart = gap.bytes.end <= span.bytes.start || span.bytes.end <= gap.bytes.start;
                assert!(gap.unit != span.unit || covers || apart, "a gap within a packet");
                gap.unit == span.unit && covers
            };
            assert_eq!(gaps.iter().filter(is_in).count(), usize::from(!arrived));
            let mark = (ending.frame & 0xff) << 32 | u64::from(index);
            let octets = &self.memory[ending.slot][span.unit];
            let mut octets = octets[GUARD..][span.bytes].iter();
            assert!(!arrived || octets.all(|octet| *octet == mark));
        }
        for (unit, octets) in self.memory[ending.slot].iter().enumerate() {
            let end = GUARD + plan.unit_bytes(unit);
            let mut guards = octets[..GUARD].iter().chain(&octets[end..]);
            assert!(octets.len() == end + GUARD && guards.all(|octet| *octet == GUARD_OCTET));
        }
        self.before = Some((ending.frame, ending.slot, self.memory[ending.slot].clone()));
        self.frames += 1;
    }

    /// Requests missing packets, and checks the requests.
    fn request(&mut self, round_trip: Duration) {
        let mut packets = Vec::new();
        while let Some(frame) = self.assembly.poll_requests(self.now, round_trip, &mut packets) {
            assert!(self.recovery && frame >= self.assembly.oldest());
            assert!((1..=255).contains(&packets.len()) && packets[0].start < packets[0].end);
            let is_before = |pair: &[std::ops::Range<u32>]| {
                pair[0].end <= pair[1].start && pair[1].start < pair[1].end
            };
            assert!(packets.windows(2).all(is_before));
            assert!(packets.last().unwrap().end <= self.assembly.plan().packets());
        }
        let due = self.assembly.poll_requests_timeout();
        assert!(due.is_none_or(|due| due > self.now), "a request is due that is not made");
        let counts = self.assembly.statistics();
        assert!(counts.packets_recovered <= counts.packets_requested);
    }

    /// Advances time, from one deadline to the next.
    fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(due) = self.assembly.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.assembly.handle_timeout(self.now);
            self.hand_over();
            if self.assembly.poll_timeout() == Some(due) {
                // It waits for the retransmission of a packet.
                break;
            }
        }
        self.now = until;
        self.assembly.handle_timeout(self.now);
        self.hand_over();
        // Claimed packets must be in place first.
        let waits = self.claimed.is_empty() && !self.is_reliable;
        let in_time = |(since, _): &(Instant, Vec<bool>)| *since + self.deadline_max > self.now;
        assert!(
            !waits || self.arrived.values().all(in_time),
            "a frame is held beyond its deadline"
        );
    }
}

/// Assembles frames from the packets that `octets` describe.
pub fn assembly(octets: &[u8]) {
    let Some((head, octets)) = octets.split_first_chunk::<12>() else { return };
    let Some(mut model) = Model::new(*head) else { return };
    let (first, mut frame) = (model.assembly.oldest(), head[11]);
    for (flags, body) in packets(octets) {
        match flags & 7 {
            // A run of regular packets of a frame near the last one.
            0..=2 => {
                let [step, first, count, ..] = *body else { continue };
                frame = frame.wrapping_add(step & 3);
                let packets = model.assembly.plan().packets();
                let first = u32::from(first) % packets;
                for index in first..(first + u32::from(count)).min(packets) {
                    let octets = model.assembly.plan().locate(index).unwrap().bytes.len();
                    let again = if flags & 32 == 0 { 0 } else { packets };
                    model.claim(UnitHeader { frame, index: index + again }, octets);
                    if flags & 64 == 0 {
                        model.land(0);
                    }
                }
            }
            // Any packet.
            3 => {
                let [frame, a, b, c, d, ..] = *body else { continue };
                let index = u32::from_be_bytes([0, a, b, c]) >> (d & 31);
                let right = model.assembly.plan().locate(index).map_or(0, |it| it.bytes.len());
                let octets = if d & 32 == 0 { right } else { usize::from(d) };
                model.claim(UnitHeader { frame, index }, octets);
            }
            4 => model.land(flags.into()),
            5 => model.advance(Duration::from_micros(number(body.get(..2).unwrap_or(&[1])) as u64)),
            6 => {
                let near = model.assembly.oldest();
                model
                    .assembly
                    .note_announced(model.now, near.saturating_add(number(body) as u64 & 0xfff));
            }
            _ => model.request(Duration::from_micros(number(body.get(..2).unwrap_or(&[1])) as u64)),
        }
        model.hand_over();
    }
    while !model.claimed.is_empty() {
        model.land(0);
    }
    let sent = model.assembly.oldest().saturating_add(head[11].into());
    model.assembly.finish(sent);
    model.hand_over();
    assert!(model.assembly.is_idle() && model.assembly.oldest() >= sent);
    let counts = model.assembly.statistics();
    let ended = counts.frames_whole + counts.frames_damaged + counts.frames_lost;
    assert_eq!(ended, model.assembly.oldest() - first);
    assert_eq!(counts.frames_whole + counts.frames_damaged, model.frames);
    let all = u64::from(model.assembly.plan().packets()) * model.frames;
    assert_eq!(counts.packets + counts.packets_lost, all);
}
