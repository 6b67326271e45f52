//! Planes of samples, as files have them, to rows of pgroups, as packets have them, and back.
//!
//! A file has the samples of each component one after the other, in one octet or, beyond a depth of 8
//! bits, in two, the lower one first (`yuv420p`, `yuv422p10le`). The order in a frame is that of RFC
//! 4175 section 4.3; see [`RawVideo`].

use rushes_proto::payload::raw::{RawVideo, Sampling};

/// The planes of one picture: Y, Cb and Cr.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes {
    video: RawVideo,
    /// Width and height of the planes, in samples: of Y, and of Cb and Cr.
    luma: [usize; 2],
    chroma: [usize; 2],
    /// Pixels that share a chrominance sample: in a line, and lines.
    shared: [usize; 2],
    /// Octets of a sample.
    octets: usize,
}

impl Planes {
    /// Returns the planes of `video`; `None` if it is not progressive YCbCr.
    pub(super) fn of(video: RawVideo) -> Option<Self> {
        let shared = match video.sampling() {
            Sampling::YCbCr444 => [1, 1],
            Sampling::YCbCr422 => [2, 1],
            Sampling::YCbCr420 => [2, 2],
            Sampling::YCbCr411 => [4, 1],
            _ => return None,
        };
        let luma = [video.width(), video.height()].map(usize::from);
        let chroma = [luma[0].div_ceil(shared[0]), luma[1].div_ceil(shared[1])];
        let octets = if video.depth() > 8 { 2 } else { 1 };
        (!video.is_interlaced()).then_some(Self { video, luma, chroma, shared, octets })
    }

    /// Returns the octets of all planes.
    pub(super) fn len(&self) -> usize {
        let samples = |[width, height]: [usize; 2]| width * height;
        (samples(self.luma) + 2 * samples(self.chroma)) * self.octets
    }

    /// Returns where the planes begin, in samples.
    fn starts(&self) -> [usize; 3] {
        let (luma, chroma) = (self.luma[0] * self.luma[1], self.chroma[0] * self.chroma[1]);
        [0, luma, luma + chroma]
    }

    /// Visits the samples of row `row` of a frame in the order of its pgroups: `None` stands for fill.
    #[inline]
    fn visit(&self, row: usize, mut visit: impl FnMut(Option<usize>)) {
        let [y0, cb0, cr0] = self.starts();
        let [width, height] = self.luma;
        let [across, down] = self.shared;
        for x in 0..self.chroma[0] {
            let luma = |dx: usize, dy: usize| {
                let (x, y) = (x * across + dx, row * down + dy);
                (x < width && y < height).then(|| y0 + y * width + x)
            };
            let (cb, cr) = (cb0 + row * self.chroma[0] + x, cr0 + row * self.chroma[0] + x);
            match (across, down) {
                (2, 2) => {
                    [luma(0, 0), luma(1, 0), luma(0, 1), luma(1, 1)]
                        .into_iter()
                        .for_each(&mut visit);
                    visit(Some(cb));
                    visit(Some(cr));
                }
                (4, _) => {
                    visit(Some(cb));
                    [luma(0, 0), luma(1, 0)].into_iter().for_each(&mut visit);
                    visit(Some(cr));
                    [luma(2, 0), luma(3, 0)].into_iter().for_each(&mut visit);
                }
                _ => {
                    visit(Some(cb));
                    visit(luma(0, 0));
                    visit(Some(cr));
                    if across == 2 {
                        visit(luma(1, 0));
                    }
                }
            }
        }
    }

    /// Adds to `frame` the picture in `planes`, which has [`len`](Self::len) octets.
    pub(super) fn pack(&self, planes: &[u8], frame: &mut Vec<u8>) {
        let (depth, row_len) = (u32::from(self.video.depth()), self.video.row_len());
        frame.reserve(self.video.frame_len());
        for row in 0..self.video.rows() {
            let end = frame.len() + row_len;
            if self.octets == 1 {
                self.visit(row, |at| frame.push(at.map_or(0, |at| sample::<1>(planes, at) as u8)));
            } else {
                let (mut bits, mut count) = (0_u64, 0);
                self.visit(row, |at| {
                    let value = at.map_or(0, |at| sample::<2>(planes, at));
                    bits = bits << depth | u64::from(value) & ((1 << depth) - 1);
                    count += depth;
                    while count >= 8 {
                        count -= 8;
                        frame.push((bits >> count) as u8);
                    }
                });
                if count > 0 {
                    frame.push((bits << (8 - count)) as u8);
                }
            }
            // The last pgroup is filled.
            frame.resize(end, 0);
        }
    }

