//! The client's end of the control connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rushes_delivery::control::{
    Abilities, Change, Client, ClientEvent, FrameNotice, Nack, Offer, Reason, Report, State,
    Stopped, StoppedBy, Timeline,
};
use rushes_net::TcpSocket;

use super::super::error::TextureError;
use super::super::sealing::{self, End, Sealing};
use super::super::wire::Wire;
use super::drain::Drain;
use super::links::Links;
use super::{Inner, interval, valid_size};

/// Longest wait of the thread before it checks for requests.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Interval of reports to the server.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// Interval at which openings are sent to the server's units until it starts.
const OPENING_INTERVAL: Duration = Duration::from_millis(50);

/// Interval of checks while waiting for frames.
const DRAIN_INTERVAL: Duration = Duration::from_millis(2);

/// Time limit for sending the last message to the server.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);

/// Time that the server has to explain why it closed a unit's connection.
const REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum announced frames that are not yet complete.
const NOTICES_MAX: usize = 256;

/// Notifies waiting threads when dropped that the stream has ended, even after a panic of the sink.
struct Guard(Arc<Inner>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.note_panic();
        }
        self.0.shared.stop();
        self.0.note_over();
    }
}

/// The control connection and its state.
pub(super) struct Control {
    inner: Arc<Inner>,
    machine: Client,
    wire: Wire,
    sealing: Sealing,
    timeline: Timeline,
    links: Option<Links>,
    notices: VecDeque<FrameNotice>,
    has_begun: bool,
    /// The number after that of the last announced frame; all earlier frames are counted.
    announced: u64,
    report_due: Instant,
    opening_due: Instant,
    /// An offer that waits for the end of the frames before it.
    offered: Option<(Box<Offer>, Drain)>,
}

impl Control {
    pub(super) fn new(inner: Arc<Inner>, socket: TcpSocket) -> Result<Self, TextureError> {
        let sealing = Sealing::new(inner.options.security.as_ref(), End::Client)?;
        let wire = Wire::new(Arc::new(socket), sealing.channel()?);
        let now = Instant::now();
        let timeline = Timeline::new(inner.epoch);
        Ok(Self {
            machine: Client::new(now, timeline, inner.options.wishes()),
            inner,
            wire,
            sealing,
            timeline,
            links: None,
            notices: VecDeque::new(),
            has_begun: false,
            announced: 0,
            report_due: now + REPORT_INTERVAL,
            opening_due: now,
            offered: None,
        })
    }

    /// Runs until the stream has begun; returns false if it has ended instead.
    pub(super) fn run_until_streaming(&mut self) -> bool {
        while !self.has_begun {
            // The stream may have begun and ended in one step.
            if !self.step() && !self.has_begun {
                self.finish();
                return false;
            }
        }
        true
    }

    /// Runs until the end.
    pub(super) fn run(mut self) {
        let guard = Guard(self.inner.clone());
        while self.step() {}
        self.finish();
        drop(guard);
    }

    /// Performs one step; returns false after the end.
    fn step(&mut self) -> bool {
        while let Some(event) = self.machine.poll_event() {
            self.handle(event);
        }
        self.poll_requests();
        if !self.wire.flush(&mut self.machine) || self.machine.state() == State::Stopped {
            return false;
        }
        let check = Instant::now() + CHECK_INTERVAL;
        let draining = self.offered.as_ref().map(|_| Instant::now() + DRAIN_INTERVAL);
        let due =
            [self.machine.poll_timeout(), self.next_opening(), Some(self.report_due), draining];
        let missing = self.inner.shared.frames().and_then(|frames| frames.poll_requests_timeout());
        let due =
            due.into_iter().chain([missing]).flatten().min().map_or(check, |due| due.min(check));
        let waker = Some(&*self.inner.shared.control);
        match self.wire.socket.wait(self.wire.interest(), Some(due), waker) {
            Ok(ready) if ready.readable => self.wire.read(&mut self.machine),
            Ok(_) => {}
            Err(_) => {
                self.machine.handle_close();
                return true;
            }
        }
        self.machine.handle_timeout(Instant::now());
        true
    }

