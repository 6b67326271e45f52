//! Video, sequence and picture parameter sets of H.265.

use super::super::bits::{BitReader, read_window};
use super::super::format::PictureFormat;
use super::super::vui;
use super::reference_sets::skip_reference_sets;
use crate::time::FrameRate;

/// The fields of a sequence parameter set that are needed for slice headers and picture order
/// counts (ITU-T H.265 sections 7.3.2.2 and E.2.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Sps {
    pub(super) vps: u8,
    pub(super) separate_colour_planes: bool,
    /// Bits of `slice_pic_order_cnt_lsb`.
    pub(super) lsb_len: u32,
    /// `sps_max_num_reorder_pics` of the highest sub-layer.
    pub(super) reorder_max: u32,
    pub(super) format: Option<PictureFormat>,
    pub(super) rate: Option<FrameRate>,
}

/// Reads the id of a video parameter set and the rate that it declares (section 7.3.2.1).
pub(super) fn read_vps(octets: &[u8]) -> Option<(u8, Option<FrameRate>)> {
    let mut bits = BitReader::new(octets);
    let id = bits.bits(4)? as u8;
    Some((id, read_vps_rate(&mut bits)))
}

fn read_vps_rate(bits: &mut BitReader<'_>) -> Option<FrameRate> {
    bits.skip(8)?; // base layer flags, vps_max_layers_minus1
    let sub_layers = bits.bits(3)?;
    bits.skip(17)?;
    skip_profile_tier_level(bits, sub_layers)?;
    let first = if bits.flag()? { 0 } else { sub_layers };
    bits.skip_codes(3 * (sub_layers - first + 1))?;
    let layer_id_max = bits.bits(6)?;
    let sets = bits.ue_max(1023)?;
    bits.skip(sets * (layer_id_max + 1))?;
    if !bits.flag()? {
        return None;
    }
    read_rate(bits)
}

/// Reads `num_units_in_tick` and `time_scale`: a tick is the interval between pictures.
fn read_rate(bits: &mut BitReader<'_>) -> Option<FrameRate> {
    let units = bits.bits(32)?;
    FrameRate::new(bits.bits(32)?, units)
}

/// Skips `profile_tier_level` of `sub_layers` + 1 sub-layers (section 7.3.3).
fn skip_profile_tier_level(bits: &mut BitReader<'_>, sub_layers: u32) -> Option<()> {
    bits.skip(96)?;
    let mut len = 0;
    for _ in 0..sub_layers {
        len += if bits.flag()? { 88 } else { 0 };
        len += if bits.flag()? { 8 } else { 0 };
    }
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers))?;
    }
    bits.skip(len)
}

/// Reads `seq_parameter_set_rbsp` of the base layer; the id, and the set unless it is damaged.
pub(super) fn read_sps(octets: &[u8]) -> Option<(u8, Option<Sps>)> {
    let mut bits = BitReader::new(octets);
    let vps = bits.bits(4)? as u8;
    let sub_layers = bits.bits(3)?;
    bits.skip(1)?; // sps_temporal_id_nesting_flag
    skip_profile_tier_level(&mut bits, sub_layers)?;
    let id = bits.ue_max(15)? as u8;
    Some((id, read_sps_fields(&mut bits, vps, sub_layers)))
}

fn read_sps_fields(bits: &mut BitReader<'_>, vps: u8, sub_layers: u32) -> Option<Sps> {
    let chroma_format = bits.ue_max(3)?;
    let separate_colour_planes = chroma_format == 3 && bits.flag()?;
    let size = [bits.ue()?, bits.ue()?];
    let window = read_window(bits)?;
    let bit_depths = [8 + bits.ue_max(8)?, 8 + bits.ue_max(8)?];
    let format = PictureFormat::cropped(chroma_format, size, window, 1, bit_depths);
    let lsb_len = 4 + bits.ue_max(12)?;
    let first = if bits.flag()? { 0 } else { sub_layers };
    let mut reorder_max = 0;
    for _ in first..=sub_layers {
        bits.skip_codes(1)?; // sps_max_dec_pic_buffering_minus1
        reorder_max = bits.ue()?;
        bits.skip_codes(1)?; // sps_max_latency_increase_plus1
    }
    // If the rest is damaged or cut, only the rate is unknown.
    let rate = read_sps_rate(bits, lsb_len);
    Some(Sps { vps, separate_colour_planes, lsb_len, reorder_max, format, rate })
}

fn read_sps_rate(bits: &mut BitReader<'_>, lsb_len: u32) -> Option<FrameRate> {
    bits.skip_codes(6)?; // sizes of blocks
    if bits.flag()? && bits.flag()? {
        skip_scaling_lists(bits)?;
    }
    bits.skip(2)?; // amp_enabled_flag, sample_adaptive_offset_enabled_flag
    if bits.flag()? {
        bits.skip(8)?; // PCM bit depths
        bits.skip_codes(2)?;
        bits.skip(1)?;
    }
    skip_reference_sets(bits)?;
    if bits.flag()? {
        let pictures = bits.ue_max(32)?;
        bits.skip(pictures * (lsb_len + 1))?; // long-term reference pictures
    }
    bits.skip(2)?; // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
    if !bits.flag()? {
        return None;
    }
    vui::skip_video_signal(bits)?;
    bits.skip(3)?; // neutral_chroma_indication_flag, field_seq_flag, frame_field_info_present_flag
    if bits.flag()? {
        bits.skip_codes(4)?; // default display window
    }
    if !bits.flag()? {
        return None;
    }
    read_rate(bits)
}

/// Skips `scaling_list_data` (section 7.3.4).
fn skip_scaling_lists(bits: &mut BitReader<'_>) -> Option<()> {
    for size in 0..4 {
        for _ in 0..if size == 3 { 2 } else { 6 } {
            let coded = bits.flag()?;
            let codes = match size {
                _ if !coded => 1,
                0 => 16,
                1 => 64,
                _ => 65,
            };
            bits.skip_codes(codes)?;
        }
    }
    Some(())
}

/// The fields of a picture parameter set that are needed for slice headers (section 7.3.2.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Pps {
    pub(super) sps: u8,
    pub(super) output_flag_present: bool,
    pub(super) extra_slice_header_bits: u32,
}

/// Reads `pic_parameter_set_rbsp`; returns the id, and the set unless it is damaged.
pub(super) fn read_pps(octets: &[u8]) -> Option<(u8, Option<Pps>)> {
    let mut bits = BitReader::new(octets);
    let id = bits.ue_max(63)? as u8;
    Some((id, read_pps_fields(&mut bits)))
}

fn read_pps_fields(bits: &mut BitReader<'_>) -> Option<Pps> {
    let sps = bits.ue_max(15)? as u8;
    bits.skip(1)?; // dependent_slice_segments_enabled_flag
    Some(Pps { sps, output_flag_present: bits.flag()?, extra_slice_header_bits: bits.bits(3)? })
}
