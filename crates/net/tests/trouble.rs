//! The behaviour of a socket under errors and other obstacles.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

#[cfg(target_os = "linux")]
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use loopback::{LOCALS, collect, datagram, pair, soon};
use rushes_net::{
    MulticastOptions, NetError, SendErrorKind, SendPath, SocketOptions, UdpSocket, Waker,
};

#[test]
fn a_port_in_use_is_named() {
    let options = SocketOptions::default();
    let first = UdpSocket::bind(LOCALS[0], &options).unwrap();
    let error = UdpSocket::bind(first.local_address(), &options).unwrap_err();
    let NetError::AddressInUse { address } = error else { panic!("{error}") };
    assert_eq!(address, first.local_address());
}

#[test]
fn two_sockets_share_a_port_if_both_say_so() {
    let options = SocketOptions { reuse_address: true, ..SocketOptions::default() };
    let first = UdpSocket::bind(LOCALS[0], &options).unwrap();
    UdpSocket::bind(first.local_address(), &options).unwrap();
}

#[test]
fn an_address_of_another_machine_cannot_be_bound() {
    let elsewhere: SocketAddr = "203.0.113.9:0".parse().unwrap();
    let error = UdpSocket::bind(elsewhere, &SocketOptions::default()).unwrap_err();
    assert!(matches!(error, NetError::AddressNotAvailable { .. }), "{error}");
}

