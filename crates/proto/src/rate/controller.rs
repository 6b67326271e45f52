//! The controller: packets and reports in, rates out.

use std::time::{Duration, Instant};

use super::MSS;
use super::acknowledged::AcknowledgedRate;
use super::delay::QueueDelay;
use super::feedback::PacketFeedback;
use super::marks::MarkedShare;
use super::media::FrameCompensation;
use super::sent::SentPackets;
use super::settings::RateSettings;
use super::window::{ReferenceWindow, Update};
use crate::rtcp::Ecn;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// By how much the octets in flight may exceed the reference window.
const REF_WND_OVERHEAD_MAX: f64 = 3.0;

/// Minimum pacing rate in bits per second; this much may be sent without any report.
const RATE_PACE_MIN: f64 = 50_000.0;

/// Ratio of the pacing rate to the target.
const PACKET_PACING_HEADROOM: f64 = 1.5;

/// By what the pacing rate is multiplied at the maximum target, and from which share of it on.
const MAX_RELAXED_PACING_FACTOR: f64 = 4.0;
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;

/// Estimated overhead of a packet in octets.
const PACKET_OVERHEAD: f64 = 20.0;

/// Ratio of the rate of the reference window to the target, so that packets do not wait.
const TARGET_MARGIN: f64 = 1.2;

/// Range of round-trip times in seconds; others are errors.
const RTT_RANGE: [f64; 2] = [0.001, 10.0];

/// Number of round trips of which the shortest counts.
const FIRST_ROUND_TRIPS: u32 = 8;

/// Time without any report after which the rate is halved, in seconds and in round trips.
const SILENCE: f64 = 1.0;
const SILENCE_RTTS: f64 = 4.0;

/// Controls the rate of all streams on one path.
///
/// Call [`handle_sent`](Self::handle_sent) for each packet, [`handle_feedback`](Self::handle_feedback)
/// for each report and [`handle_timeout`](Self::handle_timeout) at
/// [`poll_timeout`](Self::poll_timeout); then read [`target_rate`](Self::target_rate) and
/// [`pacing_rate`](Self::pacing_rate). Memory is bounded: 32 768 packets are remembered.
#[derive(Clone, Debug)]
pub struct RateController {
    settings: RateSettings,
    /// The instant from which seconds are counted.
    epoch: Instant,
    sent: SentPackets,
    delay: QueueDelay,
    marks: MarkedShare,
    acknowledged: AcknowledgedRate,
    window: ReferenceWindow,
    frames: FrameCompensation,
    rtt: Option<f64>,
    target: f64,
    /// Until when the target is halved, because delays are measured anew.
    halved_until: f64,
    /// When the last report or timeout was, or, if later, when the first packet was sent after it.
    heard: f64,
    /// Whether a packet was sent since then.
    is_waiting: bool,
    /// The number of round trips measured, up to [`FIRST_ROUND_TRIPS`].
    round_trips: u32,
}

impl RateController {
    /// Creates a controller whose target is the start rate.
    pub fn new(settings: RateSettings, now: Instant) -> Self {
        Self {
            settings,
            epoch: now,
            sent: SentPackets::default(),
            delay: QueueDelay::new(),
            marks: MarkedShare::default(),
            acknowledged: AcknowledgedRate::default(),
            window: ReferenceWindow::new(),
            frames: FrameCompensation::new(),
            rtt: None,
            target: settings.start as f64,
            halved_until: 0.0,
            heard: 0.0,
            is_waiting: false,
            round_trips: 0,
        }
    }

    /// Changes the limits, for example because another stream of the path has begun or ended. Before
    /// the first report, the target becomes the start rate.
    pub fn set_settings(&mut self, settings: RateSettings) {
        self.settings = settings;
        let target = if self.rtt.is_some() { self.target } else { settings.start as f64 };
        self.set_target(target);
    }

