//! Evidence for the codecs of NAL units (RFC 6184, 7798, 9328).

use rushes_proto::payload::nal::{NalCodec, NalHeader};
use rushes_proto::rtp::Packet;

use super::evidence::{Evidence, follows};

/// Minimum share of timestamps that have a slice.
const WITH_SLICE: f64 = 0.5;

/// Minimum share of pictures whose first slice is marked as the first.
const WITH_FIRST: f64 = 0.8;

/// The type of H.266's picture header.
const PICTURE_HEADER: u8 = 19;

/// The content of a payload.
enum Content<'p> {
    Units(Vec<&'p [u8]>),
    /// A fragment: the unit's header, and the octets after the FU header.
    Fragment {
        header: NalHeader,
        is_start: bool,
        is_end: bool,
        body: &'p [u8],
    },
}

/// The contents of the previous packet.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Before {
    /// The previous packet was not received.
    Unknown,
    /// Whole NAL units.
    Whole,
    /// A fragment, other than the last, of the NAL unit with this header.
    Part(NalHeader),
}

/// The picture being examined.
#[derive(Clone, Copy, Default)]
struct Picture {
    has_slice: bool,
    /// Whether no packet is missing before it.
    is_from_start: bool,
    /// H.266: whether a separate picture header was received.
    has_header: bool,
}

/// Counts the evidence that `packets` carry `codec`. Each packet must have plausible headers and
/// continue the previous one; pictures must consist of slices, and their first slice must be marked
/// as first.
pub(super) fn evidence(codec: NalCodec, packets: &[Packet<'_>]) -> Evidence {
    let mut counter = EvidenceCounter::new(codec);
    let mut last: Option<&Packet<'_>> = None;
    for packet in packets {
        let in_order = last.is_some_and(|last| follows(packet, last));
        if last.is_none_or(|last| last.timestamp() != packet.timestamp()) {
            counter.end_picture();
            counter.picture = Some(Picture { is_from_start: in_order, ..Picture::default() });
        }
        if !in_order {
            counter.before = Before::Unknown;
        }
        counter.examine(packet.payload());
        last = Some(packet);
    }
    counter.end_picture();
    let len = |packet: &Packet<'_>| packet.payload().len();
    let is_steady = packets.windows(2).all(|pair| len(&pair[0]) == len(&pair[1]));
    // Pictures of one packet each differ in size; speech frames may all have the same size.
    if is_steady && !counter.has_fragments { Evidence::default() } else { counter.evidence() }
}

struct EvidenceCounter {
    codec: NalCodec,
    before: Before,
    picture: Option<Picture>,
    has_fragments: bool,
    packets: Evidence,
    /// Timestamps with a slice and without.
    pictures: Evidence,
    /// First slices of pictures: those marked as first, and the others.
    first_slices: Evidence,
}

impl EvidenceCounter {
    fn new(codec: NalCodec) -> Self {
        let none = Evidence::default();
        let (packets, pictures, first_slices) = (none, none, none);
        let (before, picture, has_fragments) = (Before::Unknown, None, false);
        Self { codec, before, picture, has_fragments, packets, pictures, first_slices }
    }

    fn examine(&mut self, payload: &[u8]) {
        let is_good = match content(self.codec, payload) {
            None => false,
            Some(Content::Units(units)) => {
                let is_good = !matches!(self.before, Before::Part(_))
                    && units.iter().all(|unit| self.examine_unit(unit).is_some());
                self.before = Before::Whole;
                is_good
            }
            Some(Content::Fragment { header, is_start, is_end, body }) => {
                self.has_fragments = true;
                let continues = match self.before {
                    Before::Unknown => true,
                    Before::Whole => is_start,
                    Before::Part(before) => !is_start && before == header,
                };
                self.before = if is_end { Before::Whole } else { Before::Part(header) };
                continues && self.examine_slice(header, is_start.then_some(body)).is_some()
            }
        };
        self.packets.count(is_good);
    }

    /// Examines a whole unit; `None` if no encoder would write it.
    fn examine_unit(&mut self, unit: &[u8]) -> Option<()> {
        let header = self.codec.header(unit)?;
        self.examine_slice(header, unit.get(self.codec.header_len()..))
    }

    /// Examines a unit or a fragment, and the octets after its header if it has them; `None` if no
    /// encoder would write it.
    fn examine_slice(&mut self, header: NalHeader, body: Option<&[u8]>) -> Option<()> {
        if !is_plausible(self.codec, header) {
            return None;
        }
        let picture = self.picture.as_mut()?;
        picture.has_header |= self.codec == NalCodec::H266 && header.nal_type == PICTURE_HEADER;
        if self.codec.is_vcl(header.nal_type) {
            if !picture.has_slice
                && picture.is_from_start
                && let Some(is_first) =
                    body.and_then(|body| is_first_slice(self.codec, header, body))
            {
                self.first_slices.count(is_first || picture.has_header);
            }
            picture.has_slice = true;
        }
        Some(())
    }

    fn end_picture(&mut self) {
        if let Some(picture) = self.picture.take() {
            self.pictures.count(picture.has_slice);
        }
    }

    /// Returns the evidence of the packets, or none if the pictures are implausible.
    fn evidence(&self) -> Evidence {
        let Evidence { for_it, against } = self.first_slices;
        let has_first = for_it + against == 0 || self.first_slices.share() >= WITH_FIRST;
        let are_pictures = self.pictures.share() >= WITH_SLICE && has_first;
        if are_pictures { self.packets } else { Evidence::default() }
    }
}

/// Returns whether a slice is its picture's first: `first_mb_in_slice` is 0 (H.264 section 7.3.3),
/// `first_slice_segment_in_pic_flag` (H.265 section 7.3.6.1), or the picture header is in it (H.266
/// section 7.3.7). Each is the first bit; `None` after an extended NAL unit header.
fn is_first_slice(codec: NalCodec, header: NalHeader, body: &[u8]) -> Option<bool> {
    let is_extended = codec == NalCodec::H264 && matches!(header.nal_type, 20 | 21);
    let first = body.first().filter(|_| !is_extended)?;
    Some(first & 0x80 != 0)
}

/// Returns the content of a payload, or `None` if it is malformed or of a mode that both ends must
/// agree on.
fn content(codec: NalCodec, payload: &[u8]) -> Option<Content<'_>> {
    let header = codec.header(payload)?;
    let rest = payload.get(codec.header_len()..)?;
    match (codec, header.nal_type) {
        (NalCodec::H264, 24) | (NalCodec::H265, 48) | (NalCodec::H266, 28) => aggregated(rest),
        (NalCodec::H264, 28) | (NalCodec::H265, 49) | (NalCodec::H266, 29) => {
            let (fu_header, body) = rest.split_first()?;
            let (is_start, is_end) = (fu_header & 0x80 != 0, fu_header & 0x40 != 0);
            let nal_type = match codec {
                NalCodec::H265 => fu_header & 0x3f,
                NalCodec::H264 | NalCodec::H266 => fu_header & 0x1f,
            };
            // Reserved in H.264; in H.266 it marks a picture's end, on a last fragment only.
            let is_reserved = match codec {
                NalCodec::H264 => fu_header & 0x20 != 0,
                NalCodec::H265 => false,
                NalCodec::H266 => fu_header & 0x20 != 0 && !is_end,
            };
            if is_start && is_end || is_reserved || body.is_empty() {
                return None;
            }
            let header = NalHeader { nal_type, ..header };
            Some(Content::Fragment { header, is_start, is_end, body })
        }
        _ => Some(Content::Units(vec![payload])),
    }
}

