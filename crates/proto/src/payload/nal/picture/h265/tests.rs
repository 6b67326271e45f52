//! Headers made by hand, field by field.

use super::super::reading::{Order, Picture, Reading};
use super::super::write::BitWriter;
use super::Stream;
use crate::payload::nal::NalCodec;
use crate::time::FrameRate;

/// Writes `profile_tier_level`, with two sub-layers if there is more than one.
fn profile_tier_level(bits: &mut BitWriter, sub_layers: u32) {
    bits.u(0, 32).u(0, 32).u(0, 32);
    if sub_layers > 0 {
        assert_eq!(sub_layers, 2);
        bits.flags(&[1, 1, 0, 1]).u(0, 12).u(0, 32).u(0, 32).u(0, 32).u(0, 8);
    }
}

fn vps(rate: Option<(u32, u32)>) -> Vec<u8> {
    let mut vps = BitWriter::default();
    vps.u(3, 4).u(0b11, 2).u(0, 6).u(2, 3).u(1, 1).u(0xffff, 16);
    profile_tier_level(&mut vps, 2);
    vps.flags(&[1]).ues(&[0; 9]).u(1, 6).ue(1).flags(&[1, 0]);
    if let Some((units, scale)) = rate {
        vps.flags(&[1]).u(units, 32).u(scale, 32);
    } else {
        vps.flags(&[0]);
    }
    vps.unit(&[64, 1])
}

/// Writes four short-term reference picture sets: one explicit and three predicted. In the first
/// predicted set, a difference of zero is left out, so that the next set has one flag fewer.
fn reference_sets(sps: &mut BitWriter) {
    sps.ue(4);
    // -1, -3, 2
    sps.ues(&[2, 1, 0]).flags(&[1]).ue(1).flags(&[1]).ue(1).flags(&[1]);
    // Step 1: 0 (left out), -2, 3 and 1
    sps.flags(&[1, 0]).ue(0).flags(&[1, 1, 1, 1]);
    // Step -2 from -2, 1, 3: the second is not used.
    sps.flags(&[1, 1]).ue(1).flags(&[1]).flags(&[0, 0]).flags(&[0, 1]).flags(&[1]);
    // From three (-4, -2, 1)
    sps.flags(&[1, 0]).ue(4).flags(&[1, 1, 1, 1]);
}

/// Fields of a sequence parameter set that the tests change.
#[derive(Clone, Copy)]
struct Sps {
    sub_layers: u32,
    reorder: u32,
    rate: Option<(u32, u32)>,
}

const SPS: Sps = Sps { sub_layers: 0, reorder: 2, rate: None };

impl Sps {
    fn unit(self) -> Vec<u8> {
        let mut sps = BitWriter::default();
        sps.u(3, 4).u(self.sub_layers, 3).u(1, 1);
        profile_tier_level(&mut sps, self.sub_layers);
        sps.ues(&[0, 3]).flags(&[0]).ues(&[63, 63]).flags(&[1]).ues(&[0; 4]).ues(&[2, 2, 4]);
        sps.flags(&[1]);
        for _ in 0..self.sub_layers {
            sps.ues(&[1, 0, 0]);
        }
        sps.ues(&[4, self.reorder, 0]).ues(&[0; 6]);
        // All scaling lists are predicted except the first of each size.
        sps.flags(&[1, 1]);
        for size in 0..4 {
            sps.flags(&[1]);
            (0..[16, 64, 65, 65][size]).for_each(|_| _ = sps.se(1));
            (0..[5, 5, 5, 1][size]).for_each(|_| _ = sps.flags(&[0]).ue(1));
        }
        sps.flags(&[1, 1, 1]).u(0x77, 8).ues(&[0, 0]).flags(&[0]);
        reference_sets(&mut sps);
        sps.flags(&[1]).ue(2).u(1, 8).flags(&[1]).u(2, 8).flags(&[0]);
        sps.flags(&[1, 1, 1]);
        sps.flags(&[0, 0, 0, 0, 0, 0, 0, 1]).ues(&[0; 4]);
        if let Some((units, scale)) = self.rate {
            sps.flags(&[1]).u(units, 32).u(scale, 32).flags(&[0, 0]);
        } else {
            sps.flags(&[0]);
        }
        sps.flags(&[0, 0]).unit(&[66, 1])
    }
}

/// Returns `pic_parameter_set_rbsp` with an output flag and two extra bits in slice headers.
fn pps() -> Vec<u8> {
    let mut pps = BitWriter::default();
    pps.ues(&[1, 0]).flags(&[0, 1]).u(2, 3).unit(&[68, 1])
}

/// Returns a slice of this type; the lower part of its count has eight bits.
fn slice(nal_type: u8, lsb: u32) -> Vec<u8> {
    let mut slice = BitWriter::default();
    slice.flags(&[1]);
    if nal_type >= 16 {
        slice.flags(&[0]);
    }
    slice.ue(1).u(0b11, 2).ue(0).flags(&[1]);
    if !matches!(nal_type, 19 | 20) {
        slice.u(lsb, 8);
    }
    slice.unit(&[nal_type << 1, 1])
}