    fn seconds(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.epoch).as_secs_f64()
    }

    /// Notes a sent packet of `octets`, headers included, that reports will name.
    pub fn handle_sent(
        &mut self,
        now: Instant,
        ssrc: Ssrc,
        sequence: SequenceNumber,
        octets: usize,
    ) {
        let now = self.seconds(now);
        if !self.is_waiting {
            self.heard = self.heard.max(now);
            self.is_waiting = true;
        }
        self.sent.push(now, Some((ssrc, sequence)), octets);
        self.window.note_in_flight(self.sent.in_flight());
    }

    /// Notes a sent packet of `octets` that no report will name, as receivers report on media only:
    /// one of a stream for repair or retransmissions.
    pub fn handle_sent_beside(&mut self, now: Instant, octets: usize) {
        self.sent.push(self.seconds(now), None, octets);
        self.window.note_in_flight(self.sent.in_flight());
    }

    /// Notes a frame of `octets` from the encoder, and for how long the oldest packet of earlier
    /// frames that is not sent yet has waited.
    pub fn handle_frame(&mut self, now: Instant, octets: usize, waited: Duration) {
        let now = self.seconds(now);
        self.frames.note(now, octets, waited.as_secs_f64(), self.target);
    }

    /// Handles the contents of one report, in any order. Packets that were not sent, and those that
    /// earlier reports acknowledged, are ignored.
    pub fn handle_feedback(
        &mut self,
        now: Instant,
        packets: impl IntoIterator<Item = PacketFeedback>,
    ) {
        let now = self.seconds(now);
        let acknowledged = self.sent.acknowledged();
        let (mut newest, mut newest_arrival) = (None, None);
        let (mut has_any, mut marked) = (false, 0_u64);
        for packet in packets {
            let key = (packet.ssrc, packet.sequence);
            let Some((ecn, arrival)) = packet.arrival else {
                self.sent.miss(now, key);
                continue;
            };
            let Some((sent, is_newest)) = self.sent.acknowledge(now, key) else { continue };
            has_any = true;
            let is_marked = ecn == Ecn::Congestion;
            self.marks.note(is_marked);
            marked += if is_marked { sent.octets as u64 } else { 0 };
            if let Some(arrival) = arrival {
                // The newest packet is noted last: its delay is the current one.
                self.delay.note(now, sent.at, arrival);
            }
            if is_newest {
                newest = Some(sent.at);
                newest_arrival = arrival.map(|arrival| (sent.at, arrival));
            }
        }
        if !has_any {
            return;
        }
        self.heard = now;
        self.is_waiting = self.sent.is_awaited();
        if let Some((sent, arrival)) = newest_arrival {
            self.delay.note(now, sent, arrival);
        }
        if let Some(sent) = newest {
            self.take_round_trip(now - sent);
        }
        let octets = self.sent.acknowledged() - acknowledged;
        self.update(now, octets, marked);
    }

    /// Smooths the round-trip time (RFC 6298 section 2).
    ///
    /// The first report may be late, and acknowledge an old packet only: of the first round trips,
    /// the shortest counts, and the window is at most the one for the start rate.
    fn take_round_trip(&mut self, time: f64) {
        let time = time.clamp(RTT_RANGE[0], RTT_RANGE[1]);
        let is_early = self.round_trips < FIRST_ROUND_TRIPS;
        self.round_trips += u32::from(is_early);
        let started = self.settings.start as f64 * time / 8.0 / self.margin(1.0);
        match &mut self.rtt {
            None => {
                self.rtt = Some(time);
                self.window.set(started);
            }
            Some(rtt) if is_early && time < *rtt => {
                *rtt = time;
                self.window.set(self.window.octets().min(started));
            }
            Some(rtt) => *rtt += (time - *rtt) / 8.0,
        }
    }

    /// Updates the window and the target by newly acknowledged octets, and how many of them are
    /// marked.
    fn update(&mut self, now: f64, octets: u64, marked: u64) {
        let Some(rtt) = self.rtt else { return };
        // Media comes in frames, so two of them are the shortest time.
        self.acknowledged.note(now, octets, rtt.max(2.0 * self.frames.period()));
        let has_loss = self.sent.take_lost(now, rtt) > 0;
        self.marks.update(now, rtt);
        if self.delay.update(now, rtt, has_loss) {
            self.halved_until = now + (5.0 * rtt).max(0.2);
        }
        self.window.update(&Update {
            now,
            in_flight: self.sent.in_flight(),
            rtt,
            has_loss,
            has_mark: marked > 0,
            l4s_alpha: self.settings.is_l4s.then(|| self.marks.alpha()),
            delay: &self.delay,
            unmarked: octets.saturating_sub(marked),
            is_lowered: self.acknowledged.exceeds(self.target),
            may_grow: self.target < self.settings.max as f64,
        });
        let halved = if now < self.halved_until { 0.5 } else { 1.0 };
        self.set_target(
            halved * self.margin(self.window.ratio()) * 8.0 * self.window.octets() / rtt,
        );
    }

    /// Returns the ratio of the target to the rate of the reference window, if one packet is the
    /// share `ratio` of the window (section 4.4).
    fn margin(&self, ratio: f64) -> f64 {
        let small = 1.0 - (ratio - 0.1).clamp(0.0, 0.2);
        small * (MSS / (MSS + PACKET_OVERHEAD)) / (TARGET_MARGIN + self.frames.sum())
    }

    fn set_target(&mut self, rate: f64) {
        self.target = rate.clamp(self.settings.min as f64, self.settings.max as f64);
    }

    fn silence_max(&self) -> f64 {
        self.rtt.map_or(SILENCE, |rtt| SILENCE.max(SILENCE_RTTS * rtt))
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due; `None` while no packet that was
    /// sent since the last report or timeout is in flight.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.is_waiting
            .then(|| self.epoch + Duration::from_secs_f64(self.heard + self.silence_max()))
    }

    /// Halves the rate if there have been no reports for 1 s and for four round trips, and again
    /// after each such time in which packets were sent.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        self.heard = self.seconds(now);
        self.is_waiting = false;
        self.window.set(self.window.octets() / 2.0);
        self.set_target(self.target / 2.0);
    }

    /// Returns the bit rate that the encoder should produce, in bits per second, within the
    /// settings.
    pub fn target_rate(&self) -> u64 {
        self.target as u64
    }

    /// Returns the rate at which packets should be sent, in bits per second: above the target, and
    /// the minimum of 50 000 while too many octets are in flight (sections 4.3.1 and 4.3.2).
    pub fn pacing_rate(&self) -> u64 {
        let window = self.window.octets() * REF_WND_OVERHEAD_MAX;
        if self.rtt.is_some() && self.sent.in_flight() as f64 >= window {
            return RATE_PACE_MIN as u64;
        }
        let share = self.target / self.settings.max as f64;
        let relaxed = (share - RELAXED_PACING_LIMIT_LOW) / (1.0 - RELAXED_PACING_LIMIT_LOW);
        let scale = (1.0 - relaxed).clamp(1.0 / MAX_RELAXED_PACING_FACTOR, 1.0);
        (self.target.max(RATE_PACE_MIN) * PACKET_PACING_HEADROOM / scale) as u64
    }

    /// Returns the octets sent after the newest packet that a report acknowledged.
    pub fn octets_in_flight(&self) -> u64 {
        self.sent.in_flight()
    }

    /// Returns the smoothed round-trip time, once known. It includes the time for which the
    /// receiver keeps a report back.
    pub fn round_trip_time(&self) -> Option<Duration> {
        self.rtt.map(Duration::from_secs_f64)
    }

    /// Returns the latest delay in the queue of the path.
    pub fn queue_delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay.last)
    }
}
