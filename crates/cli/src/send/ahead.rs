//! The frames of a file, large ones read ahead on a thread of their own.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

use anyhow::Context;
use rushes::FrameRate;
use rushes::file::{MediaFrame, MediaReader};

use super::NO_THREAD;
use crate::source::Source;

/// Octets of a first frame from which on frames are read ahead. A paced frame takes most of its interval to
/// send, so that little time is left to read the next one.
const AHEAD_LEN: usize = 1 << 20;

/// Frames that wait to be sent.
const WAITING: usize = 1;

/// A file that is sent several times, as frames in order.
pub(super) enum Frames {
    /// Read by the thread that sends.
    Here(Box<Here>),
    /// Read by another thread.
    Ahead(Ahead),
}

/// A file that is being read, and how to open it again.
pub(super) struct Here {
    source: Source,
    rate: Option<FrameRate>,
    reader: MediaReader,
}

/// The ends of a reading thread, which ends when they are dropped.
pub(super) struct Ahead {
    frames: Receiver<Read>,
    /// Frames that were sent, whose memory is used again.
    sent: Sender<MediaFrame>,
    current: Option<MediaFrame>,
}

/// A frame, `None` at the end of the file, or the error that ends reading.
type Read = anyhow::Result<Option<MediaFrame>>;

impl Frames {
    /// Returns the frames of `reader`, and then of `source` until it was read `passes` times, or without end if that is 0.
    pub(super) fn new(
        source: &Source,
        rate: Option<FrameRate>,
        mut reader: MediaReader,
        passes: u64,
    ) -> anyhow::Result<Self> {
        let source = source.clone();
        if reader.peek()?.is_none_or(|first| first.data.len() < AHEAD_LEN) {
            return Ok(Self::Here(Box::new(Here { source, rate, reader })));
        }
        let (to, frames) = mpsc::sync_channel(WAITING);
        let (sent, used) = mpsc::channel();
        let thread = thread::Builder::new().name("rushes-read".to_owned());
        let read = move || {
            if let Err(error) = read_all(&source, rate, reader, passes, (&to, &used)) {
                let _ = to.send(Err(error));
            }
        };
        thread.spawn(read).context(NO_THREAD)?;
        Ok(Self::Ahead(Ahead { frames, sent, current: None }))
    }

    /// Returns the next frame, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<&MediaFrame>> {
        match self {
            Self::Here(here) => Ok(here.reader.next_frame()?),
            Self::Ahead(Ahead { frames, sent, current }) => {
                if let Some(frame) = current.take() {
                    // The thread may have ended.
                    let _ = sent.send(frame);
                }
                *current = frames.recv().context("the reading thread has ended")??;
                Ok(current.as_ref())
            }
        }
    }

    /// Begins the file again, after its end.
    pub(super) fn begin_again(&mut self) -> anyhow::Result<()> {
        if let Self::Here(here) = self {
            here.reader = here.source.open(here.rate)?;
        }
        Ok(())
    }
}

/// Reads the file `passes` times, or without end if that is 0, until nobody takes its frames.
fn read_all(
    source: &Source,
    rate: Option<FrameRate>,
    mut reader: MediaReader,
    passes: u64,
    (to, used): (&SyncSender<Read>, &Receiver<MediaFrame>),
) -> anyhow::Result<()> {
    for pass in 1.. {
        loop {
            let mut frame = used.try_recv().unwrap_or_default();
            let read = reader.read_frame(&mut frame)?.then_some(frame);
            let is_end = read.is_none();
            if to.send(Ok(read)).is_err() {
                return Ok(());
            }
            if is_end {
                break;
            }
        }
        if pass == passes {
            break;
        }
        // Its memory is free for the next one.
        drop(reader);
        reader = source.open(rate)?;
    }
    Ok(())
}
