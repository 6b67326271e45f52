//! When and with which mark datagrams arrived, as the kernel reports it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use loopback::{LOCALS, pair, soon};
use rushes_net::{NetError, ReceivePath, SocketOptions, UdpSocket};
use socket2::{Domain, Socket, Type};

/// Returns the arrivals and marks of the next `count` datagrams.
fn details(receiver: &UdpSocket, count: usize) -> Vec<(Instant, u8)> {
    let (mut arena, mut seen) = (receiver.arena(), Vec::new());
    while seen.len() < count {
        let datagrams = receiver.receive(&mut arena, soon(), None).unwrap();
        assert!(!datagrams.is_empty(), "{} of {count} datagrams arrived", seen.len());
        seen.extend(datagrams.map(|datagram| (datagram.arrival, datagram.ecn)));
    }
    seen
}

/// Sends two datagrams that wait in the socket, and returns whether both have the time at which they
/// were sent.
fn have_the_time_of_sending(sender: &UdpSocket, receiver: &UdpSocket) -> bool {
    let (to, before) = (receiver.local_address(), Instant::now());
    sender.send(&mut sender.send_queue(), b"onetwo", &[3, 3], to, soon()).unwrap();
    let after = Instant::now();
    sleep(Duration::from_millis(20));
    // Both clocks are read one after the other, so an arrival is not exact.
    let slack = Duration::from_millis(5);
    let is_between = |at: Instant| before <= at + slack && at <= after + slack;
    details(receiver, 2).iter().all(|(arrival, _)| is_between(*arrival))
}

#[test]
fn a_datagram_that_waits_in_the_socket_keeps_the_time_of_its_arrival() {
    for receive_path in [ReceivePath::Gro, ReceivePath::Recvmmsg] {
        let options = SocketOptions { receive_path, ..SocketOptions::default() };
        for local in LOCALS {
            let Some((sender, receiver)) = pair(local, &options) else { continue };
            receiver.enable_arrival_details();
            // The kernel begins to note times some time after the first socket has asked for it.
            let is_kept = (0..200).any(|_| have_the_time_of_sending(&sender, &receiver));
            assert!(is_kept, "{receive_path} from {local}");
        }
    }
}

#[test]
fn every_datagram_has_the_mark_that_its_sender_set() {
    for local in LOCALS {
        let Some((_, receiver)) = pair(local, &SocketOptions::default()) else { continue };
        receiver.enable_arrival_details();
        for ecn in 0..=2 {
            let options = SocketOptions { ecn, dscp: Some(46), ..SocketOptions::default() };
            let sender = UdpSocket::bind(local, &options).unwrap();
            let (to, mut queue) = (receiver.local_address(), sender.send_queue());
            sender.send(&mut queue, b"aabbcc", &[2; 3], to, soon()).unwrap();
            let marks: Vec<u8> = details(&receiver, 3).iter().map(|(_, ecn)| *ecn).collect();
            assert_eq!(marks, [ecn; 3], "{local}");
        }
    }
}

/// Sends messages of `segments` datagrams from one address, with the marks ECT(0), CE and Not-ECT in
/// turn; each datagram contains its mark. Those with CE, which our own sockets refuse to set, are
/// sent one by one.
fn send_marked(
    local: SocketAddr,
    to: SocketAddr,
    messages: usize,
    segments: usize,
    segment: usize,
) {
    let options = |ecn| SocketOptions { ecn, reuse_address: true, ..SocketOptions::default() };
    let first = UdpSocket::bind(local, &options(2)).unwrap();
    let from = first.local_address();
    let other = UdpSocket::bind(from, &options(0)).unwrap();
    let congested = Socket::new(Domain::for_address(from), Type::DGRAM, None).unwrap();
    congested.set_reuse_address(true).unwrap();
    congested.bind(&from.into()).unwrap();
    let is_set = if from.is_ipv4() { congested.set_tos_v4(3) } else { congested.set_tclass_v6(3) };
    is_set.unwrap();
    let lengths = vec![segment as u16; segments];
    for message in 0..messages {
        let (mark, socket) = [(2, Some(&first)), (3, None), (0, Some(&other))][message % 3];
        let datagrams = vec![mark; segments * segment];
        match socket {
            Some(socket) => {
                socket.send(&mut socket.send_queue(), &datagrams, &lengths, to, soon()).unwrap();
            }
            None => {
                for datagram in datagrams.chunks(segment) {
                    congested.send_to(datagram, &to.into()).unwrap();
                }
            }
        }
    }
}

