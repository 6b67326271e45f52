//! Where the frames come from: the tracks of a file, again and again, or a live source.

use std::time::{Duration, Instant};

use rushes::RtpTimestamp;
use rushes::file::{BrowserFrames, MediaFrame, MediaReader, NextFrame};

use super::hub::{Hub, Sample, Show};
use crate::key_frames::KeyFrameRequests;
use crate::live::LiveTimes;
use crate::progress::note;
use crate::schedule::Schedule;
use crate::send::Film;
use crate::source::Source;

/// Interval between checks for Ctrl-C, while nothing is due.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A source that is shown.
pub(super) struct Feed<'a> {
    pub(super) source: Source,
    /// The number of its track.
    pub(super) track: usize,
    pub(super) schedule: Schedule,
    pub(super) film: &'a Film<'a>,
    pub(super) hub: &'a Hub,
    /// How often a file is shown; 0 until Ctrl-C.
    pub(super) repeat: u64,
    pub(super) fps: Option<rushes::FrameRate>,
    /// Prepares video for browsers; `None` of what needs no preparation.
    pub(super) frames: Option<BrowserFrames>,
    /// Asks a live encoder for key frames.
    pub(super) requests: Option<KeyFrameRequests>,
    pub(super) is_quiet: bool,
}

impl Feed<'_> {
    /// Shows all frames.
    pub(super) fn run(mut self, reader: Option<MediaReader>) -> anyhow::Result<()> {
        if let Some(reader) = reader {
            return self.passes(reader);
        }
        let reader = self.source.open(self.fps)?;
        self.live(reader)
    }

    /// Shows a file as often as requested.
    fn passes(&mut self, mut reader: MediaReader) -> anyhow::Result<()> {
        for passed in 1.. {
            let mut is_empty = true;
            while let Some(frame) = reader.next_frame()? {
                is_empty = false;
                let time = self.schedule.next(frame);
                if !self.wait_until(self.film.start + time.due) {
                    return Ok(());
                }
                let ticks = time.ticks.unwrap_or_else(|| self.source.clock_rate.ticks(time.due));
                self.show(frame, ticks, time.captured(self.film.start))?;
            }
            anyhow::ensure!(!is_empty, "{}: contains no frame", self.source.name());
            self.film.end_pass(self.schedule.end());
            if self.repeat == passed as u64 {
                break;
            }
            let begin = loop {
                match self.film.begin_of_pass(passed) {
                    Some(begin) => break begin,
                    None if !self.wait_until(Instant::now() + POLL_INTERVAL) => return Ok(()),
                    None => {}
                }
            };
            self.schedule.begin_again(begin);
            if let Some(frames) = &mut self.frames {
                frames.begin_again();
            }
            reader = self.source.open(self.fps)?;
        }
        Ok(())
    }

    /// Shows the frames of a live source as they arrive.
    fn live(&mut self, mut reader: MediaReader) -> anyhow::Result<()> {
        let rate = self.fps.or_else(|| reader.frame_rate());
        let mut times = LiveTimes::new(rate, self.source.clock_rate, RtpTimestamp(0));
        while !self.film.stop.is_requested() {
            self.ask_encoder();
            let frame = match reader.next_frame_until(Instant::now() + POLL_INTERVAL)? {
                NextFrame::Frame(frame) => frame,
                NextFrame::Pending => continue,
                NextFrame::End => break,
            };
            let time = times.next(frame, Instant::now());
            if self.wait_until(time.due) {
                self.show(frame, time.timestamp.0, time.captured)?;
            }
            if times.turns_out_a_file() && !self.is_quiet {
                note!(
                    "{} is ahead of real time; it is now shown at 30 frames per second \
                     (--fps sets another rate)",
                    self.source.name()
                );
            }
        }
        Ok(())
    }

    /// Passes requests of viewers for key frames on to the encoder.
    fn ask_encoder(&mut self) {
        let Some(requests) = &mut self.requests else { return };
        if self.hub.take_key_request() {
            requests.note_request();
        }
        requests.pass(Instant::now());
    }

    fn show(&mut self, frame: &MediaFrame, ticks: u32, captured: Instant) -> anyhow::Result<()> {
        let mut frame = frame.clone();
        if let Some(frames) = &mut self.frames
            && !frames.prepare(&mut frame)?
        {
            return Ok(());
        }
        let is_key = (self.source.codec.is_key_frame)(&frame.data);
        if let (Some(requests), true) = (&mut self.requests, is_key) {
            // A viewer for whom it comes too late asks again.
            self.hub.take_key_request();
            requests.note_key_frame();
        }
        let (track, data, shown) = (self.track, frame.data.into(), Instant::now());
        let sample = Sample { track, data, ticks, captured, shown, is_key };
        self.hub.show(Show::default(), sample);
        Ok(())
    }

    /// Waits until `due`; returns `false` if the show is stopped before.
    fn wait_until(&self, due: Instant) -> bool {
        loop {
            let now = Instant::now();
            if self.film.stop.is_requested() {
                return false;
            }
            if now >= due {
                return true;
            }
            rushes::sleep_until(due.min(now + POLL_INTERVAL));
        }
    }
}
