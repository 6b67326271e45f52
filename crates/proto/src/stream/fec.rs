//! Packets recovered by repair packets, which are in a stream of their own (RFC 8627 and its draft
//! 03) or between the packets of media (RFC 5109 section 14.2).
//!
//! The code works on unprotected RTP packets without RED: source and repair packets are
//! authenticated and decrypted first (RFC 8627 section 9, RFC 5109 section 11).

use core::net::SocketAddr;
use std::time::Duration;

use super::candidate::{Arrived, Report};
use super::inbound::Inbound;
use super::receipt::Receipt;
use super::receive::Receiver;
use super::stats::Discard;
use super::window::{Placed, Verdict};
use crate::repair::fec::{DecoderLimits, FecError, FecFormat};
use crate::rtp::Packet;
use crate::ssrc::{PayloadType, Ssrc};

/// The repair packets that a receiver uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FecReception {
    /// Their format.
    pub format: FecFormat,
    /// Their payload type.
    pub payload_type: PayloadType,
    /// The payload type of RED, within which media and repair packets arrive; only for formats that
    /// [need it](FecFormat::is_in_red).
    pub red: Option<PayloadType>,
    /// Their SSRC; `None` accepts any. Within RED it is that of the media.
    pub ssrc: Option<Ssrc>,
    /// How long a missing packet is not requested, because a repair packet may still recover it:
    /// the time from a packet to the repair packets of its block.
    pub wait: Duration,
    /// The bounds of each source's decoder.
    pub limits: DecoderLimits,
}

impl Receiver {
    /// Returns the format of the repair packets if `payload_type` is theirs.
    #[inline]
    pub(super) fn repair_format(&self, payload_type: u8) -> Option<FecFormat> {
        let fec = self.config.fec?;
        (fec.payload_type.value() == payload_type).then_some(fec.format)
    }

    /// Handles a repair packet of a stream of its own: the packets that it recovers take their places.
    pub(super) fn take_repair(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        packet: &Packet<'_>,
    ) -> Result<(), Discard> {
        if self.config.fec.and_then(|fec| fec.ssrc).is_some_and(|ssrc| ssrc != packet.ssrc()) {
            return Err(Discard::OtherSource);
        }
        let mut protected = [Ssrc(0); crate::rtp::CSRC_MAX];
        let sources = packet.contributing_sources();
        let count = sources.len();
        protected.iter_mut().zip(sources).for_each(|(place, source)| *place = source);
        let is_authentic = self.is_authentic();
        let mut outcome = Err(Discard::Retransmission);
        for n in 0..self.sources.len() {
            let Some(source) = self.sources.get_mut(n) else { break };
            let is_from = source.origin.accepts(receipt.now, from, is_authentic, source.activity());
            let Some(fec) = source.fec.as_mut().filter(|_| is_from) else {
                continue;
            };
            match fec.handle_repair(&protected[..count], packet.payload()) {
                // Nothing was changed.
                Err(FecError::OtherSource) => {}
                Err(_) => return Err(Discard::Retransmission),
                Ok(()) => outcome = Ok(()),
            }
            self.take_recovered(receipt, n);
        }
        self.statistics.repairs += u64::from(outcome.is_ok());
        outcome
    }

    /// Gives a packet of source `n`, media or repair packet, to its decoder, and to the source the
    /// packets recovered by it. The packets of a probation, except the last, are not given to a
    /// decoder.
    #[cold]
    pub(super) fn note_source(&mut self, receipt: Receipt, n: usize, datagram: &[u8]) {
        let Some(source) = self.sources.get_mut(n) else { return };
        let (Some(fec), Ok(packet)) = (source.fec.as_mut(), Packet::parse(datagram)) else {
            return;
        };
        // The window has ignored a packet beyond its highest one.
        if packet.sequence().distance(source.window.highest().sequence()) > 0 {
            return;
        }
        if packet.payload_type() == self.config.payload_type.value() {
            fec.handle_source(datagram);
        } else if fec.handle_repair(&[], packet.payload()).is_ok() {
            self.statistics.repairs += 1;
        } else {
            self.discard(Discard::Retransmission);
        }
        self.take_recovered(receipt, n);
    }

    fn take_recovered(&mut self, receipt: Receipt, n: usize) {
        while let Some(recovered) = self
            .sources
            .get_mut(n)
            .and_then(|source| source.fec.as_mut())
            .and_then(|fec| fec.poll_recovered())
        {
            let Ok(packet) = Packet::parse(&recovered) else { continue };
            if packet.payload_type() != self.config.payload_type.value() {
                continue;
            }
            let (ssrc, timestamp, marker) = (packet.ssrc(), packet.timestamp(), packet.marker());
            let mut elements = std::mem::take(&mut self.elements);
            let captured = self.read_extension(&packet, ssrc, &mut elements);
            let info = receipt.of(ssrc, timestamp, marker, captured);
            let (sequence, payload) = (packet.sequence(), packet.payload());
            let arrived = Arrived { sequence, info, payload, elements: &elements };
            self.with_source(n, |source, report| source.take_recovered(arrived, report));
            self.elements = elements;
        }
    }
}

impl Inbound {
    /// Handles a recovered packet: it fills its place, but was not received, and reports count it as
    /// lost.
    fn take_recovered(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        let before = self.window.announced();
        let Verdict::Placed(placed) = self.window.judge(packet.sequence, &packet.info) else {
            return;
        };
        // The decoder does not know the packets of a probation.
        if matches!(placed, Placed::InTurn(_) | Placed::Early(_)) {
            self.note_missing(before, placed.place(), packet.info.arrival);
            report.statistics.repaired += 1;
            self.order(placed, packet, report);
        }
    }
}
