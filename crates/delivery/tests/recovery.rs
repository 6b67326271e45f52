//! Frames over a simulated network whose missing packets are requested and sent again, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_delivery::control::Nack;
use rushes_delivery::{
    Assembly, AssemblyOptions, AssemblyStatistics, Claim, GapFinder, MemberId, Plan, Planned,
    Retransmissions, UnitHeader,
};
use rushes_netsim::{Link, Loss, Path, Straying};

const MS: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_micros(100);

/// Frames a second, and the time over which the packets of one are spread.
const FPS: u32 = 60;
const SPREAD: Duration = Duration::from_millis(15);

const UNITS: usize = 2;
const UNIT_PACKETS: u32 = 200;
const PACKETS: u32 = UNIT_PACKETS * UNITS as u32;
const FRAMES: u64 = 300;

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

/// A server and a client with a path for each unit, and a lossless control connection.
struct World {
    start: Instant,
    now: Duration,
    plan: Arc<Plan>,
    retransmissions: Retransmissions<Frame>,
    /// The client, and other members of its group, which request everything all the time.
    member: MemberId,
    greedy: Vec<MemberId>,
    units: Vec<Link<UnitHeader>>,
    requests: Link<Nack>,
    notices: Link<u64>,
    /// Packets that wait for memory.
    inboxes: Vec<VecDeque<UnitHeader>>,
    finders: Vec<GapFinder>,
    assembly: Assembly,
    round_trip: Duration,
    sent_again: u64,
    /// How often the thread that requests packets would have had to wait for that.
    waits: u64,
    last: Option<u64>,
}

/// What became of the frames.
#[derive(Debug)]
struct Outcome {
    counts: AssemblyStatistics,
    sent_again: u64,
    waits: u64,
}

impl Outcome {
    fn whole(&self) -> f64 {
        self.counts.frames_whole as f64 / FRAMES as f64
    }
}

impl World {
    fn new(path: &Path, seed: u64, recovery: bool) -> Self {
        let unit = (UNIT_PACKETS as usize, 50);
        let plan = Arc::new(Plan::new(&[unit; UNITS], 1).unwrap());
        let options = AssemblyOptions {
            slots: 8,
            recovery,
            deadline_min: Duration::from_secs(1) / FPS,
            ..AssemblyOptions::default()
        };
        let way = Path { delay: path.delay, ..Path::default() };
        let mut retransmissions = Retransmissions::default();
        Self {
            start: Instant::now(),
            now: Duration::ZERO,
            member: retransmissions.join(),
            greedy: Vec::new(),
            retransmissions,
            units: (0..UNITS as u64)
                .map(|unit| Link::new(path.clone(), seed << 8 | unit))
                .collect(),
            requests: Link::new(way.clone(), 0),
            notices: Link::new(way, 0),
            inboxes: vec![VecDeque::new(); UNITS],
            finders: vec![GapFinder::default(); UNITS],
            assembly: Assembly::new(Plan::clone(&plan), options),
            plan,
            round_trip: path.delay * 2,
            sent_again: 0,
            waits: 0,
            last: None,
        }
    }

    /// Adds members that request everything all the time.
    fn with_greedy(mut self, count: usize) -> Self {
        self.greedy = (0..count).map(|_| self.retransmissions.join()).collect();
        self
    }

    fn run(mut self) -> Outcome {
        let interval = Duration::from_secs(1) / FPS;
        for frame in 0..FRAMES {
            let (begun, mut sent) = (self.now, 0);
            self.retransmissions.begin(
                self.start + self.now,
                frame,
                Arc::new(Frame(frame, self.plan.clone())),
            );
            while self.now < interval * (frame as u32 + 1) {
                self.send(frame, begun, &mut sent);
                self.answer(frame, sent);
                self.receive();
                self.now += TICK;
            }
        }
        let end = self.now + 1_000 * MS;
        while self.now < end {
            self.answer(FRAMES, 0);
            self.receive();
            self.now += TICK;
        }
        self.assembly.finish(FRAMES);
        self.hand_over();
        let (counts, sent_again, waits) = (self.assembly.statistics(), self.sent_again, self.waits);
        Outcome { counts, sent_again, waits }
    }

