//! Picture order counts of H.266 (ITU-T H.266 section 8.3.1), of the base layer.

mod sets;
#[cfg(test)]
mod tests;
mod timing;

use super::super::header::NalHeader;
use super::bits::BitReader;
use super::format::PictureFormat;
use super::reading::{Counter, Declared, Order, Picture, Reading};
use sets::Sps;

const RADL: u8 = 2;
const RASL: u8 = 3;
const IDR_W_RADL: u8 = 7;
const IDR_N_LP: u8 = 8;
const GDR: u8 = 10;

/// Returns the format that `seq_parameter_set_rbsp` in `octets` declares.
pub(super) fn picture_format(octets: &[u8]) -> Option<PictureFormat> {
    sets::read_sps(octets)?.1?.format
}

/// The parameter sets of a stream, and its last picture.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    sps: [Option<Sps>; 16],
    /// The sequence parameter set of each picture parameter set, by id.
    pps: [Option<u8>; 64],
    /// The picture header NAL unit of the access unit.
    picture_header: Option<PictureHeader>,
    counter: Counter,
}

/// The beginning of a picture header.
#[derive(Clone, Copy, Debug)]
struct PictureHeader {
    sps: Sps,
    /// `ph_non_ref_pic_flag`.
    is_non_reference: bool,
    lsb: u32,
    /// `ph_poc_msb_cycle_val`.
    msb_cycle: Option<u32>,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self { sps: [None; 16], pps: [None; 64], picture_header: None, counter: Counter::new() }
    }

    /// Starts an access unit.
    pub(super) fn start(&mut self) {
        self.picture_header = None;
    }

    /// Reads a NAL unit that is not the second or a later slice of a picture; `octets` follow its
    /// header. Returns the picture if the unit is a slice that can be read.
    pub(super) fn push(&mut self, nal: NalHeader, octets: &[u8]) -> Option<Reading> {
        if nal.layer_id != 0 {
            return None;
        }
        match nal.nal_type {
            0..=3 | IDR_W_RADL..=GDR => return self.push_slice(nal, octets),
            15 => {
                let (id, sps) = sets::read_sps(octets)?;
                self.sps[usize::from(id)] = sps;
            }
            16 => {
                let (id, sps) = sets::read_pps(octets)?;
                self.pps[usize::from(id)] = Some(sps);
            }
            19 => self.picture_header = self.read_picture_header(&mut BitReader::new(octets)),
            21 | 22 => self.counter.ended = true,
            _ => {}
        }
        None
    }

    /// Reads `picture_header_structure` up to `ph_poc_msb_cycle_val` (section 7.3.2.8).
    fn read_picture_header(&self, bits: &mut BitReader<'_>) -> Option<PictureHeader> {
        let is_random_access = bits.flag()?;
        let is_non_reference = bits.flag()?;
        let is_gdr = is_random_access && bits.flag()?;
        if bits.flag()? {
            bits.skip(1)?; // ph_intra_slice_allowed_flag
        }
        let sps = self.pps[bits.ue_max(63)? as usize]?;
        let sps = self.sps[usize::from(sps)]?;
        let lsb = bits.bits(sps.lsb_len)?;
        if is_gdr {
            bits.skip_codes(1)?; // ph_recovery_poc_cnt
        }
        bits.skip(sps.extra_picture_header_bits)?;
        let msb_cycle = match sps.msb_cycle_len {
            Some(len) if bits.flag()? => Some(bits.bits(len)?),
            _ => None,
        };
        Some(PictureHeader { sps, is_non_reference, lsb, msb_cycle })
    }

    fn push_slice(&mut self, nal: NalHeader, octets: &[u8]) -> Option<Reading> {
        let mut bits = BitReader::new(octets);
        // sh_picture_header_in_slice_header_flag
        let header =
            if bits.flag()? { self.read_picture_header(&mut bits) } else { self.picture_header };
        let PictureHeader { sps, is_non_reference, lsb, msb_cycle } = header?;
        let is_idr = matches!(nal.nal_type, IDR_W_RADL | IDR_N_LP);
        let starts = is_idr || nal.nal_type > IDR_N_LP && self.counter.ended;
        let msb = msb_cycle.map(|cycle| i64::from(cycle) << sps.lsb_len);
        let msb = msb.or(if starts { Some(0) } else { None });
        let is_previous =
            nal.temporal_id_plus1 == 1 && !is_non_reference && !matches!(nal.nal_type, RADL | RASL);
        let count = self.counter.push(lsb, sps.lsb_len, msb, is_previous);
        let reorders = sps.reorder_max.map(|max| max > 0);
        let order = if reorders == Some(false) {
            Order::Decoding
        } else {
            let may_have_leading = nal.nal_type != IDR_N_LP;
            Order::Count(Picture { count, starts, may_have_leading })
        };
        let declared = Declared { rate: sps.rate, reorders };
        Some(Reading { declared, is_field: false, order })
    }
}
