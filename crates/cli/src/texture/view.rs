//! `rushes texture view`: receives a server's frames into a file, or only measures them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::net::resolve;
use rushes::texture::{
    ClientOptions, ClientStatistics, Format, FrameRate, Rate, Stopped, TextureClient, TextureError,
    TextureSink, Transfer, Transport,
};
use rushes::zrtp::SasStatus;

use super::args::ViewArgs;
use super::kind::Kind;
use super::live::Live;
use super::sink::{FileThread, Frames, ViewSink};
use super::values::{HEADER, SizeMax};
use super::viewed::{Beginning, Tally, Viewed};
#[cfg(feature = "window")]
use super::window;
use super::{encodable, output, security};
use crate::interrupt::Interrupt;
use crate::metrics;
use crate::metrics::{Metrics, ViewedCounts};
use crate::{Outcome, Usage};

/// Interval at which the stream is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum wait for missing packets when writing a file; below, the number of frames in progress.
const FILE_DEADLINE: Duration = Duration::from_secs(1);
const FILE_SLOTS: usize = 8;

/// What the person who watches asks the server for.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "window"), allow(dead_code, reason = "the keys of a window ask"))]
pub(super) enum Wish {
    /// The next of [`FORMATS`].
    NextFormat,
    /// Half the frame rate.
    Slower,
    /// Twice the frame rate, up to that of the beginning.
    Faster,
    /// Frames of up to this width and height.
    SizeMax(u32, u32),
}

/// Wishes that were not passed on yet.
pub(super) type Wishes = Arc<Mutex<Vec<Wish>>>;

/// The formats that are asked for in turn.
const FORMATS: [Format; 4] = [Format::Bc1, Format::YCoCgBc3, Format::Yuv420, Format::Rgb24];

const NOT_SCALED: &str = "the server does not scale its pictures";

/// Time for which the size of a window must stay as it is before frames of that size are asked for.
const RESIZING: Duration = Duration::from_millis(300);

/// The least frame rate, as a part of that of the beginning.
const SLOWEST: u64 = 8;

/// The reason why reception ended.
#[derive(Debug)]
pub(crate) enum End {
    /// Ctrl-C, `--frames` or `--duration`.
    Requested,
    /// The server ended the stream or was lost.
    Stopped(Stopped),
    /// No frame arrived during the idle timeout.
    Idle,
    /// The file cannot be written.
    File,
}

pub(crate) fn run(args: &ViewArgs) -> anyhow::Result<Outcome> {
    if args.server.port == 0 {
        return Err(Usage("a server has a port from 1 to 65535".to_owned()).into());
    }
    if args.report.json && args.output.as_deref() == Some(Path::new("-")) {
        let reason = "--json and --output - both write to the standard output; name a file";
        return Err(Usage(reason.to_owned()).into());
    }
    if args.max_size == Some(SizeMax::Window) && !args.window.window {
        let reason = "--max-size window needs --window; give a size, such as 1280x720";
        return Err(Usage(reason.to_owned()).into());
    }
    if let Some(path) = &args.output {
        output::check_new(path, args.overwrite)?;
    }
    let interrupt = Interrupt::install()?;
    let options = options(args)?;
    #[cfg(feature = "window")]
    if args.window.window {
        return window::run(args, &interrupt, options);
    }
    receive(args, &interrupt, options, Wishes::default(), |counting| counting)
}

