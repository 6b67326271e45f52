//! Pictures scaled down: each pixel is the average of the area that it covers.

mod fit;
mod spans;

pub use fit::fitted;

use crate::colour::Siting;
use crate::error::{CodecError, check_input, check_output};
use crate::format::Format;
use crate::layout::{Layout, PlaneLayout};

use self::spans::{ONE_BITS, Spans};

/// Scales pictures down.
///
/// Values are averaged as they are stored, alpha like the others. Chroma stays where the layout's
/// [`Colour`](crate::Colour) has it.
///
/// ```
/// use rushes_texture::{Format, Layout, Scaler};
///
/// # fn main() -> Result<(), rushes_texture::CodecError> {
/// let layout = Layout::new(Format::Rgb24, 2, 2)?;
/// let scaler = Scaler::new(layout, 1, 1)?;
/// let mut pixel = [0; 3];
/// scaler.scale(&[0, 10, 100, 20, 10, 100, 0, 10, 100, 20, 10, 200], &mut pixel)?;
/// assert_eq!(pixel, [10, 10, 125]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scaler {
    input: Layout,
    output: Layout,
    /// The columns and the rows of each plane that the pixels of the output cover.
    planes: Vec<[Spans; 2]>,
}

impl Scaler {
    /// Returns whether pictures in this format can be scaled: those without blocks, except RGB 5:6:5.
    pub fn supports(format: Format) -> bool {
        channels(format).is_some()
    }

    /// Creates a scaler of pictures to `width × height` pixels, neither of which is more than they have.
    ///
    /// # Errors
    ///
    /// [`CodecError::Unsupported`] if the format [cannot be scaled](Self::supports) or a side would grow,
    /// [`CodecError::Layout`] if one is 0.
    pub fn new(input: Layout, width: u32, height: u32) -> Result<Self, CodecError> {
        let format = input.format();
        let output = Layout::new(format, width, height)?.with_colour(input.colour());
        if !Self::supports(format) || width > input.width() || height > input.height() {
            return Err(CodecError::Unsupported { input: format, output: format });
        }
        let siting = input.colour().siting;
        let both = format.planes().iter().zip(input.planes()).zip(output.planes());
        let planes = both.map(|((plane, from), to)| {
            let is_left = plane.horizontal > 1 && siting != Siting::Centre;
            let is_top = plane.vertical > 1 && siting == Siting::TopLeft;
            let ratio = (input.width(), width);
            let columns = Spans::new(ratio, (from.width, to.width), is_left);
            [columns, Spans::new((input.height(), height), (from.height, to.height), is_top)]
        });
        Ok(Self { input, output, planes: planes.collect() })
    }

    /// Returns the layout of pictures.
    pub fn input(&self) -> &Layout {
        &self.input
    }

    /// Returns the layout of scaled pictures, which have the colours of those that they are made of.
    pub fn output(&self) -> &Layout {
        &self.output
    }

    /// Scales a picture into `out`.
    ///
    /// # Errors
    ///
    /// [`CodecError::Input`] or [`CodecError::Output`] if one of them has another length than its layout.
    pub fn scale(&self, picture: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
        check_input(self.input.bytes(), picture.len())?;
        check_output(self.output.bytes(), out.len())?;
        for (plane, sides) in self.planes.iter().enumerate() {
            let (from, to) = (&self.input.planes()[plane], &self.output.planes()[plane]);
            let octets = &picture[from.row_range(&(0..from.rows))];
            let out = &mut out[to.row_range(&(0..to.rows))];
            match channels(self.input.format()) {
                Some(3) => scale_plane::<3>((from, octets), sides, (to, out)),
                Some(4) => scale_plane::<4>((from, octets), sides, (to, out)),
                _ => scale_plane::<1>((from, octets), sides, (to, out)),
            }
        }
        Ok(())
    }
}

/// Returns the octets of a pixel in each plane, of formats that have one for each value.
fn channels(format: Format) -> Option<usize> {
    match format {
        Format::Rgb24 => Some(3),
        Format::Rgba8 => Some(4),
        Format::Yuv420 | Format::Yuv422 | Format::YCoCg420 => Some(1),
        _ => None,
    }
}

/// Scales a plane whose pixels have `C` values: each row of the output is made of sums of whole rows, which compilers
/// turn into vectors.
fn scale_plane<const C: usize>(
    (from, octets): (&PlaneLayout, &[u8]),
    [columns, rows]: &[Spans; 2],
    (to, out): (&PlaneLayout, &mut [u8]),
) {
    let mut sums = vec![0_u32; from.row_bytes];
    for (row, out) in out.chunks_exact_mut(to.row_bytes).enumerate() {
        sums.fill(0);
        let (first, weights) = rows.get(row);
        for (&weight, values) in weights.iter().zip(octets.chunks_exact(from.row_bytes).skip(first))
        {
            for (sum, &value) in sums.iter_mut().zip(values) {
                *sum += u32::from(value) * u32::from(weight);
            }
        }
        let (pixels, _) = sums.as_chunks::<C>();
        let (out, _) = out.as_chunks_mut::<C>();
        for (column, out) in out.iter_mut().enumerate() {
            let (first, weights) = columns.get(column);
            // The weights of each side add up to 2^12, so that 255 becomes less than 2^32.
            let mut all = [1 << (2 * ONE_BITS - 1); C];
            for (&weight, values) in weights.iter().zip(&pixels[first..]) {
                for (sum, &value) in all.iter_mut().zip(values) {
                    *sum += value * u32::from(weight);
                }
            }
            *out = all.map(|sum| (sum >> (2 * ONE_BITS)) as u8);
        }
    }
}

#[cfg(test)]
mod tests;
