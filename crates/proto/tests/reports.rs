//! Participants in virtual time: reports, round-trip times, requests, BYEs, collisions.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use rushes_netsim::{HOLD_IDLE, Loss, Path, Straying};
use rushes_proto::control::{AppData, ControlEvent, KeyFrameRequest};
use rushes_proto::rtcp::{BitRateLimit, Compound, Packet, SdesKind, SenderInfo};
use rushes_proto::{RtpTimestamp, SequenceNumber, Ssrc};
use world::reports::{PACKET_LEN_MAX, Session, WALL};

const MS: Duration = Duration::from_millis(1);

/// A sender (SSRC 10) and a receiver (SSRC 20) that know each other, over a path with this delay.
fn two(delay: Duration) -> Session {
    over(Path { delay, ..Path::default() })
}

/// Returns the same two participants over this path.
fn over(path: Path) -> Session {
    let mut session = Session::over(path);
    session.join(10, |_| {});
    session.join(20, |_| {});
    media(&mut session, 20);
    session
}

/// Lets 50 ms pass `times` times, with ten packets each from the sender to the receiver.
fn media(session: &mut Session, times: u64) {
    for _ in 0..times {
        let packets = session.parties[0].sent.packets + 10;
        session.send_media(0, packets);
        let ssrc = session.parties[0].participant.ssrc();
        session.receive_media(1, ssrc, packets, packets);
        session.run(50 * MS);
    }
}

fn events<T>(session: &mut Session, n: usize, of: impl Fn(&ControlEvent) -> Option<T>) -> Vec<T> {
    session.parties[n].events.drain(..).filter_map(|event| of(&event)).collect()
}

#[test]
fn both_sides_measure_the_round_trip_of_the_network() {
    for delay in [2, 40, 150] {
        let mut session = two(delay * MS);
        media(&mut session, 40);
        let near = |time: &Duration| time.abs_diff(2 * delay * MS) <= MS;
        let of_sender = events(&mut session, 0, |event| match event {
            ControlEvent::ReceiverReport { round_trip, .. } => *round_trip,
            _ => None,
        });
        assert!(of_sender.len() > 2 && of_sender.iter().all(near), "{delay}: {of_sender:?}");
        let of_receiver = events(&mut session, 1, |event| match event {
            ControlEvent::RoundTrip { round_trip, .. } => Some(*round_trip),
            _ => None,
        });
        assert!(of_receiver.len() > 2 && of_receiver.iter().all(near), "{delay}: {of_receiver:?}");
    }
}

/// What a sender reports at once after so many packets of its first frame, if anything, and when it
/// reports next.
fn first_report(multiparty: bool, feedback: bool, packets: u64) -> (Option<SenderInfo>, Duration) {
    let mut session = Session::new(5 * MS);
    session.join(10, |config| {
        config.timer.multiparty = multiparty;
        config.timer.feedback = config.timer.feedback.filter(|_| feedback);
    });
    session.clock += 30 * MS;
    let sampled = session.now();
    session.clock += 10 * MS;
    let now = session.now();
    let party = &mut session.parties[0];
    party.sent.packets = packets;
    party.sent.last = Some((RtpTimestamp(u32::MAX), sampled));
    party.participant.report_at_once(now);
    let datagram = party.participant.poll_datagram(now, &party.sent, &[]).map(<[u8]>::to_vec);
    let info = datagram.map(|datagram| {
        let compound = Compound::parse(&datagram).unwrap();
        let packets: Vec<_> = compound.packets().map(Result::unwrap).collect();
        let [Packet::SenderReport(report), Packet::SourceDescription(_)] = &packets[..] else {
            panic!("{packets:?}");
        };
        assert_eq!(report.blocks().count(), 0);
        report.info()
    });
    assert_eq!(party.participant.poll_datagram(now, &party.sent, &[]), None, "one report only");
    (info, party.participant.poll_timeout().unwrap() - session.epoch)
}

/// RFC 6051 section 2.1.1.
#[test]
fn a_sender_reports_both_its_clocks_before_its_first_packet() {
    for feedback in [false, true] {
        let (info, due) = first_report(false, feedback, 0);
        let ntp = WALL.plus(40 * MS);
        let rtp = RtpTimestamp(u32::MAX).plus(900);
        assert_eq!(info, Some(SenderInfo { ntp, rtp, packets: 0, octets: 0 }));
        // The next one is due when it would be after any other first report.
        let (after, due_after) = first_report(false, feedback, 1);
        assert_eq!((after.unwrap().packets, due_after), (1, due));
    }
}

