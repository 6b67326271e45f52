//! Decoding of access units into pictures, by the program `ffmpeg`.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::Codec;
use rushes::payload::nal::NalCodec;
use rushes::texture::file::Y4mStream;
use rushes::texture::{ColourHint, ColourRange, Layout, Matrix};

use super::delimit::Delimit;
use crate::Usage;

const PROGRAM: &str = "ffmpeg";

const NOT_STARTED: &str = "--window decodes with the program ffmpeg, which cannot be started";

/// Maximum number of access units queued for the decoder.
const QUEUE: usize = 64;

/// Maximum number of octets in the queue; a single access unit may have more.
const QUEUE_OCTETS: usize = 64 << 20;

/// Maximum queue length at which a decoder that fell behind resumes, which bounds the delay.
const QUEUE_RESUME: usize = 4;

/// Time after which a decoder that fell behind resumes without a random access point. Streams that
/// refresh row by row have none.
const RESUME_AFTER: Duration = Duration::from_secs(1);

/// Maximum time for a decoder to exit after the end of its input.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of octets kept of a decoder's error output.
const ERROR_OUTPUT_MAX: u64 = 64 << 10;

/// A callback for decoded pictures: their layout and octets.
pub(super) type Pictures = dyn FnMut(&Layout, &[u8]) -> anyhow::Result<()> + Send;

/// A running decoder.
#[derive(Debug)]
pub(super) struct Decoder {
    delimit: Delimit,
    queue: Option<SyncSender<Vec<u8>>>,
    waiting: Arc<Waiting>,
    /// When the decoder fell behind; access units are skipped since then.
    behind: Option<Instant>,
    left_out: u64,
    has_died: bool,
    child: Child,
    writing: Option<JoinHandle<()>>,
    reading: Option<JoinHandle<anyhow::Result<()>>>,
    errors: Option<JoinHandle<String>>,
    pictures: Arc<AtomicU64>,
}

/// Numbers of access units and octets in the queue.
#[derive(Debug, Default)]
struct Waiting {
    number: AtomicUsize,
    octets: AtomicUsize,
}

impl Waiting {
    fn number(&self) -> usize {
        self.number.load(Relaxed)
    }

    fn has_room(&self, octets: usize) -> bool {
        self.number() == 0 || self.octets.load(Relaxed).saturating_add(octets) <= QUEUE_OCTETS
    }

    fn add(&self, octets: usize) {
        self.number.fetch_add(1, Relaxed);
        self.octets.fetch_add(octets, Relaxed);
    }

    fn remove(&self, octets: usize) {
        self.number.fetch_sub(1, Relaxed);
        self.octets.fetch_sub(octets, Relaxed);
    }
}

/// Returns a codec and FFmpeg's name for its byte stream; an error if it is not a video codec.
pub(super) fn check(codec: Codec) -> anyhow::Result<(NalCodec, &'static str)> {
    let name = codec.nal.zip(codec.ffmpeg);
    name.ok_or_else(|| {
        Usage(format!("--window shows video, and {} is not a video codec", codec.title)).into()
    })
}

/// Checks that the program exists, before anything is created that would have to be removed.
pub(super) fn find() -> anyhow::Result<()> {
    let mut command = Command::new(PROGRAM);
    command.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().context(NOT_STARTED)?;
    Ok(())
}

