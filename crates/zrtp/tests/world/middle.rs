//! An attacker on the path that reads and changes datagrams.

use std::net::SocketAddr;
use std::time::Duration;

use rushes_netsim::{Path, Seeded};
use rushes_zrtp::crypto::{HashAlgorithm, hmac};
use rushes_zrtp::{
    AlgorithmList, Config, Content, ErrorCode, Event, KeyAgreement, Message, Packet, Warning,
    set_mac, without_mac, write_packet,
};

use super::{End, Kept, Middle, World, address, zid};

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Returns the message of a datagram; empty if the datagram contains no whole message.
pub(crate) fn message(datagram: &[u8]) -> &[u8] {
    match Packet::parse(datagram).map(|packet| packet.content) {
        Ok(Content::Message(message)) => message,
        _ => &[],
    }
}

/// Returns the message type block, without spaces.
pub(crate) fn kind(datagram: &[u8]) -> String {
    let kind = message(datagram).get(4..12).unwrap_or_default();
    String::from_utf8_lossy(kind).trim_end().to_owned()
}

/// Returns a packet like `datagram` that contains `message` instead.
pub(crate) fn repack(datagram: &[u8], message: &[u8]) -> Vec<u8> {
    let packet = Packet::parse(datagram).unwrap();
    let mut out = Vec::new();
    write_packet(packet.sequence, packet.ssrc, message, &mut out);
    out
}

/// Returns a packet of the source `ssrc`.
pub(crate) fn pack(ssrc: u32, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_packet(9, ssrc, message, &mut out);
    out
}

pub(crate) fn written(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.write(&mut out);
    out
}

/// Sets the MAC at the end of a message, as an end that knows the hash image does.
pub(crate) fn sign(image: &[u8], message: &mut [u8]) {
    let mut mac = [0; 8];
    let full = hmac(HashAlgorithm::Sha256, image, &[without_mac(message)]);
    mac.copy_from_slice(&full.as_slice()[..8]);
    set_mac(message, mac);
}

/// Returns an attacker that changes every message of type `named` from end `from`.
pub(crate) fn editing<'a>(
    from: usize,
    named: &'a str,
    mut edit: impl FnMut(&mut Vec<u8>) + 'a,
) -> Box<Middle<'a>> {
    Box::new(move |sender, datagram| {
        if sender != from || kind(datagram) != named {
            return vec![datagram.to_vec()];
        }
        let mut changed = message(datagram).to_vec();
        edit(&mut changed);
        vec![repack(datagram, &changed)]
    })
}

pub(crate) fn pass(_: usize, datagram: &[u8]) -> Vec<Vec<u8>> {
    vec![datagram.to_vec()]
}

/// The configurations of two endpoints that agree by `agreement`; the first is the initiator.
pub(crate) fn configs(agreement: KeyAgreement) -> [Config; 2] {
    [1, 2].map(|octet| {
        let mut config = Config::new(zid(octet));
        config.algorithms.key_agreements = AlgorithmList::new(&[agreement]).unwrap();
        config.is_passive = octet == 2;
        config.packet_len_max = 65_507;
        config
    })
}

pub(crate) fn world(configs: [Config; 2], stores: &[Kept; 2], streams: u32, seed: u64) -> World {
    let mut seeds = Seeded(seed);
    let [one, other] = configs;
    let ends = [
        End::new(one, stores[0].clone(), seeds.roll()),
        End::new(other, stores[1].clone(), seeds.roll()),
    ];
    let mut world = World::new(ends, Path::default(), seeds.roll());
    for n in 0..streams {
        for (end, first) in [(0, 100), (1, 200)] {
            let now = world.now;
            world.ends[end].add_stream(first + n, Some(address(1 - end, n as usize)), now);
        }
    }
    world
}

/// Returns two endpoints with one stream that have never met.
pub(crate) fn fresh(agreement: KeyAgreement, seed: u64) -> World {
    world(configs(agreement), &Default::default(), 1, seed)
}

impl End {
    /// Returns the error that this end found, or that the peer reported.
    pub(crate) fn error(&self, wanted_by_peer: bool) -> Option<ErrorCode> {
        self.events.iter().find_map(|(_, event)| match event {
            Event::Failed { error, by_peer } if *by_peer == wanted_by_peer => Some(*error),
            _ => None,
        })
    }

    pub(crate) fn is_secure(&self) -> bool {
        !self.secure.is_empty() && self.secure.iter().all(|secure| *secure)
    }

    pub(crate) fn was_warned(&self, warning: Warning) -> bool {
        self.warnings().contains(&warning)
    }
}

impl World {
    /// Runs until no event remains, which must be soon.
    pub(crate) fn settle(&mut self, middle: &mut Middle<'_>) {
        let mut steps = 0;
        while self.step(middle) {
            steps += 1;
            assert!(self.elapsed() < LIMIT && steps < 100_000, "the exchange does not end");
        }
    }

    pub(crate) fn are_secure(&self) -> bool {
        self.ends.iter().all(End::is_secure)
    }

    /// Passes a datagram to stream `n` of end `to`, as if the other end had sent it.
    pub(crate) fn inject(&mut self, to: usize, n: usize, datagram: &[u8]) {
        self.inject_from(address(1 - to, n), to, n, datagram);
    }

    /// Passes a datagram from the address `from` to end `to`.
    pub(crate) fn inject_from(&mut self, from: SocketAddr, to: usize, n: usize, datagram: &[u8]) {
        let stream = self.ends[to].streams[n];
        self.ends[to].session.handle_datagram(self.now, stream, from, datagram);
        self.ends[to].collect();
    }
}

/// Runs `world` and returns all datagrams with their senders, in order.
pub(crate) fn record(world: &mut World) -> Vec<(usize, Vec<u8>)> {
    let mut seen = Vec::new();
    world.settle(&mut |from, datagram| {
        seen.push((from, datagram.to_vec()));
        pass(from, datagram)
    });
    seen
}