    /// Writes the planes of a `frame` of the video to `planes`, which it replaces.
    pub(super) fn unpack(&self, frame: &[u8], planes: &mut Vec<u8>) {
        let depth = u32::from(self.video.depth());
        planes.clear();
        planes.resize(self.len(), 0);
        for (row, octets) in frame.chunks_exact(self.video.row_len()).enumerate() {
            let mut octets = octets.iter();
            let mut octet = || octets.next().copied().unwrap_or_default();
            if self.octets == 1 {
                self.visit(row, |at| put(planes, at, [octet()]));
            } else {
                let (mut bits, mut count) = (0_u64, 0);
                self.visit(row, |at| {
                    while count < depth {
                        bits = bits << 8 | u64::from(octet());
                        count += 8;
                    }
                    count -= depth;
                    let value = (bits >> count) as u16 & (u32::MAX >> (32 - depth)) as u16;
                    put(planes, at, value.to_le_bytes());
                });
            }
        }
    }
}

/// Returns a sample of `N` octets; 0 if there is none.
#[inline]
fn sample<const N: usize>(planes: &[u8], at: usize) -> u16 {
    let octets = planes.get(at * N..).and_then(|rest| rest.first_chunk::<N>());
    octets.map_or(0, |octets| {
        octets.iter().rev().fold(0, |value, octet| value << 8 | u16::from(*octet))
    })
}

#[inline]
fn put<const N: usize>(planes: &mut [u8], at: Option<usize>, value: [u8; N]) {
    let place = at.and_then(|at| planes.get_mut(at * N..)).and_then(|it| it.first_chunk_mut());
    if let Some(place) = place {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn planes(sampling: Sampling, depth: u8, width: u16, height: u16) -> Planes {
        Planes::of(RawVideo::new(sampling, depth, width, height).unwrap()).unwrap()
    }

    fn packed(planes: &Planes, samples: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        planes.pack(samples, &mut frame);
        frame
    }

    #[test]
    fn samples_are_in_the_order_of_the_rfc() {
        // RFC 4175 section 4.3: the letters are Y, the digits Cb and Cr.
        let pack = |sampling, samples| packed(&planes(sampling, 8, 4, 2), samples);
        assert_eq!(pack(Sampling::YCbCr420, b"abcdefgh1278"), b"abef17cdgh28");
        assert_eq!(pack(Sampling::YCbCr422, b"abcdefgh12345678"), b"1a5b2c6d3e7f4g8h");
        assert_eq!(pack(Sampling::YCbCr411, b"abcdefgh1278"), b"1ab7cd2ef8gh");
        let all = pack(Sampling::YCbCr444, b"abcdefgh12345678ABCDEFGH");
        assert_eq!(all, b"1aA2bB3cC4dD5eE6fF7gG8hH");
    }

    #[test]
    fn ten_bits_are_packed_without_gaps() {
        // Two pixels: Cb 0x3ff, Y 0x001, Cr 0x200, Y 0x155.
        let planes = planes(Sampling::YCbCr422, 10, 2, 1);
        let samples = [0x001_u16, 0x155, 0x3ff, 0x200].map(u16::to_le_bytes).concat();
        let frame = packed(&planes, &samples);
        assert_eq!(frame, [0b1111_1111, 0b1100_0000, 0b0001_1000, 0b0000_0001, 0b0101_0101]);
    }

    #[test]
    fn what_the_picture_does_not_fill_is_zero() {
        assert_eq!(packed(&planes(Sampling::YCbCr420, 8, 1, 1), b"a17"), b"a\0\0\x0017");
        let wide = packed(&planes(Sampling::YCbCr444, 10, 1, 1), &[0xff; 6]);
        assert_eq!(wide, [&[0xff, 0xff, 0xff, 0xfc][..], &[0; 11]].concat());
        assert!(Planes::of(RawVideo::PIXEL).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        fn planes_come_back_bit_for_bit(
            sampling in prop::sample::select(vec![
                Sampling::YCbCr444, Sampling::YCbCr422, Sampling::YCbCr420, Sampling::YCbCr411,
            ]),
            depth in prop::sample::select(vec![8_u8, 10, 12, 16]),
            width in 1_u16..30,
            height in 1_u16..12,
            seed in prop::collection::vec(any::<u16>(), 1..40),
        ) {
            let planes = planes(sampling, depth, width, height);
            let mut samples = Vec::new();
            for value in seed.iter().cycle().take(planes.len() / planes.octets) {
                let value = value & (u32::MAX >> (32 - u32::from(depth))) as u16;
                samples.extend(&value.to_le_bytes()[..planes.octets]);
            }
            let frame = packed(&planes, &samples);
            prop_assert_eq!(frame.len(), planes.video.frame_len());
            let mut again = Vec::new();
            planes.unpack(&frame, &mut again);
            prop_assert_eq!(again, samples);
        }
    }
}
