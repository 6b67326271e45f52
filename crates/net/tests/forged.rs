//! Forged ICMP messages: anyone who knows the addresses can send them.
#![allow(clippy::unwrap_used, reason = "a test may")]
#![cfg(target_os = "linux")]

mod loopback;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use loopback::{skipped, soon};
use rushes_net::{SendPath, SocketOptions, UdpSocket};
use socket2::{Domain, Protocol, Socket, Type};

/// Types and codes: an unreachable network, host, protocol and port; a failed source route; exceeded
/// time; a wrong header. A path that needs fragments is missing, because the system would believe it
/// for all sockets.
const MESSAGES: [(u8, u8); 7] = [(3, 0), (3, 1), (3, 2), (3, 3), (3, 5), (11, 0), (12, 0)];

/// The sum of RFC 1071.
fn checksum(octets: &[u8]) -> u16 {
    let words = octets.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Returns a message about a datagram between ports of 127.0.0.1.
fn message((kind, code): (u8, u8), from: u16, to: u16) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, 0, 0x05, 0xdc];
    message.extend([0x45, 0, 0, 100, 0, 1, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    message.extend([from.to_be_bytes(), to.to_be_bytes(), [0, 80], [0, 0]].concat());
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Ends the forging when it is dropped, also by a failing test.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn forged_messages_make_no_call_fail() {
    let Ok(raw) = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)) else {
        return skipped::not_here("only root may forge ICMP messages");
    };
    for send_path in [SendPath::Gso, SendPath::Sendmmsg, SendPath::Single] {
        let options = SocketOptions { send_path, ..SocketOptions::default() };
        let bind = || UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let (sender, receiver) = (bind(), bind());
        sender.enable_refusals();
        let (from, to) = (sender.local_address().port(), receiver.local_address());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let target: SocketAddr = "127.0.0.1:0".parse().unwrap();
                let forged = MESSAGES.map(|message_kind| message(message_kind, from, to.port()));
                while !is_over.load(Ordering::Relaxed) {
                    for message in &forged {
                        let _ = raw.send_to(message, &target.into());
                    }
                }
            });
            let _ended = Ended(&is_over);
            let (mut queue, mut arena) = (sender.send_queue(), sender.arena());
            while sender.counters().refused < 100 {
                sender.send(&mut queue, &[7; 2_000], &[100; 20], to, soon()).unwrap();
                sender.receive(&mut arena, Instant::now(), None).unwrap();
            }
        });
    }
}