    fn handle(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Offered(offer) if self.is_to_be_limited(&offer) => {
                let size_max = valid_size(self.inner.options.size_max);
                let change = Change { size_max, ..Change::default() };
                if let Err(error) = self.machine.change(change) {
                    self.machine.stop(Reason::Unsupported, &error.to_string());
                }
            }
            ClientEvent::Offered(offer) => {
                let drain = Drain::new(&self.inner, Some(offer.first_frame));
                self.offered = Some((offer, drain));
                self.poll_offer();
            }
            ClientEvent::Streaming { .. } => self.has_begun = true,
            ClientEvent::Frame(notice) => {
                if self.notices.len() == NOTICES_MAX {
                    self.notices.pop_front();
                }
                self.inner.note_dropped(notice.dropped);
                self.announced = self.announced.max(notice.number.saturating_add(1));
                if let Some(frames) = self.inner.shared.frames() {
                    frames.note_announced(notice.number);
                }
                self.report_capture(&notice);
                self.notices.push_back(notice);
            }
            ClientEvent::Stopped(stopped) => {
                if self.has_begun {
                    self.drain(&stopped);
                }
                self.inner.note_end(stopped);
            }
            _ => {}
        }
    }

    /// Returns whether the first offer is answered with the largest size. Even if its pictures are small enough, later
    /// ones need not be.
    fn is_to_be_limited(&self, offer: &Offer) -> bool {
        offer.epoch == 0
            && !self.has_begun
            && offer.abilities.contains(Abilities::SIZES)
            && valid_size(self.inner.options.size_max).is_some()
    }

    /// Reports to the sink when a frame was captured, if the clocks were compared.
    fn report_capture(&self, notice: &FrameNotice) {
        let Some(clock) = self.machine.clock(Instant::now()) else { return };
        let captured = clock.to_client(notice.captured);
        let since_epoch = Duration::from_micros(captured.unsigned_abs());
        let epoch = self.inner.epoch;
        let at = if captured < 0 {
            epoch.checked_sub(since_epoch)
        } else {
            epoch.checked_add(since_epoch)
        };
        if let Some(at) = at {
            self.inner.sink.captured(notice.number, at);
        }
    }

    /// Prepares for an offer and accepts it.
    fn take_offer(&mut self, offer: &Offer) -> Result<(), (Reason, String)> {
        let shape = self.inner.shape_of(offer)?;
        if let Some(frames) = self.inner.shared.frames() {
            frames.detach_sink();
        }
        let threads = self.links.as_ref().map_or_else(|| offer.unit_count(), Links::len);
        let plan = shape.plan().clone();
        self.inner.begin(shape, offer, threads)?;
        if self.links.is_none() {
            let unsupported = |error: TextureError| (Reason::Unsupported, error.to_string());
            let security = self.sealing.media(&self.wire.channel).map_err(unsupported)?;
            let links = Links::open(&self.inner, offer, &self.wire.socket, security);
            self.links = Some(links.map_err(|error| (Reason::Unsupported, error.to_string()))?);
        }
        if let Some(links) = &self.links {
            links.limit_unread(&plan, interval(offer.mode.rate));
        }
        let count = offer.unit_count();
        let addresses = self.links.as_ref().map(|links| links.addresses(count));
        let (ports, ssrcs) = addresses.unwrap_or_default();
        let accepted = self.machine.accept(Instant::now(), &ports, &ssrcs);
        accepted.map_err(|error| (Reason::Unsupported, error.to_string()))
    }

    /// Accepts a waiting offer if the frames before it have arrived or been dropped.
    fn poll_offer(&mut self) {
        let Some((offer, drain)) = &mut self.offered else { return };
        if !drain.poll(&self.inner, self.announced) {
            return;
        }
        let (offer, is_short) = (offer.clone(), drain.is_short());
        self.offered = None;
        let taken = if !is_short || !self.inner.is_reliable() {
            self.take_offer(&offer)
        } else {
            Err((Reason::TimedOut, "frames from before the change did not arrive".into()))
        };
        if let Err((reason, text)) = taken {
            self.machine.stop(reason, &text);
        }
    }

    /// Waits for the frames that were sent before the end, unless the application ended the stream.
    fn drain(&self, stopped: &Stopped) {
        // A server announces all frames before it sends `Stop`.
        let last = (stopped.by == StoppedBy::Peer).then_some(self.announced);
        let mut drain = Drain::new(&self.inner, last);
        while !self.inner.shared.is_stopped() && !drain.poll(&self.inner, self.announced) {
            if self.links.as_ref().is_none_or(Links::are_done) {
                return;
            }
            thread::sleep(DRAIN_INTERVAL);
        }
    }

    /// Seals the control connection, once the units' streams have agreed on a key.
    fn seal(&mut self) {
        // Messages that must be sent in the clear come first.
        if self.machine.state() != State::Binding || !self.machine.poll_data().is_empty() {
            return;
        }
        let session = self.inner.session();
        if let Err(error) = sealing::seal(&mut self.wire.channel, session.as_ref()) {
            self.machine.stop(Reason::Unsupported, &error.to_string());
        }
    }

    fn next_opening(&self) -> Option<Instant> {
        (self.machine.state() == State::Binding).then_some(self.opening_due)
    }

    /// Performs due actions, and handles requests of other threads.
    fn poll_requests(&mut self) {
        self.poll_offer();
        self.seal();
        let now = Instant::now();
        if self.next_opening().is_some_and(|due| due <= now) {
            self.opening_due = now + OPENING_INTERVAL;
            if let Some(links) = &mut self.links {
                links.send_openings();
            }
        }
        if self.inner.shared.is_stopped() {
            self.machine.stop(Reason::Ended, "");
        }
        if let Some((reason, why)) = self.inner.shared.failure() {
            self.machine.stop(reason, &why);
        }
        let closed_at = self.inner.shared.closed_at();
        if closed_at.is_some_and(|at| at + REASON_TIMEOUT <= now) {
            let text = "the server closed a unit's connection";
            self.machine.stop(Reason::Unsupported, text);
        }
        if let Some(mut change) = self.inner.take_change() {
            let offer = self.machine.current();
            if !offer.is_some_and(|offer| offer.abilities.contains(Abilities::SIZES)) {
                change.size_max = None;
            }
            if change != Change::default() {
                // A request that fails is dropped; the stream continues unchanged.
                let _ = self.machine.change(change);
            }
        }
        self.measure(now);
        self.request_missing(now);
        if self.machine.state().is_live() && self.report_due <= now {
            self.report_due = now + REPORT_INTERVAL;
            let _ = self.machine.report(self.report());
        } else if self.report_due <= now {
            self.report_due = now + REPORT_INTERVAL;
        }
    }

    /// Measures the latency of announced frames that are in place now.
    fn measure(&mut self, now: Instant) {
        let Some(clock) = self.machine.clock(now) else { return };
        self.inner.note_clock(clock);
        let (finished, timeline) = (&self.inner.finished, self.timeline);
        self.notices.retain(|notice| {
            let Some(done_at) = finished.done_at(notice.number) else { return true };
            let captured = clock.to_client(notice.captured);
            let done = i64::try_from(timeline.micros(done_at)).unwrap_or(i64::MAX);
            let micros = u64::try_from(done.saturating_sub(captured)).unwrap_or_default();
            finished.note_latency(Duration::from_micros(micros));
            false
        });
    }

    /// Requests packets that have not arrived.
    fn request_missing(&mut self, now: Instant) {
        let Some(frames) = self.inner.shared.frames() else { return };
        if frames.poll_requests_timeout().is_none_or(|due| due > now) {
            return;
        }
        let round_trip = self.inner.round_trip();
        let mut packets = Vec::new();
        while let Some(frame) = frames.poll_requests(now, round_trip, &mut packets) {
            // A request that cannot be sent is as if it were lost.
            let _ = self.machine.nack(Nack { frame, packets: packets.clone() });
        }
    }

    fn report(&self) -> Report {
        let (counts, all) = (self.inner.statistics(), self.inner.counts());
        let micros = |latency: Option<Duration>| {
            latency.map_or(0, |latency| u32::try_from(latency.as_micros()).unwrap_or(u32::MAX))
        };
        Report {
            frames: counts.frames_whole + counts.frames_damaged,
            frames_lost: counts.frames_lost,
            packets_lost: counts.packets_lost,
            late: counts.packets_late,
            duplicate: counts.packets_duplicate,
            tiles_concealed: counts.tiles_concealed,
            latency_p50: micros(counts.latency_p50),
            latency_p99: micros(counts.latency_p99),
            packets_recovered: counts.packets_recovered,
            packets_repaired: all.packets_repaired.saturating_sub(all.repaired_late),
            answers_in_time: self.answers_in_time(),
        }
    }

    /// Returns how many requests of a packet can be answered in time; 0 if the server sends no repair packets.
    fn answers_in_time(&self) -> u8 {
        let frames = self.inner.shared.frames().filter(|frames| frames.has_fec());
        frames.map_or(0, |frames| frames.answers_in_time(self.inner.measured_round_trip()))
    }

    /// Sends the last message and ends every thread.
    fn finish(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            self.handle(event);
        }
        self.wire.finish(&mut self.machine, Instant::now() + FINISH_TIMEOUT);
        self.inner.shared.stop();
        if let Some(links) = self.links.take() {
            links.close();
        }
        if let Some(frames) = self.inner.shared.frames() {
            frames.finish(self.announced);
        }
        self.inner.finish();
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Even if the thread of the control connection could not start, those of the units have
        // started.
        self.inner.shared.stop();
        if let Some(links) = self.links.take() {
            links.close();
        }
    }
}
