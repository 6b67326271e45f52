//! The chunks of a WAV file up to its samples.

use rushes_proto::ClockRate;
use rushes_proto::payload::pcm::Sample;

use super::super::{Bytes, Sampling};
use super::{
    ALAW, EXTENSIBLE, EXTENSIBLE_LEN, FORMAT_LEN, MULAW, PCM, SUB_FORMAT_TAIL, UNKNOWN_LEN,
};

const FILE_HEADER_LEN: usize = 12;
const CHUNK_HEADER_LEN: usize = 8;

/// Maximum octets of a `fmt ` chunk.
const FORMAT_LEN_MAX: usize = 1024;

/// The highest sampling rate that is read, in hertz.
const RATE_MAX: u32 = 1_000_000;

/// Octets of a `ds64` chunk up to the length of `data`, its second number.
const LENGTHS_LEN: usize = 16;

/// Programs that write into a pipe do not know the length of `data`, and set one near the maximum of 31
/// or 32 bits. From here on it is trusted only if the file has it too, and the samples may end before.
const DOUBTFUL_LEN: u32 = 0x7fff_0000;

/// Octets of samples up to the end of the file.
pub(super) const ENDLESS: u64 = u64::MAX;

/// The contents of a `fmt ` chunk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Format {
    /// The format tag.
    tag: u16,
    bits: u16,
    channels: u16,
    rate: u32,
    /// Octets of a sample group.
    group_len: u16,
}

impl Format {
    /// Reads a chunk; `None` if it is too short.
    fn parse(chunk: &[u8]) -> Option<Self> {
        let (fields, rest) = chunk.split_first_chunk::<FORMAT_LEN>()?;
        let [t0, t1, c0, c1, r0, r1, r2, r3, _, _, _, _, g0, g1, b0, b1] = *fields;
        let mut tag = u16::from_le_bytes([t0, t1]);
        if tag == EXTENSIBLE {
            let sub_format = rest.get(EXTENSIBLE_LEN - FORMAT_LEN - 16..)?;
            let ([t0, t1], tail) = sub_format.split_first_chunk()?;
            if tail.starts_with(&SUB_FORMAT_TAIL) {
                tag = u16::from_le_bytes([*t0, *t1]);
            }
        }
        Some(Self {
            tag,
            bits: u16::from_le_bytes([b0, b1]),
            channels: u16::from_le_bytes([c0, c1]),
            rate: u32::from_le_bytes([r0, r1, r2, r3]),
            group_len: u16::from_le_bytes([g0, g1]),
        })
    }

    /// Returns the coding of the samples, if there is a payload format for it.
    pub(super) fn sample(&self) -> Option<Sample> {
        match (self.tag, self.bits) {
            (PCM, 16) => Some(Sample::L16),
            (PCM, 24) => Some(Sample::L24),
            (MULAW, 8) => Some(Sample::Pcmu),
            (ALAW, 8) => Some(Sample::Pcma),
            _ => None,
        }
    }

    /// Returns the name of the coding.
    pub(super) fn coding(&self) -> String {
        let bits = self.bits;
        match self.tag {
            PCM => format!("samples of {bits} bits"),
            3 => format!("floating-point samples of {bits} bits"),
            ALAW => "A-law".to_owned(),
            MULAW => "µ-law".to_owned(),
            tag => format!("a coding with the format tag {tag:#06x}"),
        }
    }

    /// Returns the rate and the channels; `None` if there are none that can be
    /// sent, or if they contradict the size of a sample group.
    pub(super) fn sampling(&self, sample: Sample) -> Option<Sampling> {
        let channels = u8::try_from(self.channels).ok().filter(|channels| *channels > 0)?;
        let rate = ClockRate::new(self.rate).filter(|_| self.rate <= RATE_MAX)?;
        let is_packed = usize::from(self.group_len) == sample.len() * usize::from(channels);
        is_packed.then_some(Sampling { rate, channels })
    }
}

/// Returns the format in the beginning of a file, if that contains it.
pub(super) fn format_in(head: &[u8]) -> Option<Format> {
    let mut bytes = Bytes::default();
    bytes.feed(head);
    let mut chunks = Chunks::default();
    while chunks.advance(&mut bytes).ok()? {}
    chunks.format
}

/// Walks over the chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Whether the file's own header was read.
    has_begun: bool,
    /// Whether it is one of RF64 or BW64, with lengths in `ds64`.
    is_long: bool,
    /// The length of the file according to its header; `None` if that does not know it.
    file_len: Option<u64>,
    /// The length of `data` according to `ds64`.
    data_len: Option<u64>,
    pub(super) format: Option<Format>,
    /// Octets of the current chunk that are left out.
    left_out: u64,
    /// The octets of samples that follow, once `data` has begun.
    pub(super) data: Option<u64>,
    /// Whether the file may end before `data`.
    pub(super) may_end_early: bool,
}

