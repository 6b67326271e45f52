//! Streams between two sockets on one machine.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};
use std::{io, thread};

use loopback::{LOCALS, datagram, soon};
#[cfg(target_os = "linux")]
use rushes_net::Congestion;
use rushes_net::{
    Interest, NetError, Read, TcpListener, TcpOptions, TcpSocket, Waker, WriteErrorKind,
};

/// Returns options for the smallest buffers that the system allows.
fn tight() -> TcpOptions {
    TcpOptions { send_buffer: 1, receive_buffer: 1, ..TcpOptions::default() }
}

/// Returns the connecting end and the accepted end.
fn pair(options: &TcpOptions) -> (TcpSocket, TcpSocket) {
    let listener = TcpListener::bind(LOCALS[0], options).unwrap();
    let near = TcpSocket::connect(listener.local_address(), options, soon()).unwrap();
    let far = listener.accept(Some(soon()), None).unwrap().unwrap();
    (near, far)
}

/// Returns `length` octets that differ from every shifted copy of themselves.
fn noise(length: usize) -> Vec<u8> {
    (0_u32..).flat_map(|number| datagram(number, 1_021)).take(length).collect()
}

/// Reads until the end of the stream, `step` octets at a time.
fn drain(socket: &TcpSocket, step: usize) -> Vec<u8> {
    let (mut all, mut place) = (Vec::new(), vec![0; step]);
    loop {
        match socket.read(&mut place).unwrap() {
            Read::Octets(octets) => all.extend_from_slice(&place[..octets]),
            Read::End => return all,
            Read::Nothing => {
                let deadline = soon();
                assert!(socket.wait(Interest::Readable, Some(deadline), None).unwrap().readable);
            }
        }
    }
}

#[test]
fn a_megabyte_crosses_small_buffers_in_both_directions_at_once() {
    let (near, far) = pair(&tight());
    let (there, back) = (noise(1 << 20), noise((1 << 20) + 7));
    thread::scope(|scope| {
        for (socket, octets) in [(&near, &there), (&far, &back)] {
            scope.spawn(move || {
                let mut parts = [IoSlice::new(octets)];
                socket.write_all(&mut parts, Some(soon()), None).unwrap();
            });
        }
        for (socket, octets) in [(&far, &there), (&near, &back)] {
            scope.spawn(move || {
                let (mut seen, mut place) = (Vec::new(), [0; 1_000]);
                while seen.len() < octets.len() {
                    match socket.read(&mut place).unwrap() {
                        Read::Octets(count) => seen.extend_from_slice(&place[..count]),
                        Read::Nothing => {
                            socket.wait(Interest::Readable, Some(soon()), None).unwrap();
                        }
                        Read::End => break,
                    }
                }
                assert!(seen == *octets);
            });
        }
    });
}

#[test]
fn parts_of_every_size_arrive_in_their_order() {
    let (near, far) = pair(&tight());
    // There are empty parts at both ends and between others, and more parts than one system call
    // accepts.
    let sizes = [0, 0, 1, 65_536, 0, 3, 1 << 20, 4].into_iter();
    let sizes: Vec<usize> = sizes.chain((0..3_000).map(|at| at % 5)).chain([0, 0]).collect();
    let octets = noise(sizes.iter().sum());
    let mut rest = &octets[..];
    let mut parts = Vec::new();
    for size in sizes {
        let (part, after) = rest.split_at(size);
        parts.push(IoSlice::new(part));
        rest = after;
    }
    thread::scope(|scope| {
        let reader = scope.spawn(|| drain(&far, 3_001));
        near.write_all(&mut parts, Some(soon()), None).unwrap();
        near.shut_down();
        assert!(reader.join().unwrap() == octets);
    });
}

