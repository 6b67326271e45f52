//! One stream's socket, with simulated faults, counters and a log.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rushes_netsim::Link;

use super::faults::Faults;
use super::hex;

/// Offsets in a packet that carries a Hello (RFC 6189 sections 5 and 5.2).
const MESSAGE: usize = 12;
const KIND: usize = MESSAGE + 4;
const VERSION: usize = MESSAGE + 12;
const CLIENT: usize = MESSAGE + 16;
const ZID: usize = MESSAGE + 64;
const COUNTS: usize = MESSAGE + 76;
const LISTS: usize = MESSAGE + 80;

/// The events that are logged to the standard error output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub(crate) packets: bool,
    pub(crate) octets: bool,
}

/// One stream's socket.
pub(crate) struct Wire {
    index: usize,
    socket: UdpSocket,
    remote: SocketAddr,
    faults: Faults,
    log: Log,
    start: Instant,
    /// The simulated network that ZRTP packets pass before the real one.
    link: Link<Vec<u8>>,
    /// ZRTP messages by type.
    pub(crate) sent: BTreeMap<String, u32>,
    pub(crate) received: BTreeMap<String, u32>,
    /// The offer of this end's Hello; the next field is the peer's.
    pub(crate) own_hello: String,
    pub(crate) peer_hello: String,
}

impl Wire {
    /// Creates the wire of stream `index`; `socket` must not block.
    pub(crate) fn new(
        index: usize,
        socket: UdpSocket,
        remote: SocketAddr,
        faults: Faults,
        log: Log,
    ) -> Self {
        // Each stream has its own seed, so that streams lose different packets.
        let link = Link::new(faults.path.clone(), faults.seed.wrapping_add(index as u64));
        Self {
            index,
            socket,
            remote,
            faults,
            log,
            start: Instant::now(),
            link,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            own_hello: String::new(),
            peer_hello: String::new(),
        }
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Sends a ZRTP packet, subject to the faults.
    pub(crate) fn send_zrtp(&mut self, mut datagram: Vec<u8>) {
        let kind = kind(&datagram);
        *self.sent.entry(kind.clone()).or_default() += 1;
        if kind == "Hello" && self.own_hello.is_empty() {
            self.own_hello = offer(&datagram).unwrap_or_default();
        }
        if self.faults.drop.take(&kind) {
            return self.trace("TX", &datagram, "DROPPED");
        }
        let is_corrupt = self.faults.corrupt.take(&kind);
        let middle = datagram.len() / 2;
        if is_corrupt && let Some(octet) = datagram.get_mut(middle) {
            *octet ^= 1;
        }
        let copies = if self.faults.repeat.take(&kind) { 2 } else { 1 };
        for _ in 0..copies {
            let lost = self.link.statistics().lost;
            self.link.push(self.start.elapsed(), datagram.len(), datagram.clone());
            let is_lost = self.link.statistics().lost > lost;
            let note = if is_corrupt { "CORRUPTED" } else { "" };
            self.trace("TX", &datagram, if is_lost { "LOST" } else { note });
        }
        self.send_delayed();
    }

    /// Sends a datagram without faults. One that cannot be sent counts as lost.
    pub(crate) fn send(&self, datagram: &[u8]) {
        let _ = self.socket.send_to(datagram, self.remote);
    }

    /// Sends the packets that are due.
    pub(crate) fn send_delayed(&mut self) {
        while let Some(delivery) = self.link.poll(self.start.elapsed()) {
            self.send(&delivery.item);
        }
    }

    /// Sends a datagram to an address other than the peer's.
    pub(crate) fn send_astray(&self, to: SocketAddr, datagram: &[u8]) {
        let _ = self.socket.send_to(datagram, to);
    }

    /// Receives the next datagram, if any; returns its length and source address.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        loop {
            match self.socket.recv_from(buffer) {
                Ok(received) => return Some(received),
                // This is an ICMP port-unreachable error for an earlier datagram.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return None,
            }
        }
    }

    /// Counts a received ZRTP packet; returns `false` if a fault drops it.
    pub(crate) fn admit(&mut self, datagram: &[u8]) -> bool {
        let kind = kind(datagram);
        *self.received.entry(kind.clone()).or_default() += 1;
        if kind == "Hello" && self.peer_hello.is_empty() {
            self.peer_hello = offer(datagram).unwrap_or_default();
        }
        let is_dropped = self.faults.drop_received.take(&kind);
        self.trace("RX", datagram, if is_dropped { "DROPPED" } else { "" });
        !is_dropped
    }

    fn trace(&self, direction: &str, datagram: &[u8], note: &str) {
        if self.log.packets || self.log.octets {
            let sequence =
                datagram.get(2..4).map_or(0, |two| u16::from(two[0]) << 8 | u16::from(two[1]));
            let (kind, len) = (kind(datagram), datagram.len());
            let time = self.start.elapsed().min(Duration::from_secs(99_999)).as_secs_f64() * 1e3;
            eprintln!(
                "[{time:8.1}] s{} {direction} {kind:<8} seq={sequence} len={len} {note}",
                self.index
            );
        }
        if self.log.octets {
            eprintln!("    {}", hex::encode(datagram));
        }
    }
}

/// Returns the type of the message in a ZRTP packet.
fn kind(datagram: &[u8]) -> String {
    match datagram {
        [16, ..] => text(datagram, KIND, 8).unwrap_or_else(|| "?".to_owned()),
        _ => "Fragment".to_owned(),
    }
}

/// Returns the characters of a field, without trailing spaces.
fn text(datagram: &[u8], start: usize, len: usize) -> Option<String> {
    let field = datagram.get(start..start + len)?;
    Some(String::from_utf8_lossy(field).trim_end().to_owned())
}

/// Returns the offer of the Hello in a packet, on one line.
fn offer(datagram: &[u8]) -> Option<String> {
    let counts: &[u8; 4] = datagram.get(COUNTS..)?.first_chunk()?;
    let [flags, hashes, ciphers_and_tags, agreements_and_sas] = *counts;
    let mut place = LISTS;
    let mut list = |count: u8| {
        let names: Option<Vec<String>> = (0..count & 15)
            .map(|_| {
                place += 4;
                text(datagram, place - 4, 4)
            })
            .collect();
        names.map(|names| names.join(","))
    };
    Some(format!(
        "version={};client={};zid={};flags={flags:x};hash={};cipher={};auth={};kex={};sas={}",
        text(datagram, VERSION, 4)?,
        text(datagram, CLIENT, 16)?,
        hex::encode(datagram.get(ZID..ZID + 12)?),
        list(hashes)?,
        list(ciphers_and_tags >> 4)?,
        list(ciphers_and_tags)?,
        list(agreements_and_sas >> 4)?,
        list(agreements_and_sas)?,
    ))
}
