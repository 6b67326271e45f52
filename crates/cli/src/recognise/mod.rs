//! Detects files that differ from their name or an option; the error names the format that they
//! look like.

mod bitstream;
mod container;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rushes::Codec;
use rushes::file::{MediaReader, ReadOptions, Track};

use self::bitstream::Look;
use crate::Usage;

/// Codecs whose files have a known structure; files of others may contain any octets.
const HAVE_FORM: [Codec; 12] = [
    Codec::H264,
    Codec::H265,
    Codec::H266,
    Codec::Opus,
    Codec::Klv,
    Codec::Vp8,
    Codec::Vp9,
    Codec::Av1,
    Codec::L16,
    Codec::L24,
    Codec::Pcmu,
    Codec::Pcma,
];

/// Bytes of a file that are examined.
const HEAD_LEN: u64 = 256 << 10;

/// Returns whether files of `codec` have a known structure.
pub(crate) fn has_form(codec: Codec) -> bool {
    HAVE_FORM.contains(&codec)
}

/// Returns the error for a container without a track of `codec` or, if `codec` is `None`, without a
/// track that can be sent.
pub(crate) fn no_track(file: &Path, codec: Option<Codec>, tracks: &[Track]) -> Usage {
    let wanted =
        codec.map_or_else(|| "track that can be sent".to_owned(), |it| it.title.to_owned());
    let from = quoted(file);
    let to = quoted(&file.with_extension("sent.mkv"));
    Usage(format!(
        "{} has no {wanted}, but {}. Try: ffmpeg -i {from} -c:v libx264 -c:a libopus {to}",
        file.display(),
        codings(tracks),
    ))
}

/// Returns the error for a container without audio that can be sent.
pub(crate) fn no_audio(file: &Path, tracks: &[Track]) -> Usage {
    let to = quoted(&file.with_extension("opus"));
    Usage(format!(
        "{} has no audio that can be sent, but {}. Try: ffmpeg -i {} -vn -c:a libopus {to}",
        file.display(),
        codings(tracks),
        quoted(file),
    ))
}

/// Returns the message about audio of a film that cannot be sent.
pub(crate) fn audio_left_out(file: &Path, track: &Track) -> String {
    format!(
        "the audio of {} ({}) is left out: only Opus can be sent. Try: ffmpeg -i {} -c:v copy -c:a \
         libopus {}",
        file.display(),
        track.coding,
        quoted(file),
        quoted(&file.with_extension("sent.mkv")),
    )
}

fn codings(tracks: &[Track]) -> String {
    let texts: Vec<_> =
        tracks.iter().map(|track| format!("{} ({})", track.coding, track.media)).collect();
    if texts.is_empty() { "no track at all".to_owned() } else { texts.join(", ") }
}

/// Checks that `file` is not a container, and not clearly of another codec than `codec`, if that is
/// known. Pipes and devices are not read.
///
/// # Errors
/// [`Usage`], with the command or the option that helps; the error of the operating system if
/// `file`, which has the name of a container, cannot be opened.
pub(crate) fn check_media(file: &Path, codec: Option<Codec>) -> anyhow::Result<()> {
    if codec.is_some_and(|codec| !has_form(codec)) {
        return Ok(());
    }
    let Some(head) = head(file)? else { return Ok(()) };
    let by_name = || container::of_name(file).filter(|_| codec.is_none());
    if let Some(kind) = container::of_octets(&head).or_else(by_name) {
        return Err(Usage(in_container(file, kind, codec)).into());
    }
    let Some(Look { codec: like, reason }) = bitstream::look(&head) else {
        check_samples(file, &head)?;
        return ivf_coding(&head).map_or(Ok(()), |coding| {
            let reason = format!("holds {coding}; of IVF, only VP8, VP9 and AV1 can be sent");
            Err(Usage(format!("{} {reason}", file.display())).into())
        });
    };
    if codec == Some(like) || codec.is_some_and(|codec| bitstream::may_be(codec, &head)) {
        return Ok(());
    }
    let not = codec.map_or_else(String::new, |codec| format!(", not {}", codec.title));
    Err(Usage(format!(
        "{} looks like {}{not}: its {reason}. Try: --codec {}",
        file.display(),
        like.title,
        like.name
    ))
    .into())
}

