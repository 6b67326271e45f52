//! Datagrams over loopback, by every path.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_net::{
    Arena, MulticastOptions, NetError, ReceivePath, SendError, SendPath, SendQueue, SocketOptions,
    UdpSocket, Waker,
};

const SEND_PATHS: [SendPath; 3] = [SendPath::Gso, SendPath::Sendmmsg, SendPath::Single];
const RECEIVE_PATHS: [ReceivePath; 3] =
    [ReceivePath::Gro, ReceivePath::Recvmmsg, ReceivePath::Single];
const HOSTS: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn bind(host: &str, options: &SocketOptions) -> UdpSocket {
    UdpSocket::bind(host.parse().unwrap(), options).unwrap()
}

/// Datagrams of `lengths` octets, each telling its number.
fn slab(lengths: &[u16]) -> Vec<u8> {
    lengths.iter().enumerate().flat_map(|(n, len)| vec![n as u8; usize::from(*len)]).collect()
}

/// Receives `count` datagrams.
fn receive(socket: &UdpSocket, count: usize) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut arena = Arena::new(socket);
    let mut received = Vec::new();
    while received.len() < count {
        let before = received.len();
        let datagrams = socket.receive(&mut arena, soon(), None).unwrap();
        received.extend(datagrams.map(|datagram| (datagram.data.to_vec(), datagram.from)));
        assert!(received.len() > before, "{before} of {count} datagrams came");
    }
    received
}

#[test]
fn datagrams_of_every_size_arrive_whole_and_in_order_by_every_path() {
    let lengths = [1, 0, 1399, 1400, 1400, 1400, 700, 1472, 9000, 9000, 3, 1, 1, 1, 65_507];
    let slab = slab(&lengths);
    for host in HOSTS {
        for send_path in SEND_PATHS {
            for receive_path in RECEIVE_PATHS {
                let options = SocketOptions { send_path, receive_path, ..SocketOptions::default() };
                let (left, right) = (bind(host, &options), bind(host, &options));
                let to = right.local_address();
                left.send(&mut SendQueue::new(), &slab, &lengths, to, soon()).unwrap();
                let received = receive(&right, lengths.len());
                let mut rest = &slab[..];
                for ((data, from), len) in received.iter().zip(lengths) {
                    let (sent, tail) = rest.split_at(usize::from(len));
                    rest = tail;
                    assert!(data == sent, "{send_path} {receive_path}: {len} octets differ");
                    assert_eq!(*from, left.local_address());
                }
                let (sent, got) = (left.counters(), right.counters());
                assert_eq!(sent.datagrams_sent, lengths.len() as u64);
                assert_eq!(sent.octets_sent, slab.len() as u64);
                assert_eq!(got.datagrams_received, lengths.len() as u64);
                assert_eq!(got.octets_received, slab.len() as u64);
                assert_eq!(got.truncated, 0);
            }
        }
    }
}

#[test]
fn segmentation_takes_one_call_where_single_takes_one_each() {
    let lengths = [1400; 40];
    for (send_path, calls) in [(SendPath::Gso, 1), (SendPath::Sendmmsg, 1), (SendPath::Single, 40)]
    {
        let options = SocketOptions { send_path, ..SocketOptions::default() };
        let (left, right) = (bind(HOSTS[0], &options), bind(HOSTS[0], &options));
        let to = right.local_address();
        left.send(&mut SendQueue::new(), &slab(&lengths), &lengths, to, soon()).unwrap();
        assert_eq!(left.counters().send_calls, calls, "{send_path}");
        assert_eq!(receive(&right, 40).len(), 40);
    }
}

#[test]
fn a_port_in_use_is_an_error_that_names_it() {
    let first = bind(HOSTS[0], &SocketOptions::default());
    let address = first.local_address();
    let error = UdpSocket::bind(address, &SocketOptions::default()).unwrap_err();
    assert!(matches!(error, NetError::AddressInUse { address: in_use } if in_use == address));
}

#[test]
fn an_address_of_another_host_is_an_error() {
    let address = "192.0.2.1:0".parse().unwrap();
    let error = UdpSocket::bind(address, &SocketOptions::default()).unwrap_err();
    assert!(error.to_string().contains("192.0.2.1"), "{error}");
}

