//! `rushes send`: sends a file, or the tracks of one, to a host.

mod ahead;
#[cfg(feature = "webrtc")]
mod browsers;
mod destinations;
mod film;
mod rate;
mod refusals;
mod report;
mod sending;
mod target;
mod thinning;
mod watch;
mod way;

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use rushes::file::MediaReader;
use rushes::{Codec, Context, FrameRate, Pacing, Ssrc, StreamBuilder};
use serde_json::json;

use self::film::Beginning;
pub(crate) use self::film::{Film, beginning};
pub(crate) use self::rate::RateArgs;
use self::refusals::Refusals;
use self::sending::Sending;
use self::thinning::Thinning;
use self::watch::Watch;
use self::way::Way;
use crate::args::{ControlArgs, SendArgs};
use crate::control::RtcpSummary;
use crate::interrupt::Interrupt;
use crate::line_output::LineFile;
use crate::metrics;
use crate::metrics::Metrics;
use crate::outage::Outage;
use crate::progress::{Progress, note};
use crate::schedule::Schedule;
use crate::source::Source;
use crate::{Outcome, Usage, describe, security, stream, zrtp};

const NO_THREAD: &str = "cannot start a thread";

/// The ports that a stream takes: one for media, one for RTCP.
const PORTS: u16 = 2;

pub(crate) fn run(args: &SendArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let mut sources =
        Source::all(&args.file, args.audio.as_deref(), &args.stream, args.output.quiet)?;
    check(args, &sources)?;
    let mut readers = open_all(args, &mut sources)?;
    let beginning = beginning(&mut readers)?;
    let schedules = schedules(args, &sources, &readers, beginning);
    let context = stream::context(&args.control)?;
    let way = Way::new(args, &context)?;
    // A description carries the key to the receiver, so a random one is made if none is given: the
    // same for all streams, whose SSRCs differ.
    let secured = match args.sdp {
        Some(_) => args.security.security_or_random()?,
        None => args.security.security()?,
    };
    let mut builders = Vec::new();
    for (number, (source, schedule)) in sources.iter().zip(&schedules).enumerate() {
        let builder = build(args, &context, &way, source, (number as u16, schedule.rate()))?;
        builders.push(security::set(builder, secured.clone()));
    }
    if let Some(file) = &args.sdp {
        args.overwrite.check(file).map_err(|error| with_its_key(args, file, error))?;
        describe::write(file, &builders, &sources, args.channel_order.as_deref())?;
        if args.dry_run {
            note_new_key(args, file);
            if args.output.json {
                crate::report::print_line(json!({ "described": file.display().to_string() }))?;
            }
            return Ok(Outcome::Done);
        }
    }
    note_video(args, &sources);
    let metrics = Metrics::start(&args.metrics, args.output.quiet)?;
    let is_one_of_several = sources.len() > 1;
    let Some(mut opened) = way.open(args, builders, &sources, &interrupt)? else {
        anyhow::bail!("interrupted before keys were agreed on; nothing was sent");
    };
    let (mut sendings, mut of_sendings) = (Vec::new(), Vec::new());
    let open = sources.into_iter().zip(opened.take_streams()).zip(schedules).zip(readers);
    for (number, (((source, stream), schedule), reader)) in open.enumerate() {
        let Some(stream) = stream else { continue };
        let name = is_one_of_several.then_some((number, source.codec));
        let requests = args.key_frames.open(&source)?;
        let sending = sending(args, source, stream, schedule, name);
        sendings.push(Sending { requests, ..sending });
        of_sendings.push(reader);
    }
    opened.watch(&mut sendings)?;
    for (number, sending) in sendings.iter().enumerate() {
        metrics.observe(|| observed(number, sending));
    }
    let watch = Watch::new(&sendings, args.rate.target_rate_to.as_ref())?;
    let film = Film::new(sendings.len(), &interrupt);
    send(&mut sendings, of_sendings, &film, &interrupt, watch)?;
    report::print(args, &sendings)?;
    ask(args, &sendings)?;
    // A source without an end is ended by Ctrl-C.
    let is_endless = args.repeat == 0 || sendings.iter().any(|it| it.source.is_live());
    Ok(report::outcome(interrupt.is_requested() && !is_endless, &mut sendings))
}

