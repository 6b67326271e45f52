//! Media under a congestion controller.

use std::collections::VecDeque;
use std::time::Duration;

use super::{MS, PACKET};
use crate::HEADERS;

/// The congestion controller of one flow. Times are counted from the beginning of the case.
pub trait Controller {
    /// Notes a frame of `octets` from the encoder, and for how long the oldest packet of earlier
    /// frames that is not sent yet has waited.
    fn handle_frame(&mut self, now: Duration, octets: usize, waited: Duration);

    /// Notes a sent packet of `octets`, headers included.
    fn handle_sent(&mut self, now: Duration, sequence: u16, octets: usize);

    /// Handles a report of the receiver.
    fn handle_report(&mut self, now: Duration, report: &Report);

    /// Does what is due; called every millisecond.
    fn handle_timeout(&mut self, now: Duration);

    /// Returns the bit rate that the encoder should produce, in bits per second.
    fn target_rate(&self) -> u64;

    /// Returns the rate at which packets should be sent, in bits per second, at least 1.
    fn pacing_rate(&self) -> u64;
}

/// What a receiver reports: each packet once, after 16 packets or 40 ms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Report {
    /// When the receiver made the report.
    pub instant: Duration,
    /// The number of the first packet.
    pub begin: u16,
    /// When each packet arrived, from that one on; `None` for those that have not.
    pub arrivals: Vec<Option<Duration>>,
}

/// Paced media.
#[derive(Clone, Debug)]
pub(super) struct Media<C> {
    pub(super) controller: C,
    /// Packets that wait for their pacing: since when, and their length.
    waiting: VecDeque<(Duration, usize)>,
    may_send: Duration,
}

impl<C: Controller> Media<C> {
    pub(super) fn new(controller: C, begins: Duration) -> Self {
        Self { controller, waiting: VecDeque::new(), may_send: begins }
    }

    /// Sends what pacing allows, `next` being the number of the next packet. Returns the packets.
    pub(super) fn send(
        &mut self,
        now: Duration,
        frame: Option<usize>,
        next: &mut u16,
    ) -> Vec<(u16, usize)> {
        if let Some(octets) = frame {
            let since = self.waiting.front().map_or(now, |(since, _)| *since);
            self.controller.handle_frame(now, octets, now.saturating_sub(since));
            let packets = octets.div_ceil(PACKET);
            self.waiting.extend((0..packets).map(|_| (now, octets / packets)));
        }
        let mut sent = Vec::new();
        while self.may_send <= now
            && let Some((_, octets)) = self.waiting.pop_front()
        {
            let len = octets + HEADERS;
            self.controller.handle_sent(now, *next, len);
            sent.push((*next, octets));
            *next = next.wrapping_add(1);
            let time = len as f64 * 8.0 / self.controller.pacing_rate() as f64;
            self.may_send =
                self.may_send.max(now.saturating_sub(MS)) + Duration::from_secs_f64(time);
        }
        sent
    }
}

/// Arrivals that are not reported yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    arrivals: Vec<(u16, Duration)>,
    /// The first number that the next report covers.
    begin: u16,
    reported: Duration,
}

impl Receiver {
    pub(super) fn note(&mut self, sequence: u16, at: Duration) {
        self.arrivals.push((sequence, at));
    }

    /// Returns a report if one is due: after 16 packets or 40 ms, as the draft of `SCReAM` version 2
    /// recommends. Packets keep their order, so the last one is the newest.
    pub(super) fn poll(&mut self, now: Duration) -> Option<Report> {
        let is_due = self.arrivals.len() >= 16 || now >= self.reported + 40 * MS;
        let last = self.arrivals.last().filter(|_| is_due)?.0;
        self.reported = now;
        let begin = self.begin;
        self.begin = last.wrapping_add(1);
        let mut arrivals = vec![None; usize::from(last.wrapping_sub(begin)) + 1];
        for (sequence, at) in self.arrivals.drain(..) {
            arrivals[usize::from(sequence.wrapping_sub(begin))] = Some(at);
        }
        Some(Report { instant: now, begin, arrivals })
    }
}
