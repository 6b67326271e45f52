//! What is sent to a server for browsers: as these decode it, while the connection lasts.

use std::path::Path;

use rushes::Codec;
use rushes::file::{BrowserFrames, MediaFrame};
use rushes::peer::PeerHandle;

use crate::source::Source;

/// A stream to a server for browsers.
pub(super) struct Browsers {
    connection: PeerHandle,
    /// `None` of what needs no preparation, such as audio.
    frames: Option<BrowserFrames>,
    /// The requests for key frames that were answered.
    answered: u64,
}

impl Browsers {
    pub(super) fn new(connection: PeerHandle, source: &Source) -> anyhow::Result<Self> {
        let frames = if [Codec::H264, Codec::H265].contains(&source.codec) {
            let name = source.name();
            Some(BrowserFrames::new(source.codec, Path::new(&name), source.is_live())?)
        } else {
            None
        };
        Ok(Self { connection, frames, answered: 0 })
    }

    /// Checks that the connection lasts.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self.connection.ended() {
            Some(error) => anyhow::bail!("the connection has ended: {error}"),
            None => Ok(()),
        }
    }

    /// Goes on with the beginning of the file.
    pub(super) fn begin_again(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.begin_again();
        }
    }

    /// Returns the frame as it is sent, or `None` if it is left out. `requested` is the number of key frames that
    /// the server has requested so far.
    ///
    /// # Errors
    /// If the connection has ended, or browsers cannot decode the frame.
    pub(super) fn prepare(
        &mut self,
        frame: &MediaFrame,
        requested: u64,
    ) -> anyhow::Result<Option<MediaFrame>> {
        self.check()?;
        let Some(frames) = &mut self.frames else { return Ok(Some(frame.clone())) };
        if requested > self.answered {
            self.answered = requested;
            // A live encoder makes key frames at its own interval.
            let _ = frames.request_key_frame();
        }
        let mut frame = frame.clone();
        Ok(frames.prepare(&mut frame)?.then_some(frame))
    }
}