#[test]
fn writes_of_64_kib_to_a_mebibyte_arrive_whole_in_several_places() {
    let (near, far) = pair(&TcpOptions::default());
    for length in [64 << 10, 256 << 10, 1 << 20] {
        let octets = noise(length);
        let mut whole = vec![0; length];
        thread::scope(|scope| {
            scope.spawn(|| {
                let (head, tail) = octets.split_at(4);
                let mut parts = [IoSlice::new(head), IoSlice::new(tail)];
                near.write_all(&mut parts, Some(soon()), None).unwrap();
            });
            let mut filled = 0;
            while filled < length {
                let rest = &mut whole[filled..];
                let cut = rest.len().min(999);
                let (first, second) = rest.split_at_mut(cut);
                let mut places =
                    [IoSliceMut::new(&mut []), IoSliceMut::new(first), IoSliceMut::new(second)];
                far.set_low_water(length - filled);
                match far.read_vectored(&mut places).unwrap() {
                    Read::Octets(count) => filled += count,
                    Read::Nothing => {
                        let ready = far.wait(Interest::Readable, Some(soon()), None).unwrap();
                        assert!(ready.readable);
                    }
                    Read::End => panic!("unexpected end of the stream"),
                }
            }
        });
        assert!(whole == octets, "{length}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_wants_more_is_not_woken_for_less() {
    let (near, far) = pair(&TcpOptions::default());
    let arrived = |octets: usize, deadline: Instant| {
        near.write_all(&mut [IoSlice::new(&vec![1; octets])], Some(soon()), None).unwrap();
        far.wait(Interest::Readable, Some(deadline), None).unwrap().readable
    };
    far.set_low_water(1_000);
    let briefly = || Instant::now() + Duration::from_millis(20);
    assert!(!arrived(999, briefly()));
    assert!(arrived(1, soon()));
    // The end of the stream counts at any length.
    far.set_low_water(5_000);
    assert!(!arrived(1, briefly()));
    near.shut_down();
    assert!(far.wait(Interest::Readable, Some(soon()), None).unwrap().readable);
    assert_eq!(drain(&far, 4_096).len(), 1_001);
}

#[test]
fn a_peer_that_closes_midway_ends_reading_and_breaks_writing() {
    let (near, far) = pair(&tight());
    near.write_all(&mut [IoSlice::new(b"half of i")], Some(soon()), None).unwrap();
    drop(near);
    assert_eq!(drain(&far, 4), b"half of i");
    assert_eq!(far.read(&mut [0]).unwrap(), Read::End);
    let octets = vec![7; 1 << 20];
    let error = far.write_all(&mut [IoSlice::new(&octets)], Some(soon()), None).unwrap_err();
    assert!(matches!(error.kind, WriteErrorKind::Failed(NetError::Broken { .. })), "{error}");
    assert!(error.written < 1 << 20);
}

#[test]
fn unread_octets_of_a_closed_peer_break_the_connection() {
    let (near, far) = pair(&TcpOptions::default());
    near.write_all(&mut [IoSlice::new(b"never read")], Some(soon()), None).unwrap();
    assert!(far.wait(Interest::Readable, Some(soon()), None).unwrap().readable);
    let peer = far.local_address();
    drop(far);
    assert!(near.wait(Interest::Both, Some(soon()), None).unwrap().writable);
    while near.read(&mut [0]).is_ok_and(|read| read == Read::Nothing) {}
    let error = near.write_some(&[IoSlice::new(b"x")]).unwrap_err();
    assert!(matches!(error, NetError::Broken { peer: named, .. } if named == peer), "{error}");
}

#[test]
fn a_writer_whose_peer_does_not_read_stops_at_the_deadline_and_can_go_on() {
    let (near, far) = pair(&tight());
    let octets = noise(1 << 20);
    let deadline = Instant::now() + Duration::from_millis(20);
    let error = near.write_all(&mut [IoSlice::new(&octets)], Some(deadline), None).unwrap_err();
    assert!(matches!(error.kind, WriteErrorKind::Deadline), "{error}");
    assert!(error.written > 0 && error.written < octets.len(), "{error}");
    assert_eq!(near.write_some(&[IoSlice::new(&octets[error.written..])]).unwrap(), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rest = [IoSlice::new(&octets[error.written..])];
            near.write_all(&mut rest, Some(soon()), None).unwrap();
            near.shut_down();
        });
        assert!(drain(&far, 10_000) == octets);
    });
}

#[test]
fn nothing_comes_to_a_wait_and_to_a_listener_at_the_deadline() {
    let (near, _far) = pair(&TcpOptions::default());
    let deadline = Instant::now() + Duration::from_millis(5);
    while Instant::now() < deadline {
        let ready = near.wait(Interest::Readable, Some(deadline), None).unwrap();
        assert!(!ready.writable && !ready.woken);
        assert_eq!(near.read(&mut [0]).unwrap(), Read::Nothing);
    }
    let listener = TcpListener::bind(LOCALS[0], &TcpOptions::default()).unwrap();
    let deadline = Instant::now() + Duration::from_millis(5);
    assert!(listener.accept(Some(deadline), None).unwrap().is_none());
    assert!(Instant::now() >= deadline);
    // With a deadline in the past it does not wait, but accepts a waiting connection.
    let near = TcpSocket::connect(listener.local_address(), &TcpOptions::default(), soon());
    let near = near.unwrap();
    let far = listener.accept(Some(deadline), None).unwrap().unwrap();
    assert_eq!(far.peer_address(), near.local_address());
    assert_eq!(near.peer_address(), far.local_address());
}

