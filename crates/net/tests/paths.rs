//! Every combination of send path and receive path, over loopback.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use loopback::{LOCALS, collect, datagram, pair, soon};
use rushes_net::{ReceivePath, SendPath, SocketOptions, UdpSocket, Waker};

#[cfg(target_os = "linux")]
const SEND: &[SendPath] = &[SendPath::Auto, SendPath::Gso, SendPath::Sendmmsg, SendPath::Single];
#[cfg(target_os = "linux")]
const RECEIVE: &[ReceivePath] =
    &[ReceivePath::Auto, ReceivePath::Gro, ReceivePath::Recvmmsg, ReceivePath::Single];
#[cfg(not(target_os = "linux"))]
const SEND: &[SendPath] = &[SendPath::Auto, SendPath::Single];
#[cfg(not(target_os = "linux"))]
const RECEIVE: &[ReceivePath] = &[ReceivePath::Auto, ReceivePath::Single];

/// Runs `check` with a sender and a receiver for every combination of paths.
fn for_every_path(check: impl Fn(&UdpSocket, &UdpSocket)) {
    for local in LOCALS {
        for &send_path in SEND {
            for &receive_path in RECEIVE {
                let options = SocketOptions { send_path, receive_path, ..SocketOptions::default() };
                let Some((sender, receiver)) = pair(local, &options) else { continue };
                eprintln!("{local}: {send_path} -> {receive_path}");
                check(&sender, &receiver);
            }
        }
    }
}

/// Sends datagrams of these lengths as one batch, and asserts that they arrive whole and in order.
fn arrives_whole_and_in_order(sender: &UdpSocket, receiver: &UdpSocket, lengths: &[u16]) {
    let sent: Vec<Vec<u8>> = (0..).zip(lengths).map(|(at, &len)| datagram(at, len)).collect();
    let mut queue = sender.send_queue();
    let to = receiver.local_address();
    sender.send(&mut queue, &sent.concat(), lengths, to, soon()).unwrap();
    let received = collect(receiver, sent.len());
    assert_eq!(received.len(), sent.len());
    for (at, ((data, from), expected)) in received.iter().zip(&sent).enumerate() {
        assert_eq!(data.len(), expected.len(), "length of datagram {at}");
        assert!(data == expected, "octets of datagram {at}");
        assert_eq!(*from, sender.local_address());
    }
}

#[test]
fn datagrams_of_every_size_arrive_whole_and_in_order() {
    for_every_path(|sender, receiver| {
        for size in [0, 1, 1399, 1400, 1472, 9000, 65_507] {
            arrives_whole_and_in_order(sender, receiver, &[size]);
            arrives_whole_and_in_order(sender, receiver, &[size; 3]);
        }
    });
}

#[test]
fn a_batch_of_mixed_sizes_arrives_whole_and_in_order() {
    for_every_path(|sender, receiver| {
        let frame = [[1400; 90].as_slice(), &[377]].concat();
        arrives_whole_and_in_order(sender, receiver, &frame);
        let mixed = [12, 1400, 1400, 700, 0, 0, 1400, 1, 2, 3, 3, 3, 9000, 1400, 65_507, 8, 0];
        arrives_whole_and_in_order(sender, receiver, &mixed);
        arrives_whole_and_in_order(sender, receiver, &[40; 200]);
    });
}

#[test]
fn a_socket_is_drained_once_all_that_arrived_was_read() {
    for_every_path(|sender, receiver| {
        // The kernel coalesces few of these.
        let lengths: Vec<u16> = (0..200).map(|at| 40 + at % 3).collect();
        let octets = vec![7; lengths.iter().map(|len| usize::from(*len)).sum()];
        let (mut queue, to) = (sender.send_queue(), receiver.local_address());
        sender.send(&mut queue, &octets, &lengths, to, soon()).unwrap();
        let (mut arena, mut read, mut calls) = (receiver.arena(), 0, 0);
        // Loopback delivers what is sent at once, so that nothing waits.
        loop {
            let datagrams = receiver.receive(&mut arena, Instant::now(), None).unwrap();
            let is_drained = datagrams.is_drained();
            read += datagrams.count();
            calls += 1;
            assert!(calls <= 201, "{read} were read");
            assert!(!is_drained || read == 200, "after {read}");
            if is_drained {
                break;
            }
        }
        assert!(calls > 1, "one call takes fewer");
    });
}

