//! Pictures supplied by the application.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{Layout, Rate};

use crate::hook::{Callback, TextureSourceHook};

/// Maximum number of pictures kept for reuse.
const KEPT_MAX: usize = 8;

/// A source that obtains pictures from a C function.
pub(super) struct CallbackSource {
    layout: Layout,
    rate: Rate,
    callback: Arc<Callback<TextureSourceHook>>,
    /// Whether the source must start again with its first picture.
    rewinds: bool,
    frames: VecDeque<Frame>,
}

impl CallbackSource {
    pub(super) fn new(
        layout: Layout,
        rate: Rate,
        callback: Arc<Callback<TextureSourceHook>>,
    ) -> Self {
        Self { layout, rate, callback, rewinds: true, frames: VecDeque::new() }
    }

    /// Returns memory for a picture, reused from one that is no longer referenced if possible.
    fn memory(&mut self) -> Vec<u8> {
        for _ in 0..self.frames.len() {
            let Some(oldest) = self.frames.pop_front() else { break };
            match oldest.try_into_vec() {
                Ok(octets) => return octets,
                Err(held) => self.frames.push_back(held),
            }
        }
        vec![0; self.layout.bytes()]
    }
}

impl Source for CallbackSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let mut octets = self.memory();
        let rewinds = std::mem::take(&mut self.rewinds);
        let answer = self.callback.call(|hook, user| {
            hook.map_or(-1, |hook| hook(user, octets.as_mut_ptr(), octets.len(), rewinds))
        });
        match answer {
            Some(1..) => {
                let frame = Frame::new(octets);
                if self.frames.len() == KEPT_MAX {
                    self.frames.pop_front();
                }
                self.frames.push_back(frame.clone());
                Ok(Some(frame))
            }
            Some(0) => Ok(None),
            _ => Err(SourceError::File {
                path: "the application's source".into(),
                error: io::Error::other("the callback reported a failure").into(),
            }),
        }
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.rewinds = true;
        Ok(())
    }
}
