//! BC1 with vectors of any length, in the same integer arithmetic as `portable`.

/// Defines the kernel for the vectors whose operations are in scope.
macro_rules! kernel {
    ($features:literal) => {
        /// Values that each block of two vectors has once, or once for each end.
        pub(in crate::encode) struct Ends {
            /// The quantised colours, packed.
            pub(in crate::encode) colours: Vector,
            /// The direction of the line, with a byte for each channel.
            pub(in crate::encode) weights: Vector,
            /// The line's middle and, in the upper 16 bits, a third of its length.
            pub(in crate::encode) limits: Vector,
        }

        /// Encodes whole pairs of vectors; the remaining blocks are not encoded.
        #[target_feature(enable = $features)]
        pub(crate) fn encode(strip: Strip<'_>, out: &mut [u8]) {
            let [a, b, c, d] = strip.map(|row| row.as_chunks().0);
            for ((((a, b), c), d), out) in a.iter().zip(b).zip(c).zip(d).zip(out.as_chunks_mut().0)
            {
                store(out, blocks(rows([a, b, c, d])));
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn blocks([left, right]: [[Vector; 4]; 2]) -> Vector {
            const N: u8 = ZERO_LANE;
            let ends = ends(&left, &right);
            let indices = packus_epi32(left_indices(&left, &ends), right_indices(&right, &ends));
            let order = lanes([N, N, N, N, 0, 2, 4, 6, N, N, N, N, 8, 10, 12, 14]);
            let indices = shuffle_epi8(indices, order);
            let order = lanes([4, 5, 0, 1, N, N, N, N, 12, 13, 8, 9, N, N, N, N]);
            halves_apart(or(shuffle_epi8(ends.colours, order), indices))
        }

        /// Finds the corners of the bounding boxes of two vectors' colours, and the lines between
        /// them.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn ends(left: &[Vector; 4], right: &[Vector; 4]) -> Ends {
            let ends = gathered(rows_folded(left), rows_folded(right));
            let range = not(add_epi8(ends, swap(ends)));
            let inset = and(srli_epi16::<4>(range), set1_epi8(0x0f));
            let ends = xor(add_epi8(ends, inset), greater());

            let red_blue = and(ends, set1_epi32(0x00ff_00ff));
            let red_blue = mullo_epi16(red_blue, set1_epi16(249));
            let red_blue = srli_epi16::<11>(add_epi16(red_blue, set1_epi16(1014)));
            let green = and(srli_epi32::<8>(ends), set1_epi32(0xff));
            let green = mullo_epi16(green, set1_epi16(253));
            let green = srli_epi16::<10>(add_epi16(green, set1_epi16(505)));
            let packed = madd_epi16(red_blue, set1_epi32(0x0001_0800));
            let colours = or(packed, slli_epi32::<5>(green));

            let red_blue_weight = abs_epi16(sub_epi16(red_blue, swap(red_blue)));
            let red_blue_weight = add_epi16(red_blue_weight, red_blue_weight);
            let green_weight = abs_epi16(sub_epi16(green, swap(green)));
            let weights = or(red_blue_weight, slli_epi32::<8>(green_weight));

            let red_blue = mullo_epi16(red_blue, set1_epi16(527));
            let red_blue = srli_epi16::<6>(add_epi16(red_blue, set1_epi16(23)));
            let green = mullo_epi16(green, set1_epi16(259));
            let green = srli_epi16::<6>(add_epi16(green, set1_epi16(33)));
            let red_blue = madd_epi16(red_blue, red_blue_weight);
            let places = add_epi32(red_blue, madd_epi16(green, green_weight));
            let [middle, third] = middle_and_third(places);
            Ends { colours, weights, limits: or(middle, third) }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn rows_folded(&[a, b, c, d]: &[Vector; 4]) -> Vector {
            let least = min_epu8(min_epu8(a, b), min_epu8(c, d));
            folded(least, max_epu8(max_epu8(a, b), max_epu8(c, d)))
        }

        /// Computes the indices of the left vector's pixels: those of each block row are the lowest
        /// byte of 32 bits.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn left_indices(rows: &[Vector; 4], ends: &Ends) -> Vector {
            let weights = shuffle_epi32::<0b00_00_00_00>(ends.weights);
            row_indices(rows, weights, repeat(ends.limits, [0, 1]), repeat(ends.limits, [2, 3]))
        }

        /// Computes the indices of the right vector's pixels.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn right_indices(rows: &[Vector; 4], ends: &Ends) -> Vector {
            let weights = shuffle_epi32::<0b10_10_10_10>(ends.weights);
            row_indices(rows, weights, repeat(ends.limits, [8, 9]), repeat(ends.limits, [10, 11]))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn row_indices(
            &[a, b, c, d]: &[Vector; 4],
            weights: Vector,
            middle: Vector,
            third: Vector,
        ) -> Vector {
            let one = set1_epi16(1);
            let [a, b] = [maddubs_epi16(a, weights), maddubs_epi16(b, weights)];
            let [c, d] = [maddubs_epi16(c, weights), maddubs_epi16(d, weights)];
            let upper = packus_epi32(madd_epi16(a, one), madd_epi16(b, one));
            let lower = packus_epi32(madd_epi16(c, one), madd_epi16(d, one));
            indices([sub_epi16(upper, middle), sub_epi16(lower, middle)], third)
        }
    };
}
