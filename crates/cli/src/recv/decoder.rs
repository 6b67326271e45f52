//! Access units into pictures, by the program `ffmpeg`.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::Codec;
use rushes::payload::nal::NalCodec;
use rushes::texture::Layout;
use rushes::texture::file::Y4mStream;

use super::delimit::Delimit;
use crate::Usage;

/// Access units that wait for a slow decoder.
const QUEUE: usize = 64;

/// How long a decoder may take to end once nothing more comes.
const PATIENCE: Duration = Duration::from_secs(3);

/// Octets of what a decoder says of its errors that are kept.
const WORDS: u64 = 64 << 10;

/// What takes pictures as they come out of a decoder: where their octets lie, and the octets.
pub(super) type Pictures = dyn FnMut(&Layout, &[u8]) -> anyhow::Result<()> + Send;

/// A decoder at work.
#[derive(Debug)]
pub(super) struct Decoder {
    delimit: Delimit,
    queue: Option<SyncSender<Vec<u8>>>,
    /// Access units were left out: the next must be one to begin with.
    is_behind: bool,
    left_out: u64,
    child: Child,
    writing: Option<JoinHandle<()>>,
    reading: Option<JoinHandle<anyhow::Result<u64>>>,
    words: Option<JoinHandle<String>>,
}

/// What FFmpeg calls the byte stream of a codec; an error if it is no video.
pub(super) fn check(codec: Codec) -> anyhow::Result<(NalCodec, &'static str)> {
    match codec {
        Codec::H264 => Ok((NalCodec::H264, "h264")),
        Codec::H265 => Ok((NalCodec::H265, "hevc")),
        Codec::H266 => Ok((NalCodec::H266, "vvc")),
        _ => Err(Usage(format!("--window shows video, and {codec:?} is none")).into()),
    }
}

impl Decoder {
    /// Starts a decoder of a codec's byte stream.
    pub(super) fn start(codec: Codec, pictures: Box<Pictures>) -> anyhow::Result<Self> {
        let (nal, name) = check(codec)?;
        let mut child = Command::new("ffmpeg")
            .args(["-hide_banner", "-loglevel", "error", "-nostdin"])
            // A picture comes out when its access unit is in, not when others are as well.
            // (`-fflags nobuffer` would throw away what was looked at first: a whole intra frame.)
            .args(["-flags", "low_delay", "-probesize", "32", "-analyzeduration", "0"])
            .args(["-threads", "1", "-f", name, "-i", "pipe:0", "-an"])
            .args(["-fps_mode", "passthrough"])
            .args(["-vf", "scale=out_color_matrix=bt709:out_range=limited,format=yuv420p"])
            .args(["-f", "yuv4mpegpipe", "pipe:1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("--window decodes with the program ffmpeg, which cannot be started")?;
        let (queue, queued) = sync_channel(QUEUE);
        let writing = child.stdin.take().map(|to| std::thread::spawn(move || feed(&queued, to)));
        let reading = child.stdout.take();
        let reading = reading.map(|from| std::thread::spawn(move || read(from, pictures)));
        let words = child.stderr.take().map(|from| {
            std::thread::spawn(move || {
                let mut words = Vec::new();
                let mut kept = from.take(WORDS);
                let _ = kept.read_to_end(&mut words);
                // The rest is read as well: a full pipe would stop it.
                let _ = std::io::copy(&mut kept.into_inner(), &mut std::io::sink());
                String::from_utf8_lossy(&words).into_owned()
            })
        });
        let delimit = Delimit::new(nal);
        let (is_behind, left_out) = (false, 0);
        let queue = Some(queue);
        Ok(Self { delimit, queue, is_behind, left_out, child, writing, reading, words })
    }

    /// Hands over the next octets. If the decoder is too slow they are left out, up to the next
    /// access unit that it can begin with.
    pub(super) fn push(&mut self, octets: &[u8]) {
        let (octets, can_begin) = self.delimit.next(octets);
        if self.is_behind && !can_begin {
            self.left_out += 1;
            return;
        }
        let Some(queue) = &self.queue else { return };
        self.is_behind = matches!(queue.try_send(octets), Err(TrySendError::Full(_)));
        self.left_out += u64::from(self.is_behind);
    }

    /// Access units that it was too slow for.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Has it decode what it has; an error if no picture came of anything.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        drop(self.queue.take());
        self.wait();
        let pictures = self.reading.take().map_or(Ok(0), |reading| {
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let words = self.words.take().and_then(|words| words.join().ok()).unwrap_or_default();
        let last = words.lines().last().unwrap_or("no error").to_owned();
        anyhow::ensure!(pictures > 0, "ffmpeg made no picture of what came: {last}");
        Ok(())
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        drop(self.queue.take());
        self.wait();
    }
}

/// Writes what is queued; its end is the end of the decoder's input.
fn feed(queued: &Receiver<Vec<u8>>, mut to: ChildStdin) {
    for octets in queued {
        // A decoder that has gone tells why on its standard error.
        if to.write_all(&octets).is_err() {
            return;
        }
    }
}

/// Reads pictures; how many there were.
fn read(from: ChildStdout, mut pictures: Box<Pictures>) -> anyhow::Result<u64> {
    let mut count = 0;
    let Some(mut stream) = Y4mStream::new(BufReader::with_capacity(1 << 20, from))? else {
        return Ok(0);
    };
    let mut picture = Vec::new();
    let layout = *stream.layout();
    while stream.read_frame(&mut picture)? {
        pictures(&layout, &picture)?;
        count += 1;
    }
    Ok(count)
}
