//! One stream to a viewer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rushes::peer::PeerStream;
use rushes::{ControlEvent, Error, Pacing, RtpTimestamp};

use super::hub::Sample;
use super::share::Share;
use super::workers::Waker;

/// A stream to a viewer.
pub(super) struct Output {
    stream: PeerStream,
    first: RtpTimestamp,
    /// How much of the video is sent.
    pub(super) share: Share,
    /// Whether a frame was not sent, so that the next must be one with which a decoder can begin.
    needs_key: bool,
    /// Whether its format did not carry the last frame, and whether that was logged.
    is_refused: bool,
    has_warned: bool,
    /// A frame of which a part is sent: when the next part is due, and whether a decoder can begin with it.
    unfinished: Option<(Instant, bool)>,
    feedback: Arc<Mutex<Feedback>>,
}

/// What a viewer has said since it was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Feedback {
    pub(super) wants_key: bool,
    /// The fraction of the packets that were lost, by its last report, in 1/256.
    pub(super) fraction_lost: Option<u8>,
}

impl Output {
    /// Takes a stream; the waker is used when the viewer says something about it.
    pub(super) fn new(mut stream: PeerStream, waker: &Waker) -> Self {
        let first = stream.stream.sender().next_timestamp();
        let feedback = Arc::new(Mutex::new(Feedback::default()));
        let (said, waker) = (feedback.clone(), waker.clone());
        let is_video = stream.codec.media == "video";
        stream.stream.rtcp().on_event(move |event| {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                ControlEvent::KeyFrameRequested { .. } => said.wants_key = true,
                ControlEvent::ReceiverReport { block, .. } if is_video => {
                    said.fraction_lost = Some(block.fraction_lost);
                }
                _ => return,
            }
            drop(said);
            waker.wake();
        });
        let (share, unfinished) = (Share::default(), None);
        let (needs_key, is_refused, has_warned) = (false, false, false);
        Self { stream, first, share, needs_key, is_refused, has_warned, unfinished, feedback }
    }

    /// Returns the number of the track that it carries.
    pub(super) fn index(&self) -> usize {
        self.stream.index
    }

    /// Returns when the next part of a frame is due, of which a part is sent.
    pub(super) fn due(&self) -> Option<Instant> {
        self.unfinished.map(|(due, _)| due)
    }

    pub(super) fn is_video(&self) -> bool {
        self.stream.codec.media == "video"
    }

    /// Returns whether the format of the viewer did not carry the last frame.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    pub(super) fn take_feedback(&self) -> Feedback {
        std::mem::take(&mut *self.feedback.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_pacing(&mut self, pacing: Pacing) {
        if let Err(error) = self.stream.stream.sender().set_pacing(pacing) {
            tracing::debug!(%error, "the pacing stays");
        }
    }

    /// Begins to send a frame. Returns `false` if it is left out: its format does not carry it, or the viewer has no
    /// path at present or one that carries less, or a frame before it that it needs was left out.
    pub(super) fn send(&mut self, sample: &Sample) -> Result<bool, Error> {
        let (len, late) = (sample.data.len(), sample.shown.elapsed());
        let is_video = self.is_video();
        let takes = !is_video || self.share.takes(len, sample.is_key, late, Instant::now());
        if !takes || self.needs_key && !sample.is_key {
            return Ok(false);
        }
        let timestamp = self.first.plus(sample.ticks);
        let sender = self.stream.stream.sender();
        let sent = sender.begin_frame(sample.data.clone(), timestamp, sample.captured);
        self.note(sent, is_video && sample.is_key)
    }

    /// Sends what is due at `now` of a frame of which a part is sent. Returns `false` if it is given up.
    pub(super) fn send_rest(&mut self, now: Instant) -> Result<bool, Error> {
        let Some((due, is_key)) = self.unfinished else { return Ok(true) };
        if due > now {
            return Ok(true);
        }
        let sent = self.stream.stream.sender().continue_frame();
        self.note(sent, is_key)
    }

    /// Notes what has become of a frame, or of a part of it.
    fn note(&mut self, sent: Result<Option<Instant>, Error>, is_key: bool) -> Result<bool, Error> {
        self.unfinished = None;
        let was_sent = match sent {
            Ok(Some(due)) => {
                self.unfinished = Some((due, is_key));
                true
            }
            Err(Error::Frame(error)) => {
                if !self.has_warned {
                    tracing::warn!(%error, "frames are not sent to a viewer");
                }
                (self.is_refused, self.has_warned) = (true, true);
                false
            }
            Err(error @ (Error::NoDestination | Error::NoPath)) => {
                tracing::debug!(%error, "a frame is not sent to a viewer");
                false
            }
            Err(error) if error.is_transient() => {
                tracing::debug!(%error, "a frame is cut off on its way to a viewer");
                false
            }
            Err(Error::CircuitBreaker { .. }) => {
                // Whether the viewer has left, its path shows; sending goes on when that is permitted.
                let _ = self.stream.stream.sender().resume();
                false
            }
            Ok(None) => true,
            Err(error) => return Err(error),
        };
        self.needs_key = !was_sent;
        self.is_refused &= !was_sent;
        if was_sent && is_key && self.unfinished.is_none() {
            self.share.note_key_frame(Instant::now());
        }
        Ok(was_sent)
    }

    /// Says that the stream ends.
    pub(super) fn say_bye(&self) -> Result<(), Error> {
        ignore_lost(self.stream.stream.rtcp().send_bye(""))
    }
}

/// Ignores errors of packets that are lost, as the network may lose them, too.
fn ignore_lost(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::NoDestination) => Ok(()),
        Err(error) if error.is_transient() => Ok(()),
        outcome => outcome,
    }
}
