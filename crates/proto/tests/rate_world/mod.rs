//! Flows over a path with a bottleneck, for the cases of RFC 8867 in virtual time.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

mod encoder;
mod tcp;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use rushes_netsim::{Bottleneck, Course, HEADERS, Link, Path};
use rushes_proto::rate::{PacketFeedback, RateController, RateSettings};
use rushes_proto::rtcp::{Arrival, Ecn, PacketReport};
use rushes_proto::{SequenceNumber, Ssrc};

use encoder::Encoder;
pub use tcp::Tcp;

pub const MS: Duration = Duration::from_millis(1);

/// Octets of a packet's payload.
pub const PACKET: usize = 1200;

/// The propagation delay in each direction (RFC 8867 section 4.2).
const DELAY: Duration = Duration::from_millis(50);

/// A bottleneck of this capacity in kbit/s whose queue holds this time.
pub fn queue_of(capacity: u64, time: Duration) -> Path {
    let rate = capacity * 1000;
    let queue = (rate as f64 / 8.0 * time.as_secs_f64()) as usize;
    let bottleneck = Some(Bottleneck { rate, queue, ecn_threshold: None });
    Path { bottleneck, ..Path::default() }
}

/// A bottleneck of this capacity in kbit/s whose queue holds 300 ms (section 4.2).
pub fn path(capacity: u64) -> Path {
    queue_of(capacity, 300 * MS)
}

/// What sends.
enum Source {
    /// Media under the congestion controller.
    Media(Box<Media>),
    /// Media of a fixed rate in bit/s.
    Fixed(f64),
    Tcp(Tcp),
}

/// Paced media.
struct Media {
    controller: RateController,
    /// Packets that wait for their pacing: since when, and their length.
    waiting: VecDeque<(Duration, usize)>,
    may_send: Duration,
}

/// A sender and its receiver.
pub struct Flow {
    source: Source,
    encoder: Encoder,
    pub begins: Duration,
    pub ends: Duration,
    /// A time in which nothing is encoded.
    pub pause: Range<Duration>,
    /// The direction of the media: 0 is there, 1 back.
    pub way: usize,
    /// The propagation delay in each direction.
    pub delay: Duration,
    sequence: u16,
    /// Arrivals that are not reported yet, and the first number that the next report covers.
    arrivals: Vec<(u16, Duration)>,
    begin: u16,
    reported: Duration,
    /// Octets received in each second.
    received: Vec<usize>,
    /// For each packet: when it arrived, and its time in the queue.
    delays: Vec<(Duration, Duration)>,
    sent: usize,
}

/// A packet on its way.
#[derive(Clone)]
enum Item {
    Media { flow: usize, sequence: u16, sent: Duration, octets: usize },
    Report { flow: usize, instant: u32, packets: Vec<PacketReport> },
    Acknowledgement { flow: usize, sequence: u16 },
}

impl Flow {
    fn of(source: Source, encoder: Encoder, begins: Duration) -> Self {
        Self {
            source,
            encoder,
            begins,
            ends: Duration::MAX,
            pause: Duration::MAX..Duration::MAX,
            way: 0,
            delay: DELAY,
            sequence: 0,
            arrivals: Vec::new(),
            begin: 0,
            reported: Duration::ZERO,
            received: vec![0; 400],
            delays: Vec::new(),
            sent: 0,
        }
    }

    /// Media of 150 to 1500 kbit/s under the congestion controller.
    pub fn media(seed: u64, begins: Duration, start: Instant) -> Self {
        let settings = RateSettings::new(150_000, 150_000, 1_500_000).unwrap();
        let controller = RateController::new(settings, start + begins);
        let media = Media { controller, waiting: VecDeque::new(), may_send: begins };
        Self::of(Source::Media(Box::new(media)), Encoder::new(seed, begins, 150_000.0), begins)
    }

    /// Media of a fixed rate in kbit/s, from the same encoder.
    pub fn fixed(seed: u64, begins: Duration, rate: u64) -> Self {
        let rate = (rate * 1000) as f64;
        Self::of(Source::Fixed(rate), Encoder::new(seed, begins, rate), begins)
    }

    pub fn tcp(tcp: Tcp) -> Self {
        let unused = Encoder::new(0, Duration::MAX, 1.0);
        Self::of(Source::Tcp(tcp), unused, Duration::ZERO)
    }

