//! A reception in progress: its frames, their sources, and when it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes::{Frame, MediaStream, RtpTimestamp, Ssrc};

use super::contest::{Change, Contest, Counts, Incoming, Turn};
use super::hints;
use super::writer::{StreamObserver, Writer};
use crate::args::RecvArgs;
use crate::control::{Latency, RtcpSummary};
use crate::interrupt::Interrupt;
use crate::metrics::Written;
use crate::progress::{Progress, note};

/// How often Ctrl-C and the counters are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum time after Ctrl-C, or at the end, for taking waiting frames: more may keep arriving.
const AFTER_INTERRUPT: Duration = Duration::from_millis(200);

/// The reason why a reception ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum End {
    /// The sender sent a goodbye.
    Bye,
    /// Nothing was received during the idle timeout.
    #[default]
    Silence,
    /// The user asked to end it.
    Signal,
    /// Nothing of the stream came in the time that the user gave it.
    Wait,
    /// The time that the user gave it is over.
    Duration,
}

impl End {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bye => "bye",
            Self::Silence => "silence",
            Self::Signal => "signal",
            Self::Wait => "wait",
            Self::Duration => "duration",
        }
    }
}

/// The results of a reception.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Frames written, and octets in them.
    pub(super) frames: u64,
    pub(super) octets: u64,
    /// Frames of all sources.
    pub(super) frames_of_all: u64,
    /// From the first frame written to the last.
    pub(super) time: Duration,
    first: Option<Instant>,
    pub(super) contest: Contest,
    pub(super) rtcp: RtcpSummary,
    pub(super) latency: Latency,
    /// The same, for metrics.
    pub(super) written: Arc<Written>,
    pub(super) end: End,
}

impl Received {
    fn count(&mut self, octets: &[u8], arrival: Instant) {
        self.frames += 1;
        self.octets += octets.len() as u64;
        let first = *self.first.get_or_insert(arrival);
        self.time = arrival.saturating_duration_since(first);
    }

    fn has_left(&self) -> bool {
        self.contest.written().is_some_and(|source| self.rtcp.has_left(source))
    }
}

/// A stream that is received.
pub(super) struct Reception<'a, A> {
    args: &'a RecvArgs,
    stream: &'a mut MediaStream,
    writer: &'a mut Writer<A>,
    received: &'a mut Received,
    updated: Option<Instant>,
    /// Packets of all sources at the last check.
    packets: u64,
    /// It was said that payloads cannot be used.
    warned: bool,
    /// The difference of keys that was said.
    keys: Option<hints::Keys>,
    /// When the reception began, and when its first frame was written.
    start: Instant,
    first: Option<Instant>,
}

impl<'a, A: StreamObserver> Reception<'a, A> {
    pub(super) fn new(
        args: &'a RecvArgs,
        stream: &'a mut MediaStream,
        writer: &'a mut Writer<A>,
        received: &'a mut Received,
    ) -> Self {
        let start = Instant::now();
        let (updated, packets, warned, keys, first) = (None, 0, false, None, None);
        Self { args, stream, writer, received, updated, packets, warned, keys, start, first }
    }

    /// Receives until the reception ends.
    pub(super) fn run(mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut progress = Progress::new(self.args.output, None);
        let mut interrupted_at: Option<Instant> = None;
        self.received.end = loop {
            if interrupted_at.is_none() && (interrupt.is_requested() || self.has_had_its_time()) {
                interrupted_at = Some(Instant::now());
            }
            let end = if interrupt.is_requested() { End::Signal } else { End::Duration };
            // Then only frames that are already waiting are taken.
            let patience = if interrupted_at.is_some() { Duration::ZERO } else { POLL_INTERVAL };
            if interrupted_at.is_some_and(|at| at.elapsed() >= AFTER_INTERRUPT) {
                break end;
            }
            let frame = self.stream.pull_frame(patience)?;
            let packets = self.packets;
            let is_quiet = frame.is_none();
            self.update(frame.as_ref());
            if let Some(frame) = frame {
                self.take(&frame)?;
            }
            // Packets count as activity even if they complete no frame.
            if interrupted_at.is_some() && is_quiet && self.packets == packets {
                break end;
            }
            if let Some(end) = self.next_source_or_end()? {
                break end;
            }
            progress.show(self.received.octets, || self.stream.statistics());
        };
        self.finish()?;
        progress.finish();
        Ok(())
    }

    /// Whether the time is over that the user gave the stream.
    fn has_had_its_time(&self) -> bool {
        let over = self.first.zip(self.args.duration);
        over.is_some_and(|(first, duration)| first.elapsed() >= duration)
    }

