//! A server that adds repair packets, a client, and a path for each unit between them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_delivery::control::Nack;
use rushes_delivery::{
    Assembly, AssemblyOptions, AssemblyStatistics, Claim, Decoder, Discard, Encoder, GapFinder,
    MemberId, Plan, Planned, RepairOutcome, Retransmissions, UnitHeader,
};
use rushes_netsim::{Link, Path, Seeded};

const TICK: Duration = Duration::from_micros(100);

/// Frames a second, and the time over which the packets of one are spread.
const FPS: u32 = 60;
const SPREAD: Duration = Duration::from_millis(14);

pub(crate) const UNITS: usize = 2;
pub(crate) const UNIT_PACKETS: u32 = 40;
pub(crate) const PACKETS: u32 = UNIT_PACKETS * UNITS as u32;
pub(crate) const FRAMES: u64 = 300;

/// What both ends do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Repair packets for 100 packets.
    pub(crate) percent: u8,
    /// Whether packets are requested.
    pub(crate) recovery: bool,
    /// Packets of a unit, which has one stripe.
    pub(crate) unit_packets: u32,
    /// Octets of a packet, and of the last one of a unit.
    pub(crate) payload: usize,
    pub(crate) last: usize,
    /// Whether the client knows no repair packets.
    pub(crate) is_ignorant: bool,
    /// Whether every packet comes once more as soon as it came, and once more 10 and 300 packets later.
    pub(crate) is_replayed: bool,
    /// Forged repair packets for each frame.
    pub(crate) forged: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            percent: 0,
            recovery: false,
            unit_packets: UNIT_PACKETS,
            payload: 6,
            last: 3,
            is_ignorant: false,
            is_replayed: false,
            forged: 0,
        }
    }
}

/// What became of the frames.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) counts: AssemblyStatistics,
    pub(crate) sent_again: u64,
    /// The packets of each frame that stayed lost.
    pub(crate) lost: Vec<u32>,
    /// Packets with octets that were not sent.
    pub(crate) wrong: u64,
}

/// A sent frame: its number and its plan.
struct Frame(u64, Arc<Plan>);

impl Planned for Frame {
    fn plan(&self) -> &Plan {
        &self.1
    }

    fn memory(&self) -> usize {
        0
    }
}

type Packet = (UnitHeader, Arc<[u8]>);

pub(crate) struct World {
    setting: Setting,
    start: Instant,
    now: Duration,
    plan: Arc<Plan>,
    retransmissions: Retransmissions<Frame>,
    member: MemberId,
    encoder: Encoder,
    units: Vec<Link<Packet>>,
    requests: Link<Nack>,
    notices: Link<u64>,
    /// Packets that wait for memory.
    inboxes: Vec<VecDeque<Packet>>,
    recorded: Vec<VecDeque<Packet>>,
    finders: Vec<GapFinder>,
    assembly: Assembly,
    decoder: Decoder,
    /// The octets of each slot's units, and which packets arrived.
    memory: Vec<Vec<Vec<u8>>>,
    arrived: Vec<Vec<bool>>,
    round_trip: Duration,
    random: Seeded,
    outcome: Outcome,
}

/// Returns the octets of a frame's unit.
fn content(frame: u64, unit: usize, octets: usize) -> Vec<u8> {
    let mut content = vec![0; octets];
    Seeded(frame << 8 | unit as u64).fill(&mut content);
    content
}

impl World {
    pub(crate) fn new(path: &Path, seed: u64, setting: Setting) -> Self {
        let octets = (setting.unit_packets as usize - 1) * setting.payload + setting.last;
        let plan = Arc::new(Plan::new(&[(octets, octets); UNITS], setting.payload).unwrap());
        let options = AssemblyOptions {
            slots: 8,
            recovery: setting.recovery,
            fec: !setting.is_ignorant,
            deadline_min: Duration::from_secs(1) / FPS,
            ..AssemblyOptions::default()
        };
        let way = Path { delay: path.delay, ..Path::default() };
        let mut retransmissions = Retransmissions::default();
        Self {
            setting,
            member: retransmissions.join(),
            start: Instant::now(),
            now: Duration::ZERO,
            retransmissions,
            encoder: Encoder::new(),
            units: (0..UNITS as u64)
                .map(|unit| Link::new(path.clone(), seed << 8 | unit))
                .collect(),
            requests: Link::new(way.clone(), 0),
            notices: Link::new(way, 0),
            inboxes: vec![VecDeque::new(); UNITS],
            recorded: vec![VecDeque::new(); UNITS],
            finders: vec![GapFinder::new(!setting.is_ignorant); UNITS],
            assembly: Assembly::new(Plan::clone(&plan), options),
            decoder: Decoder::new(),
            memory: vec![vec![vec![0; octets]; UNITS]; 8],
            arrived: vec![vec![false; plan.packets() as usize]; 8],
            plan,
            round_trip: path.delay * 2,
            random: Seeded(seed),
            outcome: Outcome {
                counts: AssemblyStatistics::default(),
                sent_again: 0,
                lost: Vec::new(),
                wrong: 0,
            },
        }
    }

