//! One viewer: its connection, and the threads that send to it.

use std::sync::Arc;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer, PeerStream};
use rushes::{Context, ControlEvent, Error, Pacing, RtpTimestamp};

use super::hub::{Hub, Sample, Show, Track};
use super::queue::{Next, Queue};
use super::session::Session;
use super::share::{Change, Share};
use crate::webrtc;

/// How long a viewer's thread waits for a frame before it answers requests. They are answered before each frame,
/// too.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long requests for the last packets are answered.
const LAST_REQUESTS: Duration = Duration::from_millis(200);

/// What is to be sent to one viewer.
pub(super) struct Viewer {
    peer: Peer,
    hub: Arc<Hub>,
    /// What it watches, whose tracks are in the answer.
    show: Show,
    session: Arc<Session>,
}

impl Viewer {
    /// Answers the offer of a viewer of a show; returns the answer, and what is to be [run](Self::run) on a thread.
    pub(super) fn answer(
        context: &Context,
        hub: &Arc<Hub>,
        (show, tracks): (Show, Vec<Track>),
        session: &Arc<Session>,
        offer: &str,
    ) -> Result<(String, Self), Error> {
        let mut peer = session.peer(context)?;
        for Track { codec, encoding } in tracks {
            let stream = peer.stream(codec);
            match encoding {
                Some(encoding) => peer.add_described(stream, Direction::SendOnly, encoding),
                None => peer.add(stream, Direction::SendOnly),
            }
        }
        let answer = peer.answer(offer)?;
        Ok((answer, Self { peer, hub: hub.clone(), show, session: session.clone() }))
    }

    /// Sends what is shown until the viewer leaves, or the show is over.
    pub(super) fn run(mut self) {
        let outcome = self.serve();
        self.session.end();
        match outcome {
            Ok(()) => tracing::info!(id = self.session.short_id(), "a viewer has left"),
            Err(error) => {
                tracing::info!(id = self.session.short_id(), %error, "a viewer is gone");
            }
        }
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        let Some(streams) = webrtc::connect(&mut self.peer, || self.session.is_over())? else {
            return Ok(());
        };
        tracing::info!(id = self.session.short_id(), "a viewer is connected");
        let queue = self.hub.watch(self.show);
        let sent = streams.into_iter().filter(|stream| stream.sends);
        let outputs: Vec<_> = sent.map(Output::new).collect();
        anyhow::ensure!(!outputs.is_empty(), "the viewer takes none of what is shown");
        thread::scope(|scope| {
            let sent = self.send_all(scope, &queue, outputs);
            self.session.end();
            sent
        })
    }

