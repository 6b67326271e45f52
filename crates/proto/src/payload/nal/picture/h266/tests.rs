//! Headers made by hand, field by field.

use super::super::reading::{Order, Picture, Reading};
use super::super::write::BitWriter;
use super::Stream;
use crate::payload::nal::NalCodec;
use crate::time::FrameRate;

/// Fields of a sequence parameter set that the tests change.
#[derive(Clone, Copy)]
struct Sps<'a> {
    sub_layers: u32,
    /// Whether the profile and the parameters of the decoded picture buffer are present.
    has_buffering: bool,
    reorder: u32,
    /// Writes the fields after `sps_subpic_info_present_flag`: 256 × 32 samples, blocks of 32.
    subpictures: Option<&'a dyn Fn(&mut BitWriter)>,
    chroma_format: u32,
    /// Writes the fields after `dpb_parameters`.
    tools: Option<&'a dyn Fn(&mut BitWriter)>,
}

const SPS: Sps<'_> = Sps {
    sub_layers: 0,
    has_buffering: true,
    reorder: 2,
    subpictures: None,
    chroma_format: 1,
    tools: None,
};

impl Sps<'_> {
    fn unit(self) -> Vec<u8> {
        let mut sps = BitWriter::default();
        sps.u(2, 4).u(1, 4).u(self.sub_layers, 3).u(self.chroma_format, 2).u(0, 2);
        sps.flags(&[u8::from(self.has_buffering)]);
        if self.has_buffering {
            // Constraints with 5 reserved bits, the level of one sub-layer, one sub-profile.
            sps.u(0, 18).flags(&[1]).u(0, 32).u(0, 32).u(0, 7).u(5, 8).u(0, 5).align();
            (0..self.sub_layers).for_each(|n| _ = sps.flags(&[u8::from(n == 0)]));
            sps.align().u(0, if self.sub_layers > 0 { 8 } else { 0 }).u(1, 8).u(7, 32);
        }
        sps.flags(&[1, 1, 0]).ues(&[256, 32]).flags(&[1]).ues(&[0; 4]);
        sps.flags(&[u8::from(self.subpictures.is_some())]);
        if let Some(subpictures) = self.subpictures {
            subpictures(&mut sps);
        }
        sps.ue(2).flags(&[0, 0]).u(4, 4);
        // Two bits of the most significant part; two extra bits in picture headers.
        sps.flags(&[1]).ue(1).u(1, 2).flags(&[1, 0, 1, 0, 0, 0, 0, 0]).u(1, 2).u(0, 8);
        if self.has_buffering {
            if self.sub_layers > 0 {
                sps.flags(&[1]);
                (0..self.sub_layers).for_each(|_| _ = sps.ues(&[0, 0, 0]));
            }
            sps.ues(&[4, self.reorder, 0]);
        }
        if let Some(tools) = self.tools {
            tools(&mut sps);
        }
        sps.unit(&[0, 15 << 3 | 1])
    }
}

fn pps() -> Vec<u8> {
    BitWriter::default().u(5, 6).u(2, 4).unit(&[0, 16 << 3 | 1])
}

/// Writes `picture_header_structure` of a picture of type `nal_type`.
fn header(bits: &mut BitWriter, nal_type: u8, lsb: u32, msb_cycle: Option<u32>) {
    let is_random_access = nal_type >= 7;
    bits.flags(&[u8::from(is_random_access), 0]);
    if is_random_access {
        bits.flags(&[u8::from(nal_type == GDR)]);
    }
    bits.flags(&[1, 1]).ue(5).u(lsb, 8);
    if nal_type == GDR {
        bits.ue(3);
    }
    bits.u(0b11, 2);
    match msb_cycle {
        Some(cycle) => bits.flags(&[1]).u(cycle, 2),
        None => bits.flags(&[0]),
    };
}

/// Returns a slice that contains its picture header.
fn slice(nal_type: u8, lsb: u32) -> Vec<u8> {
    slice_with(nal_type, lsb, None)
}

fn slice_with(nal_type: u8, lsb: u32, msb_cycle: Option<u32>) -> Vec<u8> {
    let mut slice = BitWriter::default();
    header(slice.flags(&[1]), nal_type, lsb, msb_cycle);
    slice.unit(&[0, nal_type << 3 | 1])
}

fn readings(units: &[Vec<u8>]) -> Vec<Reading> {
    let mut stream = Stream::new();
    let read = |unit: &Vec<u8>| stream.push(NalCodec::H266.header(unit).unwrap(), &unit[2..]);
    units.iter().filter_map(read).collect()
}

