//! Loss over a path that drops 5 % of all packets, with and without recovery.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod lossy;

use std::time::Duration;

use rushes::{Codec, Context, Recovery, Security, StreamBuilder, Suite};
use rushes_netsim::Way;

use lossy::{Run, losing};

/// How long a frame may wait for its packets.
const DEADLINE: Duration = Duration::from_millis(800);

const FRAMES: u32 = 1000;

/// Streams all frames over the path.
fn run(recovery: Recovery, security: Option<&Security>) -> Run {
    run_of(recovery, security, |builder| builder)
}

/// Like [`run`], with the sender's builder changed by `set`.
fn run_of(
    recovery: Recovery,
    security: Option<&Security>,
    set: impl Fn(StreamBuilder) -> StreamBuilder,
) -> Run {
    let session = Context::new().session("127.0.0.1").unwrap();
    let adjust = |builder: StreamBuilder| {
        let builder =
            builder.recovery(recovery).reorder_time(DEADLINE).reorder_window(4096, 16 << 20);
        match security {
            Some(security) => builder.security(security.clone()),
            None => builder,
        }
    };
    let receiver = adjust(session.stream(Codec::Generic).probation(1)).open().unwrap();
    let sender = set(adjust(session.stream(Codec::Generic)));
    lossy::run(receiver, sender, FRAMES, (&Way::BOTH, losing(0.05)))
}

#[test]
fn with_recovery_999_of_1000_frames_arrive_in_time() {
    for recovery in [Recovery::On, Recovery::Verbatim] {
        let run = run(recovery, None);
        let Run { whole, sent, received, lost } = &run;
        assert!(*whole >= FRAMES / 1000 * 999, "{recovery:?}: {whole} {sent:?} {received:?}");
        assert!(received.recovered > lost / 2, "{recovery:?}: {lost} {sent:?} {received:?}");
        assert!(sent.retransmitted < sent.packets / 5, "{recovery:?}: {sent:?}");
    }
}

#[test]
fn what_is_secured_is_recovered_as_well() {
    let suites = [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm];
    for (recovery, suite) in [Recovery::On, Recovery::Verbatim].into_iter().zip(suites) {
        let key: Vec<u8> = (0..).take(suite.key_and_salt_len()).collect();
        let run = run(recovery, Some(&Security::shared(suite, &key).unwrap()));
        let Run { whole, sent, received, lost } = &run;
        assert!(*whole >= FRAMES / 1000 * 999, "{recovery:?}: {whole} {sent:?} {received:?}");
        assert!(received.recovered > lost / 2, "{recovery:?}: {lost} {sent:?} {received:?}");
        let forged = received.discards.get(rushes::Discard::Authentication);
        assert_eq!(forged, 0, "{recovery:?}: {received:?}");
    }
}

#[test]
fn without_recovery_the_damage_is_counted_exactly() {
    let run = run(Recovery::Off, None);
    assert!(run.lost > 100, "{}", run.lost);
    assert_eq!(run.received.packets_lost, run.lost);
    assert_eq!(run.received.packets + run.lost, run.sent.packets);
    assert!(run.whole < FRAMES, "{} of {FRAMES}", run.whole);
    assert_eq!((run.sent.retransmitted, run.received.requested), (0, 0));
}
