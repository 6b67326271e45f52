//! The circuit breakers of a sender (RFC 8083): conditions under which it must stop sending media.
//!
//! They are for senders without congestion control, in unicast sessions. Media usability (section
//! 4.4) is left to applications: the RFC sets no bounds for it.
//!
//! The RFC counts a receiver's reporting intervals, whose length the sender can only guess. Here
//! their number follows from the time between the reports that arrive, and each condition must last
//! for three intervals of at least 5 s. This is `CB_INTERVAL` for a codec that cannot change its
//! rate, whatever the interval of the receiver.

use std::fmt;
use std::time::{Duration, Instant};

use super::config::MediaSent;
use super::event::ControlEvent;
use super::participant::Participant;
use super::reported_path::{ReportedPath, SentBy};
use crate::rtcp::ReportBlock;
use crate::ssrc::Ssrc;

/// Reporting intervals for which a condition must last (sections 4.1 and 4.3).
const INTERVALS: u32 = 3;

/// The circuit breaker that has triggered (RFC 8083 section 4), and why.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CircuitBreaker {
    /// No report has arrived from receivers that reported before (section 4.1).
    RtcpTimeout {
        /// The time since the last one.
        silence: Duration,
    },
    /// Reports show that no packet arrives (section 4.2).
    MediaTimeout {
        /// The number of consecutive reports without a new packet.
        reports: u32,
        /// The time that they cover.
        time: Duration,
    },
    /// The stream is more than ten times as fast as TCP would be on this path (section 4.3).
    Congestion {
        /// The share of packets lost, 0.0..=1.0, by the last reports.
        lost: f64,
        /// The round-trip time, smoothed.
        round_trip: Duration,
        /// Bits per second that were sent, without headers.
        bit_rate: u64,
        /// Bits per second that TCP would send.
        tcp_bit_rate: u64,
    },
}

impl fmt::Display for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RtcpTimeout { silence } => {
                write!(f, "the receiver has not reported for {:.0} s", silence.as_secs_f64())
            }
            Self::MediaTimeout { reports, time } => write!(
                f,
                "no packet has reached the receiver for {:.0} s, by {reports} of its reports",
                time.as_secs_f64()
            ),
            Self::Congestion { lost, round_trip, bit_rate, tcp_bit_rate } => write!(
                f,
                "the network is congested: {:.1} % of the packets are lost at a round trip of {:.0} \
                 ms, where TCP would send {:.2} Mbit/s and this stream sends {:.2} Mbit/s",
                lost * 100.0,
                round_trip.as_secs_f64() * 1e3,
                *tcp_bit_rate as f64 / 1e6,
                *bit_rate as f64 / 1e6,
            ),
        }
    }
}

/// The circuit breakers of a participant.
#[derive(Debug, Default)]
pub(super) struct CircuitBreakers {
    on: bool,
    /// How many receivers are sent to, if more than one.
    receivers: usize,
    triggered: Option<(Instant, CircuitBreaker)>,
    /// The counts of sent media, and when they last changed.
    sent: Option<SentBy>,
    /// When sending began, or began again after a pause.
    since: Option<Instant>,
}

impl Participant {
    /// Sets whether the circuit breakers of RFC 8083 watch our media; off by default.
    ///
    /// They are for a sender without congestion control to a single receiver. When one triggers,
    /// [`ControlEvent::CircuitBreaker`] is emitted, and no more media should be sent until
    /// [`resume`](Self::resume) succeeds. Receivers that never report trigger none, nor does a
    /// receiver that has left by a BYE.
    pub fn set_circuit_breakers(&mut self, on: bool) {
        self.breakers.on = on;
    }

    /// Sets how many receivers the media is sent to; by default one. As long as fewer have reported, none of them
    /// speaks for those that do not report, and no circuit breaker triggers.
    pub fn set_receivers(&mut self, receivers: usize) {
        self.breakers.receivers = receivers;
    }

    /// Returns the circuit breaker that has triggered, and how long from `now` on media must not be
    /// sent: the stop lasts as long as the condition before it (section 4.5).
    pub fn circuit_breaker(&self, now: Instant) -> Option<(CircuitBreaker, Duration)> {
        let (at, breaker) = self.breakers.triggered?;
        Some((breaker, self.span().saturating_sub(now.saturating_duration_since(at))))
    }

