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

/// Lengths of a file and of `data` from here on, and of 0 in both, stand for samples up to the end:
/// programs that write into a pipe do not know the length, and set one near the maximum of 31 or 32 bits.
const ENDLESS_LEN: u32 = 0x7fff_0000;

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
    is_rf64: bool,
    /// Whether the length of the file is not known.
    is_open: bool,
    /// The length of `data` according to `ds64`.
    data_len: Option<u64>,
    pub(super) format: Option<Format>,
    /// Octets of the current chunk that are left out.
    left_out: u64,
    /// The octets of samples that follow, once `data` has begun.
    pub(super) data: Option<u64>,
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
            b"fmt " | b"ds64" => {
                let len = len as usize;
                if len > FORMAT_LEN_MAX {
                    return Err("is a chunk of more octets than it may have");
                }
                let Some(chunk) = rest.get(..len) else { return Ok(false) };
                if name == *b"fmt " {
                    self.format = Some(Format::parse(chunk).ok_or("is too short for a format")?);
                } else {
                    self.data_len = chunk
                        .get(8..LENGTHS_LEN)
                        .and_then(|it| Some(u64::from_le_bytes(*it.first_chunk()?)));
                }
                bytes.skip(CHUNK_HEADER_LEN);
                self.left_out = len as u64 + (len as u64 & 1);
            }
            b"data" => {
                bytes.skip(CHUNK_HEADER_LEN);
                self.data = Some(match self.data_len.filter(|_| self.is_rf64) {
                    Some(given) if len == UNKNOWN_LEN => given,
                    _ if len >= ENDLESS_LEN || len == 0 && self.is_open => ENDLESS,
                    _ => len.into(),
                });
            }
            _ => {
                bytes.skip(CHUNK_HEADER_LEN);
                self.left_out = u64::from(len) + u64::from(len & 1);
            }
        }
        Ok(true)
    }

    /// Reads the file's own header.
    fn begin(&mut self, bytes: &mut Bytes) -> Result<bool, &'static str> {
        const WRONG: &str = "is not of a WAV file, which begins with RIFF or RF64, and WAVE";
        let head = bytes.rest();
        let begins = |mark: &[u8]| mark.iter().zip(head).all(|(a, b)| a == b);
        if !begins(b"RIFF") && !begins(b"RF64") {
            return Err(WRONG);
        }
        let Some(header) = head.first_chunk::<FILE_HEADER_LEN>() else { return Ok(false) };
        if !header.ends_with(b"WAVE") {
            return Err(WRONG);
        }
        (self.has_begun, self.is_rf64) = (true, begins(b"RF64"));
        let [_, _, _, _, l0, l1, l2, l3, ..] = *header;
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        self.is_open = len == 0 || len >= ENDLESS_LEN;
        bytes.skip(FILE_HEADER_LEN);
        Ok(true)
    }
}
