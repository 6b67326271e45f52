//! Sizes and tilings of frames, compared with tables and worked examples.
#![allow(clippy::unwrap_used, reason = "a test may")]

use proptest::prelude::*;
use rushes_texture::{Format, Layout, Tiling};

/// Returns the bits per pixel of frames of whole blocks.
fn bits(format: Format) -> Option<u64> {
    Some(match format {
        Format::Rgb24 => 24,
        Format::Rgba8 => 32,
        Format::Rgb565 | Format::Yuv422 => 16,
        Format::Yuv420 | Format::YCoCg420 => 12,
        Format::Bc1 | Format::Etc1 | Format::Etc2Rgb => 4,
        Format::Bc3 | Format::YCoCgBc3 | Format::Astc4x4 => 8,
        _ => return None,
    })
}

/// Sizes from 144p to 4320p, with the bytes of RGB24, RGB565, YUV 4:2:0 and BC1.
///
/// 426 and 854 pixels are not whole blocks and take 107 and 214 blocks.
const SIZES: [(u32, u32, [usize; 4]); 9] = [
    (256, 144, [110_592, 73_728, 55_296, 18_432]),
    (426, 240, [306_720, 204_480, 153_360, 51_360]),
    (640, 360, [691_200, 460_800, 345_600, 115_200]),
    (854, 480, [1_229_760, 819_840, 614_880, 205_440]),
    (1_280, 720, [2_764_800, 1_843_200, 1_382_400, 460_800]),
    (1_920, 1_080, [6_220_800, 4_147_200, 3_110_400, 1_036_800]),
    (2_560, 1_440, [11_059_200, 7_372_800, 5_529_600, 1_843_200]),
    (3_840, 2_160, [24_883_200, 16_588_800, 12_441_600, 4_147_200]),
    (7_680, 4_320, [99_532_800, 66_355_200, 49_766_400, 16_588_800]),
];

fn bytes(format: Format, width: u32, height: u32) -> usize {
    Layout::new(format, width, height).unwrap().bytes()
}

#[test]
fn frame_sizes_are_those_of_the_table() {
    let formats = [Format::Rgb24, Format::Rgb565, Format::Yuv420, Format::Bc1];
    for (width, height, table) in SIZES {
        assert_eq!(formats.map(|format| bytes(format, width, height)), table, "{width}×{height}");
    }
    assert_eq!(bytes(Format::Bc3, 3_840, 2_160), 8_294_400);
}

#[test]
fn frames_of_whole_blocks_weigh_their_bits_per_pixel() {
    for (width, height, _) in SIZES {
        for format in Format::ALL {
            let Some(bits) = bits(format) else { continue };
            if format.planes()[0].block.width == 4 && width % 4 != 0 {
                continue;
            }
            let want = u64::from(width) * u64::from(height) * bits / 8;
            assert_eq!(bytes(format, width, height) as u64, want, "{format} {width}×{height}");
        }
    }
}

#[test]
fn astc_frames_weigh_16_octets_a_block() {
    for (format, blocks) in [
        (Format::Astc5x4, 384 * 270),
        (Format::Astc5x5, 384 * 216),
        (Format::Astc6x5, 320 * 216),
        (Format::Astc6x6, 320 * 180),
        (Format::Astc8x5, 240 * 216),
        (Format::Astc8x6, 240 * 180),
        (Format::Astc8x8, 240 * 135),
        (Format::Astc10x5, 192 * 216),
        (Format::Astc10x6, 192 * 180),
        (Format::Astc10x8, 192 * 135),
        (Format::Astc10x10, 192 * 108),
        (Format::Astc12x10, 160 * 108),
        (Format::Astc12x12, 160 * 90),
    ] {
        assert_eq!(bytes(format, 1_920, 1_080), blocks * 16, "{format}");
    }
}

#[test]
fn thirty_by_twenty_six_pixels_are_seven_rows_of_eight_blocks_in_three_units() {
    let layout = Layout::new(Format::Bc1, 30, 26).unwrap();
    let plane = layout.planes()[0];
    assert_eq!((plane.blocks, plane.rows, layout.bytes()), (8, 7, 8 * 7 * 8));
    let tiling = Tiling::balanced(&layout, 3);
    let rows: Vec<_> = tiling.tiles().iter().map(|tile| tile.rows.clone()).collect();
    assert_eq!(rows, [0..3, 3..5, 5..7]);
    let bytes: Vec<_> = tiling.tiles().iter().map(|tile| tile.bytes.clone()).collect();
    assert_eq!(bytes, [0..192, 192..320, 320..448]);
}

#[test]
fn units_go_to_planes_by_their_weight() {
    let units = |format, units| {
        let layout = Layout::new(format, 1_920, 1_080).unwrap();
        Tiling::balanced(&layout, units).per_plane().to_vec()
    };
    assert_eq!(units(Format::Yuv420, 6), [4, 1, 1]);
    assert_eq!(units(Format::Yuv420, 12), [8, 2, 2]);
    assert_eq!(units(Format::Yuv422, 4), [2, 1, 1]);
    assert_eq!(units(Format::Yuv422, 8), [4, 2, 2]);
    assert_eq!(units(Format::YCoCg420, 1), [1, 1, 1]);
    assert_eq!(units(Format::Bc3, 16), [16]);
}

#[test]
fn a_plane_of_few_rows_gets_no_more_units_than_rows() {
    let layout = Layout::new(Format::Bc1, 1_920, 9).unwrap();
    assert_eq!(Tiling::balanced(&layout, 16).per_plane(), [3]);
}

proptest! {
    #[test]
    fn tiles_cover_the_frame_in_order_and_differ_by_a_row_at_most(
        number in 1..=Format::ALL.len() as u8, width in 1_u32..4_000, height in 1_u32..4_000, units in 0_usize..100,
    ) {
        let layout = Layout::new(Format::from_number(number).unwrap(), width, height).unwrap();
        let tiling = Tiling::balanced(&layout, units);
        let mut end = 0;
        for tile in tiling.tiles() {
            prop_assert_eq!(tile.bytes.start, end);
            prop_assert_eq!(tile.bytes.clone(), layout.planes()[tile.plane].row_range(&tile.rows));
            prop_assert!(!tile.rows.is_empty());
            end = tile.bytes.end;
        }
        prop_assert_eq!(end, layout.bytes());
        for plane in 0..layout.planes().len() {
            let of_plane = tiling.tiles().iter().filter(|tile| tile.plane == plane);
            let rows: Vec<_> = of_plane.map(|tile| tile.rows.len()).collect();
            prop_assert!(rows.iter().max().unwrap() - rows.iter().min().unwrap() <= 1);
            prop_assert_eq!(rows.len(), usize::from(tiling.per_plane()[plane]));
        }
    }
}
