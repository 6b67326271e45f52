//! The congestion controller in cases of RFC 8867, in virtual time, with the traffic model of
//! RFC 8593 section 5. `cargo test -p rushes-proto --test rate_cases -- --nocapture` prints the
//! results.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]
#![allow(clippy::cast_sign_loss, reason = "sizes and times are not negative")]
#![allow(clippy::unchecked_time_subtraction, reason = "a test may panic")]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rushes_netsim::{Bottleneck, Course, HEADERS, Link, Path, Seeded};
use rushes_proto::rate::{PacketFeedback, RateController, RateSettings};
use rushes_proto::rtcp::{Arrival, Ecn, PacketReport};
use rushes_proto::{SequenceNumber, Ssrc};

const MS: Duration = Duration::from_millis(1);

/// The propagation delay in each direction (RFC 8867 section 4.2).
const DELAY: Duration = Duration::from_millis(50);

/// Octets of a packet's payload.
const PACKET: usize = 1200;

/// A path whose queue holds 300 ms at this capacity in kbit/s (section 4.2).
fn path(capacity: u64) -> Path {
    let rate = capacity * 1000;
    let queue = (rate / 8 * 3 / 10) as usize;
    let bottleneck = Some(Bottleneck { rate, queue, ecn_threshold: None });
    Path { delay: DELAY, bottleneck, ..Path::default() }
}

/// Draws from a zero-mean Laplacian distribution.
fn laplacian(random: &mut Seeded, scale: f64) -> f64 {
    let uniform = random.unit() - 0.5;
    -scale * uniform.signum() * (1.0 - 2.0 * uniform.abs()).max(1e-9).ln()
}

/// The statistical model of an encoder at 30 frames per second (RFC 8593 section 5).
struct Encoder {
    random: Seeded,
    rate: f64,
    changed: Duration,
    next: Duration,
    /// Frames left of a burst, of which the first is large.
    burst: u32,
}

impl Encoder {
    /// Returns the size of a frame if one is due.
    fn poll(&mut self, now: Duration, target: f64) -> Option<usize> {
        if now < self.next {
            return None;
        }
        let interval = 1.0 + laplacian(&mut self.random, 0.15).clamp(-0.9, 2.0);
        self.next = now + Duration::from_secs_f64(interval / 30.0);
        // The encoder reacts 100 ms after its last reaction at the earliest (RFC 8867 section 4.3).
        if now >= self.changed + 100 * MS {
            if (target / self.rate - 1.0).abs() > 0.2 {
                self.burst = 8;
            }
            (self.rate, self.changed) = (target, now);
        }
        let mean = self.rate / 8.0 / 30.0;
        // A burst's first frame is 3.24 times the mean; the other seven make up for it.
        let share = match self.burst {
            0 => 1.0 + laplacian(&mut self.random, 0.15).clamp(-0.9, 3.0),
            8 => 3.24,
            _ => (8.0 - 3.24) / 7.0,
        };
        self.burst = self.burst.saturating_sub(1);
        Some((mean * share) as usize + 1)
    }
}

/// A sender and its receiver.
struct Flow {
    begins: Duration,
    encoder: Encoder,
    controller: RateController,
    /// Packets that wait for their pacing: since when, and their length.
    waiting: VecDeque<(Duration, usize)>,
    may_send: Duration,
    sequence: u16,
    /// Arrivals that are not reported yet, and the first number that the next report covers.
    arrivals: Vec<(u16, Duration)>,
    begin: u16,
    reported: Duration,
    /// Octets received in each second, and the time of each packet in the queue of the path.
    received: Vec<usize>,
    delays: Vec<Duration>,
}

impl Flow {
    fn new(seed: u64, begins: Duration, start: Instant) -> Self {
        let settings = RateSettings::new(150_000, 150_000, 1_500_000).unwrap();
        Self {
            begins,
            encoder: Encoder {
                random: Seeded(seed),
                rate: 150_000.0,
                changed: Duration::ZERO,
                next: begins,
                burst: 0,
            },
            controller: RateController::new(settings, start + begins),
            waiting: VecDeque::new(),
            may_send: begins,
            sequence: 0,
            arrivals: Vec::new(),
            begin: 0,
            reported: Duration::ZERO,
            received: vec![0; 400],
            delays: Vec::new(),
        }
    }

    /// Encodes, and sends what pacing allows. Returns the packets sent.
    fn send(&mut self, start: Instant, now: Duration) -> Vec<(u16, usize)> {
        self.controller.handle_timeout(start + now);
        if let Some(octets) = self.encoder.poll(now, self.controller.target_rate() as f64) {
            let waited = self.waiting.front().map_or(Duration::ZERO, |(since, _)| now - *since);
            self.controller.handle_frame(start + now, octets, waited);
            let packets = octets.div_ceil(PACKET);
            self.waiting.extend((0..packets).map(|_| (now, octets / packets)));
        }
        let mut sent = Vec::new();
        while self.may_send <= now
            && let Some((_, octets)) = self.waiting.pop_front()
        {
            let len = octets + HEADERS;
            self.controller.handle_sent(start + now, Ssrc(1), SequenceNumber(self.sequence), len);
            sent.push((self.sequence, octets));
            self.sequence = self.sequence.wrapping_add(1);
            let time = len as f64 * 8.0 / self.controller.pacing_rate() as f64;
            self.may_send = self.may_send.max(now - MS.min(now)) + Duration::from_secs_f64(time);
        }
        sent
    }

