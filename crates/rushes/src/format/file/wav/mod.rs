//! WAV: samples in a RIFF file or, of more than 4 GiB, an RF64 file (EBU Tech 3306) or BW64 file (ITU-R
//! BS.2088).
//!
//! All numbers are little-endian, samples too, while those of RTP are in network byte order. A file is
//! `RIFF`, a length (4), `WAVE`, and chunks: a name (4), a length (4), octets, and one more after an odd
//! number of them. `fmt ` describes the samples, `data` holds them. The lengths of 64 bits are in
//! the chunk `ds64`.

mod chunks;
mod read;
mod write;

use rushes_proto::payload::pcm::Sample;

pub(in crate::format) use self::read::reader;
pub(in crate::format) use self::write::writer;

/// Format tags: PCM, A-law, µ-law, and that of a longer `fmt ` with the tag in it.
const PCM: u16 = 1;
const ALAW: u16 = 6;
const MULAW: u16 = 7;
const EXTENSIBLE: u16 = 0xfffe;

/// The identifier of a coding in an extensible `fmt `, after its tag (2).
const SUB_FORMAT_TAIL: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

/// Octets of `fmt ` up to its tag's parameters, and of an extensible one.
const FORMAT_LEN: usize = 16;
const EXTENSIBLE_LEN: usize = 40;

/// A length that is not known when a file is written.
const UNKNOWN_LEN: u32 = u32::MAX;

/// Returns the samples of a file that begins with `head`, if they can be sent.
pub(in crate::format) fn sample_of(head: &[u8]) -> Option<Sample> {
    chunks::format_in(head)?.sample()
}

/// Changes the byte order of each sample of `octets`.
fn swap(sample: Sample, octets: &mut [u8]) {
    match sample {
        Sample::L16 | Sample::L24 => {
            octets.chunks_exact_mut(sample.len()).for_each(<[u8]>::reverse);
        }
        Sample::Pcmu | Sample::Pcma => {}
    }
}