/// Asks whether the other side saw the same words, with `--zrtp-ask`.
fn ask(args: &SendArgs, sendings: &[Sending<'_>]) -> anyhow::Result<()> {
    for agreed in sendings.iter().filter_map(|it| it.agreed.as_ref()) {
        if args.security.zrtp_ask {
            agreed.ask()?;
        }
    }
    Ok(())
}

/// Returns when the frames of each source are sent.
fn schedules(
    args: &SendArgs,
    sources: &[Source],
    readers: &[Option<MediaReader>],
    beginning: Beginning,
) -> Vec<Schedule> {
    let each = sources.iter().zip(readers);
    let schedules = each.map(|(source, reader)| {
        let declared = reader.as_ref().and_then(MediaReader::frame_rate).or(source.frame_rate);
        let requested =
            args.timing.fps.filter(|_| sources.len() == 1 || source.codec.media == "video");
        let schedule = Schedule::new(requested, declared, source.clock_rate);
        if source.is_track() {
            schedule.with_origin(beginning.decoded)
        } else {
            schedule.with_delay(beginning.delay())
        }
    });
    schedules.collect()
}

/// Opens all files, and omits an empty one beside another. A file that cannot be read is reported
/// before anything is sent. A live source is opened later: frames that it makes before the stream
/// exists would be sent late. Only uncompressed video is not, whose first frame shows its size.
fn open_all(
    args: &SendArgs,
    sources: &mut Vec<Source>,
) -> anyhow::Result<Vec<Option<MediaReader>>> {
    let open = |source: &mut Source| {
        if source.codec == Codec::Uncompressed {
            return source.open_raw(args.timing.fps).map(Some);
        }
        if source.is_live() { Ok(None) } else { source.open(args.timing.fps).map(Some) }
    };
    let mut readers = sources.iter_mut().map(open).collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(Some(sound)) = readers.get_mut(1)
        && sound.peek()?.is_none()
    {
        note!("{}: its audio contains no frame, and is left out", sources[1].name());
        sources.truncate(1);
        readers.truncate(1);
    }
    Ok(readers)
}

/// Says what receivers of uncompressed video need, since packets do not.
fn note_video(args: &SendArgs, sources: &[Source]) {
    let video = sources.iter().find_map(|source| source.raw_video);
    let Some(video) = video.filter(|_| args.sdp.is_none() && !args.output.quiet) else { return };
    note!(
        "receivers need --codec uncompressed --size {}x{} --sampling {} --depth {}, or the \
         description that --sdp writes",
        video.width(),
        video.height(),
        video.sampling(),
        video.depth(),
    );
}

/// Adds how to send a stream that a description with a new key describes.
fn with_its_key(args: &SendArgs, file: &Path, error: anyhow::Error) -> anyhow::Error {
    if !args.security.makes_a_key() {
        return error;
    }
    let name = file.display();
    anyhow::anyhow!("{error}; --key-file {name} instead of --sdp {name} sends with its key")
}

/// Says how to send the stream that was described with a new key.
fn note_new_key(args: &SendArgs, file: &Path) {
    let Some(suite) = args.security.srtp.filter(|_| args.security.makes_a_key()) else { return };
    if args.output.quiet || file == Path::new("-") {
        return;
    }
    let ssrc = match args.ssrc {
        Some(ssrc) => {
            let rtx = args.control.rtx_ssrc.map(|ssrc| format!(" --rtx-ssrc {:#010x}", ssrc.0));
            format!(" --ssrc {:#010x}{} --fresh-key", ssrc.0, rtx.unwrap_or_default())
        }
        None => String::new(),
    };
    note!(
        "{name} has a new key; to send with it: --srtp {suite} --key-file {name}{ssrc} instead of \
         --sdp and --dry-run",
        name = file.display(),
    );
}

/// Sends the streams, each on a thread of its own if there are several.
fn send(
    sendings: &mut [Sending<'_>],
    readers: Vec<Option<MediaReader>>,
    film: &Film<'_>,
    interrupt: &Interrupt,
    watch: Watch,
) -> anyhow::Result<()> {
    let mut pairs = sendings.iter_mut().zip(readers);
    let first = pairs.next();
    thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        // The watch ends when this end of the channel is dropped.
        let (_sending, sending) = mpsc::channel();
        named("rushes-watch")
            .spawn_scoped(scope, move || watch.run(film, &sending))
            .context(NO_THREAD)?;
        let mut others = Vec::new();
        let run = |(sending, reader): (&mut Sending<'_>, _)| {
            let _guard = film.stop.guard();
            let sent = sending.run(film, interrupt, reader);
            if sent.is_err() {
                film.stop.fail();
            }
            sent
        };
        for pair in pairs {
            let other = named("rushes-send").spawn_scoped(scope, move || run(pair));
            others.push(other.context(NO_THREAD)?);
        }
        let sent = first.map_or(Ok(()), run);
        for other in others {
            other.join().map_err(|_| anyhow::anyhow!("a sending thread panicked"))??;
        }
        sent
    })
}

