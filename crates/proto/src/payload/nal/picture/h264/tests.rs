//! Headers made by hand, field by field.

use super::super::reading::{Order, Reading};
use super::super::write::BitWriter;
use super::Stream;
use crate::payload::nal::NalCodec;
use crate::time::FrameRate;

/// Writes `seq_parameter_set_data` of a Main profile stream up to `pic_order_cnt_type`, with frame
/// numbers of four bits.
fn sps_start() -> BitWriter {
    let mut sps = BitWriter::default();
    sps.u(77, 8).u(0, 8).u(30, 8).ues(&[0, 0]);
    sps
}

/// Writes the rest of it, without VUI.
fn sps_end(sps: &mut BitWriter, frame_mbs_only: u8) -> &mut BitWriter {
    sps.ue(4).flags(&[0]).ues(&[19, 14]).flags(&[frame_mbs_only]);
    if frame_mbs_only == 0 {
        sps.flags(&[0]);
    }
    sps.flags(&[1, 0])
}

/// Returns a set with picture order counts of type 0, whose lower part has four bits.
fn sps(frame_mbs_only: u8) -> Vec<u8> {
    sps_end(sps_start().ues(&[0, 0]), frame_mbs_only).flags(&[0]).unit(&[0x67])
}

/// Returns `pic_parameter_set_rbsp` with two reference pictures in list 0.
fn pps(bottom: u8, weighted_pred: u8, redundant: u8) -> Vec<u8> {
    let mut pps = BitWriter::default();
    pps.ues(&[0, 0]).flags(&[0, bottom]).ues(&[0, 1, 0]).flags(&[weighted_pred]).u(0, 2);
    pps.ues(&[0, 0, 0]).flags(&[0, 0, redundant]).unit(&[0x68])
}

const P: u32 = 5;
const B: u32 = 6;
const I: u32 = 7;

/// Writes a slice header up to `frame_num`.
fn slice(slice_type: u32, frame_num: u32) -> BitWriter {
    let mut slice = BitWriter::default();
    slice.ues(&[0, slice_type, 0]).u(frame_num, 4);
    slice
}

fn idr() -> Vec<u8> {
    slice(I, 0).ue(0).u(0, 4).flags(&[0, 0]).unit(&[0x65])
}

/// Returns a reference frame with these lower bits of the count.
fn p(lsb: u32) -> Vec<u8> {
    slice(P, 1).u(lsb, 4).flags(&[0, 0, 0]).unit(&[0x41])
}

/// Returns a frame with these lower bits, to which no other refers.
fn b(lsb: u32) -> Vec<u8> {
    slice(B, 2).u(lsb, 4).flags(&[1, 0, 0, 0]).unit(&[0x01])
}

fn readings(units: &[Vec<u8>]) -> Vec<Reading> {
    let mut stream = Stream::new();
    let read = |unit: &Vec<u8>| stream.push(NalCodec::H264.header(unit).unwrap(), &unit[1..]);
    units.iter().filter_map(read).collect()
}

/// Returns the count of each picture, and whether it starts a sequence.
fn counts(units: &[Vec<u8>]) -> Vec<(i64, bool)> {
    let count = |reading: Reading| match reading.order {
        Order::Count(picture) => (picture.count, picture.starts),
        Order::Decoding => panic!("no count"),
    };
    readings(units).into_iter().map(count).collect()
}

#[test]
fn the_lower_bits_of_a_count_continue_the_nearest_reference_picture() {
    let pictures = [idr(), p(8), b(4), p(14), b(12), p(4), b(2), p(12), b(10), idr(), p(4)];
    let counts = counts(&[&[sps(1), pps(0, 0, 0)], &pictures[..]].concat());
    let expected: Vec<(i64, bool)> = [0, 8, 4, 14, 12, 20, 18, 28, 26, 0, 4]
        .iter()
        .zip(0..)
        .map(|(count, place)| (*count, [0, 9].contains(&place)))
        .collect();
    assert_eq!(counts, expected);
}

#[test]
fn pictures_before_an_idr_picture_have_negative_counts() {
    let found = counts(&[sps(1), pps(0, 0, 0), idr(), b(14), b(12)]);
    assert_eq!(found, [(0, true), (-2, false), (-4, false)]);
}

#[test]
fn a_frame_has_the_count_of_its_earlier_field() {
    let idr = slice(I, 0).ue(0).u(0, 4).se(1).flags(&[0, 0]).unit(&[0x65]);
    let bottom_first = slice(P, 1).u(5, 4).se(-1).flags(&[0, 0, 0]).unit(&[0x41]);
    let found = counts(&[sps(1), pps(1, 0, 0), idr, bottom_first]);
    assert_eq!(found, [(0, true), (4, false)]);
}

