//! Every instruction set produces the same bytes as the portable code.

use proptest::collection::vec;
use proptest::prelude::{any, prop_oneof};
use proptest::strategy::{Just, Strategy};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rushes_texture::InstructionSet;
use rushes_texture::rows::{
    DECODE_BC1, DECODE_BC3, DECODE_ETC1, DECODE_ETC2, DECODE_YCOCG_BC3, Decode, ENCODE_BC1,
    ENCODE_BC1_HIGH, ENCODE_BC3, ENCODE_BC3_HIGH, ENCODE_YCOCG_BC3, ENCODE_YCOCG_BC3_HIGH, Encode,
};

const ENCODERS: [(&str, Encode, usize); 6] = [
    ("BC1", ENCODE_BC1, 8),
    ("BC3", ENCODE_BC3, 16),
    ("YCoCg-BC3", ENCODE_YCOCG_BC3, 16),
    ("refined BC1", ENCODE_BC1_HIGH, 8),
    ("refined BC3", ENCODE_BC3_HIGH, 16),
    ("refined YCoCg-BC3", ENCODE_YCOCG_BC3_HIGH, 16),
];

const DECODERS: [(&str, Decode, usize); 5] = [
    ("BC1", DECODE_BC1, 8),
    ("BC3", DECODE_BC3, 16),
    ("YCoCg-BC3", DECODE_YCOCG_BC3, 16),
    ("ETC1", DECODE_ETC1, 8),
    ("ETC2", DECODE_ETC2, 8),
];

/// Deterministic pseudo-random bytes.
struct Noise(u64);

impl Noise {
    fn octet(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u8
    }
}

/// Returns four rows whose bytes are `octet` of column, row and channel.
fn rows(blocks: usize, mut octet: impl FnMut(usize, usize, usize) -> u8) -> Vec<u8> {
    (0..blocks * 64).map(|n| octet(n % (blocks * 16) / 4, n / (blocks * 16), n % 4)).collect()
}

/// Returns the instruction sets of this processor that have vector code.
fn vectors() -> impl Iterator<Item = InstructionSet> {
    let portable = InstructionSet::Portable;
    InstructionSet::ALL.into_iter().filter(move |&set| set != portable && set.available())
}

fn assert_all_equal(rgba: &[u8], blocks: usize) {
    for (name, encode, size) in ENCODERS {
        let mut expected = vec![0; blocks * size];
        encode(InstructionSet::Portable, rgba, blocks * 16, blocks, &mut expected);
        for set in vectors() {
            let mut found = vec![0; blocks * size];
            encode(set, rgba, blocks * 16, blocks, &mut found);
            for (n, (found, expected)) in found.chunks(size).zip(expected.chunks(size)).enumerate()
            {
                let pixels = [0, 1, 2, 3].map(|row| &rgba[(row * blocks + n) * 16..][..16]);
                assert_eq!(found, expected, "{name}, {set:?}, block {n}: {pixels:?}");
            }
        }
    }
}

#[test]
fn noise_of_every_contrast_is_encoded_alike() {
    let mut noise = Noise(0x1234_5678_9abc_def1);
    for contrast in 0..8 {
        for base in [0, 1, 90, 128, 200, 255_u8] {
            let rgba = rows(512, |_, _, _| base.saturating_add(noise.octet() >> contrast));
            assert_all_equal(&rgba, 512);
            let rgba = rows(512, |_, _, _| base.saturating_sub(noise.octet() >> contrast));
            assert_all_equal(&rgba, 512);
        }
    }
}

#[test]
fn noise_around_a_colour_of_each_block_is_encoded_alike() {
    let mut noise = Noise(0xfeed_beef_1234_5671);
    for contrast in 1..8 {
        let colours: Vec<[u8; 4]> = (0..2048).map(|_| [0; 4].map(|_| noise.octet())).collect();
        let rgba = rows(2048, |x, _, channel| {
            colours[x / 4][channel].saturating_add(noise.octet() >> contrast)
        });
        assert_all_equal(&rgba, 2048);
    }
}

#[test]
fn flat_blocks_are_encoded_alike() {
    let mut noise = Noise(0xabcd_ef01_2345_6789);
    let colours: Vec<[u8; 4]> = (0..4096).map(|_| [0; 4].map(|_| noise.octet())).collect();
    assert_all_equal(&rows(4096, |x, _, channel| colours[x / 4][channel]), 4096);
    assert_all_equal(&rows(256, |x, _, _| (x / 4) as u8), 256);
}