    pub(crate) fn run(mut self) -> Outcome {
        let interval = Duration::from_secs(1) / FPS;
        for frame in 0..FRAMES {
            let begun = self.now;
            self.retransmissions.begin(
                self.start + self.now,
                frame,
                Arc::new(Frame(frame, self.plan.clone())),
            );
            let mut packets: Vec<_> = (0..UNITS).map(|unit| self.packets(frame, unit)).collect();
            let all = packets[0].len();
            while self.now < interval * (frame as u32 + 1) {
                let passed = self.now.saturating_sub(begun).as_nanos() * all as u128;
                let due = ((passed / SPREAD.as_nanos()) as usize).min(all);
                let is_sent = packets[0].is_empty();
                for (unit, packets) in packets.iter_mut().enumerate() {
                    while packets.len() > all - due
                        && let Some(packet) = packets.pop_front()
                    {
                        self.units[unit].push(self.now, 4 + packet.1.len(), packet);
                    }
                }
                if packets[0].is_empty() && !is_sent {
                    self.notices.push(self.now, 44, frame);
                }
                let rest = packets[0].len().min(all) as u32;
                self.answer(frame, all as u32 - rest);
                self.receive();
                self.forge(frame);
                self.now += TICK;
            }
        }
        let end = self.now + Duration::from_secs(1);
        while self.now < end {
            self.answer(FRAMES, 0);
            self.receive();
            self.now += TICK;
        }
        self.assembly.finish(FRAMES);
        self.hand_over();
        assert!(self.assembly.is_idle());
        self.outcome.counts = self.assembly.statistics();
        self.outcome
    }

    /// Returns the packets of a unit, and its repair packets.
    fn packets(&mut self, frame: u64, unit: usize) -> VecDeque<Packet> {
        let content = content(frame, unit, self.plan.unit_bytes(unit));
        let stripe = self.plan.stripe(unit, 0).unwrap();
        let header = |index| UnitHeader { frame: frame as u8, index };
        let packets = self.plan.stripe_packets(&stripe).zip(content.chunks(self.plan.payload()));
        let packets = packets.map(|(index, octets)| (header(index), octets.into()));
        let mut packets: VecDeque<_> = packets.collect();
        let repairs = self.encoder.encode(&self.plan, &stripe, self.setting.percent, &content);
        packets.extend(repairs.map(|(index, octets)| (header(index), octets.into())));
        packets
    }

    /// Sends packets again that the client requested.
    fn answer(&mut self, current: u64, sent: u32) {
        while let Some(nack) = self.requests.poll(self.now) {
            let of_unit = self.setting.unit_packets;
            let now = self.start + self.now;
            self.retransmissions.handle_nack(now, (self.member, &nack.item), |frame, packet| {
                frame.0 < current || packet % of_unit < sent
            });
        }
        while let Some((frame, packets)) = self.retransmissions.poll() {
            for packet in packets {
                let span = self.plan.locate(packet).unwrap();
                let content = content(frame.0, span.unit, self.plan.unit_bytes(span.unit));
                let header =
                    UnitHeader { frame: frame.0 as u8, index: self.plan.packets() + packet };
                let packet: Packet = (header, content[span.bytes].into());
                self.units[span.unit].push(self.now, 4 + packet.1.len(), packet);
                self.outcome.sent_again += 1;
            }
        }
    }

    fn receive(&mut self) {
        let now = self.start + self.now;
        while let Some(notice) = self.notices.poll(self.now) {
            self.assembly.note_announced(now, notice.item);
        }
        for unit in 0..UNITS {
            while let Some(delivery) = self.units[unit].poll(self.now) {
                self.inboxes[unit].push_back(delivery.item);
            }
            self.take(now, unit);
        }
        self.assembly.handle_timeout(now);
        self.hand_over();
        let mut packets = Vec::new();
        while let Some(frame) = self.assembly.poll_requests(now, self.round_trip, &mut packets) {
            self.requests.push(self.now, 100, Nack { frame, packets: packets.clone() });
        }
        assert!(self.assembly.poll_requests_timeout().is_none_or(|due| due > now));
    }

