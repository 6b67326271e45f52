//! NAL units in containers: each with its length, and the parameter sets apart from the frames.

use mp4_atom::{Atom, Avcc, Hvcc};
use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::NalCodec;

/// How the frames of a track are made from its samples.
#[derive(Debug)]
pub(super) struct NalUnits {
    codec: NalCodec,
    framing: Framing,
    /// Octets of each length.
    length_len: usize,
    parameter_sets: Vec<Vec<u8>>,
}

impl NalUnits {
    /// Creates the conversion of H.264 from an `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15 section
    /// 5.3.3).
    pub(super) fn avc(record: &Avcc, framing: Framing) -> Self {
        let sequence = record.sequence_parameter_sets.iter();
        let extensions = record.ext.iter().flat_map(|ext| &ext.sequence_parameter_sets_ext);
        let sets = sequence.chain(extensions).chain(&record.picture_parameter_sets);
        let length_len = usize::from(record.length_size);
        let parameter_sets = sets.cloned().collect();
        Self { codec: NalCodec::H264, framing, length_len, parameter_sets }
    }

    /// Creates the conversion of H.265 from an `HEVCDecoderConfigurationRecord` (section 8.3.2).
    pub(super) fn hevc(record: &Hvcc, framing: Framing) -> Self {
        let parameter_sets = record.arrays.iter().flat_map(|it| &it.nalus).cloned().collect();
        let length_len = usize::from(record.length_size_minus_one) + 1;
        Self { codec: NalCodec::H265, framing, length_len, parameter_sets }
    }

    /// Creates the conversion of H.266 from a `VvcDecoderConfigurationRecord` (section 11.2.4); returns
    /// `None` if it is malformed.
    pub(super) fn vvc(record: &[u8], framing: Framing) -> Option<Self> {
        let (length_len, parameter_sets) = vvc_record(record)?;
        Some(Self { codec: NalCodec::H266, framing, length_len, parameter_sets })
    }

    /// Creates the conversion of `codec` from the record in a Matroska track; returns `None` if it is
    /// malformed.
    pub(super) fn of_record(codec: NalCodec, mut record: &[u8], framing: Framing) -> Option<Self> {
        match codec {
            NalCodec::H264 => {
                Avcc::decode_body(&mut record).ok().map(|record| Self::avc(&record, framing))
            }
            NalCodec::H265 => {
                Hvcc::decode_body(&mut record).ok().map(|record| Self::hevc(&record, framing))
            }
            NalCodec::H266 => Self::vvc(record, framing),
        }
    }

    /// Appends the access unit in `sample` to `out`. If a decoder can start with it, or `is_key` is
    /// set, the parameter sets are added unless it has its own.
    pub(super) fn convert(
        &self,
        sample: &[u8],
        is_key: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let types = || self.units(sample).flatten().filter_map(|unit| self.codec.header(unit));
        let sequence_set = match self.codec {
            NalCodec::H264 => 7,
            NalCodec::H265 => 33,
            NalCodec::H266 => 15,
        };
        // Others alone are no beginning: adaptation parameter sets of H.266, for example.
        let has_sets = types().any(|header| header.nal_type == sequence_set);
        let is_key = is_key || types().any(|header| self.codec.is_random_access(header.nal_type));
        let mut sets = (is_key && !has_sets).then_some(&self.parameter_sets);
        for unit in self.units(sample) {
            let unit = unit?;
            // An access unit delimiter is first.
            if !self.is_delimiter(unit) {
                sets.take().into_iter().flatten().for_each(|set| self.delimit(set, out));
            }
            self.delimit(unit, out);
        }
        Ok(())
    }

    fn is_delimiter(&self, unit: &[u8]) -> bool {
        self.codec.header(unit).is_some_and(|it| self.codec.is_access_unit_delimiter(it.nal_type))
    }

    fn delimit(&self, unit: &[u8], out: &mut Vec<u8>) {
        match self.framing {
            Framing::AnnexB => out.extend([0, 0, 0, 1]),
            Framing::LengthPrefixed => {
                let len = u32::try_from(unit.len()).unwrap_or(u32::MAX);
                out.extend(len.to_be_bytes());
            }
        }
        out.extend_from_slice(unit);
    }

    /// Returns the NAL units of `sample` that have octets; the last item is an error if one is cut
    /// off.
    fn units<'s>(
        &self,
        mut sample: &'s [u8],
    ) -> impl Iterator<Item = Result<&'s [u8], &'static str>> {
        let length_len = self.length_len;
        std::iter::from_fn(move || {
            loop {
                if sample.is_empty() {
                    return None;
                }
                let parts = sample.split_at_checked(length_len).and_then(|(length, rest)| {
                    let len = length.iter().fold(0, |sum, octet| sum << 8 | usize::from(*octet));
                    rest.split_at_checked(len)
                });
                let Some((unit, rest)) = parts else {
                    sample = &[];
                    return Some(Err("has a NAL unit that is longer than the frame"));
                };
                sample = rest;
                if !unit.is_empty() {
                    return Some(Ok(unit));
                }
            }
        })
    }
}

/// Returns the octets of lengths, and the parameter sets, in a `VvcDecoderConfigurationRecord`.
fn vvc_record(record: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
    let mut rest = Octets(record);
    let first = rest.number(1)?;
    let length_len = (first >> 1 & 3) + 1;
    if first & 1 != 0 {
        skip_vvc_profile(&mut rest)?;
    }
    let mut sets = Vec::new();
    for _ in 0..rest.number(1)? {
        let nal_type = rest.number(1)? & 0x1f;
        // Decoding capability information and operating point information are single.
        let count = if matches!(nal_type, 12 | 13) { 1 } else { rest.number(2)? };
        for _ in 0..count {
            let len = rest.number(2)?;
            sets.push(rest.take(len)?.to_vec());
        }
    }
    Some((length_len, sets))
}

/// Skips the `VvcPTLRecord` and the fields around it.
fn skip_vvc_profile(rest: &mut Octets<'_>) -> Option<()> {
    let head = rest.number(2)?;
    let sublayers = head >> 4 & 7;
    rest.take(1)?;
    let constraints = rest.number(1)? & 0x3f;
    rest.take(2 + constraints)?;
    if sublayers > 1 {
        let present = rest.number(1)?;
        rest.take((0..sublayers - 1).filter(|layer| present >> (7 - layer) & 1 != 0).count())?;
    }
    let sub_profiles = rest.number(1)?;
    rest.take(4 * sub_profiles + 6)?;
    Some(())
}

struct Octets<'o>(&'o [u8]);

impl<'o> Octets<'o> {
    fn take(&mut self, len: usize) -> Option<&'o [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns a number of `len` octets, at most 4.
    fn number(&mut self, len: usize) -> Option<usize> {
        Some(self.take(len)?.iter().fold(0, |sum, octet| sum << 8 | usize::from(*octet)))
    }
}