/// Receives until the end, and asks the server for what is wished; `sink` creates the sink for the frames from the sink that counts them.
pub(super) fn receive<S: TextureSink + 'static>(
    args: &ViewArgs,
    interrupt: &Interrupt,
    options: ClientOptions,
    wishes: Wishes,
    sink: impl FnOnce(Arc<ViewSink>) -> Arc<S>,
) -> anyhow::Result<Outcome> {
    let kind = args.output.as_deref().map(Kind::of).transpose()?;
    let host = args.server.host.as_deref().unwrap_or("127.0.0.1");
    let server = resolve(host, args.server.port)?;
    let metrics = Metrics::start(&args.metrics, args.report.quiet)?;
    let (counting, waiting) = if kind.is_some() {
        let (sink, waiting) = ViewSink::queueing(args.frames, args.every_frame);
        (sink, Some(waiting))
    } else {
        (ViewSink::counting(args.frames), None)
    };
    let is_of_group = options.transport == Some(Transport::Multicast);
    let counting = Arc::new(if is_of_group { counting.of_group() } else { counting });
    let client = TextureClient::connect(server, sink(counting.clone()), options);
    let sink = counting;
    let client = client.map_err(|error| match &error {
        TextureError::Ended(stopped) => {
            anyhow::anyhow!("{error}{}", args.delivery.security.advice(stopped.reason))
        }
        _ => error.into(),
    });
    let client = client.with_context(|| match args.format.filter(|it| encodable::needs_gpu(*it)) {
        Some(format) => format!(
            "cannot view {server} (a server encodes to {format} only with --format {format} --gpu)"
        ),
        None => format!("cannot view {server}"),
    })?;
    let rate = client.rate().map_or(Rate::DEFAULT, rate_of);
    let file = match (&args.output, kind, waiting) {
        (Some(path), Some(kind), Some(waiting)) => {
            Some(FileThread::start(path.clone(), kind, rate, waiting)?)
        }
        _ => None,
    };
    let beginning = Beginning::new(server, &client);
    let live = Live::new(args.report);
    live.print(&format!("receiving {beginning}"));
    if args.max_size.is_some() && !client.is_scalable() {
        let scales = if is_of_group { "a multicast group has one size" } else { NOT_SCALED };
        live.print(&format!("{scales}: --max-size has no effect"));
    }
    let transfer = client.shape().map(|shape| shape.layout().colour().transfer);
    // These name the curve for other programs.
    let is_named = matches!(kind, Some(Kind::Png | Kind::Ktx2));
    if args.output.is_some() && !is_named && transfer == Some(Transfer::Pq) {
        live.print(
            "the frames are HDR (PQ): the file has their values as they are, which may look pale",
        );
    }
    let format = client.shape().map_or("", |shape| shape.layout().format().name());
    let viewed = Arc::new(metrics::Viewed::new(format, sink.arrivals.clone()));
    metrics.observe(|| viewed.clone());
    let (rate, size, resized) = (client.rate(), size_of(&client), None);
    let mut watch =
        Watch { client, sink, file, live, agreed: None, viewed, wishes, rate, size, resized };
    let (end, time) = watch.run(args, interrupt);
    watch.poll_sas(args);
    let Watch { client, sink, file, live, agreed, .. } = watch;
    let (frames, statistics) = end_of(client, &sink, &end);
    live.finish();
    let written = file.map(FileThread::finish).transpose()?;
    Viewed { beginning, frames, statistics, written, end, time, agreed }.print(args)
}

/// Stops the client; returns counts that include every frame that the server has sent.
fn end_of(client: TextureClient, sink: &ViewSink, end: &End) -> (Frames, ClientStatistics) {
    if matches!(end, End::Requested | End::File) {
        sink.close();
        let statistics = client.statistics();
        let all = client.stop();
        let sent = all.frames_whole + all.frames_damaged + all.frames_lost;
        let frames = sink.frames();
        let wanted = if sink.has_enough() { 0 } else { sent };
        let cut_off = wanted.saturating_sub(frames.all + frames.lost);
        return (Frames { cut_off, ..frames }, statistics);
    }
    let statistics = client.stop();
    // The sink counts only losses before a received frame; the client also counts later ones.
    let frames = sink.frames();
    (Frames { lost: frames.lost.max(statistics.frames_lost), ..frames }, statistics)
}

fn options(args: &ViewArgs) -> anyhow::Result<ClientOptions> {
    let (delivery, mut options) = (&args.delivery, ClientOptions::default());
    options.security = delivery.security.security(delivery.transport)?;
    options.transport = delivery.security.transport(delivery.transport);
    options.recovery = delivery.recovery;
    options.packing = delivery.packing.unwrap_or(options.packing);
    if let Some(SizeMax::Pixels(width, height)) = args.max_size {
        options.size_max = Some((width, height));
    }
    options.format = args.format;
    options.units = delivery.units.unwrap_or_default();
    options.payload = delivery.packet_size.map_or(0, |octets| (octets - HEADER) as u32);
    options.rate = args
        .fps
        .map(|rate| FrameRate { numerator: rate.numerator(), denominator: rate.denominator() });
    if args.output.is_some() {
        (options.deadline_min, options.deadline_max) = (FILE_DEADLINE, FILE_DEADLINE);
        options.slots = FILE_SLOTS;
    }
    if let Some(deadline) = args.deadline {
        options.deadline_max = deadline;
        options.deadline_min = options.deadline_min.min(deadline);
    }
    let buffer = delivery.socket_buffer;
    (options.udp.send_buffer, options.udp.receive_buffer) = (buffer, buffer);
    (options.tcp.send_buffer, options.tcp.receive_buffer) = (buffer, buffer);
    Ok(options)
}

/// Returns width and height of the pictures.
fn size_of(client: &TextureClient) -> Option<(u32, u32)> {
    client.shape().map(|shape| (shape.layout().width(), shape.layout().height()))
}

/// Returns the rate for a file, since a server may announce one that no file can have.
fn rate_of(rate: FrameRate) -> Rate {
    Rate::new(rate.numerator, rate.denominator).unwrap_or(Rate::DEFAULT)
}