#[test]
fn fields_are_pictures_with_counts_of_their_own() {
    let field = |nal: u8, bottom: u8, lsb: u32| {
        let mut slice = slice(I, 0);
        slice.flags(&[1, bottom]);
        if nal == 0x65 {
            slice.ue(0);
        }
        slice.u(lsb, 4).flags(&[0, 0]).unit(&[nal])
    };
    for second in [0x65, 0x41] {
        let units =
            [sps(0), pps(0, 0, 0), field(0x65, 0, 0), field(second, 1, 1), field(0x41, 0, 2)];
        assert_eq!(counts(&units), [(0, true), (1, false), (2, false)]);
        assert!(readings(&units).iter().all(|reading| reading.is_field));
    }
    let twice = [sps(0), pps(0, 0, 0), field(0x65, 0, 0), field(0x65, 0, 0)];
    assert_eq!(counts(&twice), [(0, true), (0, true)]);
}

/// Returns a set of type 1, in which every second frame is not a reference and lies half way
/// between its neighbours.
fn expected_sps(always_zero: u8) -> Vec<u8> {
    let mut sps = sps_start();
    sps.ue(1).flags(&[always_zero]).se(-2).se(0).ue(1).se(4);
    sps_end(&mut sps, 1).flags(&[0]).unit(&[0x67])
}

#[test]
fn counts_of_type_1_follow_from_frame_numbers() {
    let idr = slice(I, 0).ue(0).flags(&[0, 0]).unit(&[0x65]);
    let p = |frame_num| slice(P, frame_num).flags(&[0, 0, 0]).unit(&[0x41]);
    let b = |frame_num| slice(B, frame_num).flags(&[1, 0, 0]).unit(&[0x01]);
    let mut units = vec![expected_sps(1), pps(0, 0, 0), idr];
    let mut expected = vec![(0, true)];
    for n in 1..40 {
        units.extend([p(n % 16), b((n + 1) % 16)]);
        expected.extend([(4 * i64::from(n), false), (4 * i64::from(n) - 2, false)]);
    }
    assert_eq!(counts(&units), expected);
}

#[test]
fn counts_of_type_1_have_differences_in_slice_headers() {
    let idr = slice(I, 0).ue(0).se(3).flags(&[0, 0]).unit(&[0x65]);
    let p = slice(P, 1).se(-1).flags(&[0, 0, 0]).unit(&[0x41]);
    assert_eq!(counts(&[expected_sps(0), pps(0, 0, 0), idr, p]), [(3, true), (3, false)]);
}

#[test]
fn hostile_differences_are_no_picture() {
    let mut sps = sps_start();
    sps.ue(1).flags(&[1]).se(i32::MAX).se(i32::MAX).ue(255);
    for _ in 0..255 {
        sps.se(i32::MAX);
    }
    let sps = sps_end(&mut sps, 1).flags(&[0]).unit(&[0x67]);
    let p = |frame_num| slice(P, frame_num).flags(&[0, 0, 0]).unit(&[0x41]);
    let units: Vec<_> = (0..200).map(|n| p(15 - n % 16)).collect();
    assert!(readings(&[vec![sps, pps(0, 0, 0)], units].concat()).len() < 200);
}

#[test]
fn type_2_is_the_decoding_order() {
    let sps = sps_end(sps_start().ue(2), 1).flags(&[0]).unit(&[0x67]);
    let idr = slice(I, 0).ue(0).flags(&[0, 0]).unit(&[0x65]);
    let [reading] = readings(&[sps, pps(0, 0, 0), idr])[..] else { panic!("no picture") };
    assert_eq!((reading.order, reading.declared.reorders), (Order::Decoding, Some(false)));
}

#[test]
fn operation_5_starts_a_sequence() {
    // Redundant count, override of the references, one modification, weights, operations 1 and 5.
    let mut slice = slice(P, 1);
    slice.u(6, 4).ue(0).flags(&[1]).ue(2).flags(&[1]).ues(&[0, 7, 3]).ues(&[5, 5]);
    slice.flags(&[1]).se(-3).se(4).flags(&[0, 0, 1]).se(1).se(2).se(3).se(4).flags(&[0, 0]);
    let resetting = slice.flags(&[1]).ues(&[1, 3, 5, 0]).unit(&[0x41]);
    let follower = |lsb| self::slice(P, 1).u(lsb, 4).ue(0).flags(&[0, 0]).unit(&[0x41]);
    let found = counts(&[sps(1), pps(0, 1, 1), idr(), resetting, follower(4), follower(15)]);
    assert_eq!(found, [(0, true), (0, true), (4, false), (-1, false)]);
}

