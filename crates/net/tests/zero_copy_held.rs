//! Slabs that the kernel holds: datagrams for a neighbour whose hardware address is not known yet
//! wait in the kernel. The test creates two network namespaces and removes them. It needs root and
//! `ip`; otherwise it prints that it is skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::Instant;

use loopback::{collect, datagram, soon};
use rushes_net::{Loan, SocketOptions, UdpSocket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const PACKETS: usize = 40;
const PACKET: u16 = 1_000;

fn run(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    let failure = || format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(failure()) }
}

/// Two namespaces and a link between them, whose far end has no address yet.
struct Network {
    near: String,
    far: String,
}

impl Network {
    fn new(name: &str) -> Result<Self, String> {
        let id = std::process::id();
        let network = Self { near: format!("rzc{id}{name}n"), far: format!("rzc{id}{name}f") };
        let Self { near, far } = &network;
        run(&format!("ip netns add {near}"))?;
        run(&format!("ip netns add {far}"))?;
        run(&format!("ip -n {near} link add veth0 type veth peer name veth0 netns {far}"))?;
        run(&format!("ip -n {near} address add 198.18.0.1/24 dev veth0"))?;
        run(&format!("ip -n {near} link set veth0 up"))?;
        run(&format!("ip -n {far} link set veth0 up"))?;
        Ok(network)
    }

    /// Binds a socket in one of the namespaces.
    fn bind(namespace: &str, local: &str, options: &SocketOptions) -> UdpSocket {
        let file = File::open(format!("/run/netns/{namespace}")).unwrap();
        let bind = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            UdpSocket::bind(local.parse().unwrap(), options).unwrap()
        };
        thread::scope(|scope| scope.spawn(bind).join().unwrap())
    }

    fn sender(&self) -> UdpSocket {
        let options = SocketOptions { zero_copy: true, ..SocketOptions::default() };
        Self::bind(&self.near, "198.18.0.1:0", &options)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.far] {
            let _ = run(&format!("ip netns del {namespace}"));
        }
    }
}

fn loan(number: usize) -> Loan {
    let slab: Vec<u8> = (0..PACKETS as u32).flat_map(|at| datagram(at, PACKET)).collect();
    Loan { slab: slab.into(), start: 0, number }
}

#[test]
fn a_slab_that_the_kernel_holds_is_not_returned() {
    let network = match Network::new("a") {
        Ok(network) => network,
        Err(reason) => return loopback::skipped::not_here(reason),
    };
    let sender = network.sender();
    let (to, mut queue) = ("198.18.0.2:5004".parse().unwrap(), sender.send_queue());
    let mut address = [std::ptr::null(); 2];
    for (number, address) in address.iter_mut().enumerate() {
        let loan = loan(number);
        *address = loan.slab.as_ptr();
        sender.send_lent(&mut queue, loan, &[PACKET; PACKETS], to, soon()).unwrap();
    }
    assert!(sender.reclaim(&mut queue, Instant::now()).unwrap().is_none());
    assert_eq!((sender.counters().lent, sender.counters().lent_back), (2, 0));
    assert_eq!(queue.away(), 2);
    // The neighbour becomes known, so that the datagrams are sent.
    run(&format!("ip -n {} address add 198.18.0.2/24 dev veth0", network.far)).unwrap();
    let mut back = [0, 1].map(|_| sender.reclaim(&mut queue, soon()).unwrap().unwrap());
    back.sort_by_key(|loan| loan.number);
    assert_eq!([back[0].slab.as_ptr(), back[1].slab.as_ptr()], address);
    assert_eq!(sender.counters().lent_back, 2);
}

#[test]
fn slabs_that_the_kernel_holds_outlive_their_socket_unchanged() {
    let network = match Network::new("b") {
        Ok(network) => network,
        Err(reason) => return loopback::skipped::not_here(reason),
    };
    let receiver = Network::bind(&network.far, "0.0.0.0:0", &SocketOptions::default());
    let sender = network.sender();
    let to = format!("198.18.0.2:{}", receiver.local_address().port()).parse().unwrap();
    let mut queue = sender.send_queue();
    sender.send_lent(&mut queue, loan(0), &[PACKET; PACKETS], to, soon()).unwrap();
    assert_eq!((sender.counters().lent, sender.counters().lent_back), (1, 0));
    drop(queue);
    drop(sender);
    // If the slab had been freed, one of these would take its memory.
    let others: Vec<Box<[u8]>> =
        (0..200).map(|_| vec![0xff; PACKETS * usize::from(PACKET)].into()).collect();
    run(&format!("ip -n {} address add 198.18.0.2/24 dev veth0", network.far)).unwrap();
    let received = collect(&receiver, PACKETS);
    assert_eq!(received.len(), PACKETS);
    for (at, (data, _)) in (0..).zip(received) {
        assert!(data == datagram(at, PACKET), "datagram {at}");
    }
    drop(others);
}
