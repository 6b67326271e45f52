//! One viewer: its connection, and what it is sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer};
use rushes::{Context, Error, Pacing};

use super::hub::{Hub, Sample, Show, Track};
use super::output::Output;
use super::queue::{Next, Queue};
use super::session::{Session, connected};
use super::sessions::Slot;
use super::share::Change;
use super::workers::{Task, Turn, Waker};
use crate::webrtc::CONNECT_TIME;

/// How long requests for the last packets are answered.
const LAST_REQUESTS: Duration = Duration::from_millis(200);
/// Maximum frames that a viewer is sent before others get theirs.
const FRAMES_MAX: usize = 16;

/// What is to be sent to one viewer.
pub(super) struct Viewer {
    peer: Peer,
    hub: Arc<Hub>,
    /// What it watches, whose tracks are in the answer.
    show: Show,
    waker: Waker,
    stage: Stage,
    /// Given back after the connection has ended.
    slot: Slot,
}

enum Stage {
    /// Until there is a path and keys, or the time is up.
    Connecting(Instant),
    Watching(Arc<Queue>, Vec<Output>),
    /// The show is over; until then, the last packets may be requested.
    Ending(Instant, Vec<Output>),
}

impl Viewer {
    /// Answers the offer of a viewer of a show; returns the answer, and the viewer.
    pub(super) fn answer(
        context: &Context,
        hub: &Arc<Hub>,
        (show, tracks): (Show, Vec<Track>),
        (slot, waker): (Slot, Waker),
        offer: &str,
    ) -> Result<(String, Self), Error> {
        let mut peer = slot.session().peer(context, Some(&waker))?;
        for Track { codec, encoding } in tracks {
            let stream = peer.stream(codec);
            match encoding {
                Some(encoding) => peer.add_described(stream, Direction::SendOnly, encoding),
                None => peer.add(stream, Direction::SendOnly),
            }
        }
        let answer = peer.answer(offer)?;
        let (hub, stage) = (hub.clone(), Stage::Connecting(Instant::now() + CONNECT_TIME));
        Ok((answer, Self { peer, hub, show, waker, stage, slot }))
    }

    fn id(&self) -> &str {
        self.slot.session().short_id()
    }

    /// Does what there is to do.
    fn serve(&mut self, now: Instant) -> anyhow::Result<Turn> {
        let is_over = self.slot.session().is_over();
        if let Stage::Connecting(deadline) = self.stage {
            if is_over {
                return Ok(Turn::Over);
            }
            let Some(streams) = connected(&mut self.peer, now, deadline)? else {
                return Ok(Turn::Until(Some(deadline)));
            };
            tracing::info!(id = self.id(), "a viewer is connected");
            let sent = streams.into_iter().filter(|stream| stream.sends);
            let outputs: Vec<_> = sent.map(|stream| Output::new(stream, &self.waker)).collect();
            anyhow::ensure!(!outputs.is_empty(), "the viewer takes none of what is shown");
            let queue = self.hub.watch(self.show, Some(self.waker.clone()));
            self.stage = Stage::Watching(queue, outputs);
        }
        let has_ended = is_over || self.peer.ended().is_some();
        let hub = self.hub.clone();
        match &mut self.stage {
            Stage::Watching(_, outputs) | Stage::Ending(_, outputs) if has_ended => {
                say_bye(outputs)?;
                Ok(Turn::Over)
            }
            Stage::Watching(queue, outputs) => {
                let sending = Sending { hub: &hub, session: self.slot.session(), outputs };
                let turn = sending.send(queue, now)?;
                if turn == Turn::Over {
                    let outputs = std::mem::take(outputs);
                    let until = now + LAST_REQUESTS;
                    self.stage = Stage::Ending(until, outputs);
                    return Ok(Turn::Until(Some(until)));
                }
                Ok(turn)
            }
            Stage::Ending(until, outputs) if *until <= now => {
                say_bye(outputs)?;
                Ok(Turn::Over)
            }
            Stage::Ending(until, _) => Ok(Turn::Until(Some(*until))),
            Stage::Connecting(_) => Ok(Turn::Over),
        }
    }
}