    /// Sends what is shown, until it is over. From when the path carries less than the video, sound is sent by a
    /// thread of its own: video waits for the path.
    fn send_all<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        queue: &'s Queue,
        mut outputs: Vec<Output>,
    ) -> anyhow::Result<()> {
        let mut apart: Vec<usize> = Vec::new();
        while self.goes_on(queue, &mut outputs, |track| !apart.contains(&track))? {
            if apart.is_empty() && outputs.iter().any(|output| output.share.is_limited()) {
                let (video, sound) = outputs.into_iter().partition(Output::is_video);
                outputs = video;
                apart = sound.iter().map(|output| output.stream.index).collect();
                if !sound.is_empty() {
                    let named = thread::Builder::new().name("rushes-sound".to_owned());
                    named.spawn_scoped(scope, || self.send_sound(queue, sound))?;
                }
            }
        }
        say_bye(&outputs)
    }

    /// Sends these streams only, until what is shown is over.
    fn send_sound(&self, queue: &Queue, mut outputs: Vec<Output>) {
        let tracks: Vec<_> = outputs.iter().map(|output| output.stream.index).collect();
        let mut send = || -> anyhow::Result<()> {
            while self.goes_on(queue, &mut outputs, |track| tracks.contains(&track))? {}
            say_bye(&outputs)
        };
        if let Err(error) = send() {
            tracing::info!(id = self.session.short_id(), %error, "a viewer is gone");
            self.session.end();
        }
    }

    /// Sends the next frame of the tracks that `takes` names; returns `false` if there will be none.
    fn goes_on(
        &self,
        queue: &Queue,
        outputs: &mut [Output],
        takes: impl Fn(usize) -> bool,
    ) -> anyhow::Result<bool> {
        if self.session.is_over() || self.peer.ended().is_some() {
            return Ok(false);
        }
        match queue.next(POLL_INTERVAL, takes) {
            Next::Sample(sample) => self.send(outputs, &sample)?,
            Next::Nothing => {}
            Next::End => {
                wait_until(outputs, Instant::now() + LAST_REQUESTS)?;
                return Ok(false);
            }
        }
        // However often frames come, checks of the path and requests are answered.
        wait_until(outputs, Instant::now())?;
        self.take_events(outputs);
        Ok(true)
    }

    /// Sends a frame on the stream of its track, if the viewer has taken that.
    fn send(&self, outputs: &mut [Output], sample: &Sample) -> Result<(), Error> {
        let of_track = |output: &&mut Output| output.stream.index == sample.track;
        if let Some(output) = outputs.iter_mut().find(of_track)
            && !output.send(sample)?
        {
            self.hub.note_left_out();
            self.request_key_frame(output);
        }
        Ok(())
    }

    /// Asks the source for a key frame. A viewer whose path does not carry what there is waits for the next one, and
    /// asks if none comes: key frames are the largest, and all viewers get them.
    fn request_key_frame(&self, output: &mut Output) {
        if !output.share.is_limited() {
            return self.hub.request_key_frame();
        }
        let now = Instant::now();
        output.share.await_key_frame(now);
        if output.share.is_starved(now) {
            self.hub.request_key_frame_for_limited(now);
        }
    }

    /// Takes the viewer's requests for key frames, and its reports of the path.
    fn take_events(&self, outputs: &mut [Output]) {
        for output in outputs {
            let rtcp = output.stream.stream.rtcp();
            while let Some(event) = rtcp.poll_event() {
                match event {
                    ControlEvent::KeyFrameRequested { .. } => self.request_key_frame(output),
                    ControlEvent::ReceiverReport { block, .. } if output.is_video() => {
                        let change = output.share.take_report(block.fraction_lost, Instant::now());
                        if let Some(change) = change {
                            self.follow(output, change);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Sends video at the rate that the viewer's path carries.
    fn follow(&self, output: &mut Output, change: Change) {
        let id = self.session.short_id();
        let pacing = match change {
            Change::Less(rate) => {
                self.hub.note_limited();
                tracing::info!(
                    id,
                    rate,
                    "a viewer's path carries less than the video, and gets parts of it"
                );
                Pacing::Rate(rate)
            }
            Change::More(rate) => {
                tracing::debug!(id, rate, "a viewer's path may carry more");
                Pacing::Rate(rate)
            }
            Change::All => {
                tracing::info!(id, "a viewer's path carries the video again");
                Pacing::default()
            }
        };
        if let Err(error) = output.stream.stream.sender().set_pacing(pacing) {
            tracing::debug!(%error, "the pacing stays");
        }
    }
}

/// A stream to a viewer.
struct Output {
    stream: PeerStream,
    first: RtpTimestamp,
    /// How much of the video is sent.
    share: Share,
    /// Whether a frame was not sent, so that the next must be one with which a decoder can begin.
    needs_key: bool,
    /// Whether its format has refused a frame.
    has_refused: bool,
}

impl Output {
    fn new(mut stream: PeerStream) -> Self {
        let first = stream.stream.sender().next_timestamp();
        Self { stream, first, share: Share::default(), needs_key: false, has_refused: false }
    }

    fn is_video(&self) -> bool {
        self.stream.codec.media == "video"
    }

    /// Sends a frame. Returns `false` if it is left out: its format does not carry it, or the viewer has no path
    /// at present or one that carries less, or a frame before it that it needs was left out.
    fn send(&mut self, sample: &Sample) -> Result<bool, Error> {
        let (len, late, is_video) = (sample.data.len(), sample.shown.elapsed(), self.is_video());
        let takes = !is_video || self.share.takes(len, sample.is_key, late, Instant::now());
        if !takes || self.needs_key && !sample.is_key {
            return Ok(false);
        }
        let timestamp = self.first.plus(sample.ticks);
        let sender = self.stream.stream.sender();
        let sent = sender.push_frame_captured(&sample.data, timestamp, sample.captured);
        let was_sent = match sent {
            Err(Error::Frame(error)) if !self.has_refused => {
                self.has_refused = true;
                tracing::warn!(%error, "frames are not sent to a viewer");
                false
            }
            Err(error @ (Error::Frame(_) | Error::NoDestination | Error::NoPath)) => {
                tracing::debug!(%error, "a frame is not sent to a viewer");
                false
            }
            Err(Error::CircuitBreaker { .. }) => {
                // Whether the viewer has left, its path shows; sending goes on when that is permitted.
                let _ = sender.resume();
                false
            }
            sent => ignore_lost(sent).map(|()| true)?,
        };
        self.needs_key = !was_sent;
        if was_sent && sample.is_key && is_video {
            self.share.note_key_frame(Instant::now());
        }
        Ok(was_sent)
    }
}

/// Says that these streams end.
fn say_bye(outputs: &[Output]) -> anyhow::Result<()> {
    for output in outputs {
        ignore_lost(output.stream.stream.rtcp().send_bye(""))?;
    }
    Ok(())
}

/// Answers requests of the viewer until `until`.
fn wait_until(outputs: &mut [Output], until: Instant) -> Result<(), Error> {
    let Some(output) = outputs.first_mut() else { return Ok(()) };
    ignore_lost(output.stream.stream.sender().wait_until(until))
}

/// Ignores errors of packets that are lost, as the network may lose them, too.
fn ignore_lost(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::NoDestination) => Ok(()),
        Err(error) if error.is_transient() => Ok(()),
        outcome => outcome,
    }
}
