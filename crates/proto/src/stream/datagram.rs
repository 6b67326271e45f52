//! From a datagram to its source: unprotect, parse, find the source.

use core::net::SocketAddr;
use std::time::Instant;

use super::candidate::{Arrived, Report};
use super::event::Event;
use super::receipt::Receipt;
use super::receive::Receiver;
use super::secure::{REPORT_INTERVAL, refusal_reason};
use super::stats::Discard;
use crate::rtp::{CaptureTime, ExtensionKind, Packet, TransportSequence};
use crate::srtp::{BATCH_MAX, UnprotectError};
use crate::ssrc::Ssrc;

/// Maximum number of arrivals with transport-wide numbers that wait to be polled.
const WIDE_ARRIVALS_MAX: usize = 4096;

impl Receiver {
    /// Handles one datagram that arrived as `receipt` says; an [`Instant`] is enough.
    pub fn handle_datagram(&mut self, receipt: impl Into<Receipt>, datagram: &[u8]) {
        self.handle_datagram_from(receipt, None, datagram);
    }

    /// Handles one datagram from the transport address `from` that arrived as `receipt` says.
    ///
    /// The receiver accepts a source from one address only; the same SSRC from another is a
    /// collision or a loop (RFC 3550 section 8.2).
    pub fn handle_datagram_from(
        &mut self,
        receipt: impl Into<Receipt>,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) {
        let receipt = receipt.into();
        let Some(security) = &mut self.security else {
            return self.handle_clear(receipt, from, datagram);
        };
        let mut copy = security.copy(datagram);
        self.handle_protected(receipt, from, &mut copy);
        if let Some(security) = &mut self.security {
            security.reuse(copy);
        }
        self.emit_key_events();
    }

    /// Handles datagrams that arrived as `receipt` says, all from the transport address `from`; their
    /// octets may be changed in place. Faster than one call for each.
    pub fn handle_datagrams(
        &mut self,
        receipt: impl Into<Receipt>,
        from: SocketAddr,
        datagrams: &mut [&mut [u8]],
    ) {
        let (receipt, from) = (receipt.into(), Some(from));
        match self.security.as_ref().map(|security| security.unprotector.group_len()) {
            None => return self.handle_clear_run(receipt, from, datagrams),
            // Clear datagrams are not batched: each is processed while it is in the cache.
            Some(1) => {
                for datagram in datagrams {
                    self.handle_protected(receipt, from, datagram);
                }
            }
            Some(group_len) => {
                for group in datagrams.chunks_mut(group_len) {
                    self.handle_protected_group(receipt, from, group);
                }
            }
        }
        self.emit_key_events();
    }

    #[inline]
    fn handle_clear_run(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagrams: &[&mut [u8]],
    ) {
        let mut fast = self.fast_source(from);
        let mut rest = datagrams;
        while let Some((datagram, behind)) = rest.split_first() {
            let taken = fast.map_or(0, |fast| self.take_fast(fast, receipt, rest));
            if taken > 0 {
                rest = &rest[taken..];
                continue;
            }
            self.handle_clear(receipt, from, datagram);
            fast = self.fast_source(from);
            rest = behind;
        }
    }

    /// Handles one protected datagram, which is changed in place.
    #[inline]
    fn handle_protected(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &mut [u8],
    ) {
        let fast = self.fast_source(from);
        let outcome = match fast.and_then(|fast| self.take_fast_protected(fast, receipt, datagram))
        {
            Some(Ok(())) => return,
            Some(Err(refusal)) => Err(refusal),
            None => match &mut self.security {
                Some(security) => security.unprotector.unprotect(datagram),
                None => return,
            },
        };
        self.handle_unprotected(receipt, from, datagram, outcome);
    }

