//! The receive path: one datagram in, at most a few finished frames out.
//!
//! A datagram takes these steps, in this order:
//!
//! ```text
//! datagram ─▶ demux ─▶ parse ─▶ source ─▶ order ─▶ join ─▶ frame
//!             │        │        │         │        │
//!             │        rtp      sequence  reorder  payload
//!             └─▶ RTCP leaves the path here
//! ```
//!
//! Every step either passes the packet on or ends its life with a [`Discard`] reason, which is
//! counted; none allocates in steady state, and none sees the steps after it. A packet in its
//! turn is copied once, into its frame; only one that came early is copied into the window too.
//!
//! The mirror of this module is `send`; the wire layouts are in `rtp` and `payload`.

use core::net::IpAddr;
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::candidate::{Arrived, Candidate, Report};
use super::config::ConfigError;
use super::config::ReceiverConfig;
use super::event::Event;
use super::inbound::Inbound;
use super::secure::Security;
use super::stats::Discard;
use super::stats::ReceiveStatistics;
use super::stats::SourceStatistics;
use crate::payload::Frame;
use crate::payload::FramePool;
use crate::payload::PacketInfo;
use crate::payload::PayloadFormat;
use crate::repair::rtx;
use crate::rtp::Packet;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// Events that wait to be collected; older ones are forgotten, and counted.
const EVENTS_MAX: usize = 256;

/// The receiving half of a stream: many sources, each put in order and joined into frames.
///
/// It is driven, never driving: after [`handle_datagram`](Self::handle_datagram) or
/// [`handle_timeout`](Self::handle_timeout), drain [`poll_frame`](Self::poll_frame) and
/// [`poll_event`](Self::poll_event), then wait until [`poll_timeout`](Self::poll_timeout) or the
/// next datagram. Time is whatever the caller says it is.
///
/// # Limits
/// Memory is bounded by [`ReceiverConfig`]: per source, a window and one unfinished frame; and
/// finished frames, which the caller drains.
pub struct Receiver {
    format: Arc<dyn PayloadFormat>,
    pub(super) config: ReceiverConfig,
    pub(super) sources: Vec<Inbound>,
    candidates: Vec<Candidate>,
    /// The source of the last packet: the next one is most likely of the same.
    pub(super) recent: usize,
    /// Finished frames of sources that are gone.
    orphans: VecDeque<Frame>,
    pool: FramePool,
    pub(super) events: VecDeque<Event>,
    pub(super) statistics: ReceiveStatistics,
    /// Frames of sources that are gone: delivered, dropped.
    gone: (u64, u64),
    /// Their requests: made, answered.
    gone_repairs: (u64, u64),
    pub(super) own_ssrc: Option<Ssrc>,
    /// Others that are ours or were: what we sent must not come back as somebody else's.
    pub(super) own_others: VecDeque<Ssrc>,
    conflict: Option<SocketAddr>,
    /// `None` if packets come clear.
    pub(super) security: Option<Box<Security>>,
    /// Which source each retransmission stream belongs to.
    retransmissions: VecDeque<(Ssrc, Ssrc)>,
}

/// Former SSRCs of our own that are known.
const OWN_SSRCS_MAX: usize = 256;

