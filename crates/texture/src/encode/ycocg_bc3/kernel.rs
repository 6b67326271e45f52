//! Scaled YCoCg in BC3 with vectors of any length, in the same integer arithmetic as `portable`.

/// Defines the kernel for the vectors whose operations are in scope.
macro_rules! kernel {
    ($features:literal) => {
        /// Encodes whole pairs of vectors; the remaining blocks are not encoded.
        #[target_feature(enable = $features)]
        pub(crate) fn encode(strip: Strip<'_>, out: &mut [u8]) {
            let [a, b, c, d] = strip.map(|row| row.as_chunks().0);
            let pairs = out.as_chunks_mut::<WIDTH>().0.as_chunks_mut::<2>().0;
            for ((((a, b), c), d), out) in a.iter().zip(b).zip(c).zip(d).zip(pairs) {
                let [left, right] = rows([a, b, c, d]);
                let [left, right] = blocks(&channels(&left), &channels(&right));
                store(&mut out[0], left);
                store(&mut out[1], right);
            }
        }

        /// Sixteen values of each channel per block.
        pub(in crate::encode) struct Channels {
            luma: Vector,
            pub(in crate::encode) orange: Vector,
            pub(in crate::encode) green: Vector,
        }

        /// Values that each block of two vectors has once, or once for each end.
        pub(in crate::encode) struct Ends {
            /// The quantised chroma and the scale, packed.
            pub(in crate::encode) colours: Vector,
            /// The direction of the line, with 16 bits each for orange and green.
            weights: Vector,
            /// The line's middle and, in the upper 16 bits, a third of its length.
            pub(in crate::encode) limits: Vector,
            /// The factor by which chroma is multiplied.
            pub(in crate::encode) scale: Vector,
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn channels(&[a, b, c, d]: &[Vector; 4]) -> Channels {
            let order = lanes([0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]);
            let [a, b] = [shuffle_epi8(a, order), shuffle_epi8(b, order)];
            let [c, d] = [shuffle_epi8(c, order), shuffle_epi8(d, order)];
            let (upper, lower) = (unpacklo_epi32(a, b), unpacklo_epi32(c, d));
            let [red, green] = [unpacklo_epi64(upper, lower), unpackhi_epi64(upper, lower)];
            let blue = unpacklo_epi64(unpackhi_epi32(a, b), unpackhi_epi32(c, d));

            let odd_sum = and(xor(red, blue), set1_epi8(1));
            let mean = sub_epi8(avg_epu8(red, blue), odd_sum);
            Channels {
                luma: avg_epu8(mean, green),
                orange: avg_epu8(red, not(blue)),
                green: avg_epu8(green, not(mean)),
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn blocks(left: &Channels, right: &Channels) -> [Vector; 2] {
            const N: u8 = ZERO_LANE;
            // Luma and chroma do not depend on each other: steps of both, in turns, keep the processor
            // busy while it waits for results of either.
            let (diagonal, scale) = diagonal(left, right);
            let bounds = gathered(folded(left.luma, left.luma), folded(right.luma, right.luma));
            let [bounds, luma_scale] = channel_ends::<5>(bounds);
            let on_left = diagonal_indices(left, &diagonal, [0, 1, 2, 3]);
            let on_right = diagonal_indices(right, &diagonal, [8, 9, 10, 11]);
            let levels_left = levels(left.luma, repeat(bounds, [0, 0]), repeat(luma_scale, [0, 1]));
            let levels_right =
                levels(right.luma, repeat(bounds, [8, 8]), repeat(luma_scale, [8, 9]));
            let chroma_sums = chroma_sums(left, right, [on_left, on_right]);
            let luma_fit = luma_fit([left.luma, right.luma], [levels_left, levels_right]);
            let chroma = chroma_ends(&chroma_sums, scale);
            let lumas = luma_ends(&luma_fit);
            let heads = or(lumas, slli_epi32::<16>(chroma.colours));

            let last = lanes([N, N, N, N, N, N, N, N, N, N, N, N, 0, 4, 8, 12]);
            let head = lanes([4, 0, N, N, N, N, N, N, 6, 7, 2, 3, N, N, N, N]);
            let luma = codes(levels_left);
            let indices = and(four_in_a_byte(on_left), shuffle_epi32::<0b01_01_01_01>(chroma.kept));
            let indices = xor(indices, shuffle_epi32::<0b01_01_01_01>(chroma.changed));
            let left = or(or(shuffle_epi8(heads, head), luma), shuffle_epi8(indices, last));

            let head = lanes([12, 8, N, N, N, N, N, N, 14, 15, 10, 11, N, N, N, N]);
            let luma = codes(levels_right);
            let indices =
                and(four_in_a_byte(on_right), shuffle_epi32::<0b11_11_11_11>(chroma.kept));
            let indices = xor(indices, shuffle_epi32::<0b11_11_11_11>(chroma.changed));
            [left, or(or(shuffle_epi8(heads, head), luma), shuffle_epi8(indices, last))]
        }

        /// What the ends of luma are computed from, for each block.
        struct LumaFit {
            /// The difference from level to level in 128ths, in the first lane of a block's two.
            slopes: Vector,
            /// The sum of the values in the first lane, that of their levels in the second.
            sums: Vector,
        }

        /// Finds the lines of least squared error through luma at these levels.
        #[inline]
        #[target_feature(enable = $features)]
        fn luma_fit([left, right]: [Vector; 2], [on_left, on_right]: [Vector; 2]) -> LumaFit {
            let products = summed(
                [maddubs_epi16(left, on_left), maddubs_epi16(on_left, on_left)],
                [maddubs_epi16(right, on_right), maddubs_epi16(on_right, on_right)],
            );
            let once = set1_epi8(1);
            let sums = summed(
                [maddubs_epi16(left, once), maddubs_epi16(on_left, once)],
                [maddubs_epi16(right, once), maddubs_epi16(on_right, once)],
            );
            // The covariance of values and levels, and the variance of the latter.
            let levels = shuffle_epi32::<0b11_11_01_01>(sums);
            let both = sub_epi32(slli_epi32::<4>(products), madd_epi16(sums, levels));
            LumaFit { slopes: slopes(both, shuffle_epi32::<0b11_11_01_01>(both)), sums }
        }

        /// Returns the ends of luma.
        #[inline]
        #[target_feature(enable = $features)]
        fn luma_ends(fit: &LumaFit) -> Vector {
            // Sixteen times the level of each end.
            let levels = lanes([0, 0, 0, 0, 112, 0, 0, 0, 0, 0, 0, 0, 112, 0, 0, 0]);
            let from_mean = sub_epi32(levels, shuffle_epi32::<0b11_11_01_01>(fit.sums));
            let from_mean = madd_epi16(shuffle_epi32::<0b10_10_00_00>(fit.slopes), from_mean);
            let totals = slli_epi32::<7>(shuffle_epi32::<0b10_10_00_00>(fit.sums));
            let ends = add_epi32(add_epi32(totals, from_mean), set1_epi32(1024));
            let ends = max_epi16(srai_epi32::<11>(ends), set1_epi32(0));
            min_epi16(ends, set1_epi32(255))
        }

        /// Adds up the eight numbers of 16 bits of each block's two vectors, to 32 bits each.
        #[inline]
        #[target_feature(enable = $features)]
        fn summed(left: [Vector; 2], right: [Vector; 2]) -> Vector {
            let left = add_epi16(even(left[0], left[1]), odd(left[0], left[1]));
            let right = add_epi16(even(right[0], right[1]), odd(right[0], right[1]));
            madd_epi16(add_epi16(even(left, right), odd(left, right)), set1_epi16(1))
        }

        /// Divides covariances by variances, to 128ths.
        #[inline]
        #[target_feature(enable = $features)]
        fn slopes(covariances: Vector, variances: Vector) -> Vector {
            let variances = max_ps(cvtepi32_ps(variances), set1_ps(1.0));
            cvttps_epi32(div_ps(cvtepi32_ps(slli_epi32::<7>(covariances)), variances))
        }

        /// Sums over the pixels of each block.
        struct ChromaSums {
            /// Of orange and green, each pixel as many times as its place says: 3 at the greater end.
            weighted: Vector,
            /// Of orange and green.
            totals: Vector,
            /// Of the places and, times 64, of their squares.
            places: Vector,
        }

        /// Ends of chroma, and what becomes of the indices of the diagonal.
        struct Chroma {
            /// The quantised ends and the scale, packed.
            colours: Vector,
            /// In the greater end's place, a mask of four indices that are kept.
            kept: Vector,
            /// In the greater end's place, what is changed of four indices after that.
            changed: Vector,
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn chroma_sums(left: &Channels, right: &Channels, indices: [Vector; 2]) -> ChromaSums {
            let table = lanes([3, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let squares = lanes([193, 1, 129, 65, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let times = [shuffle_epi8(table, indices[0]), shuffle_epi8(table, indices[1])];
            let places = [
                maddubs_epi16(shuffle_epi8(squares, indices[0]), times[0]),
                maddubs_epi16(shuffle_epi8(squares, indices[1]), times[1]),
            ];
            let places = add_epi16(even(places[0], places[1]), odd(places[0], places[1]));
            let once = set1_epi8(1);
            ChromaSums {
                weighted: summed(
                    [maddubs_epi16(left.orange, times[0]), maddubs_epi16(left.green, times[0])],
                    [maddubs_epi16(right.orange, times[1]), maddubs_epi16(right.green, times[1])],
                ),
                totals: summed(
                    [maddubs_epi16(left.orange, once), maddubs_epi16(left.green, once)],
                    [maddubs_epi16(right.orange, once), maddubs_epi16(right.green, once)],
                ),
                places: madd_epi16(add_epi16(places, swap(places)), set1_epi16(1)),
            }
        }

        /// Finds the ends of least squared error. The greater colour comes first, so that blocks have four
        /// colours in all decoders; a block of one colour has the one next to the first.
        #[inline]
        #[target_feature(enable = $features)]
        fn chroma_ends(sums: &ChromaSums, scale: Vector) -> Chroma {
            let octets = fitted_octets(sums, scale);
            let steps = quantised(octets);
            let same = cmpgt_epi32(set1_epi32(1), xor(steps, swap(steps)));
            let steps = xor(steps, and(xor(steps, apart(octets)), same));
            let blue = and(sub_epi16(scale, set1_epi16(1)), set1_epi32(0xffff));
            let colours = or(madd_epi16(steps, set1_epi32(32 << 16 | 2048)), blue);
            let [colours, exchanged] = in_order(colours);
            let changed = xor(exchanged, and(same, set1_epi32(0xaa)));
            Chroma { colours, kept: not(same), changed }
        }

        /// Finds the ends of least squared error, multiplied by the scale, with 16 bits each for orange
        /// and green.
        #[inline]
        #[target_feature(enable = $features)]
        fn fitted_octets(sums: &ChromaSums, scale: Vector) -> Vector {
            let (places, squares) =
                (and(sums.places, set1_epi16(63)), srli_epi32::<6>(sums.places));
            // Of both factors of a lane's 32 bits, one is never negative: its upper half is 0, and that half
            // adds nothing.
            let products = madd_epi16(sums.totals, places);
            let covariances = sub_epi32(slli_epi32::<4>(sums.weighted), products);
            let variances = sub_epi32(slli_epi32::<4>(squares), madd_epi16(places, places));
            let slopes = slopes(covariances, variances);
            let totals = slli_epi32::<7>(sub_epi32(sums.totals, set1_epi32(16 * 128)));
            let lesser = sub_epi32(totals, madd_epi16(slopes, places));
            let greater = madd_epi16(slopes, sub_epi32(set1_epi32(16 * 3), places));
            let greater = add_epi32(totals, greater);
            let ends = packs_epi32(srai_epi32::<4>(lesser), srai_epi32::<4>(greater));
            let ends = shuffle_epi32::<0b11_01_10_00>(ends);
            // In halves, so that the last bit rounds.
            let halves = mulhi_epi16(ends, slli_epi16::<10>(scale));
            let halves = max_epi16(add_epi16(halves, set1_epi16(2 * 128 + 1)), set1_epi16(0));
            min_epi16(srli_epi16::<1>(halves), set1_epi16(255))
        }

        /// Finds steps of the ends such that the colour next to the greater one is nearest to the middle
        /// of these octets.
        #[inline]
        #[target_feature(enable = $features)]
        fn apart(octets: Vector) -> Vector {
            let middle = avg_epu16(octets, swap(octets));
            let thirds = mullo_epi16(middle, set1_epi32(189 << 16 | 93));
            let thirds = mulhi_epu16(add_epi16(thirds, set1_epi16(128)), set1_epi16(257));
            let near = mulhi_epu16(add_epi16(thirds, set1_epi16(1)), set1_epi16(21_846));
            let far = sub_epi16(thirds, add_epi16(near, near));
            xor(far, and(xor(near, far), greater()))
        }

        /// A line between opposite corners of the bounding boxes of two vectors' chroma.
        struct Diagonal {
            /// The direction, with 16 bits each for orange and green, in the lesser end.
            weights: Vector,
            /// The line's middle and, in the upper 16 bits, how far from it the places next to the ends
            /// reach, in the lesser end.
            limits: Vector,
        }

        /// Finds the diagonals on which the channels rise together, or one rises and one falls, and
        /// the scale of each block.
        #[inline]
        #[target_feature(enable = $features)]
        fn diagonal(left: &Channels, right: &Channels) -> (Diagonal, Vector) {
            let corners = corners(left, right);
            let others = swap(corners);
            let falls = covariance(left, right, avg_epu16(corners, others));
            let falls = slli_epi32::<16>(cmpgt_epi32(set1_epi32(0), falls));
            let scale = scale(sub_epi16(corners, set1_epi16(128)));
            let range = sub_epi16(others, corners);
            let weights = srli_epi16::<2>(mullo_epi16(range, scale));
            // A third of the length after both ends moved inwards by a 32nd of it.
            let third = mulhi_epu16(madd_epi16(weights, range), set1_epi32(20_480));
            let weights = sub_epi16(xor(weights, falls), falls);
            let middle = srai_epi32::<1>(madd_epi16(weights, add_epi16(corners, others)));
            let limits = or(and(middle, set1_epi32(0xffff)), slli_epi32::<16>(third));
            (Diagonal { weights, limits }, scale)
        }

        /// Computes the indices of sixteen chroma pairs on the diagonal; `bytes` are those of a block's
        /// lesser end.
        #[inline]
        #[target_feature(enable = $features)]
        fn diagonal_indices(channels: &Channels, diagonal: &Diagonal, bytes: [u8; 4]) -> Vector {
            let weights = repeat(diagonal.weights, [bytes[0], bytes[2]]);
            let middle = repeat(diagonal.limits, [bytes[0], bytes[1]]);
            let upper = unpacklo_epi8(channels.orange, channels.green);
            let lower = unpackhi_epi8(channels.orange, channels.green);
            let upper = sub_epi16(maddubs_epi16(upper, weights), middle);
            let lower = sub_epi16(maddubs_epi16(lower, weights), middle);
            nearest([upper, lower], repeat(diagonal.limits, [bytes[2], bytes[3]]))
        }

        /// Computes the places of the left vector's pixels, relative to the line's middle.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn left_places(left: &Channels, ends: &Ends) -> [Vector; 2] {
            let (weights, scale) = (repeat(ends.weights, [0, 2]), repeat(ends.scale, [0, 1]));
            places(left, weights, scale, repeat(ends.limits, [0, 1]))
        }

        /// Computes the places of the right vector's pixels, relative to the line's middle.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn right_places(right: &Channels, ends: &Ends) -> [Vector; 2] {
            let (weights, scale) = (repeat(ends.weights, [8, 10]), repeat(ends.scale, [8, 9]));
            places(right, weights, scale, repeat(ends.limits, [8, 9]))
        }

        /// Computes the positions of sixteen chroma pairs on the line, relative to its middle.
        #[inline]
        #[target_feature(enable = $features)]
        fn places(
            channels: &Channels,
            weights: Vector,
            scale: Vector,
            middle: Vector,
        ) -> [Vector; 2] {
            let upper = unpacklo_epi8(channels.orange, channels.green);
            let lower = unpackhi_epi8(channels.orange, channels.green);
            let upper = mullo_epi16(maddubs_epi16(upper, weights), scale);
            let lower = mullo_epi16(maddubs_epi16(lower, weights), scale);
            [sub_epi16(upper, middle), sub_epi16(lower, middle)]
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn ends(left: &Channels, right: &Channels) -> Ends {
            let corners = corners(left, right);
            let covariance = covariance(left, right, avg_epu16(corners, swap(corners)));
            let centred = sub_epi16(corners, set1_epi16(128));
            let scale = scale(centred);
            let scaled = mullo_epi16(centred, scale);
            let inset = srli_epi16::<4>(abs_epi16(sub_epi16(swap(scaled), scaled)));
            let inwards = lanes([1, 0, 1, 0, 255, 255, 255, 255, 1, 0, 1, 0, 255, 255, 255, 255]);
            let scaled = add_epi16(scaled, mullo_epi16(inset, inwards));
            let octets = add_epi16(scaled, set1_epi16(128));
            packed(ordered(quantised(octets), covariance), scale)
        }

        /// Finds the corners of the bounding boxes of chroma, with 16 bits each for orange and
        /// green.
        #[inline]
        #[target_feature(enable = $features)]
        fn corners(left: &Channels, right: &Channels) -> Vector {
            let orange = [folded(left.orange, left.orange), folded(right.orange, right.orange)];
            let orange = gathered(orange[0], orange[1]);
            let green = [folded(left.green, left.green), folded(right.green, right.green)];
            let green = gathered(green[0], green[1]);
            let orange = srli_epi32::<16>(min_epu8(orange, slli_epi32::<16>(orange)));
            let green = slli_epi32::<16>(min_epu8(green, srli_epi32::<16>(green)));
            let both = or(orange, green);
            let both = and(min_epu8(both, srli_epi16::<8>(both)), set1_epi16(0xff));
            xor(both, and(greater(), set1_epi16(0xff)))
        }

        /// Computes the covariances: the sums of the products of the channels' differences from
        /// their middles.
        #[inline]
        #[target_feature(enable = $features)]
        fn covariance(left: &Channels, right: &Channels, middles: Vector) -> Vector {
            let left = products(left, repeat(middles, [0, 0]), repeat(middles, [2, 2]));
            let right = products(right, repeat(middles, [8, 8]), repeat(middles, [10, 10]));
            let sums = add_epi32(even(left, right), odd(left, right));
            add_epi32(sums, swap(sums))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn products(channels: &Channels, orange: Vector, green: Vector) -> Vector {
            let orange = sub_epi8(channels.orange, orange);
            let green = sub_epi8(channels.green, green);
            let even = mulhi_epi16(slli_epi16::<8>(orange), slli_epi16::<8>(green));
            let upper = set1_epi32(-0x00ff_0100);
            let odd = mulhi_epi16(and(orange, upper), and(green, upper));
            madd_epi16(add_epi16(even, odd), set1_epi16(1))
        }

        /// Returns the factor by which chroma is multiplied: 1, 2 or 4.
        #[inline]
        #[target_feature(enable = $features)]
        fn scale(centred: Vector) -> Vector {
            let extent = abs_epi16(centred);
            let extent = max_epi16(extent, swap(extent));
            let extent = max_epi16(extent, or(slli_epi32::<16>(extent), srli_epi32::<16>(extent)));
            let twice = cmpgt_epi16(set1_epi16(64), extent);
            let again = cmpgt_epi16(set1_epi16(32), extent);
            sub_epi16(sub_epi16(set1_epi16(1), twice), add_epi16(again, again))
        }

        /// Rounds scaled chroma to 5 and 6 bits.
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn quantised(octets: Vector) -> Vector {
            let steps = mullo_epi16(octets, set1_epi32(253 << 16 | 249));
            let steps = add_epi16(steps, set1_epi32(505 << 16 | 1014));
            mulhi_epu16(steps, set1_epi32(64 << 16 | 32))
        }

        /// Exchanges the greens of the ends if orange differs and the covariance is negative.
        ///
        /// If orange is equal at both ends, the first end stays the greater one.
        #[inline]
        #[target_feature(enable = $features)]
        fn ordered(steps: Vector, covariance: Vector) -> Vector {
            let difference = xor(steps, swap(steps));
            let falls = cmpgt_epi32(set1_epi32(0), covariance);
            let differs = cmpgt_epi32(slli_epi32::<16>(difference), set1_epi32(0));
            let other_green = slli_epi32::<16>(srli_epi32::<16>(difference));
            xor(steps, and(other_green, and(falls, differs)))
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::encode) fn packed(steps: Vector, scale: Vector) -> Ends {
            let blue = and(sub_epi16(scale, set1_epi16(1)), set1_epi32(0xffff));
            let colours = or(madd_epi16(steps, set1_epi32(32 << 16 | 2048)), blue);

            let towards = lanes([2, 0, 1, 0, 254, 255, 255, 255, 2, 0, 1, 0, 254, 255, 255, 255]);
            let weights = mullo_epi16(sub_epi16(swap(steps), steps), towards);
            let octets = mullo_epi16(steps, set1_epi32(259 << 16 | 527));
            let octets = srli_epi16::<6>(add_epi16(octets, set1_epi32(33 << 16 | 23)));
            let centred = sub_epi16(octets, set1_epi16(128));
            let [middle, third] = middle_and_third(madd_epi16(centred, weights));
            // The pixels' chroma is not centred, so the places include that of the centre.
            let centre = slli_epi32::<7>(madd_epi16(weights, set1_epi16(1)));
            let middle = add_epi16(middle, mullo_epi16(centre, scale));
            let limits = or(and(middle, set1_epi32(0xffff)), third);
            Ends { colours, weights, limits, scale }
        }
    };
}
