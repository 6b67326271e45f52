//! One end of a run, in its own process, with a thread for each stream.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use super::bare::{BareInlet, BareOutlet};
use super::flow::{self, Acknowledger, Inlet, Outlet, Window, seconds_since_1970};
use super::process::EndArgs;
use super::spec::Spec;
use super::stream::{StreamInlet, StreamOutlet};
use super::trial::Report;
use crate::Outcome;
use crate::cpu::{cpu_time, pin_to, pin_to_half};
use crate::sequence::Sequence;

/// Time until all sending threads have started.
const START_TIME: Duration = Duration::from_millis(2);

pub(crate) fn run(args: &EndArgs) -> anyhow::Result<Outcome> {
    let spec: Spec = serde_json::from_str(&args.spec)?;
    let is_sender = !spec.ports.is_empty();
    let pin = if spec.halves { pin_to_half } else { pin_to };
    pin(usize::from(!is_sender));
    let report = if is_sender { send(&spec) } else { receive(&spec) }?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(Outcome::Done)
}

fn send(spec: &Spec) -> anyhow::Result<Report> {
    let sequence = Arc::new(Sequence::from(&spec.origin, spec.codec()?)?);
    let (mut outlets, mut addresses) = (Vec::<(Box<dyn Outlet>, Window)>::new(), Vec::new());
    for port in &spec.ports {
        let to = SocketAddr::new(spec.host.parse()?, *port);
        let window = Window::open(&spec.sender)?;
        addresses.push(window.address()?.to_string());
        outlets.push(if spec.bare {
            (Box::new(BareOutlet::open(spec, &sequence, to)?), window)
        } else {
            (Box::new(StreamOutlet::open(spec, &sequence, to)?), window)
        });
    }
    print_line(&addresses)?;
    let cpu = cpu_time();
    // All threads begin at the same time.
    let start = Instant::now() + START_TIME;
    let mut all = Report { start: seconds_since_1970(), ..Report::default() };
    all.start += START_TIME.as_secs_f64();
    thread::scope(|scope| {
        let threads = outlets.into_iter().map(|(mut outlet, window)| {
            scope.spawn(move || flow::send(&mut *outlet, spec, window, start))
        });
        // All are started before the first is waited for.
        for thread in threads.collect::<Vec<_>>() {
            all.add(&thread.join().map_err(|_| anyhow!("a sending thread panicked"))??);
        }
        all.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
        Ok(all)
    })
}

fn receive(spec: &Spec) -> anyhow::Result<Report> {
    let mut inlets = Vec::<Box<dyn Inlet>>::new();
    for _ in 0..spec.streams {
        inlets.push(if spec.bare {
            Box::new(BareInlet::open(spec)?)
        } else {
            Box::new(StreamInlet::open(spec)?)
        });
    }
    print_line(&inlets.iter().map(|inlet| inlet.port().to_string()).collect::<Vec<_>>())?;
    let mut addresses = String::new();
    std::io::stdin().lock().read_line(&mut addresses)?;
    let has_ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&has_ended);
    thread::spawn(move || {
        // Standard input is closed when the sender has ended.
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        seen.store(true, Ordering::Relaxed);
    });
    let cpu = cpu_time();
    let mut all = Report::default();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (mut inlet, to) in inlets.into_iter().zip(addresses.split_whitespace()) {
            let (acknowledger, has_ended) = (Acknowledger::open(&spec.host, to)?, &*has_ended);
            threads.push(
                scope.spawn(move || flow::receive(&mut *inlet, spec, &acknowledger, has_ended)),
            );
        }
        for thread in threads {
            all.add(&thread.join().map_err(|_| anyhow!("a receiving thread panicked"))??);
        }
        all.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
        Ok(all)
    })
}

/// Prints one line for the parent process.
fn print_line(parts: &[String]) -> anyhow::Result<()> {
    println!("{}", parts.join(" "));
    Ok(std::io::stdout().flush()?)
}
