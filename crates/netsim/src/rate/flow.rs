//! One flow: its sender, its receiver and its results.

use std::ops::Range;
use std::time::Duration;

use super::PACKET;
use super::encoder::Encoder;
use super::media::{Controller, Media, Receiver, Report};
use super::tcp::Tcp;
use crate::HEADERS;

/// The propagation delay in each direction (RFC 8867 section 4.2).
const DELAY: Duration = Duration::from_millis(50);

/// What sends.
#[derive(Clone, Debug)]
pub(super) enum Source<C> {
    /// Media under a congestion controller.
    Media(Box<Media<C>>),
    /// Media of a fixed rate in bit/s.
    Fixed(f64),
    Tcp(Tcp),
}

/// When and where a flow sends.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) begins: Duration,
    pub(super) ends: Duration,
    /// A time in which nothing is encoded.
    pub(super) pause: Range<Duration>,
    /// The direction of the media: 0 is there, 1 back.
    pub(super) way: usize,
    /// The propagation delay in each direction.
    pub(super) delay: Duration,
}

impl Schedule {
    /// A flow from `begins` to the end of the case.
    pub(super) fn from(begins: Duration) -> Self {
        let pause = Duration::MAX..Duration::MAX;
        Self { begins, ends: Duration::MAX, pause, way: 0, delay: DELAY }
    }
}

/// A sender and its receiver, with the results of a case.
#[derive(Clone, Debug)]
pub struct Flow<C> {
    pub(super) source: Source<C>,
    pub(super) schedule: Schedule,
    encoder: Encoder,
    sequence: u16,
    receiver: Receiver,
    /// Octets sent and received in each second, IP and UDP headers included.
    sent_octets: Vec<usize>,
    received_octets: Vec<usize>,
    /// For each packet: when it arrived, and its time in the queue.
    delays: Vec<(Duration, Duration)>,
    sent: usize,
}

/// Adds octets to those of the second of `at`.
fn count(octets: &mut Vec<usize>, at: Duration, more: usize) {
    let second = at.as_secs() as usize;
    if octets.len() <= second {
        octets.resize(second + 1, 0);
    }
    octets[second] += more;
}

/// Returns the mean rate in kbit/s in the seconds of a range.
fn mean(octets: &[usize], seconds: Range<usize>) -> usize {
    let sum: usize = octets.iter().take(seconds.end).skip(seconds.start).sum();
    sum * 8 / 1000 / seconds.len().max(1)
}

impl<C: Controller> Flow<C> {
    pub(super) fn new(source: Source<C>, schedule: Schedule, encoder: Encoder) -> Self {
        Self {
            source,
            schedule,
            encoder,
            sequence: 0,
            receiver: Receiver::default(),
            sent_octets: Vec::new(),
            received_octets: Vec::new(),
            delays: Vec::new(),
            sent: 0,
        }
    }

    /// Encodes, and sends what pacing or the window allows. Returns the packets sent.
    pub(super) fn send(&mut self, now: Duration) -> Vec<(u16, usize)> {
        let pauses = self.schedule.pause.contains(&now);
        let packets = match &mut self.source {
            Source::Tcp(tcp) => tcp.send(now),
            Source::Fixed(rate) => {
                let frame = self.encoder.poll(now, *rate).filter(|_| !pauses);
                let octets = frame.unwrap_or(0);
                let packets = octets.div_ceil(PACKET);
                let first = self.sequence;
                self.sequence = first.wrapping_add(packets as u16);
                (0..packets).map(|n| (first.wrapping_add(n as u16), octets / packets)).collect()
            }
            Source::Media(media) => {
                let target = media.controller.target_rate() as f64;
                media.controller.handle_timeout(now);
                let frame = self.encoder.poll(now, target).filter(|_| !pauses);
                media.send(now, frame, &mut self.sequence)
            }
        };
        self.sent += packets.len();
        let octets = packets.iter().map(|(_, octets)| octets + HEADERS).sum();
        count(&mut self.sent_octets, now, octets);
        packets
    }

    /// Returns a report if one is due.
    pub(super) fn report(&mut self, now: Duration) -> Option<Report> {
        matches!(self.source, Source::Media(_)).then(|| self.receiver.poll(now))?
    }

    /// Notes a packet of `octets` that was sent at `sent` and arrived at `at`.
    pub(super) fn receive(&mut self, at: Duration, sequence: u16, sent: Duration, octets: usize) {
        if let Source::Media(_) = self.source {
            self.receiver.note(sequence, at);
        }
        count(&mut self.received_octets, at, octets + HEADERS);
        self.delays.push((at, at.saturating_sub(sent + self.schedule.delay)));
    }
}

impl<C> Flow<C> {
    /// Returns whether it is media, not TCP.
    pub fn is_media(&self) -> bool {
        !matches!(self.source, Source::Tcp(_))
    }

    /// Returns the direction of its packets: 0 is there, 1 back.
    pub fn way(&self) -> usize {
        self.schedule.way
    }

    /// Returns the second in which it begins.
    pub fn begins(&self) -> usize {
        self.schedule.begins.as_secs() as usize
    }

    /// Returns its propagation delay in each direction.
    pub fn delay(&self) -> Duration {
        self.schedule.delay
    }

    /// Returns the mean rate received in the seconds of a range, in kbit/s; headers included.
    pub fn rate(&self, seconds: Range<usize>) -> usize {
        mean(&self.received_octets, seconds)
    }

    /// Returns the mean rate sent in the seconds of a range, in kbit/s; headers included.
    pub fn sent_rate(&self, seconds: Range<usize>) -> usize {
        mean(&self.sent_octets, seconds)
    }

    /// Returns the seconds from `since` until five seconds begin whose mean rate is at least `rate`
    /// in kbit/s; `None` if that takes more than 100 s.
    pub fn converges(&self, since: usize, rate: usize) -> Option<usize> {
        (since..since + 100).find(|at| self.rate(*at..at + 5) >= rate).map(|at| at - since)
    }

    /// Returns the times in the queue of the packets that arrived in the seconds of a range.
    pub fn queued(&self, seconds: Range<usize>) -> impl Iterator<Item = Duration> {
        let within = move |at: &Duration| seconds.contains(&(at.as_secs() as usize));
        self.delays.iter().filter(move |(at, _)| within(at)).map(|(_, delay)| *delay)
    }

    /// Returns the numbers of packets sent, and of those that arrived by the end of the case.
    pub fn packets(&self) -> (usize, usize) {
        (self.sent, self.delays.len())
    }

    /// Returns the share of packets that did not arrive by the end of the case.
    pub fn loss(&self) -> f64 {
        1.0 - self.delays.len() as f64 / self.sent.max(1) as f64
    }
}
