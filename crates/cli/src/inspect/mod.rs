//! `rushes inspect`: reports the contents of a capture, as the library's receiver sees them.
//!
//! ```text
//! capture ─▶ link ─▶ ip ─▶ classify ─▶ offload ─▶ streams ─▶ live ─▶ census ─▶ report ─▶ text
//!                    │        │                                │
//!                fragments    └─▶ rtcp                         └─▶ extract
//! ```

mod args;
mod capture;
mod census;
mod classify;
mod clock;
mod codec;
mod extract;
mod fragments;
mod guess;
#[cfg(test)]
mod hostile;
mod intake;
mod ip;
mod link;
mod live;
mod names;
mod offload;
mod report;
mod rtcp;
mod stream_report;
mod stream_text;
mod streams;
mod telephone;
mod text;
mod unknown;

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use rushes::Ssrc;

pub(crate) use self::args::InspectArgs;
use self::capture::{CaptureError, CaptureReader};
use self::codec::{Encoding, Encodings, Known, codecs_from_sdp};
use self::extract::Extraction;
use self::intake::Intake;
pub(crate) use self::names::nal_unit_type;
use self::report::{Extracted, Failure, Report};
use self::streams::{Settings, Streams};
use crate::args::OutputArgs;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::print_line;
use crate::{Outcome, Usage, describe};

/// Packets between two checks of the clock and of Ctrl-C.
const CHECK_EVERY: u64 = 1024;

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let settings = Settings { encodings: encodings(args)?, reorder_time: args.reorder_time };
    let extraction = extraction(args)?;
    let name = args.file.display().to_string();
    let file = File::open(&args.file).with_context(|| format!("{name}: cannot open"))?;
    let metadata = file.metadata().with_context(|| format!("{name}: cannot open"))?;
    if metadata.is_dir() {
        anyhow::bail!("{name}: is a folder, not a capture");
    }
    let mut reader = CaptureReader::new(file).with_context(|| name.clone())?;
    let mut intake = Intake::new(Streams::new(settings, extraction));
    let failure = {
        let output = OutputArgs {
            json: args.json,
            quiet: args.quiet,
            verbose: args.verbose,
            stats_interval: None,
        };
        let mut progress = Progress::new(output, Some(metadata.len()));
        let ended = read(&mut reader, &mut intake, &mut progress, &interrupt);
        progress.finish();
        ended?
    };
    intake.streams.finish()?;
    let mut report = Report::new(name.clone(), reader.format().name(), reader.packets(), &intake);
    report.error = failure;
    let extracted = finish_extraction(args, &mut intake, &mut report, &interrupt);
    if args.json {
        print_line(serde_json::to_string(&report)?)?;
    } else if !args.quiet {
        print_line(report.to_string().trim_end())?;
    }
    let mut outcome = extracted?;
    for text in unused(args, &intake) {
        eprintln!("rushes: {name}: no stream has the SSRC {text} of --codec");
        outcome = Outcome::Failed;
    }
    if let Some(failure) = &report.error {
        eprintln!("rushes: {name}: {}", failure.reason);
        outcome = Outcome::Failed;
    }
    if report.streams.is_empty() {
        eprintln!("rushes: {name}: no RTP stream found");
        outcome = Outcome::Failed;
    }
    Ok(outcome)
}

