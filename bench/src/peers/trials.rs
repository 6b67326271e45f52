//! One program at one frame rate: both its halves, or one of them beside an end that is ours.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tempfile::TempDir;

use super::adapter::{Adapter, HOST, Places, filled};
use super::description::sdp;
use super::ends::{Sink, Source};
use super::output::{Expected, Found, Output};
use super::running::{GLANCE, Running, wait_for_port};
use crate::sequence::Sequence;
use crate::trial::Trial;

/// How long a receiver may take to listen.
const START_TIME: Duration = Duration::from_secs(5);
/// After it listens, it may have something left to do.
const SETTLING_TIME: Duration = Duration::from_millis(100);
/// How much longer than the sequence a sender may take, its start included.
const SEND_TIME: Duration = Duration::from_millis(1500);
/// Silence after which nothing more comes.
const SILENCE: Duration = Duration::from_millis(250);
/// How long a receiver may take to end.
const END_TIME: Duration = Duration::from_secs(1);

/// What of a program is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    Whole,
    /// Its sender, beside a sink.
    Send,
    /// Its receiver, beside a source.
    Receive,
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Send => "send",
            Self::Receive => "receive",
        }
    }
}

/// CPU seconds that a program takes to start, to do next to nothing and to end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartUp {
    send: f64,
    receive: f64,
}

/// What trials of one sequence need.
#[derive(Debug)]
pub(super) struct Rig<'a> {
    sequence: &'a Sequence,
    expected: Expected<'a>,
    source: Source,
    folder: TempDir,
    /// Access units in the file that is sent.
    written: usize,
}

impl<'a> Rig<'a> {
    pub(super) fn new(sequence: &'a Sequence) -> anyhow::Result<Self> {
        // A file system in memory, if there is one.
        let memory = Path::new("/dev/shm");
        let folder = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
        Ok(Self {
            sequence,
            expected: Expected::of(sequence)?,
            source: Source::of(sequence)?,
            folder: folder.context("cannot make a folder")?,
            written: 0,
        })
    }

    /// Makes the file that is sent have `count` access units.
    fn write(&mut self, count: usize) -> anyhow::Result<()> {
        if self.written != count {
            let mut octets = Vec::with_capacity(usize::try_from(self.sequence.octets_of(count))?);
            for n in 0..count {
                octets.extend_from_slice(self.sequence.unit(n));
            }
            std::fs::write(self.file(), &octets)?;
            self.written = count;
        }
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("sequence")
    }

    /// What complained, in its own words.
    fn complaint(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
    }

    /// What `adapter` takes to start and to end.
    pub(super) fn start_up(&mut self, adapter: &Adapter) -> anyhow::Result<StartUp> {
        let mut start_up = StartUp::default();
        if adapter.receive.is_some() {
            let trial = self.receiver(adapter, free_port()?, |_| Ok(()))?;
            start_up.receive = trial.1.unwrap_or(0.0);
        }
        if adapter.send.is_some() {
            self.write(1)?;
            let port = free_port()?;
            let _sink = Sink::open(port)?;
            start_up.send = self.sender(adapter, port, 30, 1)?.unwrap_or(0.0);
        }
        Ok(start_up)
    }

    /// Sends `count` access units, `fps` a second, and receives them.
    pub(super) fn run(
        &mut self,
        (adapter, part): (&Adapter, Part),
        start_up: StartUp,
        fps: u32,
        count: usize,
    ) -> anyhow::Result<Trial> {
        let port = free_port()?;
        let mut trial = Trial { offered: count as u64, ..Trial::default() };
        let since = |cpu: Option<f64>, start: f64| cpu.map(|cpu| (cpu - start).max(0.0));
        let times = match part {
            Part::Send => {
                self.write(count)?;
                let (sunk, cpu) = self.send_to_sink(adapter, port, fps, count)?;
                trial.whole = sunk.0;
                trial.send_cpu = since(cpu, start_up.send);
                sunk.1
            }
            Part::Receive => {
                let to = SocketAddr::from(([127, 0, 0, 1], port));
                let (found, cpu) =
                    self.receiver(adapter, port, |rig| rig.source.send(to, count, f64::from(fps)))?;
                trial.whole = found.whole;
                trial.receive_cpu = since(cpu, start_up.receive);
                found.times
            }
            Part::Whole => {
                self.write(count)?;
                let mut send_cpu = None;
                let (found, cpu) = self.receiver(adapter, port, |rig| {
                    send_cpu = rig.sender(adapter, port, fps, count)?;
                    Ok(())
                })?;
                trial.whole = found.whole;
                trial.send_cpu = since(send_cpu, start_up.send);
                trial.receive_cpu = since(cpu, start_up.receive);
                found.times
            }
        };
        trial.whole = trial.whole.min(trial.offered);
        trial.octets = self.sequence.octets_of(count) * trial.whole / trial.offered.max(1);
        // The last access unit has its time, too: few of them would seem to be faster.
        trial.seconds = times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        trial.seconds *= count as f64 / count.saturating_sub(1).max(1) as f64;
        Ok(trial)
    }

