//! Secured streams and participants: nothing is sent in the clear, and nothing clear is accepted.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod world;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use ends::{authenticating, master, opened_report, report_pair};
use rushes_proto::FrameRate;
use rushes_proto::payload::{Delivery, FrameError};
use rushes_proto::srtp::{
    MasterKey, Policy, Protector, SrtcpProtector, SrtcpUnprotector, Suite, Unprotector,
};
use rushes_proto::stream::{Discard, Retransmission, Sender, SenderConfig};
use rushes_proto::{Batch, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};
use world::reports::{Party, Session};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC, Seeded, Source, send};

/// The length of a run of octets that no datagram may share with its media.
const TELLTALE: usize = 12;

const MS: Duration = Duration::from_millis(1);

fn encrypting() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| *suite != Suite::NullHmacSha1_80)
}

fn sources(kind: Kind) -> Vec<Source> {
    let mut random = Seeded(77);
    let lens = if kind.has_one_packet_frames() { [40, 40, 40] } else { [60, 3000, 700] };
    let unit = |(n, len)| Source::new(kind, vec![kind.unit(n, len, &mut random)]);
    (0..).zip(lens).map(unit).collect()
}

fn sender(kind: Kind, key: &MasterKey, suite: Suite, rtx: Retransmission) -> Sender {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(65_534),
        first_timestamp: RtpTimestamp(9),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 500,
    };
    let protector = Protector::new(&Policy::new(suite), key).unwrap();
    let sender = Sender::new(format.packetiser(), config).unwrap().with_history(64, rtx);
    sender.secured(protector).unwrap()
}

/// Sends `sources`, a keep-alive and retransmissions of the first packets; returns the datagrams.
fn datagrams(sender: &mut Sender, sources: &[Source]) -> Vec<Vec<u8>> {
    let mut batch = Batch::with_history(1 << 20);
    let mut datagrams = Vec::new();
    for source in sources {
        let mut outgoing = sender.push(&source.frame, None).unwrap();
        while outgoing.fill(&mut batch) {
            datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
        }
    }
    sender.keep_alive(&mut batch);
    datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    let now = std::time::Instant::now();
    let mut again = Batch::new();
    for sequence in [65_534, 65_535, 0].map(SequenceNumber) {
        assert!(sender.retransmit(now, sequence, &batch, &mut again).unwrap());
    }
    datagrams.extend(again.datagrams().map(<[u8]>::to_vec));
    datagrams
}

fn secured_listener(kind: Kind, suite: Suite) -> Listener {
    let mut listener = Listener::new(kind, Delivery::Unit);
    let unprotector = Unprotector::new(&Policy::new(suite), &master(suite, 7, &[])).unwrap();
    listener.receiver = listener.receiver.secured(unprotector);
    listener
}

#[test]
fn nothing_clear_leaves_a_secured_sender() {
    let rtx = Retransmission::Rtx {
        payload_type: PayloadType::H264,
        ssrc: Ssrc(5),
        first_sequence: SequenceNumber(1),
    };
    for (suite, kind) in encrypting().flat_map(|suite| Kind::ALL.map(|kind| (suite, kind))) {
        let sources = sources(kind);
        let of_frames = sources.iter().flat_map(|source| source.frame.windows(TELLTALE));
        let clear: HashSet<&[u8]> = of_frames.collect();
        for rtx in [Retransmission::Verbatim, rtx] {
            let key = master(suite, 7, &[]);
            let mut sender = sender(kind, &key, suite, rtx);
            let datagrams = datagrams(&mut sender, &sources);
            let count = sources.len() + 1 + 3;
            assert!(datagrams.len() >= count, "{suite} {kind:?}");
            for datagram in &datagrams {
                let tells = datagram.windows(TELLTALE).any(|octets| clear.contains(octets));
                assert!(!tells, "{suite} {kind:?} {rtx:?}: {datagram:x?}");
                let mut copy = datagram.clone();
                let policy = Policy::new(suite);
                let mut receiver = Unprotector::new(&policy, &key).unwrap();
                assert!(receiver.unprotect(&mut copy).is_ok(), "{suite} {kind:?} {rtx:?}");
            }
        }
    }
}

