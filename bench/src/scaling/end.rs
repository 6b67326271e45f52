//! One end of a run, in its own process, with a thread for each stream.
//!
//! The receiver prints its ports, reads from its standard input the addresses for acknowledgements
//! of frames, and ends when that is closed and nothing more arrives.

use std::io::{BufRead, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Args;
use rushes::sleep_until;

use super::spec::{Clock, Report, Spec, Units};
use super::{bare, streams_end};
use crate::Outcome;
use crate::cpu::{cpu_time, pin_to_half};

/// Maximum number of unacknowledged access units of a stream, with acknowledgements.
const FRAMES_IN_FLIGHT: u64 = 2;

/// Silence after which an end gives up.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Silence after which nothing is in transit any more.
pub(crate) const SILENCE: Duration = Duration::from_millis(120);

#[derive(Args, Clone, Debug)]
pub(crate) struct EndArgs {
    /// The run, as JSON
    spec: String,
}

pub(crate) fn run(args: &EndArgs) -> anyhow::Result<Outcome> {
    let spec: Spec = serde_json::from_str(&args.spec)?;
    let is_sender = !spec.ports.is_empty();
    pin_to_half(usize::from(!is_sender));
    let report = if is_sender { send(&spec) } else { receive(&spec) }?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(Outcome::Done)
}

/// The state of a sending thread.
pub(crate) struct Sending {
    pub(crate) spec: Arc<Spec>,
    pub(crate) to: SocketAddr,
    pub(crate) frames: Arc<Frames>,
    pub(crate) window: Window,
    pub(crate) start: Instant,
}

/// The state of a receiving thread.
pub(crate) struct Receiving {
    pub(crate) spec: Arc<Spec>,
    pub(crate) acknowledger: Acknowledger,
    /// Whether the sender has ended.
    pub(crate) ended: Arc<AtomicBool>,
    pub(crate) received: Received,
}

impl Receiving {
    /// Whether to stop waiting after `silence`.
    pub(crate) fn is_over(&self, silence: Duration) -> bool {
        silence >= TIMEOUT || self.ended.load(Ordering::Relaxed) && silence >= SILENCE
    }

    /// Notes a complete frame.
    pub(crate) fn whole(&mut self, octets: usize) {
        let now = Instant::now();
        self.received.first.get_or_insert(now);
        self.received.last = Some(now);
        self.received.report.frames += 1;
        self.received.report.octets += octets as u64;
        self.acknowledger.acknowledge(self.received.report.frames);
    }
}

/// The received frames, and when they arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) report: Report,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

/// The access units to send, by kind.
pub(crate) struct Frames {
    units: Units,
    longest: Vec<u8>,
    /// Not a prefix of the longest: it has its own end.
    other: Vec<u8>,
}

impl Frames {
    fn new(units: Units) -> Self {
        Self { units, longest: access_unit(units.len(0)), other: access_unit(units.len(1)) }
    }

    pub(crate) fn unit(&self, n: u64) -> &[u8] {
        if n.is_multiple_of(self.units.group) { &self.longest } else { &self.other }
    }
}

/// An access unit of one slice: a header, then octets without a start code, like those of a slice.
fn access_unit(len: usize) -> Vec<u8> {
    let mut unit = vec![0, 0, 0, 1, 0x02, 0x01, 0x80];
    let len = len.max(unit.len() + 1);
    // Octets 1 to 255, so that there are no zeros.
    unit.extend((unit.len()..len).map(|n| 1 + (n.wrapping_mul(2_654_435_761) >> 7) as u8 % 255));
    unit
}

/// The sender's end of the acknowledgements.
pub(crate) struct Window {
    socket: UdpSocket,
    sent: u64,
    seen: u64,
}

impl Window {
    fn open(host: &str) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((host, 0))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { socket, sent: 0, seen: 0 })
    }

    /// Waits until another access unit may be sent.
    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        self.wait_for((self.sent + 1).saturating_sub(FRAMES_IN_FLIGHT))?;
        self.sent += 1;
        Ok(())
    }

    pub(crate) fn wait_for_all(&mut self) -> anyhow::Result<()> {
        self.wait_for(self.sent)
    }

    fn wait_for(&mut self, frames: u64) -> anyhow::Result<()> {
        while self.seen < frames {
            let mut octets = [0; 8];
            self.socket.recv(&mut octets).context("no acknowledgement from the receiver")?;
            self.seen = self.seen.max(u64::from_be_bytes(octets));
        }
        Ok(())
    }
}

