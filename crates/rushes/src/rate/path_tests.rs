//! Streams of a session over one path, in virtual time: the parts that a sender uses between its
//! frames and its socket.
#![allow(clippy::unwrap_used, clippy::unchecked_time_subtraction, reason = "a test may panic")]
#![allow(clippy::cast_sign_loss, reason = "times are not negative")]

use std::collections::VecDeque;

use rushes_netsim::{Bottleneck, Course, HEADERS, Link, Path};
use rushes_proto::rtcp::{Arrival, Ecn};

use super::*;
use crate::pace::{Burst, Pace as _, Pacer, Pacing};

const MS: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(20);

/// Octets of a datagram.
const PACKET: usize = 1000;

/// What the SSRC of repair packets adds to that of the media.
const REPAIR: u8 = 100;

/// A path with a queue of 300 ms.
fn path(kbit: u64) -> Path {
    let rate = kbit * 1000;
    let queue = (rate / 8 * 3 / 10) as usize;
    let bottleneck = Some(Bottleneck { rate, queue, ecn_threshold: None });
    Path { delay: DELAY, bottleneck, ..Path::default() }
}

/// A sender with its encoder of 30 frames per second, and its receiver.
struct Flow {
    share: RateShare,
    pacer: Pacer,
    ssrc: u8,
    frames: u32,
    /// Packets of frames, and of repair, that are not sent yet.
    waiting: usize,
    /// Repair packets for 100 packets of media, which no report names.
    repairs: u8,
    sequence: u16,
    arrivals: VecDeque<(u16, Duration)>,
    reported: Duration,
    /// Octets received in each second, and the longest time in the path's queue.
    received: Vec<usize>,
    longest: Vec<Duration>,
    rates: Vec<u64>,
}

impl Flow {
    fn new(path: &Arc<PathRate>, ssrc: u8, priority: u8, now: Instant) -> Self {
        let settings = RateSettings::new(50_000, 200_000, 5_000_000).unwrap();
        Self {
            share: path.clone().join(settings, priority, (HEADERS, Arc::default()), now),
            pacer: Pacer::new(Pacing::default(), Burst::default(), None, now).unwrap(),
            ssrc,
            frames: 0,
            waiting: 0,
            repairs: 0,
            sequence: 0,
            arrivals: VecDeque::new(),
            reported: Duration::ZERO,
            received: vec![0; 200],
            longest: vec![Duration::ZERO; 200],
            rates: vec![0; 200],
        }
    }

    /// Encodes, and returns the packets that the pacer lets through.
    fn send(&mut self, start: Instant, time: Duration) -> Vec<(u8, u16)> {
        let now = start + time;
        self.share.handle_timeout(now);
        let target = self.share.statistics(now).target;
        self.rates[time.as_secs() as usize] = target;
        if time >= self.frames * Duration::from_secs(1) / 30 {
            self.frames += 1;
            let packets = (target as usize / 8 / 30).div_ceil(PACKET);
            self.waiting += packets * (100 + usize::from(self.repairs)) / 100;
        }
        let mut sent = Vec::new();
        while self.waiting > 0 && self.pacer.follow(self.share.pacing_rate(now)) <= Some(now) {
            self.pacer.due(now, self.share.wire_len(PACKET, 1));
            let is_repair = self.repairs == 100 && self.waiting.is_multiple_of(2);
            let ssrc = self.ssrc + if is_repair { REPAIR } else { 0 };
            let mut batch = Batch::new();
            let packet = batch.place(PACKET).unwrap();
            packet[2..4].copy_from_slice(&self.sequence.to_be_bytes());
            packet[8..12].copy_from_slice(&[0, 0, 0, ssrc]);
            self.share.note_sent(now, &batch, Ssrc(self.ssrc.into()));
            sent.push((ssrc, self.sequence));
            self.sequence = self.sequence.wrapping_add(u16::from(!is_repair));
            self.waiting -= 1;
        }
        sent
    }

    /// Passes a report on what has arrived, after 16 packets or 40 ms.
    fn report(&mut self, start: Instant, time: Duration) {
        let is_due = self.arrivals.len() >= 16 || time >= self.reported + 40 * MS;
        if !is_due || self.arrivals.is_empty() {
            return;
        }
        self.reported = time;
        let (first, last) = (self.arrivals[0].0, self.arrivals[self.arrivals.len() - 1].0);
        let packets: Vec<_> = (0..=last.wrapping_sub(first))
            .map(|n| first.wrapping_add(n))
            .map(|n| {
                let found = self.arrivals.iter().find(|(sequence, _)| *sequence == n);
                let arrival = found.map(|(_, at)| (Ecn::NotCapable, Arrival::Before(time - *at)));
                PacketReport { sequence: SequenceNumber(n), arrival }
            })
            .collect();
        self.arrivals.clear();
        let instant = (time.as_secs_f64() * 65_536.0).round() as i64 as u32;
        self.share.handle_report(start + time, Ssrc(self.ssrc.into()), instant, &packets);
    }

