//! One program at one frame rate: its sender and receiver, or one of them with a reference end.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::adapter::{Adapter, HOST, Places, filled};
use super::description::sdp;
use super::ends::{Sink, Source};
use super::memory::MemoryFile;
use super::output::{Expected, Output};
use super::running::{Running, wait_for_port};
use super::watch::Watch;
use crate::ends::Trial;
use crate::sequence::Sequence;

/// Maximum time until a receiver listens.
const START_TIME: Duration = Duration::from_secs(5);
/// Time for a receiver to finish its start after it listens.
const SETTLING_TIME: Duration = Duration::from_millis(100);
/// Maximum time that a sender may take beyond the sequence, its start included.
const SEND_TIME: Duration = Duration::from_millis(1500);
/// Maximum time that a receiver may take to end.
const END_TIME: Duration = Duration::from_secs(1);

/// The measured part of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    Whole,
    /// Its sender, with a reference sink.
    Send,
    /// Its receiver, with a reference source.
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

/// CPU seconds that a program takes to start and to end with almost no work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartUp {
    send: f64,
    receive: f64,
}

/// The resources for trials of one sequence.
#[derive(Debug)]
pub(super) struct Rig<'a> {
    sequence: &'a Sequence,
    expected: Expected<'a>,
    source: Source,
    /// The sequence to send, and the session description.
    file: MemoryFile,
    sdp: MemoryFile,
    /// The output of a receiver.
    out: Arc<MemoryFile>,
    /// The standard error of programs.
    sender_errors: MemoryFile,
    receiver_errors: MemoryFile,
    /// Access units in the file that is sent.
    written: usize,
}

impl<'a> Rig<'a> {
    pub(super) fn new(sequence: &'a Sequence) -> anyhow::Result<Self> {
        let file = || MemoryFile::new().context("cannot make a file in memory");
        Ok(Self {
            sequence,
            expected: Expected::of(sequence)?,
            source: Source::of(sequence)?,
            file: file()?,
            sdp: file()?,
            out: Arc::new(file()?),
            sender_errors: file()?,
            receiver_errors: file()?,
            written: 0,
        })
    }

    /// Writes `count` access units to the file that is sent.
    fn write(&mut self, count: usize) -> anyhow::Result<()> {
        if self.written != count {
            self.file.fill((0..count).map(|n| self.sequence.unit(n)))?;
            self.written = count;
        }
        Ok(())
    }

    /// Returns the start-up cost of `adapter`.
    pub(super) fn start_up(&mut self, adapter: &Adapter) -> anyhow::Result<StartUp> {
        let mut start_up = StartUp::default();
        if adapter.receive.is_some() {
            let received = self.receiver(adapter, free_port()?, 0, |_| Ok(()))?;
            start_up.receive = received.cpu.unwrap_or(0.0);
        }
        if adapter.send.is_some() {
            self.write(1)?;
            let port = free_port()?;
            let _sink = Sink::open(port)?;
            start_up.send = self.sender(adapter, port, 30, 1)?.unwrap_or(0.0);
        }
        Ok(start_up)
    }

    /// Sends `count` access units, `fps` per second, and receives them. One more is sent than
    /// counted: FFmpeg holds back the last one until the next arrives, which is not a loss.
    pub(super) fn run(
        &mut self,
        (adapter, part): (&Adapter, Part),
        start_up: StartUp,
        fps: u32,
        count: usize,
    ) -> anyhow::Result<Trial> {
        let port = free_port()?;
        let more = count + 1;
        let share = count as f64 / more as f64;
        let (send_cpu, received) = match part {
            Part::Send => {
                self.write(more)?;
                let counted = self.send_to_sink(adapter, port, fps, more)?;
                (counted.cpu, Received { cpu: None, ..counted })
            }
            Part::Receive => {
                let to = SocketAddr::from(([127, 0, 0, 1], port));
                let rate = f64::from(fps);
                (None, self.receiver(adapter, port, more, |rig| rig.source.send(to, more, rate))?)
            }
            Part::Whole => {
                self.write(more)?;
                let mut send_cpu = None;
                let received = self.receiver(adapter, port, more, |rig| {
                    send_cpu = rig.sender(adapter, port, fps, more)?;
                    Ok(())
                })?;
                (send_cpu, received)
            }
        };
        let (offered, whole) = (count as u64, received.whole.min(count as u64));
        let octets = self.sequence.octets_of(count) * whole / offered.max(1);
        let since = |cpu: Option<f64>, start: f64| cpu.map(|cpu| (cpu - start).max(0.0));
        Ok(Trial {
            offered,
            whole,
            // Costs are of the octets that arrived.
            sent_octets: octets,
            octets,
            seconds: received.seconds * if part == Part::Send { 1.0 } else { share },
            send_cpu: since(send_cpu, start_up.send),
            receive_cpu: since(received.cpu, start_up.receive),
            ..Trial::default()
        })
    }

