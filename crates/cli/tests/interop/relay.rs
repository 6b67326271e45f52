//! A relay between sender and receiver that shows whether what passes can be read.

use std::collections::HashSet;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

/// The fixed header of RTP (RFC 3550 section 5.1), which SRTP leaves in the clear.
const HEADER: usize = 12;

/// So many octets in a row that stand in the media are no accident in a datagram: in tests of
/// these sizes one that is encrypted holds them by chance once in a thousand million.
const WINDOW: usize = 8;

/// Passes on what comes to two ports, a stream's and that of its RTCP, and keeps it.
#[derive(Debug)]
pub(crate) struct Relay {
    /// The first of its ports.
    pub(crate) port: u16,
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Vec<u8>>>>,
}

impl Relay {
    /// Before a receiver on `to` and the port after.
    pub(crate) fn to(to: u16) -> Self {
        let [first, second] = sockets();
        // Receivers report to where the stream comes from, which must not be a port that passes on.
        let [onward, control_onward] = sockets();
        onward.connect(("127.0.0.1", to)).unwrap();
        control_onward.connect(("127.0.0.1", to + 1)).unwrap();
        let port = first.local_addr().unwrap().port();
        let stopped = Arc::new(AtomicBool::new(false));
        let threads = [(first, onward), (second, control_onward)].map(|(socket, onward)| {
            let stopped = Arc::clone(&stopped);
            thread::spawn(move || pass_on(&socket, &onward, &stopped))
        });
        Self { port, stopped, threads: threads.into() }
    }

    /// What came to the first port, and what to the second.
    pub(crate) fn end(mut self) -> [Vec<Vec<u8>>; 2] {
        self.stopped.store(true, Ordering::Relaxed);
        let mut came = self.threads.drain(..).map(|thread| thread.join().unwrap());
        [came.next().unwrap(), came.next().unwrap()]
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Two ports in a row, the first even.
fn sockets() -> [UdpSocket; 2] {
    loop {
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if !port.is_multiple_of(2) {
            continue;
        }
        if let Ok(second) = UdpSocket::bind(("127.0.0.1", port + 1)) {
            return [first, second];
        }
    }
}

fn pass_on(socket: &UdpSocket, onward: &UdpSocket, stopped: &AtomicBool) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut came = Vec::new();
    let mut buffer = vec![0; 65_536];
    // What waits already is still passed on after the end was asked for.
    loop {
        match socket.recv(&mut buffer) {
            Ok(len) => {
                // Who does not listen any more has left: no matter.
                let _ = onward.send(&buffer[..len]);
                came.push(buffer[..len].to_vec());
            }
            Err(_) if stopped.load(Ordering::Relaxed) => return came,
            Err(_) => {}
        }
    }
}

/// How many of `datagrams` say something, behind the header, that stands in `file` or is `name`.
pub(crate) fn readable(datagrams: &[Vec<u8>], file: &Path, name: &str) -> usize {
    let media = fs::read(file).unwrap();
    let known: HashSet<&[u8]> =
        media.windows(WINDOW).chain(name.as_bytes().windows(WINDOW)).collect();
    let says = |datagram: &&Vec<u8>| {
        let body = datagram.get(HEADER..).unwrap_or_default();
        body.windows(WINDOW).any(|octets| known.contains(octets))
    };
    datagrams.iter().filter(says).count()
}
