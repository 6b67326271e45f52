//! Rate control: the congestion controller of the path to a session's peer, and the share of it
//! that each stream has.
//!
//! Sent packets and reports of all streams go to one controller, whose target the streams divide.

mod division;
mod wide;

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rushes_proto::control::ControlEvent;
use rushes_proto::rate::{PacketFeedback, RateController, RateSettings};
use rushes_proto::rtcp::{PacketReport, WideReport};
use rushes_proto::{Batch, SequenceNumber, Ssrc};

use self::division::{Claim, divide};
pub(crate) use self::wide::Wide;
use crate::lock::lock;
use crate::stats::RateStatistics;

/// Time after its last packet in which a stream keeps its part of the target.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Minimum pacing rate of a stream in bits per second, so that a small one is not held up.
const PACING_MIN: u64 = 50_000;

/// The change of a target that is an event, as a divisor: 1 %.
const EVENT_SHARE: u64 = 100;

/// The congestion controller of the path to one peer.
#[derive(Debug)]
pub(crate) struct PathRate {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    controller: RateController,
    streams: Vec<Stream>,
    next_number: u64,
    /// Whether a report has arrived.
    is_reported: bool,
    /// Whether the first report was late.
    is_missed: bool,
    /// Which reports the controller follows.
    reports: ReportKind,
}

/// The kind of reports that the peer sends. If it sends both, those of RFC 8888 count: they have
/// marks, too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReportKind {
    /// None has arrived yet.
    Unknown,
    /// By the numbers of each source (RFC 8888): on media only.
    OfSources,
    /// By transport-wide numbers: on all packets.
    Wide,
}

/// One stream of the path.
#[derive(Debug)]
struct Stream {
    number: u64,
    settings: RateSettings,
    priority: u8,
    /// When it last sent a packet, or began.
    active: Instant,
    /// The target of the last event.
    announced: Option<u64>,
    is_missed_announced: bool,
    /// When the last frame was captured, and when its last packet was sent.
    last_frame: Option<(Instant, Instant)>,
}

/// The place of a stream at its path's controller, until it is dropped.
#[derive(Debug)]
pub(crate) struct RateShare {
    path: Arc<PathRate>,
    number: u64,
    /// Octets of the headers before each datagram.
    headers_len: usize,
    /// Repair packets for 100 packets of media.
    repair_percent: AtomicU8,
    /// The transport-wide numbers of the stream's port.
    wide: Arc<Wide>,
}

impl PathRate {
    /// Creates the controller for a first stream of `settings`.
    pub(crate) fn new(settings: RateSettings, now: Instant) -> Self {
        Self {
            state: Mutex::new(State {
                controller: RateController::new(settings, now),
                streams: Vec::new(),
                next_number: 0,
                is_reported: false,
                is_missed: false,
                reports: ReportKind::Unknown,
            }),
        }
    }

    /// Adds a stream on the port of `wide`, each of whose datagrams has `headers_len` octets of
    /// headers.
    pub(crate) fn join(
        self: Arc<Self>,
        settings: RateSettings,
        priority: u8,
        (headers_len, wide): (usize, Arc<Wide>),
        now: Instant,
    ) -> RateShare {
        let mut state = lock(&self.state);
        let number = state.next_number;
        state.next_number += 1;
        state.streams.push(Stream {
            number,
            settings,
            priority,
            active: now,
            announced: None,
            is_missed_announced: false,
            last_frame: None,
        });
        state.limit();
        drop(state);
        RateShare { path: self, number, headers_len, repair_percent: AtomicU8::new(0), wide }
    }
}

impl State {
    /// Limits the controller by the sums of the streams' limits.
    fn limit(&mut self) {
        let Some((first, others)) = self.streams.split_first() else { return };
        let mut sum = first.settings;
        for other in others {
            sum = sum.plus(other.settings);
        }
        self.controller.set_settings(sum);
    }

