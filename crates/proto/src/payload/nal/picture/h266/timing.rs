//! The frame rate that a sequence parameter set of H.266 declares, after its coding tools (ITU-T
//! H.266 section 7.3.2.4).

use super::super::bits::BitReader;
use crate::time::FrameRate;

/// The fields before the coding tools on which the later ones depend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tools {
    /// `sps_video_parameter_set_id` is not 0.
    pub(super) has_vps: bool,
    /// `sps_chroma_format_idc`.
    pub(super) chroma_format: u32,
    /// `CtbSizeY`, in luma samples.
    pub(super) block_len: u32,
    /// Bits of `ph_pic_order_cnt_lsb`.
    pub(super) lsb_len: u32,
}

impl Tools {
    /// Reads from `sps_log2_min_luma_coding_block_size_minus2` up to the frame rate, in a set whose
    /// `sps_ptl_dpb_hrd_params_present_flag` is set.
    pub(super) fn read_rate(self, bits: &mut BitReader<'_>) -> Option<FrameRate> {
        self.skip_partitions(bits)?;
        let has_large_transforms = self.block_len > 32 && bits.flag()?;
        let has_transform_skip = bits.flag()?;
        if has_transform_skip {
            bits.skip_codes(1)?; // sps_log2_transform_skip_max_size_minus2
            bits.skip(1)?; // sps_bdpcm_enabled_flag
        }
        if bits.flag()? {
            bits.skip(2)?; // explicit multiple transform selection
        }
        let has_lfnst = bits.flag()?;
        if self.chroma_format != 0 {
            skip_chroma_qp_tables(bits)?;
        }
        self.skip_references(bits)?;
        skip_inter_tools(bits)?;
        let has_colour_transform =
            self.skip_intra_tools(bits, has_large_transforms, has_transform_skip)?;
        if bits.flag()? {
            skip_scaling_lists(bits, has_lfnst, has_colour_transform)?;
        }
        bits.skip(2)?; // dependent quantisation, sign data hiding
        if bits.flag()? && bits.flag()? {
            // Virtual boundaries, vertical and horizontal.
            for _ in 0..2 {
                let boundaries = bits.ue_max(3)?;
                bits.skip_codes(boundaries)?;
            }
        }
        if !bits.flag()? {
            return None;
        }
        // general_timing_hrd_parameters: num_units_in_tick, time_scale (section 7.3.5.1).
        let units = bits.bits(32)?;
        FrameRate::new(bits.bits(32)?, units)
    }

    /// Skips the sizes of coding blocks.
    fn skip_partitions(self, bits: &mut BitReader<'_>) -> Option<()> {
        bits.skip_codes(1)?; // sps_log2_min_luma_coding_block_size_minus2
        bits.skip(1)?; // sps_partition_constraints_override_enabled_flag
        skip_tree(bits)?; // luma of intra slices
        if self.chroma_format != 0 && bits.flag()? {
            skip_tree(bits)?; // chroma of intra slices
        }
        skip_tree(bits) // inter slices
    }

    /// Skips the in-loop filters, weighted prediction and the lists of reference pictures.
    fn skip_references(self, bits: &mut BitReader<'_>) -> Option<()> {
        bits.skip(1)?; // sps_sao_enabled_flag
        if bits.flag()? && self.chroma_format != 0 {
            bits.skip(1)?; // sps_ccalf_enabled_flag
        }
        bits.skip(1)?; // sps_lmcs_enabled_flag
        let mut lists = ReferenceLists {
            is_weighted: bits.flag()? | bits.flag()?,
            has_long_term: bits.flag()?,
            has_inter_layer: self.has_vps && bits.flag()?,
            lsb_len: self.lsb_len,
        };
        bits.skip(1)?; // sps_idr_rpl_present_flag
        let second_is_first = bits.flag()?;
        for _ in 0..if second_is_first { 1 } else { 2 } {
            let count = bits.ue_max(64)?;
            (0..count).try_for_each(|_| lists.skip(bits))?;
        }
        Some(())
    }

    /// Skips the tools of intra prediction, palettes and intra block copy. Returns
    /// `sps_act_enabled_flag`.
    fn skip_intra_tools(
        self,
        bits: &mut BitReader<'_>,
        has_large_transforms: bool,
        has_transform_skip: bool,
    ) -> Option<bool> {
        bits.skip(3)?; // intra sub-partitions, multiple reference lines, matrix-based prediction
        if self.chroma_format != 0 {
            bits.skip(1)?; // sps_cclm_enabled_flag
        }
        if self.chroma_format == 1 {
            bits.skip(2)?; // collocated chroma samples
        }
        let has_palette = bits.flag()?;
        let has_colour_transform =
            self.chroma_format == 3 && !has_large_transforms && bits.flag()?;
        if has_transform_skip || has_palette {
            bits.skip_codes(1)?; // sps_min_qp_prime_ts
        }
        if bits.flag()? {
            bits.skip_codes(1)?; // sps_six_minus_max_num_ibc_merge_cand
        }
        if bits.flag()? {
            let intervals = 1 + bits.bits(2)?;
            bits.skip_codes(1 + 2 * intervals)?; // luma-adaptive deblocking
        }
        Some(has_colour_transform)
    }
}