fn readings(units: &[Vec<u8>]) -> Vec<Reading> {
    let mut stream = Stream::new();
    let read = |unit: &Vec<u8>| stream.push(NalCodec::H265.header(unit).unwrap(), &unit[2..]);
    units.iter().filter_map(read).collect()
}

fn pictures(slices: &[(u8, u32)]) -> Vec<Picture> {
    let slices = slices.iter().map(|(nal_type, lsb)| match nal_type {
        36 => vec![36 << 1, 1],
        _ => slice(*nal_type, *lsb),
    });
    let units: Vec<_> = [SPS.unit(), pps()].into_iter().chain(slices).collect();
    let picture = |reading: Reading| match reading.order {
        Order::Count(picture) => picture,
        Order::Decoding => panic!("no count"),
    };
    readings(&units).into_iter().map(picture).collect()
}

fn counts(slices: &[(u8, u32)]) -> Vec<i64> {
    pictures(slices).iter().map(|picture| picture.count).collect()
}

const TRAIL_N: u8 = 0;
const TRAIL_R: u8 = 1;
const RADL_N: u8 = 6;
const RASL_R: u8 = 9;
const BLA_W_LP: u8 = 16;
const IDR_W_RADL: u8 = 19;
const IDR_N_LP: u8 = 20;
const CRA: u8 = 21;
const EOS: u8 = 36;

#[test]
fn counts_wrap_and_follow_reference_pictures_of_the_lowest_sub_layer() {
    assert_eq!(
        counts(&[(IDR_N_LP, 0), (TRAIL_R, 100), (TRAIL_R, 200), (TRAIL_R, 40), (TRAIL_N, 250)]),
        [0, 100, 200, 296, 250]
    );
    // The counts continue from the picture at 200, not from the pictures after it.
    let skipped = [(TRAIL_N, 40), (RADL_N, 40), (RASL_R, 40)];
    for picture in skipped {
        let slices = [(IDR_N_LP, 0), (TRAIL_R, 100), (TRAIL_R, 200), picture, (TRAIL_R, 100)];
        assert_eq!(counts(&slices)[3..], [296, 100]);
    }
}

#[test]
fn random_access_points_start_sequences_where_the_standard_says() {
    let slices = [
        (CRA, 9),
        (RASL_R, 7),
        (TRAIL_R, 250),
        (CRA, 20),
        (EOS, 0),
        (CRA, 20),
        (BLA_W_LP, 30),
        (IDR_W_RADL, 0),
        (RADL_N, 254),
        (IDR_N_LP, 0),
    ];
    let found: Vec<_> = pictures(&slices).iter().map(|it| (it.count, it.starts)).collect();
    let expected = [
        (9, true),
        (7, false),
        (-6, false),
        (20, false),
        (20, true),
        (30, true),
        (0, true),
        (-2, false),
        (0, true),
    ];
    assert_eq!(found, expected);
    let may_have_leading = |nal_type| pictures(&[(nal_type, 0)])[0].may_have_leading;
    assert!(may_have_leading(IDR_W_RADL) && may_have_leading(CRA) && !may_have_leading(IDR_N_LP));
}

#[test]
fn the_rate_is_that_of_the_sps_or_else_of_the_vps() {
    let rate = |sps: Option<(u32, u32)>, vps_rate| {
        let sps = Sps { rate: sps, sub_layers: 2, ..SPS }.unit();
        readings(&[vps(vps_rate), sps, pps(), slice(IDR_N_LP, 0)])[0].declared.rate
    };
    assert_eq!(rate(Some((1_001, 30_000)), Some((1, 25))), FrameRate::new(30_000, 1_001));
    assert_eq!(rate(None, Some((1, 25))), FrameRate::new(25, 1));
    assert_eq!(rate(None, None), None);
    assert_eq!(rate(Some((0, 25)), None), None);
}

#[test]
fn without_reordering_pictures_are_in_decoding_order() {
    let sps = Sps { reorder: 0, sub_layers: 2, ..SPS }.unit();
    let [reading] = readings(&[sps, pps(), slice(IDR_N_LP, 0)])[..] else { panic!("no picture") };
    assert_eq!((reading.order, reading.declared.reorders), (Order::Decoding, Some(false)));
}

#[test]
fn a_damaged_rest_of_a_set_costs_the_rate_only() {
    let sps = Sps { rate: Some((1, 25)), ..SPS }.unit();
    let read = |len: usize| readings(&[sps[..len].to_vec(), pps(), slice(IDR_N_LP, 0)]);
    assert_eq!(read(sps.len())[0].declared.rate, FrameRate::new(25, 1));
    assert_eq!(read(sps.len() - 4)[0].declared.rate, None);
    assert!(read(20).is_empty());
}

#[test]
fn other_slices_and_layers_are_no_pictures() {
    let mut second = slice(TRAIL_R, 4);
    second[2] &= 0x7f;
    let mut layer = slice(TRAIL_R, 4);
    layer[1] |= 8;
    assert!(readings(&[SPS.unit(), pps(), second, layer]).is_empty());
    assert!(readings(&[SPS.unit(), slice(IDR_N_LP, 0)]).is_empty());
    assert!(readings(&[pps(), slice(IDR_N_LP, 0)]).is_empty());
}
