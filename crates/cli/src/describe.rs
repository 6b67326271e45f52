//! Descriptions (SDP): read for `recv`, written for `send`.

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;

use anyhow::Context as _;
use rushes::file::MediaWriter;
use rushes::sdp::{self, Description, Encoding, Media, Warning};
use rushes::{Codec, Context, Ssrc, StreamBuilder};

use crate::Usage;
use crate::keygen::create_private;
use crate::progress::note;
use crate::source::Source;

/// Maximum number of frames of a file searched for parameter sets.
const FRAMES_MAX: usize = 100;

/// The settings of a receiver from a description.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) builder: StreamBuilder,
    pub(crate) codec: Codec,
    /// Parameter sets, to be written before the first frame if that has none.
    pub(crate) parameter_sets: Vec<u8>,
    /// The multicast group that is received, if it is one.
    pub(crate) group: Option<IpAddr>,
}

/// The wanted media of a description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) codec: Option<Codec>,
    pub(crate) ssrc: Option<Ssrc>,
    /// The file that is written, if it may have several media.
    pub(crate) film: Option<&'a Path>,
}

/// Reads `file`, and takes the first media that can be received and is wanted; for a container the
/// video and the audio.
pub(crate) fn read(
    file: &Path,
    wanted: Wanted<'_>,
    quiet: bool,
    context: &Context,
) -> anyhow::Result<Vec<Described>> {
    let octets = std::fs::read(file).with_context(|| file.display().to_string())?;
    let (description, warnings) =
        Description::parse_with_warnings(&octets).with_context(|| file.display().to_string())?;
    if !quiet {
        warn(file, &warnings);
    }
    let codec = wanted.codec;
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for mut media in description.media {
        if let Some(ssrc) = wanted.ssrc {
            keep_source(&mut media, ssrc);
        }
        match described(&media, codec, context) {
            Ok(described) => found.extend(described),
            Err(error) => refused.push(error),
        }
    }
    if !found.is_empty() {
        let (taken, left_out) = take(found, wanted.film);
        if !quiet {
            note_left_out(file, &left_out, &refused);
        }
        return Ok(taken);
    }
    if quiet {
        // The warnings explain why nothing can be received.
        warn(file, &warnings);
    }
    let nothing = || match codec {
        Some(codec) => anyhow::anyhow!("it describes no {} media", codec.title),
        None => anyhow::anyhow!("it describes no media"),
    };
    Err(refused.into_iter().next().map_or_else(nothing, anyhow::Error::from))
        .with_context(|| file.display().to_string())
}

/// Of the media that can be received, the first, and those that are left out. If the file `film` holds
/// both, the first of another kind is taken, too.
fn take(mut found: Vec<Described>, film: Option<&Path>) -> (Vec<Described>, Vec<Described>) {
    let mut taken = vec![found.remove(0)];
    let first = taken[0].codec;
    let is_other = |it: &Described| {
        let is_pair =
            matches!((first.media, it.codec.media), ("video", "audio") | ("audio", "video"));
        is_pair && film.is_some_and(|film| MediaWriter::holds(film, &[first, it.codec]))
    };
    if let Some(other) = found.iter().position(is_other) {
        taken.push(found.remove(other));
        taken.sort_by_key(|it| it.codec.media != "video");
    }
    (taken, found)
}

/// Says which media of a description are not received.
fn note_left_out(file: &Path, left_out: &[Described], refused: &[rushes::Error]) {
    for Described { codec, .. } in left_out {
        if codec.sample.is_some() {
            note!(
                "{}: its {} media is left out. Try: --codec {} -o sound.wav for this one",
                file.display(),
                codec.title,
                codec.name
            );
            continue;
        }
        note!(
            "{}: its {} media is left out. Try: -o film.mkv for video and audio, or --codec {} for \
             this one",
            file.display(),
            codec.title,
            codec.name
        );
    }
    for error in refused {
        note!("{}: a media is left out: {error}", file.display());
    }
}

fn described(
    media: &Media,
    wanted: Option<Codec>,
    context: &Context,
) -> Result<Option<Described>, rushes::Error> {
    let builder = context.described(media)?;
    let (format, (codec, _)) = media.first_supported(Codec::of_description)?;
    if wanted.is_some_and(|wanted| wanted != codec) {
        return Ok(None);
    }
    let parameter_sets = sdp::parameter_sets_of(&format.encoding);
    let group = media.ip().ok().filter(IpAddr::is_multicast);
    Ok(Some(Described { builder, codec, parameter_sets, group }))
}

/// Reports on the error output which lines of `file` cannot be used.
pub(crate) fn warn(file: &Path, warnings: &[Warning]) {
    for warning in warnings {
        eprintln!("rushes: {}: {warning}", file.display());
    }
}

/// Removes all sources but `ssrc` and that of its retransmissions from `media`.
fn keep_source(media: &mut Media, ssrc: Ssrc) {
    let rtx = media.rtx_ssrc(ssrc);
    media.ssrcs.retain(|source| source.ssrc == ssrc || Some(source.ssrc) == rtx);
}

/// Writes the description of streams with the settings `builders`, which send `sources`.
pub(crate) fn write(
    file: &Path,
    builders: &[StreamBuilder],
    sources: &[Source],
    channel_order: Option<&str>,
) -> anyhow::Result<()> {
    let mut description: Option<Description> = None;
    for (builder, source) in builders.iter().zip(sources) {
        let mut encoding = encoding_of(source)?;
        if let (Encoding::Other { parameters, .. }, Some(order), Some(_)) =
            (&mut encoding, channel_order, source.codec.sample)
        {
            *parameters = format!("channel-order={order}");
        }
        let of_stream = builder.description(encoding);
        let of_stream = of_stream.context("cannot describe the stream")?;
        match &mut description {
            Some(description) => description.media.extend(of_stream.media),
            none => *none = Some(of_stream),
        }
    }
    let text = description.map(|it| it.write()).unwrap_or_default();
    if file == Path::new("-") {
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(());
    }
    // Renamed when complete, because a receiver may be waiting for the file.
    let part = file.with_extension("sdp.part");
    // A description can hold keys.
    create_private(&part)
        .and_then(|mut part| part.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&part, file))
        .with_context(|| file.display().to_string())
}

/// Returns the encoding of the source with its first parameter sets. A live source can be read only
/// once, so its parameter sets are only in its frames.
pub(crate) fn encoding_of(source: &Source) -> anyhow::Result<Encoding> {
    let frame = if source.is_live() { Vec::new() } else { describing_frame(source)? };
    sdp::encoding_of(source.codec, &frame).ok_or_else(|| {
        let named = Codec::all().filter(|codec| codec.encoding.is_some());
        let names: Vec<_> = named.map(|codec| codec.name).collect();
        Usage(format!("--sdp needs a codec that has a name in SDP: {}", names.join(", "))).into()
    })
}

/// Returns the first frame with parameter sets or, if there is none, the first frame.
fn describing_frame(source: &Source) -> anyhow::Result<Vec<u8>> {
    let mut reader = source.open(None)?;
    let mut first = None;
    for _ in 0..FRAMES_MAX {
        let Some(frame) = reader.next_frame()? else { break };
        if sdp::has_parameter_sets(source.codec, &frame.data) {
            return Ok(frame.data.clone());
        }
        first.get_or_insert_with(|| frame.data.clone());
        if !source.codec.has_nal_units() {
            break;
        }
    }
    Ok(first.unwrap_or_default())
}
