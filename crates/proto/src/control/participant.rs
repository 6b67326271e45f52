//! One participant of an RTP session: sends and receives reports.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use super::circuit_breaker::CircuitBreakers;
use super::config::{MediaSent, ParticipantConfig, Reception};
use super::conflict::{Conflict, Conflicts};
use super::event::{ControlEvent, KeyFrameRequest};
use super::limits::Limits;
use super::pending::{AppData, Pending};
use super::remote::{Priority, Remote, RemoteStatistics, Remotes};
use super::round_trip::RoundTripTime;
use super::secure::{ControlError, Security};
use crate::ecn::Ecn;
use crate::rtcp::{
    BitRateLimit, Compound, Dlrr, Packet, RECEIVER_REPORT, ReportBlock, RtcpError, SENDER_REPORT,
    Writer,
};
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::{NtpTime, RtpTimestamp};
use crate::timer::{Due, Timer};

/// Maximum number of queued events; older ones are dropped, and counted.
const EVENTS_MAX: usize = 256;

/// Number of our last reports for which answers are accepted.
const STAMPS_MAX: usize = 32;

/// Maximum number of datagrams that may follow a report or feedback at once, with requests that did
/// not fit in it; further requests wait for the next report.
const FOLLOWING_MAX: u8 = 8;

/// Approximate octets of a BYE with an empty report and a name before it.
const BYE_LEN: usize = 60;

/// Counts of a participant's activity so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ControlStatistics {
    /// Whole reports sent.
    pub reports_sent: u64,
    /// Feedback datagrams sent before the next report.
    pub feedback_sent: u64,
    /// Octets sent, IP and UDP headers included.
    pub octets_sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Octets received, IP and UDP headers included.
    pub octets_received: u64,
    /// Datagrams and packets that were malformed.
    pub malformed: u64,
    /// Datagrams refused because they are not authentic. This counter and the next four count only
    /// for secured participants.
    pub unauthentic: u64,
    /// Those among `unauthentic` that are readable as they are: their sender does not encrypt.
    pub clear: u64,
    /// Datagrams refused as replays.
    pub replayed: u64,
    /// Datagrams refused because the lifetime of their master key has ended.
    pub key_expired: u64,
    /// Datagrams not sent because the lifetime of our master key has ended.
    pub unprotected: u64,
    /// Packets of unknown types, skipped.
    pub packets_unknown: u64,
    /// Events that were dropped because the application did not poll them in time.
    pub events_forgotten: u64,
    /// Malformed datagrams that begin like a report: their sender may encrypt. Counted only by
    /// participants that are not secured.
    pub encrypted: u64,
    /// Number of participants, including this one; an estimate if there are many.
    pub members: usize,
    /// Number of participants that send media.
    pub senders: usize,
    /// The interval between reports, before it is randomised.
    pub interval: Duration,
}

/// One participant: its own SSRC, and the state of the others.
///
/// After [`handle_datagram`](Self::handle_datagram) and whenever
/// [`poll_timeout`](Self::poll_timeout) has passed, call [`poll_datagram`](Self::poll_datagram)
/// until it returns `None`, send each datagram, and collect events with
/// [`poll_event`](Self::poll_event).
pub struct Participant {
    pub(super) config: ParticipantConfig,
    pub(super) ssrc: Ssrc,
    pub(super) timer: Timer,
    pub(super) remotes: Remotes,
    pub(super) pending: Pending,
    conflicts: Conflicts,
    generator: u64,
    /// Number of media packets sent, and the last frame, at the last poll.
    sent: (u64, Option<(RtpTimestamp, Instant)>),
    last_poll: Instant,
    /// The timestamps of our last reports, which others may answer.
    pub(super) stamps: VecDeque<u32>,
    pub(super) limits: Limits,
    pub(super) breakers: CircuitBreakers,
    /// Packets in reports by transport-wide number that are read of one datagram, and how many of them
    /// are left of the current one. Few octets can claim many packets.
    pub(super) wide_max: usize,
    pub(super) wide_left: usize,
    /// Whether datagrams may come from receivers of our media; see `set_from_peer`.
    is_from_peer: bool,
    /// Number of datagrams that may still follow the last one.
    following: u8,
    pub(super) described: usize,
    pub(super) next_block: usize,
    pub(super) reason: String,
    /// An abandoned SSRC for which a BYE is still to be sent.
    pending_bye: Option<Ssrc>,
    gone: bool,
    /// Whether we sent media when leaving: the timer forgets it, the last report needs the counts.
    left_sending: bool,
    pub(super) writer: Writer,
    pub(super) blocks: Vec<ReportBlock>,
    pub(super) delays: Vec<Dlrr>,
    events: VecDeque<ControlEvent>,
    pub(super) statistics: ControlStatistics,
    /// `None` if reports are not protected.
    pub(super) security: Option<Box<Security>>,
}

