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
            /// The channels that fall while the others rise: their complements are encoded.
            falls: Vector,
            /// In the greater end's place, what is changed of four indices.
            exchanged: Vector,
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
            let corners = xor(ends, greater());
            let falls = falling(left, right, not(avg_epu8(corners, swap(corners))));
            let range = not(add_epi8(ends, swap(ends)));
            let eighth = and(srli_epi16::<3>(range), set1_epi8(0x1f));
            let inset = add_epi8(eighth, and(srli_epi16::<6>(range), set1_epi8(0x03)));
            let ends = add_epi8(ends, avg_epu8(inset, set1_epi8(0)));
            // The complement of the one end of a channel is the other end of its complement.
            let ends = xor(ends, and(xor(ends, swap(ends)), falls));
            let ends = xor(ends, greater());

            let red_blue = and(ends, set1_epi32(0x00ff_00ff));
            let red_blue = mullo_epi16(red_blue, set1_epi16(249));
            let red_blue = srli_epi16::<11>(add_epi16(red_blue, set1_epi16(1014)));
            let green = and(srli_epi32::<8>(ends), set1_epi32(0xff));
            let green = mullo_epi16(green, set1_epi16(253));
            let green = srli_epi16::<10>(add_epi16(green, set1_epi16(505)));
            let packed = madd_epi16(red_blue, set1_epi32(0x0001_0800));
            let colours = or(packed, slli_epi32::<5>(green));
            let [colours, exchanged] = in_order(colours, falls);

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
            Ends { colours, weights, limits: or(middle, third), falls, exchanged }
        }

        /// Finds the channels that fall while the others rise, as masks; `middles` are complements.
        #[inline]
        #[target_feature(enable = $features)]
        fn falling(left: &[Vector; 4], right: &[Vector; 4], middles: Vector) -> Vector {
            const N: u8 = ZERO_LANE;
            let left = differing(left, shuffle_epi32::<0b00_00_00_00>(middles));
            let right = differing(right, shuffle_epi32::<0b10_10_10_10>(middles));
            let halves = add_epi8(even(left, right), odd(left, right));
            let differ = add_epi8(halves, swap(halves));
            // The sums of the three agreements that are counted, each two, around 128.
            let most = set1_epi32(64 << 24 | (64 + 34) << 16 | (64 + 33) << 8 | (64 + 32));
            let agree = sub_epi8(most, slli_epi16::<2>(differ));
            let next = lanes([1, 2, 0, 3, 5, 6, 4, 7, 9, 10, 8, 11, 13, 14, 12, 15]);
            let sums = add_epi8(agree, shuffle_epi8(agree, next));
            let least = min_epu8(sums, or(srli_epi32::<16>(sums), slli_epi32::<16>(sums)));
            let byte = lanes([1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]);
            let least = min_epu8(least, shuffle_epi8(least, byte));
            let chosen = cmpeq_epi8(sums, least);
            let both = lanes([0, N, 0, N, 4, N, 4, N, 8, N, 8, N, 12, N, 12, N]);
            let alone = lanes([2, N, 1, N, 6, N, 5, N, 10, N, 9, N, 14, N, 13, N]);
            or(shuffle_epi8(chosen, both), shuffle_epi8(chosen, alone))
        }

        /// Counts, for each column, the pixels of which two channels are on different sides of
        /// their middles: red and green, green and blue, blue and red.
        #[inline]
        #[target_feature(enable = $features)]
        fn differing(&[a, b, c, d]: &[Vector; 4], middles: Vector) -> Vector {
            let top = set1_epi8(-0x80);
            let [a, b] = [and(avg_epu8(a, middles), top), and(avg_epu8(b, middles), top)];
            let [c, d] = [and(avg_epu8(c, middles), top), and(avg_epu8(d, middles), top)];
            let upper = or(a, srli_epi16::<1>(b));
            let lower = or(srli_epi16::<2>(c), srli_epi16::<3>(d));
            let sides = srli_epi16::<4>(or(upper, lower));
            let next = lanes([1, 2, 0, 3, 5, 6, 4, 7, 9, 10, 8, 11, 13, 14, 12, 15]);
            let differ = xor(sides, shuffle_epi8(sides, next));
            let ones = lanes([0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4]);
            shuffle_epi8(ones, differ)
        }

        /// Takes the complements back, and puts the greater colour first: blocks whose first colour
        /// is the lesser have only three.
        #[inline]
        #[target_feature(enable = $features)]
        fn in_order(colours: Vector, falls: Vector) -> [Vector; 2] {
            let fields = and(falls, set1_epi32(0x001f_00f8));
            let fields = or(slli_epi32::<8>(fields), srli_epi32::<16>(fields));
            let colours = xor(colours, and(fields, set1_epi32(0xffff)));
            let others = swap(colours);
            let exchanged = and(cmpgt_epi32(others, colours), set1_epi32(0x55));
            let greatest = and(max_epu16(colours, others), greater());
            let least = min_epu16(colours, others);
            let least = and(least, not(greater()));
            [or(greatest, least), exchanged]
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
            let rows = rising(rows, shuffle_epi32::<0b00_00_00_00>(ends.falls));
            let weights = shuffle_epi32::<0b00_00_00_00>(ends.weights);
            let (middle, third) = (repeat(ends.limits, [0, 1]), repeat(ends.limits, [2, 3]));
            let exchanged = shuffle_epi32::<0b01_01_01_01>(ends.exchanged);
            xor(row_indices(&rows, weights, middle, third), exchanged)
        }

        /// Computes the indices of the right vector's pixels.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn right_indices(rows: &[Vector; 4], ends: &Ends) -> Vector {
            let rows = rising(rows, shuffle_epi32::<0b10_10_10_10>(ends.falls));
            let weights = shuffle_epi32::<0b10_10_10_10>(ends.weights);
            let (middle, third) = (repeat(ends.limits, [8, 9]), repeat(ends.limits, [10, 11]));
            let exchanged = shuffle_epi32::<0b11_11_11_11>(ends.exchanged);
            xor(row_indices(&rows, weights, middle, third), exchanged)
        }

        /// Complements the channels that fall.
        #[inline]
        #[target_feature(enable = $features)]
        fn rising(&[a, b, c, d]: &[Vector; 4], falls: Vector) -> [Vector; 4] {
            [xor(a, falls), xor(b, falls), xor(c, falls), xor(d, falls)]
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
