//! What a packet costs with many streams: CPU time of each way to receive and to send them. It prints a table
//! and asserts on no time:
//!
//! `cargo test --release -p rushes --test many_streams_cost -- --ignored --nocapture --test-threads 1`
//!
//! `STREAMS` sets the number of streams, 1 000 by default.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and this one prints"
)]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use rushes::{
    Codec, Context, FramePush, FramePusher, Poller, Security, Ssrc, StreamBuilder, StreamReceiver,
    StreamSender, Suite,
};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: u64 = 100;
const TICK: Duration = Duration::from_millis(20);
const RUNS: usize = 5;

fn streams() -> u32 {
    std::env::var("STREAMS").map_or(1000, |count| count.parse().unwrap())
}

fn cpu(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The receivers of streams, on one port or each on its own, and where to send to them.
fn receivers(is_shared: bool, has_rtcp: bool) -> (Vec<StreamReceiver>, Vec<SocketAddr>) {
    let session = Context::new().session("127.0.0.1").unwrap();
    let mut port = 0;
    let receiver = |n| {
        let stream = session.stream(Codec::Generic).rtcp(has_rtcp).rtcp_mux(true).probation(1);
        let stream = stream.remote_ssrc(Ssrc(n)).local_port(port).open().unwrap();
        let at = stream.local_address();
        port = if is_shared { at.port() } else { 0 };
        (stream.split().unwrap().1, SocketAddr::from(([127, 0, 0, 1], at.port())))
    };
    (1..=streams()).map(receiver).unzip()
}

/// Sends 50 packets a second of each stream; returns the CPU time that this took.
fn send_all(to: &[SocketAddr]) -> f64 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut packet = [7_u8; 172];
    (packet[0], packet[1]) = (0x80, 0x80 | 0x63);
    let (start, before) = (Instant::now(), cpu(ClockId::ThreadCPUTime));
    for round in 0..ROUNDS {
        packet[2..4].copy_from_slice(&(round as u16).to_be_bytes());
        packet[4..8].copy_from_slice(&(round as u32 * 960).to_be_bytes());
        for (n, to) in (1_u32..).zip(to) {
            packet[8..12].copy_from_slice(&n.to_be_bytes());
            socket.send_to(&packet, to).unwrap();
            // Spread over most of the tick, in bursts.
            if n % 100 == 0 {
                let at = start + TICK * round as u32 + TICK * n / (to_len(n) * 5 / 4);
                thread::sleep(at.saturating_duration_since(Instant::now()));
            }
        }
        let end = start + TICK * (round as u32 + 1);
        thread::sleep(end.saturating_duration_since(Instant::now()));
    }
    cpu(ClockId::ThreadCPUTime) - before
}

fn to_len(n: u32) -> u32 {
    streams().max(n)
}

/// Receives with `receive`, which gets a counter and a flag in it for the end; returns microseconds a packet and
/// the share that was lost.
fn measure(
    to: Vec<SocketAddr>,
    receive: impl FnOnce(&dyn Fn() -> bool, &Arc<AtomicU64>),
) -> (f64, f64) {
    let all = ROUNDS * to.len() as u64;
    let seen = Arc::new(AtomicU64::new(0));
    let before = cpu(ClockId::ProcessCPUTime);
    let end = Instant::now() + TICK * ROUNDS as u32 + Duration::from_secs(2);
    let sender = thread::spawn(move || send_all(&to));
    let counter = seen.clone();
    receive(&|| counter.load(Relaxed) >= all || Instant::now() >= end, &seen);
    let of_sender = sender.join().unwrap();
    let seen = seen.load(Relaxed).max(1);
    let took = cpu(ClockId::ProcessCPUTime) - before - of_sender;
    (took / seen as f64 * 1e6, 1.0 - seen as f64 / all as f64)
}

fn poll_all(receivers: Vec<StreamReceiver>, is_over: &dyn Fn() -> bool, seen: &AtomicU64) {
    let mut poller = Poller::new().unwrap();
    for (token, receiver) in (0..).zip(receivers) {
        poller.add(receiver, token).unwrap();
    }
    while !is_over() {
        while poller.pull(TICK / 4).unwrap().is_some() {
            seen.fetch_add(1, Relaxed);
        }
    }
}

