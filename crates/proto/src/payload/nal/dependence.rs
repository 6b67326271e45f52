//! Which pictures others need, by the headers of their NAL units: what a sender may leave out.

use std::ops::Range;

use super::super::layers::Layers;
use super::header::NalCodec;

/// What an access unit needs and whether others need it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Dependence {
    /// No other access unit needs it: it can be left out, and all others can be decoded.
    pub is_disposable: bool,
    /// Decoding can begin with it: it needs no access unit before it, nor do those after it, except
    /// the ones that [need earlier ones](Self::needs_earlier).
    pub is_random_access: bool,
    /// It may need access units before the last random access (RASL pictures of H.265 and H.266).
    pub needs_earlier: bool,
    /// Its layers, if its headers tell them.
    pub layers: Option<Layers>,
}

/// Finds the [`Dependence`] of each access unit of a bitstream.
#[derive(Clone, Copy, Debug)]
pub struct DependenceReader {
    codec: NalCodec,
    /// The highest temporal sub-layer by the last sequence parameter set of H.265; no picture of it
    /// that is marked as a non-reference is needed.
    highest: u8,
}

impl DependenceReader {
    /// Creates a reader of a bitstream of `codec`.
    pub fn new(codec: NalCodec) -> Self {
        Self { codec, highest: 0 }
    }

    /// Reads the headers of the NAL units of `frame`, which [`find_units`](super::find_units) finds.
    ///
    /// A picture is disposable if all its slices say so: `nal_ref_idc` of 0 (H.264 section 7.4.1), a
    /// sub-layer non-reference picture of the highest sub-layer (H.265 section 7.4.2.2), or
    /// `ph_non_ref_pic_flag` (H.266 section 7.4.3.8). An access unit with a parameter set is not.
    pub fn read(&mut self, frame: &[u8], units: &[Range<usize>]) -> Dependence {
        let (mut pictures, mut picture_headers) = (0, 0);
        let mut all =
            Dependence { is_disposable: true, is_random_access: true, ..Dependence::default() };
        for unit in units.iter().filter_map(|unit| frame.get(unit.clone())) {
            let Some(header) = self.codec.header(unit) else { continue };
            let (octets, body) = unit.split_at(self.codec.header_len());
            all.layers = Layers::join(all.layers, self.codec.layers(octets, body));
            if self.codec.is_parameter_set(header.nal_type) {
                all.is_disposable = false;
                self.note_parameters(header.nal_type, unit);
            }
            let is_picture_header = self.codec == NalCodec::H266 && header.nal_type == 19;
            if is_picture_header {
                picture_headers += 1;
                all.is_disposable &= has_bit(unit, 1);
            }
            if !self.codec.is_vcl(header.nal_type) {
                continue;
            }
            pictures += 1;
            all.is_disposable &= match self.codec {
                NalCodec::H264 => header.ref_idc == 0,
                NalCodec::H265 => {
                    let is_highest = header.temporal_id_plus1 > self.highest;
                    is_highest && header.nal_type < 16 && header.nal_type.is_multiple_of(2)
                }
                // A slice has the picture header in itself, or follows it.
                NalCodec::H266 if has_bit(unit, 0) => has_bit(unit, 2),
                NalCodec::H266 => picture_headers > 0,
            };
            all.is_random_access &= match self.codec {
                // Gradual refresh begins no whole picture.
                NalCodec::H266 => matches!(header.nal_type, 7..=9),
                _ => self.codec.is_random_access(header.nal_type),
            };
            all.needs_earlier |= self.codec.is_skipped_leading(header.nal_type);
        }
        if pictures == 0 { Dependence::default() } else { all }
    }

    /// Reads `sps_max_sub_layers_minus1` (H.265 section 7.3.2.2.1).
    fn note_parameters(&mut self, nal_type: u8, unit: &[u8]) {
        if let (NalCodec::H265, 33, Some(first)) = (self.codec, nal_type, unit.get(2)) {
            self.highest = first >> 1 & 7;
        }
    }
}