#[test]
fn the_clocks_of_a_report_agree_before_and_after_the_capture_of_the_last_frame() {
    for before in [false, true] {
        let mut session = two(5 * MS);
        let sampled = session.now() + 100 * MS;
        session.clock += if before { Duration::ZERO } else { 200 * MS };
        let now = session.now();
        session.parties[0].sent.last = Some((RtpTimestamp(5000), sampled));
        session.parties[0].participant.leave(now, "");
        session.run(100 * MS);
        let clock = session.parties[1].participant.remotes()[0].clock.unwrap();
        let wall = WALL.plus(sampled - session.epoch);
        assert!(clock.to_ntp(RtpTimestamp(5000)).nanos_since(wall).abs() < 100_000, "{before}");
    }
}

/// RFC 3550 section 6.2: only to one receiver may the first report be sent at once.
#[test]
fn a_sender_to_a_group_waits_for_its_first_report_as_long_as_any_member() {
    for feedback in [false, true] {
        assert_eq!(first_report(true, feedback, 0).0, None);
    }
}

#[test]
fn a_bad_network_makes_no_round_trip_shorter_or_longer_than_it_is() {
    let path = Path {
        delay: 20 * MS,
        jitter: 10 * MS,
        jitter_reorders: true,
        loss: Loss::bursts(0.2, 3.0, 8),
        reordering: Straying::time(0.1, MS..=200 * MS),
        duplication: Straying::places(0.1, 0..=3),
        ..Path::default()
    };
    let mut session = over(path);
    media(&mut session, 400);
    // Datagrams held back by places are released after `HOLD_IDLE` at the latest.
    let most = 2 * (20 * MS + 10 * MS + 200 * MS + HOLD_IDLE) + MS;
    for n in 0..2 {
        let round_trips = events(&mut session, n, |event| match event {
            ControlEvent::ReceiverReport { round_trip, .. } => *round_trip,
            ControlEvent::RoundTrip { round_trip, .. } => Some(*round_trip),
            ControlEvent::Collision { .. } => panic!("{event:?}"),
            _ => None,
        });
        assert!(round_trips.len() > 20, "{round_trips:?}");
        assert!(round_trips.iter().all(|time| (39 * MS..=most).contains(time)));
    }
}

#[test]
fn the_clock_mapping_does_not_drift_in_an_hour() {
    let mut session = two(20 * MS);
    for minute in 0..60 {
        media(&mut session, 20);
        session.clock += 59 * 1000 * MS;
        session.send_media(0, session.parties[0].sent.packets + 10);
        session.run(2000 * MS);
        let clock = session.parties[1].participant.remotes()[0].clock.unwrap();
        let ticks = session.clock.as_nanos() * 90_000 / 1_000_000_000 + 1000;
        let mapped = clock.to_ntp(RtpTimestamp(ticks as u32));
        let off = mapped.nanos_since(WALL.plus(session.clock)).abs();
        assert!(off < 1_000_000, "minute {minute}: {off} ns");
    }
}

#[test]
fn losses_are_reported_as_a_fraction_of_the_interval_and_as_a_sum() {
    let mut session = two(5 * MS);
    let (mut expected, mut received) = (200, 200);
    let mut told = Vec::new();
    for n in 0..40 {
        expected += 100;
        received += if n % 2 == 0 { 75 } else { 100 };
        session.send_media(0, expected);
        session.receive_media(1, Ssrc(10), expected, received);
        session.run(400 * MS);
        told.extend(events(&mut session, 0, |event| match event {
            ControlEvent::ReceiverReport { block, .. } => Some(*block),
            _ => None,
        }));
    }
    let last = told.last().unwrap();
    assert!((475..=500).contains(&last.cumulative_lost), "{last:?}");
    assert!(told.iter().any(|block| block.fraction_lost == 64), "a quarter in an interval");
    assert!(told.iter().all(|block| block.fraction_lost <= 64));
}

#[test]
fn requests_arrive_as_they_were_meant() {
    let mut session = two(5 * MS);
    let now = session.now();
    let missing = [65_534, 65_535, 0, 3, 900].map(SequenceNumber);
    let limit = BitRateLimit { ssrc: Ssrc(10), bit_rate: 1 << 20, overhead: 40 };
    let receiver = &mut session.parties[1].participant;
    receiver.request_packets(now, Ssrc(10), &missing);
    receiver.request_key_frame(now, Ssrc(10), KeyFrameRequest::PictureLoss);
    receiver.request_bit_rate(now, limit);
    receiver.send_estimate(now, 1 << 21, &[Ssrc(10)]);
    let app = AppData { subtype: 7, name: *b"name", data: vec![1, 2, 3, 4] };
    assert!(receiver.send_app(app));
    let start = session.clock;
    session.run(1000 * MS);
    let heard = events(&mut session, 0, |event| Some(event.clone()));
    let from = Ssrc(20);
    let request = KeyFrameRequest::PictureLoss;
    for expected in [
        ControlEvent::PacketsLost { from, sequences: missing.to_vec() },
        ControlEvent::KeyFrameRequested { from, request },
        ControlEvent::BitRateRequested { from, limit },
        ControlEvent::Estimate { from, bit_rate: 1 << 21 },
        ControlEvent::App { from, subtype: 7, name: *b"name", data: vec![1, 2, 3, 4] },
    ] {
        assert_eq!(heard.iter().filter(|event| **event == expected).count(), 1, "{expected:?}");
    }
    // Feedback did not wait for the next report.
    let first = session.parties[1].datagrams.iter().find(|(at, _)| *at > start).unwrap().0;
    assert!(first < start + 30 * MS, "{start:?} {first:?}");
    // The bit-rate request was answered with its owner.
    let owned = BitRateLimit { ssrc: Ssrc(20), ..limit };
    let limits = vec![owned];
    let notified = ControlEvent::BitRateNotified { from: Ssrc(10), limits };
    assert_eq!(events(&mut session, 1, |event| (*event == notified).then_some(())).len(), 1);
}

