//! Sequence and picture parameter sets of H.264.

use super::super::bits::{BitReader, read_window};
use super::super::format::PictureFormat;
use super::super::vui;
use crate::time::FrameRate;

/// The fields of a sequence parameter set needed for slice headers and picture order counts (ITU-T
/// H.264 sections 7.3.2.1.1 and E.1.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sps {
    pub(super) separate_colour_planes: bool,
    /// Whether `ChromaArrayType` is not 0.
    pub(super) has_chroma: bool,
    /// Bits of `frame_num`.
    pub(super) frame_num_len: u32,
    pub(super) order: Order,
    pub(super) frame_mbs_only: bool,
    pub(super) format: Option<PictureFormat>,
    pub(super) rate: Option<FrameRate>,
    /// `max_num_reorder_frames`, as declared or inferred.
    pub(super) reorder_max: Option<u32>,
}

/// `pic_order_cnt_type` and its parameters (ITU-T H.264 section 8.2.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// Type 0: the lower bits are in the slice header.
    Signalled { lsb_len: u32 },
    /// Type 1: expected from `frame_num`, with differences in the slice header.
    Expected(Cycle),
    /// Type 2: the same as the decoding order.
    Decoding,
}

/// The parameters of `pic_order_cnt_type` 1.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Cycle {
    /// `MaxFrameNum`.
    pub(super) frame_num_max: u64,
    /// `delta_pic_order_always_zero_flag`.
    pub(super) always_zero: bool,
    pub(super) offset_for_non_ref_pic: i64,
    pub(super) offset_for_top_to_bottom_field: i64,
    /// `offset_for_ref_frame`; at most 255 entries.
    pub(super) offsets: Box<[i32]>,
}

/// Profiles whose sequence parameter sets declare the chroma format.
const HIGH_PROFILES: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// Profiles in which `constraint_set3_flag` declares intra pictures only (section E.2.1).
const INTRA_PROFILES: [u32; 6] = [44, 86, 100, 110, 122, 244];

/// Reads `seq_parameter_set_data`; returns the id, and the set unless it is damaged.
pub(super) fn read_sps(octets: &[u8]) -> Option<(u8, Option<Sps>)> {
    let mut bits = BitReader::new(octets);
    let profile = bits.bits(8)?;
    let constraints = bits.bits(8)?;
    bits.skip(8)?;
    let id = bits.ue_max(31)? as u8;
    let intra_only = INTRA_PROFILES.contains(&profile) && constraints & 0x10 != 0;
    Some((id, read_sps_fields(&mut bits, profile, intra_only)))
}

fn read_sps_fields(bits: &mut BitReader<'_>, profile: u32, intra_only: bool) -> Option<Sps> {
    let (mut separate_colour_planes, mut has_chroma) = (false, true);
    let (mut chroma_format, mut bit_depths) = (1, [8, 8]);
    if HIGH_PROFILES.contains(&profile) {
        chroma_format = bits.ue_max(3)?;
        separate_colour_planes = chroma_format == 3 && bits.flag()?;
        has_chroma = chroma_format != 0 && !separate_colour_planes;
        bit_depths = [8 + bits.ue_max(6)?, 8 + bits.ue_max(6)?];
        bits.skip(1)?; // qpprime_y_zero_transform_bypass_flag
        if bits.flag()? {
            skip_scaling_lists(bits, if chroma_format == 3 { 12 } else { 8 })?;
        }
    }
    let frame_num_len = 4 + bits.ue_max(12)?;
    let order = read_order(bits, frame_num_len)?;
    bits.skip_codes(1)?; // max_num_ref_frames
    bits.skip(1)?; // gaps_in_frame_num_value_allowed_flag
    let blocks = [bits.ue()?, bits.ue()?];
    let frame_mbs_only = bits.flag()?;
    bits.skip(u32::from(!frame_mbs_only))?; // mb_adaptive_frame_field_flag
    bits.skip(1)?; // direct_8x8_inference_flag
    let crop = read_window(bits)?;
    let rows = 2 - u32::from(frame_mbs_only);
    let samples = |blocks: u32, rows: u32| blocks.checked_add(1)?.checked_mul(16 * rows);
    let size = samples(blocks[0], 1).zip(samples(blocks[1], rows)).map(<[u32; 2]>::from);
    let format =
        size.and_then(|size| PictureFormat::cropped(chroma_format, size, crop, rows, bit_depths));
    let mut timing = Timing::default();
    if bits.flag()? {
        // A damaged or cut VUI is used as far as it can be read.
        let _ = read_vui(bits, &mut timing);
    }
    let reorder_max = timing.reorder_max.or(if intra_only { Some(0) } else { None });
    Some(Sps {
        separate_colour_planes,
        has_chroma,
        frame_num_len,
        order,
        frame_mbs_only,
        format,
        rate: timing.rate,
        reorder_max,
    })
}

