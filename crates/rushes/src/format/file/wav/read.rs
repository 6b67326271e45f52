//! Reading WAV: frames of one packet each.

use std::path::{Path, PathBuf};

use rushes_proto::payload::pcm::{Pcm, Sample};

use super::super::super::PACKET_TIME_MAX;
use super::super::{Bytes, FileError, FrameReader, MediaFrame, ReadOptions, Sampling};
use super::chunks::{Chunks, ENDLESS};
use super::swap;

/// Reads a file of `sample`.
pub(in crate::format) fn reader(
    path: &Path,
    sample: Sample,
    options: ReadOptions,
) -> Box<dyn FrameReader> {
    Box::new(Wav {
        path: path.to_owned(),
        sample,
        options,
        bytes: Bytes::default(),
        chunks: Chunks::default(),
        samples: None,
    })
}

struct Wav {
    path: PathBuf,
    sample: Sample,
    options: ReadOptions,
    bytes: Bytes,
    chunks: Chunks,
    /// The samples that follow, once their format is known.
    samples: Option<Samples>,
}

#[derive(Clone, Copy)]
struct Samples {
    format: Pcm,
    /// Octets that are left, or [`ENDLESS`].
    left: u64,
}

impl Wav {
    fn malformed(&self, reason: &'static str) -> FileError {
        let (path, position) = (self.path.clone(), self.bytes.position());
        FileError::Malformed { path, position, reason }
    }

    /// Reads up to the samples; returns `None` if more bytes are needed.
    fn samples(&mut self) -> Result<Option<Samples>, FileError> {
        if self.samples.is_some() {
            return Ok(self.samples);
        }
        loop {
            match self.chunks.advance(&mut self.bytes) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => return Err(self.malformed(reason)),
            }
        }
        let Some(left) = self.chunks.data else {
            if self.bytes.finished && self.bytes.position() + self.bytes.rest().len() as u64 > 0 {
                return Err(self.malformed("is the end of the file, which has no samples"));
            }
            return Ok(None);
        };
        let Some(format) = self.chunks.format else {
            return Err(self.malformed("is a chunk of samples before their format"));
        };
        if format.sample() != Some(self.sample) {
            let (path, codec) = (self.path.clone(), self.sample.name());
            return Err(FileError::NoTrack { path, codec, codings: format.coding() });
        }
        let sampling = format.sampling(self.sample).ok_or_else(|| {
            self.malformed(
                "follows a format without channels, with an impossible rate or unpacked samples",
            )
        })?;
        if let Some(expected) = self.options.sampling.filter(|expected| *expected != sampling) {
            let path = self.path.clone();
            return Err(FileError::Sampling { path, found: sampling, expected });
        }
        let Sampling { rate, channels } = sampling;
        let packet_time = self.options.packet_time.map(|time| time.min(PACKET_TIME_MAX));
        let format = Pcm { packet_time, ..Pcm::new(self.sample, rate, channels) };
        self.samples = Some(Samples { format, left });
        Ok(self.samples)
    }
}

impl FrameReader for Wav {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let Some(Samples { format, left }) = self.samples()? else { return Ok(false) };
        let group_len = format.group_len();
        let packet_len = group_len.saturating_mul(format.packet_samples() as usize);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(packet_len);
        let have = self.bytes.rest().len();
        if have < most && !self.bytes.finished {
            return Ok(false);
        }
        let len = most.min(have);
        let len = len - len % group_len;
        if len == 0 {
            let is_cut = left > have as u64 && left != ENDLESS && !self.chunks.may_end_early;
            return match (most, is_cut) {
                // Chunks behind the samples.
                (0, _) => {
                    self.bytes.skip(usize::MAX);
                    Ok(false)
                }
                (_, true) => Err(self.malformed("is cut off by the end of the file")),
                _ if have > 0 => Err(self.malformed("is no whole sample of each channel")),
                _ => Ok(false),
            };
        }
        self.bytes.take(len, frame);
        swap(self.sample, &mut frame.data);
        frame.duration = Some((len / group_len) as u32);
        let left = if left == ENDLESS { left } else { left - len as u64 };
        self.samples = Some(Samples { format, left });
        Ok(true)
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }

    fn sampling(&self) -> Option<Sampling> {
        let Pcm { rate, channels, .. } = self.samples?.format;
        Some(Sampling { rate, channels })
    }
}
