//! `rushes loopback`: sends a file through two real sockets and compares every unit.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::{Codec, Context, Pacing, Session, Statistics, StreamReceiver, StreamSender};
use serde_json::{Value, json};

use crate::args::LoopbackArgs;
use crate::compare::Comparer;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::schedule::Schedule;
use crate::source::Source;
use crate::{Outcome, Usage, report, security, stream, zrtp};

/// Maximum number of frames in flight, and of their octets, without `--fps` and `--flat-out`.
const FRAMES_IN_FLIGHT: usize = 8;
const OCTETS_IN_FLIGHT: usize = 1 << 20;

/// Silence after which missing units count as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// State shared by both ends: the units sent, and whether one end has stopped.
struct Shared {
    comparer: Mutex<Comparer>,
    /// Frames sent and received, and octets in flight.
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

pub(crate) fn run(args: &LoopbackArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let mut source = Source::new(args.file.as_deref(), &args.stream)?;
    if source.is_live() {
        let reason = format!("loopback needs a file; {} is none: use rushes send", source.name());
        return Err(Usage(reason).into());
    }
    if source.codec == Codec::Uncompressed {
        source.open_raw(None)?;
    }
    stream::check_samples(&args.stream, &[source.codec])?;
    let Opened { mut sender, receiver, security, agreed } = open(args, &source)?;
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
            .spawn_scoped(scope, || {
                let received = receive(receiver, &shared);
                // With or without an error, the sender must not wait for frames that will not be
                // received.
                if received.is_err() {
                    shared.failed.store(true, Relaxed);
                }
                shared.land(u64::MAX);
                received
            })
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
    let interrupted = interrupt.is_requested();
    let ended = Ended { sent, received, time, interrupted };
    ended.print(args, &source, (&security, agreed), &lock(&shared.comparer))
}

/// Both ends, and their security.
struct Opened {
    sender: StreamSender,
    receiver: StreamReceiver,
    security: String,
    /// The result of the key agreement at each end, if there was one.
    agreed: Option<[Value; 2]>,
}

fn open(args: &LoopbackArgs, source: &Source) -> anyhow::Result<Opened> {
    let host = if args.ipv6 { "::1" } else { "127.0.0.1" };
    let session = || Context::new().session(host)?.local_address(host);
    let (near, far) = (session()?, session()?);
    let secured = args.security.security_or_random()?;
    let stream = |session: &Session| {
        let builder = session.stream(source.codec);
        let builder = stream::set(builder, session, &args.stream, source.raw_video);
        let builder = source.set(builder);
        security::set(builder, secured.clone())
    };
    let pacing = match (args.timing.pacing, args.timing.fps) {
        (Some(pacing), _) => pacing,
        (None, Some(_)) => Pacing::default(),
        (None, None) => Pacing::Off,
    };
    let receiving = stream(&near).probation(1).delivery(args.delivery.into());
    let sending = |port| {
        let burst = args.timing.burst.unwrap_or_default();
        let builder = stream(&far).remote_port(port).pacing(pacing).burst(burst);
        builder.frame_rate(args.timing.fps.unwrap_or_default())
    };
    let (receiver, sender, security, agreed) = if args.security.zrtp {
        let ([receiver, sender], [near, far]) = zrtp::open_both(receiving, sending)?;
        let security = format!("ZRTP; one end sees: {near}; the other: {far}");
        let agreed = Some([near.object(), far.object()]);
        (receiver, sender, security, agreed)
    } else {
        let receiver = receiving.open().context("cannot open the receiving stream")?;
        let port = receiver.local_address().port();
        let sender = sending(port).open().context("cannot open the sending stream")?;
        (receiver, sender, args.security.name().unwrap_or("none").to_owned(), None)
    };
    Ok(Opened { sender: sender.split()?.0, receiver: receiver.split()?.1, security, agreed })
}

fn send_all(
    args: &LoopbackArgs,
    source: &Source,
    sender: &mut StreamSender,
    shared: &Shared,
    interrupt: &Interrupt,
) -> anyhow::Result<Statistics> {
    let mut progress = Progress::new(args.output, Some(source.len().saturating_mul(args.repeat)));
    let mut schedule = Schedule::new(args.timing.fps, None, source.clock_rate);
    let (start, mut position) = (Instant::now(), 0);
    'files: for _ in 0..args.repeat {
        let mut reader = source.open(None)?;
        while let Some(frame) = reader.next_frame()? {
            if interrupt.is_requested() || shared.failed.load(Relaxed) {
                break 'files;
            }
            if args.timing.fps.is_some() {
                interrupt.sleep_until(start + schedule.next(frame).due);
            } else if !args.timing.flat_out {
                shared.wait_for_room(frame.data.len());
            }
            lock(&shared.comparer).expect(&frame.data, Instant::now());
            shared.depart(frame.data.len());
            sender.push_frame(&frame.data, None)?;
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

fn receive(mut receiver: StreamReceiver, shared: &Shared) -> anyhow::Result<Statistics> {
    let mut silent_since = Instant::now();
    let (mut packets, mut seen) = (0, 0);
    loop {
        let frame = receiver.pull_frame(Duration::from_millis(20))?;
        let now = Instant::now();
        if let Some(frame) = frame {
            silent_since = now;
            let mut comparer = lock(&shared.comparer);
            let goes_on = comparer.take(&frame, now);
            let landed = comparer.frames;
            drop(comparer);
            if landed > seen {
                seen = landed;
                shared.land(landed);
            }
            if !goes_on {
                shared.failed.store(true, Relaxed);
                return Ok(receiver.statistics());
            }
        } else {
            // Packets of a frame that takes long to send also count as activity.
            let received_packets = receiver.statistics().receive.packets;
            if received_packets != packets {
                packets = received_packets;
                silent_since = now;
            }
        }
        let sent_all = shared.sent_all.load(Relaxed);
        let mut comparer = lock(&shared.comparer);
        let patience = if sent_all { IDLE_TIMEOUT } else { 5 * IDLE_TIMEOUT };
        if comparer.is_complete() {
            if sent_all {
                return Ok(receiver.statistics());
            }
        } else if now - silent_since >= patience {
            shared.failed.store(true, Relaxed);
            comparer.finish();
            return Ok(receiver.statistics());
        }
    }
}

impl Shared {
    /// Waits until a frame of `len` octets may be sent.
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

    /// Records that `landed` frames in all have been received.
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

/// The results of a run.
struct Ended {
    sent: Statistics,
    received: Statistics,
    time: Duration,
    interrupted: bool,
}

impl Ended {
    fn print(
        &self,
        args: &LoopbackArgs,
        source: &Source,
        (security, agreed): (&str, Option<[Value; 2]>),
        comparer: &Comparer,
    ) -> anyhow::Result<Outcome> {
        let problem = self.problem(source, comparer);
        if args.output.json {
            let mut object = self.object(source, comparer, problem.as_deref());
            object["security"] = args.security.name().into();
            object["zrtp"] = agreed.map(Vec::from).into();
            report::print_line(object)?;
        } else if !args.output.quiet {
            report::print_line(self.text(source, security, comparer))?;
            report::print_line(problem.as_deref().unwrap_or("identical"))?;
        } else if let Some(problem) = &problem {
            eprintln!("rushes: {problem}");
        }
        Ok(if problem.is_none() { Outcome::Done } else { Outcome::Failed })
    }

    /// Returns why this run does not prove that every octet arrives, or `None` if it does.
    fn problem(&self, source: &Source, comparer: &Comparer) -> Option<String> {
        if let Some(difference) = comparer.difference() {
            let missing = comparer.missing;
            return Some(format!(
                "different: {difference} ({missing} units in all were not received)"
            ));
        }
        if self.interrupted {
            return Some("interrupted; the received part is identical".to_owned());
        }
        (comparer.units == 0).then(|| format!("nothing was sent: no frame in {}", source.name()))
    }

    fn text(&self, source: &Source, security: &str, comparer: &Comparer) -> String {
        let send = &self.sent.send;
        let latencies = &comparer.latencies;
        let mut text = format!(
            "{}\n  \
             security  {}\n  \
             units     {} in {} frames, {} octets\n  \
             packets   {} sent, {} received\n  \
             calls     {:.2} a frame to send, {:.2} to receive\n  \
             rate      {:.1} Mbit/s, {:.0} frames/s\n  \
             latency   p50 {:.1?}, p99 {:.1?}, max {:.1?}",
            source.name(),
            security,
            comparer.units,
            send.frames,
            comparer.octets,
            send.packets,
            self.received.receive.packets,
            self.calls(&self.sent),
            self.calls(&self.received),
            report::megabits(send.frame_octets, self.time),
            self.frames_per_second(),
            latencies.quantile(0.5),
            latencies.quantile(0.99),
            latencies.most(),
        );
        let discards = report::discards(&self.received);
        if !discards.is_empty() {
            text = format!("{text}\n  discards  {discards}");
        }
        text
    }

    fn object(&self, source: &Source, comparer: &Comparer, problem: Option<&str>) -> Value {
        let microseconds = |time: Duration| time.as_nanos() as f64 / 1000.0;
        let latencies = &comparer.latencies;
        json!({
            "identical": problem.is_none(),
            "difference": problem,
            "source": source.name(),
            "units": comparer.units,
            "units_missing": comparer.missing,
            "octets": comparer.octets,
            "seconds": self.time.as_secs_f64(),
            "megabits_per_second": report::megabits(self.sent.send.frame_octets, self.time),
            "frames_per_second": self.frames_per_second(),
            "latency_us": {
                "p50": microseconds(latencies.quantile(0.5)),
                "p99": microseconds(latencies.quantile(0.99)),
                "max": microseconds(latencies.most()),
            },
            "system_calls_per_frame": {
                "send": self.calls(&self.sent),
                "receive": self.calls(&self.received),
            },
            "sent": report::sent(&self.sent),
            "received": report::received(&self.received),
        })
    }

    /// Returns the system calls of one side for each frame sent.
    fn calls(&self, side: &Statistics) -> f64 {
        side.socket.calls() as f64 / self.sent.send.frames.max(1) as f64
    }

    fn frames_per_second(&self) -> f64 {
        self.sent.send.frames as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
