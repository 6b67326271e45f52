//! The receiving half of a stream: its state, its timers and its output.
//!
//! A datagram takes these steps, in this order (`datagram.rs`):
//!
//! ```text
//! datagram ─▶ unprotect ─▶ parse ─▶ source ─▶ verdict ─▶ join ─▶ frame
//!             │            │        │         │          │
//!             srtp         rtp      inbound   window     payload
//! ```
//!
//! Every step either passes the packet on or discards it for a [`Discard`] reason, which is
//! counted. No step allocates in steady state or depends on the steps after it. A packet in turn is
//! copied once, into its frame; only an early packet is also copied into the window.
//!
//! The mirror of this module is `send`; the wire layouts are in `rtp` and `payload`.

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::candidate::Candidate;
use super::config::{ConfigError, ReceiverConfig};
use super::ended::Ended;
use super::event::Event;
use super::inbound::Inbound;
use super::secure::Security;
use super::sender_count::SentSoFar;
use super::stats::{Discard, ReceiveStatistics, SourceStatistics};
use crate::ecn::Ecn;
use crate::payload::{Frame, FramePool, PackedFrames, PayloadFormat};
use crate::rtp::TransportSequence;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// Maximum number of events that wait to be polled; the oldest are forgotten, and counted.
const EVENTS_MAX: usize = 256;

/// The receiving half of a stream: orders the packets of each source and joins them into frames.
///
/// The caller drives it: after [`handle_datagram`](Self::handle_datagram) or
/// [`handle_timeout`](Self::handle_timeout), drain [`poll_frame`](Self::poll_frame) and
/// [`poll_event`](Self::poll_event), then wait until [`poll_timeout`](Self::poll_timeout) or the
/// next datagram. The receiver knows only the times that the caller passes in.
///
/// # Limits
/// [`ReceiverConfig`] bounds the memory: a window and one unfinished frame per source, and
/// [`memory_max`](ReceiverConfig::memory_max) for all sources together. Besides these the receiver
/// keeps a decoder per source if there are [repair packets](ReceiverConfig::fec), within its limits,
/// up to 32 MiB of free buffers for reuse (or, while a source has frames of more than 8 MiB, room for two
/// of the largest, up to the next power of two), and finished frames until the caller drains them.
pub struct Receiver {
    pub(super) format: Arc<dyn PayloadFormat>,
    pub(super) config: ReceiverConfig,
    pub(super) sources: Vec<Inbound>,
    pub(super) candidates: Vec<Candidate>,
    /// The index of the source of the last packet; the next packet most likely has the same one.
    pub(super) recent: usize,
    /// Finished frames of sources that have ended.
    pub(super) orphans: VecDeque<Frame>,
    /// The same, if frames are delivered together.
    pub(super) packed_orphans: PackedFrames,
    pub(super) pool: FramePool,
    pub(super) events: VecDeque<Event>,
    pub(super) statistics: ReceiveStatistics,
    /// Octets that all sources hold together.
    pub(super) held: usize,
    pub(super) ended: Ended,
    /// The last sender report of a source that has sent no accepted media yet.
    pub(super) early_report: Option<(Ssrc, IpAddr, SentSoFar)>,
    pub(super) own_ssrc: Option<Ssrc>,
    /// Other SSRCs that are or were ours; packets that carry them are not those of another source.
    pub(super) own_others: VecDeque<Ssrc>,
    pub(super) conflict: Option<SocketAddr>,
    /// `None` if packets are not protected.
    pub(super) security: Option<Box<Security>>,
    /// Retransmission streams, each with the source to which it belongs.
    pub(super) retransmissions: VecDeque<(Ssrc, Ssrc)>,
    /// Memory for the elements of a packet's header extension.
    pub(super) elements: Vec<u8>,
    /// Arrivals with transport-wide sequence numbers that were not polled yet.
    pub(super) wide_arrivals: VecDeque<(TransportSequence, Instant)>,
    /// The last packet that arrived within RED, as it was before it; empty if there was none.
    pub(super) bare: Vec<u8>,
    /// Packets of other payload types since the last event about them, and the time of that event.
    pub(super) other_types: (u64, Option<Instant>),
}

/// Maximum number of our other SSRCs that are remembered.
const OWN_SSRCS_MAX: usize = 256;

