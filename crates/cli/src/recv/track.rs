//! The open streams of a reception, and the results of each.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use anyhow::Context as _;
use rushes::file::Sampling;
use rushes::format::RawParameters;
use rushes::{Codec, MediaStream};

use super::contest::{Contest, Counts};
use super::hints::Hints;
use super::reception::{Received, Reception};
use super::together::Together;
use super::writer::Writer;
use crate::args::RecvArgs;
use crate::control::RtcpSummary;
use crate::describe::Described;
use crate::metrics::{Receiving, Written};
use crate::{security, zrtp};

/// A restarted receiver has lost its replay list (RFC 3711 section 3.3.2).
const REPLAY: &str = "rushes: packets recorded under this key in an earlier run would be accepted; \
                      --zrtp --secret-file makes a key for each run\n";

/// An open stream.
pub(super) struct Stream {
    pub(super) media: MediaStream,
    pub(super) agreed: Option<zrtp::Agreed>,
    pub(super) codec: Codec,
    /// How samples are sampled.
    pub(super) sampling: Option<Sampling>,
    /// Parameter sets from a description.
    pub(super) parameter_sets: Vec<u8>,
    /// What is known of uncompressed video.
    pub(super) raw: Option<RawParameters>,
    /// The values of the written source for metrics.
    pub(super) written: Arc<Written>,
    /// The sources of the next file that have begun, and the counters of earlier files.
    pub(super) next: Contest,
    pub(super) rtcp: RtcpSummary,
    pub(super) earlier: Counts,
}

impl Stream {
    /// Opens a stream; with key agreement, waits for the other side. Returns `None` if the user
    /// stops it first.
    pub(super) fn open(
        args: &RecvArgs,
        described: Described,
        together: &Together<'_>,
    ) -> anyhow::Result<Option<Self>> {
        let Described { builder, codec, parameter_sets, .. } = described;
        let raw = builder.raw_parameters().cloned();
        let sampling = builder.sampling();
        let prints = !args.output.quiet && !args.output.json;
        let wait = args.wait.filter(|_| !together.has_begun());
        let is_stopped = || together.stop.is_requested() || together.has_had_its_time(args);
        let opened = zrtp::open(builder, is_stopped, wait, |address| {
            let listening =
                if prints { format!("listening on {address}\n") } else { String::new() };
            let warns = args.security.has_given_key() && !args.output.quiet;
            // A single write serves programs that read the address from a pipe.
            let text = format!("{listening}{}", if warns { REPLAY } else { "" });
            std::io::stderr().write_all(text.as_bytes())?;
            Ok(())
        })?;
        let Some((media, agreed)) = opened else { return Ok(None) };
        zrtp::print_agreed(agreed.as_ref(), args.output.quiet);
        let mut stream = Self::of(args, media, codec)?;
        (stream.agreed, stream.sampling) = (agreed, sampling);
        (stream.parameter_sets, stream.raw) = (parameter_sets, raw);
        Ok(Some(stream))
    }

    /// Takes an open stream.
    pub(super) fn of(
        args: &RecvArgs,
        mut media: MediaStream,
        codec: Codec,
    ) -> anyhow::Result<Self> {
        if !args.output.quiet {
            let is_given = args.sdp.is_some() || args.whep.is_some();
            let mut hints = Hints::new(codec, is_given || args.stream.payload_type.is_some());
            media.receiver()?.on_event(move |event| {
                security::report_event(&event);
                hints.take(&event);
            });
        }
        Ok(Self {
            media,
            agreed: None,
            codec,
            sampling: None,
            parameter_sets: Vec::new(),
            raw: None,
            written: Arc::default(),
            next: Contest::default(),
            rtcp: RtcpSummary::default(),
            earlier: Counts::default(),
        })
    }

    /// Returns the stream as metrics see it.
    pub(super) fn observed(&self, number: usize) -> Receiving {
        Receiving {
            handle: self.media.handle(),
            rtcp: self.media.rtcp(),
            number,
            codec: self.codec,
            written: Arc::clone(&self.written),
        }
    }
}

/// A stream, and its results in a reception.
pub(super) struct Track<'a> {
    /// Its number in the reception, from 0.
    pub(super) number: usize,
    /// Whether the reception has other streams.
    pub(super) is_one_of_several: bool,
    pub(super) stream: &'a mut Stream,
    /// The name of the file, where there may be others.
    pub(super) file: Option<&'a Path>,
    pub(super) writer: Writer<'a>,
    pub(super) received: Received,
}

impl Track<'_> {
    /// Returns the number and the codec of the stream, where there are several.
    pub(super) fn name(&self) -> Option<(usize, Codec)> {
        self.is_one_of_several.then_some((self.number, self.stream.codec))
    }

    /// Returns the prefix of messages about the stream: its file and its codec, where there are
    /// several.
    pub(super) fn prefix(&self) -> String {
        let file = self.file.map_or_else(String::new, |file| format!("{}: ", file.display()));
        let codec = self.name().map_or_else(String::new, |(_, codec)| format!("{}: ", codec.title));
        file + &codec
    }

    /// Returns whether each sender has a file of its own.
    pub(super) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Keeps the frames and counters with which the next file begins.
    pub(super) fn end(&mut self) {
        let Self { stream, received, .. } = self;
        let contest = std::mem::take(&mut received.contest);
        stream.rtcp = std::mem::take(&mut received.rtcp).without(contest.written());
        stream.earlier = contest.sources().fold(stream.earlier, |sum, (_, it)| sum.plus(it));
        stream.next = contest.next();
    }
}

/// Receives the streams until they end, each on a thread of its own if there are several.
pub(super) fn receive(
    args: &RecvArgs,
    tracks: &mut [Track<'_>],
    together: &Together<'_>,
) -> anyhow::Result<()> {
    let run = |track: &mut Track<'_>| -> anyhow::Result<()> {
        let _guard = together.stop.guard();
        let ended = Reception::new(args, together, track).run();
        if ended.is_err() {
            together.stop.fail();
        }
        ended
    };
    let Some((first, others)) = tracks.split_first_mut() else { return Ok(()) };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for track in others {
            let thread = thread::Builder::new().name("rushes-recv".to_owned());
            let spawned = thread.spawn_scoped(scope, move || run(track));
            threads.push(
                spawned.inspect_err(|_| together.stop.fail()).context("cannot start a thread")?,
            );
        }
        let ended = run(first);
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a receiving thread panicked"))??;
        }
        ended
    })
}
