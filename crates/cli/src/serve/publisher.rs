//! The one who publishes: its connection, and the threads that receive from it.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::file::{BrowserFrames, MediaFrame};
use rushes::peer::{Direction, Peer, PeerStream};
use rushes::{ClockMapping, Codec, Context, Error, KeyFrameRequest, RtpTimestamp, Ssrc};

use super::capture_clock::CaptureClock;
use super::hub::{Hub, Sample, Show, Track};
use super::recording::{Recording, Recordings};
use super::session::Session;
use crate::webrtc;

/// How long a thread waits for a frame before it looks for requests.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The shortest interval of requests for key frames.
const REQUEST_INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which a source's reports are read.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// What a publisher may send as video, the preferred format first.
const VIDEO: [Codec; 4] = [Codec::H264, Codec::Vp8, Codec::Vp9, Codec::Av1];

/// What is to be received from one publisher.
pub(super) struct Publisher {
    peer: Peer,
    hub: Arc<Hub>,
    session: Arc<Session>,
    recordings: Option<Arc<Recordings>>,
}

impl Publisher {
    /// Answers the offer of a publisher; returns the answer, and what is to be [run](Self::run) on a thread.
    pub(super) fn answer(
        context: &Context,
        (hub, recordings): (&Arc<Hub>, Option<&Arc<Recordings>>),
        session: &Arc<Session>,
        offer: &str,
    ) -> Result<(String, Self), Error> {
        let mut peer = session.peer(context, None)?;
        let videos = recordings.map_or(&VIDEO[..], |it| it.videos());
        for (number, codec) in videos.iter().enumerate() {
            let stream = peer.stream(*codec);
            if number == 0 {
                peer.add(stream, Direction::RecvOnly);
            } else {
                peer.add_alternative(stream);
            }
        }
        peer.add(peer.stream(Codec::Opus), Direction::RecvOnly);
        let answer = peer.answer(offer)?;
        let (hub, session, recordings) = (hub.clone(), session.clone(), recordings.cloned());
        Ok((answer, Self { peer, hub, session, recordings }))
    }

    /// Shows what is published until the publisher leaves.
    pub(super) fn run(mut self) {
        let outcome = self.serve();
        self.session.end();
        match outcome {
            Ok(()) => tracing::info!(id = self.session.short_id(), "the publisher has left"),
            Err(error) => {
                tracing::info!(id = self.session.short_id(), %error, "the publisher is gone");
            }
        }
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        let Some(streams) = webrtc::connect(&mut self.peer, || self.session.is_over())? else {
            return Ok(());
        };
        tracing::info!(id = self.session.short_id(), "a publisher is connected");
        let tracks = streams.iter().map(|stream| Track { codec: stream.codec, encoding: None });
        let show = self.hub.begin(tracks.collect());
        let codecs: Vec<_> = streams.iter().map(|stream| stream.codec).collect();
        let recording = self.recordings.as_ref().map(|it| it.begin(&codecs));
        let received = self.receive(streams, show, recording.as_ref());
        self.hub.leave(show);
        received
    }

    /// Receives the streams, each on a thread of its own.
    fn receive(
        &self,
        streams: Vec<PeerStream>,
        show: Show,
        recording: Option<&Recording<'_>>,
    ) -> anyhow::Result<()> {
        let (session, start, hub) = (&*self.session, Instant::now(), &*self.hub);
        let clock = CaptureClock::default();
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for (track, stream) in streams.into_iter().enumerate() {
                let frames = frames_of(stream.codec)?;
                let input = Input {
                    track,
                    stream,
                    frames,
                    show,
                    hub,
                    session,
                    start,
                    recording,
                    clock: &clock,
                    source: Source::default(),
                };
                let named = thread::Builder::new().name("rushes-publish".to_owned());
                let spawned = named.spawn_scoped(scope, move || input.receive());
                let spawned = spawned.inspect_err(|_| session.end());
                threads.push(spawned.context("cannot start a thread")?);
            }
            while !session.is_over() && threads.iter().all(|thread| !thread.is_finished()) {
                if self.peer.ended().is_some() {
                    session.end();
                }
                thread::sleep(POLL_INTERVAL);
            }
            session.end();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })
    }
}