    /// Encodes, and sends what pacing or the window allows. Returns the packets sent.
    fn send(&mut self, start: Instant, now: Duration) -> Vec<(u16, usize)> {
        let pauses = self.pause.contains(&now);
        match &mut self.source {
            Source::Tcp(tcp) => tcp.send(now),
            Source::Fixed(rate) => {
                let frame = self.encoder.poll(now, *rate).filter(|_| !pauses);
                let octets = frame.unwrap_or(0);
                let packets = octets.div_ceil(PACKET);
                let first = self.sequence;
                self.sequence = first.wrapping_add(packets as u16);
                (0..packets).map(|n| (first.wrapping_add(n as u16), octets / packets)).collect()
            }
            Source::Media(media) => {
                let target = media.controller.target_rate() as f64;
                media.controller.handle_timeout(start + now);
                let frame = self.encoder.poll(now, target).filter(|_| !pauses);
                media.send(start, now, frame, &mut self.sequence)
            }
        }
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
    pub fn rate(&self, seconds: Range<usize>) -> usize {
        let count = seconds.len();
        self.received[seconds].iter().sum::<usize>() * 8 / 1000 / count
    }

    /// Returns the seconds from `since` until five seconds begin whose mean rate is at least `rate`.
    pub fn converges(&self, since: usize, rate: usize) -> Option<usize> {
        (since..since + 100).find(|at| self.rate(*at..at + 5) >= rate).map(|at| at - since)
    }

    /// Returns the times in ms that this share of the packets stayed below in the queue.
    fn delay(&self, share: f64) -> u128 {
        let mut delays: Vec<_> = self.delays.iter().map(|(_, delay)| *delay).collect();
        delays.sort_unstable();
        delays[((delays.len() - 1) as f64 * share) as usize].as_millis()
    }

    /// Returns the share of packets that did not arrive.
    pub fn loss(&self) -> f64 {
        1.0 - self.delays.len() as f64 / self.sent.max(1) as f64
    }

    /// Prints a row of the table of results, with the rates in given seconds.
    pub fn print(&self, case: &str, ranges: &[Range<usize>]) {
        let rates: Vec<_> = ranges.iter().map(|range| self.rate(range.clone())).collect();
        let (p50, p95) = (self.delay(0.5), self.delay(0.95));
        println!(
            "{case:24} {rates:?} kbit/s; queue p50 {p50} p95 {p95} ms; lost {:.4}",
            self.loss()
        );
    }
}

impl Media {
    fn send(
        &mut self,
        start: Instant,
        now: Duration,
        frame: Option<usize>,
        next: &mut u16,
    ) -> Vec<(u16, usize)> {
        if let Some(octets) = frame {
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
            self.controller.handle_sent(start + now, Ssrc(1), SequenceNumber(*next), len);
            sent.push((*next, octets));
            *next = next.wrapping_add(1);
            let time = len as f64 * 8.0 / self.controller.pacing_rate() as f64;
            self.may_send = self.may_send.max(now - MS.min(now)) + Duration::from_secs_f64(time);
        }
        sent
    }
}

/// Returns Jain's fairness index of rates.
pub fn fairness(rates: &[usize]) -> f64 {
    let sum: usize = rates.iter().sum();
    let squares: usize = rates.iter().map(|rate| rate * rate).sum();
    (sum * sum) as f64 / (rates.len() * squares) as f64
}

/// Runs flows over one path, there and back.
pub fn run(flows: &mut [Flow], courses: [Course; 2], seconds: u32, start: Instant) {
    let mut links = courses.map(|course| Link::new(course, 1));
    // Items that have passed their bottleneck and still have to propagate, by flow and way.
    let mut propagating: Vec<[VecDeque<(Duration, Item)>; 2]> =
        flows.iter().map(|_| Default::default()).collect();
    for tick in 0..seconds * 1000 {
        let now = tick * MS;
        let is_open = |flow: &Flow| (flow.begins..flow.ends).contains(&now);
        for (index, flow) in flows.iter_mut().enumerate().filter(|(_, flow)| is_open(flow)) {
            for (sequence, octets) in flow.send(start, now) {
                let media = Item::Media { flow: index, sequence, sent: now, octets };
                links[flow.way].push(now, octets, media);
                flow.sent += 1;
            }
            if matches!(flow.source, Source::Media(_))
                && let Some((instant, packets)) = flow.report(now)
            {
                let len = 50 + 2 * packets.len();
                let report = Item::Report { flow: index, instant, packets };
                links[1 - flow.way].push(now, len, report);
            }
        }
        for way in [0, 1] {
            while let Some(delivery) = links[way].poll(now) {
                let mut item = delivery.item;
                let (Item::Media { flow, .. }
                | Item::Report { flow, .. }
                | Item::Acknowledgement { flow, .. }) = &mut item;
                let (flow, at) = (*flow, delivery.at + flows[*flow].delay);
                propagating[flow][way].push_back((at, item));
            }
        }
        for index in 0..flows.len() {
            for way in [0, 1] {
                let queue = &mut propagating[index][way];
                while queue.front().is_some_and(|(at, _)| *at <= now)
                    && let Some((at, item)) = queue.pop_front()
                {
                    arrive(&mut flows[index], (start, now, at), item, &mut links);
                }
            }
        }
    }
}

fn arrive(
    flow: &mut Flow,
    (start, now, at): (Instant, Duration, Duration),
    item: Item,
    links: &mut [Link<Item>; 2],
) {
    match (item, &mut flow.source) {
        (Item::Media { flow: index, sequence, sent, octets }, source) => {
            if matches!(source, Source::Tcp(_)) {
                let acknowledgement = Item::Acknowledgement { flow: index, sequence };
                links[1 - flow.way].push(now, 40, acknowledgement);
            } else {
                flow.arrivals.push((sequence, at));
            }
            if matches!(source, Source::Fixed(_)) {
                flow.arrivals.clear();
            }
            flow.received[now.as_secs() as usize] += octets + HEADERS;
            flow.delays.push((at, at - sent - flow.delay));
        }
        (Item::Report { instant, packets, .. }, Source::Media(media)) => {
            let packets = packets.into_iter();
            let packets = packets.map(|it| PacketFeedback::from_report(Ssrc(1), instant, it));
            media.controller.handle_feedback(start + now, packets);
        }
        (Item::Acknowledgement { sequence, .. }, Source::Tcp(tcp)) => {
            tcp.acknowledge(now, sequence);
        }
        _ => {}
    }
}
