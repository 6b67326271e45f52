//! Operations that the vector kernels share.
//!
//! A lane of 128 bits belongs to one block and holds either one row of it or its sixteen values.
//! Kernels are written once, as macros, over operations that have the same names for each vector
//! length.
//!
//! Values that a block has once or twice are gathered from two vectors, left and right, into one. A
//! lane then holds 32 bits each for the lesser and the greater end of the left block, then of the
//! right one. While the ends are being determined, the greater end is kept as its complement, so
//! that a single minimum finds both ends.

/// Defines the functions that are the same for all vector lengths.
macro_rules! shared {
    ($features:literal) => {
        /// The shuffle index that yields zero.
        pub(in crate::encode) const ZERO_LANE: u8 = 0x80;

        /// Returns the complement.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn not(vector: Vector) -> Vector {
            xor(vector, set1_epi8(-1))
        }

        /// Returns a mask of the greater ends.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn greater() -> Vector {
            lanes([0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 255])
        }

        /// Exchanges lesser and greater ends.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn swap(ends: Vector) -> Vector {
            shuffle_epi32::<0b10_11_00_01>(ends)
        }

        /// Fills each lane with the same two of its bytes.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn repeat(vector: Vector, [a, b]: [u8; 2]) -> Vector {
            shuffle_epi8(vector, lanes([a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b]))
        }

        /// Loads four rows that are as wide as two vectors, left and right.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn rows(strip: [&[u8; 2 * WIDTH]; 4]) -> [[Vector; 4]; 2] {
            let mut sides = [[set1_epi8(0); 4]; 2];
            for (n, row) in strip.into_iter().enumerate() {
                for (side, octets) in sides.iter_mut().zip(row.as_chunks().0) {
                    prefetch(octets.as_ptr().wrapping_add(PREFETCH_DISTANCE));
                    side[n] = load(octets);
                }
            }
            sides
        }

        /// Folds rows towards the ends, to eight bytes of minima and eight of complements of
        /// maxima.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn folded(least: Vector, greatest: Vector) -> Vector {
            let greatest = not(greatest);
            min_epu8(unpacklo_epi64(least, greatest), unpackhi_epi64(least, greatest))
        }

        /// Folds further, to four bytes of minima and four of complements of maxima per block.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn gathered(left: Vector, right: Vector) -> Vector {
            min_epu8(even(left, right), odd(left, right))
        }

        /// Computes the middle between the ends' places and, in the upper 16 bits, a third of their
        /// distance.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn middle_and_third(places: Vector) -> [Vector; 2] {
            let others = swap(places);
            let middle = srai_epi32::<1>(add_epi32(places, others));
            let distance = abs_epi32(sub_epi32(places, others));
            [middle, slli_epi32::<16>(mulhi_epu16(distance, set1_epi32(21_846)))]
        }

        /// Computes the indices of sixteen places relative to the middle, four in the lowest byte
        /// of 32 bits.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn indices(places: [Vector; 2], third: Vector) -> Vector {
            four_in_a_byte(nearest(places, third))
        }

        /// Joins sixteen indices, each in a byte, to four in the lowest byte of 32 bits.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn four_in_a_byte(indices: Vector) -> Vector {
            dpbusd_epi32(set1_epi32(0), indices, set1_epi32(0x4010_0401))
        }

        /// Computes the indices of sixteen places relative to the middle, each in a byte.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn nearest([upper, lower]: [Vector; 2], third: Vector) -> Vector {
            let inner = packs_epi16(
                cmpgt_epi16(third, abs_epi16(upper)),
                cmpgt_epi16(third, abs_epi16(lower)),
            );
            let beyond = and(srli_epi16::<7>(packs_epi16(upper, lower)), set1_epi8(1));
            or(beyond, and(inner, set1_epi8(2)))
        }

        /// Computes the ends of one channel and its levels per step, for BC4.
        ///
        /// The four bytes of each end in `ends` are folded into its lowest byte.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn channel_ends<const INSET: i32>(ends: Vector) -> [Vector; 2] {
            let octet = set1_epi32(0xff);
            let ends = min_epu8(ends, srli_epi32::<16>(ends));
            let ends = and(min_epu8(ends, srli_epi32::<8>(ends)), octet);
            let range = sub_epi32(octet, add_epi32(ends, swap(ends)));
            let inset = if INSET == 5 { srli_epi32::<5>(range) } else { set1_epi32(0) };
            let range = sub_epi32(range, add_epi32(inset, inset));
            let range = cvtepi32_ps(max_epi16(range, set1_epi32(1)));
            let scale = cvttps_epi32(add_ps(div_ps(set1_ps(57_344.0), range), set1_ps(0.5)));
            [xor(add_epi32(ends, inset), and(greater(), octet)), scale]
        }

        /// Computes the levels of sixteen values, from 0 to 7.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn levels(values: Vector, least: Vector, scale: Vector) -> Vector {
            let above = subs_epu8(values, least);
            let zero = set1_epi8(0);
            let levels = packus_epi16(
                mulhi_epu16(unpacklo_epi8(zero, above), scale),
                mulhi_epu16(unpackhi_epi8(zero, above), scale),
            );
            and(srli_epi16::<5>(add_epi8(levels, set1_epi8(16))), set1_epi8(7))
        }

        /// Computes the codes of sixteen levels, in bytes 2 to 7 of a lane.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn codes(levels: Vector) -> Vector {
            const N: u8 = ZERO_LANE;
            let table = lanes([1, 7, 6, 5, 4, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let codes = shuffle_epi8(table, levels);
            let codes = maddubs_epi16(codes, set1_epi16(0x0801));
            let codes = madd_epi16(codes, set1_epi32(0x0040_0001));
            let codes = or(codes, srli_epi64::<20>(codes));
            shuffle_epi8(codes, lanes([N, N, 0, 1, 2, 8, 9, 10, N, N, N, N, N, N, N, N]))
        }
    };
}

/// Prefetch distance ahead of loads, in bytes.
///
/// The hardware prefetcher is too late for four rows at once: at 2160p, the encoders are a fifth to
/// a third slower without this. Distances from 512 to 4096 are equally fast.
const PREFETCH_DISTANCE: usize = 1024;

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;
