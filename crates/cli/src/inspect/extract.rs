//! Writes a stream's frames to a file, with the library's writers.

use std::path::PathBuf;

use rushes::file::{FileError, MediaWriter, Sampling};
use rushes::payload::raw::RawVideo;
use rushes::{Codec, Frame, Ssrc};

use super::codec::Encoding;
use super::streams::Key;
use crate::overwrite::OverwriteArgs;

/// The stream to be extracted, and its progress.
#[derive(Debug)]
pub(crate) struct Extraction {
    /// SSRCs that the command line may mean: decimal digits may also be hexadecimal.
    ssrcs: Vec<Ssrc>,
    pub(crate) path: PathBuf,
    overwrite: OverwriteArgs,
    stream: Option<Key>,
    writer: Option<MediaWriter>,
    codec: Codec,
    sampling: Option<Sampling>,
    /// The size of uncompressed video, if it was described.
    raw_video: Option<RawVideo>,
    /// NAL units, Opus packets or frames written.
    pub(crate) units: u64,
    pub(crate) octets: u64,
    /// Number of other streams with the same SSRC, which are not extracted.
    pub(crate) namesakes: u64,
}

impl Extraction {
    pub(crate) fn new(ssrcs: Vec<Ssrc>, path: PathBuf, overwrite: OverwriteArgs) -> Self {
        Self {
            ssrcs,
            path,
            overwrite,
            stream: None,
            writer: None,
            codec: Codec::Generic,
            sampling: None,
            raw_video: None,
            units: 0,
            octets: 0,
            namesakes: 0,
        }
    }

    /// Returns the stream, if it was found.
    pub(crate) fn stream(&self) -> Option<Key> {
        self.stream
    }

    /// Offers a stream of `encoding`; the first one with the SSRC is extracted.
    pub(crate) fn consider(&mut self, key: Key, encoding: &Encoding) {
        if !self.ssrcs.contains(&key.ssrc) {
            return;
        }
        if let Some(stream) = self.stream {
            self.namesakes += u64::from(stream.ssrc == key.ssrc);
            return;
        }
        self.stream = Some(key);
        self.codec = encoding.codec.unwrap_or(Codec::Generic);
        self.sampling = encoding.sampling();
        self.raw_video = encoding.raw_video();
    }

    /// Returns the extraction if `key` is its stream.
    pub(crate) fn of(&mut self, key: Key) -> Option<&mut Self> {
        (self.stream == Some(key)).then_some(self)
    }

    /// Writes a frame; the first one creates the file.
    ///
    /// # Errors
    /// The error of the writer.
    pub(crate) fn write(&mut self, frame: &Frame) -> Result<(), FileError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let codecs = [(self.codec, self.sampling)];
                let mut writer = self.overwrite.media_writer(&self.path, &codecs)?;
                if let Some(video) = self.raw_video {
                    writer.set_raw_video(video, None)?;
                }
                none.insert(writer)
            }
        };
        writer.write(frame, frame.timestamp())?;
        self.units += 1;
        self.octets += frame.len() as u64;
        Ok(())
    }

    /// Gives the file its final name; without this, the file is removed.
    ///
    /// # Errors
    /// The error of the writer.
    pub(crate) fn finish(&mut self) -> Result<(), FileError> {
        self.writer.take().map_or(Ok(()), MediaWriter::finish)
    }
}