fn sending(
    args: &SendArgs,
    source: Source,
    (stream, agreed): (rushes::MediaStream, Option<zrtp::Agreed>),
    schedule: Schedule,
    name: Option<(usize, Codec)>,
) -> Sending<'_> {
    if args.max_temporal_id.is_some() {
        stream.handle().set_max_temporal_id(args.max_temporal_id);
    }
    let is_endless = source.is_live() || args.repeat == 0;
    let len = (!is_endless).then(|| source.len().saturating_mul(args.repeat));
    let is_thinned = stream.rtcp().target_rate().is_some() && !source.is_live();
    let thinning = source.codec.nal.filter(|_| is_thinned).map(Thinning::new);
    Sending {
        args,
        source,
        stream,
        agreed,
        schedule,
        progress: Progress::of_stream(args.output, len, name),
        rtcp: RtcpSummary::default(),
        outage: Outage::new(args.give_up, args.output.quiet),
        refusals: Refusals::default(),
        thinning,
        requests: None,
        #[cfg(feature = "webrtc")]
        browsers: None,
        position: 0,
        time: Duration::ZERO,
    }
}

/// Returns a stream, as metrics see it.
fn observed(number: usize, sending: &Sending<'_>) -> metrics::Sending {
    let Sending { args, source, stream, schedule, .. } = sending;
    let (timing, has_rate) = (args.timing, !source.is_live() && !args.timing.flat_out);
    metrics::Sending {
        handle: stream.handle(),
        rtcp: stream.rtcp(),
        number,
        codec: source.codec,
        clock_rate: source.clock_rate,
        outages: sending.outage.counts(),
        frame_rate: has_rate.then(|| schedule.rate().per_second()),
        pacing: timing.pacing.and_then(metrics::rate_of),
    }
}

/// Refuses options that contradict each other.
fn check(args: &SendArgs, sources: &[Source]) -> Result<(), Usage> {
    if let (Some(_), [film, sound]) = (args.timing.fps, sources)
        && (film.is_track() || sound.is_track())
    {
        let reason = "--fps would send the video at another speed than its sound: leave --fps out, \
                      or send the video alone by --codec";
        return Err(Usage(reason.to_owned()));
    }
    let codecs: Vec<_> = sources.iter().map(|source| source.codec).collect();
    stream::check_samples(&args.stream, &codecs)?;
    destinations::check(args, sources.len())?;
    if args.dry_run && args.security.zrtp {
        let reason = "--dry-run cannot describe a --zrtp stream: its values are new in each run";
        return Err(Usage(reason.to_owned()));
    }
    if let Some(first) = sources.first() {
        args.rate.check(first)?;
    }
    if args.rate.target_rate_to == Some(LineFile::Stdout)
        && (args.output.json || args.sdp.as_deref() == Some(Path::new("-")))
    {
        let reason = "the standard output is taken by --target-rate-to -: give it a pipe, or \
                      --json and --sdp a file";
        return Err(Usage(reason.to_owned()));
    }
    args.key_frames
        .check(sources, args.output.json || args.sdp.as_deref() == Some(Path::new("-")))?;
    let live = sources.iter().find(|source| source.is_live());
    if let (Some(source), true) = (live, args.repeat != 1) {
        let reason = format!("{} can be read only once: leave --loop out", source.name());
        return Err(Usage(reason));
    }
    if let (Some(source), true) = (live, sources.len() > 1) {
        let reason = format!(
            "{} is live, and --audio is a file of another time: leave --audio out",
            source.name()
        );
        return Err(Usage(reason));
    }
    Ok(())
}