#[test]
fn gradients_are_encoded_alike() {
    for step in 1..24 {
        let rgba = rows(128, |x, y, channel| {
            let along = (x * step + y * 3) / 4;
            [along, 255 - along % 256, 2 * along, 5 * y * step][channel] as u8
        });
        assert_all_equal(&rgba, 128);
    }
}

#[test]
fn colours_from_the_corners_of_the_cube_are_encoded_alike() {
    let mut noise = Noise(0x0bad_cafe_dead_beef);
    for dark in [0, 127, 254] {
        let rgba = rows(8192, |_, _, _| if noise.octet() & 16 == 0 { dark } else { 255 });
        assert_all_equal(&rgba, 8192);
    }
    let corners: Vec<[u8; 32]> = (0..8192).map(|_| [0; 32].map(|_| noise.octet())).collect();
    let rgba = rows(8192, |x, y, channel| {
        let pick = usize::from(corners[x / 4][16 + y * 4 + x % 4] & 1);
        if corners[x / 4][pick * 4 + channel] & 1 == 0 { 0 } else { 255 }
    });
    assert_all_equal(&rgba, 8192);
}

#[test]
fn any_number_of_blocks_in_rows_at_any_distance_is_encoded_alike() {
    let mut noise = Noise(0x5555_1234_aaaa_4321);
    for blocks in 0..40 {
        for stride in [blocks * 16, blocks * 16 + 1, 1000] {
            let rgba: Vec<_> = (0..3 * stride + blocks * 16).map(|_| noise.octet()).collect();
            for (name, encode, size) in ENCODERS {
                let encoded = InstructionSet::ALL.map(|set| {
                    let mut out = vec![0x77; blocks * size + 3];
                    encode(set, &rgba, stride, blocks, &mut out);
                    out
                });
                assert!(encoded.iter().all(|found| *found == encoded[0]), "{name}, {blocks}");
                assert_eq!(encoded[0][blocks * size..], [0x77; 3], "{name}, {blocks}");
            }
        }
    }
}

#[test]
fn too_few_pixels_or_too_little_room_leave_the_output_alone() {
    for (_, encode, size) in ENCODERS {
        for set in InstructionSet::ALL {
            let mut out = vec![9; 8 * size];
            encode(set, &[1; 4 * 128 - 1], 128, 8, &mut out);
            encode(set, &[1; 4 * 128], 128, 8, &mut out[..8 * size - 1]);
            assert_eq!(out, vec![9; 8 * size]);
        }
    }
}

#[test]
fn blocks_of_any_few_colours_are_encoded_alike() {
    let octet = prop_oneof![any::<u8>(), Just(0), Just(255), 120..136_u8];
    let colours = vec(vec(octet, 4), 1..5);
    let blocks = vec((colours, vec(any::<usize>(), 16)), 8);
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 10_000, failure_persistence: None, ..Config::default() },
        TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]),
    );
    let rgba = blocks.prop_map(|blocks| {
        rows(8, |x, y, channel| {
            let (colours, picks) = &blocks[x / 4];
            colours[picks[y * 4 + x % 4] % colours.len()][channel]
        })
    });
    let checked = runner.run(&rgba, |rgba| {
        assert_all_equal(&rgba, 8);
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn any_number_of_blocks_to_rows_at_any_distance_is_decoded_alike() {
    let mut noise = Noise(0x1357_9bdf_2468_ace1);
    for (name, decode, size) in DECODERS {
        for blocks in (0..70).chain([127, 128, 129, 200]) {
            for stride in [blocks * 16, blocks * 16 + 5] {
                let octets: Vec<_> = (0..blocks * size).map(|_| noise.octet()).collect();
                let decoded = InstructionSet::ALL.map(|set| {
                    let mut rgba = vec![0x77; 3 * stride + blocks * 16 + 3];
                    decode(set, &octets, &mut rgba, stride);
                    rgba
                });
                // One block at a time, all of them in a row.
                let mut single = vec![0x77; decoded[0].len()];
                for (at, block) in octets.chunks(size).enumerate() {
                    let mut rgba = [0; 64];
                    decode(InstructionSet::Portable, block, &mut rgba, 16);
                    for (row, pixels) in rgba.chunks(16).enumerate() {
                        single[row * stride + at * 16..][..16].copy_from_slice(pixels);
                    }
                }
                assert!(decoded.iter().all(|it| *it == single), "{name}, {blocks}, {stride}");
            }
        }
    }
}
