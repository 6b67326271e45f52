//! Sequence and picture parameter sets of H.266.

use super::super::bits::{BitReader, read_window};
use super::super::format::PictureFormat;
use super::timing::Tools;
use crate::time::FrameRate;

/// The fields of a sequence parameter set that are needed for picture headers and picture order
/// counts (ITU-T H.266 section 7.3.2.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Sps {
    /// Bits of `ph_pic_order_cnt_lsb`.
    pub(super) lsb_len: u32,
    /// Bits of `ph_poc_msb_cycle_val`, if picture headers may have it.
    pub(super) msb_cycle_len: Option<u32>,
    /// `NumExtraPhBits`.
    pub(super) extra_picture_header_bits: u32,
    /// `dpb_max_num_reorder_pics` of the highest sub-layer, if the set has it.
    pub(super) reorder_max: Option<u32>,
    pub(super) format: Option<PictureFormat>,
    pub(super) rate: Option<FrameRate>,
}

/// Reads `seq_parameter_set_rbsp` of the base layer; the id, and the set unless it is damaged.
pub(super) fn read_sps(octets: &[u8]) -> Option<(u8, Option<Sps>)> {
    let mut bits = BitReader::new(octets);
    let id = bits.bits(4)? as u8;
    Some((id, read_sps_fields(&mut bits)))
}

fn read_sps_fields(bits: &mut BitReader<'_>) -> Option<Sps> {
    let has_vps = bits.bits(4)? != 0;
    let sub_layers = bits.bits(3)?;
    let chroma_format = bits.bits(2)?;
    let block_len = 32 << bits.bits(2)?;
    let has_buffering = bits.flag()?;
    if has_buffering {
        skip_profile_tier_level(bits, sub_layers)?;
    }
    bits.skip(1)?; // sps_gdr_enabled_flag
    if bits.flag()? {
        bits.skip(1)?; // sps_res_change_in_clvs_allowed_flag
    }
    let size = [bits.ue()?, bits.ue()?];
    let window = read_window(bits)?;
    if bits.flag()? {
        skip_subpictures(bits, size, block_len)?;
    }
    let bit_depths = [8 + bits.ue_max(8)?; 2];
    let format = PictureFormat::cropped(chroma_format, size, window, 1, bit_depths);
    bits.skip(2)?; // entropy coding synchronisation, entry points
    let lsb_len = 4 + bits.bits(4)?;
    if lsb_len > 16 {
        return None;
    }
    let msb_cycle_len = if bits.flag()? { Some(1 + bits.ue_max(31)?) } else { None };
    let mut extra_picture_header_bits = 0;
    for _ in 0..8 * bits.bits(2)? {
        extra_picture_header_bits += u32::from(bits.flag()?);
    }
    let extra_slice_header_bytes = bits.bits(2)?;
    bits.skip(8 * extra_slice_header_bytes)?;
    let mut sps = Sps {
        lsb_len,
        msb_cycle_len,
        extra_picture_header_bits,
        reorder_max: None,
        format,
        rate: None,
    };
    if has_buffering {
        sps.reorder_max = Some(read_reorder_max(bits, sub_layers)?);
        // If the rest is damaged or cut, only the rate is unknown.
        sps.rate = Tools { has_vps, chroma_format, block_len, lsb_len }.read_rate(bits);
    }
    Some(sps)
}

/// Skips `profile_tier_level` of `sub_layers` + 1 sub-layers (section 7.3.3.1).
fn skip_profile_tier_level(bits: &mut BitReader<'_>, sub_layers: u32) -> Option<()> {
    bits.skip(18)?; // profile, tier, level, two flags
    if bits.flag()? {
        // general_constraints_info (section 7.3.3.2)
        bits.skip(71)?;
        let reserved = bits.bits(8)?;
        bits.skip(reserved)?;
    }
    bits.align();
    let mut levels = 0;
    for _ in 0..sub_layers {
        levels += u32::from(bits.flag()?);
    }
    bits.align();
    bits.skip(8 * levels)?;
    let sub_profiles = bits.bits(8)?;
    bits.skip(32 * sub_profiles)
}

/// Skips the subpictures of a picture of `size` luma samples in blocks of `block_len`.
fn skip_subpictures(bits: &mut BitReader<'_>, size: [u32; 2], block_len: u32) -> Option<()> {
    // There are at most as many as blocks; the end of the unit also limits their number.
    let last = bits.ue_max(0xffff)?;
    let (mut independent, mut same_size) = (true, false);
    if last > 0 {
        independent = bits.flag()?;
        same_size = bits.flag()?;
    }
    let place_len = size.map(|len| {
        // Ceil(Log2(blocks)); a dimension of one block has no position fields.
        let blocks = len.div_ceil(block_len);
        if len > block_len { 32 - (blocks - 1).leading_zeros() } else { 0 }
    });
    for index in 0..if last > 0 { last + 1 } else { 0 } {
        if !same_size || index == 0 {
            let places = u32::from(index > 0) + u32::from(index < last);
            bits.skip(places * (place_len[0] + place_len[1]))?;
        }
        bits.skip(if independent { 0 } else { 2 })?;
    }
    let id_len = 1 + bits.ue_max(15)?;
    if bits.flag()? && bits.flag()? {
        bits.skip((last + 1) * id_len)?;
    }
    Some(())
}

/// Reads `dpb_parameters` (section 7.3.4).
fn read_reorder_max(bits: &mut BitReader<'_>, sub_layers: u32) -> Option<u32> {
    let first = if sub_layers > 0 && bits.flag()? { 0 } else { sub_layers };
    let mut reorder_max = 0;
    for _ in first..=sub_layers {
        bits.skip_codes(1)?; // dpb_max_dec_pic_buffering_minus1
        reorder_max = bits.ue()?;
        bits.skip_codes(1)?; // dpb_max_latency_increase_plus1
    }
    Some(reorder_max)
}

/// Reads the ids of a picture parameter set and of its sequence parameter set (section 7.3.2.5).
pub(super) fn read_pps(octets: &[u8]) -> Option<(u8, u8)> {
    let mut bits = BitReader::new(octets);
    Some((bits.bits(6)? as u8, bits.bits(4)? as u8))
}