#[test]
fn a_code_point_beyond_six_bits_is_refused_and_one_within_is_set() {
    for local in LOCALS {
        let with = |dscp| SocketOptions { dscp: Some(dscp), ..SocketOptions::default() };
        let Some(_) = pair(local, &SocketOptions::default()) else { continue };
        let error = UdpSocket::bind(local, &with(64)).unwrap_err();
        assert!(matches!(error, NetError::Range { value: 64, .. }), "{error}");
        if local.is_ipv4() || cfg!(target_os = "linux") {
            UdpSocket::bind(local, &with(46)).unwrap();
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_port_is_counted_and_does_not_stop_sending() {
    for local in LOCALS {
        for send_path in [SendPath::Gso, SendPath::Sendmmsg, SendPath::Single] {
            let options = SocketOptions { send_path, ..SocketOptions::default() };
            let Some((sender, receiver)) = pair(local, &options) else { continue };
            let to = receiver.local_address();
            sender.connect(to).unwrap();
            drop(receiver);
            let mut queue = sender.send_queue();
            for _ in 0..3 {
                sender.send(&mut queue, &[7; 2_000], &[100; 20], to, soon()).unwrap();
            }
            assert!(sender.counters().refused > 0, "{:?}", sender.counters());

            // The last ICMP error is still pending and must not cost the next datagram anything.
            let receiver = UdpSocket::bind(to, &options).unwrap();
            sender.send(&mut queue, b"again", &[5], to, soon()).unwrap();
            assert_eq!(collect(&receiver, 1)[0].0, b"again");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_port_is_counted_without_a_connection_and_no_wait_ends_by_it() {
    for local in LOCALS {
        for send_path in [SendPath::Gso, SendPath::Sendmmsg, SendPath::Single] {
            let options = SocketOptions { send_path, ..SocketOptions::default() };
            let Some((sender, receiver)) = pair(local, &options) else { continue };
            sender.enable_refusals();
            let to = receiver.local_address();
            drop(receiver);
            let (mut queue, mut arena) = (sender.send_queue(), sender.arena());
            for _ in 0..3 {
                sender.send(&mut queue, &[7; 2_000], &[100; 20], to, soon()).unwrap();
            }
            let until = Instant::now() + Duration::from_millis(100);
            assert!(sender.receive(&mut arena, until, None).unwrap().is_empty());
            assert!(Instant::now() >= until);
            let counters = sender.counters();
            assert!(counters.refused >= 3, "{counters:?}");
            assert!(counters.wait_calls < 10, "a wait ends at once: {counters:?}");

            let receiver = UdpSocket::bind(to, &options).unwrap();
            sender.send(&mut queue, b"again", &[5], to, soon()).unwrap();
            assert_eq!(collect(&receiver, 1)[0].0, b"again");
        }
    }
}

#[test]
fn a_datagram_beyond_the_path_is_too_large_on_a_socket_that_counts_refusals() {
    let options = SocketOptions { forbid_fragments: true, ..SocketOptions::default() };
    let sender = UdpSocket::bind(LOCALS[0], &options).unwrap();
    sender.enable_refusals();
    let datagram = vec![0; usize::from(u16::MAX)];
    let outcome = sender.send(
        &mut sender.send_queue(),
        &datagram,
        &[u16::MAX],
        sender.local_address(),
        soon(),
    );
    let error = outcome.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::TooLarge { .. }), "{error}");
}

#[test]
fn a_connected_socket_receives_only_from_its_peer_and_keeps_it() {
    let options = SocketOptions::default();
    let (sender, receiver) = pair(LOCALS[0], &options).unwrap();
    let stranger = UdpSocket::bind(LOCALS[0], &options).unwrap();
    receiver.connect(sender.local_address()).unwrap();
    receiver.connect(sender.local_address()).unwrap();
    let error = receiver.connect(stranger.local_address()).unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error}");

    let to = receiver.local_address();
    stranger.send(&mut stranger.send_queue(), b"no", &[2], to, soon()).unwrap();
    sender.send(&mut sender.send_queue(), b"yes", &[3], to, soon()).unwrap();
    assert_eq!(collect(&receiver, 1)[0].0, b"yes");
}

#[test]
fn a_datagram_too_large_for_udp_is_explained_and_the_others_go() {
    for send_path in [SendPath::Auto, SendPath::Single] {
        let options = SocketOptions { send_path, ..SocketOptions::default() };
        let (sender, receiver) = pair(LOCALS[0], &options).unwrap();
        let to = receiver.local_address();
        let lengths = [100, 100, 65_535, 100];
        let bytes = vec![1; 65_835];
        let error =
            sender.send(&mut sender.send_queue(), &bytes, &lengths, to, soon()).unwrap_err();
        assert_eq!(error.sent, 2);
        assert!(matches!(error.kind, SendErrorKind::TooLarge { length: 65_535, .. }), "{error}");
        assert!(error.to_string().contains("lower the MTU"), "{error}");
        assert_eq!(collect(&receiver, 2).len(), 2);
        assert_ne!(sender.send_path(), SendPath::Auto);
    }
}

#[test]
fn lengths_that_do_not_add_up_send_nothing() {
    let (sender, receiver) = pair(LOCALS[0], &SocketOptions::default()).unwrap();
    let to = receiver.local_address();
    let error = sender.send(&mut sender.send_queue(), b"abc", &[2], to, soon()).unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::Mismatch { lengths: 2, bytes: 3 }), "{error}");
    assert_eq!(sender.counters().sent_datagrams, 0);
}

#[test]
fn a_tiny_send_buffer_keeps_whole_batches() {
    for local in LOCALS {
        for send_path in [SendPath::Auto, SendPath::Single] {
            let options = SocketOptions { send_path, send_buffer: 1, ..SocketOptions::default() };
            let Some((sender, receiver)) = pair(local, &options) else { continue };
            let lengths = [1400_u16; 90];
            let sent: Vec<Vec<u8>> = (0..90).map(|at| datagram(at, 1400)).collect();
            let to = receiver.local_address();
            let mut queue = sender.send_queue();
            sender.send(&mut queue, &sent.concat(), &lengths, to, soon()).unwrap();
            let received: Vec<Vec<u8>> =
                collect(&receiver, 90).into_iter().map(|(data, _)| data).collect();
            assert!(received == sent, "{send_path}: {} of 90 arrived", received.len());
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_granted_buffers_can_be_read_back() {
    let options =
        SocketOptions { send_buffer: 100_000, receive_buffer: 0, ..SocketOptions::default() };
    let socket = UdpSocket::bind(LOCALS[0], &options).unwrap();
    let buffers = socket.buffers();
    assert_eq!(buffers.send.requested, 100_000);
    assert_eq!(buffers.send.actual, 100_000);
    assert_eq!(buffers.receive.requested, 0);
    assert!(buffers.receive.actual > 0);
}

#[test]
fn a_wake_ends_a_blocked_receive() {
    let socket = Arc::new(UdpSocket::bind(LOCALS[0], &SocketOptions::default()).unwrap());
    let waker = Arc::new(Waker::new().unwrap());
    let far = Instant::now() + Duration::from_secs(600);
    let thread = thread::spawn({
        let (socket, waker) = (Arc::clone(&socket), Arc::clone(&waker));
        move || {
            let mut arena = socket.arena();
            // Received twice, because a wake is consumed by the call that it ends.
            (0..2).all(|_| socket.receive(&mut arena, far, Some(&waker)).unwrap().is_empty())
        }
    });
    waker.wake();
    while !thread.is_finished() {
        thread::sleep(Duration::from_millis(1));
        waker.wake();
    }
    assert!(thread.join().unwrap());
}

#[test]
fn a_wake_waits_for_the_datagrams_before_it_and_is_not_lost() {
    let (sender, receiver) = pair(LOCALS[0], &SocketOptions::default()).unwrap();
    let waker = Waker::new().unwrap();
    let to = receiver.local_address();
    let (next_round, rounds) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut queue = sender.send_queue();
            for () in rounds {
                sender.send(&mut queue, b"x", &[1], to, soon()).unwrap();
                waker.wake();
            }
        });
        let mut arena = receiver.arena();
        for round in 0..300 {
            next_round.send(()).unwrap();
            let deadline = soon();
            let datagrams = receiver.receive(&mut arena, deadline, Some(&waker)).unwrap().len();
            assert_eq!(datagrams, 1, "round {round}");
            let datagrams = receiver.receive(&mut arena, deadline, Some(&waker)).unwrap().len();
            assert_eq!(datagrams, 0, "round {round}");
            assert!(Instant::now() < deadline, "the wake of round {round} was lost");
        }
        drop(next_round);
    });
}

