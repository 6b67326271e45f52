//! Many streams on one port.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, Instant};

use rushes::{Codec, Context, MediaStream, Security, Session, Ssrc, StreamBuilder, Suite};

const PATIENCE: Duration = Duration::from_secs(60);

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

/// The SSRC of stream `n` at one of the ends.
fn ssrc(end: u32, n: usize) -> Ssrc {
    Ssrc(0x1000_0000 * (end + 1) + n as u32)
}

/// Opens `count` pairs of streams, all senders on one port and all receivers on another.
fn pairs(
    count: usize,
    adjust: impl Fn(StreamBuilder, usize) -> StreamBuilder,
) -> (Vec<MediaStream>, Vec<MediaStream>) {
    let (near, far) = (session(), session());
    let (mut senders, mut receivers): (Vec<MediaStream>, Vec<MediaStream>) = Default::default();
    for n in 0..count {
        let mut receiver = far.stream(Codec::Opus).ssrc(ssrc(1, n)).remote_ssrc(ssrc(0, n));
        if let Some(first) = receivers.first() {
            receiver = receiver.local_port(first.local_address().port());
        }
        receivers.push(adjust(receiver, n).open().unwrap());
        let port = receivers[0].local_address().port();
        let mut sender = near.stream(Codec::Opus).ssrc(ssrc(0, n)).remote_port(port);
        // Reports come from an SSRC that was not agreed on.
        sender = sender.remote_ssrc(ssrc(2, n));
        if let Some(first) = senders.first() {
            sender = sender.local_port(first.local_address().port());
        }
        senders.push(adjust(sender, n).open().unwrap());
    }
    (senders, receivers)
}

/// A frame of stream `n`: one packet of Opus.
fn frame(n: usize, round: u8) -> Vec<u8> {
    [&[0x78, round][..], &(n as u32).to_be_bytes(), &[0x55; 154]].concat()
}

#[test]
fn a_thousand_streams_on_one_port_lose_nothing() {
    let (mut senders, mut receivers) = pairs(1000, |builder, _| builder);
    let mut next = vec![0; receivers.len()];
    let mut pull = |stream: &mut MediaStream, n: usize| {
        while let Some(got) = stream.pull_frame(Duration::ZERO).unwrap() {
            assert_eq!(got[..], frame(n, next[n]));
            next[n] += 1;
        }
    };
    for round in 0..5 {
        for (n, sender) in senders.iter_mut().enumerate() {
            sender.push_frame(&frame(n, round), None).unwrap();
            // The socket's buffer never has more than a few.
            if n % 32 == 0 {
                pull(&mut receivers[n], n);
            }
        }
    }
    for (n, stream) in receivers.iter_mut().enumerate() {
        pull(stream, n);
    }
    assert_eq!(next, vec![5; receivers.len()]);
}

/// Exchanges media until every sender has had a report on its own media.
fn exchange_reports(senders: &mut [MediaStream], receivers: &mut [MediaStream]) {
    let deadline = Instant::now() + PATIENCE;
    let is_reported = |stream: &MediaStream| {
        let peers = stream.rtcp().peers();
        peers.iter().any(|peer| peer.reported.is_some_and(|block| block.ssrc == stream.ssrc()))
    };
    while !senders.iter().all(is_reported) {
        assert!(Instant::now() < deadline, "not all were reported on");
        for (n, sender) in senders.iter_mut().enumerate() {
            sender.push_frame(&frame(n, 0), None).unwrap();
        }
        for receiver in &mut *receivers {
            while receiver.pull_frame(Duration::ZERO).unwrap().is_some() {}
        }
        let soon = Instant::now() + Duration::from_millis(20);
        senders[0].sender().wait_until(soon).unwrap();
    }
}

#[test]
fn reports_reach_the_streams_that_they_concern() {
    let (mut senders, mut receivers) = pairs(100, |builder, _| builder.feedback(true));
    exchange_reports(&mut senders, &mut receivers);
    for (n, sender) in senders.iter().enumerate() {
        let peers: Vec<Ssrc> = sender.rtcp().peers().iter().map(|peer| peer.ssrc).collect();
        assert_eq!(peers, [ssrc(1, n)]);
        assert_eq!(sender.rtcp().statistics().malformed, 0);
    }
    // A goodbye, too.
    drop(receivers);
    let deadline = Instant::now() + PATIENCE;
    let has_left = |stream: &MediaStream| stream.rtcp().peers().iter().all(|peer| peer.left);
    while !senders.iter().all(has_left) {
        assert!(Instant::now() < deadline, "not all have left");
        let soon = Instant::now() + Duration::from_millis(20);
        senders[0].sender().wait_until(soon).unwrap();
    }
}

#[test]
fn encrypted_reports_of_unknown_sources_find_their_streams() {
    let suite = Suite::AeadAes128Gcm;
    let (mut senders, mut receivers) = pairs(50, |builder, n| {
        let key = vec![n as u8; suite.key_and_salt_len()];
        builder.feedback(true).security(Security::shared(suite, &key).unwrap())
    });
    exchange_reports(&mut senders, &mut receivers);
}

#[test]
fn streams_that_are_opened_after_others_were_closed_get_their_own_frames() {
    let (near, far) = (session(), session());
    let open = |port: Option<u16>, n: usize| {
        let stream = far.stream(Codec::Opus).remote_ssrc(ssrc(0, n));
        let stream = match port {
            Some(port) => stream.local_port(port),
            None => stream,
        };
        stream.open().unwrap()
    };
    let mut receivers: Vec<_> = vec![(0, open(None, 0))];
    let port = receivers[0].1.local_address().port();
    receivers.extend((1..20).map(|n| (n, open(Some(port), n))));
    for round in 1..4 {
        receivers.retain(|(n, _)| *n == 0 || n % 3 != 0);
        receivers.extend((0..5).map(|n| 30 * round + 3 * n).map(|n| (n, open(Some(port), n))));
        for (n, receiver) in &mut receivers {
            let sender = near.stream(Codec::Opus).ssrc(ssrc(0, *n)).remote_port(port);
            let mut sender = sender.probation(1).open().unwrap();
            for part in 0..4 {
                sender.push_frame(&frame(*n, part), None).unwrap();
            }
            let got = receiver.pull_frame(PATIENCE).unwrap().unwrap();
            assert_eq!(got[2..], frame(*n, 0)[2..]);
        }
    }
}
