//! Refined lines with vectors of any length, in the same arithmetic as `portable`.

/// Defines the encoders for the vectors whose operations are in scope.
macro_rules! kernel {
    ($features:literal) => {
        /// The pixels of a vector's blocks, in the order of sums.
        struct Pixels {
            /// A row in each lane: four bytes for each channel, then four ones.
            rows: [Vector; 4],
            /// The sum of each channel, and the number of pixels, with 32 bits each.
            totals: Vector,
        }

        /// What the ends of least error are computed from, for one vector's blocks.
        struct Sums {
            /// The sum of each channel, each pixel as many times as its place says, and of the places, with 32 bits
            /// each.
            weighted: Vector,
            /// The sum of the squares of the places, four times.
            squares: Vector,
        }

        /// The ends of two vectors' blocks, with a number for each channel.
        struct Solution {
            /// The lesser end and the greater one, of left and right.
            ends: [[Floats; 2]; 2],
            /// A mask of the blocks whose pixels all have the same place, with 64 bits for each.
            flat: Vector,
        }

        /// Encodes whole pairs of vectors as BC1, in the last eight of each `SIZE` bytes.
        #[target_feature(enable = $features)]
        pub(crate) fn encode<const SIZE: usize>(strip: Strip<'_>, out: &mut [u8]) {
            let [a, b, c, d] = strip.map(|row| row.as_chunks().0);
            let out = out.as_chunks_mut::<SIZE>().0.chunks_exact_mut(WIDTH / 8);
            for ((((a, b), c), d), out) in a.iter().zip(b).zip(c).zip(d).zip(out) {
                encode_pair(rows([a, b, c, d]), out);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn encode_pair<const SIZE: usize>([left, right]: [[Vector; 4]; 2], out: &mut [[u8; SIZE]]) {
            let pixels = [by_channel(&left), by_channel(&right)];
            let mut ends = colours::ends(&left, &right);
            let mut flat = set1_epi8(0);
            for _ in 0..TURNS {
                let left = colours::left_places(&left, &ends);
                let right = colours::right_places(&right, &ends);
                let thirds = [repeat(ends.third, [2, 3]), repeat(ends.third, [10, 11])];
                let sums = [
                    sums(&pixels[0], nearest(left, thirds[0])),
                    sums(&pixels[1], nearest(right, thirds[1])),
                ];
                let solution = solved(&pixels, &sums);
                flat = or(flat, solution.flat);
                if is_all(flat) {
                    break;
                }
                let [left, right] = solution.ends;
                let left = packs_epi32(rounded(left[0]), rounded(left[1]));
                let right = packs_epi32(rounded(right[0]), rounded(right[1]));
                ends = colours::line(packus_epi16(left, right));
            }
            let (left, right) =
                (colours::left_indices(&left, &ends), colours::right_indices(&right, &ends));
            write(colours::joined(ends.colours, left, right), out);
            write_flat(flat, &pixels, out, |totals, _| flat::colour(totals));
        }

        /// Replaces the chroma of scaled YCoCg in BC3, of whole pairs of vectors.
        #[target_feature(enable = $features)]
        pub(crate) fn encode_chroma(strip: Strip<'_>, out: &mut [u8]) {
            let [a, b, c, d] = strip.map(|row| row.as_chunks().0);
            let out = out.as_chunks_mut::<16>().0.chunks_exact_mut(WIDTH / 8);
            for ((((a, b), c), d), out) in a.iter().zip(b).zip(c).zip(d).zip(out) {
                let [left, right] = rows([a, b, c, d]);
                encode_chroma_pair(&chroma::channels(&left), &chroma::channels(&right), out);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn encode_chroma_pair(
            left: &chroma::Channels,
            right: &chroma::Channels,
            out: &mut [[u8; 16]],
        ) {
            let pixels = [chroma_by_channel(left), chroma_by_channel(right)];
            let mut ends = chroma::ends(left, right);
            let scales = [chroma_scale(ends.scale, [0, 1]), chroma_scale(ends.scale, [8, 9])];
            let mut flat = set1_epi8(0);
            for _ in 0..TURNS {
                let thirds = [repeat(ends.limits, [2, 3]), repeat(ends.limits, [10, 11])];
                let left = nearest(chroma::left_places(left, &ends), thirds[0]);
                let right = nearest(chroma::right_places(right, &ends), thirds[1]);
                let sums = [sums(&pixels[0], left), sums(&pixels[1], right)];
                let solution = solved(&pixels, &sums);
                flat = or(flat, solution.flat);
                if is_all(flat) {
                    break;
                }
                let [left, right] = solution.ends;
                let left = packs_epi32(scaled(left[0], scales[0]), scaled(left[1], scales[0]));
                let right = packs_epi32(scaled(right[0], scales[1]), scaled(right[1], scales[1]));
                let octets =
                    min_epi16(max_epi16(even(left, right), set1_epi16(0)), set1_epi16(255));
                ends = chroma::packed(chroma::quantised(octets), ends.scale);
            }
            let [colours, exchanged] = colours::in_order(ends.colours);
            let thirds = [repeat(ends.limits, [2, 3]), repeat(ends.limits, [10, 11])];
            let left = indices(chroma::left_places(left, &ends), thirds[0]);
            let right = indices(chroma::right_places(right, &ends), thirds[1]);
            let left = xor(left, shuffle_epi32::<0b01_01_01_01>(exchanged));
            let right = xor(right, shuffle_epi32::<0b11_11_11_11>(exchanged));
            write(colours::joined(colours, left, right), out);
            write_flat(flat, &pixels, out, flat::chroma);
        }

        /// Returns the scale of each block of one vector as a number.
        #[inline]
        #[target_feature(enable = $features)]
        fn chroma_scale(scale: Vector, bytes: [u8; 2]) -> Floats {
            cvtepi32_ps(and(repeat(scale, bytes), set1_epi32(0xffff)))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn rounded(values: Floats) -> Vector {
            cvttps_epi32(add_ps(values, set1_ps(0.5)))
        }

        /// Multiplies chroma around its middle, and rounds it.
        #[inline]
        #[target_feature(enable = $features)]
        fn scaled(values: Floats, scale: Floats) -> Vector {
            let centred = sub_ps(values, set1_ps(128.0));
            cvttps_epi32(add_ps(mul_ps(centred, scale), set1_ps(128.5)))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn by_channel(&[a, b, c, d]: &[Vector; 4]) -> Pixels {
            const N: u8 = ZERO_LANE;
            let order = lanes([0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, N, N, N, N]);
            let ones = lanes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
            with_totals([
                or(shuffle_epi8(a, order), ones),
                or(shuffle_epi8(b, order), ones),
                or(shuffle_epi8(c, order), ones),
                or(shuffle_epi8(d, order), ones),
            ])
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn chroma_by_channel(channels: &chroma::Channels) -> Pixels {
            let upper = unpacklo_epi32(channels.orange, channels.green);
            let lower = unpackhi_epi32(channels.orange, channels.green);
            let ones = lanes([0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
            with_totals([
                unpacklo_epi64(upper, ones),
                unpackhi_epi64(upper, ones),
                unpacklo_epi64(lower, ones),
                unpackhi_epi64(lower, ones),
            ])
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn with_totals(rows: [Vector; 4]) -> Pixels {
            let once = set1_epi8(1);
            Pixels { totals: weighted(&rows, [once; 4]), rows }
        }

        /// Computes the sums of the channels, each byte as many times as that of its row in `times` says.
        #[inline]
        #[target_feature(enable = $features)]
        fn weighted(rows: &[Vector; 4], times: [Vector; 4]) -> Vector {
            let upper =
                add_epi16(maddubs_epi16(rows[0], times[0]), maddubs_epi16(rows[1], times[1]));
            let lower =
                add_epi16(maddubs_epi16(rows[2], times[2]), maddubs_epi16(rows[3], times[3]));
            madd_epi16(add_epi16(upper, lower), set1_epi16(1))
        }

        /// Computes the sums for pixels with these indices. The greater end has the place 3.
        #[inline]
        #[target_feature(enable = $features)]
        fn sums(pixels: &Pixels, indices: Vector) -> Sums {
            let table = lanes([3, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let places = shuffle_epi8(table, indices);
            let times = [
                shuffle_epi32::<0b00_00_00_00>(places),
                shuffle_epi32::<0b01_01_01_01>(places),
                shuffle_epi32::<0b10_10_10_10>(places),
                shuffle_epi32::<0b11_11_11_11>(places),
            ];
            let squares = dpbusd_epi32(set1_epi32(0), places, places);
            let squares = add_epi32(squares, shuffle_epi32::<0b01_00_11_10>(squares));
            let squares = add_epi32(squares, swap(squares));
            Sums { weighted: weighted(&pixels.rows, times), squares }
        }

        /// Computes the ends of least squared error. Products of sums are exact, below 2²⁴.
        #[inline]
        #[target_feature(enable = $features)]
        fn solved(pixels: &[Pixels; 2], sums: &[Sums; 2]) -> Solution {
            let (left, right) = (factors(&sums[0]), factors(&sums[1]));
            let determinants = even(left[3], right[3]);
            let flat = cmpgt_epi32(set1_epi32(1), determinants);
            let determinants = max_ps(cvtepi32_ps(determinants), set1_ps(1.0));
            let factors = div_ps(set1_ps(3.0), determinants);
            let left_factor = permute_ps::<0b00_00_00_00>(factors);
            let right_factor = permute_ps::<0b10_10_10_10>(factors);
            let ends = [
                solved_by(&pixels[0], &sums[0], &left, left_factor),
                solved_by(&pixels[1], &sums[1], &right, right_factor),
            ];
            Solution { ends, flat }
        }

        /// Computes the sums of the products of the two ends' shares in ninths: of the greater end with itself, of
        /// both, of the lesser one with itself; and their determinant.
        #[inline]
        #[target_feature(enable = $features)]
        fn factors(sums: &Sums) -> [Vector; 4] {
            let places = shuffle_epi32::<0b11_11_11_11>(sums.weighted);
            let triple = add_epi32(places, add_epi32(places, places));
            let both = sub_epi32(triple, sums.squares);
            let lesser = sub_epi32(set1_epi32(144), add_epi32(triple, both));
            let minus_both = slli_epi32::<16>(sub_epi32(sums.squares, triple));
            let determinant =
                madd_epi16(or(sums.squares, slli_epi32::<16>(both)), or(lesser, minus_both));
            [sums.squares, both, lesser, determinant]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn solved_by(
            pixels: &Pixels,
            sums: &Sums,
            &[greater, both, lesser, _]: &[Vector; 4],
            factor: Floats,
        ) -> [Floats; 2] {
            let weighted = cvtepi32_ps(sums.weighted);
            let totals = pixels.totals;
            let rest = sub_epi32(add_epi32(totals, add_epi32(totals, totals)), sums.weighted);
            let rest = cvtepi32_ps(rest);
            let (greater, both) = (cvtepi32_ps(greater), cvtepi32_ps(both));
            let lesser = cvtepi32_ps(lesser);
            let first = sub_ps(mul_ps(weighted, lesser), mul_ps(rest, both));
            let second = sub_ps(mul_ps(rest, greater), mul_ps(weighted, both));
            [mul_ps(second, factor), mul_ps(first, factor)]
        }

        /// Writes blocks of eight bytes to the ends of those of `SIZE` bytes.
        #[inline]
        #[target_feature(enable = $features)]
        fn write<const SIZE: usize>(blocks: Vector, out: &mut [[u8; SIZE]]) {
            if let Some(out) = out.as_flattened_mut().first_chunk_mut().filter(|_| SIZE == 8) {
                store(out, blocks);
                return;
            }
            let mut octets = [0; WIDTH];
            store(&mut octets, blocks);
            for (out, block) in out.iter_mut().zip(octets.as_chunks::<8>().0) {
                if let Some(out) = out.last_chunk_mut() {
                    *out = *block;
                }
            }
        }

        /// Replaces the blocks of a mask by what `encode` makes of the sums of their channels and their former
        /// eight bytes.
        #[inline]
        #[target_feature(enable = $features)]
        fn write_flat<const SIZE: usize>(
            mask: Vector,
            pixels: &[Pixels; 2],
            out: &mut [[u8; SIZE]],
            encode: impl Fn([u8; 16], [u8; 8]) -> [u8; 8],
        ) {
            let mut flags = [0; WIDTH];
            store(&mut flags, halves_apart(mask));
            if flags == [0; WIDTH] {
                return;
            }
            let mut totals = [[0; WIDTH]; 2];
            store(&mut totals[0], pixels[0].totals);
            store(&mut totals[1], pixels[1].totals);
            let flags = flags.as_chunks::<8>().0;
            let totals = totals.as_flattened().as_chunks::<16>().0;
            for ((out, totals), flags) in out.iter_mut().zip(totals).zip(flags) {
                if let Some(out) = out.last_chunk_mut().filter(|_| flags[0] != 0) {
                    *out = encode(*totals, *out);
                }
            }
        }
    };
}