#[test]
fn the_requested_path_is_used() {
    for_every_path(|sender, receiver| {
        assert_ne!(sender.send_path(), SendPath::Auto);
        assert_ne!(receiver.receive_path(), ReceivePath::Auto);
    });
    let [local, _] = LOCALS;
    for &send_path in &SEND[1..] {
        let options = SocketOptions { send_path, ..SocketOptions::default() };
        let (sender, _receiver) = pair(local, &options).unwrap();
        assert_eq!(sender.send_path(), send_path);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn segmentation_takes_one_call_for_a_frame_and_coalescing_takes_few() {
    let options = SocketOptions::default();
    let (sender, receiver) = pair(LOCALS[0], &options).unwrap();
    if sender.send_path() != SendPath::Gso || receiver.receive_path() != ReceivePath::Gro {
        loopback::skipped::not_here("this kernel has no segmentation or no coalescing");
        return;
    }
    arrives_whole_and_in_order(&sender, &receiver, &[1400; 128]);
    assert_eq!(sender.counters().send_calls, 1);
    assert_eq!(sender.counters().sent_datagrams, 128);
    assert_eq!(receiver.counters().received_bytes, 128 * 1400);
    assert!(receiver.counters().receive_calls < 16, "{:?}", receiver.counters());
}

#[cfg(target_os = "linux")]
#[test]
fn a_batch_of_messages_takes_one_call_for_64_datagrams() {
    let options = SocketOptions { send_path: SendPath::Sendmmsg, ..SocketOptions::default() };
    let (sender, receiver) = pair(LOCALS[0], &options).unwrap();
    arrives_whole_and_in_order(&sender, &receiver, &[1400; 128]);
    assert_eq!(sender.counters().send_calls, 2);
}

#[test]
fn datagrams_can_be_changed_in_place() {
    let (sender, receiver) = pair(LOCALS[0], &SocketOptions::default()).unwrap();
    let to = receiver.local_address();
    sender.send(&mut sender.send_queue(), b"aabbc", &[2, 2, 1], to, soon()).unwrap();
    let mut arena = receiver.arena();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let datagrams = receiver.receive(&mut arena, soon(), None).unwrap();
        assert!(!datagrams.is_empty());
        let mut left = datagrams.len();
        for datagram in datagrams {
            datagram.data.make_ascii_uppercase();
            seen.push(datagram.data.to_vec());
            left -= 1;
        }
        assert_eq!(left, 0, "the length is the number of datagrams");
    }
    assert_eq!(seen.concat(), b"AABBC");
}

const BATCH: [u16; 5] = [1400, 1400, 1400, 1400, 900];

/// Reads slowly until a wake with nothing left to read; checks and counts every datagram.
fn read_slowly(receiver: &UdpSocket, waker: &Waker) -> u64 {
    let mut arena = receiver.arena();
    let mut whole = 0;
    for turn in 1_u32.. {
        let datagrams = receiver.receive(&mut arena, soon(), Some(waker)).unwrap();
        if datagrams.is_empty() {
            break;
        }
        for datagram in datagrams {
            let number = u32::from_le_bytes(datagram.data[..4].try_into().unwrap());
            let length = BATCH[number as usize % BATCH.len()];
            assert!(datagram.data == loopback::datagram(number, length), "{number} is damaged");
            whole += 1;
        }
        if turn.is_multiple_of(16) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    whole
}

#[test]
fn a_thousand_batches_for_a_slow_reader_arrive_or_are_counted() {
    let numbers = (0..).step_by(BATCH.len()).take(1000);
    let total = 1000 * BATCH.len() as u64;
    for &receive_path in RECEIVE {
        let options =
            SocketOptions { receive_path, receive_buffer: 256 << 10, ..SocketOptions::default() };
        let (sender, receiver) = pair(LOCALS[0], &options).unwrap();
        let to = receiver.local_address();
        let waker = Waker::new().unwrap();
        let whole = thread::scope(|scope| {
            let reader = scope.spawn(|| read_slowly(&receiver, &waker));
            let mut queue = sender.send_queue();
            for first in numbers.clone() {
                let datagrams = (first..).zip(BATCH);
                let bytes: Vec<u8> = datagrams.flat_map(|(at, len)| datagram(at, len)).collect();
                sender.send(&mut queue, &bytes, &BATCH, to, soon()).unwrap();
            }
            waker.wake();
            reader.join().unwrap()
        });
        let counters = receiver.counters();
        assert_eq!(counters.received_datagrams, whole);
        assert_eq!(counters.truncated, 0);
        assert_eq!(sender.counters().sent_datagrams, total);
        if cfg!(target_os = "linux") {
            // The kernel counts a dropped message once, even if it contains several datagrams.
            assert!(whole == total || counters.kernel_drops > 0, "{whole} {counters:?}");
            assert!(whole + counters.kernel_drops <= total, "{whole} {counters:?}");
        }
    }
}

#[test]
fn a_sender_on_the_unspecified_address_is_seen_with_its_real_one() {
    let receiver = UdpSocket::bind(LOCALS[0], &SocketOptions::default()).unwrap();
    let any: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let sender = UdpSocket::bind(any, &SocketOptions::default()).unwrap();
    let to = receiver.local_address();
    sender.send(&mut sender.send_queue(), b"x", &[1], to, soon()).unwrap();
    let (_, from) = collect(&receiver, 1).remove(0);
    assert_eq!(from, SocketAddr::new(LOCALS[0].ip(), sender.local_address().port()));
}
