//! The thread beside those that send, which one frame can occupy for minutes at a low rate.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rushes::{Rtcp, StreamHandle};

use super::film::Film;
use super::sending::Sending;
use super::target::TargetOutput;
use crate::line_output::LineFile;

const INTERVAL: Duration = Duration::from_millis(50);

/// Passes the target rate on, and ends the frames being sent when the film stops.
pub(super) struct Watch {
    streams: Vec<StreamHandle>,
    /// The stream with rate control, and where its target is written.
    target: Option<(Rtcp, TargetOutput)>,
}

impl Watch {
    /// Creates a watch of streams; the target rate of the first is written to `to`.
    pub(super) fn new(sendings: &[Sending<'_>], to: Option<&LineFile>) -> anyhow::Result<Self> {
        let target = match (sendings.first(), to) {
            (Some(first), Some(to)) => Some((first.stream.rtcp(), TargetOutput::open(to)?)),
            _ => None,
        };
        Ok(Self { streams: sendings.iter().map(|it| it.stream.handle()).collect(), target })
    }

    /// Runs until the other end of `sending` is dropped.
    pub(super) fn run(mut self, film: &Film<'_>, sending: &Receiver<()>) {
        loop {
            if let Some((rtcp, output)) = &mut self.target
                && let Some(target) = rtcp.target_rate()
            {
                output.follow(target);
            }
            if film.stop.is_requested() {
                self.streams.iter().for_each(StreamHandle::stop_sending);
            }
            if sending.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}