#[test]
fn a_wake_ends_accepting_waiting_and_writing() {
    let (near, far) = pair(&tight());
    let listener = TcpListener::bind(LOCALS[0], &tight()).unwrap();
    let octets = vec![0; 8 << 20];
    let (turn, turns) = std::sync::mpsc::channel();
    let waker = Waker::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for () in turns {
                thread::sleep(Duration::from_millis(2));
                waker.wake();
            }
        });
        turn.send(()).unwrap();
        assert!(listener.accept(None, Some(&waker)).unwrap().is_none());
        turn.send(()).unwrap();
        let mut woken = false;
        while !woken {
            woken = far.wait(Interest::Readable, None, Some(&waker)).unwrap().woken;
        }
        turn.send(()).unwrap();
        let error = near.write_all(&mut [IoSlice::new(&octets)], None, Some(&waker)).unwrap_err();
        assert!(matches!(error.kind, WriteErrorKind::Woken), "{error}");
        drop(turn);
    });
    // A wake before the call also counts, but a waiting connection is returned first.
    waker.wake();
    let _other = TcpSocket::connect(listener.local_address(), &tight(), soon()).unwrap();
    assert!(listener.accept(None, Some(&waker)).unwrap().is_some());
    assert!(listener.accept(None, Some(&waker)).unwrap().is_none());
}

#[test]
fn shutting_down_ends_the_wait_of_another_thread() {
    let (near, far) = pair(&TcpOptions::default());
    thread::scope(|scope| {
        let reader = scope.spawn(|| drain(&near, 16));
        near.shut_down();
        assert!(reader.join().unwrap().is_empty());
    });
    assert!(drain(&far, 16).is_empty());
    near.shut_down();
    assert!(near.write_some(&[IoSlice::new(b"x")]).is_err());
}

#[test]
fn an_empty_place_is_not_the_end() {
    let (near, far) = pair(&TcpOptions::default());
    assert_eq!(far.read(&mut []).unwrap(), Read::Octets(0));
    assert_eq!(far.read_vectored(&mut []).unwrap(), Read::Octets(0));
    assert_eq!(far.read_vectored(&mut [IoSliceMut::new(&mut [])]).unwrap(), Read::Octets(0));
    near.write_all(&mut [], Some(soon()), None).unwrap();
    near.write_all(&mut [IoSlice::new(&[])], Some(soon()), None).unwrap();
    assert_eq!(far.read(&mut [0]).unwrap(), Read::Nothing);
}

#[test]
fn a_connection_to_a_port_without_a_listener_is_refused() {
    let options = TcpOptions::default();
    let listener = TcpListener::bind(LOCALS[0], &options).unwrap();
    let address = listener.local_address();
    let error = TcpListener::bind(address, &options).unwrap_err();
    assert!(matches!(error, NetError::AddressInUse { .. }), "{error}");
    drop(listener);
    let error = TcpSocket::connect(address, &options, soon()).unwrap_err();
    let NetError::Connect { peer, source } = error else { panic!("{error}") };
    assert_eq!((peer, source.kind()), (address, io::ErrorKind::ConnectionRefused));
}

#[test]
fn both_ip_versions_connect() {
    for local in LOCALS {
        let options = TcpOptions::default();
        let listener = match TcpListener::bind(local, &options) {
            Ok(listener) => listener,
            Err(error) if local.is_ipv6() => {
                loopback::skipped::not_here(format!("this machine has no IPv6: {error}"));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let near = TcpSocket::connect(listener.local_address(), &options, soon()).unwrap();
        let far = listener.accept(Some(soon()), None).unwrap().unwrap();
        assert_eq!(near.local_address(), far.peer_address());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_buffers_are_those_granted_at_both_ends() {
    let options =
        TcpOptions { send_buffer: 100_000, receive_buffer: 150_000, ..TcpOptions::default() };
    let (near, far) = pair(&options);
    for socket in [near, far] {
        let buffers = socket.buffers();
        assert_eq!((buffers.send.requested, buffers.send.actual), (100_000, 100_000));
        assert_eq!((buffers.receive.requested, buffers.receive.actual), (150_000, 150_000));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_answer_to_congestion_is_the_first_that_the_system_allows() {
    let system = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    let system = system.trim();
    for (congestion, wanted) in [
        (Congestion::Cubic, vec!["cubic", "reno"]),
        (Congestion::Reno, vec!["reno"]),
        (Congestion::System, vec![]),
    ] {
        let (near, far) = pair(&TcpOptions { congestion, ..TcpOptions::default() });
        // Both ends use the same congestion control.
        let name = near.congestion().unwrap();
        assert_eq!(far.congestion().unwrap(), name);
        assert!(wanted.contains(&&*name) || name == system, "{congestion:?}: {name}");
        if congestion == Congestion::System {
            assert_eq!(name, system);
        }
    }
}
