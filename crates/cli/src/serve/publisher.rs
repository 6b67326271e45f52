//! The one who publishes: its connection, and the threads that receive from it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer, PeerStream};
use rushes::{Codec, Context, Error, KeyFrameRequest, RtpTimestamp};

use super::hub::{Hub, Sample, Track};
use super::session::{CONNECT_TIME, Session};

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
        self.hub.set_tracks(Vec::new());
        match outcome {
            Ok(()) => tracing::info!(id = self.session.short_id(), "the publisher has left"),
            Err(error) => {
                tracing::info!(id = self.session.short_id(), %error, "the publisher is gone");
            }
        }
    }

    fn serve(&mut self) -> Result<(), Error> {
        let Some(streams) = self.peer.connect(CONNECT_TIME)? else {
            return Err(Error::Peer(rushes::peer::PeerError::NoPath));
        };
        tracing::info!(id = self.session.short_id(), "a publisher is connected");
        let tracks = streams.iter().map(|stream| Track { codec: stream.codec, encoding: None });
        self.hub.set_tracks(tracks.collect());
        let start = Instant::now();
        let (session, hub, peer) = (&self.session, &self.hub, &self.peer);
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (track, stream) in streams.into_iter().enumerate() {
                let receive = move || receive((track, stream), hub, session, start);
                threads.push(scope.spawn(receive));
            }
            while !session.is_over() && threads.iter().all(|thread| !thread.is_finished()) {
                if peer.ended().is_some() {
                    session.end();
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            session.end();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })
    }
}

/// Shows the frames of one stream.
fn receive(
    (track, mut stream): (usize, PeerStream),
    hub: &Hub,
    session: &Session,
    start: Instant,
) -> Result<(), Error> {
    let clock_rate = stream.codec.clock_rate;
    let is_video = stream.codec.media == "video";
    let mut origin: Option<RtpTimestamp> = None;
    let mut requested: Option<Instant> = None;
    while !session.is_over() {
        let may_request = requested.is_none_or(|at| at.elapsed() >= REQUEST_INTERVAL);
        if is_video && may_request && hub.take_key_request() {
            requested = Some(Instant::now());
            // Before its first packet there is nobody to ask.
            let _ = stream.stream.rtcp().request_key_frame(KeyFrameRequest::PictureLoss);
        }
        let Some(frame) = stream.stream.pull_frame(POLL_INTERVAL)? else { continue };
        let arrived = frame.arrival();
        let origin = *origin.get_or_insert_with(|| {
            // The tracks share the instant at which the publisher was connected.
            let since = arrived.saturating_duration_since(start);
            RtpTimestamp(frame.timestamp().0.wrapping_sub(clock_rate.ticks(since)))
        });
        hub.show(Sample {
            track,
            ticks: frame.timestamp().0.wrapping_sub(origin.0),
            captured: arrived,
            is_key: (stream.codec.is_key_frame)(frame.data()),
            data: frame.data().to_vec(),
        });
    }
    Ok(())
}