impl Task for Viewer {
    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn advance(&mut self, now: Instant) -> Turn {
        let outcome = self.serve(now);
        match &outcome {
            Ok(Turn::Over) => tracing::info!(id = self.id(), "a viewer has left"),
            Ok(_) => {}
            Err(error) => tracing::info!(id = self.id(), %error, "a viewer is gone"),
        }
        outcome.unwrap_or(Turn::Over)
    }
}

/// The streams of a viewer, to which frames are sent.
struct Sending<'v> {
    hub: &'v Hub,
    session: &'v Session,
    outputs: &'v mut [Output],
}

impl Sending<'_> {
    /// Sends what waits and is due, until it is over. While video waits for a path that carries less, sound goes on.
    fn send(mut self, queue: &Queue, now: Instant) -> Result<Turn, Error> {
        self.take_feedback(now);
        for place in 0..self.outputs.len() {
            let was_sent = self.outputs[place].send_rest(now)?;
            self.note(place, was_sent);
        }
        for _ in 0..FRAMES_MAX {
            let is_free =
                |track| !self.outputs.iter().any(|it| it.index() == track && it.due().is_some());
            match queue.next(is_free) {
                Next::Sample(sample) => self.send_frame(&sample)?,
                Next::End if self.due().is_none() => return Ok(Turn::Over),
                Next::End | Next::Nothing => return Ok(Turn::Until(self.due())),
            }
        }
        Ok(Turn::Until(Some(now)))
    }

    /// Returns when the next part of a frame is due.
    fn due(&self) -> Option<Instant> {
        self.outputs.iter().filter_map(Output::due).min()
    }

    /// Sends a frame on the stream of its track, if the viewer has taken that.
    fn send_frame(&mut self, sample: &Sample) -> Result<(), Error> {
        let of_track = |output: &Output| output.index() == sample.track;
        if let Some(place) = self.outputs.iter().position(of_track) {
            let was_sent = self.outputs[place].send(sample)?;
            self.note(place, was_sent);
        }
        Ok(())
    }

    fn note(&mut self, place: usize, was_sent: bool) {
        if !was_sent {
            self.hub.note_left_out();
            self.request_key_frame(place);
        }
    }

    /// Asks the source for a key frame, if that helps the viewer. One whose path does not carry what there is waits for
    /// the next one, and asks if none comes: key frames are the largest, and all viewers get them.
    fn request_key_frame(&mut self, place: usize) {
        let output = &self.outputs[place];
        if !output.is_video() || !self.session.has_path() {
            return;
        }
        if output.is_refused() {
            // A key frame may be refused as well: all such viewers together ask for few.
            return self.hub.request_key_frame_for_limited(Instant::now());
        }
        let share = &mut self.outputs[place].share;
        if !share.is_limited() {
            return self.hub.request_key_frame();
        }
        let now = Instant::now();
        share.await_key_frame(now);
        if share.is_starved(now) {
            self.hub.request_key_frame_for_limited(now);
        }
    }

    /// Takes the viewer's requests for key frames, and its reports of the path.
    fn take_feedback(&mut self, now: Instant) {
        for place in 0..self.outputs.len() {
            let output = &mut self.outputs[place];
            let feedback = output.take_feedback();
            if let Some(fraction_lost) = feedback.fraction_lost
                && let Some(change) = output.share.take_report(fraction_lost, now)
            {
                self.follow(place, change);
            }
            if feedback.wants_key {
                self.request_key_frame(place);
            }
        }
    }

    /// Sends video at the rate that the viewer's path carries.
    fn follow(&mut self, place: usize, change: Change) {
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
        self.outputs[place].set_pacing(pacing);
    }
}

/// Says that these streams end.
fn say_bye(outputs: &[Output]) -> Result<(), Error> {
    outputs.iter().try_for_each(Output::say_bye)
}