impl Participant {
    /// Creates a participant that joins at `now`; its first report is due after half an interval.
    pub fn new(config: ParticipantConfig, now: Instant) -> Self {
        let timer = Timer::new(config.timer, config.ssrc, config.seed, now);
        Self {
            ssrc: config.ssrc,
            timer,
            remotes: Remotes::new(config.sources_max),
            pending: Pending::default(),
            conflicts: Conflicts::default(),
            generator: config.seed ^ 0x5353_5243,
            sent: (0, None),
            last_poll: now,
            stamps: VecDeque::with_capacity(STAMPS_MAX),
            limits: Limits::default(),
            breakers: CircuitBreakers::default(),
            wide_max: 0,
            wide_left: 0,
            is_from_peer: true,
            following: 0,
            described: 0,
            next_block: 0,
            reason: String::new(),
            pending_bye: None,
            gone: false,
            left_sending: false,
            writer: Writer::new(),
            blocks: Vec::new(),
            delays: Vec::new(),
            events: VecDeque::new(),
            statistics: ControlStatistics::default(),
            security: None,
            config,
        }
    }

    /// Sets whether the datagrams that are handled from now on are authenticated, or come from an
    /// address that media is sent to or received from; by default they are. Other reports trigger no circuit
    /// breaker, and their senders take no place from those whose reports are.
    pub fn set_from_peer(&mut self, is_from_peer: bool) {
        self.is_from_peer = is_from_peer;
    }

    /// Returns whether the datagram that is being handled is that of a peer.
    pub(super) fn is_from_peer(&self) -> bool {
        self.is_from_peer
    }

    /// Returns the priority of a participant that reports on our media.
    pub(super) fn priority_of_reports(&self) -> Priority {
        if self.is_from_peer { Priority::Reports } else { Priority::Heard }
    }