#[test]
fn a_socket_for_ipv6_leaves_the_port_of_ipv4_alone() {
    let options = SocketOptions::default();
    // Another process may have the same IPv4 port.
    let is_left_alone = (0..5).any(|_| {
        let Some((v6, _)) = pair("[::]:0".parse().unwrap(), &options) else { return true };
        let v4 = SocketAddr::from(([0, 0, 0, 0], v6.local_address().port()));
        UdpSocket::bind(v4, &options).is_ok()
    });
    assert!(is_left_alone);
}

#[test]
fn nothing_comes_at_the_deadline() {
    let socket = UdpSocket::bind(LOCALS[0], &SocketOptions::default()).unwrap();
    let mut arena = socket.arena();
    let deadline = Instant::now() + Duration::from_millis(5);
    assert!(socket.receive(&mut arena, deadline, None).unwrap().is_empty());
    assert!(Instant::now() >= deadline);
    // With a deadline in the past it does not wait.
    let waits = socket.counters().wait_calls;
    assert!(socket.receive(&mut arena, deadline, None).unwrap().is_empty());
    assert_eq!(socket.counters().wait_calls, waits);
}

/// Returns whether this machine can join the group, tested with plain sockets.
#[cfg(target_os = "linux")]
fn multicast_works(group: IpAddr) -> bool {
    let any = SocketAddr::new(LOCALS[usize::from(group.is_ipv6())].ip(), 0);
    let attempt = || -> std::io::Result<()> {
        let socket = std::net::UdpSocket::bind(any)?;
        match group {
            IpAddr::V4(group) => socket.join_multicast_v4(&group, &"127.0.0.1".parse().unwrap()),
            IpAddr::V6(group) => socket.join_multicast_v6(&group, 1),
        }
    };
    attempt()
        .inspect_err(|error| {
            loopback::skipped::not_here(format!("{group} cannot be joined: {error}"));
        })
        .is_ok()
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_sent_to_a_group_arrives_at_each_of_its_receivers() {
    use rushes_net::Interface;
    let cases = [
        ("239.255.77.1", "0.0.0.0:0", Some(Interface::Address("127.0.0.1".parse().unwrap()))),
        ("239.255.77.2", "0.0.0.0:0", Some(Interface::Name("lo".to_owned()))),
        ("ff01::7:1", "[::]:0", Some(Interface::Name("lo".to_owned()))),
    ];
    for (group, any, interface) in cases {
        let group: IpAddr = group.parse().unwrap();
        if !multicast_works(group) {
            continue;
        }
        let multicast = MulticastOptions { interface, ..MulticastOptions::new(group) };
        let options = SocketOptions { multicast: Some(multicast), ..SocketOptions::default() };
        let first = UdpSocket::bind(any.parse().unwrap(), &options).unwrap();
        let port = first.local_address().port();
        let same: SocketAddr = SocketAddr::new(first.local_address().ip(), port);
        let second = UdpSocket::bind(same, &options).unwrap();
        let sender = UdpSocket::bind(any.parse().unwrap(), &options).unwrap();
        let to = SocketAddr::new(group, port);
        let sent =
            sender.send(&mut sender.send_queue(), &[5; 3000], &[1400, 1400, 200], to, soon());
        match sent {
            Ok(()) => {}
            // Loopback devices seldom have a route for IPv6 groups.
            Err(error) if group.is_ipv6() => {
                loopback::skipped::not_here(format!("no route to {group}: {error}"));
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        for receiver in [first, second] {
            let lengths: Vec<usize> =
                collect(&receiver, 3).iter().map(|(data, _)| data.len()).collect();
            assert_eq!(lengths, [1400, 1400, 200], "{group}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_group_is_received_from_its_sources_alone() {
    use rushes_net::Interface;
    let lo = || Interface::Name("lo".to_owned());
    for (group, interface, source, other) in [
        (
            "232.255.77.1",
            Interface::Address("127.0.0.1".parse().unwrap()),
            "127.0.0.2",
            "127.0.0.1",
        ),
        ("232.255.77.2", lo(), "127.0.0.2", "127.0.0.1"),
        ("ff31::7:1", lo(), "::1", "2001:db8::7"),
    ] {
        let group: IpAddr = group.parse().unwrap();
        if !multicast_works(group) {
            continue;
        }
        let options = |sources: &[&str]| {
            let sources = sources.iter().map(|it| it.parse().unwrap()).collect();
            let interface = Some(interface.clone());
            let multicast = MulticastOptions { sources, interface, ..MulticastOptions::new(group) };
            SocketOptions { multicast: Some(multicast), ..SocketOptions::default() }
        };
        let any: SocketAddr = if group.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().unwrap();
        let of_source = UdpSocket::bind(any, &options(&[source])).unwrap();
        let local = SocketAddr::new(any.ip(), of_source.local_address().port());
        let of_other = UdpSocket::bind(local, &options(&[other])).unwrap();
        let of_both = UdpSocket::bind(local, &options(&[other, source])).unwrap();
        let to = SocketAddr::new(group, local.port());
        let sender = SocketAddr::new(source.parse().unwrap(), 0);
        let sender = UdpSocket::bind(sender, &options(&[])).unwrap();
        match sender.send(&mut sender.send_queue(), &[5; 100], &[100], to, soon()) {
            Ok(()) => {}
            Err(error) if group.is_ipv6() => {
                loopback::skipped::not_here(format!("no route to {group}: {error}"));
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        for receiver in [&of_source, &of_both] {
            let from: Vec<IpAddr> = collect(receiver, 1).iter().map(|(_, it)| it.ip()).collect();
            assert_eq!(from, [sender.local_address().ip()], "{group}");
        }
        // What loopback delivers has arrived when the call to send returns.
        let mut arena = of_other.arena();
        assert!(of_other.receive(&mut arena, Instant::now(), None).unwrap().is_empty(), "{group}");
    }
}

#[test]
fn a_source_is_a_host_of_the_groups_family() {
    for source in ["::1", "239.1.2.3"] {
        let sources = vec![source.parse().unwrap()];
        let group = "232.255.77.3".parse().unwrap();
        let multicast = MulticastOptions { sources, ..MulticastOptions::new(group) };
        let options = SocketOptions { multicast: Some(multicast), ..SocketOptions::default() };
        let error = UdpSocket::bind(LOCALS[0], &options).unwrap_err();
        assert!(matches!(error, NetError::NotASource { .. }), "{error}");
    }
}

#[test]
fn a_unicast_address_is_not_a_group() {
    for group in ["192.0.2.1", "ff02::1"] {
        let multicast = MulticastOptions::new(group.parse().unwrap());
        let options = SocketOptions { multicast: Some(multicast), ..SocketOptions::default() };
        let error = UdpSocket::bind(LOCALS[0], &options).unwrap_err();
        assert!(matches!(error, NetError::NotAGroup { .. }), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_unknown_interface_is_named() {
    let name = "no-such-if0".to_owned();
    let options = SocketOptions { interface: Some(name.clone()), ..SocketOptions::default() };
    match UdpSocket::bind(LOCALS[0], &options).unwrap_err() {
        NetError::UnknownInterface { name: named } => assert_eq!(named, name),
        // Some systems allow the option only to the administrator.
        error => assert!(matches!(error, NetError::Option { option: "interface", .. }), "{error}"),
    }
}

#[test]
fn one_socket_serves_several_threads() {
    let (sender, receiver) = pair(LOCALS[0], &SocketOptions::default()).unwrap();
    let to = receiver.local_address();
    let seen = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut queue = sender.send_queue();
                for _ in 0..20 {
                    sender.send(&mut queue, &[9; 600], &[300; 2], to, soon()).unwrap();
                }
            });
        }
        scope.spawn(|| *seen.lock().unwrap() = collect(&receiver, 80).len());
    });
    assert_eq!(*seen.lock().unwrap(), 80);
}
