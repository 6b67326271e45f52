//! `rushes texture encode` and `decode`: converts one file into another.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rushes::texture::source::{PatternSpec, Source};
use rushes::texture::{Format, Layout, Quality, metric};
use serde_json::{Value, json};

use super::args::{DecodeArgs, EncodeArgs, FileArgs};
use super::convert::Converter;
use super::encodable;
use super::kind::Kind;
use super::live::{Live, per_second};
use super::output::Output;
use super::{output, source};
use crate::interrupt::Interrupt;
use crate::report::counted;
use crate::{Outcome, Usage, report};

pub(crate) fn encode(args: &EncodeArgs) -> anyhow::Result<Outcome> {
    let kind = Kind::of(&args.files.output)?;
    let choose = |input: Format| args.format.unwrap_or_else(|| kind.encoded(input));
    convert(&args.files, choose, args.quality.quality, args.psnr)
}

pub(crate) fn decode(args: &DecodeArgs) -> anyhow::Result<Outcome> {
    let kind = Kind::of(&args.files.output)?;
    convert(&args.files, |input| kind.picture(input), Quality::default(), false)
}

/// The results of a conversion.
#[derive(Default)]
struct Done {
    frames: u64,
    /// Time of the conversion alone.
    busy: Duration,
    time: Duration,
    meter: Option<PsnrMeter>,
    /// The first file written and the last.
    files: (PathBuf, PathBuf),
}

/// Checks that the report and the file do not both use the standard output.
fn check_pipe(args: &FileArgs) -> anyhow::Result<()> {
    if args.report.json && args.output == Path::new("-") {
        let reason = "--json and - both write to the standard output; name a file";
        return Err(Usage(reason.to_owned()).into());
    }
    Ok(())
}

fn convert(
    args: &FileArgs,
    choose: impl FnOnce(Format) -> Format,
    quality: Quality,
    psnr: bool,
) -> anyhow::Result<Outcome> {
    check_pipe(args)?;
    output::check_new(&args.output, args.overwrite)?;
    let interrupt = Interrupt::install()?;
    let opened = source::open(&args.input, &args.source, false, &interrupt)?;
    let Some(mut source) = opened else { return Ok(Outcome::Failed) };
    let input = *source.layout();
    if source.length().is_none() && args.source.frames.is_none() && is_pattern(args) {
        let reason = format!("{}: has no end; set --frames", source::name(&args.input));
        return Err(Usage(reason).into());
    }
    let format = choose(input.format());
    encodable::check_file(input.format(), format)?;
    encodable::check_quality(quality, input.format(), format)?;
    let output = Output::create(&args.output, input, format, source.rate())?;
    let mut output = output.with_quality(quality);
    let mut done = Done::default();
    if psnr {
        done.meter = Some(PsnrMeter::new(&input, output.layout())?);
    }
    let mut live = Live::new(args.report);
    let (length, start) = (source.length(), Instant::now());
    let mut changed = None;
    while !interrupt.is_requested() {
        let Some(frame) = source.next_frame()? else { break };
        if *source.layout() != input {
            changed = Some(*source.layout());
            break;
        }
        let began = Instant::now();
        let converted = output.convert(&frame)?;
        done.busy += began.elapsed();
        if let Some(meter) = &mut done.meter {
            meter.count(&frame, converted)?;
        }
        output.write()?;
        done.frames += 1;
        done.time = start.elapsed();
        if live.due().is_some() {
            let of = length.map_or_else(String::new, |length| format!(" of {length}"));
            let line = format!("{} frames{of}  {}", done.frames, speed(&done, &input));
            live.show(&line, || json!({ "frames": done.frames }));
        }
    }
    live.finish();
    if done.frames == 0 {
        anyhow::bail!("{}: contains no frame; nothing was written", source::name(&args.input));
    }
    let layout = *output.layout();
    done.files = output.files();
    output.finish()?;
    print(args, &done, (&input, &layout))?;
    if let Some(layout) = changed {
        let (width, height, format) = (layout.width(), layout.height(), layout.format());
        let (name, frames) = (source::name(&args.input), done.frames);
        anyhow::bail!(
            "{name}: the pictures change to {width}×{height} {format} at frame {frames}, and a file has \
             pictures of one kind: it has the {frames} before"
        );
    }
    Ok(if interrupt.is_requested() { Outcome::Failed } else { Outcome::Done })
}