/// Returns twice the present rate or half of it, between the first one and an eighth of that.
fn changed(first: FrameRate, now: FrameRate, is_faster: bool) -> FrameRate {
    let of = |a: FrameRate, b: FrameRate| u64::from(a.numerator) * u64::from(b.denominator);
    let part = of(first, now).checked_div(of(now, first)).unwrap_or(1);
    let part = if is_faster { part / 2 } else { part.saturating_mul(2) };
    let part = part.clamp(1, SLOWEST) as u32;
    FrameRate { denominator: first.denominator.saturating_mul(part), ..first }
}

/// The state that is polled while frames arrive.
struct Watch {
    client: TextureClient,
    sink: Arc<ViewSink>,
    file: Option<FileThread>,
    live: Live,
    agreed: Option<SasStatus>,
    viewed: Arc<metrics::Viewed>,
    wishes: Wishes,
    /// The frame rate of the beginning.
    rate: Option<FrameRate>,
    /// Width and height of the pictures.
    size: Option<(u32, u32)>,
    /// The largest size to ask for, and since when it has been wished.
    resized: Option<((u32, u32), Instant)>,
}

impl Watch {
    /// Asks the server for what is wished.
    fn poll_wishes(&mut self) {
        if let Some((size, _)) = self.resized.take_if(|(_, since)| since.elapsed() >= RESIZING) {
            self.client.set_size_max(Some(size));
        }
        let wishes =
            std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner));
        for wish in wishes {
            let format = self.client.shape().map(|shape| shape.layout().format());
            match (wish, format, self.rate.zip(self.client.rate())) {
                (Wish::NextFormat, Some(format), _) => {
                    let at = FORMATS.iter().position(|it| *it == format);
                    let next = FORMATS[at.map_or(0, |at| (at + 1) % FORMATS.len())];
                    self.live.print(&format!("asking for {next}"));
                    self.client.change(Some(next), None);
                }
                (Wish::Slower | Wish::Faster, _, Some((first, now))) => {
                    let rate = changed(first, now, matches!(wish, Wish::Faster));
                    let per_second = f64::from(rate.numerator) / f64::from(rate.denominator);
                    self.live.print(&format!("asking for {per_second:.2} frames/s"));
                    self.client.change(None, Some(rate));
                }
                (Wish::SizeMax(width, height), ..) => {
                    self.resized = Some(((width, height), Instant::now()));
                }
                _ => {}
            }
        }
    }

    /// Shows the size of the pictures when it changes.
    fn poll_size(&mut self) {
        let size = size_of(&self.client);
        let before = std::mem::replace(&mut self.size, size);
        if let (Some((width, height)), Some(before)) = (size, before)
            && (width, height) != before
        {
            self.live.print(&format!("the pictures are {width}×{height} now"));
        }
    }

    /// Shows the words to compare as soon as they are known.
    fn poll_sas(&mut self, args: &ViewArgs) {
        if self.agreed.is_some() || !args.delivery.security.agrees_on_keys() {
            return;
        }
        self.agreed = self.client.sas();
        if let Some(status) = &self.agreed {
            self.live.print(&security::sas_text("the server", status));
        }
    }

    /// Runs until the end; returns its reason and the time taken.
    fn run(&mut self, args: &ViewArgs, interrupt: &Interrupt) -> (End, Duration) {
        let start = Instant::now();
        let mut tally = Tally::default();
        let (mut frames, mut last) = (0, start);
        let end = loop {
            if let Some(stopped) = self.client.wait(POLL_INTERVAL) {
                break End::Stopped(stopped);
            }
            self.poll_sas(args);
            self.poll_wishes();
            self.poll_size();
            if self.file.as_ref().is_some_and(FileThread::has_ended) {
                break End::File;
            }
            let is_over = args.duration.is_some_and(|duration| start.elapsed() >= duration);
            if interrupt.is_requested() || is_over || self.sink.has_enough() {
                break End::Requested;
            }
            let now = self.sink.frames();
            let client = self.client.statistics();
            self.sink.note_clock_error(&client);
            self.viewed.set(ViewedCounts { frames: now, client }, &self.client.take_latencies());
            if now.all != frames {
                (frames, last) = (now.all, Instant::now());
            } else if last.elapsed() >= args.idle_timeout {
                break End::Idle;
            }
            if let Some(since) = self.live.due() {
                let statistics = self.client.statistics();
                let line = tally.line(now, &statistics, since);
                let agreed = self.agreed.as_ref();
                self.live.show(&line, || super::viewed::object(now, &statistics, agreed));
            }
        };
        (end, start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_halved_to_an_eighth_and_doubled_to_the_first() {
        let rate = |denominator| FrameRate { numerator: 30_000, denominator };
        let first = rate(1_001);
        let mut now = first;
        for part in [2, 4, 8, 8] {
            now = changed(first, now, false);
            assert_eq!(now, rate(1_001 * part));
        }
        for part in [4, 2, 1, 1] {
            now = changed(first, now, true);
            assert_eq!(now, rate(1_001 * part));
        }
    }
}
