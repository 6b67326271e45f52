//! Writes frames as the layers of a KTX 2.0 file.

use std::io::{Seek, SeekFrom, Write};

use crate::file::ktx2::{
    HEADER, KEY_FORMAT, KEY_PERIOD, KEY_RATE, LAYERS_AT, LEVEL_BYTES_AT, MAGIC, descriptor,
};
use crate::file::{FileError, FrameWriter, PartFile, check_size};
use crate::layout::Layout;
use crate::rate::Rate;

/// Writes a KTX 2.0 file whose layers are frames.
///
/// The number of frames is written into the header at the end.
#[derive(Debug)]
pub struct Ktx2Writer<W> {
    writer: W,
    layout: Layout,
    frames: u32,
}

fn append_key(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let length = key.len() + 1 + value.len();
    out.extend((length as u32).to_le_bytes());
    out.extend(key);
    out.push(0);
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Returns the keys and values, in byte order of the keys as the format requires.
fn keys(layout: &Layout, rate: Rate) -> Vec<u8> {
    let mut out = Vec::new();
    // A loop count of 0 plays the frames once; 1 would play them twice.
    let times = [rate.denominator(), rate.numerator(), 0].map(u32::to_le_bytes);
    append_key(&mut out, KEY_RATE, times.as_flattened());
    append_key(&mut out, b"KTXorientation", b"rd\0");
    append_key(
        &mut out,
        b"KTXwriter",
        concat!("Rushes ", env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
    );
    append_key(&mut out, KEY_FORMAT, format!("{}\0", layout.format()).as_bytes());
    out
}

/// Returns the octets before the first frame, in which the number of layers and their bytes are
/// still 0.
fn head(layout: &Layout, vk_format: u32, rate: Rate) -> Vec<u8> {
    let format = layout.format();
    let (descriptor, keys) = (descriptor::descriptor(layout), keys(layout, rate));
    let keys_at = HEADER + descriptor.len();
    // A level begins at a multiple of 4 and of the bytes of a block.
    let block = format.planes()[0].block.bytes;
    let alignment = (1..=4).map(|times| times * block).find(|bytes| bytes % 4 == 0).unwrap_or(4);
    let first = (keys_at + keys.len()).next_multiple_of(alignment);
    let words = [
        vk_format,
        descriptor::type_size(format),
        layout.width(),
        layout.height(),
        0, // pixelDepth
        0, // layerCount, written at the end if there are several frames
        1, // faceCount
        1, // levelCount
        0, // supercompressionScheme
        HEADER as u32,
        descriptor.len() as u32,
        keys_at as u32,
        keys.len() as u32,
    ];
    let mut out = MAGIC.to_vec();
    out.extend(words.map(u32::to_le_bytes).as_flattened());
    out.extend([0; 16]); // no global data of supercompression
    out.extend((first as u64).to_le_bytes());
    out.extend([0; 16]); // bytes of the level, written at the end
    out.extend(descriptor);
    out.extend(keys);
    out.resize(first, 0);
    out
}

impl<W: Write + Seek> Ktx2Writer<W> {
    /// Writes the header at the position of `writer`, which must be the beginning of the file.
    ///
    /// # Errors
    ///
    /// [`FileError::Format`] if the format has several planes; [`FileError::Io`] if the header
    /// cannot be written.
    pub fn new(mut writer: W, layout: Layout, rate: Rate) -> Result<Self, FileError> {
        let format = layout.format();
        let none = FileError::Format { kind: "KTX 2.0", format };
        let vk_format = descriptor::vk_format(&layout).ok_or(none)?;
        writer.write_all(&head(&layout, vk_format, rate))?;
        Ok(Self { writer, layout, frames: 0 })
    }

    /// Writes a frame.
    ///
    /// # Errors
    ///
    /// As [`FrameWriter::write_frame`].
    pub fn write(&mut self, frame: &[u8]) -> Result<(), FileError> {
        check_size(&self.layout, frame)?;
        self.writer.write_all(frame)?;
        self.frames += 1;
        Ok(())
    }

    /// Writes the number of frames, and returns the underlying writer.
    ///
    /// # Errors
    ///
    /// [`FileError::NoFrames`] if there are none; [`FileError::Io`] if it cannot be written.
    pub fn into_inner(mut self) -> Result<W, FileError> {
        if self.frames == 0 {
            return Err(FileError::NoFrames("KTX 2.0"));
        }
        let bytes = (u64::from(self.frames) * self.layout.bytes() as u64).to_le_bytes();
        if self.frames == 1 {
            // The key is the first one, behind its length.
            let at = HEADER + descriptor::descriptor(&self.layout).len() + 4;
            self.writer.seek(SeekFrom::Start(at as u64))?;
            self.writer.write_all(KEY_PERIOD)?;
        } else {
            self.writer.seek(SeekFrom::Start(LAYERS_AT))?;
            self.writer.write_all(&self.frames.to_le_bytes())?;
        }
        self.writer.seek(SeekFrom::Start(LEVEL_BYTES_AT))?;
        self.writer.write_all(&bytes)?;
        self.writer.write_all(&bytes)?;
        self.writer.flush()?;
        Ok(self.writer)
    }
}

impl FrameWriter for Ktx2Writer<PartFile> {
    fn write_frame(&mut self, frame: &[u8]) -> Result<(), FileError> {
        self.write(frame)
    }

    fn finish(self: Box<Self>) -> Result<(), FileError> {
        Ok(self.into_inner()?.commit()?)
    }
}