/// Reads the capture to its end, or as far as possible.
fn read(
    reader: &mut CaptureReader,
    intake: &mut Intake,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Failure>> {
    loop {
        match reader.next_packet(|captured| intake.take(captured)) {
            Ok(Some(taken)) => taken?,
            Ok(None) => return Ok(cut(intake)),
            Err(error) => return Ok(Some(failure(error))),
        }
        if reader.packets().is_multiple_of(CHECK_EVERY) {
            let (packets, streams) = (reader.packets(), intake.streams.all.len());
            progress.place(reader.position(), || format!("{packets} packets  {streams} streams"));
            if interrupt.is_requested() {
                let reason = format!("interrupted after packet {packets}");
                return Ok(Some(Failure { packet: Some(packets), reason }));
            }
        }
    }
}

fn failure(error: CaptureError) -> Failure {
    Failure { packet: error.packet(), reason: error.to_string() }
}

/// Returns the failure if the capture cut RTP or RTCP packets.
fn cut(intake: &Intake) -> Option<Failure> {
    let cut = intake.cut?;
    let (packet, kept, original) = (cut.packet, cut.kept, cut.original);
    let more = match intake.cut_packets {
        1 => String::new(),
        packets => format!(" (and {} more)", packets - 1),
    };
    let reason = format!(
        "packet {packet} was cut to {kept} of {original} octets{more}: payloads are missing; \
         capture whole packets (tcpdump -s 0)"
    );
    Some(Failure { packet: Some(packet), reason })
}

/// Returns the codecs given on the command line.
fn encodings(args: &InspectArgs) -> anyhow::Result<Encodings> {
    let mut encodings = Encodings::default();
    for choice in &args.codec {
        let codec = choice.codec;
        match &choice.source {
            None => encodings.others = Some(codec),
            Some(text) => {
                let sources = args::ssrcs(text).into_iter().map(|ssrc| (ssrc, codec));
                encodings.by_source.extend(sources);
            }
        }
    }
    if let Some(path) = &args.sdp {
        let file = || path.display().to_string();
        let description =
            std::fs::read(path).with_context(|| format!("{}: cannot read", file()))?;
        let (by_type, warnings) = codecs_from_sdp(&description).with_context(file)?;
        encodings.by_type = by_type;
        if !args.quiet {
            describe::warn(path, &warnings);
        }
        if encodings.by_type.is_empty() {
            anyhow::bail!("{}: no media, so no codec is named", file());
        }
    }
    for (payload_type, codec) in &args.payload_type {
        let encoding = Encoding::of(*codec, Known::CommandLine);
        encodings.by_type.insert(payload_type.value(), encoding);
    }
    Ok(encodings)
}

/// Returns the SSRCs after `--codec` that no stream has.
fn unused<'a>(args: &'a InspectArgs, intake: &'a Intake) -> impl Iterator<Item = &'a String> {
    let sources = args.codec.iter().filter_map(|choice| choice.source.as_ref());
    sources.filter(|text| {
        let ssrcs = args::ssrcs(text);
        !intake.streams.all.iter().any(|stream| ssrcs.contains(&stream.key.ssrc))
    })
}

fn extraction(args: &InspectArgs) -> anyhow::Result<Option<Extraction>> {
    let (Some(text), Some(path)) = (&args.extract, &args.output_file) else { return Ok(None) };
    if path == Path::new("-") {
        let reason = "the report goes to the standard output; name a file after -o";
        return Err(Usage(reason.to_owned()).into());
    }
    let ssrcs: Vec<Ssrc> = args::ssrcs(text);
    if ssrcs.is_empty() {
        return Err(Usage(format!("--extract: {text:?} is not an SSRC of 32 bits")).into());
    }
    args.overwrite.check(path)?;
    Ok(Some(Extraction::new(ssrcs, path.clone(), args.overwrite)))
}

/// Gives the extracted file its final name, or reports why there is none.
fn finish_extraction(
    args: &InspectArgs,
    intake: &mut Intake,
    report: &mut Report,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let Some(mut extraction) = intake.streams.extraction.take() else { return Ok(Outcome::Done) };
    let text = args.extract.as_deref().unwrap_or_default();
    let Some(key) = extraction.stream() else {
        let ssrcs: Vec<&str> = report.streams.iter().map(|stream| &*stream.ssrc).collect();
        if !ssrcs.is_empty() {
            eprintln!("rushes: no stream has the SSRC {text}; there are {}", ssrcs.join(", "));
        }
        return Ok(Outcome::Failed);
    };
    if interrupt.is_requested() {
        return Ok(Outcome::Failed);
    }
    if extraction.units == 0 {
        eprintln!("rushes: no complete unit of {} was received; no file was written", key.ssrc);
        return Ok(Outcome::Failed);
    }
    extraction.finish()?;
    if extraction.namesakes > 0 {
        eprintln!(
            "rushes: {} has streams between other addresses; only the first one is in {}",
            key.ssrc,
            extraction.path.display()
        );
    }
    report.extracted = Some(Extracted {
        ssrc: key.ssrc.to_string(),
        file: extraction.path.display().to_string(),
        units: extraction.units,
        octets: extraction.octets,
    });
    Ok(Outcome::Done)
}
