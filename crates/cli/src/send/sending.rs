//! One stream of a film, or of a live source, while it is sent.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use rushes::file::{MediaFrame, MediaReader, NextFrame};
use rushes::{Error, MediaStream, RtpTimestamp};

use super::ahead::Frames;
#[cfg(feature = "webrtc")]
use super::browsers::Browsers;
use super::film::Film;
use super::refusals::Refusals;
use super::thinning::Thinning;
use crate::args::SendArgs;
use crate::control::RtcpSummary;
use crate::interrupt::Interrupt;
use crate::key_frames::KeyFrameRequests;
use crate::live::LiveTimes;
use crate::outage::Outage;
use crate::progress::{Progress, note};
use crate::schedule::Schedule;
use crate::source::Source;
use crate::zrtp::Agreed;

/// Number and spacing of the packets without payload that end a stream. They reveal a lost tail;
/// several, because they can be lost too, and late enough for a full buffer to drain.
const END_PACKETS: u32 = 3;
const END_PACKET_SPACING: Duration = Duration::from_millis(50);

/// How long requests for the last packets are answered.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// Interval between checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Interval between checks for Ctrl-C and for packets, while a live source has no frame.
const LIVE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Pause before the next attempt to send, where no schedule sets one.
const OUTAGE_PAUSE: Duration = Duration::from_millis(10);

/// A stream that frames are sent to.
pub(super) struct Sending<'a> {
    pub(super) args: &'a SendArgs,
    pub(super) source: Source,
    pub(super) stream: MediaStream,
    pub(super) agreed: Option<Agreed>,
    pub(super) schedule: Schedule,
    pub(super) progress: Progress,
    pub(super) rtcp: RtcpSummary,
    pub(super) outage: Outage,
    pub(super) refusals: Refusals,
    /// Leaves out pictures of a file, with rate control.
    pub(super) thinning: Option<Thinning>,
    /// Asks a live encoder for key frames.
    pub(super) requests: Option<KeyFrameRequests>,
    /// What a stream to a server for browsers needs.
    #[cfg(feature = "webrtc")]
    pub(super) browsers: Option<Browsers>,
    /// Octets read.
    pub(super) position: u64,
    /// The time from the first frame to the last.
    pub(super) time: Duration,
}

