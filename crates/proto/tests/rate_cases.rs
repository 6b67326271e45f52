//! The congestion controller in the cases of RFC 8867, in virtual time, with the traffic model of
//! RFC 8593 section 5. `cargo test -p rushes-proto --test rate_cases -- --nocapture` prints the
//! results, and beside them those of streams of a fixed rate. `rushes bench rate` draws them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]
#![allow(clippy::cast_sign_loss, reason = "times are not negative")]
#![allow(clippy::single_range_in_vec_init, reason = "a case has ranges of seconds, often one")]

use std::ops::Range;
use std::time::{Duration, Instant};

use rushes_netsim::rate::{Case, Controller, Flow, RATES, Report, Summary, cases, fairness};
use rushes_proto::rate::{PacketFeedback, RateController, RateSettings, WideClock};
use rushes_proto::rtcp::{Arrival, Compound, Ecn, Packet, PacketReport, Writer};
use rushes_proto::{SequenceNumber, Ssrc};

const MEDIA: Ssrc = Ssrc(1);

/// Our controller in a case.
struct Ours {
    controller: RateController,
    start: Instant,
    /// The clock of transport-wide feedback, if it is used instead of RFC 8888.
    wide: Option<WideClock>,
}

impl Ours {
    fn new(start: Instant, begins: Duration, is_wide: bool) -> Self {
        let [min, first, max] = RATES;
        let settings = RateSettings::new(min, first, max).unwrap();
        let controller = RateController::new(settings, start + begins);
        Self { controller, start, wide: is_wide.then(WideClock::default) }
    }
}

impl Controller for Ours {
    fn handle_frame(&mut self, now: Duration, octets: usize, waited: Duration) {
        self.controller.handle_frame(self.start + now, octets, waited);
    }

    fn handle_sent(&mut self, now: Duration, sequence: u16, octets: usize) {
        let sequence = SequenceNumber(sequence);
        self.controller.handle_sent(self.start + now, MEDIA, sequence, octets);
    }

    fn handle_report(&mut self, now: Duration, report: &Report) {
        let (now, begin) = (self.start + now, SequenceNumber(report.begin));
        if let Some(clock) = &mut self.wide {
            // The octets go through the format, with its steps of 250 µs.
            let mut writer = Writer::new();
            let count = writer.transport_wide([Ssrc(9), MEDIA], begin, 0, &report.arrivals);
            assert_eq!(count, report.arrivals.len());
            let compound = Compound::parse(writer.bytes()).unwrap();
            let Some(Ok(Packet::TransportFeedback(feedback))) = compound.packets().next() else {
                panic!("no feedback");
            };
            let packets = feedback.transport_wide().unwrap().packets();
            let packets = packets.map(|packet| clock.feedback(MEDIA, packet));
            self.controller.handle_feedback(now, packets);
            return;
        }
        let instant = (report.instant.as_secs_f64() * 65_536.0) as u32;
        let packets = report.arrivals.iter().zip(0..).map(|(arrival, n)| {
            let before = |at| (Ecn::NotCapable, Arrival::Before(report.instant.saturating_sub(at)));
            let report = PacketReport { sequence: begin.plus(n), arrival: arrival.map(before) };
            PacketFeedback::from_report(MEDIA, instant, report)
        });
        self.controller.handle_feedback(now, packets);
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.controller.handle_timeout(self.start + now);
    }

    fn target_rate(&self) -> u64 {
        self.controller.target_rate()
    }

    fn pacing_rate(&self) -> u64 {
        self.controller.pacing_rate()
    }
}

/// Runs a case, and prints a row of the table of results for our controller and for flows of 1 Mbit/s.
fn play(name: &str) -> (Case, [Vec<Flow<Ours>>; 2]) {
    let case = cases().into_iter().find(|case| case.name == name).unwrap();
    let start = Instant::now();
    let ours = case.run(|begins| Ours::new(start, begins, false));
    let fixed = case.run_fixed(1000);
    print(&case, "", &ours);
    print(&case, ", fixed rate", &fixed);
    (case, [ours, fixed])
}

fn print(case: &Case, what: &str, flows: &[Flow<Ours>]) {
    let Summary { utilisation, rates, fairness, queued, loss, growth } = Summary::new(case, flows);
    let [p50, p95] = queued.map(|time| time.as_millis());
    println!(
        "{:22} {:3.0} % used, {rates:?} kbit/s, fairness {fairness:.3}; queue p50 {p50} p95 {p95} \
         ms; lost {:.2} %; 80 % of its share after {growth:?} s",
        format!("{}{what}", case.name),
        100.0 * utilisation,
        100.0 * loss,
    );
    for flow in flows.iter().filter(|flow| flow.is_media()) {
        let rates: Vec<_> = case.ranges.iter().map(|range| flow.rate(range.clone())).collect();
        println!("{:22}   {rates:?} kbit/s in {:?} s", "", case.ranges);
    }
}

/// Checks a flow's rates in kbit/s in the ranges of a case.
fn check(case: &Case, flow: &Flow<Ours>, expected: &[Range<usize>]) {
    assert_eq!(case.ranges.len(), expected.len());
    for (seconds, expected) in case.ranges.iter().zip(expected) {
        let rate = flow.rate(seconds.clone());
        assert!(expected.contains(&rate), "{rate} kbit/s in {seconds:?}, not {expected:?}");
    }
}

