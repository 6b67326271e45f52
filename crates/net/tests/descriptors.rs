//! A listener in a process without free descriptors. It has its own test program, because the limit
//! applies to all threads.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod loopback;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use loopback::{LOCALS, soon};
use rushes_net::{TcpListener, TcpOptions, TcpSocket, Waker};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_connection_waits_while_the_process_has_no_descriptor_for_it() {
    let options = TcpOptions::default();
    let waker = Waker::new().unwrap();
    let listener = TcpListener::bind(LOCALS[0], &options).unwrap();
    let near = TcpSocket::connect(listener.local_address(), &options, soon()).unwrap();

    let usual = getrlimit(Resource::Nofile);
    let next = File::open("/proc/self/stat").unwrap().as_raw_fd();
    setrlimit(Resource::Nofile, Rlimit { current: Some(next.try_into().unwrap()), ..usual })
        .unwrap();
    let brief = Instant::now() + Duration::from_millis(30);
    assert!(listener.accept(Some(brief), None).unwrap().is_none());
    assert!(Instant::now() >= brief);
    // A wake ends the listener's pauses.
    waker.wake();
    assert!(listener.accept(None, Some(&waker)).unwrap().is_none());

    setrlimit(Resource::Nofile, usual).unwrap();
    let far = listener.accept(Some(soon()), None).unwrap().unwrap();
    assert_eq!(far.peer_address(), near.local_address());
}
