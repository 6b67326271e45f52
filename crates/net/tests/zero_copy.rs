//! Slabs lent to the kernel over loopback, where it copies them but sends notifications as usual.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

use std::time::Instant;

use loopback::{LOCALS, collect, datagram, pair, soon};
use rushes_net::{Loan, SendErrorKind, SendPath, SendQueue, SocketOptions, UdpSocket};

const SLAB: usize = 65_000;

fn lending() -> SocketOptions {
    SocketOptions { zero_copy: true, ..SocketOptions::default() }
}

/// Returns a slab with datagrams of these lengths, from octet `start` on.
fn loan(number: usize, start: usize, lengths: &[u16]) -> Loan {
    let mut slab = vec![0xee; start];
    (0..).zip(lengths).for_each(|(at, &len)| slab.extend(datagram(at, len)));
    slab.resize(slab.len().max(SLAB), 0xee);
    Loan { slab: slab.into(), start, number }
}

/// Asserts that datagrams of these lengths arrive, with the contents from [`loan`].
fn arrive(receiver: &UdpSocket, lengths: &[u16]) {
    let received = collect(receiver, lengths.len());
    assert_eq!(received.len(), lengths.len());
    for (at, ((data, _), &len)) in (0..).zip(received.iter().zip(lengths)) {
        assert!(*data == datagram(at, len), "datagram {at}");
    }
}

fn reclaim(socket: &UdpSocket, queue: &mut SendQueue) -> Loan {
    socket.reclaim(queue, soon()).unwrap().unwrap()
}

#[test]
fn what_is_lent_arrives_whole_and_the_same_memory_comes_back() {
    for local in LOCALS {
        let Some((sender, receiver)) = pair(local, &lending()) else { continue };
        let (to, mut queue) = (receiver.local_address(), sender.send_queue());
        let mixed = [&[1400; 20][..], &[300], &[1400; 3], &[9; 70], &[1200; 22]].concat();
        for (number, lengths) in [&[1400; 46][..], &mixed, &[100; 3], &[]].into_iter().enumerate() {
            let loan = loan(number, 3 + number, lengths);
            let (copy, address) = (loan.clone(), loan.slab.as_ptr());
            sender.send_lent(&mut queue, loan, lengths, to, soon()).unwrap();
            assert_eq!(queue.away(), 1);
            arrive(&receiver, lengths);
            let back = reclaim(&sender, &mut queue);
            assert_eq!(back.slab.as_ptr(), address);
            assert!(back == copy, "slab {number}");
            assert_eq!(queue.away(), 0);
            assert!(sender.reclaim(&mut queue, soon()).unwrap().is_none());
        }
        let counters = sender.counters();
        assert_eq!(counters.sent_datagrams, 46 + mixed.len() as u64 + 3);
        if cfg!(target_os = "linux") {
            assert!(sender.zero_copy());
            assert_eq!(counters.lent, 3);
            assert_eq!(counters.lent_back, 3);
            assert_eq!(counters.lent_copied, 3, "the kernel copies over loopback");
            assert_eq!(counters.lent_refused, 0);
        }
    }
}

#[test]
fn a_socket_without_zero_copy_copies() {
    let (sender, receiver) = pair(LOCALS[0], &SocketOptions::default()).unwrap();
    let (to, mut queue) = (receiver.local_address(), sender.send_queue());
    assert!(!sender.zero_copy());
    sender.send_lent(&mut queue, loan(7, 0, &[1400; 46]), &[1400; 46], to, soon()).unwrap();
    assert_eq!(queue.take_returned().unwrap().number, 7);
    arrive(&receiver, &[1400; 46]);
    assert_eq!(sender.counters().lent, 0);
}

#[test]
fn other_send_paths_copy() {
    for send_path in [SendPath::Sendmmsg, SendPath::Single] {
        let options = SocketOptions { send_path, ..lending() };
        let Ok(sender) = UdpSocket::bind(LOCALS[0], &options) else { continue };
        let receiver = UdpSocket::bind(LOCALS[0], &SocketOptions::default()).unwrap();
        let (to, mut queue) = (receiver.local_address(), sender.send_queue());
        sender.send_lent(&mut queue, loan(1, 0, &[1400; 46]), &[1400; 46], to, soon()).unwrap();
        assert_eq!(queue.take_returned().unwrap().number, 1);
        arrive(&receiver, &[1400; 46]);
        assert_eq!(sender.counters().lent, 0);
    }
}

