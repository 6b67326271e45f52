//! The description of a track's codec in a container.

use mp4_atom::{Atom, Avcc, AvccExt, Dops, HvcCArray, Hvcc};
use rushes_proto::ClockRate;
use rushes_proto::payload::nal::{NalCodec, PictureFormat};

use crate::format::Codec;

/// Profiles of H.264 whose records hold the format of the samples (ISO/IEC 14496-15 section
/// 5.3.3.1.2).
const HIGH_PROFILES: [u8; 4] = [100, 110, 122, 144];

/// The types of NAL units in the records of H.265 and H.266: video, sequence and picture parameter
/// sets.
const HEVC_SETS: [u8; 3] = [32, 33, 34];
const VVC_SETS: [u8; 3] = [14, 15, 16];

/// Returns whether records hold NAL units of this type. Others stay in the frames: FFmpeg finds
/// adaptation parameter sets of H.266 only there.
pub(super) fn is_stored(nal: NalCodec, nal_type: u8) -> bool {
    match nal {
        NalCodec::H264 => matches!(nal_type, 7 | 8),
        NalCodec::H265 => HEVC_SETS.contains(&nal_type),
        NalCodec::H266 => VVC_SETS.contains(&nal_type),
    }
}

/// The description of a track's codec in a container.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) codec: Codec,
    pub(super) form: Form,
}

/// The fields specific to the codec.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Avc(PictureFormat, Avcc),
    Hevc(PictureFormat, Hvcc),
    /// With the `VvcDecoderConfigurationRecord`.
    Vvc(PictureFormat, Vec<u8>),
    /// VP8 or VP9: with width and height.
    Vpx([u32; 2]),
    Opus(Dops),
}

impl Configuration {
    /// Creates the description of Opus from the stream's first packet (RFC 6716 section 3.1, bit
    /// s).
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

    /// Creates the description of VP8 or VP9 from a key frame; `None` from other frames.
    pub(super) fn of_key_frame(codec: Codec, frame: &[u8]) -> Option<Self> {
        let size = (codec.frame_size)(frame).filter(|_| (codec.is_key_frame)(frame))?;
        Some(Self { codec, form: Form::Vpx(size) })
    }