/// Returns what gives the key frames of a codec their parameter sets: a publisher may send these once, and viewers
/// come later.
fn frames_of(codec: Codec) -> anyhow::Result<Option<BrowserFrames>> {
    let is_h264 = codec == Codec::H264;
    let frames = is_h264.then(|| BrowserFrames::new(codec, Path::new("the publisher"), true));
    Ok(frames.transpose()?)
}

/// One stream of a publisher.
struct Input<'a> {
    track: usize,
    stream: PeerStream,
    frames: Option<BrowserFrames>,
    show: Show,
    hub: &'a Hub,
    session: &'a Session,
    /// When the publisher was connected; the tracks share this instant.
    start: Instant,
    recording: Option<&'a Recording<'a>>,
    /// When frames were captured; the tracks share it, too.
    clock: &'a CaptureClock,
    source: Source,
}

/// The source of a stream, and its reports.
#[derive(Debug, Default)]
struct Source {
    ssrc: Option<Ssrc>,
    /// Its canonical name, and its clock at its last report.
    report: Option<(String, ClockMapping)>,
    /// When the reports were last looked for.
    read: Option<Instant>,
}

impl Input<'_> {
    /// Shows the frames of the stream.
    fn receive(mut self) -> anyhow::Result<()> {
        let codec = self.stream.codec;
        let mut origin: Option<RtpTimestamp> = None;
        let mut requested: Option<Instant> = None;
        while !self.session.is_over() {
            let may_request = requested.is_none_or(|at| at.elapsed() >= REQUEST_INTERVAL);
            if codec.media == "video" && may_request && self.hub.take_key_request() {
                requested = Some(Instant::now());
                // Before its first packet there is nobody to ask.
                let rtcp = self.stream.stream.rtcp();
                let _ = rtcp.request_key_frame(KeyFrameRequest::PictureLoss);
            }
            if let Some(recording) = self.recording {
                recording.poll(self.track, &self.stream.stream, self.source.ssrc);
            }
            let Some(frame) = self.stream.stream.pull_frame(POLL_INTERVAL)? else { continue };
            let (arrived, timestamp, ssrc) = (frame.arrival(), frame.timestamp(), frame.ssrc());
            let origin = *origin.get_or_insert_with(|| {
                let since = arrived.saturating_duration_since(self.start);
                RtpTimestamp(timestamp.0.wrapping_sub(codec.clock_rate.ticks(since)))
            });
            // Its place in the order of presentation stays unknown: pictures of a publisher who reorders them
            // (B-frames) are shown as they come, because nobody could be told to send others.
            let mut media = MediaFrame::default();
            media.data = frame.data().to_vec();
            drop(frame);
            self.note_source(ssrc);
            if let Some(frames) = &mut self.frames
                && !frames.prepare(&mut media)?
            {
                continue;
            }
            if let Some(recording) = self.recording {
                recording.take(self.track, &media.data, (timestamp, arrived));
            }
            let sample = Sample {
                track: self.track,
                ticks: timestamp.0.wrapping_sub(origin.0),
                captured: self.captured(timestamp, arrived),
                shown: Instant::now(),
                is_key: (codec.is_key_frame)(&media.data),
                data: media.data.into(),
            };
            self.hub.show(self.show, sample);
        }
        Ok(())
    }

    /// Notes the source of a frame, and reads its reports when that is due.
    fn note_source(&mut self, ssrc: Ssrc) {
        if self.source.ssrc != Some(ssrc) {
            if let (Some(recording), Some(_)) = (self.recording, self.source.ssrc) {
                recording.change_source(self.track);
            }
            self.source = Source { ssrc: Some(ssrc), ..Source::default() };
        }
        if self.source.read.is_none_or(|read| read.elapsed() >= REPORT_INTERVAL) {
            self.source.read = Some(Instant::now());
            let peers = self.stream.stream.rtcp().peers();
            let peer = peers.into_iter().find(|peer| peer.ssrc == ssrc);
            self.source.report = peer.and_then(|peer| Some((peer.cname, peer.clock?)));
        }
    }

    /// Returns when a frame was captured; without a report of its source, that is when it arrived.
    fn captured(&self, timestamp: RtpTimestamp, arrived: Instant) -> Instant {
        let report = self.source.report.as_ref();
        report.map_or(arrived, |(cname, clock)| {
            self.clock.place(cname, clock.to_ntp(timestamp), arrived)
        })
    }
}