impl Chunks {
    /// Takes the next part of the file from `bytes`; returns `false` if `data` has begun, or more bytes
    /// are needed.
    ///
    /// # Errors
    /// What is wrong with the file, as a predicate of a place in it.
    pub(super) fn advance(&mut self, bytes: &mut Bytes) -> Result<bool, &'static str> {
        if self.data.is_some() {
            return Ok(false);
        }
        if self.left_out > 0 {
            let len = usize::try_from(self.left_out).unwrap_or(usize::MAX).min(bytes.rest().len());
            bytes.skip(len);
            self.left_out -= len as u64;
            return Ok(len > 0);
        }
        if !self.has_begun {
            return self.begin(bytes);
        }
        let Some((header, rest)) = bytes.rest().split_first_chunk::<CHUNK_HEADER_LEN>() else {
            return Ok(false);
        };
        let [name @ .., l0, l1, l2, l3] = *header;
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        match &name {
            b"data" => {
                bytes.skip(CHUNK_HEADER_LEN);
                self.begin_data(len, bytes.position());
                return Ok(true);
            }
            b"fmt " => {
                let len = len as usize;
                if len > FORMAT_LEN_MAX {
                    return Err("is a chunk of more octets than it may have");
                }
                let Some(chunk) = rest.get(..len) else { return Ok(false) };
                self.format = Some(Format::parse(chunk).ok_or("is too short for a format")?);
            }
            // Lengths of other chunks follow, which are not needed.
            b"ds64" if len as usize >= LENGTHS_LEN => {
                let Some(lengths) = rest.first_chunk::<LENGTHS_LEN>() else { return Ok(false) };
                self.data_len = lengths.last_chunk().map(|it| u64::from_le_bytes(*it));
            }
            _ => {}
        }
        bytes.skip(CHUNK_HEADER_LEN);
        self.left_out = u64::from(len) + u64::from(len & 1);
        Ok(true)
    }

    /// Notes the length of `data`, whose samples begin at `position`.
    fn begin_data(&mut self, len: u32, position: u64) {
        if let (true, UNKNOWN_LEN, Some(given)) = (self.is_long, len, self.data_len) {
            self.data = Some(given);
            return;
        }
        self.may_end_early = len >= DOUBTFUL_LEN;
        let is_beyond = self.file_len.is_some_and(|file| position + u64::from(len) > file);
        let is_endless = match len {
            0 => self.file_len.is_none(),
            UNKNOWN_LEN => true,
            _ => self.may_end_early && is_beyond,
        };
        self.data = Some(if is_endless { ENDLESS } else { len.into() });
    }

    /// Reads the file's own header.
    fn begin(&mut self, bytes: &mut Bytes) -> Result<bool, &'static str> {
        const WRONG: &str = "is not of a WAV file, which begins with RIFF, RF64 or BW64, and WAVE";
        let head = bytes.rest();
        let begins = |mark: &[u8]| mark.iter().zip(head).all(|(a, b)| a == b);
        let is_long = begins(b"RF64") || begins(b"BW64");
        if !begins(b"RIFF") && !is_long {
            return Err(WRONG);
        }
        let Some(header) = head.first_chunk::<FILE_HEADER_LEN>() else { return Ok(false) };
        if !header.ends_with(b"WAVE") {
            return Err(WRONG);
        }
        (self.has_begun, self.is_long) = (true, is_long);
        let [_, _, _, _, l0, l1, l2, l3, ..] = *header;
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        let is_known = len != 0 && len != UNKNOWN_LEN;
        self.file_len = is_known.then(|| u64::from(len) + CHUNK_HEADER_LEN as u64);
        bytes.skip(FILE_HEADER_LEN);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the octets of samples in a file with these lengths.
    fn data_len(file_len: u32, data_len: u32) -> Option<u64> {
        let (file_len, data_len) = (file_len.to_le_bytes(), data_len.to_le_bytes());
        let mut bytes = Bytes::default();
        bytes.feed(&[b"RIFF", &file_len[..], b"WAVEdata", &data_len].concat());
        let mut chunks = Chunks::default();
        while chunks.advance(&mut bytes).unwrap() {}
        chunks.data
    }

    #[test]
    fn a_length_of_gigabytes_is_trusted_if_the_file_is_as_long() {
        let len = 3_000_000_000;
        for file_len in [len + 12, len + 500, u32::MAX, 0] {
            assert_eq!(data_len(file_len, len), Some(len.into()), "{file_len}");
        }
        for (file_len, len) in [(len + 11, len), (u32::MAX, u32::MAX), (0, 0), (0, u32::MAX)] {
            assert_eq!(data_len(file_len, len), Some(ENDLESS), "{file_len} {len}");
        }
        assert_eq!(data_len(12, 0), Some(0));
        assert_eq!(data_len(12, 1000), Some(1000), "another program's mistake");
    }
}
