//! Shares of a controller, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rushes_proto::rtcp::{Arrival, Ecn};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn settings(min: u64, start: u64, max: u64) -> RateSettings {
    RateSettings::new(min, start, max).unwrap()
}

/// Returns two streams of one path, with these weights.
fn pair(weights: [u8; 2], now: Instant) -> [RateShare; 2] {
    let rates = settings(100_000, 1_000_000, 10_000_000);
    let path = Arc::new(PathRate::new(rates, now));
    weights.map(|weight| path.clone().join(rates, weight, (28, Arc::default()), now))
}

fn batch(ssrc: u8, sequence: u16) -> Batch {
    let mut batch = Batch::new();
    let packet = batch.place(1000).unwrap();
    packet.fill(0);
    packet[2..4].copy_from_slice(&sequence.to_be_bytes());
    packet[11] = ssrc;
    batch
}

#[test]
fn streams_share_the_target_by_weight_and_one_alone_has_all() {
    let now = Instant::now();
    let [first, second] = pair([1, 3], now);
    // The sum of the start rates.
    assert_eq!(first.statistics(now).target, 500_000);
    assert_eq!(second.statistics(now).target, 1_500_000);
    assert_eq!(second.pacing_rate(now), 3 * first.pacing_rate(now));
    drop(second);
    assert_eq!(first.statistics(now).target, 1_000_000);
}

#[test]
fn a_stream_that_sends_nothing_leaves_its_part_to_the_others_until_it_sends() {
    let now = Instant::now();
    let [first, second] = pair([1, 1], now);
    let later = now + IDLE_AFTER;
    first.note_sent(later, &batch(1, 1), Ssrc(1));
    assert_eq!(first.statistics(later).target, 2_000_000);
    assert_eq!(second.statistics(later).target, 1_000_000);
    second.note_sent(later, &batch(2, 1), Ssrc(2));
    assert_eq!(first.statistics(later).target, 1_000_000);
}

#[test]
fn packets_of_a_batch_are_in_flight_until_their_report() {
    let now = Instant::now();
    let [first, second] = pair([1, 1], now);
    first.note_sent(now, &batch(1, 65_535), Ssrc(1));
    second.note_sent(now, &batch(2, 7), Ssrc(2));
    assert_eq!(first.statistics(now).octets_in_flight, 2 * 1028);
    let arrival = Some((Ecn::NotCapable, Arrival::Before(MS)));
    let packet = PacketReport { sequence: SequenceNumber(65_535), arrival };
    first.handle_report(now + 50 * MS, Ssrc(1), 0, &[packet]);
    let statistics = second.statistics(now);
    assert_eq!((statistics.octets_in_flight, statistics.round_trip), (1028, Some(50 * MS)));
}

#[test]
fn a_pause_after_packets_that_no_report_names_lowers_no_target() {
    let now = Instant::now();
    let [share, _] = pair([1, 1], now);
    share.note_sent(now, &batch(1, 7), Ssrc(1));
    // Of the stream's repair packets.
    share.note_sent(now, &batch(101, 7), Ssrc(1));
    let arrival = Some((Ecn::NotCapable, Arrival::Before(MS)));
    let packet = PacketReport { sequence: SequenceNumber(7), arrival };
    share.handle_report(now + 50 * MS, Ssrc(1), 0, &[packet]);
    assert_eq!(share.statistics(now).octets_in_flight, 1028);
    assert_eq!(share.handle_timeout(now + 60 * MS), None);
}

#[test]
fn a_peer_that_never_reports_is_an_event_for_each_stream_and_the_target_falls() {
    let now = Instant::now();
    let shares = pair([1, 1], now);
    for share in &shares {
        let target = ControlEvent::TargetRate { bit_rate: 1_000_000 };
        assert_eq!(share.poll_event(now), Some(target));
        assert_eq!(share.poll_event(now), None);
    }
    shares[0].note_sent(now, &batch(1, 1), Ssrc(1));
    let due = shares[1].handle_timeout(now).unwrap();
    assert_eq!(shares[1].handle_timeout(due), None);
    for share in &shares {
        assert_eq!(share.poll_event(due), Some(ControlEvent::NotReported));
        let target = ControlEvent::TargetRate { bit_rate: 500_000 };
        assert_eq!(share.poll_event(now), Some(target));
        assert_eq!(share.poll_event(now), None);
    }
}

#[test]
fn a_frame_that_waits_for_the_one_before_lowers_the_target() {
    let now = Instant::now();
    let rates = settings(100_000, 1_000_000, 10_000_000);
    let share = Arc::new(PathRate::new(rates, now)).join(rates, 1, (28, Arc::default()), now);
    let frame = |n: u32, late: Duration| {
        let captured = now + n * 20 * MS;
        share.note_frame(captured + late, 2500, captured);
    };
    let report = |n: u32| {
        let at = now + n * 20 * MS;
        share.note_sent(at, &batch(1, n as u16), Ssrc(1));
        let arrival = Some((Ecn::NotCapable, Arrival::Unknown));
        let packet = PacketReport { sequence: SequenceNumber(n as u16), arrival };
        share.handle_report(at + 10 * MS, Ssrc(1), 0, &[packet]);
        share.statistics(at).target
    };
    for n in 0..20 {
        frame(n, 5 * MS);
    }
    let on_time = report(20);
    for n in 20..40 {
        frame(n, 35 * MS);
    }
    assert!(report(40) < on_time);
}

#[test]
fn what_is_no_rtp_packet_is_not_in_flight() {
    assert_eq!(source(&[0; 11]), None);
    assert_eq!(source(&[0; 12]), Some((Ssrc(0), SequenceNumber(0))));
}