    /// Handles protected datagrams, which are authenticated together.
    fn handle_protected_group(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagrams: &mut [&mut [u8]],
    ) {
        let mut outcomes = [Err(UnprotectError::Malformed); BATCH_MAX];
        if let Some(security) = &mut self.security {
            security.unprotector.unprotect_batch(datagrams, &mut outcomes);
        }
        for (datagram, outcome) in datagrams.iter().zip(outcomes) {
            self.handle_unprotected(receipt, from, datagram, outcome);
        }
    }

    /// Handles a datagram after an attempt to unprotect it, which returned `outcome`.
    #[inline]
    fn handle_unprotected(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &[u8],
        outcome: Result<usize, UnprotectError>,
    ) {
        match outcome {
            Ok(len) => self.handle_clear(receipt, from, &datagram[..len]),
            Err(_) if datagram.is_empty() => self.discard(Discard::KeepAlive),
            // SRTP does not encrypt the octet that distinguishes it from SRTCP.
            Err(_) if is_rtcp(datagram) => self.discard(Discard::Rtcp),
            Err(UnprotectError::Malformed) => self.discard(not_rtp(datagram)),
            Err(refusal) => self.refuse(receipt.now, refusal_reason(refusal)),
        }
    }

    /// Handles a datagram that is clear or has been unprotected.
    #[inline]
    pub(super) fn handle_clear(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) {
        if self.is_red(datagram) {
            return self.handle_red(receipt, from, datagram);
        }
        self.handle_bare(receipt, from, datagram);
    }

    /// Handles a datagram that is not within RED.
    #[inline]
    pub(super) fn handle_bare(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) {
        if let Err(reason) = self.take(receipt, from, datagram) {
            self.discard(reason);
            if reason == Discard::PayloadType {
                self.note_other_payload_type(receipt.now, from, datagram);
            }
        }
    }

    /// Counts a packet of another payload type, and emits an event if one is due.
    fn note_other_payload_type(&mut self, now: Instant, from: Option<SocketAddr>, packet: &[u8]) {
        let (packets, last) = &mut self.other_types;
        *packets += 1;
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= REPORT_INTERVAL);
        let Some(octet) = packet.get(1).filter(|_| is_due) else { return };
        *last = Some(now);
        let packets = std::mem::take(packets);
        self.emit(Event::OtherPayloadType { payload_type: octet & 0x7f, address: from, packets });
    }

    fn take(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) -> Result<(), Discard> {
        if datagram.is_empty() {
            return Err(Discard::KeepAlive);
        }
        if is_rtcp(datagram) {
            return Err(Discard::Rtcp);
        }
        let packet = Packet::parse(datagram).map_err(|_| not_rtp(datagram))?;
        let ssrc = packet.ssrc();
        if self.own_ssrc == Some(ssrc) {
            self.conflict = from;
            return Err(Discard::OwnSource);
        }
        if self.own_others.contains(&ssrc) {
            return Err(Discard::OwnSource);
        }
        let number = self.transport_sequence(&packet);
        let outcome = self.take_packet(receipt, from, datagram, &packet);
        if let Some(number) = number {
            self.note_wide_arrival(number, receipt, from);
        }
        outcome
    }

    /// Handles a packet that is not ours.
    fn take_packet(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &[u8],
        packet: &Packet<'_>,
    ) -> Result<(), Discard> {
        let ssrc = packet.ssrc();
        let mut payload = packet.payload();
        if packet.payload_type() != self.config.payload_type.value() {
            match self.repair_format(packet.payload_type()) {
                // It has a number of the media, but nothing for a frame.
                Some(format) if format.is_in_red() => payload = &[],
                Some(_) => return self.take_repair(receipt, from, packet),
                None => return self.take_retransmission(receipt, from, packet),
            }
        }
        if self.config.remote_ssrc.is_some_and(|remote| remote != ssrc) {
            return Err(Discard::OtherSource);
        }
        let mut elements = std::mem::take(&mut self.elements);
        let captured = self.read_extension(packet, ssrc, &mut elements);
        let (timestamp, marker) = (packet.timestamp(), packet.marker());
        let info = receipt.of(ssrc, timestamp, marker, captured);
        let arrived = Arrived { sequence: packet.sequence(), info, payload, elements: &elements };
        let outcome = self.take_media(receipt, from, datagram, arrived);
        self.elements = elements;
        outcome
    }

    fn take_media(
        &mut self,
        receipt: Receipt,
        from: Option<SocketAddr>,
        datagram: &[u8],
        arrived: Arrived<'_>,
    ) -> Result<(), Discard> {
        let ssrc = arrived.info.ssrc;
        let Some(n) = self.find(ssrc) else {
            let outcome = self.take_candidate_packet(arrived, from);
            if self.config.fec.is_some()
                && let Some(n) = self.find(ssrc)
            {
                self.note_source(receipt, n, datagram);
            }
            return outcome;
        };
        self.recent = n;
        let is_authentic = self.is_authentic();
        let Self { sources, statistics, events, .. } = self;
        let (source, mut report) = (&mut sources[n], Report { statistics, events });
        let is_own = source.is_at(receipt.now, from, is_authentic, &mut report);
        if is_own {
            source.take(arrived, &mut report);
        }
        if is_own && self.config.fec.is_some() {
            self.note_source(receipt, n, datagram);
        }
        self.enforce_limits(n);
        if is_own { Ok(()) } else { Err(Discard::Conflict) }
    }
}