#[test]
fn a_secured_receiver_restores_the_media_of_a_secured_sender() {
    for (suite, kind) in authenticating().flat_map(|suite| Kind::ALL.map(|kind| (suite, kind))) {
        let sources = sources(kind);
        let mut sender = sender(kind, &master(suite, 7, &[]), suite, Retransmission::Verbatim);
        let mut listener = secured_listener(kind, suite);
        for datagram in datagrams(&mut sender, &sources) {
            listener.take(MS, &datagram);
        }
        listener.finish();
        let frames: Vec<&[u8]> = listener.frames.iter().map(|frame| &frame[..]).collect();
        let mut expected: Vec<_> = sources.iter().map(|source| source.delivered(kind)).collect();
        if kind.is_numbered() && frames.len() < expected.len() {
            // The last unit waits until no other unit can precede it.
            expected.pop();
        }
        assert_eq!(frames, expected, "{suite} {kind:?}");
        let discards = listener.receiver.statistics().discards;
        assert_eq!(discards.get(Discard::Replayed), 3, "the packets that were sent again");
    }
}

#[test]
fn a_sender_with_an_expired_key_sends_nothing() {
    for suite in Suite::ALL {
        let key = master(suite, 7, &[]).with_lifetime(5, 5).unwrap();
        let source = &sources(Kind::H265)[1];
        let mut sender = sender(Kind::H265, &key, suite, Retransmission::Verbatim);
        let mut batch = Batch::with_history(1 << 20);
        let mut sent = 0;
        let mut outgoing = sender.push(&source.frame, None).unwrap();
        while outgoing.fill(&mut batch) {
            sent += batch.datagrams().count();
        }
        drop(outgoing);
        assert_eq!(sent, 5, "{suite}");
        let refused = sender.push(&source.frame, None).err();
        assert_eq!(refused, Some(FrameError::KeyExpired), "{suite}");
        sender.keep_alive(&mut batch);
        assert_eq!(batch.datagrams().count(), 0, "{suite}");
        sender.set_master_key(&master(suite, 8, &[])).unwrap();
        sender.keep_alive(&mut batch);
        assert_eq!(batch.datagrams().count(), 1, "{suite}");
    }
}

#[test]
fn a_clear_packet_is_not_authentic_to_a_secured_receiver() {
    for (suite, kind) in authenticating().flat_map(|suite| Kind::ALL.map(|kind| (suite, kind))) {
        let sources = sources(kind);
        let first = (SequenceNumber(9), RtpTimestamp(9));
        let clear = send(kind, &sources, 500, first);
        let mut listener = secured_listener(kind, suite);
        let count = clear.len() as u64;
        for datagram in &clear {
            listener.take(MS, &datagram.octets);
        }
        let mut copies: Vec<Vec<u8>> = clear.into_iter().map(|datagram| datagram.octets).collect();
        let mut views: Vec<&mut [u8]> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
        let from = SocketAddr::from(([192, 0, 2, 1], 5004));
        listener.receiver.handle_datagrams(listener.epoch + MS, from, &mut views);
        listener.finish();
        let statistics = listener.receiver.statistics();
        assert_eq!(statistics.discards.get(Discard::Authentication), 2 * count, "{suite} {kind:?}");
        assert_eq!((statistics.packets, statistics.sources.len()), (0, 0), "{suite} {kind:?}");
        assert!(listener.frames.is_empty() && listener.receiver.poll_frame().is_none());

        // It does not exclude genuine packets with the same source and sequence numbers, either.
        let mut sender = sender(kind, &master(suite, 7, &[]), suite, Retransmission::Verbatim);
        for datagram in datagrams(&mut sender, &sources) {
            listener.take(2 * MS, &datagram);
        }
        listener.finish();
        // The last of the numbered units waits until no other unit can precede it.
        let waiting = sources.len() - listener.frames.len();
        assert!(waiting <= usize::from(kind.is_numbered()), "{suite} {kind:?}: {waiting}");
    }
}

