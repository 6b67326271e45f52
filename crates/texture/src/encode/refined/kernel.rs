//! Refined lines with vectors of any length: one block in each element, in the same order of
//! operations.

/// Defines the encoders for the vectors whose operations are in scope.
macro_rules! kernel {
    ($(#[$features:meta])*) => {
        /// The two ends of a line in steps of 5, 6 and 5 bits.
        #[derive(Clone, Copy)]
        struct Ends<const C: usize> {
            first: [Floats; C],
            second: [Floats; C],
        }

        /// Sums over a block's pixels, with each pixel's place on the line, from 0 to 3.
        struct Sums<const C: usize> {
            /// Of the places, and of their squares.
            places: Floats,
            squares: Floats,
            /// Of the channels, each pixel as many times as its place says.
            weighted: [Floats; C],
        }

        /// Encodes a strip of whole blocks as BC1, in the last eight of each `SIZE` bytes.
        $(#[$features])*
        pub(crate) fn colours<const SIZE: usize>(strip: Strip<'_>, out: &mut [u8]) {
            for (at, out) in out.as_chunks_mut::<SIZE>().0.chunks_mut(LANES).enumerate() {
                let octets = gathered(strip, at * LANES, out.len());
                let pixels = channels(&octets);
                let bounds = bounds(&pixels);
                let falls = falling(&pixels, &bounds);
                let ends = refined(&pixels, started(&bounds, falls));
                write(&pixels, &ends, splat(0.0), out);
                for (lane, out) in out.iter_mut().enumerate() {
                    flat::replace(&octets, lane, out);
                }
            }
        }

        /// Replaces the chroma of scaled YCoCg in BC3.
        $(#[$features])*
        pub(crate) fn chroma(strip: Strip<'_>, out: &mut [u8]) {
            for (at, out) in out.as_chunks_mut::<16>().0.chunks_mut(LANES).enumerate() {
                let octets = gathered(strip, at * LANES, out.len());
                let [red, green, blue] = channels(&octets);
                let mut pixels = [[splat(0.0); 16]; 2];
                for n in 0..16 {
                    let mean = truncated(mul(add(red[n], blue[n]), splat(0.5)));
                    pixels[0][n] = half(sub(red[n], blue[n]));
                    pixels[1][n] = half(sub(green[n], mean));
                }
                let scale = scale(&bounds(&pixels));
                for value in pixels.as_flattened_mut() {
                    *value = add(mul(*value, scale), splat(128.0));
                }
                let bounds = bounds(&pixels);
                let together = covariance(&pixels, &bounds, [0, 1]);
                let falls = [above(splat(0.0), together), splat(0.0)];
                let ends = refined(&pixels, started(&bounds, falls));
                // 0, 1 and 3 for scales of 1, 2 and 4.
                write(&pixels, &ends, sub(scale, splat(1.0)), out);
            }
        }

        #[inline]
        $(#[$features])*
        fn channels(pixels: &[[[u8; 4]; LANES]; 16]) -> [[Floats; 16]; 3] {
            let mut channels = [[splat(0.0); 16]; 3];
            for (n, pixel) in pixels.iter().enumerate() {
                channels[0][n] = octet::<0>(pixel);
                channels[1][n] = octet::<8>(pixel);
                channels[2][n] = octet::<16>(pixel);
            }
            channels
        }

        /// Returns the least and the greatest value of each channel.
        #[inline]
        $(#[$features])*
        fn bounds<const C: usize>(pixels: &[[Floats; 16]; C]) -> [[Floats; 2]; C] {
            let mut bounds = [[splat(0.0); 2]; C];
            for (ends, channel) in bounds.iter_mut().zip(pixels) {
                *ends = [channel[0]; 2];
                for &value in &channel[1..] {
                    *ends = [min(ends[0], value), max(ends[1], value)];
                }
            }
            bounds
        }

        /// Returns the half of a difference of two bytes, rounded towards negative infinity.
        #[inline]
        $(#[$features])*
        fn half(difference: Floats) -> Floats {
            let positive = truncated(mul(add(difference, splat(256.0)), splat(0.5)));
            sub(positive, splat(128.0))
        }

        /// Returns the factor by which chroma is multiplied: the greatest of 1, 2 and 4 that keeps it
        /// within 8 bits.
        #[inline]
        $(#[$features])*
        fn scale(bounds: &[[Floats; 2]; 2]) -> Floats {
            let [[a, b], [c, d]] = *bounds;
            let zero = splat(0.0);
            let extent = max(max(b, d), max(sub(zero, a), sub(zero, c)));
            let scale = choose([splat(64.0), extent], splat(2.0), splat(1.0));
            choose([splat(32.0), extent], splat(4.0), scale)
        }

        /// Returns the covariance of two channels around the middles of their bounds.
        #[inline]
        $(#[$features])*
        fn covariance<const C: usize>(
            pixels: &[[Floats; 16]; C],
            bounds: &[[Floats; 2]; C],
            [a, b]: [usize; 2],
        ) -> Floats {
            let half = splat(0.5);
            let across = mul(add(bounds[a][0], bounds[a][1]), half);
            let along = mul(add(bounds[b][0], bounds[b][1]), half);
            let mut sum = splat(0.0);
            for n in 0..16 {
                sum = add(sum, mul(sub(pixels[a][n], across), sub(pixels[b][n], along)));
            }
            sum
        }

        /// Returns 1 for red, and for blue, if it falls while the other channels rise.
        #[inline]
        $(#[$features])*
        fn falling(pixels: &[[Floats; 16]; 3], bounds: &[[Floats; 2]; 3]) -> [Floats; 3] {
            let a = covariance(pixels, bounds, [0, 1]);
            let b = covariance(pixels, bounds, [1, 2]);
            let c = covariance(pixels, bounds, [2, 0]);
            // The sums are multiples of 1/4 below 2²⁰. Sixteenths decide between equal ones, which
            // there are wherever a channel does not change.
            let none = add(add(add(a, b), c), splat(0.1875));
            let red = add(sub(sub(b, a), c), splat(0.0625));
            let blue = sub(sub(a, b), c);
            let both = add(sub(sub(c, a), b), splat(0.125));
            [
                above(max(red, both), max(none, blue)),
                splat(0.0),
                above(max(blue, both), max(none, red)),
            ]
        }

        /// Returns opposite corners of the bounds, each moved inwards by a 16th of their distance.
        #[inline]
        $(#[$features])*
        fn started<const C: usize>(bounds: &[[Floats; 2]; C], falls: [Floats; C]) -> Ends<C> {
            let mut ends = Ends { first: falls, second: falls };
            for n in 0..C {
                let inset = mul(sub(bounds[n][1], bounds[n][0]), splat(0.0625));
                let (low, high) = (add(bounds[n][0], inset), sub(bounds[n][1], inset));
                let falls = [falls[n], splat(0.5)];
                ends.first[n] = steps(choose(falls, low, high), n);
                ends.second[n] = steps(choose(falls, high, low), n);
            }
            ends
        }

        /// Rounds a channel, limited to 8 bits, to 5 or 6 bits.
        #[inline]
        $(#[$features])*
        fn steps(value: Floats, channel: usize) -> Floats {
            let value = max(min(value, splat(255.0)), splat(0.0));
            let scale = if channel == 1 { 63.0 / 255.0 } else { 31.0 / 255.0 };
            truncated(add(mul(value, splat(scale)), splat(0.5)))
        }

        /// Expands channels of 5, 6 and 5 bits to 8.
        #[inline]
        $(#[$features])*
        fn expanded<const C: usize>(steps: &[Floats; C]) -> [Floats; C] {
            let mut octets = *steps;
            for (n, value) in octets.iter_mut().enumerate() {
                let (factor, rest) = if n == 1 { (259.0, 33.0) } else { (527.0, 23.0) };
                let sum = add(mul(*value, splat(factor)), splat(rest));
                *value = truncated(mul(sum, splat(1.0 / 64.0)));
            }
            octets
        }

        #[inline]
        $(#[$features])*
        fn dot<const C: usize>(a: &[Floats; C], b: &[Floats; C]) -> Floats {
            let mut sum = mul(a[0], b[0]);
            for n in 1..C {
                sum = add(sum, mul(a[n], b[n]));
            }
            sum
        }

        /// Returns six times the direction of the line, and the three limits between its places.
        #[inline]
        $(#[$features])*
        fn line<const C: usize>(ends: [&[Floats; C]; 2]) -> ([Floats; C], [Floats; 3]) {
            let mut along = *ends[0];
            for n in 0..C {
                along[n] = sub(ends[0][n], ends[1][n]);
            }
            let length = dot(&along, &along);
            for value in &mut along {
                *value = mul(*value, splat(6.0));
            }
            let start = dot(&along, ends[1]);
            let limits = [
                add(start, length),
                add(start, mul(length, splat(3.0))),
                add(start, mul(length, splat(5.0))),
            ];
            (along, limits)
        }

        /// Returns, for each of the limits, 1 if the pixel is beyond it.
        #[inline]
        $(#[$features])*
        fn beyond<const C: usize>(
            pixels: &[[Floats; 16]; C],
            at: usize,
            (along, limits): &([Floats; C], [Floats; 3]),
        ) -> [Floats; 3] {
            let mut place = mul(pixels[0][at], along[0]);
            for n in 1..C {
                place = add(place, mul(pixels[n][at], along[n]));
            }
            [above(place, limits[0]), above(place, limits[1]), above(place, limits[2])]
        }

        /// Moves the ends to where least squares has them for the places of the pixels, twice, and
        /// returns the best of the three lines.
        #[inline]
        $(#[$features])*
        fn refined<const C: usize>(pixels: &[[Floats; 16]; C], ends: Ends<C>) -> Ends<C> {
            let mut totals = [splat(0.0); C];
            for (total, channel) in totals.iter_mut().zip(pixels) {
                *total = channel[0];
                for &value in &channel[1..] {
                    *total = add(*total, value);
                }
            }
            let (mut best, mut ends) = (ends, ends);
            let mut least = splat(f32::MAX);
            for turn in 0..=TURNS {
                let octets = [expanded(&ends.first), expanded(&ends.second)];
                let sums = sums(pixels, &line([&octets[0], &octets[1]]));
                let (error, solved) = solution(&totals, &octets, &sums);
                for n in 0..C {
                    best.first[n] = choose([least, error], ends.first[n], best.first[n]);
                    best.second[n] = choose([least, error], ends.second[n], best.second[n]);
                }
                least = min(least, error);
                if turn < TURNS {
                    for n in 0..C {
                        ends.first[n] = steps(solved[0][n], n);
                        ends.second[n] = steps(solved[1][n], n);
                    }
                }
            }
            best
        }

        #[inline]
        $(#[$features])*
        fn sums<const C: usize>(
            pixels: &[[Floats; 16]; C],
            line: &([Floats; C], [Floats; 3]),
        ) -> Sums<C> {
            let zero = splat(0.0);
            let (mut counts, mut weighted) = ([zero; 3], [zero; C]);
            for at in 0..16 {
                let beyond = beyond(pixels, at, line);
                for n in 0..3 {
                    counts[n] = add(counts[n], beyond[n]);
                }
                let place = add(add(beyond[0], beyond[1]), beyond[2]);
                for n in 0..C {
                    weighted[n] = add(weighted[n], mul(place, pixels[n][at]));
                }
            }
            let places = add(add(counts[0], counts[1]), counts[2]);
            // The squares of 0 to 3 differ by 1, 3 and 5.
            let squares = add(mul(counts[1], splat(3.0)), mul(counts[2], splat(5.0)));
            Sums { places, squares: add(counts[0], squares), weighted }
        }

        /// Returns nine times the squared error less what all lines have in common, and the ends of
        /// least error for the same places.
        #[inline]
        $(#[$features])*
        fn solution<const C: usize>(
            totals: &[Floats; C],
            [first, second]: &[[Floats; C]; 2],
            sums: &Sums<C>,
        ) -> (Floats, [[Floats; C]; 2]) {
            let near = sums.squares;
            let both = sub(mul(sums.places, splat(3.0)), near);
            let far = add(sub(splat(144.0), mul(sums.places, splat(6.0))), near);
            let mut rest = *totals;
            for n in 0..C {
                rest[n] = sub(mul(totals[n], splat(3.0)), sums.weighted[n]);
            }
            let linear = add(dot(&sums.weighted, first), dot(&rest, second));
            let square = add(mul(near, dot(first, first)), mul(far, dot(second, second)));
            let square = add(square, mul(both, mul(dot(first, second), splat(2.0))));
            let error = sub(square, mul(linear, splat(6.0)));

            let determinant = sub(mul(near, far), mul(both, both));
            let is_line = [determinant, splat(0.5)];
            let factor = div(splat(3.0), max(determinant, splat(1.0)));
            let (mut high, mut low) = (*first, *second);
            let (near, far, both) = (mul(near, factor), mul(far, factor), mul(both, factor));
            for n in 0..C {
                let (weighted, rest) = (sums.weighted[n], rest[n]);
                let solved = sub(mul(weighted, far), mul(rest, both));
                high[n] = choose(is_line, solved, first[n]);
                let solved = sub(mul(rest, near), mul(weighted, both));
                low[n] = choose(is_line, solved, second[n]);
            }
            (error, [high, low])
        }

        /// Writes the last eight bytes of blocks.
        #[inline]
        $(#[$features])*
        fn write<const C: usize, const SIZE: usize>(
            pixels: &[[Floats; 16]; C],
            ends: &Ends<C>,
            blue: Floats,
            out: &mut [[u8; SIZE]],
        ) {
            let line = line([&expanded(&ends.first), &expanded(&ends.second)]);
            let mut halves = [splat(0.0); 2];
            for at in (0..16).rev() {
                let [a, b, c] = beyond(pixels, at, &line);
                // The codes of the places 0 to 3 are 1, 3, 2 and 0.
                let code = sub(add(splat(1.0), add(a, a)), add(b, add(c, c)));
                let half = &mut halves[at / 8];
                *half = add(mul(*half, splat(4.0)), code);
            }
            let indices = [integers(halves[0]), integers(halves[1])];
            let colours = [packed(&ends.first, blue), packed(&ends.second, blue)];
            for (lane, out) in out.iter_mut().enumerate() {
                let indices = indices[0][lane] | indices[1][lane] << 16;
                let block = ordered([colours[0][lane], colours[1][lane]], indices);
                if let Some(out) = out.last_chunk_mut() {
                    *out = block;
                }
            }
        }

        #[inline]
        $(#[$features])*
        fn packed<const C: usize>(end: &[Floats; C], blue: Floats) -> [u32; LANES] {
            let high = add(mul(end[0], splat(2048.0)), mul(end[1], splat(32.0)));
            let low = if C == 3 { end[C - 1] } else { blue };
            integers(add(high, low))
        }

        /// Gathers the pixels of blocks from the given one on, the last one repeated.
        #[inline]
        $(#[$features])*
        fn gathered(strip: Strip<'_>, first: usize, count: usize) -> [[[u8; 4]; LANES]; 16] {
            let mut pixels = [[[0; 4]; LANES]; 16];
            for (row, pixels) in strip.iter().zip(pixels.as_chunks_mut::<4>().0) {
                let blocks = row.as_chunks::<4>().0.as_chunks::<4>().0;
                let Some(blocks) = blocks.get(first..first + count) else { continue };
                let [a, b, c, d] = pixels;
                for lane in 0..LANES {
                    [a[lane], b[lane], c[lane], d[lane]] = blocks[lane.min(count - 1)];
                }
            }
            pixels
        }
    };
}