fn read_order(bits: &mut BitReader<'_>, frame_num_len: u32) -> Option<Order> {
    Some(match bits.ue()? {
        0 => Order::Signalled { lsb_len: 4 + bits.ue_max(12)? },
        1 => {
            let always_zero = bits.flag()?;
            let offset_for_non_ref_pic = bits.se()?.into();
            let offset_for_top_to_bottom_field = bits.se()?.into();
            let count = bits.ue_max(255)?;
            let offsets = (0..count).map(|_| bits.se()).collect::<Option<_>>()?;
            Order::Expected(Cycle {
                frame_num_max: 1 << frame_num_len,
                always_zero,
                offset_for_non_ref_pic,
                offset_for_top_to_bottom_field,
                offsets,
            })
        }
        2 => Order::Decoding,
        _ => return None,
    })
}

fn skip_scaling_lists(bits: &mut BitReader<'_>, lists: usize) -> Option<()> {
    for list in 0..lists {
        if !bits.flag()? {
            continue;
        }
        let (mut last, mut next) = (8_i32, 8_i32);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = last.wrapping_add(bits.se()?).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
    }
    Some(())
}

#[derive(Default)]
struct Timing {
    rate: Option<FrameRate>,
    reorder_max: Option<u32>,
}

/// Reads `vui_parameters` (section E.1.1).
fn read_vui(bits: &mut BitReader<'_>, timing: &mut Timing) -> Option<()> {
    vui::skip_video_signal(bits)?;
    if bits.flag()? {
        let units = bits.bits(32)?;
        let scale = bits.bits(32)?;
        timing.rate = FrameRate::reduced(scale.into(), 2 * u64::from(units));
        bits.skip(1)?; // fixed_frame_rate_flag
    }
    let mut has_hrd = false;
    for _ in 0..2 {
        if bits.flag()? {
            has_hrd = true;
            skip_hrd(bits)?;
        }
    }
    bits.skip(u32::from(has_hrd) + 1)?; // low_delay_hrd_flag, pic_struct_present_flag
    if bits.flag()? {
        bits.skip(1)?; // motion_vectors_over_pic_boundaries_flag
        bits.skip_codes(4)?;
        timing.reorder_max = Some(bits.ue()?);
    }
    Some(())
}

/// Skips `hrd_parameters` (section E.1.2).
fn skip_hrd(bits: &mut BitReader<'_>) -> Option<()> {
    let count = 1 + bits.ue_max(31)?;
    bits.skip(8)?;
    for _ in 0..count {
        bits.skip_codes(2)?;
        bits.skip(1)?;
    }
    bits.skip(20)
}

/// The fields of a picture parameter set needed for slice headers (ITU-T H.264 section 7.3.2.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Pps {
    pub(super) sps: u8,
    pub(super) bottom_field_pic_order_in_frame: bool,
    /// `num_ref_idx_l0_default_active_minus1` + 1, and the same for list 1.
    pub(super) references: [u32; 2],
    pub(super) weighted_pred: bool,
    pub(super) weighted_bipred_idc: u32,
    pub(super) redundant_pic_cnt_present: bool,
}

/// Reads `pic_parameter_set_rbsp`; returns the id, and the set unless it is damaged.
pub(super) fn read_pps(octets: &[u8]) -> Option<(u8, Option<Pps>)> {
    let mut bits = BitReader::new(octets);
    let id = bits.ue_max(255)? as u8;
    Some((id, read_pps_fields(&mut bits)))
}

fn read_pps_fields(bits: &mut BitReader<'_>) -> Option<Pps> {
    let sps = bits.ue_max(31)? as u8;
    bits.skip(1)?; // entropy_coding_mode_flag
    let bottom_field_pic_order_in_frame = bits.flag()?;
    let groups = bits.ue_max(7)?;
    if groups > 0 {
        skip_slice_groups(bits, groups)?;
    }
    let references = [1 + bits.ue_max(31)?, 1 + bits.ue_max(31)?];
    let weighted_pred = bits.flag()?;
    let weighted_bipred_idc = bits.bits(2)?;
    bits.skip_codes(3)?; // quantisation
    bits.skip(2)?; // deblocking_filter_control_present_flag, constrained_intra_pred_flag
    let redundant_pic_cnt_present = bits.flag()?;
    Some(Pps {
        sps,
        bottom_field_pic_order_in_frame,
        references,
        weighted_pred,
        weighted_bipred_idc,
        redundant_pic_cnt_present,
    })
}

/// Skips the slice groups of a picture parameter set with `groups` + 1 of them.
fn skip_slice_groups(bits: &mut BitReader<'_>, groups: u32) -> Option<()> {
    match bits.ue()? {
        0 => bits.skip_codes(groups + 1),
        1 => Some(()),
        2 => bits.skip_codes(2 * groups),
        3..=5 => {
            bits.skip(1)?;
            bits.skip_codes(1)
        }
        6 => {
            let id_len = 32 - groups.leading_zeros();
            let last = bits.ue()?;
            // If the number is too large, the end of the unit ends the loop.
            (0..=last).try_for_each(|_| bits.skip(id_len))
        }
        _ => None,
    }
}