fn is_pattern(args: &FileArgs) -> bool {
    args.input.to_str().is_some_and(PatternSpec::is_one)
}

fn megapixels(done: &Done, layout: &Layout) -> f64 {
    let pixels = u64::from(layout.width()) * u64::from(layout.height()) * done.frames;
    per_second(pixels, done.busy) * 1e-6
}

fn speed(done: &Done, layout: &Layout) -> String {
    format!(
        "{:.0} MPixel/s, {:.1} frames/s with files",
        megapixels(done, layout),
        per_second(done.frames, done.time)
    )
}

fn print(args: &FileArgs, done: &Done, layouts: (&Layout, &Layout)) -> anyhow::Result<()> {
    let (input, output) = layouts;
    let octets = done.frames * output.bytes() as u64;
    let (first, last) = (done.files.0.display().to_string(), done.files.1.display().to_string());
    if args.report.json {
        report::print_line(json!({
            "input": source::name(&args.input),
            "output": args.output.display().to_string(),
            "first_file": first,
            "last_file": last,
            "input_format": input.format().name(),
            "format": output.format().name(),
            "width": output.width(),
            "height": output.height(),
            "frames": done.frames,
            "octets": octets,
            "seconds": done.time.as_secs_f64(),
            "megapixels_per_second": megapixels(done, input),
            "psnr": done.meter.as_ref().map(PsnrMeter::object),
        }))?;
    } else if !args.report.quiet {
        let files = if first == last { first } else { format!("{first} to {last}") };
        eprintln!(
            "{files}: {} of {}×{} {} to {}, {octets} octets, {}",
            counted(done.frames, "frame"),
            output.width(),
            output.height(),
            input.format(),
            output.format(),
            speed(done, input),
        );
        if let Some(meter) = &done.meter {
            eprintln!("{}", meter.text());
        }
    }
    Ok(())
}

/// Differences of frames from their originals.
struct PsnrMeter {
    original: (Converter, Vec<u8>),
    converted: (Converter, Vec<u8>),
    /// Sum of the mean squared differences.
    squares: f64,
    frames: u64,
    least: f64,
}

impl PsnrMeter {
    fn new(original: &Layout, converted: &Layout) -> anyhow::Result<Self> {
        let side = |layout: &Layout| -> anyhow::Result<_> {
            let converter = Converter::new(*layout, Format::Rgba8)?;
            let picture = vec![0; converter.output().bytes()];
            Ok((converter, picture))
        };
        Ok(Self {
            original: side(original)?,
            converted: side(converted)?,
            squares: 0.0,
            frames: 0,
            least: f64::INFINITY,
        })
    }

    fn count(&mut self, original: &[u8], converted: &[u8]) -> anyhow::Result<()> {
        for ((converter, picture), frame) in
            [(&mut self.original, original), (&mut self.converted, converted)]
        {
            converter.convert(frame, picture)?;
        }
        let decibels = metric::psnr_rgb(&self.original.1, &self.converted.1);
        self.squares += 10_f64.powf(-decibels / 10.0);
        self.least = self.least.min(decibels);
        self.frames += 1;
        Ok(())
    }

    /// Returns the PSNR of all frames together, in decibels.
    fn all(&self) -> f64 {
        -10.0 * (self.squares / self.frames.max(1) as f64).log10()
    }

    fn text(&self) -> String {
        if self.least.is_infinite() {
            return "PSNR: every pixel is unchanged".to_owned();
        }
        format!("PSNR of RGB: {:.2} dB, worst frame {:.2} dB", self.all(), self.least)
    }

    /// Returns the decibels as JSON; `null` if nothing differs.
    fn object(&self) -> Value {
        json!({ "decibels": self.all(), "worst_frame": self.least })
    }
}