impl Receiver {
    /// Reads the header extension of a packet of source `ssrc`: returns its capture time, and replaces
    /// `elements` by those that the frame is to have. A malformed extension is counted and ignored.
    #[inline]
    pub(super) fn read_extension(
        &mut self,
        packet: &Packet<'_>,
        ssrc: Ssrc,
        elements: &mut Vec<u8>,
    ) -> Option<CaptureTime> {
        elements.clear();
        let extensions = self.config.extensions;
        let extension = packet.extension().filter(|_| !extensions.is_empty())?;
        let reported = match self.find(ssrc) {
            Some(n) => self.sources[n].sender_count.wall_clock(),
            None => self.early_report.filter(|(of, ..)| *of == ssrc).map(|(.., sent)| sent.ntp),
        };
        let read = extensions.read(extension, reported, elements);
        self.statistics.extensions_malformed += u64::from(read.is_err());
        read.ok().and_then(|read| read.captured)
    }

    /// Returns the transport-wide number of a packet, if it is to be reported.
    #[inline]
    fn transport_sequence(&self, packet: &Packet<'_>) -> Option<TransportSequence> {
        let extension = packet.extension().filter(|_| self.config.wide_arrivals)?;
        let id = self.config.extensions.id(ExtensionKind::TransportSequence)?;
        TransportSequence::find(id, extension).ok().flatten()
    }

    /// Notes the arrival of a packet with a transport-wide number, even if it was of no use, unless it
    /// may be a stranger's: the numbers are those of one connection, that of the first source.
    fn note_wide_arrival(
        &mut self,
        number: TransportSequence,
        receipt: Receipt,
        from: Option<SocketAddr>,
    ) {
        let first = self.sources.first().map(|source| source.origin.address());
        if first != Some(from) && !self.is_authentic() {
            return;
        }
        if self.wide_arrivals.len() >= WIDE_ARRIVALS_MAX {
            self.wide_arrivals.pop_front();
        }
        self.wide_arrivals.push_back((number, receipt.arrival));
    }
}

/// Returns why a datagram without an RTP header is discarded. A ZRTP packet has a first octet of 16
/// to 19 (RFC 7983 section 7) and a magic cookie.
fn not_rtp(datagram: &[u8]) -> Discard {
    match datagram {
        [16..=19, _, _, _, b'Z', b'R', b'T', b'P', ..] => Discard::Zrtp,
        _ => Discard::NotRtp,
    }
}

/// Returns whether a datagram is RTCP, on a port that RTCP shares with RTP (RFC 5761 section 4).
#[inline]
fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [128..=191, 192..=223, ..])
}
