//! Uncompressed video in YCbCr-4:2:2, as packets of RFC 4175 carry it.

use anyhow::Context as _;
use clap::ValueEnum;
use rushes::Codec;
use rushes::payload::raw::{RawVideo, Sampling};
use serde::{Deserialize, Serialize};

use super::make::Random;
use super::{NOMINAL_RATE, Origin, Sequence, Unit};

/// The number of frames, which differ, so that a lost one is noticed.
const FRAMES: usize = 4;

/// The size and the depth of uncompressed video.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
pub(crate) enum Video {
    /// 1920 by 1080 of 8 bits: 2 Gbit/s at 60 frames a second
    #[default]
    #[value(name = "1080p8")]
    Hd,
    /// 3840 by 2160 of 10 bits: 10 Gbit/s at 60 frames a second
    #[value(name = "2160p10")]
    UltraHd,
}

impl Video {
    /// Returns the luma samples in a row, and the rows.
    pub(crate) fn size(self) -> (u16, u16) {
        match self {
            Self::Hd => (1920, 1080),
            Self::UltraHd => (3840, 2160),
        }
    }

    /// Returns the bits of a sample.
    pub(crate) fn depth(self) -> u8 {
        match self {
            Self::Hd => 8,
            Self::UltraHd => 10,
        }
    }

    /// Returns the format of the frames.
    pub(crate) fn format(self) -> anyhow::Result<RawVideo> {
        let (width, height) = self.size();
        let format = RawVideo::new(Sampling::YCbCr422, self.depth(), width, height);
        format.context("the format of uncompressed video")
    }
}

/// Returns frames of noise: programs neither compress nor look at it.
pub(super) fn sequence(video: Video) -> anyhow::Result<Sequence> {
    let len = video.format()?.frame_len();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let words = std::iter::repeat_with(|| random.next().to_le_bytes());
    let octets: Vec<u8> = words.flatten().take(len * FRAMES).collect();
    let unit = |n| Unit { octets: n * len..(n + 1) * len, is_intra: true };
    let (codec, units) = (Codec::Uncompressed, (0..FRAMES).map(unit).collect());
    Ok(Sequence { codec, octets, units, rate: NOMINAL_RATE, origin: Origin::Raw(video) })
}