/// Returns whether a file has the name of IVF or WAV, which hold streams of several codecs.
fn is_shared(file: &Path) -> bool {
    let is = |name: &str| file.extension().is_some_and(|it| it.eq_ignore_ascii_case(name));
    is("ivf") || is("wav")
}

/// Checks that a file is not a WAV file of samples that cannot be sent.
fn check_samples(file: &Path, head: &[u8]) -> Result<(), Usage> {
    if !bitstream::is_wav(head) {
        return Ok(());
    }
    let Err(error) = MediaReader::open(file, Codec::L24, ReadOptions::default()) else {
        return Ok(());
    };
    Err(Usage(format!(
        "{error}; only samples of 16 and 24 bits and those of G.711 can be sent. Try: ffmpeg -i {} \
         -c:a pcm_s24le {}",
        quoted(file),
        quoted(&file.with_extension("24.wav")),
    )))
}

/// Returns the name of the coding in an IVF file.
fn ivf_coding(head: &[u8]) -> Option<String> {
    let coding = head.strip_prefix(b"DKIF")?.get(4..8)?;
    Some(String::from_utf8_lossy(coding).into_owned())
}

fn in_container(file: &Path, kind: &str, codec: Option<Codec>) -> String {
    let bare = bare_name(file, codec);
    let others = match codec {
        None => " (or .265, .266, .opus, for a stream of that codec)",
        Some(_) => "",
    };
    format!(
        "{} is a container ({kind}), and only the stream in it can be sent. Try: ffmpeg -i {} -c \
         copy {}{others}",
        file.display(),
        quoted(file),
        quoted(&bare),
    )
}

/// Checks that `file`, to be read as frames for textures, is neither a container nor a bitstream.
///
/// # Errors
/// As [`check_media`].
pub(crate) fn check_frames(file: &Path) -> anyhow::Result<()> {
    let Some(head) = head(file)? else { return Ok(()) };
    let like = || bitstream::look(&head).map(|look| look.codec.title);
    let kind = container::of_octets(&head).or_else(|| container::of_name(file));
    let Some(kind) = kind.or_else(like) else { return Ok(()) };
    Err(Usage(format!(
        "{} is a compressed film ({kind}), and frames are needed. Try: ffmpeg -i {} -pix_fmt \
         yuv420p {}",
        file.display(),
        quoted(file),
        quoted(&file.with_extension("y4m")),
    ))
    .into())
}

/// Returns the first bytes of an ordinary file, or `None` for other files and the standard input.
///
/// An error is returned only if the name is that of a container; otherwise it is reported when the
/// file is opened.
fn head(file: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    if file == Path::new("-") {
        return Ok(None);
    }
    match read_head(file) {
        Err(error) if container::of_name(file).is_some() || is_shared(file) => {
            Err(error).with_context(|| format!("{}: cannot open", file.display()))
        }
        head => Ok(head.unwrap_or_default()),
    }
}

fn read_head(file: &Path) -> std::io::Result<Option<Vec<u8>>> {
    if !std::fs::metadata(file)?.is_file() {
        return Ok(None);
    }
    let mut head = Vec::new();
    File::open(file)?.take(HEAD_LEN).read_to_end(&mut head)?;
    Ok(Some(head))
}

/// Returns a file name for the stream alone.
fn bare_name(file: &Path, codec: Option<Codec>) -> PathBuf {
    let extension = codec.and_then(|codec| codec.files.extensions.first().copied());
    let bare = file.with_extension(extension.unwrap_or("264"));
    // The container itself may have the extension of the stream.
    if bare == file {
        file.with_extension(format!("bare.{}", extension.unwrap_or("264")))
    } else {
        bare
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "._-/+:@%,=~".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests;