    /// Returns the mean rate in kbit/s of the seconds of a range.
    fn rate(&self, seconds: std::ops::Range<usize>) -> usize {
        let count = seconds.len();
        self.received[seconds].iter().sum::<usize>() * 8 / 1000 / count
    }

    fn longest(&self, seconds: std::ops::Range<usize>) -> Duration {
        *self.longest[seconds].iter().max().unwrap()
    }
}

/// Runs flows over a path for some seconds; returns the shares of packets that were lost.
fn run(flows: &mut [Flow], course: Course, seconds: u32, start: Instant) -> f64 {
    let mut link = Link::new(course, 1);
    for time in (0..seconds * 1000).map(|n| n * MS) {
        for (index, flow) in flows.iter_mut().enumerate() {
            for (ssrc, sequence) in flow.send(start, time) {
                let is_media = ssrc == flow.ssrc;
                link.push(time, PACKET, (index, is_media.then_some(sequence), time));
            }
        }
        while let Some(delivery) = link.poll(time) {
            let (index, sequence, sent) = delivery.item;
            let (flow, second) = (&mut flows[index], time.as_secs() as usize);
            flow.arrivals.extend(sequence.map(|sequence| (sequence, delivery.at)));
            flow.received[second] += PACKET + HEADERS;
            let waited = delivery.at - sent - DELAY;
            flow.longest[second] = flow.longest[second].max(waited);
        }
        for flow in flows.iter_mut() {
            flow.report(start, time);
        }
    }
    let statistics = link.statistics();
    statistics.overflowed as f64 / statistics.sent as f64
}

fn path_rate(now: Instant) -> Arc<PathRate> {
    Arc::new(PathRate::new(RateSettings::new(1, 1, 1).unwrap(), now))
}

#[test]
fn a_stream_fills_a_path_that_changes_and_not_its_queue() {
    let start = Instant::now();
    let second = Duration::from_secs(1);
    let course =
        Course::from(path(2000)).then(40 * second, path(1000)).then(70 * second, path(2000));
    let mut flows = [Flow::new(&path_rate(start), 1, 1, start)];
    let lost = run(&mut flows, course, 110, start);
    let [flow] = &flows;
    let rates = [20..40, 45..70, 90..110].map(|seconds| flow.rate(seconds));
    let longest = [20..40, 45..70, 90..110].map(|seconds| flow.longest(seconds));
    println!("{rates:?} kbit/s of 2000, 1000, 2000; longest {longest:?}; lost {lost:.4}");
    for (rate, capacity) in rates.into_iter().zip([2000, 1000, 2000]) {
        assert!((capacity * 6 / 10..=capacity).contains(&rate), "{rate} of {capacity}");
    }
    assert!(longest.iter().all(|longest| *longest < 250 * MS), "{longest:?}");
    assert!(lost < 0.005, "{lost}");
}

#[test]
fn streams_get_their_parts_of_a_path_by_priority() {
    let start = Instant::now();
    let rate = path_rate(start);
    let mut flows =
        [(1, 1), (2, 2)].map(|(ssrc, priority)| Flow::new(&rate, ssrc, priority, start));
    let lost = run(&mut flows, path(3000).into(), 60, start);
    let [one, two] = flows.each_ref().map(|flow| flow.rate(30..60));
    println!("{one} and {two} kbit/s of 3000; lost {lost:.4}");
    assert!((one * 18 / 10..=one * 22 / 10).contains(&two), "{one} {two}");
    assert!((1800..=3000).contains(&(one + two)), "{one} {two}");
    assert!(lost < 0.005, "{lost}");
}

#[test]
fn frames_with_as_many_repair_packets_do_not_fall_behind() {
    let start = Instant::now();
    let mut flow = Flow::new(&path_rate(start), 1, 1, start);
    flow.repairs = 100;
    flow.share.set_repair_percent(100);
    let mut flows = [flow];
    let lost = run(&mut flows, path(2000).into(), 60, start);
    let [flow] = &flows;
    let (rate, longest) = (flow.rate(20..60), flow.longest(20..60));
    println!("{rate} kbit/s of 2000, {} packets wait; {longest:?}; lost {lost:.4}", flow.waiting);
    assert!(flow.waiting < 20, "{} packets wait", flow.waiting);
    assert!((1200..=2000).contains(&rate), "{rate}");
    // The target of one moment may be above what the path carries.
    let target = flow.rates[40..60].iter().sum::<u64>() / 20 / 1000;
    assert!((500..=1000).contains(&target), "{target}");
    assert!(longest < 250 * MS, "{longest:?}");
}