#[test]
fn a_repeated_full_intra_request_is_reported_once() {
    let mut session = two(5 * MS);
    let mut told = 0;
    for _ in 0..3 {
        let now = session.now();
        let receiver = &mut session.parties[1].participant;
        receiver.request_key_frame(now, Ssrc(10), KeyFrameRequest::FullIntra);
        session.run(300 * MS);
        let is = |event: &ControlEvent| {
            matches!(event, ControlEvent::KeyFrameRequested { .. }).then_some(())
        };
        told += events(&mut session, 0, is).len();
        // A network may deliver the same datagram again.
        let now = session.now();
        let datagrams: Vec<Vec<u8>> =
            session.parties[1].datagrams.iter().map(|(_, octets)| octets.clone()).collect();
        for datagram in datagrams.iter().rev().take(3).rev() {
            let sender = &mut session.parties[0].participant;
            sender.handle_datagram(now, None, datagram).unwrap();
        }
        session.run(MS);
        assert_eq!(events(&mut session, 0, is).len(), 0);
    }
    assert_eq!(told, 3);
}

#[test]
fn a_bye_is_reported_and_a_participant_that_returns_is_heard() {
    let mut session = two(5 * MS);
    let now = session.now();
    session.parties[0].participant.leave(now, "the end");
    session.run(100 * MS);
    assert!(session.parties[0].participant.is_gone());
    let goodbye = events(&mut session, 1, |event| match event {
        ControlEvent::Bye { from, reason } => Some((*from, reason.clone())),
        _ => None,
    });
    assert_eq!(goodbye, [(Ssrc(10), "the end".to_owned())]);
    assert!(session.parties[1].participant.remotes()[0].left);
    // The last report counts all packets that it sent.
    let (_, last) = session.parties[0].datagrams.last().unwrap();
    let compound = Compound::parse(last).unwrap();
    let Some(Ok(Packet::SenderReport(report))) = compound.packets().next() else { panic!() };
    assert_eq!(u64::from(report.info().packets), session.parties[0].sent.packets);

    session.join(30, |_| {});
    session.send_media(2, 10);
    session.run(3000 * MS);
    let remotes = session.parties[1].participant.remotes();
    assert!(remotes.iter().any(|remote| remote.ssrc == Ssrc(30) && remote.cname == "party2"));
}

#[test]
fn retransmissions_have_the_name_of_their_media_and_leave_with_it() {
    let mut session = Session::new(5 * MS);
    session.join(10, |config| config.retransmission = Some(Ssrc(11)));
    // A receiver retransmits nothing.
    session.join(20, |config| config.retransmission = Some(Ssrc(21)));
    media(&mut session, 40);
    let named = |session: &Session, n: usize| -> Vec<(Ssrc, String)> {
        let remotes = session.parties[n].participant.remotes();
        remotes.into_iter().map(|remote| (remote.ssrc, remote.cname)).collect()
    };
    let name = || "party0".to_owned();
    assert_eq!(named(&session, 1), [(Ssrc(10), name()), (Ssrc(11), name())]);
    assert_eq!(named(&session, 0), [(Ssrc(20), "party1".to_owned())]);
    // The retransmission source reports after it has sent something.
    let reported = |session: &Session| session.parties[1].participant.remotes()[1].sender;
    assert_eq!(reported(&session), None);
    session.parties[0].sent.retransmitted = 3;
    session.parties[0].sent.retransmitted_octets = 306;
    media(&mut session, 40);
    let (info, of_media) = (reported(&session).unwrap(), session.parties[1].participant.remotes());
    assert_eq!((info.packets, info.octets), (3, 306));
    assert_eq!((info.ntp, info.rtp), of_media[0].sender.map(|info| (info.ntp, info.rtp)).unwrap());
    // A reflected report of its own adds no remote participant.
    let echo = session.parties[0].datagrams[0].1.clone();
    let now = session.now();
    session.parties[0].participant.handle_datagram(now, None, &echo).unwrap();
    assert_eq!(named(&session, 0), [(Ssrc(20), "party1".to_owned())]);
    session.parties[0].participant.leave(now, "");
    session.run(100 * MS);
    let left: Vec<Ssrc> = events(&mut session, 1, |event| match event {
        ControlEvent::Bye { from, .. } => Some(*from),
        _ => None,
    });
    assert_eq!(left, [Ssrc(10), Ssrc(11)]);
}

