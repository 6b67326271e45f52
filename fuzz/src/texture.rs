//! Frames of texture formats, and files of them.

use std::io::Cursor;
use std::ops::Range;

use rushes::texture::file::{FrameReader, Ktx2Reader, Ktx2Writer, Y4mReader, Y4mStream};
use rushes::texture::{Colour, Decoder, Format, InstructionSet, Layout, Rate};

use crate::png;

/// The largest sides of a frame: several blocks of every format, and more than a group of them.
const WIDTH_MAX: u32 = 160;
const HEIGHT_MAX: u32 = 40;

/// Octets of a frame of a file that is read.
const FRAME_MAX: usize = 1 << 20;

/// Decodes a frame whose octets are `octets` again and again; the first six give its format, its size, the first row
/// that is decoded alone, and the colours.
///
/// All instruction sets give the same picture, and rows alone are those of the whole picture.
pub fn decode(octets: &[u8]) {
    let Some((&[format, width, height, row, matrix, siting], octets)) = octets.split_first_chunk()
    else {
        return;
    };
    let format = Format::ALL[usize::from(format) % Format::ALL.len()];
    let (width, height) = (u32::from(width) % WIDTH_MAX + 1, u32::from(height) % HEIGHT_MAX + 1);
    let Ok(layout) = Layout::new(format, width, height) else { return };
    let colour = Colour::from_code_points([1, 1, matrix, siting]).unwrap_or_default();
    let layout = layout.with_colour(colour);
    let frame: Vec<u8> = octets.iter().copied().chain([0]).cycle().take(layout.bytes()).collect();
    let rows = u32::from(row) % height..height;
    for output in [Format::Rgba8, Format::Rgb24] {
        let [first, others @ ..] =
            InstructionSet::ALL.map(|set| pictures(layout, (output, set), &frame, rows.clone()));
        assert!(others.iter().all(|other| *other == first), "{layout:?}");
    }
}

/// Returns the picture of a frame.
fn pictures(
    layout: Layout,
    (output, set): (Format, InstructionSet),
    frame: &[u8],
    rows: Range<u32>,
) -> Vec<u8> {
    let decoder = Decoder::of(layout, output).expect("it decodes every format to pictures");
    let decoder = decoder.with_instruction_set(set);
    let mut whole = vec![1; decoder.output().bytes()];
    decoder.decode(frame, &mut whole).expect("the lengths are right");
    let row_bytes = whole.len() / decoder.output().height() as usize;
    let mut part = vec![2; row_bytes * rows.len()];
    decoder.decode_rows(frame, rows.clone(), &mut part).expect("the rows exist");
    assert!(part == whole[rows.start as usize * row_bytes..], "{layout:?} {rows:?}");
    assert!(decoder.decode(&frame[1..], &mut whole).is_err());
    whole
}

/// Reads a file as KTX 2.0, Y4M and PNG. No frame has another length than its layout says.
pub fn files(octets: &[u8]) {
    png::read(octets);
    if let Ok(reader) = Ktx2Reader::new(Cursor::new(octets)) {
        read(reader);
    }
    if let Ok(reader) = Y4mReader::new(Cursor::new(octets)) {
        read(reader);
    }
    let Ok(Some(mut stream)) = Y4mStream::new(octets) else { return };
    let (bytes, mut frame) = (stream.layout().bytes(), Vec::new());
    while bytes <= FRAME_MAX && matches!(stream.read_frame(&mut frame), Ok(true)) {
        assert_eq!(frame.len(), bytes);
    }
}

/// Reads all frames twice, which are the same.
fn read(mut reader: impl FrameReader) {
    let (bytes, mut frame) = (reader.layout().bytes(), Vec::new());
    if bytes > FRAME_MAX {
        return;
    }
    let [first, second] = [(); 2].map(|()| {
        let mut frames = 0;
        while matches!(reader.read_frame(&mut frame), Ok(true)) {
            assert_eq!(frame.len(), bytes);
            frames += 1;
        }
        reader.rewind().expect("memory can be read again");
        frames
    });
    assert_eq!(first, second);
}

/// Returns a frame of each format, without and with colours.
pub fn frames() -> Vec<Vec<u8>> {
    let octets: Vec<u8> =
        (0..200_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let of = |format| [&[format as u8, 40, 21, 9, 5, 0x80][..], &octets].concat();
    (0..Format::ALL.len()).map(of).collect()
}

/// Returns a file of each kind, and of each format that KTX 2.0 has.
pub fn seeds() -> Vec<Vec<u8>> {
    let y4m = |samples: &str| {
        let header = format!("YUV4MPEG2 W5 H3 F30:1 Ip C{samples} XCOLORRANGE=FULL\nFRAME\n");
        [header.as_bytes(), &[b'7'; 120], b"\nFRAME\n0123"].concat()
    };
    let y4m = ["420mpeg2", "422", "444", "444alpha", "mono", "420p10", "444p16"].map(y4m);
    let ktx2 = |format: Format| {
        let layout = Layout::new(format, 9, 7).ok()?;
        let mut writer = Ktx2Writer::new(Cursor::new(Vec::new()), layout, Rate::DEFAULT).ok()?;
        writer.write(&vec![7; layout.bytes()]).ok()?;
        Some(writer.into_inner().ok()?.into_inner())
    };
    Format::ALL.into_iter().filter_map(ktx2).chain(y4m).chain(png::seeds()).collect()
}
