//! The network between real sockets: only datagrams counted as lost are missing.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rushes_netsim::{Conditions, Loss, Path, Relay, Straying, Way};

/// A timeout that is reached only if a test hangs.
const TIMEOUT: Duration = Duration::from_secs(30);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

/// Binds two sockets to consecutive ports.
fn pair() -> [UdpSocket; 2] {
    loop {
        let first = socket();
        let port = first.local_addr().unwrap().port();
        if let Some(next) = port.checked_add(1)
            && let Ok(second) = UdpSocket::bind(("127.0.0.1", next))
        {
            second.set_read_timeout(Some(TIMEOUT)).unwrap();
            return [first, second];
        }
    }
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2000];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    (buffer[..len].to_vec(), from)
}

#[test]
fn both_ways_pass_on_both_ports() {
    let (target, client) = (pair(), pair());
    let relay = Relay::to(target[0].local_addr().unwrap()).with_control().start().unwrap();
    let first = relay.address();
    assert!(first.port().is_multiple_of(2));
    for (n, (target, client)) in target.iter().zip(&client).enumerate() {
        let to = SocketAddr::new(first.ip(), first.port() + n as u16);
        client.send_to(&[n as u8; 100], to).unwrap();
        let (came, from) = receive(target);
        assert_eq!(came, [n as u8; 100]);
        target.send_to(b"answer", from).unwrap();
        assert_eq!(receive(client), (b"answer".to_vec(), to));
    }
    let [there, back] = relay.finish();
    assert_eq!((there.sent, there.delivered, back.sent, back.delivered), (2, 2, 2, 2));
}

#[test]
fn a_tap_sees_and_changes_datagrams() {
    let (target, client) = (socket(), socket());
    let relay = Relay::to(target.local_addr().unwrap());
    let asked = std::sync::mpsc::channel();
    let relay = relay
        .tap(move |passing| {
            asked.0.send((passing.way, passing.port)).unwrap();
            passing.datagram.push(7);
            passing.datagram.len() < 4
        })
        .start()
        .unwrap();
    client.send_to(b"1", relay.address()).unwrap();
    let (came, far) = receive(&target);
    assert_eq!(came, [b'1', 7]);
    target.send_to(b"far", far).unwrap();
    target.send_to(b"22", far).unwrap();
    assert_eq!(receive(&client).0, [b'2', b'2', 7]);
    let ways: Vec<_> = asked.1.try_iter().collect();
    assert_eq!(ways, [(Way::There, 0), (Way::Back, 0), (Way::Back, 0)]);
    assert_eq!(relay.statistics(Way::Back).sent, 1);
}

#[test]
fn a_target_may_speak_first_to_a_client_that_is_known() {
    let (target, client) = (socket(), socket());
    let relay = Relay::to(target.local_addr().unwrap()).client(client.local_addr().unwrap());
    let relay = relay.start().unwrap();
    target.send_to(b"first", relay.far_address()).unwrap();
    assert_eq!(receive(&client), (b"first".to_vec(), relay.address()));
}

#[test]
fn everything_comes_that_is_not_counted_lost() {
    const COUNT: u64 = 2000;
    let (target, client) = (socket(), socket());
    let path = Path {
        delay: Duration::from_millis(10),
        loss: Loss::bursts(0.1, 4.0, 10),
        duplication: Straying::places(0.05, 0..=100),
        reordering: Straying::places(0.05, 0..=100),
        ..Path::default()
    };
    let address = target.local_addr().unwrap();
    let relay = Relay::to(address);
    let relay = relay.conditions(Conditions::there(path)).seed(5).start().unwrap();
    let read = Arc::new(AtomicU64::new(0));
    let counter = read.clone();
    let reading = std::thread::spawn(move || {
        let (mut came, mut all) = (HashSet::new(), 0);
        loop {
            let (datagram, _) = receive(&target);
            let Ok(number) = <[u8; 8]>::try_from(&datagram[..]) else { return (came, all) };
            came.insert(u64::from_be_bytes(number));
            all += 1;
            counter.store(all, Ordering::Release);
        }
    });
    for n in 0..COUNT {
        client.send_to(&n.to_be_bytes(), relay.address()).unwrap();
        // The number of datagrams in flight is limited to what the sockets can hold.
        let waits = || {
            let there = relay.statistics(Way::There);
            let unread = there.delivered.saturating_sub(read.load(Ordering::Acquire));
            n - there.sent.min(n) + there.in_flight() + unread
        };
        while waits() > 100 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let [there, _] = relay.finish();
    client.send_to(b"end", address).unwrap();
    let (came, all) = reading.join().unwrap();
    assert_eq!((there.sent, came.len() as u64), (COUNT, COUNT - there.lost));
    assert_eq!(all, there.delivered);
    assert!(there.lost > 50 && there.duplicated > 30, "{there:?}");
}

#[test]
fn a_new_address_differs_and_the_old_one_still_receives() {
    let (target, client) = (socket(), socket());
    let relay = Relay::to(target.local_addr().unwrap()).start().unwrap();
    client.send_to(b"before", relay.address()).unwrap();
    let (_, before) = receive(&target);
    relay.new_address(Way::There);
    client.send_to(b"after", relay.address()).unwrap();
    let (came, after) = receive(&target);
    assert_eq!(came, b"after");
    assert_ne!(before, after);
    for from in [before, after] {
        target.send_to(b"answer", from).unwrap();
        assert_eq!(receive(&client).1, relay.address());
    }
}

#[test]
fn datagrams_in_flight_at_the_end_are_delivered() {
    let (target, client) = (socket(), socket());
    let path = Path { delay: Duration::from_millis(200), ..Path::default() };
    let relay = Relay::to(target.local_addr().unwrap());
    let relay = relay.conditions(Conditions::there(path)).start().unwrap();
    for _ in 0..20 {
        client.send_to(&[9; 1200], relay.address()).unwrap();
    }
    let [there, _] = relay.finish();
    assert_eq!((there.sent, there.delivered), (20, 20));
    for _ in 0..20 {
        assert_eq!(receive(&target).0.len(), 1200);
    }
}
