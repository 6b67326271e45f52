//! A stream while it is received: its frames, their sources, and when it ends.

use std::time::{Duration, Instant};

use rushes::{Frame, RtpTimestamp, Ssrc};

use super::conceal::Conceal;
use super::contest::{Change, Contest, Counts, Incoming, Turn};
use super::hints;
use super::layers::LayerCounts;
use super::together::{State, Together};
use super::track::Track;
use crate::args::RecvArgs;
use crate::control::{Latency, RtcpSummary};
use crate::progress::{Progress, note};

/// How often Ctrl-C and the counters are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum time after Ctrl-C, or at the end, for taking waiting frames. It is limited because more
/// frames may keep arriving.
const AFTER_INTERRUPT: Duration = Duration::from_millis(200);

/// The flaw of a film that lacks the beginning of a stream.
const LATE: &str = "the file had begun before its first frame";
const NO_SETS: &str = "no decoder could begin with its frames, which came without parameter sets";
const MIXED: &str = "the file keeps frames of another source: it was too long to start again";

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
    /// Nothing of the stream was received within `--wait`.
    Wait,
    /// The time of `--duration` has passed.
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
    /// The time from the first frame written to the last.
    pub(super) time: Duration,
    first: Option<Instant>,
    pub(super) contest: Contest,
    pub(super) rtcp: RtcpSummary,
    pub(super) latency: Latency,
    pub(super) layers: LayerCounts,
    /// Frames with missing parts, with `--incomplete`.
    pub(super) frames_incomplete: u64,
    /// The silence in the file in place of lost samples.
    pub(super) silence: Duration,
    /// Why the file is not complete although nothing was lost.
    pub(super) flaw: Option<&'static str>,
    pub(super) end: End,
}

impl Received {
    fn count(&mut self, octets: &[u8], arrival: Instant) {
        self.frames += 1;
        self.octets += octets.len() as u64;
        let first = *self.first.get_or_insert(arrival);
        self.time = arrival.saturating_duration_since(first);
    }

    /// Returns the counters of the written sources.
    pub(super) fn counts(&self) -> Counts {
        self.contest.sources().fold(Counts::default(), |sum, (_, counts)| sum.plus(counts))
    }

    /// Notes whether the finished film has frames of the stream. Without parameter sets it has none.
    pub(super) fn note_file(&mut self, has_frames: bool) {
        if !has_frames && self.frames > 0 {
            self.flaw.get_or_insert(NO_SETS);
        }
    }

    /// Discards the frames if they are no media.
    pub(super) fn leave_out_noise(&mut self) {
        if self.counts().is_noise() {
            (self.frames, self.octets, self.time) = (0, 0, Duration::ZERO);
        }
    }

    fn has_left(&self) -> bool {
        self.contest.written().is_some_and(|source| self.rtcp.has_left(source))
    }
}

/// A stream that is received.
pub(super) struct Reception<'a, 't> {
    args: &'a RecvArgs,
    together: &'a Together<'a>,
    track: &'a mut Track<'t>,
    /// The prefix of messages about the stream.
    prefix: String,
    updated: Option<Instant>,
    /// Packets of all sources at the last check.
    packets: u64,
    /// Whether unusable payloads were reported.
    warned: bool,
    /// The difference of keys that was reported.
    keys: Option<hints::Keys>,
    /// Whether another sender has begun, which has a file of its own.
    is_followed: bool,
    /// Conceals missing parts of frames, if such frames are delivered.
    conceal: Option<Conceal>,
}

impl<'a, 't> Reception<'a, 't> {
    pub(super) fn new(
        args: &'a RecvArgs,
        together: &'a Together<'a>,
        track: &'a mut Track<'t>,
    ) -> Self {
        let (prefix, updated, packets, warned) = (track.prefix(), None, 0, false);
        let (keys, is_followed) = (None, false);
        let conceal = args.missing.incomplete.then(Conceal::default);
        Self { args, together, track, prefix, updated, packets, warned, keys, is_followed, conceal }
    }

