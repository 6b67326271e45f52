//! What participants ask of each other: requests of many datagrams.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod world;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rushes_proto::control::ControlEvent;
use rushes_proto::{SequenceNumber, Ssrc};
use world::reports::{PACKET_LEN_MAX, Session};

const MS: Duration = Duration::from_millis(1);

/// A sender, 10, and a receiver, 20, of datagrams of at most `len_max` octets.
fn two(len_max: usize) -> Session {
    let mut session = Session::new(5 * MS);
    session.join(10, |_| {});
    session.join(20, |config| config.packet_len_max = len_max);
    for _ in 0..20 {
        media(&mut session);
    }
    session
}

fn media(session: &mut Session) {
    let packets = session.parties[0].sent.packets + 10;
    session.send_media(0, packets);
    let ssrc = session.parties[0].participant.ssrc();
    session.receive_media(1, ssrc, packets, packets);
    session.run(50 * MS);
}

fn longest(session: &Session, n: usize) -> usize {
    session.parties[n].datagrams.iter().map(|(_, datagram)| datagram.len()).max().unwrap()
}

#[test]
fn requests_of_many_datagrams_are_sent_whole() {
    for len_max in [PACKET_LEN_MAX, 272] {
        let mut session = two(len_max);
        let missing: Vec<_> = (0..400).map(|n| SequenceNumber(n * 18)).collect();
        let now = session.now();
        session.parties[1].participant.request_packets(now, Ssrc(10), &missing);
        session.run(100 * MS);
        let mut asked = BTreeSet::new();
        for event in &session.parties[0].events {
            if let ControlEvent::PacketsLost { sequences, .. } = event {
                asked.extend(sequences.iter().map(|sequence| sequence.0));
            }
        }
        assert_eq!(asked, missing.iter().map(|sequence| sequence.0).collect(), "{len_max}");
        assert!(longest(&session, 1) <= len_max);
    }
}

#[test]
fn more_requests_than_one_turn_has_room_for_go_with_the_next() {
    let mut session = two(272);
    let now = session.now();
    for source in 0..8 {
        let missing: Vec<_> = (0..1000).map(|n| SequenceNumber(n * 18)).collect();
        session.parties[1].participant.request_packets(now, Ssrc(10 + source), &missing);
    }
    let before = session.parties[1].datagrams.len();
    session.run(MS);
    let burst = session.parties[1].datagrams.len() - before;
    assert!((1..=9).contains(&burst), "{burst} datagrams at once");
    session.run(60_000 * MS);
    let asked = session.parties[0].events.iter().map(|event| match event {
        ControlEvent::PacketsLost { sequences, .. } => sequences.len(),
        _ => 0,
    });
    assert_eq!(asked.sum::<usize>(), 1000);
}

#[test]
fn arrivals_are_reported_whole_in_small_datagrams() {
    for len_max in [PACKET_LEN_MAX, 272] {
        let mut session = two(len_max);
        let now = session.now();
        let times: Vec<Option<Instant>> = (0..801).map(|n| (n % 7 != 0).then_some(now)).collect();
        let begin = SequenceNumber(65_500);
        session.parties[1].participant.report_arrivals(now, Ssrc(10), begin, &times);
        session.run(100 * MS);
        let reported: Vec<_> = session.parties[0]
            .events
            .iter()
            .flat_map(|event| match event {
                ControlEvent::Arrivals { packets, .. } => &packets[..],
                _ => &[],
            })
            .map(|report| (report.sequence, report.arrival.is_some()))
            .collect();
        let expected: Vec<_> =
            times.iter().zip(0..).map(|(time, n)| (begin.plus(n), time.is_some())).collect();
        assert_eq!(reported, expected, "{len_max}");
        assert!(longest(&session, 1) <= len_max);
    }
}

#[test]
fn an_estimate_for_many_sources_does_not_block_what_comes_after_it() {
    let mut session = two(272);
    let now = session.now();
    let sources: Vec<Ssrc> = (10..74).map(Ssrc).collect();
    session.parties[1].participant.send_estimate(now, 1 << 20, &sources);
    session.run(2000 * MS);
    let told = ControlEvent::Estimate { from: Ssrc(20), bit_rate: 1 << 20 };
    assert_eq!(session.parties[0].events.iter().filter(|event| **event == told).count(), 1);
}
