//! Uncompressed video: 1920 by 1080 in YCbCr-4:2:2 of 8 bits, as packets of RFC 4175 carry it.

use anyhow::Context as _;
use rushes::Codec;
use rushes::payload::raw::{RawVideo, Sampling};

use super::make::Random;
use super::{NOMINAL_RATE, Origin, Sequence, Unit};

/// Luma samples in a row, and rows.
pub(crate) const SIZE: (u16, u16) = (1920, 1080);

/// The number of frames, which differ, so that a lost one is noticed.
const FRAMES: usize = 4;

/// Returns the format of the frames.
pub(crate) fn video() -> anyhow::Result<RawVideo> {
    RawVideo::new(Sampling::YCbCr422, 8, SIZE.0, SIZE.1).context("the format of uncompressed video")
}

/// Returns frames of noise: programs neither compress nor look at it.
pub(super) fn sequence() -> anyhow::Result<Sequence> {
    let len = video()?.frame_len();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let words = std::iter::repeat_with(|| random.next().to_le_bytes());
    let octets: Vec<u8> = words.flatten().take(len * FRAMES).collect();
    let unit = |n| Unit { octets: n * len..(n + 1) * len, is_intra: true };
    let (codec, units) = (Codec::Uncompressed, (0..FRAMES).map(unit).collect());
    Ok(Sequence { codec, octets, units, rate: NOMINAL_RATE, origin: Origin::Raw })
}