#[test]
fn the_mark_and_the_time_of_a_coalesced_message_are_those_of_all_its_datagrams() {
    const SEGMENT: usize = 200;
    const SEGMENTS: usize = 10;
    const MESSAGES: usize = 24;
    let options = SocketOptions { receive_path: ReceivePath::Gro, ..SocketOptions::default() };
    for local in LOCALS {
        let Some((_, receiver)) = pair(local, &options) else { continue };
        receiver.enable_arrival_details();
        send_marked(local, receiver.local_address(), MESSAGES, SEGMENTS, SEGMENT);
        let (mut arena, mut seen, mut most) = (receiver.arena(), Vec::new(), 0);
        while seen.len() < MESSAGES * SEGMENTS {
            let datagrams = receiver.receive(&mut arena, soon(), None).unwrap();
            assert!(!datagrams.is_empty(), "{} datagrams arrived", seen.len());
            most = most.max(datagrams.len());
            seen.extend(datagrams.map(|one| (one.data[0], one.ecn, one.data.len(), one.arrival)));
        }
        // An arena has room for four messages, so datagrams were coalesced.
        assert!(most > 4, "{local}: {most}");
        for message in seen.chunks(SEGMENTS) {
            let (mark, _, _, arrival) = message[0];
            let is_alike = |one: &(u8, u8, usize, Instant)| {
                (one.0, one.1, one.2) == (mark, mark, SEGMENT) && (mark == 3 || one.3 == arrival)
            };
            assert!(message.iter().all(is_alike), "{local}: {message:?}");
        }
        assert!(seen.is_sorted_by_key(|one| one.3), "{local}");
    }
}

#[test]
fn a_socket_for_both_ip_versions_sets_and_reads_the_marks_of_both() {
    let any = "[::]:0".parse().unwrap();
    let options = SocketOptions { dual_stack: true, ecn: 1, ..SocketOptions::default() };
    let Ok(both) = UdpSocket::bind(any, &options) else {
        return loopback::skipped::not_here("this machine has no IPv6");
    };
    both.enable_arrival_details();
    for local in LOCALS {
        let Some((sender, single)) = pair(local, &SocketOptions { ecn: 2, ..Default::default() })
        else {
            continue;
        };
        single.enable_arrival_details();
        let mut to = local;
        to.set_port(both.local_address().port());
        sender.send(&mut sender.send_queue(), b"a", &[1], to, soon()).unwrap();
        assert_eq!(details(&both, 1)[0].1, 2, "read from {local}");
        let to = single.local_address();
        both.send(&mut both.send_queue(), b"a", &[1], to, soon()).unwrap();
        assert_eq!(details(&single, 1)[0].1, 1, "set for {local}");
    }
}

#[test]
fn without_the_details_a_datagram_has_the_time_of_reading_and_no_mark() {
    let options = SocketOptions { ecn: 2, ..SocketOptions::default() };
    let (sender, receiver) = pair(LOCALS[0], &options).unwrap();
    let (to, mut queue) = (receiver.local_address(), sender.send_queue());
    sender.send(&mut queue, b"a", &[1], to, soon()).unwrap();
    sleep(Duration::from_millis(5));
    let before = Instant::now();
    let (arrival, ecn) = details(&receiver, 1)[0];
    assert!(arrival >= before);
    assert_eq!(ecn, 0);
}

#[test]
fn the_mark_of_routers_cannot_be_set() {
    let options = SocketOptions { ecn: 3, ..SocketOptions::default() };
    let error = UdpSocket::bind(LOCALS[0], &options).unwrap_err();
    assert!(matches!(error, NetError::Range { option: "ecn", value: 3, .. }), "{error}");
}
