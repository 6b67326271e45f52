//! Uncompressed video in packets and back.

use proptest::prelude::*;

use super::super::builder::FrameSettings;
use super::super::error::{FrameError, PayloadError};
use super::super::fragment::Fragment;
use super::super::rig::{Listener, Sent, send};
use super::*;

fn format(sampling: Sampling, depth: u8, width: u16, height: u16) -> Raw {
    Raw::new(RawVideo::new(sampling, depth, width, height).unwrap())
}

fn fields(scan: Scan) -> Raw {
    let video = RawVideo::new(Sampling::YCbCr422, 8, 2, 4).unwrap();
    Raw::new(video.with_scan(scan).unwrap())
}

fn listener(format: &Raw, incomplete: bool) -> Listener {
    Listener::with(format, FrameSettings { incomplete, ..FrameSettings::default() })
}

/// Returns a payload of parts of lines: length, line number (with the field's bit) and offset.
fn payload(segments: &[(u16, u16, u16)]) -> Vec<u8> {
    let mut payload = vec![0, 0];
    for (n, (len, line, offset)) in segments.iter().enumerate() {
        let continues = if n + 1 < segments.len() { 0x8000 } else { 0 };
        for number in [*len, *line, offset | continues] {
            payload.extend(number.to_be_bytes());
        }
    }
    let octets: usize = segments.iter().map(|(len, ..)| usize::from(*len)).sum();
    payload.resize(payload.len() + octets, 7);
    payload
}

