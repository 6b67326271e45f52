//! The packets between one stream and one address: fragmentation, reassembly, and the credit of the
//! address.

use std::collections::VecDeque;

use super::credit::Credit;
use super::fragment::{Fragments, OVERHEAD};
use super::message::Message;
use super::packet::{Content, Packet, write_fragment, write_packet};
use super::reassembler::Reassembler;

/// Maximum number of queued datagrams; the application may not be polling.
const OUTGOING_MAX: usize = 64;
/// Octets that a packet adds to a whole message.
const PACKET_OVERHEAD: usize = 16;

/// A message to send, with the ID of its fragments, which is the same at each repetition.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) message: Vec<u8>,
    id: u16,
}

/// Fragments and reassembles the messages between one stream and one address.
pub(super) struct Link {
    pub(super) credit: Credit,
    ssrc: u32,
    packet_len_max: usize,
    message_id: u16,
    outgoing: VecDeque<Vec<u8>>,
    reassembler: Reassembler,
}

impl Link {
    /// Creates the link of the stream `ssrc`. The IDs of its messages start at a random value.
    pub(super) fn new(ssrc: u32, packet_len_max: usize, random: [u8; 2], credit: Credit) -> Self {
        Self {
            credit,
            ssrc,
            packet_len_max,
            message_id: u16::from_be_bytes(random),
            outgoing: VecDeque::new(),
            reassembler: Reassembler::new(),
        }
    }

    /// Assigns an ID to a new message.
    pub(super) fn prepare(&mut self, message: Vec<u8>) -> Outgoing {
        self.message_id = self.message_id.wrapping_add(1);
        Outgoing { message, id: self.message_id }
    }

    /// Sends or repeats a message; returns `false` if the credit does not cover it.
    pub(super) fn send(&mut self, outgoing: &Outgoing) -> bool {
        let message = &outgoing.message;
        if !self.credit.spend(self.len_of(message.len())) {
            return false;
        }
        if Fragments::unneeded(message.len(), self.packet_len_max) {
            let mut datagram = Vec::with_capacity(message.len() + PACKET_OVERHEAD);
            write_packet(0, self.ssrc, message, &mut datagram);
            self.push(datagram);
        } else if let Ok(fragments) = Fragments::new(message, outgoing.id, self.packet_len_max) {
            // No message written here is too long for fragments.
            for fragment in fragments {
                let mut datagram = Vec::with_capacity(self.packet_len_max);
                write_fragment(0, self.ssrc, &fragment, &mut datagram);
                self.push(datagram);
            }
        }
        true
    }

    /// Sends a message that will not be repeated, if the credit covers it.
    pub(super) fn send_once(&mut self, message: &Message<'_>) {
        let mut octets = Vec::new();
        message.write(&mut octets);
        let outgoing = self.prepare(octets);
        self.send(&outgoing);
    }

    /// Returns the total octets of the packets for a message of `len` octets.
    pub(super) fn len_of(&self, len: usize) -> usize {
        if Fragments::unneeded(len, self.packet_len_max) {
            return len + PACKET_OVERHEAD;
        }
        let room = self.packet_len_max.saturating_sub(OVERHEAD).max(4) / 4 * 4;
        len + len.div_ceil(room) * OVERHEAD
    }

    fn push(&mut self, datagram: Vec<u8>) {
        if self.outgoing.len() < OUTGOING_MAX {
            self.outgoing.push_back(datagram);
        }
    }

    /// Returns the next packet, whose sequence number is still to be set.
    pub(super) fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    /// Returns SSRC and message of a packet of `len` octets; `None` if it is incomplete.
    pub(super) fn receive(&mut self, packet: &Packet<'_>, len: usize) -> Option<(u32, Vec<u8>)> {
        self.credit.receive(len);
        let message = match packet.content {
            Content::Message(message) => message.to_vec(),
            Content::Fragment(fragment) => self.reassembler.push(&fragment)?.to_vec(),
        };
        Some((packet.ssrc, message))
    }

    /// Drops incomplete messages.
    pub(super) fn forget_fragments(&mut self) {
        self.reassembler.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_octets_spent_are_the_octets_sent() {
        for len in [4, 160, 1_180, 1_184, 1_188, 2_400, 9_000] {
            let mut link = Link::new(1, 1_200, [0; 2], Credit::unlimited());
            let outgoing = link.prepare(vec![0; len]);
            link.send(&outgoing);
            let sent: usize =
                std::iter::from_fn(|| link.poll_datagram()).map(|one| one.len()).sum();
            assert_eq!(link.len_of(len), sent, "{len}");
        }
    }
}