    /// Returns a report if one is due: after 16 packets or 40 ms (section 5 of the draft).
    fn report(&mut self, now: Duration) -> Option<(u32, Vec<PacketReport>)> {
        let is_due = self.arrivals.len() >= 16 || now >= self.reported + 40 * MS;
        let last = self.arrivals.last().filter(|_| is_due)?.0;
        self.reported = now;
        let count = last.wrapping_sub(self.begin) + 1;
        let mut packets: Vec<_> = (0..count)
            .map(|n| {
                let sequence = SequenceNumber(self.begin.wrapping_add(n));
                PacketReport { sequence, arrival: None }
            })
            .collect();
        for (sequence, at) in self.arrivals.drain(..) {
            let arrival = Some((Ecn::NotCapable, Arrival::Before(now - at)));
            packets[usize::from(sequence.wrapping_sub(self.begin))].arrival = arrival;
        }
        self.begin = last.wrapping_add(1);
        Some(((now.as_secs_f64() * 65_536.0) as u32, packets))
    }

    /// Returns the mean rate in kbit/s of the seconds of a range.
    fn rate(&self, seconds: std::ops::Range<usize>) -> usize {
        let count = seconds.len();
        self.received[seconds].iter().sum::<usize>() * 8 / 1000 / count
    }

    /// Returns the time in ms that nine in ten packets or more stay below in the path's queue.
    fn delay(&self) -> u128 {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        delays[delays.len() * 9 / 10].as_millis()
    }
}

/// Runs flows over one path that changes. Returns the share of lost packets.
fn run(flows: &mut [Flow], course: Course, seconds: u32, start: Instant) -> f64 {
    let mut there = Link::new(course, 1);
    let mut back = Link::new(Path { delay: DELAY, ..Path::default() }, 2);
    for tick in 0..seconds * 1000 {
        let now = tick * MS;
        for (index, flow) in flows.iter_mut().enumerate().filter(|(_, flow)| flow.begins <= now) {
            for (sequence, octets) in flow.send(start, now) {
                there.push(now, octets, (index, sequence, now, octets));
            }
            if let Some(report) = flow.report(now) {
                back.push(now, 100, (index, report));
            }
        }
        while let Some(delivery) = there.poll(now) {
            let (index, sequence, sent, octets) = delivery.item;
            let flow = &mut flows[index];
            flow.arrivals.push((sequence, delivery.at));
            flow.received[now.as_secs() as usize] += octets + HEADERS;
            flow.delays.push(delivery.at - sent - DELAY);
        }
        while let Some(delivery) = back.poll(now) {
            let (index, (instant, packets)) = delivery.item;
            let packets = packets.into_iter();
            let packets = packets.map(|it| PacketFeedback::from_report(Ssrc(1), instant, it));
            flows[index].controller.handle_feedback(start + now, packets);
        }
    }
    let statistics = there.statistics();
    statistics.overflowed as f64 / statistics.sent as f64
}

#[test]
fn a_flow_follows_a_capacity_that_varies() {
    // RFC 8867 section 5.1: 1 Mbit/s times 1, 2.5, 0.6 and 1.
    let start = Instant::now();
    let course = Course::from(path(1000))
        .then(40_000 * MS, path(2500))
        .then(60_000 * MS, path(600))
        .then(80_000 * MS, path(1000));
    let mut flows = [Flow::new(1, Duration::ZERO, start)];
    let loss = run(&mut flows, course, 100, start);
    let [flow] = &flows;
    let rates = [20..40, 50..60, 65..80, 90..100].map(|seconds| flow.rate(seconds));
    println!(
        "5.1: {rates:?} kbit/s of 1000, 1500, 600, 1000; p90 {} ms; lost {loss:.4}",
        flow.delay()
    );
    for (rate, capacity) in rates.into_iter().zip([1000, 1500, 600, 1000]) {
        assert!((capacity / 2..=capacity * 21 / 20).contains(&rate), "{rate} of {capacity}");
    }
    assert!(loss < 0.02, "{loss}");
}

#[test]
fn three_flows_share_a_path() {
    // RFC 8867 section 5.4: 3.5 Mbit/s, flows begin after 0, 20 and 40 s.
    let start = Instant::now();
    let mut flows = [0, 20, 40].map(|at| Flow::new(u64::from(at), at * 1000 * MS, start));
    let loss = run(&mut flows, path(3500).into(), 120, start);
    let rates = flows.each_ref().map(|flow| flow.rate(80..120));
    let delays = flows.each_ref().map(Flow::delay);
    let sum: usize = rates.iter().sum();
    let squares: usize = rates.iter().map(|rate| rate * rate).sum();
    let fairness = (sum * sum) as f64 / (3 * squares) as f64;
    println!(
        "5.4: {rates:?} kbit/s of 3500; fairness {fairness:.3}; p90 {delays:?} ms; lost {loss:.4}"
    );
    assert!((2000..=3600).contains(&sum), "{rates:?}");
    assert!(fairness > 0.8, "{rates:?}");
    assert!(loss < 0.02, "{loss}");
}
