//! The coded sequences to send: generated with the statistics of coded 4K video, or from a file.

mod bits;
mod h264;
mod h265;
mod h266;
mod make;
mod many;
pub(crate) mod raw;

pub(crate) use many::Many;

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rushes::Codec;
use rushes::file::{MediaReader, ReadOptions};
use rushes::payload::Framing;
use rushes::payload::nal::{NalCodec, find_units};
use serde::{Deserialize, Serialize};

/// Access units per second at which a sequence has its nominal bit rate.
pub(crate) const NOMINAL_RATE: f64 = 120.0;

/// Maximum number of octets read from a file: several intra periods of any stream.
const FILE_LEN_MAX: usize = 512 << 20;

/// A byte stream (Annex B) and its access units.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) codec: Codec,
    /// The whole byte stream.
    pub(crate) octets: Vec<u8>,
    /// The access units in order, which together make up the byte stream.
    pub(crate) units: Vec<Unit>,
    /// Access units per second at which it has its nominal bit rate.
    pub(crate) rate: f64,
    /// The origin from which another process can create the same sequence.
    pub(crate) origin: Origin,
}

/// The origin of a sequence.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Origin {
    /// Generated, with this number of bits per second at 120 access units per second.
    Made(u64),
    /// Access units of one slice each, of H.265.
    Slices(Sizes),
    /// The same access unit of many slices each time, of H.265.
    Many(Many),
    /// Uncompressed video.
    Raw(raw::Video),
    File(PathBuf),
}

/// The sizes of access units: an intra-coded one, then others, repeated.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Sizes {
    /// Octets of an access unit, on average.
    pub(crate) mean: usize,
    /// Access units from one intra-coded one to the next.
    pub(crate) group: usize,
    /// How many times as large as others an intra-coded access unit is.
    pub(crate) intra: usize,
}

impl Sizes {
    /// Access units of equal size.
    pub(crate) fn flat(len: usize) -> Self {
        Self { mean: len, group: 1, intra: 1 }
    }

    /// Returns the number of octets of unit `n`.
    fn len(&self, n: usize) -> usize {
        let other = self.mean * self.group / (self.group - 1 + self.intra);
        if n.is_multiple_of(self.group) { other * self.intra } else { other }
    }
}

/// One access unit.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) octets: Range<usize>,
    /// Whether decoding can begin with it.
    pub(crate) is_intra: bool,
}

impl Sequence {
    /// Returns the sequence from `origin`, of `codec`.
    pub(crate) fn from(origin: &Origin, codec: Codec) -> anyhow::Result<Self> {
        match origin {
            Origin::Made(bit_rate) => Self::make(codec, *bit_rate),
            Origin::Slices(sizes) => Ok(Self::slices(codec, *sizes)),
            Origin::Many(many) => Ok(Self::many(codec, *many)),
            Origin::Raw(video) => Self::raw(*video),
            Origin::File(path) => Self::read(path, codec),
        }
    }

    /// Access units of these sizes; all but the first of a group are the same octets.
    fn slices(codec: Codec, sizes: Sizes) -> Self {
        let mut octets = access_unit(sizes.len(0));
        let first = octets.len();
        let mut units = vec![Unit { octets: 0..first, is_intra: true }];
        if sizes.group > 1 {
            octets.extend(access_unit(sizes.len(1)));
            units.resize(sizes.group, Unit { octets: first..octets.len(), is_intra: false });
        }
        Self { codec, octets, units, rate: NOMINAL_RATE, origin: Origin::Slices(sizes) }
    }

    /// One intra period of a picture of 3840 by 2160: the intra access unit is five times as large
    /// as the others are on average. It is the same every time.
    pub(crate) fn make(codec: Codec, bit_rate: u64) -> anyhow::Result<Self> {
        make::sequence(codec, bit_rate)
    }

    /// Frames of uncompressed video.
    pub(crate) fn raw(video: raw::Video) -> anyhow::Result<Self> {
        raw::sequence(video)
    }

    /// Returns the format of uncompressed video; `None` of other sequences.
    pub(crate) fn video(&self) -> Option<raw::Video> {
        match self.origin {
            Origin::Raw(video) => Some(video),
            _ => None,
        }
    }