/// Returns the units of an aggregation packet, each after its length.
fn aggregated(mut rest: &[u8]) -> Option<Content<'_>> {
    let mut units = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk() {
        let (unit, after) = after.split_at_checked(u16::from_be_bytes(*len).into())?;
        units.push(unit);
        rest = after;
    }
    (rest.is_empty() && !units.is_empty()).then_some(Content::Units(units))
}

/// Returns whether an encoder of `codec` would write this NAL unit header. The type must be in use,
/// and the other fields must have the values that the standards require. Headers of another codec
/// or of noise seldom pass.
pub fn is_plausible(codec: NalCodec, header: NalHeader) -> bool {
    if header.forbidden_zero_bit {
        return false;
    }
    let single_layer = header.layer_id == 0 && header.temporal_id_plus1 > 0;
    let lowest = header.temporal_id_plus1 == 1;
    match codec {
        // H.264 section 7.4.1: `nal_ref_idc` is zero for 6 and 9 to 12, and not zero for 5, 7, 8.
        NalCodec::H264 => match header.nal_type {
            1 => true,
            5 | 7 | 8 | 13..=15 | 20 => header.ref_idc > 0,
            6 | 9..=12 => header.ref_idc == 0,
            _ => false,
        },
        NalCodec::H265 => match header.nal_type {
            0..=9 | 34..=40 => single_layer,
            16..=21 | 32 | 33 => single_layer && lowest,
            _ => false,
        },
        NalCodec::H266 => match header.nal_type {
            0..=3 | 10 | 16..=20 | 23..=25 => single_layer,
            7..=9 | 12..=15 | 21 | 22 => single_layer && lowest,
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_codec_are_not_plausible_in_another() {
        let plausible = |codec: NalCodec, unit: &[u8]| {
            codec.header(unit).is_some_and(|header| is_plausible(codec, header))
        };
        let avc: [&[u8]; 6] =
            [&[0x67, 0x64], &[0x68, 0xeb], &[0x65, 0x88], &[0x41, 0x9a], &[0x06, 5], &[0x09, 0xf0]];
        let hevc: [&[u8]; 6] =
            [&[0x40, 1], &[0x42, 1], &[0x44, 1], &[0x26, 1], &[0x02, 1], &[0x4e, 1]];
        let vvc: [&[u8]; 5] = [&[0, 0x79], &[0, 0x81], &[0, 0x41], &[0, 0x01], &[0, 0xa1]];
        let share = |codec: NalCodec, units: &[&[u8]]| {
            units.iter().filter(|unit| plausible(codec, unit)).count() as f64 / units.len() as f64
        };
        let table = [(NalCodec::H264, &avc[..]), (NalCodec::H265, &hevc), (NalCodec::H266, &vvc)];
        for (own, units) in table {
            for (codec, _) in table {
                let share = share(codec, units);
                assert!(if codec == own { share > 0.99 } else { share < 0.5 }, "{own:?} {codec:?}");
            }
        }
    }
}
