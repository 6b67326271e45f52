//! A relay between sender and receiver that shows whether the traffic is readable.

use std::collections::HashSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rushes_netsim::{Passing, Relay, Way};

/// The fixed header of RTP (RFC 3550 section 5.1), which SRTP leaves in the clear.
const HEADER: usize = 12;

/// Number of consecutive octets of the media that show that a datagram is readable. In tests of
/// these sizes, the probability of this number in an encrypted datagram by chance is one in a
/// thousand million.
const WINDOW: usize = 8;

/// Forwards the datagrams of two ports, a stream's and that of its RTCP, and keeps those to the
/// receiver.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The first of the relay's ports.
    pub(crate) port: u16,
    relay: Relay,
    datagrams: Arc<Mutex<[Vec<Vec<u8>>; 2]>>,
}

impl Recorder {
    /// Starts a relay to a receiver on `to` and the next port.
    pub(crate) fn to(to: u16) -> Self {
        let datagrams = Arc::new(Mutex::new([const { Vec::new() }; 2]));
        let kept = datagrams.clone();
        let keep = move |passing: Passing<'_>| {
            if passing.way == Way::There {
                kept.lock().unwrap()[passing.port].push(passing.datagram.clone());
            }
            true
        };
        let relay = Relay::to((Ipv4Addr::LOCALHOST, to).into()).with_control();
        let relay = relay.tap(keep).start().unwrap();
        Self { port: relay.address().port(), relay, datagrams }
    }

    /// Ends the relay; returns the datagrams to the first port and those to the second.
    pub(crate) fn end(self) -> [Vec<Vec<u8>>; 2] {
        self.relay.finish();
        std::mem::take(&mut self.datagrams.lock().unwrap())
    }
}

/// Returns the number of `datagrams` that contain, after the header, a part of `file` or of `name`.
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
