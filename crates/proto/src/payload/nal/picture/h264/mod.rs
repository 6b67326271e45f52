//! Picture order counts of H.264 (ITU-T H.264 section 8.2.1).

mod count;
mod sets;
mod slice;
#[cfg(test)]
mod tests;

use super::super::header::NalHeader;
use super::format::PictureFormat;
use super::reading::{Declared, Order, Reading};
use count::Counter;
use sets::{Pps, Sps};
use slice::Structure;

/// Returns the format that `seq_parameter_set_rbsp` in `octets` declares.
pub(super) fn picture_format(octets: &[u8]) -> Option<PictureFormat> {
    sets::read_sps(octets)?.1?.format
}

/// Returns the identifier of the parameter set of type `nal_type` in `octets`.
pub(super) fn parameter_set_id(nal_type: u8, octets: &[u8]) -> Option<u8> {
    match nal_type {
        7 | 15 => Some(sets::read_sps(octets)?.0),
        8 => Some(sets::read_pps(octets)?.0),
        _ => None,
    }
}

/// The parameter sets of a stream, and its last picture.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// By id, at most 32.
    sps: Vec<Option<Sps>>,
    /// By id, at most 256.
    pps: Vec<Option<Pps>>,
    counter: Counter,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self { sps: vec![None; 32], pps: vec![None; 256], counter: Counter::default() }
    }

    /// Reads a NAL unit that is not the second or a later slice of a picture; `octets` follow its
    /// header. Returns the picture if the unit is a slice that can be read.
    pub(super) fn push(&mut self, nal: NalHeader, octets: &[u8]) -> Option<Reading> {
        match nal.nal_type {
            1 | 2 | 5 => return self.push_slice(nal, octets),
            7 => {
                let (id, sps) = sets::read_sps(octets)?;
                self.sps[usize::from(id)] = sps;
            }
            8 => {
                let (id, pps) = sets::read_pps(octets)?;
                self.pps[usize::from(id)] = pps;
            }
            _ => {}
        }
        None
    }

    fn push_slice(&mut self, nal: NalHeader, octets: &[u8]) -> Option<Reading> {
        let pps = self.pps[usize::from(slice::pps_id(octets)?)].as_ref()?;
        let sps = self.sps[usize::from(pps.sps)].as_ref()?;
        let slice = slice::read(octets, nal, sps, pps)?;
        let reorders = match (&sps.order, sps.reorder_max) {
            (sets::Order::Decoding, _) => Some(false),
            (_, max) => max.map(|max| max > 0),
        };
        let declared = Declared { rate: sps.rate, reorders };
        let is_field = slice.structure != Structure::Frame;
        let order = match self.counter.push(&slice, &sps.order)? {
            _ if reorders == Some(false) => Order::Decoding,
            picture => Order::Count(picture),
        };
        Some(Reading { declared, is_field, order })
    }
}
