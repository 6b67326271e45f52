//! Lost packets, over a path that loses five in a hundred, with and without recovery.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::net::SocketAddr;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rushes::proto::stream::{ReceiveStatistics, SendStatistics};
use rushes::{Codec, Context, Recovery, Security, StreamBuilder, Suite};

/// How long a frame may wait for its packets.
const DEADLINE: Duration = Duration::from_millis(800);

const FRAMES: u32 = 1000;

/// No run takes so long unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Carries datagrams between a sender and the two ports of a receiver, in both directions, and
/// loses one in twenty of each kind but goodbyes and whatever else follows the media.
struct Lossy {
    port: u16,
    /// Datagrams that came for the first port, and those of them that went no further.
    came: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    /// While it is set, nothing is lost.
    calm: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Lossy {
    /// In front of `media`, and of the port after it.
    fn new(media: u16) -> Self {
        let (near, near_control) = pair();
        let (far, far_control) = pair();
        let port = near.local_addr().unwrap().port();
        let lossy = Self {
            port,
            came: Arc::default(),
            lost: Arc::default(),
            calm: Arc::new(AtomicBool::new(true)),
            stop: Arc::default(),
        };
        let (came, lost) = (lossy.came.clone(), lossy.lost.clone());
        let (calm, stop) = (lossy.calm.clone(), lossy.stop.clone());
        let mut links = [(near, far, media), (near_control, far_control, media + 1)].map(|link| {
            let (near, far, to) = link;
            near.set_nonblocking(true).unwrap();
            far.set_nonblocking(true).unwrap();
            (near, far, SocketAddr::from(([127, 0, 0, 1], to)), None::<SocketAddr>)
        });
        thread::spawn(move || {
            let (mut random, mut buffer) = (1_u64, vec![0; 65_536]);
            let mut loses = |calm: &AtomicBool| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                (random >> 33) % 20 == 0 && !calm.load(Relaxed)
            };
            while !stop.load(Relaxed) {
                let mut idle = true;
                for (n, (near, far, to, back)) in links.iter_mut().enumerate() {
                    while let Ok((len, from)) = near.recv_from(&mut buffer) {
                        (*back, idle) = (Some(from), false);
                        if loses(&calm) {
                            lost.fetch_add(u64::from(n == 0), Relaxed);
                        } else {
                            let _ = far.send_to(&buffer[..len], *to);
                        }
                        came.fetch_add(u64::from(n == 0), Relaxed);
                    }
                    while let Ok((len, _)) = far.recv_from(&mut buffer) {
                        idle = false;
                        if let Some(back) = back.filter(|_| !loses(&calm)) {
                            let _ = near.send_to(&buffer[..len], back);
                        }
                    }
                }
                if idle {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        });
        lossy
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

/// Two sockets on ports that follow each other.
fn pair() -> (UdpSocket, UdpSocket) {
    loop {
        let media = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = media.local_addr().unwrap().port();
        if let Ok(control) = UdpSocket::bind(("127.0.0.1", port.wrapping_add(1))) {
            return (media, control);
        }
    }
}

fn frame(n: u32) -> Vec<u8> {
    let octets = (0..8000_u32).map(|i| (i.wrapping_mul(7) ^ n) as u8);
    n.to_be_bytes().into_iter().chain(octets).collect()
}

/// What one run came to.
struct Run {
    whole: u32,
    sent: SendStatistics,
    received: ReceiveStatistics,
    /// By the path, and by the system before the receiver read them.
    lost: u64,
}

/// Streams all frames, one every two milliseconds; every frame that comes is intact.
fn run(recovery: Recovery, security: Option<&Security>) -> Run {
    run_of(recovery, security, |builder| builder)
}

/// The same, with a sender made as `set` says.
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
    let relay = Lossy::new(receiver.local_address().port());
    let builder = set(adjust(session.stream(Codec::Generic)).remote_port(relay.port));
    let mut sender = builder.open().unwrap();
    let (came, calm) = (relay.came.clone(), relay.calm.clone());
    let pushing = thread::spawn(move || {
        let start = Instant::now();
        for n in 0..FRAMES {
            // Nobody pulls on this side: requests are answered while it waits.
            sender.wait_until(start + n * Duration::from_millis(2)).unwrap();
            sender.push_frame(&frame(n), None).unwrap();
            // What a late sender makes up for at once would be more than the path's sockets hold.
            let sent = |sent: SendStatistics| sent.packets + sent.retransmitted;
            while came.load(Relaxed) < sent(sender.statistics().send) {
                assert!(start.elapsed() < HANGS, "{} packets", came.load(Relaxed));
                sender.wait_until(Instant::now() + Duration::from_micros(200)).unwrap();
            }
            // A receiver counts from the first packet that it sees.
            calm.store(false, Relaxed);
        }
        calm.store(true, Relaxed);
        sender.send_keep_alive().unwrap();
        sender.wait_until(Instant::now() + 2 * DEADLINE).unwrap();
        sender.statistics().send
    });
    let mut whole = 0;
    while let Some(came) = receiver.pull_frame(2 * DEADLINE).unwrap() {
        let n = u32::from_be_bytes([came[0], came[1], came[2], came[3]]);
        assert!(came[..] == frame(n)[..], "frame {n} is damaged");
        whole += 1;
    }
    let sent = pushing.join().unwrap();
    let statistics = receiver.statistics();
    let lost = relay.lost.load(Relaxed) + statistics.socket.kernel_drops;
    Run { whole, sent, received: statistics.receive, lost }
}

#[test]
fn with_recovery_999_of_1000_frames_come_in_time() {
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
