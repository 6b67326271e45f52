//! Arbitrary reports for the congestion controller: rates stay within their limits.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rushes_proto::rate::{PacketFeedback, RateController, RateSettings, ReceiverTime};
use rushes_proto::rtcp::Ecn;
use rushes_proto::{SequenceNumber, Ssrc};

const MIN: u64 = 200_000;
const START: u64 = 500_000;
const MAX: u64 = 4_000_000;

#[derive(Clone, Debug)]
enum Step {
    Send { ssrc: u32, count: u16, octets: usize },
    Wait(u64),
    SendBeside { octets: usize },
    Frame { octets: usize, waited: u64 },
    Report { begin: u16, packets: Vec<Option<(u8, Option<u32>)>> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let packet = prop::option::of((0..4_u8, prop::option::of(any::<u32>())));
    let begin = prop_oneof![Just(0_u16), 0..50_u16, any::<u16>()];
    let report = (begin, prop::collection::vec(packet, 0..60))
        .prop_map(|(begin, packets)| Step::Report { begin, packets });
    let octets = prop_oneof![0..3000_usize, any::<u32>().prop_map(|octets| octets as usize)];
    let step = prop_oneof![
        3 => (0..2_u32, 1..20_u16, octets.clone())
            .prop_map(|(ssrc, count, octets)| Step::Send { ssrc, count, octets }),
        3 => prop_oneof![0..100_u64, 0..u64::from(u32::MAX)].prop_map(Step::Wait),
        1 => octets.clone().prop_map(|octets| Step::SendBeside { octets }),
        1 => (octets, any::<u64>()).prop_map(|(octets, waited)| Step::Frame { octets, waited }),
        3 => report,
    ];
    prop::collection::vec(step, 0..60)
}

fn feedback(ssrc: Ssrc, begin: u16, packets: &[Option<(u8, Option<u32>)>]) -> Vec<PacketFeedback> {
    let ecn = [Ecn::NotCapable, Ecn::CapableOne, Ecn::CapableZero, Ecn::Congestion];
    let feedback = |(n, packet): (usize, &Option<(u8, Option<u32>)>)| PacketFeedback {
        ssrc,
        sequence: SequenceNumber(begin).plus(n as u16),
        arrival: packet.map(|(mark, time)| (ecn[usize::from(mark)], time.map(ReceiverTime))),
    };
    packets.iter().enumerate().map(feedback).collect()
}

proptest! {
    #[test]
    fn rates_stay_within_their_limits_whatever_a_receiver_reports(
        steps in steps(),
        is_l4s in any::<bool>(),
    ) {
        let mut now = Instant::now();
        let settings = RateSettings::new(MIN, START, MAX).unwrap().l4s(is_l4s);
        let mut controller = RateController::new(settings, now);
        let mut sequence = SequenceNumber(0);
        for step in steps {
            match step {
                Step::Send { ssrc, count, octets } => for _ in 0..count {
                    controller.handle_sent(now, Ssrc(ssrc), sequence, octets);
                    sequence = sequence.plus(1);
                },
                Step::SendBeside { octets } => controller.handle_sent_beside(now, octets),
                Step::Wait(time) => now += Duration::from_millis(time),
                Step::Frame { octets, waited } => {
                    controller.handle_frame(now, octets, Duration::from_millis(waited));
                }
                Step::Report { begin, packets } => {
                    controller.handle_feedback(now, feedback(Ssrc(0), begin, &packets));
                }
            }
            controller.handle_timeout(now);
            prop_assert!((MIN..=MAX).contains(&controller.target_rate()));
            prop_assert!((50_000..=MAX * 6).contains(&controller.pacing_rate()));
            prop_assert!(controller.poll_timeout().is_none_or(|due| due > now));
        }
    }
}

#[test]
fn reports_on_packets_that_were_not_sent_change_nothing() {
    let now = Instant::now();
    let settings = RateSettings::new(MIN, START, MAX).unwrap();
    let mut controller = RateController::new(settings, now);
    controller.handle_sent(now, Ssrc(0), SequenceNumber(5), 1000);
    let later = now + Duration::from_millis(50);
    let marked = vec![Some((3, Some(77))); 16_384];
    controller.handle_feedback(later, feedback(Ssrc(0), 6, &marked));
    controller.handle_feedback(later, feedback(Ssrc(1), 0, &marked));
    assert_eq!(controller.target_rate(), START);
    assert_eq!((controller.octets_in_flight(), controller.round_trip_time()), (1000, None));
}

#[test]
fn without_reports_the_rate_falls_to_its_minimum_and_packets_are_still_paced() {
    let mut now = Instant::now();
    let settings = RateSettings::new(MIN, START, MAX).unwrap();
    let mut controller = RateController::new(settings, now);
    assert_eq!(controller.poll_timeout(), None);
    let mut rates = Vec::new();
    for number in 5..9 {
        controller.handle_sent(now, Ssrc(0), SequenceNumber(number), 1000);
        now = controller.poll_timeout().unwrap();
        controller.handle_timeout(now);
        rates.push(controller.target_rate());
    }
    assert_eq!(rates, [250_000, MIN, MIN, MIN]);
    assert_eq!(controller.pacing_rate(), MIN * 3 / 2);
    // A sender that sends nothing more is not slowed down by a lost last packet.
    assert_eq!(controller.poll_timeout(), None);
}

#[test]
fn a_packet_that_no_report_names_makes_no_report_missing() {
    let now = Instant::now();
    let settings = RateSettings::new(MIN, START, MAX).unwrap();
    let mut controller = RateController::new(settings, now);
    controller.handle_sent(now, Ssrc(0), SequenceNumber(5), 1000);
    controller.handle_sent_beside(now, 500);
    let later = now + Duration::from_millis(50);
    controller.handle_feedback(later, feedback(Ssrc(0), 5, &[Some((0, Some(77)))]));
    controller.handle_sent_beside(later, 500);
    assert_eq!(controller.octets_in_flight(), 1000);
    assert_eq!(controller.poll_timeout(), None);
}

/// Sends packets of 1000 octets at the target rate; each report comes after 50 ms, and the first after
/// `first_report`. Returns the highest target in the first two seconds of reports.
fn highest_target(first_report: Duration) -> u64 {
    let start = Instant::now();
    let settings = RateSettings::new(MIN, START, 100 * MAX).unwrap();
    let mut controller = RateController::new(settings, start);
    let mut highest = 0;
    controller.handle_sent(start, Ssrc(0), SequenceNumber(0), 1000);
    let mut now = start + first_report;
    for number in 0..40 {
        let packets = feedback(Ssrc(0), number as u16, &[Some((0, Some(number * 3277)))]);
        controller.handle_feedback(now, packets);
        highest = highest.max(controller.target_rate());
        controller.handle_sent(now, Ssrc(0), SequenceNumber(number as u16 + 1), 1000);
        now += Duration::from_millis(50);
    }
    highest
}

#[test]
fn a_first_report_that_is_late_does_not_raise_the_rate() {
    for first_report in [50, 900] {
        let highest = highest_target(Duration::from_millis(first_report));
        assert!(highest <= START * 3 / 2, "{first_report} ms: {highest}");
    }
}

#[test]
fn reports_without_times_of_arrival_do_not_halve_the_rate() {
    let settings = RateSettings::new(MIN, START, MAX).unwrap();
    let mut now = Instant::now();
    let mut controller = RateController::new(settings, now);
    for number in 0..100 {
        controller.handle_sent(now, Ssrc(0), SequenceNumber(number), 1000);
        now += Duration::from_millis(50);
        controller.handle_feedback(now, feedback(Ssrc(0), number, &[Some((0, None))]));
        assert!(controller.target_rate() > START * 3 / 4, "{number}: {}", controller.target_rate());
    }
}

#[test]
fn the_first_mark_after_a_calm_time_does_not_collapse_the_window() {
    for is_l4s in [false, true] {
        let settings = RateSettings::new(MIN, START, MAX).unwrap().l4s(is_l4s);
        let mut now = Instant::now();
        let mut controller = RateController::new(settings, now);
        // Media begins long after the controller was made.
        now += Duration::from_secs(60);
        for number in 0..8 {
            controller.handle_sent(now, Ssrc(0), SequenceNumber(number), 1000);
        }
        now += Duration::from_millis(200);
        controller.handle_feedback(now, feedback(Ssrc(0), 0, &[Some((3, Some(0)))]));
        assert!(controller.target_rate() > START / 2, "{is_l4s}: {}", controller.target_rate());
    }
}

#[test]
fn settings_out_of_order_are_refused() {
    for (min, start, max) in [(0, 1, 2), (2, 1, 3), (1, 3, 2), (1, 2, u64::MAX)] {
        assert!(RateSettings::new(min, start, max).is_err(), "{min} {start} {max}");
    }
}