    fn stream(&mut self, number: u64) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.number == number)
    }

    /// Returns a stream's part of the target, in bits per second. Streams that have sent nothing
    /// for a while leave theirs to the others.
    fn target_of(&self, number: u64, now: Instant) -> u64 {
        let total = self.controller.target_rate();
        if self.streams.len() == 1 {
            return total;
        }
        let is_active = |stream: &Stream| {
            let idle = now.saturating_duration_since(stream.active);
            stream.number == number || idle < IDLE_AFTER
        };
        let sharing = self.streams.iter().filter(|stream| is_active(stream));
        let claims: Vec<_> = sharing
            .clone()
            .map(|stream| Claim {
                weight: stream.priority.into(),
                min: stream.settings.min(),
                max: stream.settings.max(),
            })
            .collect();
        let parts = divide(total, &claims);
        let own = sharing.zip(parts).find(|(stream, _)| stream.number == number);
        own.map_or(total, |(_, part)| part)
    }

    fn pacing_of(&self, number: u64, now: Instant) -> u64 {
        let total = self.controller.pacing_rate();
        if self.streams.len() == 1 {
            return total;
        }
        let target = u128::from(self.controller.target_rate().max(1));
        let part = u128::from(self.target_of(number, now)) * u128::from(total) / target;
        u64::try_from(part).unwrap_or(u64::MAX).max(PACING_MIN)
    }
}