    /// Runs the sender until it ends; what it took.
    fn sender(
        &self,
        adapter: &Adapter,
        port: u16,
        fps: u32,
        count: usize,
    ) -> anyhow::Result<Option<f64>> {
        let words = adapter.send.as_ref().context("no command to send")?;
        let file = self.file();
        let places = self.places(&file, port, fps);
        let errors = self.folder.path().join("sender");
        let mut sender = Running::start(&filled(words, &places)?, &errors, Stdio::null())?;
        let start = Instant::now();
        let time = Duration::from_secs_f64(count as f64 / f64::from(fps)) + SEND_TIME;
        if !sender.wait(start + time) {
            sender.end();
        } else if start.elapsed() < Duration::from_millis(5) {
            bail!("{} sent nothing: {}", adapter.name, self.complaint("sender"));
        }
        Ok(sender.cpu())
    }

    fn places<'p>(&self, file: &'p Path, port: u16, fps: u32) -> Places<'p> {
        Places { codec: self.sequence.codec, file, sdp: file, port, fps }
    }

    /// Access units that came whole and when, and what the sender took.
    #[allow(clippy::type_complexity, reason = "said once")]
    fn send_to_sink(
        &self,
        adapter: &Adapter,
        port: u16,
        fps: u32,
        count: usize,
    ) -> anyhow::Result<((u64, Option<(Instant, Instant)>), Option<f64>)> {
        let sink = Sink::open(port)?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let counted = scope.spawn(|| sink.count(&is_over));
            let cpu = self.sender(adapter, port, fps, count);
            is_over.store(true, Ordering::Relaxed);
            let sunk = counted.join().map_err(|_| anyhow::anyhow!("the sink failed"))??;
            Ok(((sunk.whole, sunk.times), cpu?))
        })
    }

    /// Runs the receiver while `send` sends, and until nothing comes any more.
    fn receiver(
        &mut self,
        adapter: &Adapter,
        port: u16,
        send: impl FnOnce(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Found, Option<f64>)> {
        let words = adapter.receive.as_ref().context("no command to receive")?;
        let description = self.folder.path().join("sdp");
        std::fs::write(&description, sdp(self.sequence.codec, port, adapter.secured))?;
        let file = self.file();
        let places = Places { sdp: &description, ..self.places(&file, port, 30) };
        let errors = self.folder.path().join("receiver");
        let mut receiver = Running::start(&filled(words, &places)?, &errors, Stdio::piped())?;
        let mut stdout = receiver.stdout()?;
        widen(&stdout);
        if !wait_for_port(port, &mut receiver, Instant::now() + START_TIME) {
            bail!("{} does not listen: {}", adapter.name, self.complaint("receiver"));
        }
        std::thread::sleep(SETTLING_TIME);
        let shared = Arc::new(Mutex::new(Found::default()));
        // The rig is lent to `send`.
        let expected = self.expected.clone();
        std::thread::scope(|scope| {
            let news = Arc::clone(&shared);
            let reading = scope.spawn(move || {
                let mut output = Output::new(&expected);
                loop {
                    let more = output.read(&mut stdout);
                    *lock(&news) = output.found;
                    if !matches!(more, Ok(true)) {
                        return output.found;
                    }
                }
            });
            let sent = send(self);
            wait_for_silence(&shared);
            // What is written only now was received before: it counts, but not its time.
            let times = lock(&shared).times;
            receiver.interrupt();
            receiver.wait(Instant::now() + END_TIME);
            receiver.end();
            let found = reading.join().map_err(|_| anyhow::anyhow!("nobody read"))?;
            sent?;
            Ok((Found { times: times.or(found.times), ..found }, receiver.cpu()))
        })
    }
}

fn lock(found: &Mutex<Found>) -> MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until nothing has come for a while.
fn wait_for_silence(found: &Mutex<Found>) {
    let (mut octets, mut since) = (0, Instant::now());
    while since.elapsed() < SILENCE {
        let now = lock(found).octets;
        if now != octets {
            (octets, since) = (now, Instant::now());
        }
        std::thread::sleep(GLANCE);
    }
}

/// Makes a pipe hold more, so that whoever writes to it need not wait for us.
fn widen(pipe: &std::process::ChildStdout) {
    #[cfg(target_os = "linux")]
    // Without it, it holds less.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// An even port that is free, and the next with it.
fn free_port() -> anyhow::Result<u16> {
    for _ in 0..100 {
        let one = std::net::UdpSocket::bind((HOST, 0))?;
        let port = one.local_addr()?.port();
        if port % 2 == 0 && port < u16::MAX && std::net::UdpSocket::bind((HOST, port + 1)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no two ports are free")
}