fn pictures(sps: Sps<'_>, slices: &[Vec<u8>]) -> Vec<Picture> {
    let picture = |reading: Reading| match reading.order {
        Order::Count(picture) => picture,
        Order::Decoding => panic!("no count"),
    };
    let units = [&[sps.unit(), pps()], slices].concat();
    readings(&units).into_iter().map(picture).collect()
}

fn counts(slices: &[Vec<u8>]) -> Vec<(i64, bool)> {
    pictures(SPS, slices).iter().map(|it| (it.count, it.starts)).collect()
}

const TRAIL: u8 = 0;
const RADL: u8 = 2;
const IDR_W_RADL: u8 = 7;
const IDR_N_LP: u8 = 8;
const CRA: u8 = 9;
const GDR: u8 = 10;

#[test]
fn counts_wrap_and_idr_pictures_may_have_lower_bits() {
    let slices = [
        slice(IDR_W_RADL, 8),
        slice(RADL, 4),
        slice(TRAIL, 100),
        slice(TRAIL, 220),
        slice(CRA, 4),
        slice(TRAIL, 255),
        slice(IDR_N_LP, 0),
        vec![0, 21 << 3 | 1],
        slice(GDR, 7),
        slice(TRAIL, 9),
    ];
    let expected = [
        (8, true),
        (4, false),
        (100, false),
        (220, false),
        (260, false),
        (255, false),
        (0, true),
        (7, true),
        (9, false),
    ];
    assert_eq!(counts(&slices), expected);
}

#[test]
fn the_most_significant_part_may_be_in_the_header() {
    let slices = [slice_with(IDR_N_LP, 1, Some(3)), slice(TRAIL, 2), slice_with(TRAIL, 3, Some(1))];
    assert_eq!(counts(&slices), [(769, true), (770, false), (259, false)]);
}

#[test]
fn picture_headers_of_their_own_are_those_of_their_access_unit() {
    let mut header_unit = BitWriter::default();
    header(&mut header_unit, TRAIL, 77, None);
    let header_unit = header_unit.unit(&[0, 19 << 3 | 1]);
    let alone = BitWriter::default().flags(&[0]).unit(&[0, 1]);
    assert_eq!(counts(&[header_unit.clone(), alone.clone()]), [(77, false)]);
    assert_eq!(counts(std::slice::from_ref(&alone)), []);
    let mut stream = Stream::new();
    for unit in [SPS.unit(), pps(), header_unit] {
        stream.push(NalCodec::H266.header(&unit).unwrap(), &unit[2..]);
    }
    stream.start();
    assert_eq!(stream.push(NalCodec::H266.header(&alone).unwrap(), &alone[2..]), None);
}

#[test]
fn sub_layers_and_absent_parameters_move_no_field() {
    for (sub_layers, has_buffering) in [(0, false), (0, true), (3, true)] {
        let sps = Sps { sub_layers, has_buffering, ..SPS };
        let picture = pictures(sps, &[slice(IDR_W_RADL, 9)])[0];
        assert_eq!((picture.count, picture.may_have_leading), (9, true));
        let reading = readings(&[sps.unit(), pps(), slice(IDR_W_RADL, 9)])[0];
        assert_eq!(reading.declared.reorders, has_buffering.then_some(true));
    }
    let sps = Sps { reorder: 0, ..SPS };
    let reading = readings(&[sps.unit(), pps(), slice(IDR_N_LP, 9)])[0];
    assert_eq!((reading.order, reading.declared.reorders), (Order::Decoding, Some(false)));
}

#[test]
fn subpictures_are_passed_over() {
    // A position or width in eight blocks has three bits, a height of one block none.
    let ways: [&dyn Fn(&mut BitWriter); 4] = [
        &|sps| _ = sps.ues(&[0, 0]).flags(&[0]),
        &|sps| _ = sps.ue(1).flags(&[1, 0]).u(3, 3).u(4, 3).ue(0).flags(&[0]),
        &|sps| {
            _ = sps
                .ue(2)
                .flags(&[0, 0])
                .u(1, 3)
                .u(0, 2)
                .u(0, 6)
                .u(0, 2)
                .u(0, 3)
                .u(0, 2)
                .ue(1)
                .flags(&[1, 1])
                .u(0b00_01_10, 6);
        },
        &|sps| _ = sps.ue(3).flags(&[1, 1]).u(1, 3).ue(0).flags(&[1, 0]),
    ];
    for way in ways {
        let sps = Sps { subpictures: Some(way), ..SPS };
        assert_eq!(pictures(sps, &[slice(IDR_N_LP, 9)])[0].count, 9);
    }
}

