//! Writing RTCP packets into one datagram.

use std::time::Duration;

use super::COUNT_MAX;
use super::compound::HEADER_LEN;
use super::congestion::{Arrival, CongestionFeedback, write_block};
use super::feedback::{BitRateLimit, Fir, Remb};
use super::nack::pack_nacks;
use super::report::{BLOCK_LEN, INFO_LEN, ReportBlock, SenderInfo};
use super::sdes::SdesKind;
use super::transport_wide::{TransportWide, write_report};
use super::xr::Dlrr;
use crate::ecn::Ecn;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::NtpTime;

/// An RTCP datagram that is being written.
///
/// Packets are in the order in which they are written; the first should be a report (RFC 3550
/// section 6.1) unless reduced-size RTCP was negotiated (RFC 5506). The caller limits the size of
/// the datagram: see [`len`](Self::len).
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Offset of the packet that is being written.
    start: usize,
}

impl Writer {
    /// Creates an empty datagram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the datagram so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of octets written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes all packets, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Removes everything after the first `len` octets, which must be whole packets.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Writes a sender report. Blocks beyond 31 follow in receiver reports (RFC 3550 section 6.1).
    pub fn sender_report(&mut self, ssrc: Ssrc, info: &SenderInfo, blocks: &[ReportBlock]) {
        let (first, rest) = blocks.split_at(blocks.len().min(COUNT_MAX));
        self.begin(super::SENDER_REPORT, first.len() as u8);
        self.bytes.reserve(4 + INFO_LEN + BLOCK_LEN * first.len());
        self.word(ssrc.0);
        self.bytes.extend(info.ntp.0.to_be_bytes());
        self.word(info.rtp.0);
        self.word(info.packets);
        self.word(info.octets);
        self.blocks(first);
        self.end();
        if !rest.is_empty() {
            self.receiver_report(ssrc, rest);
        }
    }