impl Receiver {
    /// Creates a receiver of `format`.
    ///
    /// # Errors
    /// [`ConfigError`] if a limit is out of range.
    pub fn new(
        format: Arc<dyn PayloadFormat>,
        config: ReceiverConfig,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            format,
            config,
            sources: Vec::new(),
            candidates: Vec::new(),
            recent: 0,
            orphans: VecDeque::new(),
            packed_orphans: PackedFrames::new(),
            pool: FramePool::new(),
            events: VecDeque::new(),
            statistics: ReceiveStatistics::default(),
            held: 0,
            ended: Ended::default(),
            early_report: None,
            own_ssrc: None,
            own_others: VecDeque::new(),
            conflict: None,
            security: None,
            retransmissions: VecDeque::new(),
            elements: Vec::new(),
            wide_arrivals: VecDeque::new(),
            bare: Vec::new(),
            other_types: (0, None),
        })
    }

    /// Makes the receiver accept only protected packets (RFC 3711). Sources whose packets are
    /// authentic need no probation.
    #[cfg(feature = "srtp")]
    #[must_use]
    pub fn secured(mut self, unprotector: crate::srtp::Unprotector) -> Self {
        self.security = Some(Box::new(Security::new(unprotector)));
        self
    }

    /// Returns the context that unprotects packets, if the stream is secured.
    #[cfg(feature = "srtp")]
    pub fn unprotector(&mut self) -> Option<&mut crate::srtp::Unprotector> {
        self.security.as_mut().map(|security| security.unprotector())
    }

    /// Sets our own SSRC: packets that carry it, or one set earlier, are not accepted.
    pub fn set_own_ssrc(&mut self, ssrc: Ssrc) {
        if let Some(before) = self.own_ssrc.replace(ssrc) {
            self.add_own_ssrc(before);
        }
    }

    /// Adds an SSRC that is also ours, such as that of our retransmissions; packets that carry it
    /// are not accepted. The last 256 are remembered.
    pub fn add_own_ssrc(&mut self, ssrc: Ssrc) {
        if self.own_others.len() >= OWN_SSRCS_MAX {
            self.own_others.pop_front();
        }
        self.own_others.push_back(ssrc);
    }

    /// Returns an address from which a packet with our own SSRC arrived.
    pub fn poll_conflict(&mut self) -> Option<SocketAddr> {
        self.conflict.take()
    }

    /// Handles a BYE of source `ssrc` that arrived at `now` from the host `from` (RFC 3550 section
    /// 6.6): the receiver waits for packets under way, then the source ends. The source may return
    /// from another address at once. A BYE from another host than the source's is ignored.
    pub fn handle_bye(&mut self, now: Instant, ssrc: Ssrc, from: IpAddr) {
        if let Some(n) = self.source_at(ssrc, from) {
            self.sources[n].leave(now);
        }
    }

    /// Handles a report of source `ssrc` that arrived at `now` from the host `from`: the source is
    /// alive, even if it sends no media. The counts of a sender report, in `sent`, show whether
    /// packets after the newest one are missing. One from another host is ignored.
    pub fn handle_report(
        &mut self,
        now: Instant,
        ssrc: Ssrc,
        from: IpAddr,
        sent: Option<SentSoFar>,
    ) {
        match (self.source_at(ssrc, from), sent) {
            (Some(n), _) => {
                self.with_source(n, |source, report| source.handle_report(now, sent, report));
            }
            // The report may be handled before the media that it counts.
            (None, Some(sent)) => self.early_report = Some((ssrc, from, sent)),
            (None, None) => {}
        }
    }

    /// Sets the round-trip time to source `ssrc`, as measured by reports (RFC 3550 section 6.4.1,
    /// RFC 3611 section 4.5). It determines how long the receiver waits for a missing packet and
    /// when it requests the packet again.
    pub fn set_round_trip(&mut self, ssrc: Ssrc, time: Duration) {
        if let Some(n) = self.find(ssrc) {
            self.sources[n].set_round_trip(time);
        }
    }

    /// Returns whether any source sends from the host `at`.
    pub fn has_source_at(&self, at: IpAddr) -> bool {
        let is_there = |source: &Inbound| source.origin.address().is_some_and(|it| it.ip() == at);
        self.sources.iter().any(is_there)
    }

    fn source_at(&self, ssrc: Ssrc, from: IpAddr) -> Option<usize> {
        let is_there = |at: SocketAddr| at.ip() == from;
        self.find(ssrc).filter(|n| self.sources[*n].origin.address().is_some_and(is_there))
    }

    /// Returns whether [`poll_conflict`](Self::poll_conflict) will return an address.
    pub fn has_conflict(&self) -> bool {
        self.conflict.is_some()
    }

    /// Adds to `out` the packets of one source to request at `now`, and returns that source. Call
    /// it until it returns `None`.
    pub fn poll_requests(&mut self, now: Instant, out: &mut Vec<SequenceNumber>) -> Option<Ssrc> {
        let due = |source: &&mut Inbound| source.requests_due().is_some_and(|due| due <= now);
        let source = self.sources.iter_mut().find(due)?;
        source.take_requests(now, out);
        Some(source.ssrc())
    }

    /// Returns the transport address of the source of the last packet, if known.
    pub fn source_address(&self) -> Option<SocketAddr> {
        self.sources
            .get(self.recent)
            .or_else(|| self.sources.first())
            .and_then(|source| source.origin.address())
    }

    /// Returns the transport address of source `ssrc`, if it is believed and its address known.
    pub fn address_of(&self, ssrc: Ssrc) -> Option<SocketAddr> {
        self.find(ssrc).and_then(|n| self.sources[n].origin.address())
    }

    /// Adds to `out` the arrival times of the packets of one source, `None` for missing ones, and
    /// returns the source and the first of these packets. Call it until it returns `None`.
    pub fn poll_arrivals(
        &mut self,
        out: &mut Vec<Option<(Instant, Ecn)>>,
    ) -> Option<(Ssrc, SequenceNumber)> {
        self.sources.iter_mut().find_map(|source| {
            let begin = source.take_arrivals(out)?;
            Some((source.ssrc(), begin.sequence()))
        })
    }

    /// Returns the next arrival of a packet with a transport-wide sequence number, of media, repair or
    /// retransmission, for the [`WideArrivals`](super::WideArrivals) of its connection. The last 4 096
    /// are remembered.
    #[inline]
    pub fn poll_wide_arrival(&mut self) -> Option<(TransportSequence, Instant)> {
        self.wide_arrivals.pop_front()
    }

    /// Returns when [`poll_requests`](Self::poll_requests) will return packets; `None` if never.
    pub fn requests_due(&self) -> Option<Instant> {
        self.sources.iter().filter_map(Inbound::requests_due).min()
    }

    /// Handles the timers that are due at `now`; early and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        for n in (0..self.sources.len()).rev() {
            let mut is_over = false;
            self.with_source(n, |source, report| is_over = source.handle_timeout(now, report));
            if is_over {
                self.end_source(n);
            }
        }
    }

    /// Stops waiting for missing packets of all sources: complete frames are finished, the others
    /// dropped and counted. To be called at the end of a reception.
    pub fn flush(&mut self) {
        for n in 0..self.sources.len() {
            self.with_source(n, Inbound::finish);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next; `None` if never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.sources.iter().filter_map(Inbound::poll_timeout).min()
    }

    /// Returns the next finished frame; the frames of one source are in order.
    #[inline]
    pub fn poll_frame(&mut self) -> Option<Frame> {
        if let Some(frame) = self.orphans.pop_front() {
            return Some(frame);
        }
        self.sources.iter_mut().find_map(Inbound::poll_frame)
    }

    /// Replaces the frames in `into` by all finished ones, if they are delivered
    /// [together](crate::payload::FrameSettings::packed); returns whether there are any.
    ///
    /// The receiver uses the memory of `into` for the next frames.
    pub fn poll_packed(&mut self, into: &mut PackedFrames) -> bool {
        into.clear();
        into.append(&mut self.packed_orphans);
        for source in &mut self.sources {
            source.take_packed(into);
        }
        !into.is_empty()
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the octets of memory in finished frames that wait for
    /// [`poll_frame`](Self::poll_frame).
    pub fn ready_octets(&self) -> usize {
        let orphans: usize = self.orphans.iter().map(|frame| frame.len()).sum();
        self.packed_orphans.memory()
            + orphans
            + self.sources.iter().map(Inbound::ready_octets).sum::<usize>()
    }

    /// Returns the octets of memory in the largest finished frame that waits for
    /// [`poll_frame`](Self::poll_frame). Takes time in proportion to the frames.
    pub fn largest_ready(&self) -> usize {
        self.sources.iter().map(Inbound::largest_ready).max().unwrap_or(0)
    }

    /// Returns the statistics of the reception so far.
    pub fn statistics(&self) -> ReceiveStatistics {
        let Ended { frames, frames_dropped, repairs, .. } = &self.ended;
        let (mut frames, mut frames_dropped, mut repairs) = (*frames, *frames_dropped, *repairs);
        for source in &self.sources {
            let SourceStatistics { frames: whole, frames_dropped: dropped, .. } =
                source.statistics();
            frames += whole;
            frames_dropped += dropped;
            repairs += source.repairs();
        }
        ReceiveStatistics {
            frames,
            frames_dropped,
            requested: repairs.requested,
            recovered: repairs.recovered,
            unanswered: repairs.unanswered,
            not_requested: repairs.not_requested,
            held_octets: self.held,
            sources: self.sources.iter().map(Inbound::statistics).collect(),
            ended: self.ended.last.iter().map(|source| source.statistics).collect(),
            ..self.statistics.clone()
        }
    }

    /// Returns the receiver's configuration.
    pub fn config(&self) -> &ReceiverConfig {
        &self.config
    }

    /// Returns the statistics of each believed source, for reception reports.
    pub fn receptions(&self) -> impl Iterator<Item = SourceStatistics> {
        self.sources.iter().map(Inbound::statistics)
    }

    #[inline]
    pub(super) fn find(&self, ssrc: Ssrc) -> Option<usize> {
        if self.sources.get(self.recent).is_some_and(|source| source.ssrc() == ssrc) {
            return Some(self.recent);
        }
        self.sources.iter().position(|source| source.ssrc() == ssrc)
    }

    pub(super) fn discard(&mut self, reason: Discard) {
        self.statistics.discards.count(reason);
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.events.push_back(event);
        self.forget_events();
    }

    pub(super) fn forget_events(&mut self) {
        while self.events.len() > EVENTS_MAX {
            self.events.pop_front();
            self.statistics.events_forgotten += 1;
        }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("format", &self.format)
            .field("config", &self.config)
            .field("sources", &self.sources.len())
            .finish_non_exhaustive()
    }
}
