//! Reads PNG images.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, DecodingError, Reader, Transformations};

use crate::file::png::colour;
use crate::file::{FileError, PngError};
use crate::format::Format;
use crate::layout::Layout;

/// Maximum bytes to which deflate expands one byte.
const DEFLATE_MAX: u64 = 1032;

/// Bytes of a frame that are reserved for each byte of the file before anything is decompressed. Files of pictures
/// expand less.
const RESERVED: usize = 16;

fn decoding(error: DecodingError) -> FileError {
    PngError::from(error).into()
}

/// Replaces the contents of `frame` with a PNG image, and returns its layout.
///
/// Grey levels and palettes are expanded, and 16-bit samples are rounded to 8 bits; with
/// transparency of any kind the format is [`Format::Rgba8`], otherwise [`Format::Rgb24`]. The colours
/// of the layout are those of the chunk cICP, and of sRGB without it: other descriptions of colours are ignored.
///
/// # Errors
///
/// [`FileError`] with [`PngError`] if the file is damaged or claims a size that it cannot hold.
pub fn read_png(path: &Path, frame: &mut Vec<u8>) -> Result<Layout, FileError> {
    read_png_from(BufReader::new(File::open(path)?), frame)
}

/// Like [`read_png`], from any reader, whose whole contents are the file.
///
/// The vector grows as pixels are decompressed: to twice a frame at most, and regardless of the header to no more
/// than 16 bytes for each of the file and twice the pixels that it contains. An interlaced picture is decompressed as a
/// whole first, which takes at most the 1 032 bytes to which deflate expands each of the file, and 32 times as many if
/// its samples have one bit.
///
/// # Errors
///
/// As [`read_png`].
pub fn read_png_from(
    reader: impl BufRead + Seek,
    frame: &mut Vec<u8>,
) -> Result<Layout, FileError> {
    Ok(read_picture(reader, frame)?.layout)
}

/// What is known of a picture that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picture {
    pub(crate) layout: Layout,
    /// The bits of a sample, if they were rounded.
    pub(crate) rounded_from: Option<u32>,
    /// The colours that the file names, if [`Layout::colour`] cannot be these.
    pub(crate) unknown_colour: Option<[u8; 4]>,
}

/// Like [`read_png_from`].
pub(crate) fn read_picture(
    mut input: impl BufRead + Seek,
    frame: &mut Vec<u8>,
) -> Result<Picture, FileError> {
    frame.clear();
    let bytes = input.seek(SeekFrom::End(0))?;
    input.rewind()?;
    let mut decoder = Decoder::new(input);
    decoder.set_transformations(Transformations::EXPAND);
    // They would be decompressed for nothing.
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(decoding)?;
    let (width, height) = reader.info().size();
    let (color, depth) = reader.output_color_type();
    let alpha = matches!(color, ColorType::Rgba | ColorType::GrayscaleAlpha);
    let format = if alpha { Format::Rgba8 } else { Format::Rgb24 };
    let (colour, unknown_colour) = colour::read(reader.info().coding_independent_code_points);
    let layout = Layout::new(format, width, height)?.with_colour(colour);
    if reader.info().raw_bytes() as u64 > bytes.saturating_mul(DEFLATE_MAX) {
        return Err(PngError::Claim { width, height, bytes }.into());
    }
    let likely = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(RESERVED);
    frame.reserve_exact(layout.bytes().min(likely));
    let is_deep = depth == BitDepth::Sixteen;
    read_rows(&mut reader, |row| append(row, color, is_deep, frame)).map_err(decoding)?;
    Ok(Picture { layout, rounded_from: is_deep.then_some(16), unknown_colour })
}

/// Passes each row of the picture to `row`, from the top.
fn read_rows(
    reader: &mut Reader<impl BufRead + Seek>,
    mut row: impl FnMut(&mut [u8]),
) -> Result<(), DecodingError> {
    let (width, height) = reader.info().size();
    let row_bytes = reader.output_line_size(width).ok_or(DecodingError::LimitsExceeded)?;
    if reader.info().interlaced {
        let mut whole = Vec::new();
        let bytes = row_bytes.saturating_mul(height as usize);
        whole.try_reserve_exact(bytes).map_err(|_| DecodingError::LimitsExceeded)?;
        whole.resize(bytes, 0);
        reader.next_frame(&mut whole)?;
        whole.chunks_exact_mut(row_bytes).for_each(row);
        return Ok(());
    }
    let mut memory = vec![0; row_bytes];
    while reader.read_row(&mut memory)?.is_some() {
        row(&mut memory);
    }
    Ok(())
}