/// Refuses SSRCs that contradict the key, or that the description cannot name.
fn check_sources(
    args: &SendArgs,
    control: &ControlArgs,
    (is_first, ssrc): (bool, Option<Ssrc>),
) -> anyhow::Result<()> {
    let sets_source = ssrc.is_some() || control.rtx_ssrc.is_some();
    if sets_source && args.security.has_given_key() && !args.fresh_key {
        let reason = "a second run with the same key and SSRC repeats the key stream, which reveals \
                      both streams: leave --ssrc and --rtx-ssrc out, add --fresh-key if the key is \
                      new, or use --zrtp --secret-file, which makes a key for each run";
        return Err(Usage(reason.to_owned()).into());
    }
    if let Some(ssrc) = args.security.described_ssrc()?.filter(|it| is_first && ssrc != Some(*it)) {
        let reason = format!(
            "the description in --key-file names the SSRC {ssrc:#010x}, and its receivers accept \
             no other: add --ssrc {ssrc:#010x} --fresh-key, in a single run, or describe the stream \
             without --ssrc",
            ssrc = ssrc.0,
        );
        return Err(Usage(reason).into());
    }
    if args.sdp.is_some() && control.rtx_ssrc.is_some() && ssrc.is_none() {
        let reason = "--sdp can name --rtx-ssrc only together with --ssrc: give --ssrc too";
        return Err(Usage(reason.to_owned()).into());
    }
    Ok(())
}

/// Returns the stream of source `number`. A stream's options apply to the first one; the others use
/// the ports after its ports, and default values.
fn build(
    args: &SendArgs,
    context: &Context,
    way: &Way,
    source: &Source,
    (number, rate): (u16, FrameRate),
) -> anyhow::Result<StreamBuilder> {
    let is_first = number == 0;
    let (mut of_stream, mut control) = (args.stream.clone(), args.control.clone());
    let ssrc = args.ssrc.filter(|_| is_first);
    if !is_first {
        (of_stream.payload_type, of_stream.clock_rate, of_stream.channels) = (None, None, None);
        (control.rtcp_port, control.rtx_payload_type, control.rtx_ssrc) = (None, None, None);
    }
    let payload_type = of_stream.payload_type.unwrap_or_else(|| source.codec.payload_type());
    stream::check_rtx(&control, payload_type, ssrc)?;
    check_sources(args, &control, (is_first, ssrc))?;
    let timing = args.timing;
    let pacing = match (timing.pacing, timing.flat_out) {
        (Some(pacing), _) => pacing,
        (None, true) => Pacing::Off,
        (None, false) => Pacing::default(),
    };
    let mut builder = way.stream(args, context, source, (number, &of_stream, &control))?;
    builder = source
        .set(builder)
        .frame_rate(rate)
        .pacing(pacing)
        .burst(timing.burst.unwrap_or_default())
        .circuit_breakers(!args.no_circuit_breakers);
    if is_first {
        builder = args.rate.set(builder)?;
    }
    if let Some(mid) = args.mid.as_ref().filter(|_| is_first) {
        builder = builder.mid(mid);
    }
    if let Some(fec) = args.fec {
        builder = builder.fec(fec.format(args.fec_format.into()));
    }
    if let Some(ssrc) = ssrc {
        builder = builder.ssrc(ssrc);
    }
    if let Some(ssrc) = control.rtx_ssrc {
        builder = builder.rtx_ssrc(ssrc);
    }
    Ok(builder)
}
