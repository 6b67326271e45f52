//! Containers: MP4 (ISO/IEC 14496-12, QuickTime) and Matroska (RFC 9559, WebM). They hold several
//! tracks, whose frames have times.

mod configuration;
mod matroska;
mod mp4;
mod units;
mod writing;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use rushes_proto::FrameRate;

pub(super) use self::writing::writer;
use super::{Codec, FileError, FrameReader, ReadOptions};

/// A track of a container.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Track {
    /// Its codec, if it is one of the library's.
    pub codec: Option<Codec>,
    /// `video`, `audio` or `other`.
    pub media: &'static str,
    /// The container's name of its coding: `avc1`, `A_AAC`.
    pub coding: String,
    /// The frame rate that the container gives.
    pub frame_rate: Option<FrameRate>,
}

/// The kinds of containers that can be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Mp4,
    Matroska,
}

/// The codecs that containers carry; files of others may consist of any octets.
const CARRIED: [Codec; 6] =
    [Codec::H264, Codec::H265, Codec::H266, Codec::Vp8, Codec::Vp9, Codec::Opus];
/// The codecs that only Matroska and WebM carry here.
const OF_WEBM: [Codec; 2] = [Codec::Vp8, Codec::Vp9];

/// The frames of a file may have this many times its octets. An index can name the same octets often,
/// and key frames repeat the parameter sets, so that a small file could be read for days; no film needs
/// that.
const EXPANSION_MAX: u64 = 64;

/// The octets that the frames of a file may still have.
struct Budget(u64);

impl Budget {
    /// Creates the allowance for a file of `len` octets.
    fn new(len: u64) -> Self {
        Self(len.saturating_mul(EXPANSION_MAX))
    }

    /// Subtracts the octets of a frame from the allowance.
    ///
    /// # Errors
    /// If fewer are left.
    fn take(&mut self, octets: usize, path: &Path) -> Result<(), FileError> {
        let left = self.0.checked_sub(octets as u64).ok_or_else(|| {
            let reason =
                format!("its frames have over {EXPANSION_MAX} times the octets of the file");
            damaged(path, reason)
        })?;
        self.0 = left;
        Ok(())
    }
}

/// The octets of a container.
pub(super) trait Octets: Read + Seek + Send {}

impl<T: Read + Seek + Send> Octets for T {}

/// Returns the tracks of the container at `path`; `None` if the file is none, or a pipe or a
/// device.
///
/// # Errors
/// [`FileError::Io`]; [`FileError::Container`] if the container is damaged.
pub fn tracks(path: &Path) -> Result<Option<Vec<Track>>, FileError> {
    if super::is_live(path) {
        return Ok(None);
    }
    let opened = File::open(path).map_err(|source| {
        let path = path.to_owned();
        FileError::Io { path, action: "open", source }
    });
    let mut file = opened?;
    Ok(match kind(&mut file).map_err(|source| failed(path, source))? {
        Some(Kind::Mp4) => Some(mp4::Movie::open(Box::new(file), path)?.tracks()),
        Some(Kind::Matroska) => Some(matroska::tracks(Box::new(file), path)?),
        None => None,
    })
}

/// Opens the first track of `codec` in `file`, which errors call `path`; gives the file back if it is
/// not a container.
pub(super) fn open<F: Octets + 'static>(
    mut file: F,
    path: &Path,
    codec: Codec,
    options: ReadOptions,
) -> Result<Result<Box<dyn FrameReader>, F>, FileError> {
    if !CARRIED.contains(&codec) {
        return Ok(Err(file));
    }
    let kind = kind(&mut file).map_err(|source| failed(path, source))?;
    let Some(kind) = kind else { return Ok(Err(file)) };
    let file = Box::new(file);
    Ok(Ok(match kind {
        Kind::Mp4 => Box::new(mp4::Movie::open(file, path)?.reader(codec, options)?),
        Kind::Matroska => Box::new(matroska::reader(file, path, codec, options)?),
    }))
}

/// Returns the kind of a container by its first octets.
fn kind(file: &mut impl Octets) -> io::Result<Option<Kind>> {
    let mut head = Vec::new();
    file.take(8).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(kind_of(&head))
}

fn kind_of(head: &[u8]) -> Option<Kind> {
    const BOXES: [&[u8; 4]; 5] = [b"ftyp", b"styp", b"moov", b"mdat", b"wide"];
    if head.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]) {
        return Some(Kind::Matroska);
    }
    let kind = head.get(4..8)?;
    BOXES.iter().any(|it| *it == kind).then_some(Kind::Mp4)
}

fn failed(path: &Path, source: io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), action: "read", source }
}

fn damaged(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> FileError {
    FileError::Container { path: path.to_owned(), source: source.into() }
}

/// Returns the error for a container without a track of `codec`.
fn missing(path: &Path, codec: Codec, tracks: &[Track]) -> FileError {
    let codings: Vec<_> = tracks.iter().map(|track| track.coding.as_str()).collect();
    let codings = if codings.is_empty() { "no track".to_owned() } else { codings.join(", ") };
    FileError::NoTrack { path: path.to_owned(), codec: codec.title, codings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_known_by_their_first_octets() {
        assert_eq!(kind_of(b"\0\0\0\x20ftypisom"), Some(Kind::Mp4));
        assert_eq!(kind_of(b"\0\0\0\x08wide\0\0"), Some(Kind::Mp4));
        assert_eq!(kind_of(b"\x1a\x45\xdf\xa3\x9f\x42"), Some(Kind::Matroska));
        for octets in [&b""[..], b"\0\0\0\x01\x67\x64\0\x1f", b"OggS\0\x02\0\0", b"\0\0\0\x20fty"] {
            assert_eq!(kind_of(octets), None);
        }
    }
}
