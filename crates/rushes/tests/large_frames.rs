//! Frames larger than a socket's buffer, sent without pacing, beside bare sockets that send the same octets.
//!
//! ```sh
//! cargo test --release -p rushes --test large_frames -- --ignored --nocapture
//! ```
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::thread;
use std::time::{Duration, Instant};

use rushes::net::{SocketOptions, UdpSocket};
use rushes::{Codec, Context, MediaStream, Pacing};

/// Silence after which nothing of a frame is in transit any more.
const SILENCE: Duration = Duration::from_millis(300);

/// Octets of a bare datagram.
const DATAGRAM: usize = 1472;

/// Frames of each size.
const ROUNDS: usize = 9;

fn pair() -> (MediaStream, MediaStream) {
    let session = Context::new().session("127.0.0.1").unwrap();
    let stream = || session.stream(Codec::H265).rtcp(false);
    let receiver = stream().probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let sender = stream().remote_port(port).pacing(Pacing::Off).open().unwrap();
    (sender, receiver)
}

/// Sends a frame with bare sockets; returns the octets that arrive.
fn bare((sender, receiver): (&UdpSocket, &UdpSocket), frame: &[u8]) -> usize {
    thread::scope(|scope| {
        let arriving = scope.spawn(|| {
            let (mut arena, mut copy) = (receiver.arena(), Vec::with_capacity(frame.len()));
            loop {
                let datagrams =
                    receiver.receive(&mut arena, Instant::now() + SILENCE, None).unwrap();
                if datagrams.is_empty() {
                    return copy.len();
                }
                datagrams.for_each(|datagram| copy.extend_from_slice(datagram.data));
            }
        });
        let (mut queue, to) = (sender.send_queue(), receiver.local_address());
        for slab in frame.chunks(DATAGRAM * 44) {
            let lengths: Vec<u16> = slab.chunks(DATAGRAM).map(|it| it.len() as u16).collect();
            sender.send(&mut queue, slab, &lengths, to, Instant::now() + SILENCE).unwrap();
        }
        arriving.join().unwrap()
    })
}

/// Sends a frame; returns whether it arrives whole.
fn ours((sender, receiver): (&mut MediaStream, &mut MediaStream), frame: &[u8]) -> bool {
    thread::scope(|scope| {
        let arriving = scope.spawn(|| {
            let mut is_whole = false;
            while let Some(received) = receiver.pull_frame(2 * SILENCE).unwrap() {
                is_whole |= received.data() == frame;
            }
            is_whole
        });
        sender.push_frame(frame, None).unwrap();
        // Shows that the end of the frame is missing, if it is.
        sender.send_keep_alive().unwrap();
        arriving.join().unwrap()
    })
}

#[test]
#[ignore = "it measures: what is lost depends on the machine"]
fn large_frames_without_pacing_beside_bare_sockets() {
    println!("octets     bare: whole  octets lost   ours: whole  packets lost  of");
    for len in [1_000_000, 4_000_000, 16_000_000, 64_000_000, 64 << 20] {
        let mut frame = vec![0x55; len];
        frame[..7].copy_from_slice(&[0, 0, 0, 1, 0x02, 1, 0x80]);
        let socket =
            || UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
        let (from, to) = (socket(), socket());
        let (mut sender, mut receiver) = pair();
        let (mut bare_whole, mut bare_lost, mut whole) = (0, 0, 0);
        for _ in 0..ROUNDS {
            let arrived = bare((&from, &to), &frame);
            bare_whole += usize::from(arrived == len);
            bare_lost += len - arrived;
            whole += usize::from(ours((&mut sender, &mut receiver), &frame));
        }
        let lost = receiver.statistics().receive.packets_lost;
        let packets = sender.statistics().send.packets;
        println!(
            "{len:>9} {bare_whole:>8} of {ROUNDS} {bare_lost:>12} {whole:>8} of {ROUNDS} {lost:>12} {packets:>8}"
        );
    }
}