    /// Handles one RTCP datagram that arrived at `now`.
    ///
    /// # Errors
    /// [`ControlError`], also counted, if the datagram is not RTCP or, with security, not
    /// authentic; it is then ignored as a whole.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) -> Result<(), ControlError> {
        let len = datagram.len() + self.config.header_len;
        self.wide_left = self.wide_max;
        self.statistics.received += 1;
        self.statistics.octets_received += len as u64;
        let Some(mut security) = self.security.take() else {
            let outcome = self.handle_clear(now, from, datagram, len);
            self.statistics.encrypted += u64::from(outcome.is_err() && begins_a_report(datagram));
            return Ok(outcome?);
        };
        let outcome = match security.open(datagram) {
            Ok(end) => {
                let clear = &security.datagram[..end];
                self.handle_clear(now, from, clear, len).map_err(ControlError::from)
            }
            Err(error) => Err(error),
        };
        let is_clear =
            outcome == Err(ControlError::Unauthentic) && Compound::parse(datagram).is_ok();
        self.statistics.clear += u64::from(is_clear);
        self.security = Some(security);
        match outcome {
            Err(error) if !matches!(error, ControlError::Rtcp(_)) => self.refuse(now, error),
            _ => {}
        }
        self.emit_key_events();
        outcome
    }

    /// Handles a datagram after removal of its protection, if any; it arrived as `len` octets.
    fn handle_clear(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &[u8],
        len: usize,
    ) -> Result<(), RtcpError> {
        let compound = Compound::parse(datagram).inspect_err(|_| self.statistics.malformed += 1)?;
        let mut counted = false;
        let mut claimed = false;
        let is_bye = |packet| matches!(packet, Ok(Packet::Bye(_)));
        let bye = compound.packets().any(is_bye);
        for packet in compound.packets() {
            let Ok(packet) = packet else {
                self.statistics.malformed += 1;
                continue;
            };
            claimed |= claims(&packet, self.ssrc);
            let sender = sender(&packet).filter(|sender| !self.is_own(*sender));
            if let Some(sender) = sender.filter(|_| !counted) {
                self.timer.handle_compound(len, bye);
                self.timer.handle_member(now, sender);
                counted = true;
            }
            self.take(now, packet);
        }
        // Noted once for each datagram: a report and its source description count as one packet.
        if let Some(from) = from.filter(|_| claimed) {
            self.handle_conflict(now, from);
        }
        self.after_input(now);
        Ok(())
    }

    /// Returns whether `ssrc` is one of this participant's own SSRCs.
    pub(super) fn is_own(&self, ssrc: Ssrc) -> bool {
        ssrc == self.ssrc || self.config.retransmission == Some(ssrc)
    }

    /// Returns the participant `ssrc`, heard at `now`; `None` if the table is full or it is our
    /// own.
    pub(super) fn note_heard(
        &mut self,
        now: Instant,
        ssrc: Ssrc,
        priority: Priority,
    ) -> Option<&mut Remote> {
        if self.is_own(ssrc) { None } else { self.remotes.note_heard(now, ssrc, priority) }
    }

    /// Notes that media, a sender report or a source description under our own SSRC arrived from
    /// `from`, another transport address.
    ///
    /// A single packet proves nothing, because any host can send it. A second one from the same
    /// address within ten seconds is a collision, and the SSRC changes (RFC 3550 section 8.2).
    ///
    /// Does nothing if both directions use one master key: a reflected packet of our own is then
    /// authentic, and looks like a collision.
    pub fn handle_conflict(&mut self, now: Instant, from: SocketAddr) {
        if self.security.as_ref().is_some_and(|security| security.shares_key()) {
            return;
        }
        match self.conflicts.classify(now, from) {
            None => {}
            Some(Conflict::Loop) => self.emit(ControlEvent::Loop { ssrc: self.ssrc }),
            Some(Conflict::Collision) => {
                let (old, new) = (self.ssrc, Ssrc(self.random()));
                // Others do not know an SSRC that has never sent anything.
                if self.statistics.reports_sent > 0 || self.sent.0 > 0 {
                    self.pending_bye = Some(old);
                }
                self.ssrc = new;
                self.config.ssrc = new;
                self.timer.set_ssrc(new);
                self.stamps.clear();
                self.forget_paths();
                self.emit(ControlEvent::Collision { old, new });
            }
        }
    }

    /// Returns whether this participant accepts only authentic reports (SRTCP).
    pub fn is_secured(&self) -> bool {
        self.security.is_some()
    }

    /// Sends the first report at once, which RFC 3550 section 6.2 allows between two parties.
    pub fn report_at_once(&mut self, now: Instant) {
        self.timer.report_at_once(now);
    }

    /// Returns when to call [`poll_datagram`](Self::poll_datagram) next; `None` if never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.gone { None } else { self.timer.poll_timeout() }
    }

    /// Returns whether a datagram must be sent at once.
    pub fn is_urgent(&self) -> bool {
        self.pending_bye.is_some()
    }

    /// Returns the next datagram to send at `now`; must be called until it returns `None`.
    ///
    /// A report in it covers `received` and `sent`, both as they are at `now`.
    pub fn poll_datagram(
        &mut self,
        now: Instant,
        sent: &MediaSent,
        received: &[Reception],
    ) -> Option<&[u8]> {
        if (sent.packets, sent.last) != self.sent {
            self.sent = (sent.packets, sent.last);
            self.timer.note_sent_rtp(now);
        }
        self.note_sent(now, sent);
        self.check_silence(now);
        for reception in received.iter().filter(|source| source.last_heard > self.last_poll) {
            self.timer.handle_rtp(reception.last_heard, reception.ssrc);
        }
        self.last_poll = self.last_poll.max(now);
        if let Some(old) = self.pending_bye.take() {
            self.writer.clear();
            self.writer.receiver_report(old, &[]);
            self.writer.bye(&[old], "SSRC collision");
            return self.note_datagram();
        }
        if self.gone {
            return None;
        }
        if !self.write_due(now, sent, received) {
            self.note_left(now);
            return None;
        }
        let len = self.sent_len();
        self.timer.note_sent_rtcp(now, len);
        self.note_left(now);
        self.note_datagram()
    }

    /// Writes the datagram due at `now`; returns `false` if nothing is due.
    fn write_due(&mut self, now: Instant, sent: &MediaSent, received: &[Reception]) -> bool {
        if self.following > 0 {
            self.following -= 1;
            if self.pending.is_urgent() && self.write_feedback(now, sent) {
                if self.following == 0 && self.pending.is_urgent() {
                    self.timer.want_feedback(now);
                }
                return true;
            }
            self.following = 0;
        }
        match self.timer.handle_timeout(now) {
            Due::Nothing => return false,
            Due::Report => self.write_report(now, sent, received),
            Due::Feedback => {
                // The urgent feedback may already have been sent with a report.
                if !(self.pending.is_urgent() && self.write_feedback(now, sent)) {
                    self.timer.cancel_feedback();
                    return false;
                }
            }
            Due::Bye => {
                self.write_bye(now, sent, received);
                self.gone = true;
                return true;
            }
        }
        if self.pending.is_urgent() {
            self.following = FOLLOWING_MAX;
        }
        true
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    /// Requests packets of `media`, given in order, as soon as the profile allows.
    pub fn request_packets(&mut self, now: Instant, media: Ssrc, sequences: &[SequenceNumber]) {
        self.pending.request_packets(media, sequences);
        self.timer.want_feedback(now);
    }

    /// Requests a key frame of `media`.
    pub fn request_key_frame(&mut self, now: Instant, media: Ssrc, request: KeyFrameRequest) {
        let mut number = 0;
        if let Some(remote) = self.note_heard(now, media, Priority::Heard) {
            remote.intra_sent = remote.intra_sent.wrapping_add(1);
            number = remote.intra_sent;
        }
        self.pending.request_key_frame(media, request, number);
        self.timer.want_feedback(now);
    }

    /// Requests a maximum bit rate of `limit.ssrc` (TMMBR).
    pub fn request_bit_rate(&mut self, now: Instant, limit: BitRateLimit) {
        self.pending.request_bit_rate(limit);
        self.timer.want_feedback(now);
    }

    /// Sends an estimate of the bit rate that the path from `sources` can carry, in bit/s (REMB).
    pub fn send_estimate(&mut self, now: Instant, bit_rate: u64, sources: &[Ssrc]) {
        self.pending.estimate(bit_rate, sources);
        self.timer.want_feedback(now);
    }

    /// Reports the arrival times and marks of the packets of `media` from `begin` on (RFC 8888).
    pub fn report_arrivals(
        &mut self,
        now: Instant,
        media: Ssrc,
        begin: SequenceNumber,
        times: &[Option<(Instant, Ecn)>],
    ) {
        self.pending.report_arrivals(media, begin, times);
        self.timer.want_feedback(now);
    }

    /// Makes the participant read reports by transport-wide number
    /// ([`ControlEvent::WideArrivals`]), of at most 4 096 packets in one datagram; by default it ignores
    /// them.
    pub fn read_wide_arrivals(&mut self) {
        self.wide_max = super::answer::SEQUENCES_MAX;
    }

    /// Reports the arrival times of a connection's packets by their transport-wide numbers, from
    /// `begin` on (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3). `media` is one of the
    /// sources, and times are counted from `epoch`, which is the same for all participants of the
    /// connection.
    pub fn report_wide_arrivals(
        &mut self,
        now: Instant,
        (media, epoch): (Ssrc, Instant),
        begin: SequenceNumber,
        times: &[Option<Instant>],
    ) {
        self.pending.report_wide_arrivals((media, epoch), begin, times);
        self.timer.want_feedback(now);
    }

    /// Sends an application-defined packet with the next report; `false` if too many are waiting.
    pub fn send_app(&mut self, app: AppData) -> bool {
        self.pending.add_app(app)
    }

    /// Sends BYE as soon as the rules allow, in small sessions at once (RFC 3550 section 6.3.7).
    pub fn leave(&mut self, now: Instant, reason: &str) {
        reason.clone_into(&mut self.reason);
        self.left_sending = self.timer.we_sent();
        self.timer.want_bye(now, BYE_LEN + reason.len() + self.config.header_len);
    }

    /// Returns whether the BYE was sent.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns the source of its retransmissions, if they have a separate one.
    pub fn retransmission_ssrc(&self) -> Option<Ssrc> {
        self.config.retransmission
    }

    /// Returns the participants that report on its media, or whose media it receives.
    pub fn reporters(&self) -> impl Iterator<Item = Ssrc> {
        let others = self.remotes.present();
        others.filter(|remote| remote.priority > Priority::Heard).map(|remote| remote.ssrc)
    }

    /// Returns its synchronisation source, which changes after a collision.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns whether this participant recently sent media (RFC 3550 section 6.3.8).
    pub fn we_send(&self) -> bool {
        self.timer.we_sent() || self.left_sending
    }

    /// Returns the longest round-trip time to the participants whose media is received or, if none
    /// of these is known, to any other; `None` before the first measurement.
    ///
    /// A participant that sends media measures it from the reports on that media (RFC 3550 section
    /// 6.4.1), a receive-only one from the answers to its reference times (RFC 3611 section 4.5).
    pub fn round_trip_time(&self) -> Option<RoundTripTime> {
        let known = self.remotes.present().filter_map(|remote| {
            let time = remote.round_trip?;
            Some((remote.priority == Priority::SendsMedia, time))
        });
        known.max_by_key(|(sends, time)| (*sends, time.smoothed)).map(|(_, time)| time)
    }

    /// Returns the round-trip time to participant `ssrc`; `None` before the first measurement.
    pub fn round_trip_time_to(&self, ssrc: Ssrc) -> Option<RoundTripTime> {
        self.remotes.present().find(|remote| remote.ssrc == ssrc)?.round_trip
    }

    /// Returns the state of the other participants.
    pub fn remotes(&self) -> Vec<RemoteStatistics> {
        self.remotes.iter().map(|remote| remote.statistics(self.config.clock_rate)).collect()
    }

    /// Returns the statistics so far.
    pub fn statistics(&self) -> ControlStatistics {
        ControlStatistics {
            members: self.timer.members(),
            senders: self.timer.senders(),
            interval: self.timer.interval(),
            ..self.statistics
        }
    }

    /// Returns the time of the wall clock at `now`.
    pub fn ntp(&self, now: Instant) -> NtpTime {
        let (instant, ntp) = self.config.wall_clock;
        if now >= instant { ntp.plus(now - instant) } else { ntp.minus(instant - now) }
    }

    /// Remembers the timestamp of one of our reports.
    pub(super) fn remember_report(&mut self, ntp: NtpTime) {
        if self.stamps.len() >= STAMPS_MAX {
            self.stamps.pop_front();
        }
        self.stamps.push_back(ntp.middle());
    }

    pub(super) fn emit(&mut self, event: ControlEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.statistics.events_forgotten += 1;
        }
        self.events.push_back(event);
    }

    fn after_input(&mut self, now: Instant) {
        // Answers to bit rate requests, and to a first reference time, are also feedback.
        if self.pending.limits.is_some() || self.pending.delays {
            self.timer.want_feedback(now);
        }
    }

    /// Reports participants that timed out.
    fn note_left(&mut self, now: Instant) {
        self.expire_limits(now);
        while let Some(from) = self.timer.poll_left() {
            self.end_limit(now, from);
            if self.remotes.remove(from) {
                self.emit(ControlEvent::TimedOut { from });
            }
        }
    }

    /// Returns the octets of the datagram being written, as counted for the bandwidth.
    fn sent_len(&self) -> usize {
        let trailer = self.security.as_ref().map_or(0, |security| security.protector.overhead());
        self.writer.len() + trailer + self.config.header_len
    }

    /// Returns the datagram to send, protected if necessary; `None` if it could not be protected.
    fn note_datagram(&mut self) -> Option<&[u8]> {
        let len = self.sent_len() as u64;
        if let Some(security) = &mut self.security {
            if security.seal(self.writer.bytes()).is_none() {
                self.statistics.unprotected += 1;
                return None;
            }
            self.emit_key_events();
        }
        self.statistics.octets_sent += len;
        Some(match &self.security {
            Some(security) => &security.datagram,
            None => self.writer.bytes(),
        })
    }

    /// Returns the next number of a splitmix64 generator (Steele, Lea, Flood 2014).
    fn random(&mut self) -> u32 {
        self.generator = self.generator.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.generator;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 32) as u32
    }
}

