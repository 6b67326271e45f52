//! BC3 with vectors of any length, in the same integer arithmetic as `portable`.

/// Defines the kernel for the vectors whose operations are in scope.
macro_rules! kernel {
    ($features:literal) => {
        /// Encodes whole pairs of vectors; the remaining blocks are not encoded.
        #[target_feature(enable = $features)]
        pub(crate) fn encode(strip: Strip<'_>, out: &mut [u8]) {
            let [a, b, c, d] = strip.map(|row| row.as_chunks().0);
            let pairs = out.as_chunks_mut::<WIDTH>().0.as_chunks_mut::<2>().0;
            for ((((a, b), c), d), out) in a.iter().zip(b).zip(c).zip(d).zip(pairs) {
                let [left, right] = blocks(rows([a, b, c, d]));
                store(&mut out[0], left);
                store(&mut out[1], right);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn blocks([left, right]: [[Vector; 4]; 2]) -> [Vector; 2] {
            const N: u8 = ZERO_LANE;
            let [left_alpha, right_alpha] = [alpha(&left), alpha(&right)];
            let folds = [folded(left_alpha, left_alpha), folded(right_alpha, right_alpha)];
            let [alphas, scale] = channel_ends::<0>(gathered(folds[0], folds[1]));
            let ends = ends(&left, &right);
            let heads = or(alphas, slli_epi32::<16>(ends.colours));

            let last = lanes([N, N, N, N, N, N, N, N, N, N, N, N, 0, 4, 8, 12]);
            let head = lanes([4, 0, N, N, N, N, N, N, 6, 7, 2, 3, N, N, N, N]);
            let indices = shuffle_epi8(left_indices(&left, &ends), last);
            let levels_left = levels(left_alpha, repeat(alphas, [0, 0]), repeat(scale, [0, 1]));
            let left = or(or(shuffle_epi8(heads, head), codes(levels_left)), indices);

            let head = lanes([12, 8, N, N, N, N, N, N, 14, 15, 10, 11, N, N, N, N]);
            let indices = shuffle_epi8(right_indices(&right, &ends), last);
            let levels_right = levels(right_alpha, repeat(alphas, [8, 8]), repeat(scale, [8, 9]));
            [left, or(or(shuffle_epi8(heads, head), codes(levels_right)), indices)]
        }

        /// Gathers the sixteen alphas of each block.
        #[inline]
        #[target_feature(enable = $features)]
        fn alpha(&[a, b, c, d]: &[Vector; 4]) -> Vector {
            const N: u8 = ZERO_LANE;
            let last = lanes([N, N, N, N, N, N, N, N, N, N, N, N, 3, 7, 11, 15]);
            let [a, b] = [shuffle_epi8(a, last), shuffle_epi8(b, last)];
            let [c, d] = [shuffle_epi8(c, last), shuffle_epi8(d, last)];
            unpackhi_epi64(unpackhi_epi32(a, b), unpackhi_epi32(c, d))
        }
    };
}
