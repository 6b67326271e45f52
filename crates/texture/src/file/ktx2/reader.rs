//! Reads the frames of a KTX 2.0 file.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use crate::colour::{Colour, ColourHint};
use crate::file::ktx2::{
    HEADER, KEY_FORMAT, KEY_PERIOD, KEY_RATE, KEYS_MAX, Ktx2Error, MAGIC, descriptor,
};
use crate::file::{FileError, FrameReader, read_exactly};
use crate::format::Format;
use crate::layout::Layout;
use crate::rate::Rate;

/// Reads a KTX 2.0 file whose layers are frames.
#[derive(Debug)]
pub struct Ktx2Reader<R> {
    reader: R,
    layout: Layout,
    rate: Rate,
    first: u64,
    frames: u64,
    file: u64,
    frame: u64,
}

/// A complete header.
struct Header([u8; HEADER]);

impl Header {
    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(word)
    }

    fn long(&self, at: usize) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 4)) << 32
    }

    fn read(reader: &mut impl Read) -> Result<Self, FileError> {
        let mut header = Self([0; HEADER]);
        let (magic, rest) = header.0.split_at_mut(MAGIC.len());
        read_or(reader, magic, Ktx2Error::Magic)?;
        if magic != MAGIC {
            return Err(Ktx2Error::Magic.into());
        }
        read_or(reader, rest, Ktx2Error::Header)?;
        header.check()?;
        Ok(header)
    }

    /// Checks that each field has a value that frames can have.
    fn check(&self) -> Result<(), Ktx2Error> {
        // Name, offset, minimum and maximum of each field. Levels after the first, with smaller
        // pictures, are ignored.
        let fields = [
            ("supercompressionScheme", 44, 0, 0),
            ("pixelDepth", 28, 0, 0),
            ("faceCount", 36, 1, 1),
            ("levelCount", 40, 0, 16),
        ];
        for (field, at, least, most) in fields {
            let value = self.word(at);
            if value < least || value > most {
                return Err(Ktx2Error::Field { field, value });
            }
        }
        Ok(())
    }
}

fn read_or(reader: &mut impl Read, to: &mut [u8], short: Ktx2Error) -> Result<(), FileError> {
    reader.read_exact(to).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => short.into(),
        _ => error.into(),
    })
}

/// Returns the value of a key among keys and values; `at` is their offset in the file, for errors.
fn value<'k>(mut keys: &'k [u8], key: &[u8], at: u64) -> Result<Option<&'k [u8]>, Ktx2Error> {
    let all = keys.len();
    while !keys.is_empty() {
        let damaged = Ktx2Error::Keys(at + (all - keys.len()) as u64);
        let Some((length, rest)) = keys.split_first_chunk() else { return Err(damaged) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some((entry, rest)) = rest.split_at_checked(length) else { return Err(damaged) };
        let Some(end) = entry.iter().position(|&octet| octet == 0) else { return Err(damaged) };
        if &entry[..end] == key {
            return Ok(Some(&entry[end + 1..]));
        }
        let padding = length.next_multiple_of(4) - length;
        keys = rest.get(padding..).unwrap_or_default();
    }
    Ok(None)
}

/// Reads the keys and values at the offset in the header, if they are inside the file.
fn read_keys(
    reader: &mut (impl Read + Seek),
    header: &Header,
    file: u64,
) -> Result<Vec<u8>, FileError> {
    let (offset, length) = (header.word(56), header.word(60));
    let damaged = Ktx2Error::Keys(offset.into());
    if length > KEYS_MAX || u64::from(offset) + u64::from(length) > file {
        return Err(damaged.into());
    }
    let mut keys = vec![0; length as usize];
    reader.seek(SeekFrom::Start(offset.into()))?;
    read_or(reader, &mut keys, damaged)?;
    Ok(keys)
}

/// Reads the colour in the data format descriptor.
fn read_colour(reader: &mut (impl Read + Seek), header: &Header) -> Result<Colour, FileError> {
    let (offset, length) = (header.word(48), header.word(52));
    if (length as usize) < descriptor::BEGIN {
        return Err(Ktx2Error::Descriptor(offset).into());
    }
    let mut begin = [0; descriptor::BEGIN];
    reader.seek(SeekFrom::Start(offset.into()))?;
    read_or(reader, &mut begin, Ktx2Error::Descriptor(offset))?;
    Ok(descriptor::colour(begin))
}

fn format(header: &Header, keys: &[u8]) -> Result<Format, Ktx2Error> {
    let vk_format = header.word(12);
    let plain = descriptor::of_vk_format(vk_format).ok_or(Ktx2Error::VkFormat(vk_format))?;
    let Some(name) = value(keys, KEY_FORMAT, header.word(56).into())? else { return Ok(plain) };
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    let name = String::from_utf8_lossy(name).into_owned();
    match name.parse() {
        Ok(format) if descriptor::is_compatible(vk_format, format) => Ok(format),
        _ => Err(Ktx2Error::Format { name, vk_format }),
    }
}

fn rate(header: &Header, keys: &[u8]) -> Result<Rate, FileError> {
    let at = u64::from(header.word(56));
    let found = value(keys, KEY_RATE, at)?;
    let found = if found.is_some() { found } else { value(keys, KEY_PERIOD, at)? };
    let Some(value) = found else { return Ok(Rate::DEFAULT) };
    let Some((duration, rest)) = value.split_first_chunk() else {
        return Err(Ktx2Error::Keys(at).into());
    };
    let Some(timescale) = rest.first_chunk() else { return Err(Ktx2Error::Keys(at).into()) };
    Ok(Rate::new(u32::from_le_bytes(*timescale), u32::from_le_bytes(*duration))?)
}

impl<R: Read + Seek> Ktx2Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`FileError`] with [`Ktx2Error`] if this is not a KTX 2.0 file, or does not contain frames.
    pub fn new(mut reader: R) -> Result<Self, FileError> {
        let file = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        let header = Header::read(&mut reader)?;
        let keys = read_keys(&mut reader, &header, file)?;
        let layout = Layout::new(format(&header, &keys)?, header.word(20), header.word(24))?;
        let layout = layout.with_colour(read_colour(&mut reader, &header)?);
        let rate = rate(&header, &keys)?;
        // The number of layers is 0 if the texture is not an array.
        let layers = header.word(32).max(1);
        let (offset, bytes) = (header.long(80), header.long(88));
        let frame = layout.bytes();
        let fits = bytes == u64::from(layers) * frame as u64;
        if !fits || offset.checked_add(bytes).is_none_or(|end| end > file) {
            return Err(Ktx2Error::Level { offset, bytes, layers, frame }.into());
        }
        reader.seek(SeekFrom::Start(offset))?;
        Ok(Self { reader, layout, rate, first: offset, frames: layers.into(), file, frame: 0 })
    }

    /// Overrides the curve and the primaries that the file names.
    pub fn with_hint(self, hint: ColourHint) -> Self {
        Self { layout: hint.over(self.layout), ..self }
    }
}

impl<R: Read + Seek + Send> FrameReader for Ktx2Reader<R> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        Some(self.frames)
    }

    fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        if self.frame == self.frames {
            return Ok(false);
        }
        let want = self.layout.bytes();
        let have = read_exactly(&mut self.reader, frame, want, self.file)?;
        if have < want {
            // The layer was complete when opened; the file has been truncated since.
            return Err(FileError::Truncated { frame: self.frame, have, want });
        }
        self.frame += 1;
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), FileError> {
        self.reader.seek(SeekFrom::Start(self.first))?;
        self.frame = 0;
        Ok(())
    }
}
