//! What a container says of a track's codec.

use mp4_atom::{Atom, Avcc, AvccExt, Dops, HvcCArray, Hvcc};
use rushes_proto::ClockRate;
use rushes_proto::payload::nal::{NalCodec, PictureFormat};

use crate::format::Codec;

/// Profiles of H.264 whose records hold the format of the samples (ISO/IEC 14496-15 section
/// 5.3.3.1.2).
const HIGH_PROFILES: [u8; 4] = [100, 110, 122, 144];

/// What a container says of a track's codec.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) codec: Codec,
    pub(super) form: Form,
}

/// What is particular to the codec.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Avc(PictureFormat, Avcc),
    Hevc(PictureFormat, Hvcc),
    /// With the `VvcDecoderConfigurationRecord`.
    Vvc(PictureFormat, Vec<u8>),
    Opus(Dops),
}

impl Configuration {
    /// Of Opus, by the first packet of the stream (RFC 6716 section 3.1, bit s).
    pub(super) fn opus(packet: &[u8]) -> Self {
        let is_stereo = packet.first().is_some_and(|toc| toc & 4 != 0);
        let form = Form::Opus(Dops {
            output_channel_count: 1 + u8::from(is_stereo),
            // Reception may begin anywhere in a stream: nothing is skipped.
            pre_skip: 0,
            input_sample_rate: ClockRate::OPUS.hertz(),
            output_gain: 0,
            channel_mapping: None,
        });
        Self { codec: Codec::Opus, form }
    }

    /// Of NAL units, by their parameter sets; `None` while some are missing.
    pub(super) fn of_parameter_sets(codec: Codec, sets: &[Vec<u8>]) -> Option<Self> {
        let nal = codec.nal?;
        let of_type = |nal_type: u8| -> Vec<Vec<u8>> {
            let is = |set: &&Vec<u8>| nal.header(set).is_some_and(|it| it.nal_type == nal_type);
            sets.iter().filter(is).cloned().collect()
        };
        let format = sets.iter().find_map(|set| PictureFormat::of_parameter_set(nal, set))?;
        let form = match nal {
            NalCodec::H264 => Form::Avc(format, avc(format, of_type(7), of_type(8))?),
            NalCodec::H265 => Form::Hevc(
                format,
                hevc(format, [32, 33, 34].map(|nal_type| (nal_type, of_type(nal_type))))?,
            ),
            NalCodec::H266 => Form::Vvc(
                format,
                vvc(&[14, 15, 16, 17].map(|nal_type| (nal_type, of_type(nal_type))))?,
            ),
        };
        Some(Self { codec, form })
    }

    /// The format of the pictures, of video.
    pub(super) fn pictures(&self) -> Option<PictureFormat> {
        match &self.form {
            Form::Avc(format, _) | Form::Hevc(format, _) | Form::Vvc(format, _) => Some(*format),
            Form::Opus(_) => None,
        }
    }

    /// The record, as Matroska holds it.
    pub(super) fn record(&self) -> Vec<u8> {
        let mut record = Vec::new();
        match &self.form {
            // Encoding fails only on fields out of range, which are checked when they are made.
            Form::Avc(_, avcc) => avcc.encode_body(&mut record).unwrap_or_default(),
            Form::Hevc(_, hvcc) => hvcc.encode_body(&mut record).unwrap_or_default(),
            Form::Vvc(_, vvcc) => record.extend_from_slice(vvcc),
            Form::Opus(dops) => {
                // An `OpusHead` packet (RFC 7845 section 5.1).
                record.extend_from_slice(b"OpusHead\x01");
                record.push(dops.output_channel_count);
                record.extend(dops.pre_skip.to_le_bytes());
                record.extend(dops.input_sample_rate.to_le_bytes());
                record.extend([0, 0, 0]);
            }
        }
        record
    }
}

/// A number of a type, and the sets of that type.
type Sets = (u8, Vec<Vec<u8>>);