    /// Runs the sender until it ends; returns its CPU seconds.
    fn sender(
        &self,
        adapter: &Adapter,
        port: u16,
        fps: u32,
        count: usize,
    ) -> anyhow::Result<Option<f64>> {
        let words = adapter.send.as_ref().context("no command to send")?;
        let places = self.places(port, fps, count);
        let words = filled(words, &places)?;
        let mut sender = Running::start(&words, &self.sender_errors, Stdio::null())?;
        let start = Instant::now();
        let time = Duration::from_secs_f64(count as f64 / f64::from(fps)) + SEND_TIME;
        if !sender.wait(start + time) {
            sender.end();
        } else if start.elapsed() < Duration::from_millis(5) {
            bail!("{} sent nothing: {}", adapter.name, last_error_line(&self.sender_errors));
        }
        Ok(sender.cpu())
    }

    fn places(&self, port: u16, fps: u32, count: usize) -> Places<'_> {
        let (codec, file, sdp) = (self.sequence.codec, self.file.path(), self.sdp.path());
        let octets = self.sequence.octets_of(count) as f64 * f64::from(fps);
        #[allow(clippy::cast_sign_loss, reason = "a rate is not negative")]
        let octet_rate = (octets / count.max(1) as f64) as u32;
        let video = self.sequence.video().unwrap_or_default();
        Places { codec, file, sdp, out: self.out.path(), port, fps, octet_rate, video }
    }

    /// Runs the sender with a sink; the CPU seconds are those of the sender.
    fn send_to_sink(
        &self,
        adapter: &Adapter,
        port: u16,
        fps: u32,
        count: usize,
    ) -> anyhow::Result<Received> {
        let sink = Sink::open(port)?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let counted = scope.spawn(|| sink.count(&is_over));
            let cpu = self.sender(adapter, port, fps, count);
            is_over.store(true, Ordering::Relaxed);
            let counted = counted.join().map_err(|_| anyhow::anyhow!("the sink panicked"))??;
            let seconds = counted.times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
            Ok(Received { whole: counted.whole, seconds, cpu: cpu? })
        })
    }

    /// Runs the receiver while `send` sends `count` access units, and until nothing more arrives.
    fn receiver(
        &mut self,
        adapter: &Adapter,
        port: u16,
        count: usize,
        send: impl FnOnce(&mut Self) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<Received> {
        let words = adapter.receive.as_ref().context("no command to receive")?;
        let Sequence { codec, .. } = *self.sequence;
        let description = sdp(codec, self.sequence.video(), port, adapter.secured);
        self.sdp.fill([description.as_bytes()].into_iter())?;
        let octets = self.sequence.octets_of(count);
        self.out.clear(octets + octets / 16)?;
        let words = filled(words, &self.places(port, 30, count))?;
        let stdout = Stdio::from(self.out.writer()?);
        let mut receiver = Running::start(&words, &self.receiver_errors, stdout)?;
        if !wait_for_port(port, &mut receiver, Instant::now() + START_TIME) {
            bail!("{} does not listen: {}", adapter.name, last_error_line(&self.receiver_errors));
        }
        std::thread::sleep(SETTLING_TIME);
        let out = Arc::clone(&self.out);
        let mut watch = Watch::of(&out, octets);
        std::thread::scope(|scope| -> anyhow::Result<()> {
            let sending = scope.spawn(|| send(self));
            while watch.goes_on(sending.is_finished())? {}
            // If the output is too long, this is before the sender has ended.
            receiver.interrupt();
            receiver.wait(Instant::now() + END_TIME);
            receiver.end();
            sending.join().map_err(|_| anyhow::anyhow!("the sending thread panicked"))?
        })?;
        let (seconds, lengths) = watch.end(&adapter.name)?;
        // Only now, so as not to use the CPU while it was running.
        let found = Output::search(&self.expected, self.out.reader()?, lengths)?;
        self.out.clear(0)?;
        // Receivers write in pieces: the rate is that of the access units within the measured time.
        let in_time = found.within[1].saturating_sub(found.within[0]);
        let seconds = seconds * found.whole as f64 / in_time.max(1) as f64;
        Ok(Received { whole: found.whole, seconds, cpu: receiver.cpu() })
    }
}

/// The result of one end.
#[derive(Clone, Copy, Debug)]
struct Received {
    /// Complete access units that arrived.
    whole: u64,
    /// Seconds that they took.
    seconds: f64,
    cpu: Option<f64>,
}

/// Returns the last line that a program wrote to its standard error.
fn last_error_line(errors: &MemoryFile) -> String {
    let text = errors.reader().and_then(std::io::read_to_string).unwrap_or_default();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no error message").to_owned()
}

/// Returns a free even port; the next port is free too.
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
