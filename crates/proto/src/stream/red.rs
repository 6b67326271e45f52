//! Packets that arrive within RED (RFC 2198), as media and repair packets of ULPFEC do (RFC 5109
//! section 14.2).
//!
//! Only the primary block of a packet is used. Those before it repeat earlier payloads.

use core::net::SocketAddr;

use super::receipt::Receipt;
use super::receive::Receiver;
use super::stats::Discard;
use crate::repair::fec::red;
use crate::rtp::Packet;

impl Receiver {
    /// Returns whether a datagram has the payload type of RED.
    #[inline]
    pub(super) fn is_red(&self, datagram: &[u8]) -> bool {
        let Some(red) = self.config.fec.and_then(|fec| fec.red) else { return false };
        datagram.get(1).is_some_and(|kind| kind & 0x7f == red.value())
    }

    /// Handles a datagram within RED as the packet that it was made from: without the headers of
    /// blocks, and with the payload type of its primary block.
    pub(super) fn handle_red(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) {
        let Ok(packet) = Packet::parse(datagram) else {
            return self.handle_bare(receipt, from, datagram);
        };
        let Some(block) = red::primary(packet.payload()) else {
            return self.discard(Discard::Payload);
        };
        let mut bare = std::mem::take(&mut self.bare);
        bare.clear();
        bare.extend_from_slice(&datagram[..packet.header_len()]);
        bare[1] = bare[1] & 0x80 | block.payload_type;
        // Padding stays, as it was there before RED.
        let begin = packet.header_len() + packet.payload().len() - block.data.len();
        bare.extend_from_slice(&datagram[begin..]);
        self.handle_bare(receipt, from, &bare);
        self.bare = bare;
    }

    /// Returns the payload of media that a retransmitted packet carried within RED (its `payload`),
    /// or `payload` itself if nothing has arrived within RED. A repair packet has nothing for a frame.
    /// `None` if it is neither.
    pub(super) fn payload_within_red<'p>(&self, payload: &'p [u8]) -> Option<&'p [u8]> {
        let Some(fec) = self.config.fec.filter(|fec| fec.red.is_some() && !self.bare.is_empty())
        else {
            return Some(payload);
        };
        let block = red::primary(payload)?;
        if block.payload_type == self.config.payload_type.value() {
            Some(block.data)
        } else if block.payload_type == fec.payload_type.value() {
            Some(&[])
        } else {
            None
        }
    }
}
