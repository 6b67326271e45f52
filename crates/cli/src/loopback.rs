//! `rushes loopback`: a file through two real sockets, every unit compared.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::{Context, Pacing, Statistics, StreamReceiver, StreamSender, sleep_until};
use serde_json::json;

use crate::Outcome;
use crate::args::LoopbackArgs;
use crate::compare::{Comparer, Difference};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report;
use crate::source::{Schedule, Source};
use crate::stream;

/// Frames, and octets in them, that may be on their way at once unless told otherwise.
const FRAMES_IN_FLIGHT: usize = 8;
const OCTETS_IN_FLIGHT: usize = 1 << 20;

/// Silence after which what has not come will not come.
const PATIENCE: Duration = Duration::from_secs(2);

/// Both ends share this: what was sent, and who has stopped.
struct Shared {
    comparer: Mutex<Comparer>,
    /// Frames sent and seen again, and octets on their way.
    flight: Mutex<Flight>,
    landed: Condvar,
    sent_all: AtomicBool,
    failed: AtomicBool,
}

#[derive(Default)]
struct Flight {
    lens: std::collections::VecDeque<usize>,
    octets: usize,
    landed: u64,
}

/// What the receiving thread found.
struct Received {
    statistics: Statistics,
    difference: Option<Difference>,
}

pub(crate) fn run(args: &LoopbackArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::listen()?;
    let source = Source::new(args.file.as_deref(), &args.stream)?;
    let (mut sender, receiver) = open(args, &source)?;
    let shared = Shared {
        comparer: Mutex::new(Comparer::new(source.codec)),
        flight: Mutex::default(),
        landed: Condvar::new(),
        sent_all: AtomicBool::new(false),
        failed: AtomicBool::new(false),
    };
    let start = Instant::now();
    let (sent, received) = thread::scope(|scope| {
        let receiving = thread::Builder::new()
            .name("rushes-loopback-receive".to_owned())
            .spawn_scoped(scope, || receive(receiver, &shared))
            .context("cannot start a thread")?;
        let sent = send_all(args, &source, &mut sender, &shared, &interrupt);
        if sent.is_err() {
            shared.failed.store(true, Relaxed);
        }
        shared.sent_all.store(true, Relaxed);
        let received = receiving.join().map_err(|_| anyhow::anyhow!("the receiver panicked"))?;
        Ok::<_, anyhow::Error>((sent, received))
    })?;
    let time = start.elapsed();
    let sent = sent?;
    let received = received?;
    Ok(print(args, &source, &shared, &Ended { sent, received, time }))
}

fn open(args: &LoopbackArgs, source: &Source) -> anyhow::Result<(StreamSender, StreamReceiver)> {
    let host = if args.ipv6 { "::1" } else { "127.0.0.1" };
    let session = Context::new().session(host)?.local_address(host)?;
    let stream = || stream::set(session.stream(source.codec), &session, &args.stream);
    let builder = stream().probation(1).delivery(args.delivery.into());
    let receiver = builder.open().context("cannot open the receiving stream")?;
    let port = receiver.local_address().port();
    let pacing = match (args.timing.pacing, args.timing.fps) {
        (Some(pacing), _) => pacing,
        (None, Some(_)) => Pacing::default(),
        (None, None) => Pacing::Off,
    };
    let builder =
        stream().remote_port(port).frame_rate(Schedule::new(args.timing).rate()).pacing(pacing);
    let sender = builder.open().context("cannot open the sending stream")?;
    Ok((sender.split()?.0, receiver.split()?.1))
}

fn send_all(
    args: &LoopbackArgs,
    source: &Source,
    sender: &mut StreamSender,
    shared: &Shared,
    interrupt: &Interrupt,
) -> anyhow::Result<Statistics> {
    let mut progress = Progress::new(args.output, Some(source.len() * args.repeat));
    let mut schedule = Schedule::new(args.timing);
    let (start, mut position) = (Instant::now(), 0);
    'files: for _ in 0..args.repeat {
        let mut reader = source.open()?;
        while let Some(frame) = reader.next_frame()? {
            if interrupt.came() || shared.failed.load(Relaxed) {
                break 'files;
            }
            if args.timing.fps.is_some() {
                sleep_until(start + schedule.next(frame.duration));
            } else if !args.timing.flat_out {
                shared.wait_for_room(frame.data.len());
            }
            lock(&shared.comparer).expect(frame.data, Instant::now());
            shared.depart(frame.data.len());
            sender.push_frame(frame.data, None)?;
            position += frame.data.len() as u64;
            progress.show(position, || {
                let mut statistics = Statistics::default();
                statistics.send = sender.statistics();
                statistics
            });
        }
    }
    progress.finish();
    let mut statistics = Statistics::default();
    statistics.send = sender.statistics();
    statistics.socket = sender.socket_counters();
    Ok(statistics)
}

