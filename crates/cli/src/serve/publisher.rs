//! The one who publishes: its connection, and the threads that receive from it.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::file::{BrowserFrames, MediaFrame};
use rushes::peer::{Direction, Peer, PeerStream};
use rushes::{Codec, Context, Error, KeyFrameRequest, RtpTimestamp};

use super::hub::{Hub, Sample, Show, Track};
use super::session::Session;
use crate::webrtc;

/// How long a thread waits for a frame before it looks for requests.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The shortest interval of requests for key frames.
const REQUEST_INTERVAL: Duration = Duration::from_millis(500);
/// What a publisher may send as video, the preferred format first.
const VIDEO: [Codec; 4] = [Codec::H264, Codec::Vp8, Codec::Vp9, Codec::Av1];

/// What is to be received from one publisher.
pub(super) struct Publisher {
    peer: Peer,
    hub: Arc<Hub>,
    session: Arc<Session>,
}

impl Publisher {
    /// Answers the offer of a publisher; returns the answer, and what is to be [run](Self::run) on a thread.
    pub(super) fn answer(
        context: &Context,
        hub: &Arc<Hub>,
        session: &Arc<Session>,
        offer: &str,
    ) -> Result<(String, Self), Error> {
        let mut peer = session.peer(context)?;
        peer.add(peer.stream(VIDEO[0]), Direction::RecvOnly);
        for codec in &VIDEO[1..] {
            peer.add_alternative(peer.stream(*codec));
        }
        peer.add(peer.stream(Codec::Opus), Direction::RecvOnly);
        let answer = peer.answer(offer)?;
        Ok((answer, Self { peer, hub: hub.clone(), session: session.clone() }))
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
        let received = self.receive(streams, show);
        self.hub.leave(show);
        received
    }

    /// Receives the streams, each on a thread of its own.
    fn receive(&self, streams: Vec<PeerStream>, show: Show) -> anyhow::Result<()> {
        let (session, start) = (&*self.session, Instant::now());
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for (track, stream) in streams.into_iter().enumerate() {
                let frames = frames_of(stream.codec)?;
                let input = Input { track, stream, frames, show, hub: &self.hub, session, start };
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
            let Some(frame) = self.stream.stream.pull_frame(POLL_INTERVAL)? else { continue };
            let (arrived, timestamp) = (frame.arrival(), frame.timestamp());
            let origin = *origin.get_or_insert_with(|| {
                let since = arrived.saturating_duration_since(self.start);
                RtpTimestamp(timestamp.0.wrapping_sub(codec.clock_rate.ticks(since)))
            });
            // Its place in the order of presentation stays unknown: pictures of a publisher who reorders them
            // (B-frames) are shown as they come, because nobody could be told to send others.
            let mut media = MediaFrame::default();
            media.data = frame.data().to_vec();
            if let Some(frames) = &mut self.frames
                && !frames.prepare(&mut media)?
            {
                continue;
            }
            let sample = Sample {
                track: self.track,
                ticks: timestamp.0.wrapping_sub(origin.0),
                // When the publisher captured it is not known on this machine's clock.
                captured: arrived,
                is_key: (codec.is_key_frame)(&media.data),
                data: media.data,
            };
            self.hub.show(self.show, sample);
        }
        Ok(())
    }
}