/// Returns bit `number` after the two octets of the header; a unit that ends before has none.
fn has_bit(unit: &[u8], number: u8) -> bool {
    unit.get(2).is_some_and(|octet| octet << number & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: Dependence = Dependence {
        is_disposable: false,
        is_random_access: false,
        needs_earlier: false,
        layers: None,
    };
    const DISPOSABLE: Dependence = Dependence { is_disposable: true, ..NEEDED };
    const RANDOM_ACCESS: Dependence = Dependence { is_random_access: true, ..NEEDED };

    fn read(reader: &mut DependenceReader, units: &[&[u8]]) -> Dependence {
        let frame = units.concat();
        let mut end = 0;
        let ranges: Vec<_> = units
            .iter()
            .map(|unit| {
                end += unit.len();
                end - unit.len()..end
            })
            .collect();
        // Layers have tests of their own.
        Dependence { layers: None, ..reader.read(&frame, &ranges) }
    }

    #[test]
    fn pictures_of_h264_are_disposable_by_nal_ref_idc() {
        let mut reader = DependenceReader::new(NalCodec::H264);
        assert_eq!(read(&mut reader, &[&[0x67], &[0x65]]), RANDOM_ACCESS);
        assert_eq!(read(&mut reader, &[&[0x41]]), NEEDED);
        assert_eq!(read(&mut reader, &[&[0x06], &[0x01], &[0x01]]), DISPOSABLE);
        assert_eq!(read(&mut reader, &[&[0x01], &[0x21]]), NEEDED);
        assert_eq!(read(&mut reader, &[&[0x68], &[0x01]]), NEEDED);
        assert_eq!(read(&mut reader, &[&[0x06]]), NEEDED);
    }

    #[test]
    fn pictures_of_h265_are_disposable_in_the_highest_sub_layer_only() {
        let mut reader = DependenceReader::new(NalCodec::H265);
        assert_eq!(read(&mut reader, &[&[0x42, 1, 0x01], &[0x26, 1]]), RANDOM_ACCESS);
        // TRAIL_N and TRAIL_R of a single sub-layer.
        assert_eq!(read(&mut reader, &[&[0x00, 1]]), DISPOSABLE);
        assert_eq!(read(&mut reader, &[&[0x02, 1]]), NEEDED);
        // RASL_N.
        let leading = Dependence { needs_earlier: true, ..DISPOSABLE };
        assert_eq!(read(&mut reader, &[&[0x10, 1]]), leading);
        // Two sub-layers.
        read(&mut reader, &[&[0x42, 1, 0x03], &[0x26, 1]]);
        assert_eq!(read(&mut reader, &[&[0x00, 1]]), NEEDED);
        assert_eq!(read(&mut reader, &[&[0x00, 2]]), DISPOSABLE);
    }

    #[test]
    fn pictures_of_h266_are_disposable_by_their_picture_header() {
        let mut reader = DependenceReader::new(NalCodec::H266);
        // A slice with its picture header.
        assert_eq!(read(&mut reader, &[&[0, 0x01, 0xa0]]), DISPOSABLE);
        assert_eq!(read(&mut reader, &[&[0, 0x01, 0x80]]), NEEDED);
        // A picture header of its own, before two slices.
        let slice = &[0, 0x01, 0x00][..];
        assert_eq!(read(&mut reader, &[&[0, 0x99, 0x40], slice, slice]), DISPOSABLE);
        assert_eq!(read(&mut reader, &[&[0, 0x99, 0x00], slice, slice]), NEEDED);
        assert_eq!(read(&mut reader, &[slice]), NEEDED);
        assert_eq!(read(&mut reader, &[&[0, 0x41, 0x80]]), RANDOM_ACCESS);
        // Gradual decoder refresh.
        assert_eq!(read(&mut reader, &[&[0, 0x51, 0x80]]), NEEDED);
        assert!(read(&mut reader, &[&[0, 0x19, 0x80]]).needs_earlier);
    }

    #[test]
    fn cut_units_are_no_panic_and_not_disposable() {
        for codec in [NalCodec::H264, NalCodec::H265, NalCodec::H266] {
            let mut reader = DependenceReader::new(codec);
            assert_eq!(reader.read(&[0], &[0..9, 0..0]), NEEDED);
        }
        let mut reader = DependenceReader::new(NalCodec::H265);
        assert_eq!(read(&mut reader, &[&[0x42, 1], &[0x26]]), NEEDED);
    }
}
