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

use anyhow::anyhow;
use clap::Args;
use rushes::sleep_until;

use super::flow::{Acknowledger, Frames, Received, Receiving, Sending, Window};
use super::spec::{Clock, Report, Spec};
use super::{bare, streams_end};
use crate::Outcome;
use crate::cpu::{cpu_time, pin_to_half};

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