impl Receiver {
    /// A receiver of `format`.
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
            pool: FramePool::new(),
            events: VecDeque::with_capacity(EVENTS_MAX),
            statistics: ReceiveStatistics::default(),
            gone: (0, 0),
            gone_repairs: (0, 0),
            own_ssrc: None,
            own_others: VecDeque::new(),
            conflict: None,
            security: None,
            retransmissions: VecDeque::new(),
        })
    }

    /// The receiver, which takes protected packets (RFC 3711) and no others. Sources whose packets
    /// are authentic need no probation.
    #[cfg(feature = "srtp")]
    #[must_use]
    pub fn secured(mut self, unprotector: crate::srtp::Unprotector) -> Self {
        self.security = Some(Box::new(Security::new(unprotector)));
        self
    }

    /// What takes packets out of protection, if anything does.
    #[cfg(feature = "srtp")]
    pub fn unprotector(&mut self) -> Option<&mut crate::srtp::Unprotector> {
        self.security.as_mut().map(|security| security.unprotector())
    }

    /// Takes one datagram that came in at `now`.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        self.handle_datagram_from(now, None, datagram);
    }

    /// Takes one datagram that came in at `now` from the transport address `from`.
    ///
    /// A source is followed at one address; the same SSRC from another is a collision or a loop
    /// (RFC 3550 section 8.2).
    pub fn handle_datagram_from(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) {
        if self.security.is_some() {
            self.handle_protected(now, from, datagram);
        } else {
            self.handle_clear(now, from, datagram);
        }
    }

    /// Takes a datagram that is not, or no longer, protected.
    #[inline]
    pub(super) fn handle_clear(&mut self, now: Instant, from: Option<SocketAddr>, datagram: &[u8]) {
        if let Err(reason) = self.take(now, from, datagram) {
            self.discard(reason);
        }
    }

    pub(super) fn discard(&mut self, reason: Discard) {
        self.statistics.discards.count(reason);
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
        self.forget_events();
    }

    /// Sets the SSRC that is our own: packets that carry it, or that carry one from before, are not
    /// taken.
    pub fn set_own_ssrc(&mut self, ssrc: Ssrc) {
        if let Some(before) = self.own_ssrc.replace(ssrc) {
            self.add_own_ssrc(before);
        }
    }

    /// Adds an SSRC that is ours too, such as that of our retransmissions; packets that carry it
    /// are not taken. The last 256 are known.
    pub fn add_own_ssrc(&mut self, ssrc: Ssrc) {
        if self.own_others.len() >= OWN_SSRCS_MAX {
            self.own_others.pop_front();
        }
        self.own_others.push_back(ssrc);
    }

    /// An address from which a packet with our own SSRC came.
    pub fn poll_conflict(&mut self) -> Option<SocketAddr> {
        self.conflict.take()
    }

    /// Takes word from `from` that source `ssrc` has left: it may come again from another address
    /// at once. From another host than the source's own the word counts for nothing.
    pub fn handle_bye(&mut self, ssrc: Ssrc, from: IpAddr) {
        let is_its_own = |source: &&mut Inbound| {
            source.ssrc() == ssrc && source.address().is_some_and(|address| address.ip() == from)
        };
        if let Some(source) = self.sources.iter_mut().find(is_its_own) {
            source.set_address(None);
        }
    }

    /// Whether [`poll_conflict`](Self::poll_conflict) has something.
    pub fn has_conflict(&self) -> bool {
        self.conflict.is_some()
    }

    /// Adds to `out` the packets of one source to be asked for at `now`, and says which source;
    /// to be called until there is none. What is not answered is due again after `retry`, which
    /// should be a little more than the round-trip time.
    pub fn poll_requests(
        &mut self,
        now: Instant,
        retry: Duration,
        out: &mut Vec<SequenceNumber>,
    ) -> Option<Ssrc> {
        let due = |source: &&mut Inbound| source.requests_due().is_some_and(|due| due <= now);
        let source = self.sources.iter_mut().find(due)?;
        source.take_requests(now, retry, out);
        Some(source.ssrc())
    }

    /// Where the source that was heard last sends from, if that was told.
    pub fn source_address(&self) -> Option<SocketAddr> {
        self.sources.get(self.recent).or_else(|| self.sources.first()).and_then(Inbound::address)
    }

    /// Adds to `out` when the packets of one source came, or that they did not, and says which
    /// source and from which packet on; to be called until there is none.
    pub fn poll_arrivals(
        &mut self,
        out: &mut Vec<Option<Instant>>,
    ) -> Option<(Ssrc, SequenceNumber)> {
        self.sources.iter_mut().find_map(|source| {
            let begin = source.take_arrivals(out)?;
            Some((source.ssrc(), begin.sequence()))
        })
    }

    /// When [`poll_requests`](Self::poll_requests) will have something; `None` if never.
    pub fn requests_due(&self) -> Option<Instant> {
        self.sources.iter().filter_map(Inbound::requests_due).min()
    }

    /// Does what has become due at `now`; early and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        for n in 0..self.sources.len() {
            self.with_source(n, |source, report| source.handle_timeout(now, report));
        }
    }

    /// Waits no longer for packets that are missing, of any source: what is whole is finished, the
    /// rest is dropped and counted. For the end of a reception.
    pub fn flush(&mut self) {
        for n in 0..self.sources.len() {
            self.with_source(n, Inbound::flush);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next; `None` if never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.sources.iter().filter_map(Inbound::poll_timeout).min()
    }

    /// The next finished frame; those of one source come in order.
    #[inline]
    pub fn poll_frame(&mut self) -> Option<Frame> {
        if let Some(frame) = self.orphans.pop_front() {
            return Some(frame);
        }
        self.sources.iter_mut().find_map(Inbound::poll_frame)
    }

    /// The next thing to tell the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Octets of memory in finished frames that wait for [`poll_frame`](Self::poll_frame).
    pub fn ready_octets(&self) -> usize {
        let orphans: usize = self.orphans.iter().map(|frame| frame.len()).sum();
        orphans + self.sources.iter().map(Inbound::ready_octets).sum::<usize>()
    }

    /// What was received so far.
    pub fn statistics(&self) -> ReceiveStatistics {
        let (mut frames, mut frames_dropped) = self.gone;
        let (mut requested, mut recovered) = self.gone_repairs;
        for source in &self.sources {
            frames += source.frames().0;
            frames_dropped += source.frames().1;
            requested += source.repairs().0;
            recovered += source.repairs().1;
        }
        ReceiveStatistics {
            frames,
            frames_dropped,
            requested,
            recovered,
            held_octets: self.sources.iter().map(Inbound::held_octets).sum(),
            sources: self.sources.iter().map(Inbound::statistics).collect(),
            ..self.statistics.clone()
        }
    }

    /// What the receiver was told.
    pub fn config(&self) -> &ReceiverConfig {
        &self.config
    }

    /// What was received of each believed source, for the reports on it.
    pub fn receptions(&self) -> impl Iterator<Item = SourceStatistics> {
        self.sources.iter().map(Inbound::statistics)
    }

    fn take(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) -> Result<(), Discard> {
        if datagram.is_empty() {
            return Err(Discard::KeepAlive);
        }
        // RFC 5761 section 4: packet types 192 to 223 are RTCP.
        if matches!(datagram, [128..=191, 192..=223, ..]) {
            return Err(Discard::Rtcp);
        }
        let packet = Packet::parse(datagram).map_err(|_| Discard::NotRtp)?;
        let ssrc = packet.ssrc();
        if self.own_ssrc == Some(ssrc) {
            self.conflict = from;
            return Err(Discard::OwnSource);
        }
        if self.own_others.contains(&ssrc) {
            return Err(Discard::OwnSource);
        }
        if packet.payload_type() != self.config.payload_type.value() {
            return self.take_retransmission(now, &packet);
        }
        if self.config.remote_ssrc.is_some_and(|remote| remote != ssrc) {
            return Err(Discard::OtherSource);
        }
        let (timestamp, marker) = (packet.timestamp(), packet.marker());
        let arrived = Arrived {
            sequence: packet.sequence(),
            info: PacketInfo { ssrc, timestamp, marker, arrival: now },
            payload: packet.payload(),
        };
        if let Some(n) = self.find(ssrc) {
            self.recent = n;
            let is_authentic = self.is_authentic();
            let mut here = true;
            self.with_source(n, |source, report| {
                here = source.is_at(now, from, is_authentic, report);
                if here {
                    source.take(arrived, report);
                }
            });
            return if here { Ok(()) } else { Err(Discard::Conflict) };
        }
        self.consider(arrived, from)
    }

    /// Takes a packet of another payload type: a retransmission (RFC 4588), or none of ours.
    fn take_retransmission(&mut self, now: Instant, packet: &Packet<'_>) -> Result<(), Discard> {
        let (payload_type, agreed) = self.config.retransmission.ok_or(Discard::PayloadType)?;
        if packet.payload_type() != payload_type.value() {
            return Err(Discard::PayloadType);
        }
        let stream = packet.ssrc();
        if agreed.is_some_and(|agreed| agreed != stream) {
            return Err(Discard::OtherSource);
        }
        let (sequence, payload) = rtx::unwrap(packet.payload()).ok_or(Discard::Retransmission)?;
        let media = self.media_of(stream, sequence).ok_or(Discard::Retransmission)?;
        let n = self.find(media).ok_or(Discard::Retransmission)?;
        let (timestamp, marker) = (packet.timestamp(), packet.marker());
        let info = PacketInfo { ssrc: media, timestamp, marker, arrival: now };
        let arrived = Arrived { sequence, info, payload };
        self.with_source(n, |source, report| source.take_again(arrived, report));
        Ok(())
    }

    /// The source that a retransmission stream belongs to. A new stream belongs to the one source
    /// that misses the packet it brings (RFC 4588 section 5.3).
    fn media_of(&mut self, stream: Ssrc, sequence: SequenceNumber) -> Option<Ssrc> {
        if let Some((_, media)) = self.retransmissions.iter().find(|(known, _)| *known == stream) {
            return Some(*media);
        }
        let mut missing = self.sources.iter().filter(|source| source.misses(sequence));
        let media = missing.next().filter(|_| missing.next().is_none())?.ssrc();
        if self.retransmissions.len() >= self.config.sources_max {
            self.retransmissions.pop_front();
        }
        self.retransmissions.push_back((stream, media));
        Some(media)
    }

    /// Whether what comes this far is its source's own.
    #[inline]
    fn is_authentic(&self) -> bool {
        self.security.as_ref().is_some_and(|security| security.authenticates())
    }

    #[inline]
    fn find(&self, ssrc: Ssrc) -> Option<usize> {
        if self.sources.get(self.recent).is_some_and(|source| source.ssrc() == ssrc) {
            return Some(self.recent);
        }
        self.sources.iter().position(|source| source.ssrc() == ssrc)
    }

    /// Takes a packet of a source that is not believed yet.
    fn consider(&mut self, packet: Arrived<'_>, from: Option<SocketAddr>) -> Result<(), Discard> {
        let (ssrc, now) = (packet.info.ssrc, packet.info.arrival);
        if self.sources.len() >= self.config.sources_max && self.silent_source(now).is_none() {
            return Err(Discard::TooManySources);
        }
        let n = match self.candidates.iter().position(|candidate| candidate.ssrc() == ssrc) {
            Some(n) => n,
            None => self.add_candidate(ssrc, now),
        };
        let is_known = self.config.remote_ssrc.is_some() || self.is_authentic();
        let probation = if is_known { 1 } else { self.config.probation };
        let Self { candidates, statistics, events, .. } = self;
        if !candidates[n].take(packet, probation, &mut Report { statistics, events }) {
            return Ok(());
        }
        if self.sources.len() >= self.config.sources_max
            && let Some(silent) = self.silent_source(now)
        {
            self.end_source(silent);
        }
        let candidate = self.candidates.swap_remove(n);
        let Self { sources, statistics, events, config, format, pool, .. } = self;
        let mut report = Report { statistics, events };
        let mut source = Inbound::new(candidate, &**format, config, pool, &mut report);
        source.set_address(from);
        sources.push(source);
        self.forget_events();
        Ok(())
    }

    /// Makes `ssrc` a candidate, if need be in the place of the one that was silent longest.
    fn add_candidate(&mut self, ssrc: Ssrc, now: Instant) -> usize {
        if self.candidates.len() >= self.config.sources_max {
            let oldest = (0..self.candidates.len()).min_by_key(|n| self.candidates[*n].last_heard);
            if let Some(oldest) = oldest {
                let candidate = self.candidates.swap_remove(oldest);
                for _ in 0..candidate.kept() {
                    self.statistics.discards.count(Discard::Probation);
                }
            }
        }
        self.candidates.push(Candidate::new(ssrc, now));
        self.candidates.len() - 1
    }

    /// The source that was silent longest, if that is long enough to lose its place.
    fn silent_source(&self, now: Instant) -> Option<usize> {
        let heard = |n: &usize| self.sources[*n].last_heard;
        (0..self.sources.len())
            .min_by_key(heard)
            .filter(|n| now.saturating_duration_since(heard(n)) >= self.config.source_timeout)
    }

    /// Ends a source; frames that it had finished are still delivered.
    fn end_source(&mut self, n: usize) {
        self.with_source(n, Inbound::end);
        let mut source = self.sources.swap_remove(n);
        self.orphans.extend(std::iter::from_fn(|| source.poll_frame()));
        self.gone.0 += source.frames().0;
        self.gone.1 += source.frames().1;
        self.gone_repairs.0 += source.repairs().0;
        self.gone_repairs.1 += source.repairs().1;
    }

    #[inline]
    fn with_source(&mut self, n: usize, act: impl FnOnce(&mut Inbound, &mut Report<'_>)) {
        let Self { sources, statistics, events, .. } = self;
        act(&mut sources[n], &mut Report { statistics, events });
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