#[test]
fn lengths_beyond_the_slab_send_nothing_and_the_loan_comes_back() {
    let (sender, receiver) = pair(LOCALS[0], &lending()).unwrap();
    let (to, mut queue) = (receiver.local_address(), sender.send_queue());
    for start in [0, 2, 100] {
        let loan = Loan { slab: vec![1; 4].into(), start, number: start };
        let error = sender.send_lent(&mut queue, loan, &[5], to, soon()).unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Mismatch { lengths: 5, .. }), "{error}");
        assert_eq!(reclaim(&sender, &mut queue).number, start);
    }
    assert_eq!(sender.counters().sent_datagrams, 0);
}

#[test]
fn two_queues_of_one_socket_get_their_own_slabs_back() {
    let (sender, receiver) = pair(LOCALS[0], &lending()).unwrap();
    let to = receiver.local_address();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let sender = &sender;
            scope.spawn(move || {
                let mut queue = sender.send_queue();
                let mut loan = loan(number, 0, &[1000; 40]);
                for _ in 0..200 {
                    sender.send_lent(&mut queue, loan, &[1000; 40], to, soon()).unwrap();
                    loan = reclaim(sender, &mut queue);
                    assert_eq!(loan.number, number);
                }
            });
        }
    });
    let counters = sender.counters();
    assert_eq!(counters.sent_datagrams, 16_000);
    assert_eq!(counters.lent, counters.lent_back);
}

#[test]
fn notifications_for_a_dropped_queue_are_harmless() {
    let (sender, receiver) = pair(LOCALS[0], &lending()).unwrap();
    let to = receiver.local_address();
    let mut queue = sender.send_queue();
    sender.send_lent(&mut queue, loan(0, 0, &[1400; 46]), &[1400; 46], to, soon()).unwrap();
    drop(queue);
    let mut queue = sender.send_queue();
    sender.send_lent(&mut queue, loan(1, 0, &[1400; 46]), &[1400; 46], to, soon()).unwrap();
    assert_eq!(reclaim(&sender, &mut queue).number, 1);
    assert_eq!(sender.counters().lent, sender.counters().lent_back);
}

#[test]
fn a_socket_that_waits_to_receive_reads_notifications_about_its_loans() {
    let (sender, receiver) = pair(LOCALS[0], &lending()).unwrap();
    let (to, mut queue) = (receiver.local_address(), sender.send_queue());
    sender.send_lent(&mut queue, loan(0, 0, &[1400; 46]), &[1400; 46], to, soon()).unwrap();
    receiver
        .send(&mut receiver.send_queue(), b"hello", &[5], sender.local_address(), soon())
        .unwrap();
    assert_eq!(collect(&sender, 1)[0].0, b"hello");
    let brief = Instant::now() + std::time::Duration::from_millis(30);
    assert!(sender.receive(&mut sender.arena(), brief, None).unwrap().is_empty());
    if sender.zero_copy() {
        assert_eq!(sender.counters().lent_back, 1);
        // It waits once for the notification and once until the deadline; a signal may interrupt a
        // wait.
        assert!(sender.counters().wait_calls < 10, "{:?}", sender.counters());
    }
    assert_eq!(queue.take_returned().unwrap().number, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_port_does_not_stop_lending() {
    let (sender, receiver) = pair(LOCALS[0], &lending()).unwrap();
    let to = receiver.local_address();
    sender.connect(to).unwrap();
    drop(receiver);
    let mut queue = sender.send_queue();
    let mut loan = loan(0, 0, &[1400; 46]);
    for _ in 0..5 {
        sender.send_lent(&mut queue, loan, &[1400; 46], to, soon()).unwrap();
        loan = reclaim(&sender, &mut queue);
    }
    let counters = sender.counters();
    assert!(counters.refused > 0 && counters.lent > 1, "{counters:?}");
    assert_eq!(counters.lent, counters.lent_back);
    assert!(sender.zero_copy());
}
