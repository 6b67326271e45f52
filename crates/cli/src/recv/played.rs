//! `recv --whep`: a stream that a server of WHEP plays.

use rushes::Codec;
use rushes::peer::Direction;

use super::together::Together;
use super::track::Stream;
use super::{named_codec, record};
use crate::args::RecvArgs;
use crate::interrupt::Interrupt;
use crate::metrics::Metrics;
use crate::progress::note;
use crate::webrtc::{self, Entered};
use crate::{Outcome, stream};

/// Receives what the server at `url` plays, until it ends.
pub(super) fn receive(
    args: &RecvArgs,
    url: &str,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let metrics = Metrics::start(&args.metrics, args.output.quiet)?;
    let context = stream::context(&args.control)?;
    let mut peer = webrtc::peer(&context, &args.entry, url)?;
    for choices in codecs(args)? {
        for (number, codec) in choices.into_iter().enumerate() {
            let mut builder = peer.stream(codec);
            if let Some(recovery) = args.control.recovery {
                builder = builder.recovery(recovery.into());
            }
            let builder = super::finish(args, builder, false)?;
            if number == 0 {
                peer.add(builder, Direction::RecvOnly);
            } else {
                peer.add_alternative(builder);
            }
        }
    }
    let mut entered = Entered::new(peer, &args.entry, url)?;
    let Some(played) = entered.connect(|| interrupt.is_requested())? else {
        anyhow::bail!("interrupted before keys were agreed on; nothing was received");
    };
    if !args.output.quiet {
        note!("playing from {url}");
    }
    let connection = entered.handle();
    let has_left = || connection.ended().is_some();
    let together = Together::new(played.len(), interrupt).until(&has_left);
    let open = played.into_iter().map(|it| Stream::of(args, it.stream, it.codec));
    let mut streams = open.collect::<anyhow::Result<Vec<_>>>()?;
    for (number, stream) in streams.iter().enumerate() {
        metrics.observe(|| stream.observed(number));
    }
    let recorded = record(args, &mut streams, args.output_file.as_deref(), &together, None)?;
    match connection.ended() {
        Some(error) if !recorded.has_frames => anyhow::bail!("{error}; nothing was received"),
        _ => Ok(recorded.outcome),
    }
}

/// Returns the codecs of each stream that is received, the preferred one first: that of the file, or the video and the
/// audio that a container holds.
fn codecs(args: &RecvArgs) -> anyhow::Result<Vec<Vec<Codec>>> {
    if args.stream.codec.is_none()
        && let Some(file) = &args.output_file
    {
        let video = webrtc::videos_in(file);
        if !video.is_empty() {
            return Ok(vec![video, vec![Codec::Opus]]);
        }
    }
    Ok(vec![vec![named_codec(args)?]])
}