#[test]
fn packets_are_filled_with_whole_pgroups_of_one_line_after_the_other() {
    // Lines of three pgroups of four octets each.
    let format = format(Sampling::YCbCr422, 8, 5, 2);
    let frame: Vec<u8> = (0..24).collect();
    let sent = send(format.packetiser().as_mut(), &frame, 2 + 6 + 12 + 6 + 7);
    let expected = [
        [&b"\0\0\0\x0c\0\0\x80\0\0\x04\0\x01\0\0"[..], &frame[..16]].concat(),
        [&b"\0\0\0\x08\0\x01\0\x02"[..], &frame[16..]].concat(),
    ];
    assert_eq!(sent.iter().map(|it| &it.octets).collect::<Vec<_>>(), [&expected[0], &expected[1]]);
    assert_eq!(sent.iter().map(|it| it.marker).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn pairs_of_lines_have_the_number_of_the_first_and_ten_bits_an_offset_in_pixels() {
    // A row of the two lines 0 and 1 is two pgroups of 15 octets, four pixels wide.
    let format = format(Sampling::YCbCr420, 10, 8, 4);
    let sent = send(format.packetiser().as_mut(), &[5; 60], 2 + 6 + 15);
    let headers: Vec<_> = sent.iter().map(|it| it.octets[2..8].to_vec()).collect();
    let expected =
        [[0, 15, 0, 0, 0, 0], [0, 15, 0, 0, 0, 4], [0, 15, 0, 2, 0, 0], [0, 15, 0, 2, 0, 4]];
    assert_eq!(headers, expected);
}

#[test]
fn a_packet_has_three_parts_of_lines_at_most() {
    let format = format(Sampling::Rgb, 8, 1, 7);
    let sent = send(format.packetiser().as_mut(), &[1; 21], 1400);
    let parts = |it: &Sent| Lines::parse(&it.octets).unwrap().segments().count();
    assert_eq!(sent.iter().map(parts).collect::<Vec<_>>(), [3, 3, 1]);
}

#[test]
fn the_upper_half_of_the_sequence_number_begins_a_payload() {
    let format = format(Sampling::Rgb, 8, 1, 1);
    let mut packetiser = format.packetiser();
    packetiser.start(b"abc", 100).unwrap();
    let mut fragment = Fragment::default();
    fragment.set_sequence(0x0102_0304);
    assert!(packetiser.next(b"abc", &mut fragment));
    let mut octets = vec![0; fragment.len()];
    fragment.write(b"abc", &mut octets);
    assert_eq!(octets, b"\x01\x02\0\x03\0\0\0\0abc");
}

#[test]
fn frames_of_another_length_and_packets_without_room_are_refused() {
    let format = format(Sampling::Rgb, 10, 4, 1);
    let mut packetiser = format.packetiser();
    let error = FrameError::RawLen { len: 14, expected: 15 };
    assert_eq!(packetiser.start(&[0; 14], 100), Err(error));
    let error = FrameError::PacketTooSmall { limit: 22, need: 23 };
    assert_eq!(packetiser.start(&[0; 15], 22), Err(error));
    assert!(!packetiser.next(&[0; 15], &mut Fragment::default()));
    assert_eq!(packetiser.start(&[0; 15], 23), Ok(()));
}

#[test]
fn fields_take_turns_and_are_numbered_as_agreed() {
    for (scan, lines) in [
        (Scan::Interlaced, [0, 2, 0x8001, 0x8003]),
        (Scan::InterlacedByField, [0, 1, 0x8000, 0x8001]),
    ] {
        let format = fields(scan);
        let (mut packetiser, mut listener) = (format.packetiser(), listener(&format, false));
        let mut sent = Vec::new();
        for (time, field) in [b"abcdefgh", b"ABCDEFGH", b"12345678"].into_iter().enumerate() {
            for packet in send(packetiser.as_mut(), field, 12) {
                sent.push(u16::from_be_bytes([packet.octets[4], packet.octets[5]]));
                listener.take(&packet.octets, time as u32, packet.marker).unwrap();
            }
        }
        assert_eq!(sent[..4], lines);
        for (field, is_second) in [(b"abcdefgh", false), (b"ABCDEFGH", true), (b"12345678", false)]
        {
            let frame = listener.pop().unwrap();
            assert_eq!((&frame[..], frame.is_second_field()), (&field[..], is_second));
        }
    }
}

#[test]
fn a_field_ends_where_another_begins_even_at_one_time() {
    let mut listener = listener(&fields(Scan::InterlacedByField), true);
    listener.take(&payload(&[(4, 0, 0)]), 1, false).unwrap();
    listener.take(&payload(&[(4, 0x8000, 0), (4, 0x8001, 0)]), 1, true).unwrap();
    let fields = [listener.pop().unwrap(), listener.pop().unwrap()];
    assert!(*fields[0].missing() == [4..8; 1] && !fields[0].is_second_field());
    assert!(fields[1].missing().is_empty() && fields[1].is_second_field());
}

/// Returns the packets of two frames of three lines in each field, a pgroup in each packet; both fields of
/// a frame have one time, as FFmpeg sends them.
fn packets_of_fields(scan: Scan, fields: [[u8; 12]; 4]) -> Vec<(Sent, u32)> {
    let video = RawVideo::new(Sampling::YCbCr422, 8, 2, 6).unwrap().with_scan(scan).unwrap();
    let mut packetiser = Raw::new(video).packetiser();
    let sent = fields.iter().zip([1, 1, 2, 2]);
    let sent = sent.flat_map(|(field, time)| {
        send(packetiser.as_mut(), field, 12).into_iter().map(move |packet| (packet, time))
    });
    sent.collect()
}

const FIELDS: [[u8; 12]; 4] =
    [*b"aaaabbbbcccc", *b"AAAABBBBCCCC", *b"ddddeeeeffff", *b"DDDDEEEEFFFF"];

#[test]
fn lines_numbered_in_each_field_are_understood_without_a_description_that_says_so() {
    let video = RawVideo::new(Sampling::YCbCr422, 8, 2, 6).unwrap();
    let format = |scan| Raw::new(video.with_scan(scan).unwrap());
    for (described, sent, understood) in [
        (Scan::Interlaced, Scan::Interlaced, true),
        (Scan::Interlaced, Scan::InterlacedByField, true),
        (Scan::InterlacedByField, Scan::InterlacedByField, true),
        (Scan::InterlacedByField, Scan::Interlaced, false),
    ] {
        let mut listener = listener(&format(described), false);
        for (packet, time) in packets_of_fields(sent, FIELDS) {
            let taken = listener.take(&packet.octets, time, packet.marker);
            assert!(taken.is_ok() || !understood, "{described:?} {sent:?}: {taken:?}");
        }
        let expected =
            if understood { FIELDS.map(|field| field.to_vec()).to_vec() } else { vec![] };
        assert_eq!(listener.frames(), expected, "{described:?} {sent:?}");
    }
    // A second field alone shows it by its first line.
    let depacketiser = format(Scan::Interlaced).depacketiser();
    assert_eq!(depacketiser.begins(&payload(&[(4, 0x8000, 0)])), Some(true));
    assert_eq!(depacketiser.begins(&payload(&[(4, 2, 0)])), Some(false));
}

#[test]
fn what_was_placed_by_the_wrong_numbers_is_missing() {
    let video = RawVideo::new(Sampling::YCbCr422, 8, 2, 6).unwrap();
    let format = Raw::new(video.with_scan(Scan::Interlaced).unwrap());
    let mut listener = listener(&format, true);
    // Line 2, the third of the field, was taken for the second. Then line 1 shows the numbers.
    for line in [0, 2, 1] {
        listener.take(&payload(&[(4, line, 0)]), 1, line == 1).unwrap();
    }
    assert_eq!(listener.pop().unwrap().missing(), [8..12; 1]);
    // A field of the other numbers: line 2 is taken for the third until line 4 shows them.
    for line in [0, 2, 4] {
        listener.take(&payload(&[(4, line, 0)]), 2, line == 4).unwrap();
    }
    assert_eq!(listener.pop().unwrap().missing(), [4..8; 1]);
    // A packet that fits neither changes nothing.
    listener.take(&payload(&[(4, 6, 0)]), 3, false).unwrap_err();
    for line in [0, 2, 4] {
        listener.take(&payload(&[(4, line, 0)]), 3, line == 4).unwrap();
    }
    assert!(listener.pop().unwrap().missing().is_empty());
}

#[test]
fn lines_land_where_they_belong_in_any_order_and_more_than_once() {
    let format = format(Sampling::YCbCr422, 8, 4, 3);
    let frame: Vec<u8> = (0..24).collect();
    let sent = send(format.packetiser().as_mut(), &frame, 12);
    let mut listener = listener(&format, false);
    for n in [5, 0, 3, 3, 1, 4, 0, 2, 5] {
        listener.take(&sent[n].octets, 1, false).unwrap();
    }
    listener.take(&sent[4].octets, 1, true).unwrap();
    assert_eq!(listener.frames(), [frame]);
}

#[test]
fn a_frame_with_a_missing_part_is_dropped_or_delivered_with_it() {
    let format = format(Sampling::YCbCr422, 8, 4, 3);
    let frame = [9; 24];
    let sent = send(format.packetiser().as_mut(), &frame, 12);
    for incomplete in [false, true] {
        let mut listener = listener(&format, incomplete);
        for n in [0, 3, 4] {
            listener.take(&sent[n].octets, 1, false).unwrap();
        }
        listener.lose(1);
        for packet in &sent {
            listener.take(&packet.octets, 2, packet.marker).unwrap();
        }
        if incomplete {
            let first = listener.pop().unwrap();
            assert_eq!(first.missing(), [4..12, 20..24]);
            let expected = [&[9; 4][..], &[0; 8], &[9; 8], &[0; 4]].concat();
            assert_eq!((first.timestamp().0, &first[..]), (1, &expected[..]));
        }
        assert_eq!(listener.dropped(), u64::from(!incomplete));
        let whole = listener.pop().unwrap();
        assert!(whole.missing().is_empty() && whole[..] == frame && listener.pop().is_none());
    }
}

#[test]
fn what_lies_outside_the_frame_is_refused_and_changes_nothing() {
    let format = format(Sampling::YCbCr422, 8, 5, 2);
    let fits = [(12, 0, 0), (4, 1, 0), (8, 1, 2)];
    for (bad, reason) in [
        (&[(4, 2, 0)][..], "no such line"),
        (&[(4, 0x7fff, 0)], "no such line"),
        (&[(4, 0x8000, 0)], "second field"),
        (&[(4, 0, 6)], "beyond its end"),
        (&[(8, 0, 4)], "beyond its end"),
        (&[(4, 0, 0x7ffe)], "beyond its end"),
        (&[(4, 0, 1)], "whole pgroups"),
        (&[(3, 0, 0)], "whole pgroups"),
        (&[(4, 0, 0), (16, 1, 0)], "beyond its end"),
    ] {
        let mut listener = listener(&format, false);
        let error = listener.take(&payload(bad), 1, false).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        // The other packets of the frame are whole without it.
        for (n, part) in fits.iter().enumerate() {
            listener.take(&payload(&[*part]), 1, n == 2).unwrap();
        }
        assert_eq!(listener.frames(), [[7; 24]], "{bad:?}");
        // A part of a bad packet fills no gap.
        listener.take(&payload(&[fits[0], fits[1]]), 2, false).unwrap();
        let mixed = [&[fits[2]], bad].concat();
        listener.take(&payload(&mixed), 2, true).unwrap_err();
        assert!(listener.frames().is_empty() && listener.dropped() == 1, "{bad:?}");
    }
    let both = payload(&[(4, 0, 0), (4, 0x8000, 0)]);
    let error = listener(&fields(Scan::InterlacedByField), false).take(&both, 1, true);
    assert!(error.unwrap_err().to_string().contains("both fields"));
}

#[test]
fn a_frame_larger_than_the_receiver_allows_takes_no_memory() {
    let format = format(Sampling::Rgba, 16, 32_767, 32_767);
    let mut listener = listener(&format, false);
    let error = listener.take(&payload(&[(8, 32_766, 32_766)]), 1, true).unwrap_err();
    assert!(matches!(error, PayloadError::FrameTooLarge { limit } if limit == 64 << 20), "{error}");
    assert!(listener.held() < 1000);
}

#[test]
fn a_stream_begins_with_the_first_pgroup_of_a_frame() {
    let depacketiser = format(Sampling::Rgb, 8, 4, 4).depacketiser();
    assert_eq!(depacketiser.begins(&payload(&[(3, 0, 0)])), Some(true));
    assert_eq!(depacketiser.begins(&payload(&[(3, 0, 1)])), Some(false));
    assert_eq!(depacketiser.begins(b"\0\0"), None);
}

/// Returns any video of a few pixels.
fn videos() -> impl Strategy<Value = RawVideo> {
    let samplings = prop::sample::select(Sampling::all().collect::<Vec<_>>());
    let scans = [Scan::Progressive, Scan::Interlaced, Scan::InterlacedByField];
    let depths = prop::sample::select(vec![5, 8, 10, 12, 16]);
    (samplings, depths, 1_u16..40, 1_u16..20, prop::sample::select(scans.to_vec())).prop_filter_map(
        "not all can be sent",
        |(sampling, depth, width, height, scan)| {
            RawVideo::new(sampling, depth, width, height).ok()?.with_scan(scan).ok()
        },
    )
}

proptest! {
    #[test]
    fn frames_are_received_as_they_were_sent(
        video in videos(),
        room in 0_usize..200,
        octets in prop::collection::vec(any::<u8>(), 1..50),
        order in prop::collection::vec(any::<u16>(), 0..60),
    ) {
        let format = Raw::new(video);
        let (mut packetiser, mut listener) = (format.packetiser(), listener(&format, false));
        let limit = 8 + video.pgroup().octets + room;
        let mut frames = Vec::new();
        for time in 0..3_usize {
            let frame: Vec<u8> =
                octets.iter().cycle().skip(time).take(video.frame_len()).copied().collect();
            let mut sent = send(packetiser.as_mut(), &frame, limit);
            let octets: usize = sent.iter().map(|it| it.octets.len()).sum();
            prop_assert!(octets >= frame.len());
            // All but the packet with the marker bit in another order.
            let last = sent.len() - 1;
            for (n, place) in order.iter().enumerate().take(last) {
                sent[..last].swap(n, usize::from(*place) % last);
            }
            for packet in sent {
                listener.take(&packet.octets, time as u32, packet.marker).unwrap();
            }
            frames.push(frame);
        }
        prop_assert_eq!(listener.frames(), frames);
    }

    #[test]
    fn a_frame_is_whole_exactly_if_all_its_packets_arrived(
        video in videos(),
        missing in prop::collection::vec(any::<bool>(), 50),
    ) {
        let format = Raw::new(video);
        let frame = vec![3; video.frame_len()];
        let sent = send(format.packetiser().as_mut(), &frame, 60);
        let mut listener = listener(&format, true);
        let mut expected = vec![false; frame.len()];
        for (packet, lacks) in sent.iter().zip(missing.iter().chain(std::iter::repeat(&false))) {
            if *lacks {
                listener.lose(1);
                expected[packet.ranges[0].clone()].fill(true);
            } else {
                listener.take(&packet.octets, 1, packet.marker).unwrap();
            }
        }
        listener.finish();
        let frame = listener.pop();
        let lacking = expected.iter().filter(|lacks| **lacks).count();
        prop_assert_eq!(frame.is_some(), 2 * lacking <= expected.len());
        let Some(frame) = frame else { return Ok(()) };
        let mut lacks = vec![false; frame.len()];
        frame.missing().iter().for_each(|range| lacks[range.clone()].fill(true));
        prop_assert_eq!(lacks, expected);
        prop_assert!(frame.iter().zip(&expected_octets(&frame)).all(|(a, b)| a == b));
    }

    #[test]
    fn no_octets_break_it(
        video in videos(),
        payloads in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..40), 0_u32..3, any::<bool>()), 0..50,
        ),
        parts in prop::collection::vec((0_u16..60, 0_u16..30, 0_u16..60), 1..5),
    ) {
        let mut listener = listener(&Raw::new(video), true);
        for (octets, timestamp, marker) in &payloads {
            let _ = listener.take(octets, *timestamp, *marker);
            let _ = listener.take(&payload(&parts), *timestamp, *marker);
            for (len, line, offset) in &parts {
                let second = u16::from(*marker) << 15;
                let _ = listener.take(&payload(&[(*len, line | second, *offset)]), *timestamp, false);
            }
        }
        listener.finish();
        while let Some(frame) = listener.pop() {
            prop_assert_eq!(frame.len(), video.frame_len());
        }
        prop_assert!(listener.held() <= 2 * video.frame_len() + 1000);
    }
}

/// Returns what an incomplete frame of the octet 3 contains.
fn expected_octets(frame: &super::super::frame::Frame) -> Vec<u8> {
    let mut octets = vec![3; frame.len()];
    frame.missing().iter().for_each(|range| octets[range.clone()].fill(0));
    octets
}
