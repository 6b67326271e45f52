//! The source of frames: a file, a pattern or a pipe, with a different rate or length if requested.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, stdin};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rushes::file::is_live;
use rushes::texture::file::{FileError, Y4mError};
use rushes::texture::source::{
    Frame, Live, PatternSpec, Preloaded, RawHint, Source, SourceError, Taker,
};
use rushes::texture::{
    Colour, ColourHint, Format, Layout, LiveHandle, LiveOptions, LiveSource, Rate, source,
};

use super::args::SourceArgs;
#[cfg(feature = "window")]
use super::encoded;
use crate::interrupt::Interrupt;
use crate::{Usage, recognise};

/// Interval at which a pipe's end and Ctrl-C are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The standard input, in messages.
const STDIN: &str = "standard input";

/// Returns the name of a source in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) { STDIN.to_owned() } else { path.display().to_string() }
}

/// Returns whether the source is a pipe or a device.
pub(crate) fn is_pipe(path: &Path) -> bool {
    is_stdin(path) || is_live(path)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens the source that a command line names.
///
/// Pipes and devices are live; with `is_paced`, one that is ahead of its rate is slowed down to it.
/// Returns `None` if Ctrl-C ends the wait for their first frame.
///
/// # Errors
/// If the source cannot be opened; the error names the options that would help.
pub(crate) fn open(
    path: &Path,
    args: &SourceArgs,
    is_paced: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Played>> {
    if is_pipe(path) {
        return open_live(path, args, is_paced, interrupt);
    }
    if path.to_str().is_some_and(PatternSpec::is_one) && args.colour() != ColourHint::default() {
        let why = "a pattern has colours of its own: leave out --matrix, --range, --transfer and \
                   --primaries";
        return Err(Usage(why.to_owned()).into());
    }
    let mut hint = RawHint { format: args.input_format, size: args.size, ..RawHint::default() };
    (hint.rate, hint.colour) = (args.fps, args.colour());
    let source = source::open(path, &hint);
    if let Err(SourceError::Kind(path)) = &source {
        recognise::check_frames(path)?;
    }
    let source = source.map_err(|error| match error {
        SourceError::Hint(_) | SourceError::Kind(_) => anyhow::Error::from(error)
            .context("frames without a header need --size WIDTHxHEIGHT and --input-format FORMAT"),
        SourceError::Pattern(error) => Usage(error.to_string()).into(),
        error => error.into(),
    })?;
    warn_of_losses(&name(path), &source);
    let rate = args.fps.unwrap_or_else(|| source.rate());
    Ok(Some(Played { source, rate, most: args.frames, taken: 0, live: None, log: Arc::default() }))
}

fn open_live(
    path: &Path,
    args: &SourceArgs,
    is_paced: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Played>> {
    let name = name(path);
    let mut options = LiveOptions::default();
    (options.layout, options.rate, options.is_paced) = (pixels(path, args)?, args.fps, is_paced);
    options.colour = args.colour();
    if is_stdin(path) && stdin().is_terminal() {
        return Err(Usage(format!(
            "{name} is a terminal; frames come from another program. Try: ffmpeg -i film.mp4 \
             -pix_fmt yuv420p -f yuv4mpegpipe - | rushes texture serve - --listen 7000"
        ))
        .into());
    }
    let file = path.to_owned();
    let open = move || -> std::io::Result<Box<dyn BufRead>> {
        if is_stdin(&file) {
            return Ok(Box::new(stdin().lock()));
        }
        Ok(Box::new(BufReader::new(File::open(file)?)))
    };
    let is_cancelled = || interrupt.is_requested();
    let opened = LiveSource::open(name.as_ref(), options, open, is_cancelled);
    let opened = opened.map_err(|error| explained(error, &name))?;
    Ok(opened.map(|source| {
        warn_of_losses(&name, &source);
        let (rate, live) = (source.rate(), Some(source.handle()));
        close_on(interrupt.clone(), source.handle());
        let (source, most, taken) = (Box::new(source), args.frames, 0);
        Played { source, rate, most, taken, live, log: Arc::default() }
    }))
}

/// Reports that samples are rounded, or that colours are unknown. [`Played`] does not pass this on, so that the
/// server does not repeat it.
fn warn_of_losses(name: &str, source: &impl Source) {
    if let Some(bits) = source.rounded_from() {
        tracing::warn!("{name}: samples of {bits} bits are rounded to 8");
    }
    if let Some([primaries, transfer, _, range]) = source.unknown_colour() {
        tracing::warn!(
            "{name}: of its colours (cICP: primaries {primaries}, curve {transfer}, full range {range}), those that \
             are unknown are taken to be as in sRGB"
        );
    }
}

/// Ends a source at Ctrl-C, because its reader may block for ever.
fn close_on(interrupt: Interrupt, handle: LiveHandle) {
    std::thread::spawn(move || {
        while !interrupt.is_requested() && !handle.has_ended() {
            interrupt.sleep_until(Instant::now() + CHECK_INTERVAL);
        }
        handle.close();
    });
}

/// Returns the layout of a pipe's frames if they have no header.
fn pixels(path: &Path, args: &SourceArgs) -> anyhow::Result<Option<Layout>> {
    let guessed = match path.extension().and_then(|extension| extension.to_str()) {
        Some("rgb") => Some(Format::Rgb24),
        Some("rgba") => Some(Format::Rgba8),
        Some("yuv") => Some(Format::Yuv420),
        _ => None,
    };
    let (format, size) = (args.input_format.or(guessed), args.size);
    let given = [size.is_some(), format.is_some(), args.fps.is_some()];
    if !given[0] && !given[1] {
        return Ok(None);
    }
    let options =
        ["--size WIDTHxHEIGHT", "--input-format rgb24 (or rgba, yuv420p, …)", "--fps RATE"];
    let missing = options.into_iter().zip(given).filter(|(_, given)| !given);
    let missing: Vec<_> = missing.map(|(option, _)| option).collect();
    if !missing.is_empty() {
        return Err(Usage(format!(
            "{}: pixels in a pipe have no header that says their size, format and rate. Add: {}; \
             for Y4M, which has one, give neither --size nor --input-format",
            name(path),
            missing.join(" ")
        ))
        .into());
    }
    let layout =
        format.zip(size).map(|(format, (width, height))| Layout::new(format, width, height));
    let colour = |layout: Layout| Colour::of_file(layout.height(), args.colour());
    Ok(layout.transpose()?.map(|layout| layout.with_colour(colour(layout))))
}

/// Explains an error of a pipe, with a command to type instead.
fn explained(error: SourceError, name: &str) -> anyhow::Error {
    let advice = match &error {
        SourceError::Empty(_) => {
            return anyhow::anyhow!(
                "{name}: contains no frame; see the messages of the program that writes it"
            );
        }
        SourceError::File { error: FileError::Y4m(Y4mError::Magic), .. } => {
            "frames in a pipe are Y4M (ffmpeg … -pix_fmt yuv420p -f yuv4mpegpipe -), or pixels \
             with --size WIDTHxHEIGHT --input-format FORMAT --fps RATE"
        }
        SourceError::File { error: FileError::Y4m(Y4mError::Samples(_)), .. } => {
            "FFmpeg converts them with -pix_fmt yuv420p"
        }
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(advice)
}

/// A source with the rate and length given on the command line.
pub(crate) struct Played {
    source: Box<dyn Source>,
    rate: Rate,
    most: Option<u64>,
    taken: u64,
    live: Option<LiveHandle>,
    log: Arc<Log>,
}

/// The failure, if any, of a source that another thread reads.
#[derive(Default)]
pub(crate) struct Log {
    failure: Mutex<Option<String>>,
    /// Why the last frame of a pipe was discarded.
    cut: Mutex<Option<String>>,
}

impl Log {
    /// Returns the reason why the source cannot be read, if it failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns why the last frame of a pipe was discarded, or `None` if it was not.
    pub(crate) fn cut(&self) -> Option<String> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Turns the error of a pipe that ends within a frame into its end, so that the frames before
    /// are sent.
    fn note_cut(&self, result: Result<bool, SourceError>) -> Result<bool, SourceError> {
        let Err(SourceError::File { path, error: FileError::Truncated { frame, have, want } }) =
            result
        else {
            return result;
        };
        let text = format!(
            "{} ended within frame {frame}, after {have} of {want} octets; the frame was discarded",
            path.display()
        );
        *self.cut.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        Ok(false)
    }

    fn note<T>(&self, result: Result<T, SourceError>) -> Result<T, SourceError> {
        result.inspect_err(|error| {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| error.to_string());
        })
    }
}

impl Played {
    /// Returns the handle of a pipe or a device.
    pub(crate) fn handle(&self) -> Option<LiveHandle> {
        self.live.clone()
    }

    pub(crate) fn log(&self) -> Arc<Log> {
        self.log.clone()
    }

    /// Reads the source into memory; returns a source that plays from there, and its number of
    /// frames.
    ///
    /// # Errors
    /// If not even one frame fits into `bound` octets, or the source cannot be read.
    pub(crate) fn preload(mut self, bound: usize) -> anyhow::Result<(Self, usize)> {
        let loaded = Preloaded::new(&mut self, bound)?;
        let frames = loaded.frames().len();
        Ok((Self { source: Box::new(loaded), taken: 0, log: Arc::default(), ..self }, frames))
    }
}

#[cfg(feature = "window")]
impl Played {
    /// Returns the source encoded to another format by the graphics processor.
    ///
    /// # Errors
    /// If there is no graphics processor, or it does not support one of the two formats.
    pub(crate) fn encoded(self, format: Option<Format>) -> anyhow::Result<Self> {
        Ok(Self { source: encoded::by_gpu(self.source, format)?, ..self })
    }
}

impl Source for Played {
    fn layout(&self) -> &Layout {
        self.source.layout()
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        match (self.source.length(), self.most) {
            (Some(length), Some(most)) => Some(length.min(most)),
            (length, most) => length.or(most),
        }
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        if self.most.is_some_and(|most| self.taken >= most) {
            return Ok(None);
        }
        let frame = self.log.note(self.source.next_frame())?;
        self.taken += u64::from(frame.is_some());
        Ok(frame)
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        if self.most.is_some_and(|most| self.taken >= most) {
            // The pipe is no longer needed after the last frame.
            self.live.iter().for_each(Live::close);
            return Ok(false);
        }
        let mut more = self.source.give_frame(to);
        if self.live.is_some() {
            more = self.log.note_cut(more);
        }
        let more = self.log.note(more)?;
        self.taken += u64::from(more);
        Ok(more)
    }

    fn live(&self) -> Option<Arc<dyn Live>> {
        self.source.live()
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.taken = 0;
        self.log.note(self.source.rewind())
    }
}
