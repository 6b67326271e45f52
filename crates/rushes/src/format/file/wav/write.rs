//! Writing WAV: lost samples become silence.

use std::io::{self, Write};
use std::time::Duration;

use rushes_proto::RtpTimestamp;
use rushes_proto::payload::pcm::{Pcm, Sample};

use super::super::{FrameWriter, Sampling};
use super::{
    ALAW, EXTENSIBLE, EXTENSIBLE_LEN, FORMAT_LEN, MULAW, PCM, SUB_FORMAT_TAIL, UNKNOWN_LEN, swap,
};

/// Octets of `ds64`: three numbers of 64 bits and an empty table. Until a file needs one, its place is
/// taken by the chunk `JUNK`, which readers leave out.
const LENGTHS_LEN: usize = 28;
const LENGTHS_AT: u64 = 12;

/// The longest silence, and silence that a file may have beyond as much as it has sound.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Writes a file of `sample`, with this rate and channels unless others are set.
pub(in crate::format) fn writer(sample: Sample, sampling: Sampling) -> Box<dyn FrameWriter> {
    Box::new(WavWriter {
        sample,
        sampling,
        header_len: 0,
        data_len: 0,
        next: None,
        silent: 0,
        frames: 0,
        scratch: Vec::new(),
    })
}

struct WavWriter {
    sample: Sample,
    sampling: Sampling,
    /// Octets before the samples; 0 before the first frame.
    header_len: u64,
    /// Octets of samples written.
    data_len: u64,
    /// The timestamp of the next sample.
    next: Option<RtpTimestamp>,
    /// Silent samples of each channel that stand for lost ones.
    silent: u64,
    frames: u64,
    scratch: Vec<u8>,
}

impl WavWriter {
    fn group_len(&self) -> usize {
        Pcm::new(self.sample, self.sampling.rate, self.sampling.channels).group_len()
    }

    /// Returns the file up to its samples, with unknown lengths.
    fn header(&self) -> Vec<u8> {
        let Sampling { rate, channels } = self.sampling;
        let (group_len, tag) = (self.group_len() as u16, self.tag());
        let is_extensible = channels > 2 || self.sample == Sample::L24;
        let mut header = Vec::new();
        header.extend(b"RIFF");
        header.extend(UNKNOWN_LEN.to_le_bytes());
        header.extend(b"WAVEJUNK");
        header.extend((LENGTHS_LEN as u32).to_le_bytes());
        header.extend([0; LENGTHS_LEN]);
        header.extend(b"fmt ");
        // All tags but that of PCM are followed by the length of what follows.
        let len = match (is_extensible, tag) {
            (true, _) => EXTENSIBLE_LEN,
            (false, PCM) => FORMAT_LEN,
            (false, _) => FORMAT_LEN + 2,
        };
        header.extend((len as u32).to_le_bytes());
        header.extend(if is_extensible { EXTENSIBLE } else { tag }.to_le_bytes());
        header.extend(u16::from(channels).to_le_bytes());
        header.extend(rate.hertz().to_le_bytes());
        header.extend(rate.hertz().saturating_mul(group_len.into()).to_le_bytes());
        header.extend(group_len.to_le_bytes());
        let bits = 8 * self.sample.len() as u16;
        header.extend(bits.to_le_bytes());
        if is_extensible {
            header.extend(((EXTENSIBLE_LEN - FORMAT_LEN - 2) as u16).to_le_bytes());
            header.extend(bits.to_le_bytes());
            // The positions of loudspeakers are not known.
            header.extend([0; 4]);
            header.extend(tag.to_le_bytes());
            header.extend(SUB_FORMAT_TAIL);
        } else if tag != PCM {
            header.extend([0; 2]);
        }
        header.extend(b"data");
        header.extend(UNKNOWN_LEN.to_le_bytes());
        header
    }

    fn tag(&self) -> u16 {
        match self.sample {
            Sample::L16 | Sample::L24 => PCM,
            Sample::Pcmu => MULAW,
            Sample::Pcma => ALAW,
        }
    }

    /// Returns how many samples are missing before one of `timestamp`: none if the timestamp goes back,
    /// or so far on that the sender's clock seems to have jumped: by more than 10 s, or so often that the
    /// file would be mostly silence.
    fn missing(&self, timestamp: RtpTimestamp) -> u64 {
        let gap = self.next.map_or(0, |next| timestamp.distance(next));
        let gap = u64::try_from(gap).unwrap_or(0);
        let written = self.data_len / self.group_len() as u64;
        let longest = SILENCE_MAX.as_secs() * u64::from(self.sampling.rate.hertz());
        // What was written is sound and silence.
        let most = (longest + written).saturating_sub(2 * self.silent).min(longest);
        if gap <= most { gap } else { 0 }
    }

    /// Writes so many silent samples of each channel.
    fn write_silence(&mut self, samples: u64, to: &mut dyn Write) -> io::Result<()> {
        let piece = vec![self.sample.silence(); 4096];
        let mut left = samples * self.group_len() as u64;
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            to.write_all(&piece[..len])?;
            left -= len as u64;
            self.data_len += len as u64;
        }
        self.silent += samples;
        Ok(())
    }
}

impl FrameWriter for WavWriter {
    fn set_sampling(&mut self, sampling: Sampling) {
        self.sampling = sampling;
    }

    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let group_len = self.group_len();
        if !frame.len().is_multiple_of(group_len) {
            let reason = "a frame that is no whole number of samples of each channel";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        if self.header_len == 0 {
            let header = self.header();
            to.write_all(&header)?;
            self.header_len = header.len() as u64;
        }
        self.write_silence(self.missing(timestamp), to)?;
        self.scratch.clear();
        self.scratch.extend_from_slice(frame);
        swap(self.sample, &mut self.scratch);
        to.write_all(&self.scratch)?;
        self.data_len += frame.len() as u64;
        self.next = Some(timestamp.plus((frame.len() / group_len) as u32));
        self.frames += 1;
        Ok(())
    }

    fn complete(&mut self, to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        if self.header_len == 0 {
            return Ok(Vec::new());
        }
        let padding = self.data_len % 2;
        to.write_all(&[0][..padding as usize])?;
        let riff_len = self.header_len - 8 + self.data_len + padding;
        let data_len_at = self.header_len - 4;
        let short = |len: u64| u32::try_from(len).ok().filter(|len| *len != UNKNOWN_LEN);
        if let (Some(riff), Some(data)) = (short(riff_len), short(self.data_len)) {
            let lens = [(4, riff), (data_len_at, data)];
            return Ok(lens.map(|(at, len)| (at, len.to_le_bytes().to_vec())).to_vec());
        }
        let samples = self.data_len / self.group_len() as u64;
        let mut lengths = b"ds64".to_vec();
        lengths.extend((LENGTHS_LEN as u32).to_le_bytes());
        lengths.extend([riff_len, self.data_len, samples].map(u64::to_le_bytes).concat());
        lengths.extend([0; 4]);
        Ok(vec![(0, b"RF64".to_vec()), (LENGTHS_AT, lengths)])
    }

    fn frames_written(&self) -> u64 {
        self.frames
    }

    fn silence(&self) -> Duration {
        let hertz = u64::from(self.sampling.rate.hertz());
        let nanos = self.silent % hertz * 1_000_000_000 / hertz;
        Duration::from_secs(self.silent / hertz) + Duration::from_nanos(nanos)
    }

    fn change_source(&mut self) {
        self.next = None;
    }
}
