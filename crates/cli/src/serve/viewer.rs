//! One viewer: its connection, and the thread that sends to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer, PeerStream};
use rushes::{Context, ControlEvent, Error, RtpTimestamp};

use super::hub::{Hub, Next, Queue, Sample, Track};
use super::session::{CONNECT_TIME, Session};

/// How long a viewer's thread waits for a frame before it answers requests. They are answered before each frame,
/// too.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What is to be sent to one viewer.
pub(super) struct Viewer {
    peer: Peer,
    hub: Arc<Hub>,
    session: Arc<Session>,
}

impl Viewer {
    /// Answers the offer of a viewer; returns the answer, and what is to be [run](Self::run) on a thread.
    pub(super) fn answer(
        context: &Context,
        hub: &Arc<Hub>,
        session: &Arc<Session>,
        offer: &str,
    ) -> Result<(String, Self), Error> {
        let mut peer = session.peer(context)?;
        for Track { codec, encoding } in hub.tracks() {
            let stream = peer.stream(codec);
            match encoding {
                Some(encoding) => peer.add_described(stream, Direction::SendOnly, encoding),
                None => peer.add(stream, Direction::SendOnly),
            }
        }
        let answer = peer.answer(offer)?;
        Ok((answer, Self { peer, hub: hub.clone(), session: session.clone() }))
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

    fn serve(&mut self) -> Result<(), Error> {
        let Some(streams) = self.peer.connect(CONNECT_TIME)? else {
            return Err(Error::Peer(rushes::peer::PeerError::NoPath));
        };
        tracing::info!(id = self.session.short_id(), "a viewer is connected");
        let queue = self.hub.watch();
        let mut outputs: Vec<_> = streams.into_iter().map(Output::new).collect();
        while !self.session.is_over() && self.peer.ended().is_none() {
            match queue.next(POLL_INTERVAL) {
                Next::Sample(sample) => send(&mut outputs, &sample)?,
                Next::Nothing => {
                    if let Some(output) = outputs.first_mut() {
                        ignore_transient(output.stream.stream.sender().wait_until(Instant::now()))?;
                    }
                }
                Next::End => break,
            }
            self.answer_requests(&outputs, &queue);
        }
        for output in &outputs {
            ignore_transient(output.stream.stream.rtcp().send_bye(""))?;
        }
        Ok(())
    }

    /// Passes the viewer's requests for key frames on to the source.
    fn answer_requests(&self, outputs: &[Output], queue: &Queue) {
        let rtcp = outputs.iter().map(|output| output.stream.stream.rtcp());
        for rtcp in rtcp {
            while let Some(event) = rtcp.poll_event() {
                if matches!(event, ControlEvent::KeyFrameRequested { .. }) {
                    self.hub.request_key_frame();
                }
            }
        }
        self.session.note_left_out(queue.left_out());
    }
}

/// A stream to a viewer.
struct Output {
    stream: PeerStream,
    first: RtpTimestamp,
}

impl Output {
    fn new(mut stream: PeerStream) -> Self {
        let first = stream.stream.sender().next_timestamp();
        Self { stream, first }
    }
}

/// Sends a frame on the stream of its track, if the viewer has taken that.
fn send(outputs: &mut [Output], sample: &Sample) -> Result<(), Error> {
    let Some(output) = outputs.iter_mut().find(|output| output.stream.index == sample.track) else {
        return Ok(());
    };
    let timestamp = output.first.plus(sample.ticks);
    let sender = output.stream.stream.sender();
    ignore_transient(sender.push_frame_captured(&sample.data, timestamp, sample.captured))
}

fn ignore_transient(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.is_transient() => Ok(()),
        outcome => outcome,
    }
}