    /// Lets media be sent again after a circuit breaker, whose reports are forgotten.
    ///
    /// # Errors
    /// The time to wait, by [`circuit_breaker`](Self::circuit_breaker).
    pub fn resume(&mut self, now: Instant) -> Result<(), Duration> {
        if let Some((_, wait)) = self.circuit_breaker(now).filter(|(_, wait)| !wait.is_zero()) {
            return Err(wait);
        }
        self.breakers.triggered = None;
        self.forget_paths();
        Ok(())
    }

    /// Forgets all reports on our media.
    pub(super) fn forget_paths(&mut self) {
        self.breakers.since = None;
        self.remotes.iter_mut().for_each(|remote| remote.path = ReportedPath::default());
    }

    /// Notes how much media has been sent at `now`. Reports that arrive are compared with it: call
    /// this before [`handle_datagram`](Self::handle_datagram), if the counts have changed.
    pub fn note_sent(&mut self, now: Instant, sent: &MediaSent) {
        let interval = self.timer.report_interval();
        let breakers = &mut self.breakers;
        let (packets, octets) = (sent.packets, sent.octets);
        let last = breakers.sent.filter(|last| last.packets <= packets);
        if last.is_some_and(|last| last.packets == packets) {
            return;
        }
        let paused = |last: SentBy| now.saturating_duration_since(last.at) > interval;
        if breakers.since.is_none() || last.is_none_or(paused) {
            breakers.since = Some(now);
        }
        breakers.sent = Some(SentBy { at: now, packets, octets });
    }

    /// Notes a report of `from` on our media.
    pub(super) fn note_path(
        &mut self,
        now: Instant,
        from: Ssrc,
        block: &ReportBlock,
        round_trip: Option<Duration>,
    ) {
        let Some(sent) = self.sent_by(now) else { return };
        let span = self.span();
        let Some(remote) = self.remotes.find_mut(from) else { return };
        remote.path.note_report(sent, block, round_trip, span);
        let Some(triggered) = remote.path.triggers else { return };
        // A single bad report among several receivers' shows no congestion of the common path, and
        // may be forged.
        let is_recent = |heard: SentBy| now.saturating_duration_since(heard.at) < span;
        let is_fine =
            |path: &ReportedPath| path.heard.is_some_and(is_recent) && path.triggers.is_none();
        if !self.remotes.present().any(|remote| is_fine(&remote.path)) && self.have_reported() {
            self.trigger(now, triggered);
        }
    }

    /// Returns whether as many receivers have reported as there are.
    fn have_reported(&self) -> bool {
        let reporting = self.remotes.iter().filter(|remote| remote.path.heard.is_some());
        self.breakers.receivers <= 1 || reporting.count() >= self.breakers.receivers
    }

    /// Notes feedback of `from`, which shows that reports can arrive (section 5).
    pub(super) fn note_feedback(&mut self, now: Instant, from: Ssrc) {
        let Some(sent) = self.sent_by(now) else { return };
        let remote = self.remotes.find_mut(from).filter(|remote| remote.path.reports > 0);
        if let Some(remote) = remote {
            remote.path.note_heard(sent);
        }
    }

    /// Triggers the circuit breaker of section 4.1, if all receivers that reported are silent.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let (Some(sent), Some(since)) = (self.sent_by(now), self.breakers.since) else { return };
        let (span, interval) = (self.span(), self.timer.report_interval());
        let last_packet = self.breakers.sent.map_or(now, |last| last.at);
        if now.saturating_duration_since(last_packet) > interval {
            return;
        }
        let (mut is_regular, mut silence) = (false, Duration::MAX);
        for path in self.remotes.present().map(|remote| &remote.path) {
            let Some(heard) = path.heard else { continue };
            if !path.is_silent(&sent, since, span) {
                return;
            }
            is_regular |= path.reports > 1;
            silence = silence.min(now.saturating_duration_since(heard.at));
        }
        if is_regular && self.have_reported() {
            self.trigger(now, CircuitBreaker::RtcpTimeout { silence });
        }
    }

    fn trigger(&mut self, now: Instant, breaker: CircuitBreaker) {
        self.breakers.triggered = Some((now, breaker));
        self.emit(ControlEvent::CircuitBreaker(breaker));
    }

    /// What has been sent by `now`; `None` if nothing has, or nothing needs to be watched.
    fn sent_by(&self, now: Instant) -> Option<SentBy> {
        let watches = self.breakers.on && self.breakers.triggered.is_none();
        self.breakers.sent.filter(|_| watches).map(|sent| SentBy { at: now, ..sent })
    }

    /// The time for which a condition must last.
    fn span(&self) -> Duration {
        self.timer.report_interval() * INTERVALS
    }
}