    /// Reads the access units of a file, at most 512 MiB of them.
    pub(crate) fn read(path: &Path, codec: Codec) -> anyhow::Result<Self> {
        let Some(nal_codec) = codec.nal else {
            bail!("{}: only files of H.264, H.265 and H.266 have access units", path.display());
        };
        let mut reader = MediaReader::open(path, codec, ReadOptions::default())?;
        let (mut octets, mut units, mut found) = (Vec::new(), Vec::<Unit>::new(), Vec::new());
        while octets.len() < FILE_LEN_MAX
            && let Some(unit) = reader.next_frame()?
        {
            find_units(&unit.data, Framing::AnnexB, &mut found)?;
            let is_intra = found.iter().any(|nal| is_intra(nal_codec, &unit.data[nal.clone()]));
            units.push(Unit { octets: octets.len()..octets.len() + unit.data.len(), is_intra });
            octets.extend_from_slice(&unit.data);
        }
        if units.is_empty() {
            bail!("{}: contains no access unit", path.display());
        }
        let origin = Origin::File(path.to_owned());
        Ok(Self { codec, octets, units, rate: NOMINAL_RATE, origin })
    }

    /// Writes the byte stream to a file for other programs.
    pub(crate) fn write_to(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::write(path, &self.octets)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns the octets of access unit `n`, starting over after the last one.
    pub(crate) fn unit(&self, n: usize) -> &[u8] {
        &self.octets[self.units[n % self.units.len()].octets.clone()]
    }

    /// Returns the octets of an access unit for overwriting.
    pub(crate) fn unit_mut(&mut self, n: usize) -> &mut [u8] {
        &mut self.octets[self.units[n % self.units.len()].octets.clone()]
    }

    /// Returns the number of octets of the first `count` access units.
    pub(crate) fn octets_of(&self, count: usize) -> u64 {
        let len = |units: &[Unit]| units.iter().map(|unit| unit.octets.len() as u64).sum::<u64>();
        let (rounds, rest) = (count / self.units.len(), count % self.units.len());
        len(&self.units) * rounds as u64 + len(&self.units[..rest])
    }

    /// Access units from the first intra access unit to the next, or all if there is only one.
    pub(crate) fn period(&self) -> usize {
        let mut intra = self.units.iter().enumerate().filter(|(_, unit)| unit.is_intra);
        match (intra.next(), intra.next()) {
            (Some((first, _)), Some((next, _))) => next - first,
            _ => self.units.len(),
        }
    }

    /// Bits per second at its nominal rate.
    pub(crate) fn bit_rate(&self) -> f64 {
        let count = self.units.len();
        self.octets_of(count) as f64 * 8.0 * self.rate / count as f64
    }

    /// Returns a short description.
    pub(crate) fn name(&self) -> String {
        let codec = self.codec.title;
        match &self.origin {
            Origin::Made(bit_rate) => format!("{codec}, {} Mbit/s", bit_rate / 1_000_000),
            Origin::Raw(video) => {
                let (width, height) = video.size();
                format!("{codec}, {width} by {height}, {} bits", video.depth())
            }
            Origin::Slices(sizes) => format!("{codec}, {} octets", sizes.mean),
            Origin::Many(many) => {
                format!("{codec}, {} slices, {} octets", many.slices, many.octets)
            }
            Origin::File(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                format!("{codec}, {}", name.to_string_lossy())
            }
        }
    }
}

/// Returns an access unit of one slice: a header, then octets without a start code, like those of a
/// slice.
pub(crate) fn access_unit(len: usize) -> Vec<u8> {
    let mut unit = vec![0, 0, 0, 1, 0x02, 0x01, 0x80];
    let mut state = 1_u32;
    while unit.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let octet = (state >> 24) as u8;
        // Approximate emulation prevention: no two zeros in a row.
        unit.push(if octet == 0 && unit.last() == Some(&0) { 1 } else { octet });
    }
    if let Some(last) = unit.last_mut() {
        *last |= 1;
    }
    unit
}

/// Returns whether a NAL unit is a slice of a picture that decoding can begin with.
fn is_intra(codec: NalCodec, nal: &[u8]) -> bool {
    let Some(header) = codec.header(nal) else { return false };
    match codec {
        NalCodec::H264 => header.nal_type == 5,
        NalCodec::H265 => (16..=23).contains(&header.nal_type),
        NalCodec::H266 => (7..=9).contains(&header.nal_type),
    }
}

#[cfg(test)]
mod tests;