    /// Sends the packets that are due, from both units in turn.
    fn send(&mut self, frame: u64, begun: Duration, sent: &mut u32) {
        let nanos = self.now.saturating_sub(begun).as_nanos() * u128::from(PACKETS);
        let due = ((nanos / SPREAD.as_nanos()) as u32).min(PACKETS);
        for at in *sent..due {
            let unit = at % UNITS as u32;
            let index = unit * UNIT_PACKETS + at / UNITS as u32;
            let header = UnitHeader { frame: frame as u8, index };
            self.units[unit as usize].push(self.now, 1_412, header);
        }
        if due == PACKETS && *sent < PACKETS {
            self.notices.push(self.now, 44, frame);
        }
        *sent = due;
    }

    /// Sends packets again that the client requested.
    fn answer(&mut self, current: u64, sent: u32) {
        let now = self.start + self.now;
        let is_sent = |frame: &Frame, packet| {
            frame.0 < current || packet % UNIT_PACKETS < sent / UNITS as u32
        };
        for (at, greedy) in self.greedy.iter().enumerate() {
            let frames = current.saturating_sub(7)..=current;
            // Every other one requests what was not sent yet, too, before anything else.
            let frames: Vec<_> =
                if at % 2 == 0 { frames.collect() } else { frames.rev().collect() };
            for frame in frames {
                let nack = Nack { frame, packets: iter::once(0..PACKETS).collect() };
                self.retransmissions.handle_nack(now, (*greedy, &nack), is_sent);
            }
        }
        while let Some(nack) = self.requests.poll(self.now) {
            self.retransmissions.handle_nack(now, (self.member, &nack.item), is_sent);
        }
        while let Some((frame, packets)) = self.retransmissions.poll() {
            for packet in packets {
                let header = UnitHeader { frame: frame.0 as u8, index: PACKETS + packet };
                self.units[packet as usize % UNITS].push(self.now, 1_412, header);
                self.sent_again += 1;
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
            let nack = Nack { frame, packets: packets.clone() };
            self.requests.push(self.now, 100, nack);
        }
        let due = self.assembly.poll_requests_timeout();
        assert!(due.is_none_or(|due| due > now));
        self.waits += u64::from(due.is_some());
    }

    /// Handles the packets of a unit for which there is memory.
    fn take(&mut self, now: Instant, unit: usize) {
        while let Some(&header) = self.inboxes[unit].front() {
            match self.assembly.claim(now, header, 1) {
                Claim::Place(place) => {
                    if self.assembly.is_in_order(header)
                        && let Some(gaps) = self.finders[unit].handle_packet(&self.plan, header)
                    {
                        self.assembly.handle_gaps(now, gaps);
                    }
                    self.assembly.land(place.slot, place.unit, 1);
                    self.hand_over();
                }
                Claim::Discard(_) => {}
                Claim::Blocked => return,
            }
            self.inboxes[unit].pop_front();
        }
    }

    /// Hands over frames in order.
    fn hand_over(&mut self) {
        let now = self.start + self.now;
        while let Some(ending) = self.assembly.poll_ending() {
            assert!(self.last.is_none_or(|last| ending.frame > last));
            self.last = Some(ending.frame);
            self.assembly.release(now, ending.slot);
        }
    }
}

/// Runs a stream over a path, with and without recovery.
fn with_and_without(path: &Path, seed: u64) -> [Outcome; 2] {
    [true, false].map(|recovery| World::new(path, seed, recovery).run())
}

/// A path with a round trip of 20 ms.
fn path(loss: Loss) -> Path {
    Path { delay: 10 * MS, loss, ..Path::default() }
}

#[test]
fn nothing_is_requested_on_a_path_that_loses_nothing() {
    let jitter = Path { jitter: 5 * MS, ..path(Loss::None) };
    for path in [path(Loss::None), jitter] {
        let outcome = World::new(&path, 1, true).run();
        assert_eq!(outcome.counts.frames_whole, FRAMES);
        assert_eq!((outcome.counts.packets_requested, outcome.sent_again), (0, 0));
        // Notices overtake packets, but no thread waits to request these: it would be woken for every frame.
        assert_eq!(outcome.waits, 0);
    }
}

#[test]
fn frames_that_lose_packets_are_whole_if_these_are_sent_again() {
    // The share of frames that are whole at least, and without recovery at most.
    let paths = [
        (Loss::Independent(0.001), 1.0, 0.75),
        (Loss::Independent(0.01), 0.995, 0.05),
        (Loss::Independent(0.05), 0.95, 0.0),
        (Loss::bursts(0.02, 5.0, 20), 0.99, 0.3),
    ];
    for (loss, with, without) in paths {
        let [recovered, lossy] = with_and_without(&path(loss.clone()), 7);
        println!("{loss:?}: {} {}: {recovered:?}", recovered.whole(), lossy.whole());
        assert!(recovered.whole() >= with, "{loss:?}: {recovered:?}");
        assert!(lossy.whole() <= without, "{loss:?}: {lossy:?}");
        // No packet is sent again that was not lost.
        assert_eq!(recovered.counts.packets_duplicate, 0, "{loss:?}: {recovered:?}");
    }
}

#[test]
fn members_that_request_everything_take_nothing_from_one_that_lost_packets() {
    for (loss, greedy, least) in [
        (Loss::Independent(0.05), 1, 0.95),
        (Loss::bursts(0.02, 5.0, 20), 1, 0.99),
        (Loss::Independent(0.01), 3, 0.99),
    ] {
        let path = path(loss.clone());
        let beside = World::new(&path, 7, true).with_greedy(greedy).run();
        println!("{loss:?}, {greedy}: {}: {beside:?}", beside.whole());
        assert!(beside.whole() >= least, "{loss:?}, {greedy}: {beside:?}");
        let (least, most) = (FRAMES * u64::from(PACKETS) / 8, FRAMES * u64::from(PACKETS) / 4);
        assert!((least..=most).contains(&beside.sent_again), "{beside:?}");
        // If they requested in its name, it would get nothing else.
        let mut starved = World::new(&path, 7, true);
        starved.greedy = vec![starved.member];
        let starved = starved.run();
        assert!(starved.whole() < beside.whole() / 2.0, "{starved:?}");
    }
}

#[test]
fn a_burst_of_several_stripes_is_requested_once_the_frame_was_announced() {
    let outage = Path { loss: Loss::Outage(1_000..1_180), ..path(Loss::None) };
    let [recovered, lossy] = with_and_without(&outage, 1);
    assert_eq!(recovered.counts.frames_whole, FRAMES, "{recovered:?}");
    assert_eq!(lossy.counts.frames_damaged, 1, "{lossy:?}");
    assert_eq!(recovered.counts.packets_recovered, 360);
}

#[test]
fn packets_hundreds_of_places_late_cost_few_requests() {
    let late = Path {
        reordering: Straying::places(0.01, 100..=500),
        duplication: Straying::places(0.02, 0..=500),
        ..path(Loss::None)
    };
    let outcome = World::new(&late, 3, true).run();
    println!("{outcome:?}");
    let most = FRAMES * u64::from(PACKETS) / 50;
    assert!(outcome.sent_again < most, "{outcome:?}");
    assert!(outcome.whole() > 0.99, "{outcome:?}");
}

#[test]
fn a_jitter_that_changes_the_order_is_tolerated_after_a_few_requests() {
    let jitter = Path { jitter: 8 * MS, jitter_reorders: true, ..path(Loss::None) };
    let outcome = World::new(&jitter, 3, true).run();
    println!("{outcome:?}");
    assert!(outcome.sent_again < FRAMES * u64::from(PACKETS) / 20, "{outcome:?}");
    assert_eq!(outcome.counts.frames_whole, FRAMES, "{outcome:?}");
}

#[test]
fn nothing_is_requested_if_no_answer_can_be_in_time() {
    let far = Path { delay: 60 * MS, loss: Loss::Independent(0.01), ..Path::default() };
    let [recovered, lossy] = with_and_without(&far, 1);
    assert_eq!(recovered.counts.packets_requested, 0);
    assert_eq!(recovered.counts, lossy.counts);
}

#[test]
fn on_any_path_no_more_is_sent_again_than_a_quarter() {
    for seed in 0..8 {
        let path = Path {
            jitter: 20 * MS,
            jitter_reorders: seed % 2 == 0,
            reordering: Straying::places(0.02, 100..=500),
            duplication: Straying::places(0.02, 0..=500),
            ..path(Loss::bursts(0.3, 30.0, 200))
        };
        let outcome = World::new(&path, seed, true).run();
        let counts = outcome.counts;
        let ended = counts.frames_whole + counts.frames_damaged + counts.frames_lost;
        assert_eq!(ended, FRAMES, "{outcome:?}");
        let all = counts.packets + counts.packets_lost;
        assert_eq!(all, (FRAMES - counts.frames_lost) * u64::from(PACKETS));
        let most = (FRAMES + 4) * u64::from(PACKETS) / 4;
        assert!(outcome.sent_again > 0 && outcome.sent_again <= most, "{outcome:?}");
    }
}
