//! BC1 with vectors of any length, in the same integer arithmetic as `portable`.

/// Defines the kernel for the vectors whose operations are in scope.
macro_rules! kernel {
    ($features:literal) => {
        /// Values that each block of two vectors has once, or once for each end.
        pub(in crate::encode) struct Ends {
            /// The quantised colours, packed.
            pub(in crate::encode) colours: Vector,
            /// The direction of the line from the lesser end, with a signed byte for each channel.
            pub(in crate::encode) weights: Vector,
            /// The place of the line's middle, negative.
            middle: Vector,
            /// In the upper 16 bits, a third of the line's length.
            pub(in crate::encode) third: Vector,
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
            let ends = line(diagonal(&left, &right));
            joined(ends.colours, left_indices(&left, &ends), right_indices(&right, &ends))
        }

        /// Joins colours and indices to blocks of eight bytes.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn joined(colours: Vector, left: Vector, right: Vector) -> Vector {
            const N: u8 = ZERO_LANE;
            let indices = packus_epi32(left, right);
            let order = lanes([N, N, N, N, 0, 2, 4, 6, N, N, N, N, 8, 10, 12, 14]);
            let indices = shuffle_epi8(indices, order);
            let order = lanes([4, 5, 0, 1, N, N, N, N, 12, 13, 8, 9, N, N, N, N]);
            halves_apart(or(shuffle_epi8(colours, order), indices))
        }

        /// Finds the corners of the bounding boxes of two vectors' colours, and the lines between
        /// them.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn ends(left: &[Vector; 4], right: &[Vector; 4]) -> Ends {
            line(diagonal(left, right))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn diagonal(left: &[Vector; 4], right: &[Vector; 4]) -> Vector {
            let ends = gathered(rows_folded(left), rows_folded(right));
            let corners = xor(ends, greater());
            let falls = falling(left, right, not(avg_epu8(corners, swap(corners))));
            let range = not(add_epi8(ends, swap(ends)));
            let eighth = and(srli_epi16::<3>(range), set1_epi8(0x1f));
            let inset = add_epi8(eighth, and(srli_epi16::<6>(range), set1_epi8(0x03)));
            let ends = add_epi8(ends, avg_epu8(inset, set1_epi8(0)));
            let ends = xor(ends, greater());
            xor(ends, and(xor(ends, swap(ends)), falls))
        }

        /// Finds the lines between ends with a byte for each channel.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn line(ends: Vector) -> Ends {
            let red_blue = and(ends, set1_epi32(0x00ff_00ff));
            let red_blue = mullo_epi16(red_blue, set1_epi16(249));
            let red_blue = srli_epi16::<11>(add_epi16(red_blue, set1_epi16(1014)));
            let green = and(srli_epi32::<8>(ends), set1_epi32(0xff));
            let green = mullo_epi16(green, set1_epi16(253));
            let green = srli_epi16::<10>(add_epi16(green, set1_epi16(505)));
            let packed = madd_epi16(red_blue, set1_epi32(0x0001_0800));
            let colours = or(packed, slli_epi32::<5>(green));
            let [colours, exchanged] = in_order(colours);

            let red_blue_weight = difference(red_blue);
            let red_blue_weight = add_epi16(red_blue_weight, red_blue_weight);
            let green_weight = difference(green);
            let octets = and(red_blue_weight, set1_epi32(0x00ff_00ff));
            let weights = or(octets, slli_epi16::<8>(green_weight));

            let red_blue = mullo_epi16(red_blue, set1_epi16(527));
            let red_blue = srli_epi16::<6>(add_epi16(red_blue, set1_epi16(23)));
            let green = mullo_epi16(green, set1_epi16(259));
            let green = srli_epi16::<6>(add_epi16(green, set1_epi16(33)));
            let red_blue = madd_epi16(red_blue, red_blue_weight);
            let places = add_epi32(red_blue, madd_epi16(green, green_weight));
            let [middle, third] = middle_and_third(places);
            let middle = sub_epi32(set1_epi32(0), middle);
            Ends { colours, weights, middle, third, exchanged }
        }

        /// Subtracts the lesser end from the greater one, for both ends.
        #[inline]
        #[target_feature(enable = $features)]
        fn difference(steps: Vector) -> Vector {
            shuffle_epi32::<0b11_11_01_01>(sub_epi16(steps, swap(steps)))
        }

        /// Finds the channels that fall while the others rise, as masks; `middles` are complements.
        #[inline]
        #[target_feature(enable = $features)]
        fn falling(left: &[Vector; 4], right: &[Vector; 4], middles: Vector) -> Vector {
            const N: u8 = ZERO_LANE;
            let left = differing(left, shuffle_epi32::<0b00_00_00_00>(middles));
            let right = differing(right, shuffle_epi32::<0b10_10_10_10>(middles));
            let halves = avg_epu8(even(left, right), odd(left, right));
            // Sixteen times the number of pixels in which two channels differ.
            let differ = avg_epu8(halves, swap(halves));
            // The last bits decide between equal numbers. None falls unless half of the pixels are
            // exceeded, as the fourth byte says.
            let differ = or(differ, set1_epi32(68 << 24 | 2 << 8 | 4));
            let next = lanes([1, 2, 0, 3, 5, 6, 4, 7, 9, 10, 8, 11, 13, 14, 12, 15]);
            let sums = avg_epu8(differ, shuffle_epi8(differ, next));
            let half = lanes([2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13]);
            let most = max_epu8(sums, shuffle_epi8(sums, half));
            let byte = lanes([1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]);
            let most = max_epu8(most, shuffle_epi8(most, byte));
            let chosen = cmpeq_epi8(sums, most);
            let both = lanes([0, N, 0, N, 4, N, 4, N, 8, N, 8, N, 12, N, 12, N]);
            let alone = lanes([2, N, 1, N, 6, N, 5, N, 10, N, 9, N, 14, N, 13, N]);
            or(shuffle_epi8(chosen, both), shuffle_epi8(chosen, alone))
        }

        /// Finds, for each column, how many of two pixels have two channels on different sides of
        /// their middles, times 64: red and green, green and blue, blue and red.
        #[inline]
        #[target_feature(enable = $features)]
        fn differing(&[a, b, c, d]: &[Vector; 4], middles: Vector) -> Vector {
            let upper = differing_in_a_row(alternating(a, b), middles);
            avg_epu8(upper, differing_in_a_row(alternating(c, d), middles))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn differing_in_a_row(row: Vector, middles: Vector) -> Vector {
            let sides = avg_epu8(row, middles);
            let next = lanes([1, 2, 0, 3, 5, 6, 4, 7, 9, 10, 8, 11, 13, 14, 12, 15]);
            and(xor(sides, shuffle_epi8(sides, next)), set1_epi8(-0x80))
        }

        /// Puts the greater colour first: blocks whose first colour is the lesser have only three.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn in_order(colours: Vector) -> [Vector; 2] {
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
            let exchanged = shuffle_epi32::<0b01_01_01_01>(ends.exchanged);
            xor(indices(left_places(rows, ends), repeat(ends.third, [2, 3])), exchanged)
        }

        /// Computes the places of the left vector's pixels, relative to the line's middle.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn left_places(rows: &[Vector; 4], ends: &Ends) -> [Vector; 2] {
            let weights = shuffle_epi32::<0b00_00_00_00>(ends.weights);
            let middle = shuffle_epi32::<0b00_00_00_00>(ends.middle);
            block_places(rows, weights, middle)
        }

        /// Computes the indices of the right vector's pixels.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn right_indices(rows: &[Vector; 4], ends: &Ends) -> Vector {
            let exchanged = shuffle_epi32::<0b11_11_11_11>(ends.exchanged);
            xor(indices(right_places(rows, ends), repeat(ends.third, [10, 11])), exchanged)
        }

        /// Computes the places of the right vector's pixels, relative to the line's middle.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn right_places(rows: &[Vector; 4], ends: &Ends) -> [Vector; 2] {
            let weights = shuffle_epi32::<0b10_10_10_10>(ends.weights);
            let middle = shuffle_epi32::<0b10_10_10_10>(ends.middle);
            block_places(rows, weights, middle)
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn block_places(
            &[a, b, c, d]: &[Vector; 4],
            weights: Vector,
            middle: Vector,
        ) -> [Vector; 2] {
            let upper = packs_epi32(places(a, weights, middle), places(b, weights, middle));
            let lower = packs_epi32(places(c, weights, middle), places(d, weights, middle));
            [upper, lower]
        }

        /// Computes the places of four pixels on the line, relative to its middle.
        #[inline]
        #[target_feature(enable = $features)]
        fn places(row: Vector, weights: Vector, middle: Vector) -> Vector {
            dpbusd_epi32(middle, row, weights)
        }
    };
}