/// Returns whether a datagram has the first octets of a report, which SRTCP does not encrypt.
fn begins_a_report(datagram: &[u8]) -> bool {
    matches!(datagram, [128..=191, SENDER_REPORT | RECEIVER_REPORT, _, _, _, _, _, _, _, ..])
}

/// Returns whether a packet shows that another participant uses `own`. The sender named in feedback
/// and in a receiver report is no evidence, because some peers write the SSRC of the media there.
fn claims(packet: &Packet<'_>, own: Ssrc) -> bool {
    match packet {
        Packet::SenderReport(report) => report.ssrc() == own,
        Packet::SourceDescription(description) => {
            description.chunks().any(|chunk| chunk.ssrc() == own)
        }
        _ => false,
    }
}

/// Returns the sender of a packet, if it is a single participant.
fn sender(packet: &Packet<'_>) -> Option<Ssrc> {
    match packet {
        Packet::SenderReport(report) => Some(report.ssrc()),
        Packet::ReceiverReport(report) => Some(report.ssrc()),
        Packet::App(app) => Some(app.ssrc()),
        Packet::TransportFeedback(feedback) => Some(feedback.sender()),
        Packet::PayloadFeedback(feedback) => Some(feedback.sender()),
        Packet::ExtendedReport(report) => Some(report.ssrc()),
        Packet::SourceDescription(_) | Packet::Bye(_) | Packet::Unknown { .. } => None,
    }
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant")
            .field("ssrc", &self.ssrc)
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}
