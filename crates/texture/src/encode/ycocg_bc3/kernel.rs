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
            let lumas = [folded(left.luma, left.luma), folded(right.luma, right.luma)];
            let [lumas, luma_scale] = channel_ends::<5>(gathered(lumas[0], lumas[1]));
            let ends = ends(left, right);
            let heads = or(lumas, slli_epi32::<16>(ends.colours));

            let last = lanes([N, N, N, N, N, N, N, N, N, N, N, N, 0, 4, 8, 12]);
            let head = lanes([4, 0, N, N, N, N, N, N, 6, 7, 2, 3, N, N, N, N]);
            let third = repeat(ends.limits, [2, 3]);
            let chroma = shuffle_epi8(indices(left_places(left, &ends), third), last);
            let luma = codes(left.luma, repeat(lumas, [0, 0]), repeat(luma_scale, [0, 1]));
            let left = or(or(shuffle_epi8(heads, head), luma), chroma);

            let head = lanes([12, 8, N, N, N, N, N, N, 14, 15, 10, 11, N, N, N, N]);
            let third = repeat(ends.limits, [10, 11]);
            let chroma = shuffle_epi8(indices(right_places(right, &ends), third), last);
            let luma = codes(right.luma, repeat(lumas, [8, 8]), repeat(luma_scale, [8, 9]));
            [left, or(or(shuffle_epi8(heads, head), luma), chroma)]
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
