//! Many sockets, waited for together; and datagrams to many destinations, sent together.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_net::{Found, PollSet, SendErrorKind, SendPath, SocketOptions, UdpSocket};

const ANY: &str = "127.0.0.1:0";

fn bind(options: &SocketOptions) -> UdpSocket {
    UdpSocket::bind(ANY.parse().unwrap(), options).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[test]
fn a_set_reports_the_sockets_that_are_ready_and_no_longer_those_that_left() {
    let options = SocketOptions::default();
    let sockets: Vec<UdpSocket> = (0..200).map(|_| bind(&options)).collect();
    let set = PollSet::new().unwrap();
    for (key, socket) in sockets.iter().enumerate() {
        set.add(socket, key as u64).unwrap();
    }
    let sender = bind(&options);
    let mut queue = sender.send_queue();
    for key in [7, 70, 170] {
        sender.send(&mut queue, b"x", &[1], sockets[key].local_address(), soon()).unwrap();
    }
    let mut found = Found::default();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        set.wait(&mut found, soon()).unwrap();
        for key in &found.ready {
            let socket = &sockets[usize::try_from(*key).unwrap()];
            let mut arena = socket.arena();
            if !socket.receive(&mut arena, Instant::now(), None).unwrap().is_empty() {
                seen.push(*key);
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [7, 70, 170]);
    set.remove(&sockets[7], 7);
    sender.send(&mut queue, b"x", &[1], sockets[7].local_address(), soon()).unwrap();
    set.waker().wake();
    set.wait(&mut found, soon()).unwrap();
    assert!(found.woken && !found.ready.contains(&7), "{found:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_descriptor_of_a_set_is_readable_when_a_socket_is_and_by_time() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::os::fd::AsFd;
    let set = PollSet::new().unwrap();
    let is_readable = |seconds| {
        let mut events = [PollFd::new(&set, PollFlags::IN)];
        let timeout = Timespec { tv_sec: seconds, tv_nsec: 0 };
        poll(&mut events, Some(&timeout)).unwrap() > 0
    };
    assert!(!is_readable(0));
    set.set_timer(Some(Instant::now() + Duration::from_millis(5))).unwrap();
    assert!(is_readable(20));
    set.set_timer(None).unwrap();
    assert!(!is_readable(0));
    let (socket, sender) = (bind(&SocketOptions::default()), bind(&SocketOptions::default()));
    set.add(&socket, 1).unwrap();
    let mut queue = sender.send_queue();
    sender.send(&mut queue, b"x", &[1], socket.local_address(), soon()).unwrap();
    assert!(is_readable(20));
    let _ = set.as_fd();
}

/// Sends datagrams to four sockets in one call; returns what each has received, and the calls.
fn sent_by(send_path: SendPath) -> (Vec<Vec<Vec<u8>>>, u64) {
    let sender = bind(&SocketOptions { send_path, ..SocketOptions::default() });
    let sockets: Vec<UdpSocket> = (0..4).map(|_| bind(&SocketOptions::default())).collect();
    let (mut bytes, mut lengths, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..50_u8 {
        for (n, socket) in sockets.iter().enumerate() {
            // Runs of equal, of different, and of no datagrams.
            let count = usize::from(round) % (n + 2);
            for k in 0..count {
                let len = if n % 2 == 0 { 9 } else { 3 + k };
                bytes.extend(vec![round; len]);
                lengths.push(len as u16);
            }
            runs.push((socket.local_address(), count));
        }
    }
    let mut queue = sender.send_queue();
    sender.send_runs(&mut queue, &bytes, &lengths, &runs, soon()).unwrap();
    let received = sockets.iter().enumerate().map(|(n, socket)| {
        let all: usize = (0..50).map(|round| round % (n + 2)).sum();
        let mut arena = socket.arena();
        let mut seen = Vec::new();
        while seen.len() < all {
            let datagrams = socket.receive(&mut arena, soon(), None).unwrap();
            assert!(!datagrams.is_empty(), "{} of {all}", seen.len());
            seen.extend(datagrams.map(|datagram| datagram.data.to_vec()));
        }
        seen
    });
    let received = received.collect();
    let counters = sender.counters();
    assert_eq!(counters.sent_datagrams, lengths.len() as u64);
    (received, counters.send_calls)
}

#[test]
fn runs_to_several_destinations_arrive_in_order_by_every_path() {
    let (single, _) = sent_by(SendPath::Single);
    let (auto, calls) = sent_by(SendPath::Auto);
    assert_eq!(auto, single);
    if cfg!(target_os = "linux") {
        assert!(calls <= 8, "{calls} calls");
        assert_eq!(sent_by(SendPath::Sendmmsg).0, single);
    }
}

#[test]
fn a_datagram_that_is_refused_is_named_and_the_rest_can_be_sent() {
    let (sender, socket) = (bind(&SocketOptions::default()), bind(&SocketOptions::default()));
    let to = socket.local_address();
    let unreachable: SocketAddr = "[::1]:9".parse().unwrap();
    let mut queue = sender.send_queue();
    let runs = [(to, 2), (unreachable, 1), (to, 1)];
    let error = sender.send_runs(&mut queue, b"aabbccdd", &[2; 4], &runs, soon()).unwrap_err();
    assert_eq!(error.sent, 2, "{error}");
    sender.send_runs(&mut queue, b"dd", &[2], &[(to, 1)], soon()).unwrap();
    let mut arena = socket.arena();
    let mut seen = Vec::new();
    while seen.len() < 6 {
        for datagram in socket.receive(&mut arena, soon(), None).unwrap() {
            seen.extend_from_slice(datagram.data);
        }
    }
    assert_eq!(seen, b"aabbdd");
    let mismatch = sender.send_runs(&mut queue, b"dd", &[2], &[(to, 2)], soon()).unwrap_err();
    assert!(matches!(mismatch.kind, SendErrorKind::Mismatch { .. }));
}