#[test]
fn clear_control_packets_and_garbage_reach_nothing_in_a_secured_receiver() {
    let mut random = Seeded(4);
    for suite in authenticating() {
        let mut listener = secured_listener(Kind::H265, suite);
        listener.take(MS, &[]);
        listener.take(MS, &ends::report(7));
        for _ in 0..2000 {
            let mut datagram = vec![0; random.below(100) as usize];
            datagram.fill_with(|| random.roll() as u8);
            listener.take(MS, &datagram);
        }
        listener.finish();
        let statistics = listener.receiver.statistics();
        assert_eq!(statistics.discards.total(), 2002, "{suite}");
        assert_eq!((statistics.packets, listener.frames.len()), (0, 0), "{suite}");
    }
}

/// Returns a session of two participants; those in `secured` are protected.
fn session(suite: Suite, secured: &[usize], lifetime: u64) -> Session {
    let mut session = Session::new(5 * MS);
    for n in 0..2 {
        session.join(10 + n, |_| {});
        let mut party = session.parties.pop().unwrap();
        if secured.contains(&(n as usize)) {
            let key = master(suite, 7, &[]).with_lifetime(1, lifetime).unwrap();
            let policy = Policy::new(suite);
            let protector = SrtcpProtector::new(&policy, &key).unwrap();
            let unprotector = SrtcpUnprotector::new(&policy, &key).unwrap();
            party =
                Party { participant: party.participant.secured(protector, unprotector), ..party };
        }
        session.parties.push(party);
    }
    session
}

fn run(session: &mut Session, steps: u64) {
    for step in 1..=steps {
        session.send_media(0, 10 * step);
        session.receive_media(1, Ssrc(10), 10 * step, 9 * step);
        session.run(100 * MS);
    }
}

#[test]
fn nothing_clear_leaves_a_secured_participant() {
    for suite in encrypting() {
        let mut session = session(suite, &[0, 1], 1000);
        run(&mut session, 50);
        assert!(session.parties[0].participant.round_trip_time().is_some(), "{suite}");
        let now = session.now();
        session.parties[1].participant.leave(now, "a reason to leave");
        session.run(5000 * MS);
        for (n, party) in session.parties.iter().enumerate() {
            assert!(party.datagrams.len() > 5, "{suite}");
            let (_, mut receiver) = report_pair(&Policy::new(suite), &[]);
            for (_, datagram) in &party.datagrams {
                let has = |datagram: &[u8], word: &[u8]| {
                    datagram.windows(word.len()).any(|octets| octets == word)
                };
                let name = format!("party{n}");
                let words = [name.as_bytes(), b"a reason to leave"];
                assert!(!words.iter().any(|word| has(datagram, word)), "{suite}");
                let clear = opened_report(&mut receiver, datagram).unwrap();
                assert!(words.iter().any(|word| has(&clear, word)), "{suite}");
            }
        }
        for party in &session.parties {
            let statistics = party.participant.statistics();
            assert_eq!((statistics.unauthentic, statistics.malformed), (0, 0), "{suite}");
        }
    }
}

#[test]
fn a_clear_report_is_not_authentic_to_a_secured_participant() {
    for suite in Suite::ALL {
        let mut session = session(suite, &[1], 1000);
        run(&mut session, 50);
        let sent = session.parties[0].datagrams.len() as u64;
        let secured = &session.parties[1].participant;
        // The last report may still be under way.
        let refused = secured.statistics().unauthentic;
        assert!(sent > 5 && (sent - 1..=sent).contains(&refused), "{suite}: {refused} of {sent}");
        assert_eq!(secured.statistics().clear, refused, "{suite}");
        // The sender cannot read the receiver's reports, either, unless they are not encrypted.
        let clear = session.parties[0].participant.statistics();
        assert_eq!(clear.encrypted, clear.malformed, "{suite}");
        assert!(clear.malformed > 5, "{suite}: {clear:?}");
        // The source is known only from its media.
        for remote in secured.remotes() {
            assert!(remote.cname.is_empty() && remote.sender.is_none(), "{suite}");
            assert!(remote.clock.is_none() && remote.reported.is_none(), "{suite}");
        }
        assert_eq!(secured.round_trip_time(), None, "{suite}");
    }
}

#[test]
fn a_participant_with_an_expired_key_sends_nothing() {
    for suite in Suite::ALL {
        let mut session = session(suite, &[0, 1], 3);
        run(&mut session, 50);
        for party in &session.parties {
            assert_eq!(party.datagrams.len(), 3, "{suite}");
            assert!(party.participant.statistics().unprotected > 3, "{suite}");
        }
    }
}
