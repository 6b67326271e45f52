//! Floods of RTCP from strangers: memory stays limited, and no peer is displaced.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_proto::control::ControlEvent;
use rushes_proto::rtcp::{Arrival, Ecn, ReportBlock, SenderInfo, Writer};
use rushes_proto::{SequenceNumber, Ssrc};
use world::Seeded;
use world::reports::{Session, WALL};

const MS: Duration = Duration::from_millis(1);
const FLOOD: u32 = 1_000_000;

#[test]
fn a_million_strangers_and_goodbyes_leave_the_real_peer_unharmed() {
    let mut session = Session::new(5 * MS);
    session.join(10, |_| {});
    session.join(20, |_| {});
    for n in 1..40 {
        session.send_media(0, 10 * n);
        session.receive_media(1, Ssrc(10), 10 * n, 10 * n);
        session.run(50 * MS);
    }
    let mut random = Seeded(1);
    let mut writer = Writer::new();
    for n in 0..FLOOD {
        let stranger = Ssrc(random.roll() as u32);
        writer.clear();
        match n % 5 {
            0 => writer.sender_report(stranger, &SenderInfo::default(), &[]),
            1 => writer.receiver_report(stranger, &[ReportBlock::default()]),
            2 => {
                writer.receiver_report(stranger, &[]);
                writer.bye(&[Ssrc(random.roll() as u32), Ssrc(10), Ssrc(20)], "all of you");
            }
            3 => {
                writer.receiver_report(stranger, &[]);
                writer.app(stranger, 1, *b"flod", &[7; 400]);
            }
            _ => {
                writer.receiver_report(stranger, &[]);
                writer.cname(stranger, "stranger");
                writer.nack(stranger, Ssrc(20), [SequenceNumber(1), SequenceNumber(900)]);
            }
        }
        let now = session.now();
        let receiver = &mut session.parties[1].participant;
        receiver.handle_datagram(now, None, writer.bytes()).unwrap();
        if n % 1000 == 0 {
            // The media continues during the flood.
            let packets = session.parties[0].sent.packets + 10;
            session.send_media(0, packets);
            session.receive_media(1, Ssrc(10), packets, packets);
            session.run(10 * MS);
        }
    }
    let receiver = &session.parties[1].participant;
    assert!(receiver.remotes().len() <= 16);
    assert!(receiver.statistics().events_forgotten > 0);
    // Between two polls, only the last 256 events are kept.
    let polls = FLOOD as usize / 1000 + 1;
    let kept = session.parties[1].events.len();
    assert!(kept > 200 * (polls - 1) && kept <= 256 * polls, "{kept}");
    session.parties[1].events.clear();
    let before = session.parties[1].datagrams.len();
    for _ in 0..40 {
        let packets = session.parties[0].sent.packets + 10;
        session.send_media(0, packets);
        session.receive_media(1, Ssrc(10), packets, packets);
        session.run(50 * MS);
    }
    // The peer is still known, with its clock and name, and still gets reports.
    let remotes = session.parties[1].participant.remotes();
    let peer = remotes.iter().find(|remote| remote.ssrc == Ssrc(10)).unwrap();
    assert!(!peer.left && peer.clock.is_some() && peer.cname == "party0", "{peer:?}");
    assert!(session.parties[1].datagrams.len() > before, "no report in two seconds");
}

#[test]
fn of_a_report_on_very_many_packets_the_newest_are_kept() {
    let mut session = Session::new(5 * MS);
    session.join(10, |_| {});
    session.send_media(0, 10);
    session.run(100 * MS);
    let own = session.parties[0].participant.ssrc();
    let mut writer = Writer::new();
    let arrival = Some((Ecn::NotCapable, Arrival::Before(MS)));
    let arrivals = (0..16_384).map(|_| arrival);
    writer.congestion(Ssrc(20), [(own, SequenceNumber(60_000), arrivals)], WALL);
    let now = session.now();
    session.parties[0].participant.handle_datagram(now, None, writer.bytes()).unwrap();
    session.run(50 * MS);
    let reported = session.parties[0].events.iter().find_map(|event| match event {
        ControlEvent::Arrivals { packets, .. } => Some(packets),
        _ => None,
    });
    let (first, last) = (reported.unwrap().first().unwrap(), reported.unwrap().last().unwrap());
    let newest = 60_000_u16.wrapping_add(16_383);
    assert_eq!((first.sequence.0, last.sequence.0), (newest - 4095, newest));
}