#[test]
fn a_closed_port_does_not_stop_the_sender() {
    let left = bind(HOSTS[0], &SocketOptions::default());
    let closed = bind(HOSTS[0], &SocketOptions::default()).local_address();
    left.connect(closed).unwrap();
    let mut queue = SendQueue::new();
    for _ in 0..20 {
        left.send(&mut queue, b"anyone?", &[7], closed, soon()).unwrap();
    }
    let counters = left.counters();
    assert_eq!(counters.datagrams_sent, 20);
    assert!(counters.refused > 0, "the host never said that the port is closed");
    let past = Instant::now();
    let mut arena = Arena::new(&left);
    assert_eq!(left.receive(&mut arena, past, None).unwrap().count(), 0);
}

#[test]
fn a_datagram_that_cannot_leave_is_explained() {
    for send_path in SEND_PATHS {
        let options = SocketOptions { send_path, ..SocketOptions::default() };
        let left = bind(HOSTS[0], &options);
        let lengths = [100, 65_520];
        let to = bind(HOSTS[0], &options).local_address();
        let error =
            left.send(&mut SendQueue::new(), &slab(&lengths), &lengths, to, soon()).unwrap_err();
        assert!(matches!(error, SendError::TooLarge { len: 65_520, sent: 1 }), "{error:?}");
        assert!(error.to_string().contains("lower the MTU"), "{error}");
    }
}

#[test]
fn a_small_send_buffer_still_sends_whole_batches() {
    let options = SocketOptions { send_buffer: 2048, ..SocketOptions::default() };
    let left = bind(HOSTS[0], &options);
    let right = bind(HOSTS[0], &SocketOptions::default());
    let lengths = [1400; 46];
    for _ in 0..20 {
        let to = right.local_address();
        left.send(&mut SendQueue::new(), &slab(&lengths), &lengths, to, soon()).unwrap();
        assert_eq!(receive(&right, 46).len(), 46);
    }
}

#[test]
fn buffers_are_read_back() {
    let options = SocketOptions { receive_buffer: 300_000, ..SocketOptions::default() };
    let buffers = bind(HOSTS[0], &options).buffers();
    assert_eq!(buffers.receive_asked, 300_000);
    assert!(buffers.receive > 100_000, "{buffers:?}");
}

#[test]
fn a_wait_ends_at_its_deadline_and_when_woken() {
    let socket = bind(HOSTS[0], &SocketOptions::default());
    let mut arena = Arena::new(&socket);
    let deadline = Instant::now() + Duration::from_millis(20);
    assert_eq!(socket.receive(&mut arena, deadline, None).unwrap().count(), 0);
    assert!(Instant::now() >= deadline);
    let waker = Waker::new().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| waker.wake());
        let far = Instant::now() + Duration::from_secs(600);
        assert_eq!(socket.receive(&mut arena, far, Some(&waker)).unwrap().count(), 0);
    });
}

#[test]
fn an_overrun_is_counted_by_the_kernel() {
    let options = SocketOptions { receive_buffer: 4096, ..SocketOptions::default() };
    let left = bind(HOSTS[0], &options);
    let right = bind(HOSTS[0], &options);
    let lengths = [1000; 40];
    for _ in 0..20 {
        let to = right.local_address();
        left.send(&mut SendQueue::new(), &slab(&lengths), &lengths, to, soon()).unwrap();
    }
    if cfg!(target_os = "linux") {
        assert!(right.counters().kernel_drops > 0);
    }
}

#[test]
fn a_multicast_group_hears_its_members() {
    let group: std::net::IpAddr = "239.255.77.1".parse().unwrap();
    let multicast = MulticastOptions {
        interface: Some("127.0.0.1".parse().unwrap()),
        ..MulticastOptions::new(group)
    };
    let options = SocketOptions { multicast: Some(multicast), ..SocketOptions::default() };
    let any: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let first = match UdpSocket::bind(any, &options) {
        Ok(socket) => socket,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let second = UdpSocket::bind(first.local_address(), &options).unwrap();
    let to = SocketAddr::new(group, first.local_address().port());
    first.send(&mut SendQueue::new(), b"hello", &[5], to, soon()).unwrap();
    for member in [&first, &second] {
        assert_eq!(receive(member, 1)[0].0, b"hello");
    }
}