fn receive(mut receiver: StreamReceiver, shared: &Shared) -> anyhow::Result<Received> {
    let mut silent_since = Instant::now();
    let mut difference = None;
    let mut seen = 0;
    loop {
        let frame = receiver.pull_frame(Duration::from_millis(20))?;
        let now = Instant::now();
        if let Some(frame) = frame {
            silent_since = now;
            let mut comparer = lock(&shared.comparer);
            difference = comparer.take(&frame, now).err();
            let landed = comparer.latencies.len() as u64;
            drop(comparer);
            if landed > seen {
                seen = landed;
                shared.land(landed);
            }
        }
        let complete = shared.sent_all.load(Relaxed) && lock(&shared.comparer).is_complete();
        let silent = shared.sent_all.load(Relaxed) && now - silent_since >= PATIENCE;
        let stuck = now - silent_since >= 5 * PATIENCE && !lock(&shared.comparer).is_complete();
        if difference.is_some() || complete || silent || stuck {
            break;
        }
    }
    if difference.is_none() {
        difference = lock(&shared.comparer).finish().err();
    }
    if difference.is_some() {
        shared.failed.store(true, Relaxed);
    }
    shared.land(u64::MAX);
    Ok(Received { statistics: receiver.statistics(), difference })
}

impl Shared {
    /// Waits until a frame of `len` octets may leave.
    fn wait_for_room(&self, len: usize) {
        let full = |flight: &mut Flight| {
            !self.failed.load(Relaxed)
                && !flight.lens.is_empty()
                && (flight.lens.len() >= FRAMES_IN_FLIGHT || flight.octets + len > OCTETS_IN_FLIGHT)
        };
        drop(self.landed.wait_while(lock(&self.flight), full));
    }

    fn depart(&self, len: usize) {
        let mut flight = lock(&self.flight);
        flight.lens.push_back(len);
        flight.octets += len;
    }

    /// Notes that `landed` frames in all have been seen again.
    fn land(&self, landed: u64) {
        let mut flight = lock(&self.flight);
        while flight.landed < landed {
            let Some(len) = flight.lens.pop_front() else { break };
            flight.octets -= len;
            flight.landed += 1;
        }
        self.landed.notify_one();
    }
}

/// How it ended.
struct Ended {
    sent: Statistics,
    received: Received,
    time: Duration,
}

fn print(args: &LoopbackArgs, source: &Source, shared: &Shared, ended: &Ended) -> Outcome {
    let Ended { sent, received, time } = ended;
    let mut comparer = lock(&shared.comparer);
    let identical = received.difference.is_none();
    let frames = sent.send.frames;
    let calls = |statistics: &Statistics| statistics.socket.calls() as f64 / frames.max(1) as f64;
    let (median, high, most) =
        (comparer.latency(0.5), comparer.latency(0.99), comparer.latency(1.0));
    let rate = report::megabits(sent.send.frame_octets, *time);
    let per_second = frames as f64 / time.as_secs_f64().max(1e-9);
    let statistics = &received.statistics;
    if args.output.json {
        let microseconds = |time: Duration| time.as_nanos() as f64 / 1000.0;
        println!(
            "{}",
            json!({
                "identical": identical,
                "difference": received.difference.as_ref().map(ToString::to_string),
                "source": source.name(),
                "units": comparer.units,
                "octets": comparer.octets,
                "seconds": time.as_secs_f64(),
                "megabits_per_second": rate,
                "frames_per_second": per_second,
                "latency_us": {
                    "p50": microseconds(median),
                    "p99": microseconds(high),
                    "max": microseconds(most),
                },
                "system_calls_per_frame": { "send": calls(sent), "receive": calls(statistics) },
                "sent": report::sent(sent),
                "received": report::received(statistics),
            })
        );
    } else if !args.output.quiet {
        println!("{}", source.name());
        println!("  units     {} in {frames} frames, {} octets", comparer.units, comparer.octets);
        println!("  packets   {}, lost {}", sent.send.packets, statistics.receive.packets_lost);
        println!(
            "  calls     {:.2} a frame to send, {:.2} to receive",
            calls(sent),
            calls(statistics)
        );
        println!("  rate      {rate:.1} Mbit/s, {per_second:.0} frames/s");
        println!("  latency   p50 {median:.1?}, p99 {high:.1?}, max {most:.1?}");
        let discards = report::discards(statistics);
        if !discards.is_empty() {
            println!("  discards  {discards}");
        }
        match &received.difference {
            None => println!("identical"),
            Some(difference) => println!("different: {difference}"),
        }
    }
    if identical { Outcome::Done } else { Outcome::Fell }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