fn command(name: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(["-hide_banner", "-loglevel", "error", "-nostdin"])
        // Output each picture once its access unit is read, without waiting for others. (`-fflags
        // nobuffer` would discard the probed data: a whole intra frame.)
        .args(["-flags", "low_delay", "-probesize", "32", "-analyzeduration", "0"])
        .args(["-threads", "1", "-f", name, "-i", "pipe:0", "-an"])
        .args(["-fps_mode", "passthrough"])
        .args(["-vf", "scale=out_color_matrix=bt709:out_range=limited,format=yuv420p"])
        .args(["-f", "yuv4mpegpipe", "pipe:1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Ctrl-C in a terminal must not reach the decoder: it ends once all pictures are shown.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

impl Decoder {
    /// Starts a decoder of a codec's byte stream.
    pub(super) fn start(codec: Codec, pictures: Box<Pictures>) -> anyhow::Result<Self> {
        let (nal, name) = check(codec)?;
        let spawned = command(name).spawn();
        let mut child = spawned.context(NOT_STARTED)?;
        let (queue, queued) = sync_channel(QUEUE);
        let (waiting, made) = (Arc::<Waiting>::default(), Arc::<AtomicU64>::default());
        let (taken, counted) = (Arc::clone(&waiting), Arc::clone(&made));
        let writing = child.stdin.take();
        let writing = writing.map(|to| std::thread::spawn(move || feed(&queued, &taken, to)));
        let reading = child.stdout.take();
        let reading =
            reading.map(|from| std::thread::spawn(move || read(from, &counted, pictures)));
        let errors = child.stderr.take().map(|from| std::thread::spawn(move || read_errors(from)));
        Ok(Self {
            delimit: Delimit::new(nal),
            queue: Some(queue),
            waiting,
            behind: None,
            left_out: 0,
            has_died: false,
            child,
            writing,
            reading,
            errors,
            pictures: made,
        })
    }

    /// Queues the next octets. If the decoder is too slow, they are skipped until it can resume.
    pub(super) fn push(&mut self, octets: &[u8]) {
        let (octets, can_begin, has_picture) = self.delimit.next(octets);
        let Some(queue) = &self.queue else { return };
        let waiting = self.waiting.number();
        let goes_on = self.behind.is_none_or(|since| {
            !has_picture
                || can_begin && waiting <= QUEUE_RESUME
                || waiting == 0 && since.elapsed() >= RESUME_AFTER
        });
        if !goes_on {
            self.left_out += 1;
            return;
        }
        let length = octets.len();
        let has_room = self.waiting.has_room(length);
        self.waiting.add(length);
        let result =
            if has_room { queue.try_send(octets) } else { Err(TrySendError::Full(octets)) };
        match result {
            Ok(()) if has_picture => self.behind = None,
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.waiting.remove(length);
                self.behind.get_or_insert_with(Instant::now);
                self.left_out += 1;
            }
            Err(TrySendError::Disconnected(_)) => {
                eprintln!("rushes: ffmpeg has ended; no further picture is shown");
                (self.queue, self.has_died) = (None, true);
            }
        }
    }

    /// Returns the number of access units skipped because the decoder was too slow.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Decodes the rest of the queue; an error if the decoder ended early or made no picture.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        drop(self.queue.take());
        let was_killed = self.wait();
        let read = self.reading.take().map_or(Ok(()), |reading| {
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let errors = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        let last = errors.lines().last().unwrap_or("no error message").to_owned();
        if self.has_died {
            // It also ends if its pictures cannot be used; that error is then the cause.
            let text = format!("ffmpeg ended before the stream did: {last}");
            return Err(match read {
                Ok(()) => anyhow::anyhow!(text),
                Err(why) => why.context(text),
            });
        }
        // A killed decoder leaves half a picture behind.
        if !was_killed {
            read?;
        }
        let pictures = self.pictures.load(Relaxed);
        anyhow::ensure!(pictures > 0, "ffmpeg decoded no picture: {last}");
        Ok(())
    }

    /// Waits until the decoder has ended; returns whether it had to be killed.
    fn wait(&mut self) -> bool {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let is_slow = matches!(self.child.try_wait(), Ok(None));
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
        is_slow
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        drop(self.queue.take());
        self.wait();
    }
}

/// Writes the queue to the decoder, whose input ends with it.
fn feed(queued: &Receiver<Vec<u8>>, waiting: &Waiting, mut to: ChildStdin) {
    for octets in queued {
        waiting.remove(octets.len());
        // A decoder that has ended reports the reason on its standard error.
        if to.write_all(&octets).is_err() {
            return;
        }
    }
}

/// Reads pictures, and counts them.
fn read(from: ChildStdout, count: &AtomicU64, mut pictures: Box<Pictures>) -> anyhow::Result<()> {
    let reader = BufReader::with_capacity(1 << 20, from);
    // The decoder was told to convert to this matrix.
    let range = Some(ColourRange::Limited);
    let hint = ColourHint { matrix: Some(Matrix::Bt709), range, ..ColourHint::default() };
    let Some(mut stream) = Y4mStream::with_hint(reader, hint)? else { return Ok(()) };
    let mut picture = Vec::new();
    let layout = *stream.layout();
    while stream.read_frame(&mut picture)? {
        pictures(&layout, &picture)?;
        count.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Reads a decoder's error output, and keeps the beginning.
fn read_errors(from: ChildStderr) -> String {
    let mut errors = Vec::new();
    let mut kept = from.take(ERROR_OUTPUT_MAX);
    let _ = kept.read_to_end(&mut errors);
    // The rest is read as well: a full pipe would block the decoder.
    let _ = std::io::copy(&mut kept.into_inner(), &mut std::io::sink());
    String::from_utf8_lossy(&errors).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `None` without the program; another test covers that error.
    fn started(pictures: Box<Pictures>) -> Option<Decoder> {
        Decoder::start(Codec::H264, pictures).ok()
    }

    #[test]
    fn a_decoder_that_dies_is_told_of() {
        let Some(mut decoder) = started(Box::new(|_, _| Ok(()))) else { return };
        decoder.child.kill().unwrap();
        let slice = [vec![0, 0, 1, 0x65], vec![7; 100_000]].concat();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !decoder.has_died {
            assert!(Instant::now() < deadline);
            decoder.push(&slice);
            std::thread::sleep(Duration::from_millis(5));
        }
        let error = decoder.finish().unwrap_err().to_string();
        assert!(error.contains("before the stream did"), "{error}");
    }

    #[test]
    fn nonsense_makes_no_picture() {
        let Some(mut decoder) = started(Box::new(|_, _| Ok(()))) else { return };
        decoder.push(&[0, 0, 1, 0x65, 1, 2, 3]);
        let error = decoder.finish().unwrap_err().to_string();
        assert!(error.contains("no picture"), "{error}");
    }

    #[test]
    fn a_decoder_that_is_too_slow_goes_on_where_it_can_begin() {
        let Some(mut decoder) = started(Box::new(|_, _| Ok(()))) else { return };
        // No thread reads the queue.
        let (queue, queued) = sync_channel(QUEUE);
        decoder.queue = Some(queue);
        let (intra, inter) = ([0, 0, 1, 0x65, 1], [0, 0, 1, 0x41, 1]);
        for _ in 0..QUEUE {
            decoder.push(&inter);
        }
        assert_eq!(decoder.left_out(), 0);
        decoder.push(&inter);
        decoder.push(&intra);
        assert_eq!(decoder.left_out(), 2, "the queue is full");
        for octets in queued.try_iter() {
            decoder.waiting.remove(octets.len());
        }
        decoder.push(&inter);
        assert_eq!(decoder.left_out(), 3, "the picture that it refers to was left out");
        decoder.push(&intra);
        decoder.push(&inter);
        assert_eq!((decoder.left_out(), queued.try_iter().count()), (3, 2));
    }

    #[test]
    fn large_access_units_wait_up_to_their_octets() {
        let Some(mut decoder) = started(Box::new(|_, _| Ok(()))) else { return };
        let (queue, queued) = sync_channel(QUEUE);
        decoder.queue = Some(queue);
        let slice = |octets: usize| [vec![0, 0, 1, 0x65], vec![7; octets]].concat();
        decoder.push(&slice(QUEUE_OCTETS));
        decoder.push(&slice(100));
        assert_eq!((decoder.left_out(), queued.try_iter().count()), (1, 1));
    }
}