impl Sending<'_> {
    /// Sends all frames, beginning with those of `reader`, and ends the stream.
    pub(super) fn run(
        &mut self,
        film: &Film<'_>,
        interrupt: &Interrupt,
        reader: Option<MediaReader>,
    ) -> anyhow::Result<()> {
        match reader {
            Some(reader) if !reader.is_live() => self.passes(film, reader)?,
            Some(reader) => self.live(film, reader)?,
            None => {
                let reader = self.source.open(self.args.timing.fps)?;
                self.live(film, reader)?;
            }
        }
        self.time = film.start.elapsed();
        if self.position == 0 && !film.stop.is_requested() {
            anyhow::bail!("{}: contains no frame; nothing was sent", self.source.name());
        }
        self.end()?;
        self.poll();
        if !self.args.control.no_rtcp {
            // A receiver that gets the goodbye reports on the whole stream when it leaves.
            self.stream.rtcp().send_bye("")?;
            ignore_transient(self.rtcp.await_reports(&mut self.stream, interrupt))?;
        }
        self.progress.finish();
        Ok(())
    }

    /// Sends a file as often as requested.
    fn passes(&mut self, film: &Film<'_>, reader: MediaReader) -> anyhow::Result<()> {
        let first = self.stream.sender().next_timestamp();
        let mut frames = Frames::new(&self.source, self.args.timing.fps, reader, self.args.repeat)?;
        for passed in 1.. {
            self.file(film, &mut frames, first)?;
            film.end_pass(self.schedule.end());
            if self.args.repeat == passed as u64 || self.position == 0 || film.stop.is_requested() {
                break;
            }
            let begin = loop {
                match film.begin_of_pass(passed) {
                    Some(begin) => break begin,
                    None if film.stop.is_requested() => return Ok(()),
                    None => self.wait_until(film, Instant::now() + LIVE_POLL_INTERVAL)?,
                }
            };
            self.schedule.begin_again(begin);
            #[cfg(feature = "webrtc")]
            if let Some(browsers) = &mut self.browsers {
                browsers.begin_again();
            }
            frames.begin_again()?;
        }
        Ok(())
    }

    /// Sends the frames of a file when they are due.
    fn file(
        &mut self,
        film: &Film<'_>,
        frames: &mut Frames,
        first: RtpTimestamp,
    ) -> anyhow::Result<()> {
        while let Some(frame) = frames.next()? {
            if film.stop.is_requested() {
                break;
            }
            let time = self.schedule.next(frame);
            if !self.args.timing.flat_out {
                self.wait_until(film, film.start + time.due)?;
            }
            let Some(frame) = self.prepare(frame)? else { continue };
            let frame = &*frame;
            if !self.keeps(frame, time.due) {
                self.position += frame.data.len() as u64;
                self.end_silence(time.due)?;
                continue;
            }
            let is_paced = !self.args.timing.flat_out;
            let captured = if is_paced { time.captured(film.start) } else { Instant::now() };
            self.push(film, frame, (time.ticks.map(|ticks| first.plus(ticks)), captured))?;
        }
        Ok(())
    }

    /// Sends the frames of a live source as they arrive.
    fn live(&mut self, film: &Film<'_>, mut reader: MediaReader) -> anyhow::Result<()> {
        let first = self.stream.sender().next_timestamp();
        let rate = self.args.timing.fps.or_else(|| reader.frame_rate());
        let mut times = LiveTimes::new(rate, self.source.clock_rate, first);
        while !film.stop.is_requested() {
            let next = reader.next_frame_until(Instant::now() + LIVE_POLL_INTERVAL)?;
            let frame = match next {
                NextFrame::Frame(frame) => frame,
                NextFrame::Pending => {
                    // Requests and reports are answered.
                    ignore_transient(self.stream.sender().wait_until(Instant::now()))?;
                    self.poll();
                    #[cfg(feature = "webrtc")]
                    self.browsers.as_ref().map_or(Ok(()), Browsers::check)?;
                    continue;
                }
                NextFrame::End => break,
            };
            let time = times.next(frame, Instant::now());
            if !self.args.timing.flat_out {
                self.wait_until(film, time.due)?;
            }
            let Some(frame) = self.prepare(frame)? else { continue };
            self.push(film, &frame, (Some(time.timestamp), time.captured))?;
            if times.turns_out_a_file() && !self.args.output.quiet && !self.args.timing.flat_out {
                note!(
                    "{} is ahead of real time; it is now sent at 30 frames per second \
                     (--fps sets another rate)",
                    self.source.name()
                );
            }
        }
        Ok(())
    }

    /// Lets the stream end with a connection, and prepares it for browsers.
    #[cfg(feature = "webrtc")]
    pub(super) fn follow(&mut self, connection: rushes::peer::PeerHandle) -> anyhow::Result<()> {
        self.browsers = Some(Browsers::new(connection, &self.source)?);
        Ok(())
    }

    /// Returns a frame as it is sent; `None` if it is left out, and counted as read.
    #[cfg_attr(not(feature = "webrtc"), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    fn prepare<'f>(
        &mut self,
        frame: &'f MediaFrame,
    ) -> anyhow::Result<Option<Cow<'f, MediaFrame>>> {
        #[cfg(feature = "webrtc")]
        if let Some(browsers) = &mut self.browsers {
            let prepared = browsers.prepare(frame, self.rtcp.key_frames())?;
            if prepared.is_none() {
                self.position += frame.data.len() as u64;
            }
            return Ok(prepared.map(Cow::Owned));
        }
        Ok(Some(Cow::Borrowed(frame)))
    }

    /// Sends a packet without payload if so many pictures are left out that a receiver may take the
    /// stream for ended.
    fn end_silence(&mut self, due: Duration) -> Result<(), Error> {
        let is_silent = self.thinning.as_mut().is_some_and(|it| it.is_silent(due));
        if is_silent { ignore_transient(self.stream.sender().send_keep_alive()) } else { Ok(()) }
    }

    /// Sends one frame.
    fn push(
        &mut self,
        film: &Film<'_>,
        frame: &MediaFrame,
        (timestamp, captured): (Option<RtpTimestamp>, Instant),
    ) -> anyhow::Result<()> {
        if let Some(requests) = &mut self.requests
            && (self.source.codec.is_key_frame)(&frame.data)
        {
            requests.note_key_frame();
        }
        let sent = self.stream.sender().push_frame_captured(&frame.data, timestamp, captured);
        match sent {
            // The film was stopped meanwhile.
            Err(Error::SendingStopped) => return Ok(()),
            Err(Error::CircuitBreaker { breaker, .. }) => anyhow::bail!(
                "stopped sending, because {breaker} (RFC 8083); to go on in spite of that: \
                 --no-circuit-breakers"
            ),
            _ => {}
        }
        if !self.outage.take(sent)? && self.args.timing.flat_out {
            // The file must not end before the network is back.
            self.wait_until(film, Instant::now() + OUTAGE_PAUSE)?;
        }
        self.position += frame.data.len() as u64;
        self.poll();
        self.refusals.note_sent(Instant::now());
        let stream = &self.stream;
        self.progress.show(self.position, || stream.statistics());
        Ok(())
    }

    /// Returns whether the only destination's port was closed all the time. Of several, the count does
    /// not say which one was.
    pub(super) fn is_refused(&self) -> bool {
        self.args.to.len() == 1 && self.refusals.is_all() && !self.rtcp.has_reports()
    }

    /// Waits until `due` or the end, and answers requests meanwhile.
    fn wait_until(&mut self, film: &Film<'_>, due: Instant) -> anyhow::Result<()> {
        while Instant::now() < due && !film.stop.is_requested() {
            let until = due.min(Instant::now() + POLL_INTERVAL);
            ignore_transient(self.stream.sender().wait_until(until))?;
            self.poll();
        }
        Ok(())
    }

    /// Takes events and refusals.
    fn poll(&mut self) {
        let requested = self.rtcp.key_frames();
        self.rtcp.poll(&self.stream, None);
        if let Some(requests) = &mut self.requests {
            if self.rtcp.key_frames() > requested {
                requests.note_request();
            }
            requests.pass(Instant::now());
        }
        let refused = self.stream.sender().refused();
        self.refusals.note(refused);
    }

    /// Returns whether a frame of a file is sent; with rate control some are not.
    fn keeps(&mut self, frame: &MediaFrame, due: Duration) -> bool {
        let Some(thinning) = &mut self.thinning else { return true };
        let target = self.stream.rtcp().target_rate().unwrap_or(u64::MAX);
        thinning.keeps(&frame.data, target, due)
    }

    /// Makes a lost tail detectable. With RTCP, the report in the goodbye counts the packets;
    /// without, packets without payload follow. (They would disturb the Opus decoders of other
    /// programs.)
    fn end(&mut self) -> anyhow::Result<()> {
        let stream = &mut self.stream;
        if self.args.control.no_rtcp {
            for _ in 0..END_PACKETS {
                ignore_transient(stream.sender().wait_until(Instant::now() + END_PACKET_SPACING))?;
                ignore_transient(stream.sender().send_keep_alive())?;
            }
            return Ok(());
        }
        // Receivers accept a source from its second packet on (RFC 3550 appendix A.1), and this
        // packet ends the last block of repair packets.
        if stream.statistics().send.packets == 1 || stream.sender().has_repairs_due() {
            ignore_transient(stream.sender().send_keep_alive())?;
        }
        // Time for a full buffer to drain, and for requests for the last packets.
        let recovers = self.args.control.recovery.is_some() || self.args.whip.is_some();
        let time = if recovers { LAST_REQUESTS } else { END_PACKET_SPACING };
        ignore_transient(stream.sender().wait_until(Instant::now() + time))?;
        Ok(())
    }
}

/// Ignores transient network errors, where there is nothing to repeat.
fn ignore_transient(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.is_transient() => {
            std::thread::sleep(OUTAGE_PAUSE);
            Ok(())
        }
        outcome => outcome,
    }
}
