//! KTX 2.0 files: an independent crate reads what we write, and we read it back.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::io::Cursor;

use rushes_texture::file::{FileError, FrameReader, Ktx2Error, Ktx2Reader, Ktx2Writer};
use rushes_texture::{Format, Layout, Rate};

fn written(layout: Layout, frames: u8) -> Vec<u8> {
    let rate = Rate::new(60_000, 1001).unwrap();
    let mut writer = Ktx2Writer::new(Cursor::new(Vec::new()), layout, rate).unwrap();
    for frame in 0..frames {
        writer.write(&vec![frame + 1; layout.bytes()]).unwrap();
    }
    writer.into_inner().unwrap().into_inner()
}

fn of_one_plane() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| format.planes().len() == 1)
}

fn error(bytes: Vec<u8>) -> Ktx2Error {
    match Ktx2Reader::new(Cursor::new(bytes)).map(|_| ()).unwrap_err() {
        FileError::Ktx2(error) => error,
        error => panic!("{error}"),
    }
}

/// Returns a file with one changed word in its header.
fn with_word(at: usize, word: u32) -> Vec<u8> {
    let mut bytes = written(Layout::new(Format::Bc1, 30, 26).unwrap(), 2);
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    bytes
}

#[test]
fn frames_of_every_format_of_one_plane_and_odd_size_are_read_as_written() {
    for format in of_one_plane() {
        for (width, height) in [(1, 1), (30, 26), (191, 107)] {
            let layout = Layout::new(format, width, height).unwrap();
            let mut reader = Ktx2Reader::new(Cursor::new(written(layout, 3))).unwrap();
            assert_eq!(*reader.layout(), layout);
            assert_eq!(reader.rate(), Rate::new(60_000, 1001).unwrap());
            assert_eq!(reader.length(), Some(3));
            let mut frame = Vec::new();
            for round in 0..2 {
                for number in 1..=3 {
                    assert!(reader.read_frame(&mut frame).unwrap(), "{format} {round}");
                    assert_eq!(frame, vec![number; layout.bytes()]);
                }
                assert!(!reader.read_frame(&mut frame).unwrap());
                reader.rewind().unwrap();
            }
        }
    }
}

#[test]
fn another_reader_agrees_with_every_field() {
    for format in of_one_plane() {
        let layout = Layout::new(format, 30, 26).unwrap();
        let bytes = written(layout, 2);
        let reader = ktx2::Reader::new(&bytes).unwrap();
        let header = reader.header();
        assert_eq!((header.pixel_width, header.pixel_height, header.pixel_depth), (30, 26, 0));
        assert_eq!((header.layer_count, header.face_count, header.level_count), (2, 1, 1));
        assert!(header.format.is_some() && header.supercompression_scheme.is_none(), "{format}");
        let level = reader.levels().next().unwrap();
        assert_eq!(level.data.len(), 2 * layout.bytes());
        assert_eq!(level.data[layout.bytes()..], vec![2; layout.bytes()]);
        let block = format.planes()[0].block;
        assert_eq!((level.data.as_ptr() as usize - bytes.as_ptr() as usize) % block.bytes, 0);
        let keys: Vec<_> = reader.key_value_data().collect();
        let mut names: Vec<_> = keys.iter().map(|(key, _)| *key).collect();
        assert_eq!(names, ["KTXanimData", "KTXorientation", "KTXwriter", "RushesFormat"]);
        names.sort_unstable();
        assert_eq!(keys[0].1, [0xE9, 3, 0, 0, 0x60, 0xEA, 0, 0, 0, 0, 0, 0]);
        assert_eq!(keys[3].1, format!("{format}\0").as_bytes());
        let basic = reader.basic_dfd().unwrap();
        assert_eq!(basic.bytes_planes[0] as usize, block.bytes, "{format}");
        let sides = basic.texel_block_dimensions;
        assert_eq!(
            (u32::from(sides[0].get()), u32::from(sides[1].get())),
            (block.width, block.height)
        );
        let bits: u32 =
            basic.sample_information.iter().map(|it| u32::from(it.bit_length.get())).sum();
        assert_eq!(bits as usize, 8 * block.bytes, "{format}");
    }
}

