//! Retransmissions in a separate stream (RFC 4588), and the sources to which they belong.

use core::net::SocketAddr;

use super::candidate::Arrived;
use super::inbound::Inbound;
use super::receipt::Receipt;
use super::receive::Receiver;
use super::stats::Discard;
use crate::repair::rtx;
use crate::rtp::Packet;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

impl Receiver {
    /// Handles a packet of another payload type: a retransmission (RFC 4588), or discarded.
    pub(super) fn take_retransmission(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        packet: &Packet<'_>,
    ) -> Result<(), Discard> {
        let (payload_type, agreed) = self.config.retransmission.ok_or(Discard::PayloadType)?;
        if packet.payload_type() != payload_type.value() {
            return Err(Discard::PayloadType);
        }
        let stream = packet.ssrc();
        if agreed.is_some_and(|agreed| agreed != stream) {
            return Err(Discard::OtherSource);
        }
        let (sequence, payload) = rtx::unwrap(packet.payload()).ok_or(Discard::Retransmission)?;
        let payload = self.payload_within_red(payload).ok_or(Discard::Retransmission)?;
        let n = self.source_of(stream, from, sequence)?;
        let ssrc = self.sources[n].ssrc();
        let (timestamp, marker) = (packet.timestamp(), packet.marker());
        let mut elements = std::mem::take(&mut self.elements);
        let captured = self.read_extension(packet, ssrc, &mut elements);
        let info = receipt.of(ssrc, timestamp, marker, captured);
        let arrived = Arrived { sequence, info, payload, elements: &elements };
        self.with_source(n, |source, report| source.take_retransmitted(arrived, report));
        self.elements = elements;
        Ok(())
    }

    /// Returns the source to which a retransmission stream from `from` belongs. A new one belongs
    /// to the only source at that address that is missing the packet (RFC 4588 section 5.3).
    fn source_of(
        &mut self,
        stream: Ssrc,
        from: Option<SocketAddr>,
        sequence: SequenceNumber,
    ) -> Result<usize, Discard> {
        let is_authentic = self.is_authentic();
        let is_from = |source: &Inbound| {
            is_authentic || source.origin.address().is_none_or(|address| Some(address) == from)
        };
        if let Some((_, media)) = self.retransmissions.iter().find(|(known, _)| *known == stream) {
            let known = self.find(*media);
            if known.is_some_and(|n| !is_from(&self.sources[n])) {
                return Err(Discard::Conflict);
            }
            if let Some(n) = known.filter(|n| self.sources[*n].is_missing(sequence)) {
                return Ok(n);
            }
        }
        // The stream is new, or now serves another source.
        let is_missing =
            |(_, source): &(usize, &Inbound)| is_from(source) && source.is_missing(sequence);
        let mut missing = self.sources.iter().enumerate().filter(is_missing);
        let (n, source) = missing.next().ok_or(Discard::Retransmission)?;
        if missing.next().is_some() {
            return Err(Discard::Retransmission);
        }
        self.retransmissions.retain(|(known, _)| *known != stream);
        if self.retransmissions.len() >= self.config.sources_max {
            self.retransmissions.pop_front();
        }
        self.retransmissions.push_back((stream, source.ssrc()));
        Ok(n)
    }
}
