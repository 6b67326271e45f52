//! Requests between participants: requests of many datagrams, limits and their end, and the
//! round-trip times of participants that send no media.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use rushes_proto::control::ControlEvent;
use rushes_proto::rtcp::{BitRateLimit, Writer};
use rushes_proto::{Ecn, SequenceNumber, Ssrc};
use world::reports::{PACKET_LEN_MAX, Session};

const MS: Duration = Duration::from_millis(1);

/// A sender (SSRC 10) and a receiver (SSRC 20) whose datagrams have at most `len_max` octets.
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

/// Whether no datagram of the receiver is longer than `len_max`, or than the shortest report.
fn all_fit(session: &Session, len_max: usize) -> bool {
    session.parties[1].datagrams.iter().all(|(_, datagram)| datagram.len() <= len_max.max(82))
}

#[test]
fn requests_of_many_datagrams_are_sent_whole() {
    for len_max in [PACKET_LEN_MAX, 272, 72] {
        let mut session = two(len_max);
        let missing: Vec<_> = (0..400).map(|n| SequenceNumber(n * 18)).collect();
        let now = session.now();
        session.parties[1].participant.request_packets(now, Ssrc(10), &missing);
        session.run(5000 * MS);
        let mut asked = BTreeSet::new();
        for event in &session.parties[0].events {
            if let ControlEvent::PacketsLost { sequences, .. } = event {
                asked.extend(sequences.iter().map(|sequence| sequence.0));
            }
        }
        assert_eq!(asked, missing.iter().map(|sequence| sequence.0).collect(), "{len_max}");
        assert!(all_fit(&session, len_max));
    }
}

#[test]
fn requests_that_do_not_fit_are_sent_with_the_next_report() {
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
    for len_max in [PACKET_LEN_MAX, 272, 72] {
        let mut session = two(len_max);
        let now = session.now();
        let arrival = (now, Ecn::CapableOne);
        let times: Vec<_> = (0..801).map(|n| (n % 7 != 0).then_some(arrival)).collect();
        let begin = SequenceNumber(65_500);
        session.parties[1].participant.report_arrivals(now, Ssrc(10), begin, &times);
        session.run(5000 * MS);
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
        assert!(all_fit(&session, len_max));
    }
}

#[test]
fn an_estimate_for_many_sources_does_not_block_later_feedback() {
    let mut session = two(272);
    let now = session.now();
    let sources: Vec<Ssrc> = (10..74).map(Ssrc).collect();
    session.parties[1].participant.send_estimate(now, 1 << 20, &sources);
    session.run(2000 * MS);
    let told = ControlEvent::Estimate { from: Ssrc(20), bit_rate: 1 << 20 };
    assert_eq!(session.parties[0].events.iter().filter(|event| **event == told).count(), 1);
}

/// Returns the owner of the limit in each notification to party `n`; `None` for no limit.
fn owners(session: &mut Session, n: usize) -> Vec<Option<Ssrc>> {
    let owner = |event| match event {
        ControlEvent::BitRateNotified { limits, .. } => Some(limits.first().map(|of| of.ssrc)),
        _ => None,
    };
    session.parties[n].events.drain(..).filter_map(owner).collect()
}

#[test]
fn a_limit_ends_with_the_goodbye_of_its_owner() {
    let mut session = two(PACKET_LEN_MAX);
    session.join(30, |_| {});
    session.run(1000 * MS);
    let limit = |bit_rate| BitRateLimit { ssrc: Ssrc(10), bit_rate, overhead: 40 };
    let now = session.now();
    session.parties[1].participant.request_bit_rate(now, limit(1 << 18));
    session.parties[2].participant.request_bit_rate(now, limit(1 << 20));
    session.run(2000 * MS);
    assert_eq!(owners(&mut session, 2).last(), Some(&Some(Ssrc(20))));
    let now = session.now();
    session.parties[1].participant.leave(now, "");
    session.run(2000 * MS);
    assert_eq!(owners(&mut session, 2), [Some(Ssrc(30))]);
    let now = session.now();
    session.parties[2].participant.leave(now, "");
    session.join(40, |_| {});
    session.run(2000 * MS);
    assert_eq!(owners(&mut session, 3), [None]);
}

#[test]
fn a_limit_ends_with_the_silence_of_its_owner() {
    for own in [false, true] {
        let mut session = two(PACKET_LEN_MAX);
        let owner = if own { Ssrc(10) } else { Ssrc(99) };
        let mut writer = Writer::new();
        let limit = BitRateLimit { ssrc: Ssrc(10), bit_rate: 1000, overhead: 40 };
        writer.bit_rate_request(owner, &[limit]);
        let (now, from) = (session.now(), SocketAddr::from(([198, 51, 100, 9], 5005)));
        session.parties[0].participant.handle_datagram(now, Some(from), writer.bytes()).unwrap();
        session.run(2000 * MS);
        assert_eq!(owners(&mut session, 1), [Some(owner)]);
        for _ in 0..1000 {
            media(&mut session);
        }
        assert_eq!(owners(&mut session, 1), [None]);
    }
}

#[test]
fn a_receiver_knows_the_round_trip_one_round_trip_after_its_first_report() {
    for delay in [2, 40, 150] {
        let mut session = Session::new(delay * MS);
        session.join(10, |_| {});
        session.send_media(0, 10);
        session.run(3000 * MS);
        session.join(20, |_| {});
        session.receive_media(1, Ssrc(10), 10, 10);
        session.run(MS);
        let now = session.now();
        session.parties[1].participant.report_at_once(now);
        let start = session.clock;
        while !session.parties[1].events.iter().any(|e| matches!(e, ControlEvent::RoundTrip { .. }))
        {
            media(&mut session);
            assert!(session.clock < start + 10_000 * MS, "{delay}: never");
        }
        let time = session.clock.saturating_sub(start);
        assert!(time <= 2 * delay * MS + 51 * MS, "{delay} ms each way: known after {time:?}");
    }
}

/// A few octets can claim 16 384 packets by transport-wide number.
#[test]
fn reports_by_transport_wide_number_are_bounded_and_read_only_if_wanted() {
    let report = |arrived: usize| {
        let mut writer = Writer::new();
        writer.receiver_report(Ssrc(20), &[]);
        for number in 0..3 {
            let times = vec![Some(MS); arrived];
            let sources = [Ssrc(20), Ssrc(10)];
            writer.transport_wide(sources, SequenceNumber(7), number, &times);
        }
        writer.bytes().to_vec()
    };
    let packets = |session: &mut Session, datagram: &[u8]| -> Vec<usize> {
        let (now, participant) = (session.now(), &mut session.parties[0].participant);
        participant.handle_datagram(now, None, datagram).unwrap();
        let events = std::iter::from_fn(|| participant.poll_event());
        let wide = events.filter_map(|event| match event {
            ControlEvent::WideArrivals { packets, .. } => Some(packets.len()),
            _ => None,
        });
        wide.collect()
    };
    let mut session = two(PACKET_LEN_MAX);
    assert!(packets(&mut session, &report(10)).is_empty());
    session.parties[0].participant.read_wide_arrivals();
    assert_eq!(packets(&mut session, &report(10)), [10; 3]);
    assert_eq!(packets(&mut session, &report(1500)), [1500; 2]);
    assert!(packets(&mut session, &report(5000)).is_empty());
}
