//! One stream's packets: numbered, cut, and put together.

use std::collections::VecDeque;

use super::fragment::Fragments;
use super::packet::{Content, Packet, write_fragment, write_packet};
use super::reassembler::Reassembler;
use crate::ssrc::Ssrc;

/// Datagrams that wait to be sent, at most: nobody may be collecting them.
const OUTGOING_MAX: usize = 64;

/// A message to send, with the id that its fragments have each time.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) message: Vec<u8>,
    id: u16,
}

/// What numbers, cuts and collects.
pub(super) struct Link {
    ssrc: Ssrc,
    packet_len_max: usize,
    sequence: u16,
    message_id: u16,
    outgoing: VecDeque<Vec<u8>>,
    reassembler: Reassembler,
}

impl Link {
    /// The link of the stream `ssrc`, whose numbers begin at random.
    pub(super) fn new(ssrc: Ssrc, packet_len_max: usize, random: [u8; 4]) -> Self {
        let [a, b, c, d] = random;
        Self {
            ssrc,
            packet_len_max,
            sequence: u16::from_be_bytes([a, b]),
            message_id: u16::from_be_bytes([c, d]),
            outgoing: VecDeque::new(),
            reassembler: Reassembler::new(),
        }
    }

    /// Gives a new message its id.
    pub(super) fn prepare(&mut self, message: Vec<u8>) -> Outgoing {
        self.message_id = self.message_id.wrapping_add(1);
        Outgoing { message, id: self.message_id }
    }

    /// Sends a message, for the first time or again.
    pub(super) fn send(&mut self, outgoing: &Outgoing) {
        let message = &outgoing.message;
        if Fragments::unneeded(message.len(), self.packet_len_max) {
            let sequence = self.next_sequence();
            let mut datagram = Vec::with_capacity(message.len() + 16);
            write_packet(sequence, self.ssrc, message, &mut datagram);
            self.push(datagram);
            return;
        }
        // No message that is written here is too long to be cut.
        let Ok(fragments) = Fragments::new(message, outgoing.id, self.packet_len_max) else {
            return;
        };
        for fragment in fragments {
            let sequence = self.next_sequence();
            let mut datagram = Vec::with_capacity(self.packet_len_max);
            write_fragment(sequence, self.ssrc, &fragment, &mut datagram);
            self.push(datagram);
        }
    }

    fn next_sequence(&mut self) -> u16 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn push(&mut self, datagram: Vec<u8>) {
        if self.outgoing.len() < OUTGOING_MAX {
            self.outgoing.push_back(datagram);
        }
    }

    pub(super) fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    /// The SSRC and the message of a datagram; `None` if it is no ZRTP packet, or part of a message
    /// that is not whole yet.
    pub(super) fn receive(&mut self, datagram: &[u8]) -> Option<(Ssrc, Vec<u8>)> {
        let packet = Packet::parse(datagram).ok()?;
        let message = match packet.content {
            Content::Message(message) => message.to_vec(),
            Content::Fragment(fragment) => self.reassembler.push(&fragment).ok()??.to_vec(),
        };
        Some((packet.ssrc, message))
    }

    /// Forgets what is not whole.
    pub(super) fn forget_fragments(&mut self) {
        self.reassembler.clear();
    }
}