/// The receiver's end of the acknowledgements.
pub(crate) struct Acknowledger {
    socket: UdpSocket,
    to: SocketAddr,
}

impl Acknowledger {
    fn acknowledge(&self, frames: u64) {
        // A lost acknowledgement is repeated by that of the next frame.
        let _ = self.socket.send_to(&frames.to_be_bytes(), self.to);
    }
}

fn send(spec: &Spec) -> anyhow::Result<Report> {
    let frames = Arc::new(Frames::new(spec.units));
    let mut windows = Vec::new();
    for _ in &spec.ports {
        windows.push(Window::open(&spec.sender)?);
    }
    let addresses: std::io::Result<Vec<String>> =
        windows.iter().map(|window| Ok(window.socket.local_addr()?.to_string())).collect();
    print_line(&addresses?)?;
    let spec = Arc::new(spec.clone());
    let cpu = cpu_time();
    // All threads begin at the same time.
    let start = Instant::now() + Duration::from_millis(2);
    let mut threads = Vec::new();
    for (&port, window) in spec.ports.iter().zip(windows) {
        let to = SocketAddr::new(spec.host.parse()?, port);
        let sending = Sending { spec: spec.clone(), to, frames: frames.clone(), window, start };
        threads.push(thread::spawn(move || {
            let way = if sending.spec.bare { bare::send } else { streams_end::send };
            sleep_until(sending.start);
            way(sending)
        }));
    }
    let mut all = Report::default();
    for thread in threads {
        let report = thread.join().map_err(|_| anyhow!("a sending thread panicked"))??;
        all.frames += report.frames;
        all.octets += report.octets;
        all.wire_octets += report.wire_octets;
    }
    let planned = match spec.clock {
        Clock::Window => 0.0,
        Clock::Steady(fps, _) => spec.frames as f64 / fps,
    };
    all.seconds = start.elapsed().as_secs_f64().max(planned);
    all.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
    Ok(all)
}

fn receive(spec: &Spec) -> anyhow::Result<Report> {
    let mut sources = Vec::new();
    for _ in 0..spec.streams {
        sources.push(Source::open(spec)?);
    }
    print_line(&sources.iter().map(|source| source.port().to_string()).collect::<Vec<_>>())?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let ended = Arc::new(AtomicBool::new(false));
    let seen = ended.clone();
    thread::spawn(move || {
        // Standard input is closed when the sender has ended.
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        seen.store(true, Ordering::Relaxed);
    });
    let spec = Arc::new(spec.clone());
    let cpu = cpu_time();
    let mut threads = Vec::new();
    for (source, to) in sources.into_iter().zip(line.split_whitespace()) {
        let socket = UdpSocket::bind((spec.host.as_str(), 0))?;
        let acknowledger = Acknowledger { socket, to: to.parse()? };
        let receiving = Receiving {
            spec: spec.clone(),
            acknowledger,
            ended: ended.clone(),
            received: Received::default(),
        };
        threads.push(thread::spawn(move || match source {
            Source::Stream(stream) => streams_end::receive(*stream, receiving),
            Source::Bare(socket) => bare::receive(&socket, receiving),
        }));
    }
    let mut all = Received::default();
    for thread in threads {
        let received = thread.join().map_err(|_| anyhow!("a receiving thread panicked"))??;
        all.report.frames += received.report.frames;
        all.report.octets += received.report.octets;
        all.report.socket_drops += received.report.socket_drops;
        all.first = [all.first, received.first].into_iter().flatten().min();
        all.last = all.last.max(received.last);
    }
    let times = all.first.zip(all.last);
    all.report.seconds = times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    all.report.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
    Ok(all.report)
}

enum Source {
    Stream(Box<rushes::MediaStream>),
    Bare(Box<rushes::net::UdpSocket>),
}

impl Source {
    fn open(spec: &Spec) -> anyhow::Result<Self> {
        Ok(if spec.bare {
            Self::Bare(Box::new(bare::open(&spec.host, spec)?))
        } else {
            Self::Stream(Box::new(streams_end::open_receiver(spec)?))
        })
    }

    fn port(&self) -> u16 {
        match self {
            Self::Stream(stream) => stream.local_address().port(),
            Self::Bare(socket) => socket.local_address().port(),
        }
    }
}

/// Prints one line for the parent process.
fn print_line(parts: &[String]) -> anyhow::Result<()> {
    println!("{}", parts.join(" "));
    Ok(std::io::stdout().flush()?)
}
