//! Loss over a path that drops 5 % of all packets, with and without recovery.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::thread;
use std::time::{Duration, Instant};

use rushes::proto::stream::{ReceiveStatistics, SendStatistics};
use rushes::{Codec, Context, Recovery, Security, StreamBuilder, Suite};
use rushes_netsim::{Loss, Path, Relay, Way};

/// How long a frame may wait for its packets.
const DEADLINE: Duration = Duration::from_millis(800);

const FRAMES: u32 = 1000;

/// Time after which a run counts as hung.
const HANGS: Duration = Duration::from_secs(60);

/// A path that loses one packet in twenty.
fn lossy() -> Path {
    Path { loss: Loss::Independent(0.05), ..Path::default() }
}

fn frame(n: u32) -> Vec<u8> {
    let octets = (0..8000_u32).map(|i| (i.wrapping_mul(7) ^ n) as u8);
    n.to_be_bytes().into_iter().chain(octets).collect()
}

/// The outcome of one run.
struct Run {
    whole: u32,
    sent: SendStatistics,
    received: ReceiveStatistics,
    /// Packets lost on the path or dropped by the kernel before the receiver read them.
    lost: u64,
}

/// Streams all frames, one every two milliseconds, and checks that each received frame is intact.
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
    let mut receiver = adjust(session.stream(Codec::Generic).probation(1)).open().unwrap();
    let relay = Relay::to(receiver.local_address()).with_control().start().unwrap();
    let port = relay.address().port();
    let builder = set(adjust(session.stream(Codec::Generic)).remote_port(port));
    let mut sender = builder.open().unwrap();
    let pushing = thread::spawn(move || {
        let start = Instant::now();
        for n in 0..FRAMES {
            // This side pulls nothing; it answers requests while it waits.
            sender.sender().wait_until(start + n * Duration::from_millis(2)).unwrap();
            sender.push_frame(&frame(n), None).unwrap();
            // A late sender must not catch up at once, which would overflow the buffers of the
            // relay's sockets.
            let sent = |sent: SendStatistics| sent.packets + sent.retransmitted;
            while relay.media(Way::There).sent < sent(sender.statistics().send) {
                assert!(start.elapsed() < HANGS, "{:?}", relay.media(Way::There));
                sender.sender().wait_until(Instant::now() + Duration::from_micros(200)).unwrap();
            }
            // A receiver counts from the first packet that it receives.
            if n == 0 {
                for way in Way::BOTH {
                    relay.set_path(way, lossy());
                }
            }
        }
        // From here on, the path loses nothing, so that goodbyes and other late packets arrive.
        for way in Way::BOTH {
            relay.set_path(way, Path::default());
        }
        sender.sender().send_keep_alive().unwrap();
        sender.sender().wait_until(Instant::now() + 2 * DEADLINE).unwrap();
        (sender.statistics().send, relay)
    });
    let mut whole = 0;
    while let Some(came) = receiver.pull_frame(2 * DEADLINE).unwrap() {
        let n = u32::from_be_bytes([came[0], came[1], came[2], came[3]]);
        assert!(came[..] == frame(n)[..], "frame {n} is damaged");
        whole += 1;
    }
    let (sent, relay) = pushing.join().unwrap();
    let statistics = receiver.statistics();
    let lost = relay.media(Way::There).lost + statistics.socket.kernel_drops;
    Run { whole, sent, received: statistics.receive, lost }
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
fn the_history_of_a_stream_that_may_lend_is_as_good() {
    let run = run_of(Recovery::On, None, |builder| builder.zero_copy(true));
    let Run { whole, sent, received, lost } = &run;
    assert!(*whole >= FRAMES / 1000 * 999, "{whole} {sent:?} {received:?}");
    assert!(received.recovered > lost / 2, "{lost} {sent:?} {received:?}");
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
