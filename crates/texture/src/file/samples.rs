//! Samples of Y4M files, and their conversion to the formats of frames.

use std::str::FromStr;

use crate::colour::{Colour, Siting};
use crate::convert::{self, SPAN};
use crate::format::Format;
use crate::layout::Layout;

/// The chroma of each sample of luma.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Planes {
    /// Half the width and height.
    Quarter,
    /// Half the width.
    Half,
    /// The same size.
    Full,
    /// The same size, and alpha.
    FullAlpha,
    /// None: grey.
    Luma,
}

/// The parameter `C` of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    planes: Planes,
    /// Bits of a sample, 8 to 16; more than 8 are in two bytes, the lower first.
    bits: u32,
    siting: Option<Siting>,
}

impl Default for Samples {
    /// Returns the samples of a file without the parameter.
    fn default() -> Self {
        Self { planes: Planes::Quarter, bits: 8, siting: Some(Siting::Centre) }
    }
}

impl FromStr for Samples {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let (planes, siting, rest) = match name {
            "420" | "420jpeg" => (Planes::Quarter, Some(Siting::Centre), ""),
            "420mpeg2" => (Planes::Quarter, Some(Siting::Left), ""),
            "420paldv" => (Planes::Quarter, Some(Siting::TopLeft), ""),
            "422" => (Planes::Half, None, ""),
            "444" => (Planes::Full, None, ""),
            "444alpha" => (Planes::FullAlpha, None, ""),
            "mono" => (Planes::Luma, None, ""),
            _ => {
                let of = |start| name.strip_prefix(start);
                let found = of("420p").map(|rest| (Planes::Quarter, rest));
                let found = found.or_else(|| of("422p").map(|rest| (Planes::Half, rest)));
                let found = found.or_else(|| of("444p").map(|rest| (Planes::Full, rest)));
                let found = found.or_else(|| of("mono").map(|rest| (Planes::Luma, rest)));
                let (planes, rest) = found.ok_or(())?;
                (planes, None, rest)
            }
        };
        let bits = match rest {
            "" if !name.ends_with('p') => 8,
            bits => bits.parse().ok().filter(|bits| (9..=16).contains(bits)).ok_or(())?,
        };
        Ok(Self { planes, bits, siting })
    }
}

impl Samples {
    /// Returns the bits of a sample, if they are rounded to 8.
    pub(super) fn rounded_from(self) -> Option<u32> {
        (self.bits > 8).then_some(self.bits)
    }

    /// Returns the siting that the parameter names.
    pub(super) fn siting(self) -> Option<Siting> {
        self.siting
    }

    /// Returns the format of frames that are returned.
    pub(super) fn format(self) -> Format {
        match self.planes {
            Planes::Quarter => Format::Yuv420,
            Planes::Half => Format::Yuv422,
            Planes::Full | Planes::Luma => Format::Rgb24,
            Planes::FullAlpha => Format::Rgba8,
        }
    }

    /// Returns whether the file contains frames as they are returned.
    pub(super) fn is_plain(self) -> bool {
        self.bits == 8 && matches!(self.planes, Planes::Quarter | Planes::Half)
    }

    /// Returns the bytes of a frame in the file.
    pub(super) fn bytes(self, width: u32, height: u32) -> usize {
        let pixels = width as usize * height as usize;
        let across = width.div_ceil(2) as usize;
        let samples = match self.planes {
            Planes::Quarter => pixels + 2 * across * height.div_ceil(2) as usize,
            Planes::Half => pixels + 2 * across * height as usize,
            Planes::Full => 3 * pixels,
            Planes::FullAlpha => 4 * pixels,
            Planes::Luma => pixels,
        };
        samples * if self.bits > 8 { 2 } else { 1 }
    }

    /// Replaces the contents of `frame`, of `layout`, with a frame of the file: [`bytes`](Self::bytes).
    ///
    /// `colour` is that of the file's samples.
    pub(super) fn convert(
        self,
        layout: &Layout,
        colour: Colour,
        stored: &mut [u8],
        frame: &mut Vec<u8>,
    ) {
        let samples = if self.bits > 8 { narrow(stored, self.bits) } else { stored };
        frame.clear();
        if matches!(self.planes, Planes::Quarter | Planes::Half) {
            frame.extend_from_slice(samples);
            return;
        }
        frame.resize(layout.bytes(), 0);
        let pixels = layout.width() as usize * layout.height() as usize;
        let mut planes = samples.chunks_exact(pixels);
        let mut next = || planes.next().unwrap_or_default();
        let luma = next();
        let chroma = if self.planes == Planes::Luma { [&[][..]; 2] } else { [next(), next()] };
        let (alpha, bytes) =
            if self.planes == Planes::FullAlpha { (next(), 4) } else { (&[][..], 3) };
        let neutral = [128; SPAN];
        let mut span = [[0; 4]; SPAN];
        for (at, out) in frame.chunks_mut(SPAN * bytes).enumerate() {
            let count = out.len() / bytes;
            let range = at * SPAN..at * SPAN + count;
            let of = |plane: usize| chroma[plane].get(range.clone()).unwrap_or(&neutral[..count]);
            let span = &mut span[..count];
            convert::from_yuv444(colour, [&luma[range.clone()], of(0), of(1)], span);
            let pixels = out.chunks_exact_mut(bytes).zip(&*span);
            pixels.for_each(|(to, from)| to.copy_from_slice(&from[..bytes]));
            let alpha = alpha.get(range.clone()).unwrap_or_default();
            for (to, &alpha) in out.chunks_exact_mut(bytes).zip(alpha) {
                to[3] = alpha;
            }
        }
    }
}

/// Rounds samples of two bytes to 8 bits, in place; returns them.
fn narrow(stored: &mut [u8], bits: u32) -> &[u8] {
    let count = stored.len() / 2;
    let more = bits - 8;
    for at in 0..count {
        let sample = u32::from(u16::from_le_bytes([stored[2 * at], stored[2 * at + 1]]));
        stored[at] = ((sample + (1 << (more - 1))) >> more).min(255) as u8;
    }
    &stored[..count]
}