/// Writes every coding tool of a 4:4:4 stream with a VPS and blocks of 32 samples, then a rate.
fn every_tool(sps: &mut BitWriter) {
    sps.ue(0).flags(&[1]).ues(&[1, 2, 1, 1]).flags(&[1]).ues(&[1, 1, 2, 2]).ues(&[1, 3, 1, 1]);
    sps.flags(&[1]).ue(3).flags(&[1]); // transform skip
    sps.flags(&[1, 1, 1, 1]); // multiple transforms, secondary transform
    sps.flags(&[1, 0]); // joint residuals, a table for each of three
    (0..3).for_each(|n| _ = sps.se(-3).ue(n).ues(&vec![1; 2 * (n as usize + 1)]));
    sps.flags(&[1, 1, 1, 1, 1, 0, 1, 1, 1, 0]); // filters, weights, long-term, inter-layer, lists
    // Two lists of the first kind: with short-term, long-term and inter-layer pictures, and an empty
    // one.
    sps.ues(&[2, 5]).flags(&[0]);
    sps.flags(&[0, 1]).ue(0).flags(&[1]); // the first entry: 0 stands for 1
    sps.flags(&[0, 1]).ue(0); // with weights, 0 has no sign
    sps.flags(&[0, 1]).ue(7).flags(&[0]);
    sps.flags(&[0, 0]).u(99, 8).flags(&[1]).ue(0);
    sps.ue(0);
    sps.ues(&[1, 1]).flags(&[1, 0, 0]); // of the second: its long-term picture is in the header
    sps.flags(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]).ue(0).flags(&[1]); // motion
    sps.flags(&[1]).ue(2).flags(&[1, 1, 1, 1, 1, 1, 1]).ue(1).ue(0); // affine to merge levels
    sps.flags(&[1, 1, 1, 1, 1, 1]).ue(0); // intra tools, palette, colour transform
    sps.flags(&[1]).ue(2).flags(&[1]).u(2, 2).se(-1).ues(&[1, 2, 3, 4, 5, 6]);
    sps.flags(&[1, 1, 1, 1, 1, 1]); // scaling lists, quantisation
    sps.flags(&[1, 1]).ues(&[1, 3]).ues(&[1, 0]);
    sps.flags(&[1]).u(1001, 32).u(60_000, 32);
}

fn declared(tools: &dyn Fn(&mut BitWriter), chroma_format: u32) -> Option<FrameRate> {
    let sps = Sps { tools: Some(tools), chroma_format, ..SPS };
    readings(&[sps.unit(), pps(), slice(IDR_N_LP, 9)])[0].declared.rate
}

#[test]
fn the_rate_follows_every_coding_tool() {
    assert_eq!(declared(&every_tool, 3), FrameRate::new(60_000, 1001));
}

#[test]
fn the_rate_follows_the_shortest_set_without_chroma() {
    let none = |sps: &mut BitWriter| {
        sps.ue(0).flags(&[0]).ues(&[0, 0]).ues(&[0, 0]); // no chroma tree
        sps.flags(&[0, 0, 0]); // transforms
        sps.flags(&[0, 0, 0, 0, 0, 0, 0, 0, 0]).ues(&[0, 0]); // filters, empty lists
        sps.flags(&[0, 0, 0, 0, 0, 0, 0]).ue(5).flags(&[0, 0, 0, 0]).ue(0); // inter tools
        sps.flags(&[0, 0, 0, 0]).flags(&[0, 0, 0, 0, 0, 0]); // intra tools to virtual boundaries
        sps.flags(&[1]).u(1, 32).u(24, 32);
    };
    assert_eq!(declared(&none, 0), FrameRate::new(24, 1));
}

#[test]
fn a_set_that_ends_early_or_divides_by_zero_declares_no_rate() {
    assert_eq!(declared(&|_| (), 1), None);
    let units = |units: u32| {
        move |sps: &mut BitWriter| {
            every_tool(sps);
            sps.truncate_by(64);
            sps.u(units, 32).u(30, 32);
        }
    };
    assert_eq!(declared(&units(0), 3), None);
    assert_eq!(declared(&units(1), 3), FrameRate::new(30, 1));
}
