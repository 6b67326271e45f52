//! Evidence that another participant has our SSRC (RFC 3550 section 8.2), and its absence.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::net::SocketAddr;
use std::time::Duration;

use rushes_proto::control::{ControlEvent, KeyFrameRequest};
use rushes_proto::rtcp::{Arrival, BitRateLimit, Ecn, Fir, ReportBlock, SenderInfo, Writer};
use rushes_proto::{SequenceNumber, Ssrc};
use world::reports::{Session, WALL};

const MS: Duration = Duration::from_millis(1);
const OWN: Ssrc = Ssrc(10);

/// A function that writes a datagram.
type Write<'w> = &'w dyn Fn(&mut Writer);

/// Returns a sender of media under the SSRC 10.
fn sender() -> Session {
    let mut session = Session::new(5 * MS);
    session.join(OWN.0, |_| {});
    session.send_media(0, 10);
    session.run(100 * MS);
    session.parties[0].events.clear();
    session
}

fn stranger(host: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, host], 5005))
}

/// Passes the datagram that `write` writes to the sender, from `from`, and lets 50 ms pass.
fn give(session: &mut Session, from: SocketAddr, write: impl FnOnce(&mut Writer)) {
    let mut writer = Writer::new();
    write(&mut writer);
    let now = session.now();
    session.parties[0].participant.handle_datagram(now, Some(from), writer.bytes()).unwrap();
    session.run(50 * MS);
}

/// Returns how often the SSRC changed.
fn changes(session: &Session) -> usize {
    let is = |event: &&ControlEvent| matches!(event, ControlEvent::Collision { .. });
    session.parties[0].events.iter().filter(is).count()
}

fn stolen_report(writer: &mut Writer) {
    writer.sender_report(OWN, &SenderInfo::default(), &[]);
    writer.cname(OWN, "another");
}

#[test]
fn feedback_under_our_own_ssrc_is_taken_and_is_no_collision() {
    let arrival = || [Some((Ecn::NotCapable, Arrival::Before(MS)))];
    let limit = BitRateLimit { ssrc: OWN, bit_rate: 1 << 20, overhead: 40 };
    let writes: [(&str, Write<'_>); 7] = [
        ("PLI", &|writer| writer.picture_loss(OWN, OWN)),
        ("FIR", &|writer| writer.full_intra_request(OWN, &[Fir { ssrc: OWN, number: 1 }])),
        ("NACK", &|writer| writer.nack(OWN, OWN, [SequenceNumber(7)])),
        ("TMMBR", &|writer| writer.bit_rate_request(OWN, &[limit])),
        ("REMB", &|writer| writer.estimate(OWN, 1 << 20, &[OWN])),
        ("CCFB", &|writer| writer.congestion(OWN, [(OWN, SequenceNumber(7), arrival())], WALL)),
        ("RR", &|writer| {
            writer.receiver_report(OWN, &[ReportBlock { ssrc: OWN, ..ReportBlock::default() }]);
        }),
    ];
    for (name, write) in writes {
        let mut session = sender();
        for _ in 0..3 {
            give(&mut session, stranger(9), write);
        }
        assert_eq!(session.parties[0].participant.ssrc(), OWN, "{name}");
        let taken = session.parties[0].events.iter().filter(|event| match event {
            ControlEvent::KeyFrameRequested { from, request } => {
                let wanted = match name {
                    "PLI" => KeyFrameRequest::PictureLoss,
                    _ => KeyFrameRequest::FullIntra,
                };
                *from == OWN && *request == wanted
            }
            ControlEvent::PacketsLost { from, .. }
            | ControlEvent::BitRateRequested { from, .. }
            | ControlEvent::Estimate { from, .. }
            | ControlEvent::Arrivals { from, .. }
            | ControlEvent::ReceiverReport { from, .. } => *from == OWN,
            other => panic!("{name}: {other:?}"),
        });
        assert_eq!(taken.count(), 3, "{name}");
        // The sender is not its own peer.
        assert_eq!(session.parties[0].participant.remotes().len(), 0, "{name}");
    }
}

#[test]
fn one_report_under_our_ssrc_changes_nothing_and_two_of_one_address_do() {
    let mut session = sender();
    give(&mut session, stranger(9), stolen_report);
    assert_eq!((changes(&session), session.parties[0].participant.ssrc()), (0, OWN));
    // One report from each of two addresses is not enough.
    give(&mut session, stranger(8), stolen_report);
    assert_eq!((changes(&session), session.parties[0].participant.ssrc()), (0, OWN));
    give(&mut session, stranger(9), stolen_report);
    assert_eq!(changes(&session), 1);
    assert_ne!(session.parties[0].participant.ssrc(), OWN);
}

#[test]
fn two_reports_far_apart_change_nothing() {
    let mut session = sender();
    for _ in 0..4 {
        give(&mut session, stranger(9), stolen_report);
        session.run(11_000 * MS);
    }
    assert_eq!((changes(&session), session.parties[0].participant.ssrc()), (0, OWN));
}

#[test]
fn one_packet_of_media_under_our_ssrc_changes_nothing_and_two_do() {
    let mut session = sender();
    let now = session.now();
    session.parties[0].participant.handle_conflict(now, stranger(9));
    session.run(100 * MS);
    assert_eq!((changes(&session), session.parties[0].participant.ssrc()), (0, OWN));
    let now = session.now();
    session.parties[0].participant.handle_conflict(now, stranger(9));
    session.run(100 * MS);
    assert_eq!(changes(&session), 1);
}

#[test]
fn a_request_beside_a_report_under_our_ssrc_is_still_taken() {
    let mut session = sender();
    give(&mut session, stranger(9), |writer| {
        stolen_report(writer);
        writer.picture_loss(OWN, OWN);
    });
    let request = KeyFrameRequest::PictureLoss;
    let asked = ControlEvent::KeyFrameRequested { from: OWN, request };
    assert_eq!(session.parties[0].events, [asked]);
}