#[test]
fn two_participants_with_one_ssrc_separate_and_send_bye_for_the_old_one() {
    let mut session = Session::new(5 * MS);
    session.join(10, |_| {});
    session.join(10, |_| {});
    session.join(20, |_| {});
    session.send_media(0, 10);
    session.send_media(1, 10);
    session.run(10_000 * MS);
    let ssrcs: Vec<Ssrc> = session.parties.iter().map(|party| party.participant.ssrc()).collect();
    assert_ne!(ssrcs[0], ssrcs[1]);
    let mut changes = 0;
    for n in 0..2 {
        changes += events(&mut session, n, |event| match event {
            ControlEvent::Collision { old: Ssrc(10), new } => Some(*new),
            _ => None,
        })
        .len();
    }
    assert!((1..=2).contains(&changes), "{changes}");
    let goodbyes = events(&mut session, 2, |event| match event {
        ControlEvent::Bye { from: Ssrc(10), reason } => Some(reason.clone()),
        _ => None,
    });
    assert!(goodbyes.iter().any(|reason| reason == "SSRC collision"), "{goodbyes:?}");
}

#[test]
fn a_loop_changes_the_ssrc_once() {
    let mut session = two(5 * MS);
    let mirror = "198.51.100.9:5005".parse().unwrap();
    let mut looped = 0;
    for _ in 0..50 {
        session.run(200 * MS);
        let now = session.now();
        while let Some((_, datagram)) = session.parties[0].datagrams.get(looped).cloned() {
            looped += 1;
            let sender = &mut session.parties[0].participant;
            sender.handle_datagram(now, Some(mirror), &datagram).unwrap();
        }
    }
    let changes = events(&mut session, 0, |event| {
        matches!(event, ControlEvent::Collision { .. }).then_some(())
    });
    assert_eq!(changes.len(), 1);
}

#[test]
fn every_datagram_is_a_compound_that_fits() {
    for reduced_size in [false, true] {
        let mut session = Session::new(5 * MS);
        session.join(10, |_| {});
        session.join(20, |config| {
            config.reduced_size = reduced_size;
            config.description = vec![(SdesKind::Note, "n".repeat(255))];
        });
        for n in 0..100 {
            let now = session.now();
            for source in 0..100 {
                session.receive_media(1, Ssrc(1000 + source), 50 * n + 50, 50 * n + 40);
            }
            let sequences: Vec<_> = (0..1000).map(|s| SequenceNumber(s * 40)).collect();
            let receiver = &mut session.parties[1].participant;
            receiver.request_packets(now, Ssrc(10), &sequences);
            receiver.request_key_frame(now, Ssrc(10), KeyFrameRequest::PictureLoss);
            session.run(50 * MS);
        }
        let mut asked = BTreeSet::new();
        for event in &session.parties[0].events {
            if let ControlEvent::PacketsLost { sequences, .. } = event {
                asked.extend(sequences.iter().map(|sequence| sequence.0));
            }
        }
        assert_eq!(asked, (0..1000).map(|s| s * 40).collect(), "what was asked for");
        let datagrams = &session.parties[1].datagrams;
        let mut reduced = 0;
        for (at, datagram) in datagrams {
            assert!(datagram.len() <= PACKET_LEN_MAX, "{at:?}: {}", datagram.len());
            let compound = Compound::parse(datagram).unwrap();
            let packets: Vec<_> = compound.packets().map(Result::unwrap).collect();
            if compound.is_reduced_size() {
                reduced += 1;
                continue;
            }
            let named = |packet: &Packet<'_>| match packet {
                Packet::SourceDescription(sdes) => sdes.cname(Ssrc(20)) == Some(b"party1"),
                _ => false,
            };
            assert!(packets.iter().any(named), "{at:?}: no name");
        }
        assert!(datagrams.len() > 20);
        assert_eq!(reduced > 0, reduced_size);
        // Every source has had a report block.
        let mut reported = BTreeSet::new();
        for (_, datagram) in datagrams {
            for packet in Compound::parse(datagram).unwrap().packets().flatten() {
                if let Packet::ReceiverReport(report) = packet {
                    reported.extend(report.blocks().map(|block| block.ssrc));
                }
            }
        }
        assert_eq!(reported.len(), 100);
    }
}