    /// Writes a receiver report, or several if there are more than 31 blocks.
    pub fn receiver_report(&mut self, ssrc: Ssrc, blocks: &[ReportBlock]) {
        let mut rest = blocks;
        loop {
            let (first, others) = rest.split_at(rest.len().min(COUNT_MAX));
            self.begin(super::RECEIVER_REPORT, first.len() as u8);
            self.word(ssrc.0);
            self.blocks(first);
            self.end();
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
    }

    /// Writes a source description with only a canonical name.
    pub fn cname(&mut self, ssrc: Ssrc, cname: &str) {
        self.source_description(ssrc, [(SdesKind::Cname, cname.as_bytes())]);
    }

    /// Writes a source description of one source; texts are cut to 255 octets.
    pub fn source_description<'t>(
        &mut self,
        ssrc: Ssrc,
        items: impl IntoIterator<Item = (SdesKind, &'t [u8])>,
    ) {
        self.begin(super::SOURCE_DESCRIPTION, 1);
        self.word(ssrc.0);
        for (kind, text) in items {
            let text = &text[..text.len().min(255)];
            self.bytes.extend([kind.number(), text.len() as u8]);
            self.bytes.extend(text);
        }
        // At least one zero ends the chunk.
        self.bytes.push(0);
        self.pad();
        self.end();
    }

    /// Writes a BYE of the first 31 of `sources`; the reason is cut to 255 octets.
    pub fn bye(&mut self, sources: &[Ssrc], reason: &str) {
        let sources = &sources[..sources.len().min(COUNT_MAX)];
        self.begin(super::BYE, sources.len() as u8);
        for source in sources {
            self.word(source.0);
        }
        if !reason.is_empty() {
            let reason = &reason.as_bytes()[..reason.len().min(255)];
            self.bytes.push(reason.len() as u8);
            self.bytes.extend(reason);
            self.pad();
        }
        self.end();
    }

    /// Writes an APP packet; `subtype` is 0..=31, `data` is padded with zeros to whole words.
    pub fn app(&mut self, ssrc: Ssrc, subtype: u8, name: [u8; 4], data: &[u8]) {
        self.begin(super::APP, subtype & 0x1f);
        self.word(ssrc.0);
        self.bytes.extend(name);
        self.bytes.extend(data);
        self.pad();
        self.end();
    }

    /// Writes a generic NACK of packets given in order (RFC 4585 section 6.2.1); nothing without
    /// packets.
    pub fn nack(
        &mut self,
        sender: Ssrc,
        media: Ssrc,
        sequences: impl IntoIterator<Item = SequenceNumber>,
    ) {
        let mut nacks = pack_nacks(sequences).peekable();
        if nacks.peek().is_none() {
            return;
        }
        self.feedback(super::TRANSPORT_FEEDBACK, 1, sender, media);
        for nack in nacks {
            self.bytes.extend(nack.to_bytes());
        }
        self.end();
    }

    /// Writes a temporary maximum media bit rate request (RFC 5104 section 4.2.1).
    pub fn bit_rate_request(&mut self, sender: Ssrc, limits: &[BitRateLimit]) {
        self.bit_rates(3, sender, limits);
    }

    /// Writes a temporary maximum media bit rate notification (RFC 5104 section 4.2.2).
    pub fn bit_rate_notification(&mut self, sender: Ssrc, limits: &[BitRateLimit]) {
        self.bit_rates(4, sender, limits);
    }

    /// Writes one block of congestion control feedback for each source, and the instant from which
    /// arrivals are counted back (RFC 8888 section 3.1).
    pub fn congestion<A>(
        &mut self,
        sender: Ssrc,
        blocks: impl IntoIterator<Item = (Ssrc, SequenceNumber, A)>,
        instant: NtpTime,
    ) where
        A: IntoIterator<Item = Option<(Ecn, Arrival)>>,
    {
        self.begin(super::TRANSPORT_FEEDBACK, CongestionFeedback::FORMAT);
        self.word(sender.0);
        for (ssrc, begin, arrivals) in blocks {
            write_block(&mut self.bytes, ssrc, begin, arrivals);
        }
        self.word(instant.middle());
        self.end();
    }

    /// Writes transport-wide feedback on the arrivals of consecutive packets from `begin` on, counted
    /// from any beginning that stays the same; `media` is one of the sources, and `number` that of
    /// the report (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
    ///
    /// Returns the number of packets in it; the others belong into the next report. It is less than
    /// that of `arrivals` only where one is 8 s or more apart from the one before it, or from
    /// 16 384 on. Times are rounded down to 250 µs.
    pub fn transport_wide(
        &mut self,
        [sender, media]: [Ssrc; 2],
        begin: SequenceNumber,
        number: u8,
        arrivals: &[Option<Duration>],
    ) -> usize {
        self.feedback(super::TRANSPORT_FEEDBACK, TransportWide::FORMAT, sender, media);
        let count = write_report(&mut self.bytes, begin, number, arrivals);
        self.pad();
        self.end();
        count
    }

    /// Writes a picture loss indication (RFC 4585 section 6.3.1).
    pub fn picture_loss(&mut self, sender: Ssrc, media: Ssrc) {
        self.feedback(super::PAYLOAD_FEEDBACK, 1, sender, media);
        self.end();
    }

    /// Writes full intra requests (RFC 5104 section 4.3.1).
    pub fn full_intra_request(&mut self, sender: Ssrc, requests: &[Fir]) {
        self.feedback(super::PAYLOAD_FEEDBACK, 4, sender, Ssrc(0));
        for request in requests {
            self.word(request.ssrc.0);
            self.bytes.extend([request.number, 0, 0, 0]);
        }
        self.end();
    }

    /// Writes a receiver's estimate, in bits per second, of the first 255 of `sources`
    /// (draft-alvestrand-rmcat-remb); the number has 18 significant bits.
    pub fn estimate(&mut self, sender: Ssrc, bit_rate: u64, sources: &[Ssrc]) {
        let sources = &sources[..sources.len().min(255)];
        self.feedback(super::PAYLOAD_FEEDBACK, 15, sender, Ssrc(0));
        self.bytes.extend(b"REMB");
        self.word(Remb::to_word(bit_rate, sources.len() as u8));
        for source in sources {
            self.word(source.0);
        }
        self.end();
    }

    /// Writes an extended report with the receiver's wall clock (RFC 3611 section 4.4).
    pub fn reference_time(&mut self, ssrc: Ssrc, now: NtpTime) {
        self.begin(super::EXTENDED_REPORT, 0);
        self.word(ssrc.0);
        self.bytes.extend([4, 0, 0, 2]);
        self.bytes.extend(now.0.to_be_bytes());
        self.end();
    }

    /// Writes an extended report that answers reference times (RFC 3611 section 4.5).
    pub fn delays(&mut self, ssrc: Ssrc, delays: &[Dlrr]) {
        self.begin(super::EXTENDED_REPORT, 0);
        self.word(ssrc.0);
        let words = 3 * delays.len() as u32;
        self.word(5 << 24 | words);
        for delay in delays {
            self.bytes.extend(delay.to_bytes());
        }
        self.end();
    }

    fn bit_rates(&mut self, format: u8, sender: Ssrc, limits: &[BitRateLimit]) {
        self.feedback(super::TRANSPORT_FEEDBACK, format, sender, Ssrc(0));
        for limit in limits {
            self.bytes.extend(limit.to_bytes());
        }
        self.end();
    }

    fn feedback(&mut self, packet_type: u8, format: u8, sender: Ssrc, media: Ssrc) {
        self.begin(packet_type, format);
        self.word(sender.0);
        self.word(media.0);
    }

    fn blocks(&mut self, blocks: &[ReportBlock]) {
        for block in blocks {
            self.bytes.extend(block.to_bytes());
        }
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_be_bytes());
    }

    fn begin(&mut self, packet_type: u8, count: u8) {
        self.start = self.bytes.len();
        self.bytes.extend([0x80 | count, packet_type, 0, 0]);
    }

    /// Pads the packet with zeros to a multiple of four octets.
    fn pad(&mut self) {
        let len = (self.bytes.len() - self.start).next_multiple_of(4);
        self.bytes.resize(self.start + len, 0);
    }

    fn end(&mut self) {
        let words = (self.bytes.len() - self.start) / HEADER_LEN - 1;
        let place = self.start + 2;
        self.bytes[place..place + 2].copy_from_slice(&(words as u16).to_be_bytes());
    }
}