    /// Receives until the reception ends.
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let mut progress = Progress::of_stream(self.args.output, None, self.track.name());
        self.begin()?;
        let mut stopped_at: Option<Instant> = None;
        self.track.received.end = loop {
            let is_stopped = self.together.stop.is_requested();
            if stopped_at.is_none() && (is_stopped || self.together.has_had_its_time(self.args)) {
                stopped_at = Some(Instant::now());
            }
            let end = if is_stopped { End::Signal } else { End::Duration };
            // After the stop, only frames that are already waiting are taken.
            let patience = if stopped_at.is_some() { Duration::ZERO } else { POLL_INTERVAL };
            if stopped_at.is_some_and(|at| at.elapsed() >= AFTER_INTERRUPT) {
                break end;
            }
            let frame = self.track.stream.media.pull_frame(patience)?;
            let packets = self.packets;
            let is_quiet = frame.is_none();
            self.update(frame.as_ref())?;
            if let Some(frame) = frame {
                self.take(&frame)?;
            }
            // Packets count as activity even if they complete no frame.
            if stopped_at.is_some() && is_quiet && self.packets == packets {
                break end;
            }
            if let Some(end) = self.next_source_or_end()? {
                break end;
            }
            let Track { stream, received, .. } = &*self.track;
            progress.show(received.octets, || stream.media.statistics());
        };
        self.finish()?;
        progress.finish();
        Ok(())
    }

    /// Begins a file with a source that began while the one before ended.
    fn begin(&mut self) -> anyhow::Result<()> {
        for kept in self.track.received.contest.begin() {
            self.write(&kept.octets, kept.timestamp, kept.arrival)?;
        }
        Ok(())
    }

    /// Checks counters and reports, when that is due or the source of a frame is new.
    fn update(&mut self, frame: Option<&Frame>) -> anyhow::Result<()> {
        let now = Instant::now();
        let is_due = self
            .updated
            .is_none_or(|updated| now.saturating_duration_since(updated) >= POLL_INTERVAL);
        let Track { stream, writer, received, .. } = &mut *self.track;
        let is_known = frame.is_some_and(|frame| received.contest.knows(frame.ssrc()));
        if is_known && !is_due {
            return Ok(());
        }
        self.updated = Some(now);
        let media = &stream.media;
        let receive = media.statistics().receive;
        self.packets = receive.packets;
        received.contest.update(&receive);
        let written = received.contest.written();
        stream.written.set(written);
        received.rtcp.poll(media, written);
        writer.poll(media, written)?;
        let counts = received.counts();
        if let Some(observer) = &mut writer.observer {
            observer.lost(counts.packets_lost);
        }
        if counts.is_of_another_format() && !self.warned && !self.args.output.quiet {
            self.warned = true;
            note!("{}{}", self.prefix, hints::unusable(counts.packets_unusable));
        }
        let keys = hints::keys(&receive, &media.rtcp().statistics());
        if keys.is_some() && keys != self.keys && !self.args.output.quiet {
            self.keys = keys;
            keys.inspect(|keys| note!("{}{keys}", self.prefix));
        }
        Ok(())
    }

    fn take(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let concealed = self.conceal.as_mut().map(|conceal| conceal.take(frame));
        let octets = concealed.as_deref().unwrap_or(frame);
        let Track { stream, received, .. } = &mut *self.track;
        received.frames_of_all += 1;
        let (ssrc, arrival, timestamp) = (frame.ssrc(), frame.arrival(), frame.timestamp());
        match received.contest.take(Incoming { ssrc, arrival, timestamp, octets }) {
            Turn::Write => {
                if let Some(layers) = frame.layers() {
                    received.layers.count(layers);
                }
                received.frames_incomplete += u64::from(!frame.missing().is_empty());
                let capture = received.latency.take(&stream.media, frame);
                stream.written.count(capture, arrival.elapsed());
                self.write(octets, timestamp, arrival)
            }
            Turn::Wait => Ok(()),
            Turn::Next => {
                self.is_followed = true;
                Ok(())
            }
            Turn::Change(change) => self.change(change),
        }
    }

    fn write(
        &mut self,
        octets: &[u8],
        timestamp: RtpTimestamp,
        arrival: Instant,
    ) -> anyhow::Result<()> {
        let Track { writer, received, .. } = &mut *self.track;
        if writer.write(octets, (timestamp, arrival))? {
            if received.frames == 0 && self.track.is_kept() && !self.args.output.quiet {
                note!("{}a sender has begun", self.prefix);
            }
            self.track.received.count(octets, arrival);
        } else if received.flaw.replace(LATE).is_none() && !self.args.output.quiet {
            note!("{}{LATE}", self.prefix);
        }
        self.together.note_frame();
        Ok(())
    }

    /// Switches to another source.
    fn change(&mut self, change: Change) -> anyhow::Result<()> {
        let Change { before, now, goes_on, frames } = change;
        let Track { writer, received, .. } = &mut *self.track;
        let is_done = writer.change(goes_on)?;
        if !goes_on && is_done {
            (received.frames, received.octets, received.first) = (0, 0, None);
            received.latency = Latency::default();
            (received.layers, received.frames_incomplete) = (LayerCounts::default(), 0);
        }
        if !is_done {
            received.flaw = Some(MIXED);
        }
        if !self.args.output.quiet {
            let text = change_text(before, now, goes_on);
            note!("{}{text}{}", self.prefix, if is_done { "" } else { ", but keeps the others" });
        }
        for kept in frames {
            self.write(&kept.octets, kept.timestamp, kept.arrival)?;
        }
        Ok(())
    }

    /// Continues with the successor of a source that is over, if there is one; otherwise returns
    /// the reason why the reception ended, if it has.
    fn next_source_or_end(&mut self) -> anyhow::Result<Option<End>> {
        let now = Instant::now();
        let is_kept = self.track.is_kept();
        let Track { number, received, .. } = &mut *self.track;
        let number = *number;
        // With a file for each sender, silence before the next sender does not end the reception.
        let is_awaited = is_kept && received.contest.written().is_none();
        let Some(last) = received.contest.last_heard().filter(|_| !is_awaited) else {
            let is_over = self.together.is_over(number, State::Awaited);
            let has_waited = self.args.wait.is_some_and(|wait| self.together.has_waited(wait));
            return Ok(if has_waited { Some(End::Wait) } else { is_over.then_some(End::Silence) });
        };
        let has_left = received.has_left();
        // After a goodbye, the library waits for missing and late packets, then ends the source.
        let is_over = has_left && received.contest.has_ended()
            || self.is_followed
            || received.contest.is_followed(now)
            || now.saturating_duration_since(last) >= self.args.idle_timeout;
        if let Some(change) = received.contest.succession(now, has_left, is_over) {
            self.change(change)?;
            return Ok(None);
        }
        let end = if has_left { End::Bye } else { End::Silence };
        let state = if is_over { State::Over } else { State::Received };
        Ok((self.together.is_over(number, state) && is_over).then_some(end))
    }

    /// Takes the last complete frames.
    fn finish(&mut self) -> anyhow::Result<()> {
        let is_followed = matches!(self.track.received.end, End::Bye | End::Silence);
        if !(self.track.is_kept() && is_followed) {
            // Missing packets of the next file's source may still arrive.
            self.track.stream.media.receiver()?.flush();
        }
        let start = Instant::now();
        while start.elapsed() < AFTER_INTERRUPT
            && let Some(frame) = self.track.stream.media.pull_frame(Duration::ZERO)?
        {
            self.update(Some(&frame))?;
            self.take(&frame)?;
        }
        self.updated = None;
        self.update(None)
    }
}

/// Returns the message about a change.
fn change_text(before: Ssrc, now: Ssrc, goes_on: bool) -> String {
    if goes_on {
        format!("source {before} has ended; the file continues with {now} from the same host")
    } else {
        format!("source {now} sends more than {before}: the file starts again with {now}")
    }
}
