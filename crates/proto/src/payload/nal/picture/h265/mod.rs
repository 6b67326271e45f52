//! Picture order counts of H.265 (ITU-T H.265 section 8.3.1), of the base layer.

mod reference_sets;
mod sets;
#[cfg(test)]
mod tests;

use super::super::header::NalHeader;
use super::bits::BitReader;
use super::format::PictureFormat;
use super::reading::{Counter, Declared, Order, Picture, Reading};
use crate::time::FrameRate;
use sets::{Pps, Sps};

const RADL_N: u8 = 6;
const RASL_R: u8 = 9;
/// The highest type of sub-layer non-reference pictures, whose types are even.
const RSV_VCL_N14: u8 = 14;
const BLA_W_LP: u8 = 16;
const BLA_N_LP: u8 = 18;
const IDR_W_RADL: u8 = 19;
const IDR_N_LP: u8 = 20;
const RSV_IRAP_VCL23: u8 = 23;

/// Returns the format that `seq_parameter_set_rbsp` in `octets` declares.
pub(super) fn picture_format(octets: &[u8]) -> Option<PictureFormat> {
    sets::read_sps(octets)?.1?.format
}

/// Returns the identifier of the parameter set of type `nal_type` in `octets`.
pub(super) fn parameter_set_id(nal_type: u8, octets: &[u8]) -> Option<u8> {
    match nal_type {
        32 => Some(sets::read_vps(octets)?.0),
        33 => Some(sets::read_sps(octets)?.0),
        34 => Some(sets::read_pps(octets)?.0),
        _ => None,
    }
}

/// The parameter sets of a stream, and its last picture.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// The rates declared by video parameter sets, by id.
    vps: [Option<FrameRate>; 16],
    sps: [Option<Sps>; 16],
    pps: [Option<Pps>; 64],
    counter: Counter,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self { vps: [None; 16], sps: [None; 16], pps: [None; 64], counter: Counter::new() }
    }

    /// Reads a NAL unit that is not the second or a later slice of a picture; `octets` follow its
    /// header. Returns the picture if the unit is a slice that can be read.
    pub(super) fn push(&mut self, nal: NalHeader, octets: &[u8]) -> Option<Reading> {
        if nal.layer_id != 0 {
            return None;
        }
        match nal.nal_type {
            0..=9 | 16..=21 => return self.push_slice(nal, octets),
            32 => {
                let (id, rate) = sets::read_vps(octets)?;
                self.vps[usize::from(id)] = rate;
            }
            33 => {
                let (id, sps) = sets::read_sps(octets)?;
                self.sps[usize::from(id)] = sps;
            }
            34 => {
                let (id, pps) = sets::read_pps(octets)?;
                self.pps[usize::from(id)] = pps;
            }
            36 | 37 => self.counter.ended = true,
            _ => {}
        }
        None
    }

    /// Reads a slice segment header up to `slice_pic_order_cnt_lsb` (section 7.3.6.1).
    fn push_slice(&mut self, nal: NalHeader, octets: &[u8]) -> Option<Reading> {
        let mut bits = BitReader::new(octets);
        if !bits.flag()? {
            // This is not the first slice segment, and its header has the fields at another place.
            return None;
        }
        let is_irap = (BLA_W_LP..=RSV_IRAP_VCL23).contains(&nal.nal_type);
        bits.skip(u32::from(is_irap))?; // no_output_of_prior_pics_flag
        let pps = self.pps[bits.ue_max(63)? as usize]?;
        let sps = self.sps[usize::from(pps.sps)]?;
        bits.skip(pps.extra_slice_header_bits)?;
        bits.skip_codes(1)?; // slice_type
        bits.skip(u32::from(pps.output_flag_present))?;
        bits.skip(if sps.separate_colour_planes { 2 } else { 0 })?;
        let is_idr = matches!(nal.nal_type, IDR_W_RADL | IDR_N_LP);
        let lsb = if is_idr { 0 } else { bits.bits(sps.lsb_len)? };
        let starts = is_irap && (nal.nal_type <= IDR_N_LP || self.counter.ended);
        let is_previous = nal.temporal_id_plus1 == 1
            && !(RADL_N..=RASL_R).contains(&nal.nal_type)
            && !(nal.nal_type <= RSV_VCL_N14 && nal.nal_type.is_multiple_of(2));
        let count =
            self.counter.push(lsb, sps.lsb_len, if starts { Some(0) } else { None }, is_previous);
        let reorders = sps.reorder_max > 0;
        let rate = sps.rate.or_else(|| self.vps[usize::from(sps.vps)]);
        let order = if reorders {
            let may_have_leading = !matches!(nal.nal_type, BLA_N_LP | IDR_N_LP);
            Order::Count(Picture { count, starts, may_have_leading })
        } else {
            Order::Decoding
        };
        let declared = Declared { rate, reorders: Some(reorders) };
        Some(Reading { declared, is_field: false, order })
    }
}