    /// Creates the description of a video codec from parameter sets; `None` while some are missing.
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
                hevc(format, HEVC_SETS.map(|nal_type| (nal_type, of_type(nal_type))))?,
            ),
            NalCodec::H266 => Form::Vvc(
                format,
                vvc(format, &VVC_SETS.map(|nal_type| (nal_type, of_type(nal_type))))?,
            ),
        };
        Some(Self { codec, form })
    }

    /// Returns width and height of the pictures; `None` for audio.
    pub(super) fn size(&self) -> Option<[u32; 2]> {
        match &self.form {
            Form::Avc(format, _) | Form::Hevc(format, _) | Form::Vvc(format, _) => {
                Some([format.width, format.height].map(Into::into))
            }
            Form::Vpx(size) => Some(*size),
            Form::Opus(_) => None,
        }
    }

    /// Returns the record, as Matroska holds it; VP8 and VP9 have none.
    pub(super) fn record(&self) -> Vec<u8> {
        let mut record = Vec::new();
        match &self.form {
            // Encoding fails only on fields out of range, which were checked when the record was
            // made.
            Form::Avc(_, avcc) => avcc.encode_body(&mut record).unwrap_or_default(),
            Form::Hevc(_, hvcc) => hvcc.encode_body(&mut record).unwrap_or_default(),
            Form::Vvc(_, vvcc) => record.extend_from_slice(vvcc),
            Form::Vpx(_) => {}
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

/// Returns a `VvcDecoderConfigurationRecord` (ISO/IEC 14496-15 section 11.2.4).
fn vvc(format: PictureFormat, sets: &[Sets; 3]) -> Option<Vec<u8>> {
    let sequence = without_prevention(sets[1].1.first()?);
    // Lengths of four octets.
    let mut record = vec![0xf8 | 3 << 1];
    if let Some(profile) = vvc_profile(&sequence, format) {
        record[0] |= 1;
        record.extend(profile);
    }
    record.push(sets.iter().filter(|(_, sets)| !sets.is_empty()).count() as u8);
    for (nal_type, sets) in sets.iter().filter(|(_, sets)| !sets.is_empty()) {
        if !are_storable(sets) {
            return None;
        }
        // The array is complete.
        record.push(0x80 | nal_type);
        record.extend((sets.len() as u16).to_be_bytes());
        for set in sets {
            record.extend((set.len() as u16).to_be_bytes());
            record.extend_from_slice(set);
        }
    }
    (!sets[2].1.is_empty()).then_some(record)
}

/// Returns the fields around the `VvcPTLRecord` and the record itself, from a sequence parameter
/// set (ITU-T H.266 section 7.3.2.4); `None` if it has no profile, tier and level, or is damaged.
fn vvc_profile(sequence: &[u8], format: PictureFormat) -> Option<Vec<u8>> {
    // The header, two ids, then the number of sub-layers, the format, and what the set has.
    let (&[.., first], profile) = sequence.split_first_chunk::<4>()?;
    let sub_layers = first >> 5;
    // The record has three bits for the depth.
    if first & 1 == 0 || sub_layers > 6 || format.bit_depth_luma > 15 {
        return None;
    }
    // The profile and tier, the level, then flags and constraints, which fill octets.
    let flags = *profile.get(2)?;
    let mut constraint_bits = 3;
    if flags & 0x20 != 0 {
        let [high, low] = profile.get(11..13)?.try_into().ok()?;
        let reserved = u16::from_be_bytes([high, low]) >> 6 & 0xff;
        constraint_bits += 71 + 8 + usize::from(reserved);
    }
    let constraints = constraint_bits.div_ceil(8);
    let mut len = 2 + constraints;
    if sub_layers > 0 {
        // Flags of sub-layers that have a level.
        let present = (*profile.get(len)?).count_ones() as usize;
        len += 1 + present;
    }
    len += 1 + 4 * usize::from(*profile.get(len)?);
    let (profile, rest) = profile.split_at_checked(len)?;
    let [width, height] = vvc_coded_size(rest)?.map(u16::to_be_bytes);
    let mut fields = vec![
        // The first output layer set; the number of sub-layers; no constant frame rate is known.
        0,
        (sub_layers + 1) << 4 | format.chroma_format,
        (format.bit_depth_luma - 8) << 5 | 0x1f,
        constraints as u8,
    ];
    fields.extend_from_slice(profile);
    fields.extend([width, height].concat());
    // No mean frame rate is known.
    fields.extend([0, 0]);
    Some(fields)
}

/// Returns the width and height in a sequence parameter set of H.266, of which `rest` follow the
/// profile.
fn vvc_coded_size(rest: &[u8]) -> Option<[u16; 2]> {
    let mut bits = rest.iter().flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1));
    // Gradual refresh; resampling, and whether it is allowed within a sequence.
    bits.next()?;
    if bits.next()? == 1 {
        bits.next()?;
    }
    let mut code = || {
        let zeros = bits.by_ref().take_while(|bit| *bit == 0).count();
        let value = (0..zeros.min(32))
            .try_fold(1_u64, |value, _| Some(value << 1 | u64::from(bits.next()?)))?;
        u16::try_from(value - 1).ok()
    };
    Some([code()?, code()?])
}

/// Returns whether there are sets, and their number and lengths fit 16 bits.
fn are_storable(sets: &[Vec<u8>]) -> bool {
    let fits = |len: usize| u16::try_from(len).is_ok();
    !sets.is_empty() && fits(sets.len()) && sets.iter().all(|set| fits(set.len()))
}

/// Returns the octets of a NAL unit without those that prevent start codes.
fn without_prevention(unit: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    for octet in unit {
        if !(*octet == 3 && octets.ends_with(&[0, 0])) {
            octets.push(*octet);
        }
    }
    octets
}