fn avc(format: PictureFormat, sequence: Vec<Vec<u8>>, picture: Vec<Vec<u8>>) -> Option<Avcc> {
    // Counts of 5 and 8 bits, and lengths of 16.
    let fits = |sets: &[Vec<u8>], max: usize| {
        (1..=max).contains(&sets.len()) && sets.iter().all(|set| u16::try_from(set.len()).is_ok())
    };
    let &[_, profile, compatibility, level, ..] = &sequence.first()?[..] else { return None };
    let ext = AvccExt {
        chroma_format: format.chroma_format,
        bit_depth_luma: format.bit_depth_luma,
        bit_depth_chroma: format.bit_depth_chroma,
        sequence_parameter_sets_ext: Vec::new(),
    };
    (fits(&sequence, 31) && fits(&picture, 255)).then(|| Avcc {
        configuration_version: 1,
        avc_profile_indication: profile,
        profile_compatibility: compatibility,
        avc_level_indication: level,
        length_size: 4,
        sequence_parameter_sets: sequence,
        picture_parameter_sets: picture,
        ext: HIGH_PROFILES.contains(&profile).then_some(ext),
    })
}

fn hevc(format: PictureFormat, sets: [Sets; 3]) -> Option<Hvcc> {
    // After two octets of header and one with the number of sub-layers: the profile, tier and level.
    let payload = without_prevention(sets[1].1.first()?);
    let general = payload.get(3..15)?;
    let sub_layers = payload[2] >> 1 & 7;
    if !sets.iter().all(|(_, sets)| are_storable(sets)) {
        return None;
    }
    Some(Hvcc {
        configuration_version: 1,
        general_profile_space: general[0] >> 6,
        general_tier_flag: general[0] & 0x20 != 0,
        general_profile_idc: general[0] & 0x1f,
        general_profile_compatibility_flags: general[1..5].try_into().ok()?,
        general_constraint_indicator_flags: general[5..11].try_into().ok()?,
        general_level_idc: general[11],
        min_spatial_segmentation_idc: 0,
        parallelism_type: 0,
        chroma_format_idc: format.chroma_format,
        bit_depth_luma_minus8: format.bit_depth_luma - 8,
        bit_depth_chroma_minus8: format.bit_depth_chroma - 8,
        avg_frame_rate: 0,
        constant_frame_rate: 0,
        num_temporal_layers: sub_layers + 1,
        temporal_id_nested: payload[2] & 1 != 0,
        length_size_minus_one: 3,
        arrays: sets
            .into_iter()
            .map(|(nal_unit_type, nalus)| HvcCArray { completeness: true, nal_unit_type, nalus })
            .collect(),
    })
}

/// A record without the optional profile, tier and level.
fn vvc(sets: &[Sets; 4]) -> Option<Vec<u8>> {
    // Lengths of four octets.
    let mut record = vec![0xf8 | 3 << 1, 0];
    for (nal_type, sets) in sets.iter().filter(|(_, sets)| !sets.is_empty()) {
        if !are_storable(sets) {
            return None;
        }
        record[1] += 1;
        record.push(*nal_type);
        record.extend((sets.len() as u16).to_be_bytes());
        for set in sets {
            record.extend((set.len() as u16).to_be_bytes());
            record.extend_from_slice(set);
        }
    }
    // Sequence and picture parameter sets.
    sets[1..3].iter().all(|(_, sets)| !sets.is_empty()).then_some(record)
}

/// Whether there are sets, and their number and lengths fit 16 bits.
fn are_storable(sets: &[Vec<u8>]) -> bool {
    let fits = |len: usize| u16::try_from(len).is_ok();
    !sets.is_empty() && fits(sets.len()) && sets.iter().all(|set| fits(set.len()))
}

/// The first octets of a NAL unit without those that prevent start codes.
fn without_prevention(unit: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    for octet in unit.iter().take(64) {
        if !(*octet == 3 && octets.ends_with(&[0, 0])) {
            octets.push(*octet);
        }
    }
    octets
}