fn hook_all(receivers: Vec<StreamReceiver>, is_over: &dyn Fn() -> bool, seen: &Arc<AtomicU64>) {
    let hook = |receiver: StreamReceiver| {
        let seen = seen.clone();
        let count = move |_| {
            seen.fetch_add(1, Relaxed);
        };
        receiver.on_frame(count).unwrap()
    };
    let hooks: Vec<_> = receivers.into_iter().map(hook).collect();
    while !is_over() {
        thread::sleep(TICK);
    }
    drop(hooks);
}

fn pull_all(receivers: Vec<StreamReceiver>, is_over: &dyn Fn() -> bool, seen: &Arc<AtomicU64>) {
    let end = Instant::now() + TICK * ROUNDS as u32 + Duration::from_secs(1);
    let pull = |mut receiver: StreamReceiver| {
        let seen = seen.clone();
        thread::spawn(move || {
            while Instant::now() < end {
                if receiver.pull_frame(TICK * 10).unwrap().is_some() {
                    seen.fetch_add(1, Relaxed);
                }
            }
        })
    };
    let threads: Vec<_> = receivers.into_iter().map(pull).collect();
    while !is_over() {
        thread::sleep(TICK);
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "measures; see the command above"]
fn receiving() {
    println!("receiving from {} streams, 50 packets/s each: us of CPU a packet, % lost", streams());
    for (place, is_shared) in [("one port", true), ("a port each", false)] {
        for has_rtcp in [false, true] {
            for way in ["poller", "hooks", "pull"] {
                let mut costs = Vec::new();
                let mut lost = Vec::new();
                let runs = if way == "pull" { 1 } else { RUNS };
                for _ in 0..runs {
                    let (receivers, to) = receivers(is_shared, has_rtcp);
                    let (cost, share) = measure(to, |is_over, seen| match way {
                        "poller" => poll_all(receivers, is_over, seen),
                        "hooks" => hook_all(receivers, is_over, seen),
                        _ => pull_all(receivers, is_over, seen),
                    });
                    costs.push(cost);
                    lost.push(share);
                }
                let (cost, lost) = (median(costs), median(lost) * 100.0);
                println!("{place}, RTCP {has_rtcp}, {way}: {cost:.2} us, {lost:.2} %");
            }
        }
    }
}

/// The senders of streams from one port.
fn senders(to: u16, secure: bool) -> Vec<StreamSender> {
    let session = Context::new().session("127.0.0.1").unwrap();
    let mut port = 0;
    let sender = |n| {
        let stream = session.stream(Codec::Generic).rtcp(false).remote_port(to);
        let stream: StreamBuilder = if secure {
            let suite = Suite::AeadAes128Gcm;
            let key: Vec<u8> = (0..).take(suite.key_and_salt_len()).collect();
            stream.security(Security::shared(suite, &key).unwrap())
        } else {
            stream
        };
        let stream = stream.ssrc(Ssrc(n)).remote_ssrc(Ssrc(n)).local_port(port).open().unwrap();
        port = stream.local_address().port();
        stream.split().unwrap().0
    };
    (1..=streams()).map(sender).collect()
}

#[test]
#[ignore = "measures; see the command above"]
fn sending() {
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = sink.local_addr().unwrap();
    let frame = [7_u8; 160];
    let per = |took: f64| took / (f64::from(streams()) * 20.0) * 1e6;
    println!("sending 160 octets on each of {} streams of one port: us of CPU a packet", streams());
    for secure in [false, true] {
        let mut senders = senders(to.port(), secure);
        let mut pusher = FramePusher::new();
        let bare = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut costs = [const { Vec::new() }; 3];
        for _ in 0..RUNS {
            let time = |act: &mut dyn FnMut()| {
                let before = cpu(ClockId::ThreadCPUTime);
                for _ in 0..20 {
                    act();
                }
                per(cpu(ClockId::ThreadCPUTime) - before)
            };
            costs[0].push(time(&mut || {
                for _ in 0..streams() {
                    bare.send_to(&[7; 172], to).unwrap();
                }
            }));
            costs[1].push(time(&mut || {
                for sender in &mut senders {
                    sender.push_frame(&frame, None).unwrap();
                }
            }));
            costs[2].push(time(&mut || {
                let frames = senders.iter_mut().map(|stream| FramePush::new(stream, &frame));
                assert!(pusher.push_many(&mut frames.collect::<Vec<_>>()).is_empty());
            }));
        }
        let [bare, one, many] = costs.map(median);
        println!("secured {secure}: sendto {bare:.2}, push_frame {one:.2}, push_many {many:.2}");
    }
}
