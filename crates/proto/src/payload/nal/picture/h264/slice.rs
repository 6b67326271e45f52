//! Slice headers of H.264 (ITU-T H.264 section 7.3.3).

use super::super::super::header::NalHeader;
use super::super::bits::BitReader;
use super::sets::{Order, Pps, Sps};

/// The fields of a slice header that contribute to the picture order count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Slice {
    pub(super) is_idr: bool,
    /// Whether `nal_ref_idc` is not 0.
    pub(super) is_reference: bool,
    pub(super) frame_num: u32,
    pub(super) structure: Structure,
    /// `pic_order_cnt_lsb`.
    pub(super) lsb: u32,
    /// `delta_pic_order_cnt_bottom`.
    pub(super) delta_bottom: i32,
    /// `delta_pic_order_cnt`.
    pub(super) delta: [i32; 2],
    /// Whether there is a `memory_management_control_operation` equal to 5.
    pub(super) resets: bool,
}

/// Whether a picture is a frame or a field.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Structure {
    #[default]
    Frame,
    TopField,
    BottomField,
}

/// Returns the picture parameter set to which a slice refers; `octets` follow its NAL unit header.
pub(super) fn pps_id(octets: &[u8]) -> Option<u8> {
    let mut bits = BitReader::new(octets);
    bits.skip_codes(2)?; // first_mb_in_slice, slice_type
    bits.ue_max(255).map(|id| id as u8)
}

/// Reads a slice header; `octets` follow the NAL unit header `nal`.
pub(super) fn read(octets: &[u8], nal: NalHeader, sps: &Sps, pps: &Pps) -> Option<Slice> {
    let mut bits = BitReader::new(octets);
    bits.skip_codes(1)?; // first_mb_in_slice
    let slice_type = bits.ue_max(9)? % 5;
    bits.skip_codes(1)?; // pic_parameter_set_id
    bits.skip(if sps.separate_colour_planes { 2 } else { 0 })?;
    let mut slice = Slice {
        is_idr: nal.nal_type == 5,
        is_reference: nal.ref_idc != 0,
        frame_num: bits.bits(sps.frame_num_len)?,
        ..Slice::default()
    };
    if !sps.frame_mbs_only && bits.flag()? {
        slice.structure = if bits.flag()? { Structure::BottomField } else { Structure::TopField };
    }
    if slice.is_idr {
        bits.skip_codes(1)?; // idr_pic_id
    }
    let has_bottom = pps.bottom_field_pic_order_in_frame && slice.structure == Structure::Frame;
    match &sps.order {
        Order::Signalled { lsb_len } => {
            slice.lsb = bits.bits(*lsb_len)?;
            slice.delta_bottom = if has_bottom { bits.se()? } else { 0 };
        }
        Order::Expected(cycle) if !cycle.always_zero => {
            slice.delta = [bits.se()?, if has_bottom { bits.se()? } else { 0 }];
        }
        Order::Expected(_) | Order::Decoding => {}
    }
    if slice.is_reference && !slice.is_idr {
        // A header that is cut here is assumed to have no such operation, because almost none has.
        slice.resets = resets(&mut bits, slice_type, sps, pps).unwrap_or(false);
    }
    Some(slice)
}

const P: u32 = 0;
const B: u32 = 1;
const SP: u32 = 3;

/// Returns whether the rest of a header, after the picture order count, contains a
/// `memory_management_control_operation` equal to 5.
fn resets(bits: &mut BitReader<'_>, slice_type: u32, sps: &Sps, pps: &Pps) -> Option<bool> {
    if pps.redundant_pic_cnt_present {
        bits.skip_codes(1)?;
    }
    let lists = match slice_type {
        B => 2,
        P | SP => 1,
        _ => 0,
    };
    if slice_type == B {
        bits.skip(1)?; // direct_spatial_mv_pred_flag
    }
    let mut references = pps.references;
    if lists > 0 && bits.flag()? {
        for count in references.iter_mut().take(lists) {
            *count = 1 + bits.ue_max(31)?;
        }
    }
    for _ in 0..lists {
        if bits.flag()? {
            // ref_pic_list_modification (section 7.3.3.1)
            while bits.ue()? != 3 {
                bits.skip_codes(1)?;
            }
        }
    }
    if pps.weighted_pred && lists == 1 || pps.weighted_bipred_idc == 1 && lists == 2 {
        skip_weights(bits, references.iter().take(lists).sum(), sps.has_chroma)?;
    }
    read_marking(bits)
}

/// Skips `pred_weight_table` (section 7.3.3.2).
fn skip_weights(bits: &mut BitReader<'_>, references: u32, has_chroma: bool) -> Option<()> {
    bits.skip_codes(1 + u32::from(has_chroma))?;
    for _ in 0..references {
        if bits.flag()? {
            bits.skip_codes(2)?;
        }
        if has_chroma && bits.flag()? {
            bits.skip_codes(4)?;
        }
    }
    Some(())
}

/// Reads `dec_ref_pic_marking` of a picture that is not an IDR picture (section 7.3.3.3).
fn read_marking(bits: &mut BitReader<'_>) -> Option<bool> {
    if !bits.flag()? {
        return Some(false);
    }
    loop {
        match bits.ue()? {
            0 => return Some(false),
            1 | 2 | 4 | 6 => bits.skip_codes(1)?,
            3 => bits.skip_codes(2)?,
            5 => return Some(true),
            _ => return None,
        }
    }
}