    /// Checks counters and reports, when that is due or the source of a frame is new.
    fn update(&mut self, frame: Option<&Frame>) {
        let now = Instant::now();
        let is_due = self
            .updated
            .is_none_or(|updated| now.saturating_duration_since(updated) >= POLL_INTERVAL);
        let is_known = frame.is_some_and(|frame| self.received.contest.knows(frame.ssrc()));
        if is_known && !is_due {
            return;
        }
        self.updated = Some(now);
        let receive = self.stream.statistics().receive;
        self.packets = receive.packets;
        self.received.contest.update(&receive);
        let written = self.received.contest.written();
        self.received.written.set(written);
        self.received.rtcp.poll(self.stream, written);
        let sources = self.received.contest.sources();
        let counts = sources.fold(Counts::default(), |sum, (_, counts)| sum.plus(counts));
        self.writer.observer.lost(counts.packets_lost);
        if counts.is_of_another_format() && !self.warned && !self.args.output.quiet {
            self.warned = true;
            note!("{}", hints::unusable(counts.packets_unusable));
        }
        let keys = hints::keys(&receive, &self.stream.rtcp().statistics());
        if keys.is_some() && keys != self.keys && !self.args.output.quiet {
            self.keys = keys;
            keys.inspect(|keys| note!("{keys}"));
        }
    }

    fn take(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let received = &mut *self.received;
        received.frames_of_all += 1;
        let (ssrc, arrival, timestamp) = (frame.ssrc(), frame.arrival(), frame.timestamp());
        match received.contest.take(Incoming { ssrc, arrival, timestamp, octets: frame }) {
            Turn::Write => {
                let capture = received.latency.take(self.stream, frame);
                received.written.count(capture, arrival.elapsed());
                self.write(frame, timestamp, arrival)
            }
            Turn::Wait => Ok(()),
            Turn::Change(change) => self.change(change),
        }
    }

    fn write(
        &mut self,
        octets: &[u8],
        timestamp: RtpTimestamp,
        arrival: Instant,
    ) -> anyhow::Result<()> {
        self.writer.write(octets, timestamp)?;
        self.received.count(octets, arrival);
        self.first.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Switches to another source.
    fn change(&mut self, change: Change) -> anyhow::Result<()> {
        let Change { before, now, goes_on, frames } = change;
        if !self.args.output.quiet {
            note!("{}", change_text(before, now, goes_on));
        }
        self.writer.change(goes_on)?;
        let received = &mut *self.received;
        if !goes_on {
            (received.frames, received.octets, received.first) = (0, 0, None);
            received.latency = Latency::default();
        }
        for kept in frames {
            self.write(&kept.octets, kept.timestamp, kept.arrival)?;
        }
        Ok(())
    }

    /// Continues with the successor of a source that is over, if there is one; otherwise returns
    /// how the reception ended, if it has.
    fn next_source_or_end(&mut self) -> anyhow::Result<Option<End>> {
        let now = Instant::now();
        let received = &mut *self.received;
        let Some(last) = received.contest.last_heard() else {
            let has_waited = self.args.wait.is_some_and(|wait| self.start.elapsed() >= wait);
            return Ok(has_waited.then_some(End::Wait));
        };
        let has_left = received.has_left();
        // After a goodbye, the library waits for missing and late packets, then ends the source.
        let is_over = has_left && received.contest.has_ended()
            || now.saturating_duration_since(last) >= self.args.idle_timeout;
        if let Some(change) = received.contest.succession(now, has_left, is_over) {
            self.change(change)?;
            return Ok(None);
        }
        let end = if has_left { End::Bye } else { End::Silence };
        Ok(is_over.then_some(end))
    }

    /// Takes the last complete frames.
    fn finish(&mut self) -> anyhow::Result<()> {
        self.stream.receiver()?.flush();
        let start = Instant::now();
        while start.elapsed() < AFTER_INTERRUPT
            && let Some(frame) = self.stream.pull_frame(Duration::ZERO)?
        {
            self.update(Some(&frame));
            self.take(&frame)?;
        }
        self.updated = None;
        self.update(None);
        Ok(())
    }
}

/// The message about a change.
fn change_text(before: Ssrc, now: Ssrc, goes_on: bool) -> String {
    if goes_on {
        format!("source {before} has ended; the file continues with {now} from the same host")
    } else {
        format!("source {now} sends more than {before}: the file starts again with {now}")
    }
}