fn check_loss(flows: &[Flow<Ours>], most: f64) {
    let media = flows.iter().filter(|flow| flow.is_media());
    let losses: Vec<_> = media.map(Flow::loss).collect();
    assert!(losses.iter().all(|loss| *loss < most), "{losses:?}");
}

/// Returns the rates of flows of media in a range.
fn rates(flows: &[Flow<Ours>], seconds: &Range<usize>) -> Vec<usize> {
    let media = flows.iter().filter(|flow| flow.is_media());
    media.map(|flow| flow.rate(seconds.clone())).collect()
}

#[test]
fn a_flow_follows_a_capacity_that_varies() {
    let (case, [ours, fixed]) = play("5.1");
    check(&case, &ours[0], &[500..1050, 750..1575, 300..630, 500..1050]);
    check_loss(&ours, 0.02);
    assert!(fixed[0].loss() > 2.0 * ours[0].loss(), "{}", fixed[0].loss());
}

#[test]
fn two_flows_follow_a_capacity_that_varies() {
    let (case, [ours, _]) = play("5.2");
    for (seconds, capacity) in case.ranges.iter().zip([3000, 2000, 3000, 1000, 2000]) {
        let rates = rates(&ours, seconds);
        let sum: usize = rates.iter().sum();
        assert!((capacity / 2..=capacity * 21 / 20).contains(&sum), "{rates:?} of {capacity}");
        assert!(fairness(&rates) > 0.7, "{rates:?}");
    }
    check_loss(&ours, 0.03);
}

#[test]
fn flows_in_both_directions_carry_each_others_reports() {
    let (case, [ours, _]) = play("5.3");
    check(&case, &ours[0], &[700..1600, 400..1050, 200..525, 700..1600]);
    check(&case, &ours[1], &[700..1600, 700..1600, 350..840, 700..1600]);
    check_loss(&ours, 0.03);
}

#[test]
fn three_flows_share_a_path() {
    let (case, [ours, _]) = play("5.4");
    let rates = rates(&ours, &case.ranges[0]);
    let sum: usize = rates.iter().sum();
    assert!((2900..=3600).contains(&sum), "{rates:?}");
    assert!(fairness(&rates) > 0.8, "{rates:?}");
    check_loss(&ours, 0.02);
}

#[test]
fn flows_of_different_round_trips_share_a_path() {
    // The RFC expects fair shares, which the controller does not reach: as with TCP, a flow with a
    // long round trip gets less, here a seventh of the one with the shortest.
    let (case, [ours, _]) = play("5.5");
    let rates = rates(&ours, &case.ranges[0]);
    let sum: usize = rates.iter().sum();
    assert!((2400..=4100).contains(&sum), "{rates:?}");
    assert!(fairness(&rates) > 0.7, "{rates:?}");
    check_loss(&ours, 0.03);
}

#[test]
fn a_flow_beside_a_long_tcp_flow_keeps_some_rate() {
    // TCP keeps the queue full, and the controller, which keeps delays short, falls to its minimum
    // of 150 kbit/s: it does not get the share that the RFC hopes for, but what it sends arrives.
    for name in ["5.6", "5.6, 1 s"] {
        let (case, [ours, _]) = play(name);
        check(&case, &ours[1], &[140..1600]);
        check_loss(&ours, 0.02);
        let sum: usize = ours.iter().map(|flow| flow.rate(60..120)).sum();
        assert!((1500..=2100).contains(&sum), "{sum}");
    }
}

#[test]
fn flows_beside_short_tcp_flows_do_not_starve() {
    // Ten TCP flows load the path so much that they resemble a long one: the flows fall nearly to
    // their minimum of 150 kbit/s, and take the path when TCP ends.
    let (case, [ours, _]) = play("5.7");
    for seconds in &case.ranges {
        let sum: usize = ours.iter().map(|flow| flow.rate(seconds.clone())).sum();
        assert!((1300..=2100).contains(&sum), "{sum}");
        let rates = rates(&ours, seconds);
        assert!(rates[0] > 150 && fairness(&rates) > 0.9, "{rates:?}");
    }
    check_loss(&ours, 0.04);
}

#[test]
fn a_flow_that_pauses_comes_back() {
    let (case, [ours, _]) = play("5.8");
    assert_eq!(ours[1].rate(42..60), 0);
    for other in [&ours[0], &ours[2]] {
        assert!(other.rate(50..60) >= other.rate(30..40) * 9 / 10);
    }
    assert!(fairness(&rates(&ours, &case.ranges[1])) > 0.8);
    check_loss(&ours, 0.03);
}

#[test]
fn transport_wide_feedback_leads_to_about_the_same_rates() {
    let start = Instant::now();
    for case in cases() {
        let [by_report, wide] = [false, true].map(|is_wide| {
            let flows = case.run(|begins| Ours::new(start, begins, is_wide));
            if is_wide {
                print(&case, ", transport-wide", &flows);
            }
            Summary::new(&case, &flows)
        });
        assert!((by_report.utilisation - wide.utilisation).abs() < 0.1, "{}: {wide:?}", case.name);
        assert!((by_report.loss - wide.loss).abs() < 0.01, "{}: {wide:?}", case.name);
    }
}
