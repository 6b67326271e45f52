//! Sockets bound to `[::]`, with IPv4 and without.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use loopback::{LOCALS, collect, soon};
use rushes_net::{NetError, ReceivePath, SendPath, SocketOptions, UdpSocket};

/// Binds a socket to every address of both IP versions; prints the reason and returns `None` if
/// IPv6 is missing.
fn any(options: &SocketOptions) -> Option<UdpSocket> {
    match UdpSocket::bind("[::]:0".parse().unwrap(), options) {
        Ok(socket) => Some(socket),
        Err(error @ (NetError::AddressNotAvailable { .. } | NetError::Create(_))) => {
            loopback::skipped::not_here(format!("this machine has no IPv6: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn send(from: &UdpSocket, text: &[u8], to: SocketAddr) {
    let lengths = [2; 3];
    from.send(&mut from.send_queue(), text, &lengths, to, soon()).unwrap();
}

#[test]
fn both_versions_are_received_and_answered_by_every_path() {
    for (send_path, receive_path) in
        [(SendPath::Auto, ReceivePath::Auto), (SendPath::Single, ReceivePath::Single)]
    {
        let options =
            SocketOptions { dual_stack: true, send_path, receive_path, ..SocketOptions::default() };
        let Some(receiver) = any(&options) else { return };
        assert!(receiver.is_dual_stack());
        for local in LOCALS {
            let sender = UdpSocket::bind(local, &SocketOptions::default()).unwrap();
            let to = SocketAddr::new(local.ip(), receiver.local_address().port());
            send(&sender, b"aabbcc", to);
            let received = collect(&receiver, 3);
            assert_eq!(received.len(), 3);
            // The address is an IPv4 address rather than an IPv6 address that contains it.
            assert!(received.iter().all(|(_, from)| *from == sender.local_address()));
            send(&receiver, b"ddeeff", sender.local_address());
            assert_eq!(collect(&sender, 3), [b"dd", b"ee", b"ff"].map(|it| (it.to_vec(), to)));
        }
    }
}

#[test]
fn without_the_option_ipv4_is_not_received() {
    let Some(receiver) = any(&SocketOptions::default()) else { return };
    let sender = UdpSocket::bind(LOCALS[0], &SocketOptions::default()).unwrap();
    let to = SocketAddr::new(LOCALS[0].ip(), receiver.local_address().port());
    send(&sender, b"aabbcc", to);
    let deadline = Instant::now() + Duration::from_millis(50);
    assert!(receiver.receive(&mut receiver.arena(), deadline, None).unwrap().is_empty());
}