    /// Handles the packets of a unit for which there is memory.
    fn take(&mut self, now: Instant, unit: usize) {
        while let Some(packet) = self.inboxes[unit].front().cloned() {
            if !self.take_one(now, unit, &packet) {
                return;
            }
            self.inboxes[unit].pop_front();
            if self.setting.is_replayed {
                let recorded = &mut self.recorded[unit];
                recorded.push_back(packet.clone());
                let later = recorded.len().checked_sub(10).map(|at| recorded[at].clone());
                let much_later = (recorded.len() > 300).then(|| recorded.pop_front().unwrap());
                for packet in [Some(packet), later, much_later].into_iter().flatten() {
                    self.take_one(now, unit, &packet);
                }
            }
        }
    }

    /// Handles one packet; returns false if it must wait.
    fn take_one(&mut self, now: Instant, unit: usize, (header, octets): &Packet) -> bool {
        let (header, finder) = (*header, &mut self.finders[unit]);
        let gaps = if self.assembly.is_repair(header) {
            match self.assembly.take_repair(now, header, octets) {
                RepairOutcome::Blocked => return false,
                RepairOutcome::Kept | RepairOutcome::Discarded(Discard::Unneeded) => {
                    finder.handle_repair(&self.plan, header)
                }
                RepairOutcome::Discarded(_) => None,
            }
        } else {
            match self.assembly.claim(now, header, octets.len()) {
                Claim::Blocked => return false,
                Claim::Place(place) => {
                    let index = header.index % self.plan.packets();
                    self.arrived[place.slot][index as usize] = true;
                    let memory = &mut self.memory[place.slot][place.unit];
                    memory[place.bytes].copy_from_slice(octets);
                    let is_in_order = self.assembly.is_in_order(header);
                    let gaps =
                        is_in_order.then(|| finder.handle_packet(&self.plan, header)).flatten();
                    self.assembly.land(place.slot, place.unit, 1);
                    gaps
                }
                Claim::Discard(_) => None,
            }
        };
        if let Some(gaps) = gaps {
            self.assembly.handle_gaps(now, gaps);
        }
        while let Some(repair) = self.assembly.poll_repair(&mut self.decoder) {
            let octets = &mut self.memory[repair.slot][repair.unit];
            let is_computed = self.decoder.repair(&self.plan, &repair, octets);
            assert!(is_computed);
            self.assembly.land_repair(&repair, is_computed);
        }
        self.hand_over();
        true
    }

    /// Hands over frames in order, and checks their octets.
    fn hand_over(&mut self) {
        let (now, mut gaps) = (self.start + self.now, Vec::new());
        while let Some(ending) = self.assembly.poll_ending() {
            // Frames of which nothing arrived.
            self.outcome.lost.resize(ending.frame as usize, self.plan.packets());
            self.outcome.lost.push(ending.missing);
            self.assembly.gaps(ending.slot, &mut gaps);
            let mut arrived = vec![false; self.plan.packets() as usize];
            std::mem::swap(&mut arrived, &mut self.arrived[ending.slot]);
            let sent = [0, 1].map(|unit| content(ending.frame, unit, self.plan.unit_bytes(unit)));
            for (index, has_arrived) in (0..).zip(arrived) {
                let span = self.plan.locate(index).unwrap();
                let is_in = |gap: &rushes_delivery::Gap| {
                    gap.unit == span.unit && gap.bytes.contains(&span.bytes.start)
                };
                if gaps.iter().any(is_in) {
                    assert!(!has_arrived);
                    continue;
                }
                let memory = &self.memory[ending.slot][span.unit];
                let is_right = memory[span.bytes.clone()] == sent[span.unit][span.bytes];
                assert!(is_right || self.setting.forged > 0 && !has_arrived, "{ending:?} {index}");
                self.outcome.wrong += u64::from(!is_right);
            }
            self.assembly.release(now, ending.slot);
        }
    }

    /// Lets the client receive forged repair packets for frames around the current one.
    fn forge(&mut self, frame: u64) {
        let ticks = (Duration::from_secs(1) / FPS).as_nanos().div_ceil(TICK.as_nanos()) as u64;
        let now = self.start + self.now;
        for _ in 0..self.setting.forged {
            if self.random.below(ticks) > 0 {
                continue;
            }
            let random = &mut self.random;
            let frame = (frame + random.below(5)).wrapping_sub(4) as u8;
            let (packets, percent) = (self.plan.packets(), 1 + random.below(101) as u32);
            let number = random.below(packets.into()) as u32;
            let index = packets * (percent + 1) + number;
            let right = self.plan.payload().next_multiple_of(2);
            let octets = if random.chance(0.8) { right } else { random.below(20) as usize };
            let mut content = vec![0; octets];
            random.fill(&mut content);
            self.take_one(
                now,
                number as usize % UNITS,
                &(UnitHeader { frame, index }, content.into()),
            );
        }
    }
}