/// Appends the pixels of a row to a frame, in colour and of 8 bits.
fn append(row: &mut [u8], color: ColorType, is_deep: bool, frame: &mut Vec<u8>) {
    let row = if is_deep { round(row) } else { row };
    match color {
        ColorType::Rgb | ColorType::Rgba => frame.extend_from_slice(row),
        _ => {
            for pixel in row.chunks_exact(color.samples()) {
                frame.extend_from_slice(&[pixel[0]; 3]);
                frame.extend_from_slice(&pixel[1..]);
            }
        }
    }
}

/// Rounds samples of 16 bits, the higher octet first, to 8 bits, and returns these.
fn round(row: &mut [u8]) -> &mut [u8] {
    let count = row.len() / 2;
    for at in 0..count {
        let sample = u32::from(u16::from_be_bytes([row[2 * at], row[2 * at + 1]]));
        // 65 535 becomes 255.
        row[at] = ((sample + 128) / 257) as u8;
    }
    &mut row[..count]
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use png::BitDepth::{Eight, One, Sixteen};

    use super::*;

    fn write(path: &Path, color: ColorType, depth: BitDepth, data: &[u8]) {
        let mut encoder = png::Encoder::new(File::create(path).unwrap(), 2, 1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![1, 2, 3, 4, 5, 6]);
        }
        encoder.write_header().unwrap().write_image_data(data).unwrap();
    }

    #[test]
    fn grey_palettes_and_sixteen_bits_become_eight_bits_of_colour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let mut frame = Vec::new();
        let mut read = |color, depth, data: &[u8]| {
            write(&path, color, depth, data);
            let layout = read_png(&path, &mut frame).unwrap();
            assert_eq!((layout.width(), layout.height()), (2, 1));
            (layout.format(), frame.clone())
        };
        let grey = read(ColorType::Grayscale, Eight, &[7, 9]);
        assert_eq!(grey, (Format::Rgb24, vec![7, 7, 7, 9, 9, 9]));
        let alpha = read(ColorType::GrayscaleAlpha, Eight, &[7, 1, 9, 2]);
        assert_eq!(alpha, (Format::Rgba8, vec![7, 7, 7, 1, 9, 9, 9, 2]));
        let palette = read(ColorType::Indexed, One, &[0b0100_0000]);
        assert_eq!(palette, (Format::Rgb24, vec![1, 2, 3, 4, 5, 6]));
        let deep = read(ColorType::Grayscale, Sixteen, &[7, 0, 9, 255]);
        assert_eq!(deep, (Format::Rgb24, vec![7, 7, 7, 10, 10, 10]));
        let colour = [0, 127, 0, 129, 255, 255, 255, 127, 254, 254, 1, 1];
        let deep = read(ColorType::Rgb, Sixteen, &colour);
        assert_eq!(deep, (Format::Rgb24, vec![0, 1, 255, 255, 254, 1]));
        let deep = read(ColorType::GrayscaleAlpha, Sixteen, &[7, 7, 0, 200, 9, 9, 255, 0]);
        assert_eq!(deep, (Format::Rgba8, vec![7, 7, 7, 1, 9, 9, 9, 254]));
    }

    /// Of 2×1 pixels, pass 1 contains the left one, and pass 6 the other.
    #[test]
    fn interlaced_pixels_are_put_into_rows() {
        let mut info = png::Info::with_size(2, 1);
        info.interlaced = true;
        let mut file = Vec::new();
        let mut writer = png::Encoder::with_info(&mut file, info).unwrap().write_header().unwrap();
        // Uncompressed zlib data: a filter octet and a pixel of grey in each pass.
        let pixels = [0x78, 1, 1, 4, 0, 0xfb, 0xff, 0, 7, 0, 9, 0, 0, 0, 0];
        writer.write_chunk(png::chunk::IDAT, &pixels).unwrap();
        drop(writer);
        let mut frame = Vec::new();
        let layout = read_png_from(Cursor::new(file), &mut frame).unwrap();
        assert_eq!((layout.width(), &frame[..]), (2, &[7, 7, 7, 9, 9, 9][..]));
    }

    #[test]
    fn a_size_that_the_file_cannot_hold_takes_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let mut file = Vec::new();
        let encoder = png::Encoder::new(&mut file, 32_768, 32_768);
        let mut writer = encoder.write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, &[0; 20]).unwrap();
        drop(writer);
        std::fs::write(&path, file).unwrap();
        let mut frame = Vec::new();
        let error = read_png(&path, &mut frame).unwrap_err();
        assert!(matches!(error, FileError::Png(PngError::Claim { .. })), "{error}");
        assert_eq!(frame.capacity(), 0);
    }
}