#[test]
fn a_single_frame_is_no_array_and_has_no_animation() {
    let layout = Layout::new(Format::Rgb565, 30, 26).unwrap();
    let bytes = written(layout, 1);
    let reader = ktx2::Reader::new(&bytes).unwrap();
    assert_eq!(reader.header().layer_count, 0);
    let names: Vec<_> = reader.key_value_data().map(|(key, _)| key).collect();
    assert_eq!(names, ["FramePeriod", "KTXorientation", "KTXwriter", "RushesFormat"]);
    assert!(names.is_sorted());
    let mut reader = Ktx2Reader::new(Cursor::new(bytes)).unwrap();
    assert_eq!((*reader.layout(), reader.length()), (layout, Some(1)));
    assert_eq!(reader.rate(), Rate::new(60_000, 1001).unwrap());
    let mut frame = Vec::new();
    assert!(reader.read_frame(&mut frame).unwrap());
    assert_eq!(frame, vec![1; layout.bytes()]);
    assert!(!reader.read_frame(&mut frame).unwrap());
}

#[test]
fn a_file_without_our_key_has_the_format_of_its_vulkan_number() {
    let layout = Layout::new(Format::YCoCgBc3, 30, 26).unwrap();
    let mut bytes = written(layout, 1);
    let at = bytes.windows(12).position(|it| it == b"RushesFormat").unwrap();
    bytes[at] = b'r';
    let reader = Ktx2Reader::new(Cursor::new(bytes)).unwrap();
    assert_eq!(reader.layout().format(), Format::Bc3);
}

#[test]
fn the_error_names_the_defect() {
    assert_eq!(error(Vec::new()), Ktx2Error::Magic);
    assert_eq!(error(vec![0; 500]), Ktx2Error::Magic);
    assert_eq!(error(with_word(0, 0)), Ktx2Error::Magic);
    assert_eq!(error(with_word(0, 0x584B_54AB)[..60].to_vec()), Ktx2Error::Magic);
    assert_eq!(error(with_word(12, 132)[..60].to_vec()), Ktx2Error::Header);
    assert_eq!(error(with_word(12, 0)), Ktx2Error::VkFormat(0));
    let name = "bc1".to_owned();
    assert_eq!(error(with_word(12, 138)), Ktx2Error::Format { name, vk_format: 138 });
    for (field, at, value) in
        [("supercompressionScheme", 44, 2), ("faceCount", 36, 6), ("pixelDepth", 28, 4)]
    {
        assert_eq!(error(with_word(at, value)), Ktx2Error::Field { field, value });
    }
    assert_eq!(error(with_word(56, u32::MAX)), Ktx2Error::Keys(u64::from(u32::MAX)));
    assert!(matches!(error(with_word(60, 65_537)), Ktx2Error::Keys(_)));
    assert!(matches!(error(with_word(60, 21)), Ktx2Error::Keys(_)));
    for (at, word) in [(32, 3), (20, 31_000), (80, 9000), (84, u32::MAX), (88, 1)] {
        assert!(matches!(error(with_word(at, word)), Ktx2Error::Level { .. }), "{at}");
    }
    let mut cut = with_word(12, 132);
    cut.pop();
    assert!(matches!(error(cut), Ktx2Error::Level { .. }));
}

#[test]
fn planes_and_files_without_frames_are_not_written() {
    let rate = Rate::DEFAULT;
    let layout = Layout::new(Format::Yuv420, 4, 4).unwrap();
    let error = Ktx2Writer::new(Cursor::new(Vec::new()), layout, rate).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "KTX 2.0 files cannot contain yuv420 frames");
    let layout = Layout::new(Format::Bc1, 4, 4).unwrap();
    let writer = Ktx2Writer::new(Cursor::new(Vec::new()), layout, rate).unwrap();
    let error = writer.into_inner().map(|_| ()).unwrap_err();
    assert!(matches!(error, FileError::NoFrames("KTX 2.0")));
}