impl RateShare {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.path.state)
    }

    /// Returns the octets of the IP packets of `datagrams`, which are `octets` long together.
    pub(crate) fn wire_len(&self, octets: usize, datagrams: usize) -> usize {
        octets + datagrams * self.headers_len
    }

    /// Sets the repair packets for 100 packets of media, which take their part of the target.
    pub(crate) fn set_repair_percent(&self, percent: u8) {
        self.repair_percent.store(percent, Relaxed);
    }

    /// Returns what repair packets leave of a rate, at least `min`.
    fn media_rate(&self, rate: u64, min: u64) -> u64 {
        let media = u128::from(rate) * 100 / (100 + u128::from(self.repair_percent.load(Relaxed)));
        (media as u64).max(min)
    }

    /// Notes the RTP packets of `batch`, which are about to be sent. Reports will name those of
    /// `media`, and by transport-wide number all.
    pub(crate) fn note_sent(&self, now: Instant, batch: &Batch, media: Ssrc) {
        let mut state = self.state();
        let mut numbers = batch.transport_sequences().iter();
        let is_wide = state.reports == ReportKind::Wide;
        for datagram in batch.datagrams() {
            let len = self.wire_len(datagram.len(), 1);
            let number = numbers.next().map(|number| SequenceNumber(*number));
            let Some((ssrc, sequence)) = source(datagram) else { continue };
            if let Some(number) = number {
                self.wide.note_sent(number, (ssrc, sequence));
            }
            if ssrc == media || is_wide && number.is_some() {
                state.controller.handle_sent(now, ssrc, sequence, len);
            } else {
                state.controller.handle_sent_beside(now, len);
            }
        }
        if let Some(stream) = state.stream(self.number) {
            stream.active = now;
        }
    }

    /// Notes that the last packet of a frame was sent at `now`. The frame has `octets`, repair packets
    /// included, and was captured at `captured`.
    ///
    /// Only frames of the stream with the largest part of the target count: the controller knows one
    /// frame interval only.
    pub(crate) fn note_frame(&self, now: Instant, octets: usize, captured: Instant) {
        let mut state = self.state();
        let own = state.target_of(self.number, now);
        let others = state.streams.iter().filter(|stream| stream.number != self.number);
        let is_largest = !others.clone().any(|other| state.target_of(other.number, now) > own);
        let Some(stream) = state.stream(self.number) else { return };
        let last = stream.last_frame.replace((captured, now));
        // If the frame before was not sent when this one was captured, it had waited since its own
        // capture. Times of capture are those of presentation, so the frame before may be later.
        let waited = last
            .filter(|(_, sent)| captured < *sent)
            .map_or(Duration::ZERO, |(before, _)| captured.saturating_duration_since(before));
        if is_largest {
            state.controller.handle_frame(now, octets, waited);
        }
    }

    /// Handles a report of arrivals (RFC 8888) on packets of `ssrc`, counted back from `instant`.
    pub(crate) fn handle_report(
        &self,
        now: Instant,
        ssrc: Ssrc,
        instant: u32,
        packets: &[PacketReport],
    ) {
        let mut state = self.state();
        state.is_reported = true;
        if packets.iter().any(|packet| packet.arrival.is_some()) {
            state.reports = ReportKind::OfSources;
        }
        let packets = packets.iter();
        let packets = packets.map(|packet| PacketFeedback::from_report(ssrc, instant, *packet));
        state.controller.handle_feedback(now, packets);
    }

    /// Handles a report of arrivals by transport-wide numbers, sent by `from`.
    pub(crate) fn handle_wide_report(
        &self,
        now: Instant,
        (from, number): (Ssrc, u8),
        packets: &[WideReport],
    ) {
        let mut state = self.state();
        if state.reports == ReportKind::OfSources {
            return;
        }
        let Some(feedback) = self.wide.read(from, number, packets) else { return };
        if feedback.iter().any(|packet| packet.arrival.is_some()) {
            state.is_reported = true;
            state.reports = ReportKind::Wide;
        }
        state.controller.handle_feedback(now, feedback);
    }

    /// Lowers the rate if reports are missing at `now`; returns when they will be missing next.
    pub(crate) fn handle_timeout(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let is_due = state.controller.poll_timeout().is_some_and(|due| due <= now);
        state.is_missed |= is_due && !state.is_reported;
        state.controller.handle_timeout(now);
        state.controller.poll_timeout()
    }

    /// Returns the next event for the stream's application.
    pub(crate) fn poll_event(&self, now: Instant) -> Option<ControlEvent> {
        let mut state = self.state();
        let (target, is_missed) = (state.target_of(self.number, now), state.is_missed);
        let stream = state.stream(self.number)?;
        let (min, max) = (stream.settings.min(), stream.settings.max());
        let [target, max] = [target, max].map(|rate| self.media_rate(rate, min));
        if is_missed && !stream.is_missed_announced {
            stream.is_missed_announced = true;
            return Some(ControlEvent::NotReported);
        }
        let is_limit = target == min || target == max;
        let is_new = stream.announced.is_none_or(|before| {
            let change = target.abs_diff(before);
            change > 0 && (is_limit || change >= before.div_ceil(EVENT_SHARE))
        });
        is_new.then(|| {
            stream.announced = Some(target);
            ControlEvent::TargetRate { bit_rate: target }
        })
    }

    /// Returns the rate in bits per second at which the stream's IP packets may be sent.
    pub(crate) fn pacing_rate(&self, now: Instant) -> u64 {
        self.state().pacing_of(self.number, now)
    }

    pub(crate) fn statistics(&self, now: Instant) -> RateStatistics {
        let mut state = self.state();
        let target = state.target_of(self.number, now);
        let min = state.stream(self.number).map_or(0, |stream| stream.settings.min());
        RateStatistics {
            target: self.media_rate(target, min),
            queue_delay: state.controller.queue_delay(),
            round_trip: state.controller.round_trip_time(),
            octets_in_flight: state.controller.octets_in_flight(),
        }
    }
}

impl Drop for RateShare {
    fn drop(&mut self) {
        let mut state = self.state();
        state.streams.retain(|stream| stream.number != self.number);
        state.limit();
    }
}

/// Returns the SSRC and the sequence number of an RTP packet, which encryption leaves clear.
fn source(packet: &[u8]) -> Option<(Ssrc, SequenceNumber)> {
    let (head, ssrc) = packet.first_chunk::<8>().zip(packet.get(8..)?.first_chunk::<4>())?;
    let sequence = u16::from_be_bytes([head[2], head[3]]);
    Some((Ssrc(u32::from_be_bytes(*ssrc)), SequenceNumber(sequence)))
}

#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod tests;