#[test]
fn other_operations_start_no_sequence() {
    let mut slice = slice(P, 1);
    slice.u(6, 4).flags(&[0, 0, 1]).ues(&[2, 1, 3, 1, 1, 4, 2, 6, 0, 1, 9, 0]);
    let found = counts(&[sps(1), pps(0, 0, 0), idr(), slice.unit(&[0x41])]);
    assert_eq!(found, [(0, true), (6, false)]);
}

#[test]
fn the_vui_declares_rate_and_reordering() {
    let vui = |reorder: u32, hrds: &[u8]| {
        let mut sps = BitWriter::default();
        // High 4:4:4 with scaling lists: two are coded, one of them up to its first zero.
        sps.u(244, 8).u(0, 8).u(30, 8).ues(&[0, 3]).flags(&[0]).ues(&[0, 0]).flags(&[0, 1]);
        sps.flags(&[1]).se(-8).flags(&[0; 5]).flags(&[1]);
        for _ in 0..64 {
            sps.se(1);
        }
        sps.flags(&[0; 5]).ues(&[0, 0, 0]);
        sps_end(&mut sps, 0).flags(&[1]);
        sps.flags(&[1]).u(255, 8).u(4, 16).u(3, 16).flags(&[1, 0, 1]).u(5, 3).flags(&[0, 1]);
        sps.u(0x01_0101, 24).flags(&[1]).ues(&[0, 0]);
        sps.flags(&[1]).u(1_001, 32).u(60_000, 32).flags(&[1]);
        for hrd in hrds {
            sps.flags(&[*hrd]);
            if *hrd == 1 {
                sps.ue(1).u(0, 8).ues(&[9, 9]).flags(&[0]).ues(&[9, 9]).flags(&[0]).u(0, 20);
            }
        }
        sps.flags(&[0; 1][..usize::from(hrds.contains(&1))]).flags(&[1, 1, 1]);
        sps.ues(&[0, 0, 0, 0, reorder, 4]).unit(&[0x67])
    };
    let idr = slice(I, 0).flags(&[0]).ue(0).u(0, 4).flags(&[0, 0]).unit(&[0x65]);
    for hrds in [[0, 0], [1, 0], [0, 1], [1, 1]] {
        for (reorder, reorders) in [(0, false), (2, true)] {
            let units = [vui(reorder, &hrds), pps(0, 0, 0), idr.clone()];
            let [reading] = readings(&units)[..] else { panic!("no picture") };
            assert_eq!(reading.declared.rate, FrameRate::new(30_000, 1_001));
            assert_eq!(reading.declared.reorders, Some(reorders), "{hrds:?}");
        }
    }
}

#[test]
fn slices_without_their_parameter_sets_are_no_pictures() {
    assert!(readings(&[idr()]).is_empty());
    assert!(readings(&[pps(0, 0, 0), idr()]).is_empty());
    assert!(readings(&[sps(1), idr()]).is_empty());
    let damaged = sps(1)[..5].to_vec();
    assert!(readings(&[sps(1), pps(0, 0, 0), damaged, idr()]).is_empty());
}

#[test]
fn slice_groups_are_passed_over() {
    let groups: [&dyn Fn(&mut BitWriter); 5] = [
        &|pps| _ = pps.ues(&[1, 0, 3, 3]),
        &|pps| _ = pps.ues(&[1, 1]),
        &|pps| _ = pps.ues(&[2, 2, 1, 2, 3, 4]),
        &|pps| _ = pps.ues(&[1, 4]).flags(&[1]).ue(7),
        &|pps| _ = pps.ues(&[2, 6, 2]).u(0b00_01_10, 6),
    ];
    for group in groups {
        let mut pps = BitWriter::default();
        pps.ues(&[0, 0]).flags(&[0, 1]);
        group(&mut pps);
        pps.ues(&[1, 0]).flags(&[1]).u(1, 2).ues(&[0, 0, 0]).flags(&[0, 0, 1]);
        let unit = pps.unit(&[0x68]);
        let (id, set) = super::sets::read_pps(&unit[1..]).unwrap();
        let set = set.unwrap();
        assert_eq!((id, set.sps, set.references), (0, 0, [2, 1]));
        assert!(set.weighted_pred && set.redundant_pic_cnt_present);
        assert_eq!(set.weighted_bipred_idc, 1);
    }
}