/// Skips the limits of one coding tree.
fn skip_tree(bits: &mut BitReader<'_>) -> Option<()> {
    bits.skip_codes(1)?; // sps_log2_diff_min_qt_min_cb_…
    let depth = bits.ue()?;
    bits.skip_codes(if depth == 0 { 0 } else { 2 })
}

/// Skips the quantisation parameters of chroma, with `sps_joint_cbcr_enabled_flag` before them.
fn skip_chroma_qp_tables(bits: &mut BitReader<'_>) -> Option<()> {
    let is_joint = bits.flag()?;
    let is_same = bits.flag()?;
    let tables = match (is_same, is_joint) {
        (true, _) => 1,
        (false, false) => 2,
        (false, true) => 3,
    };
    for _ in 0..tables {
        bits.skip_codes(1)?; // sps_qp_table_start_minus26
        let points = 1 + bits.ue_max(99)?;
        bits.skip_codes(2 * points)?;
    }
    Some(())
}

/// The fields on which `ref_pic_list_struct` depends (section 7.3.10).
#[derive(Clone, Copy, Debug)]
struct ReferenceLists {
    is_weighted: bool,
    has_long_term: bool,
    has_inter_layer: bool,
    lsb_len: u32,
}

impl ReferenceLists {
    /// Skips one list.
    fn skip(&mut self, bits: &mut BitReader<'_>) -> Option<()> {
        let entries = bits.ue_max(64)?;
        let is_in_header = self.has_long_term && entries > 0 && bits.flag()?;
        for entry in 0..entries {
            if self.has_inter_layer && bits.flag()? {
                bits.skip_codes(1)?; // ilrp_idx
            } else if !self.has_long_term || bits.flag()? {
                let difference = bits.ue()?;
                // Without weighted prediction, and for the first entry, 0 stands for 1.
                if difference > 0 || !self.is_weighted || entry == 0 {
                    bits.skip(1)?; // strp_entry_sign_flag
                }
            } else if !is_in_header {
                bits.skip(self.lsb_len)?; // rpls_poc_lsb_lt
            }
        }
        Some(())
    }
}

/// Skips the tools of inter prediction, from `sps_ref_wraparound_enabled_flag` on.
fn skip_inter_tools(bits: &mut BitReader<'_>) -> Option<()> {
    bits.skip(1)?; // sps_ref_wraparound_enabled_flag
    if bits.flag()? {
        bits.skip(1)?; // sps_sbtmvp_enabled_flag
    }
    let has_adaptive_resolution = bits.flag()?;
    if bits.flag()? {
        bits.skip(1)?; // sps_bdof_control_present_in_ph_flag
    }
    bits.skip(1)?; // sps_smvd_enabled_flag
    if bits.flag()? {
        bits.skip(1)?; // sps_dmvr_control_present_in_ph_flag
    }
    if bits.flag()? {
        bits.skip(1)?; // sps_mmvd_fullpel_only_enabled_flag
    }
    let merge_max = 6 - bits.ue_max(5)?;
    bits.skip(1)?; // sps_sbt_enabled_flag
    if bits.flag()? {
        bits.skip_codes(1)?; // sps_five_minus_max_num_subblock_merge_cand
        bits.skip(1)?; // sps_6param_affine_enabled_flag
        if has_adaptive_resolution {
            bits.skip(1)?; // sps_affine_amvr_enabled_flag
        }
        if bits.flag()? {
            bits.skip(1)?; // sps_prof_control_present_in_ph_flag
        }
    }
    bits.skip(2)?; // weighted and combined prediction
    if merge_max >= 2 && bits.flag()? && merge_max >= 3 {
        bits.skip_codes(1)?; // sps_max_num_merge_cand_minus_max_num_gpm_cand
    }
    bits.skip_codes(1) // sps_log2_parallel_merge_level_minus2
}

/// Skips the switches of explicit scaling lists, whose flag was read.
fn skip_scaling_lists(
    bits: &mut BitReader<'_>,
    has_lfnst: bool,
    has_colour_transform: bool,
) -> Option<()> {
    if has_lfnst {
        bits.skip(1)?; // sps_scaling_matrix_for_lfnst_disabled_flag
    }
    if has_colour_transform && bits.flag()? {
        bits.skip(1)?; // sps_scaling_matrix_designated_colour_space_flag
    }
    Some(())
}
