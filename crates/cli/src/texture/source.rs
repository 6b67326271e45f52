//! The source of frames: a file or a pattern, at another rate or cut short if requested.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "window")]
use rushes::texture::Format;
use rushes::texture::source::{Frame, Preloaded, RawHint, Source, SourceError, Taker};
use rushes::texture::{Layout, Rate, source};

use super::args::SourceArgs;
#[cfg(feature = "window")]
use super::encoded;
use crate::recognise;

/// Opens the source that a command line names.
///
/// # Errors
/// If the source cannot be opened; the error names the options that would help.
pub(crate) fn open(path: &Path, args: &SourceArgs) -> anyhow::Result<Played> {
    let hint = RawHint { format: args.input_format, size: args.size, rate: args.fps };
    let source = source::open(path, &hint);
    if let Err(SourceError::Kind(path)) = &source {
        recognise::check_frames(path)?;
    }
    let source = source.map_err(|error| match error {
        SourceError::Hint(_) | SourceError::Kind(_) => anyhow::Error::from(error)
            .context("frames without a header need --size WIDTHxHEIGHT and --input-format FORMAT"),
        error => error.into(),
    })?;
    let rate = args.fps.unwrap_or_else(|| source.rate());
    Ok(Played { source, rate, most: args.frames, taken: 0, log: Arc::default() })
}

/// A source with the rate and length that the command line gives.
pub(crate) struct Played {
    source: Box<dyn Source>,
    rate: Rate,
    most: Option<u64>,
    taken: u64,
    log: Arc<Log>,
}

/// The failure, if any, of a source that another thread reads.
#[derive(Default)]
pub(crate) struct Log {
    failure: Mutex<Option<String>>,
}

impl Log {
    /// The reason why it cannot be read, if it failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note<T>(&self, result: Result<T, SourceError>) -> Result<T, SourceError> {
        result.inspect_err(|error| {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| error.to_string());
        })
    }
}

impl Played {
    pub(crate) fn log(&self) -> Arc<Log> {
        self.log.clone()
    }

    /// The same source, played from memory, and its number of frames.
    ///
    /// # Errors
    /// If not even one frame fits into `bound` octets, or the source cannot be read.
    pub(crate) fn preload(mut self, bound: usize) -> anyhow::Result<(Self, usize)> {
        let loaded = Preloaded::new(&mut self, bound)?;
        let frames = loaded.frames().len();
        Ok((Self { source: Box::new(loaded), taken: 0, log: Arc::default(), ..self }, frames))
    }
}

#[cfg(feature = "window")]
impl Played {
    /// The same source, encoded to another format by the graphics processor.
    ///
    /// # Errors
    /// If there is no graphics processor, or it does not support one of the two formats.
    pub(crate) fn encoded(self, format: Option<Format>) -> anyhow::Result<Self> {
        Ok(Self { source: encoded::by_gpu(self.source, format)?, ..self })
    }
}

impl Source for Played {
    fn layout(&self) -> &Layout {
        self.source.layout()
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        match (self.source.length(), self.most) {
            (Some(length), Some(most)) => Some(length.min(most)),
            (length, most) => length.or(most),
        }
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        if self.most.is_some_and(|most| self.taken >= most) {
            return Ok(None);
        }
        let frame = self.log.note(self.source.next_frame())?;
        self.taken += u64::from(frame.is_some());
        Ok(frame)
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        if self.most.is_some_and(|most| self.taken >= most) {
            return Ok(false);
        }
        let more = self.log.note(self.source.give_frame(to))?;
        self.taken += u64::from(more);
        Ok(more)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.taken = 0;
        self.log.note(self.source.rewind())
    }
}
