//! The options, the schedule and the reports that the two sides of a trial share. Each side is a
//! process of its own.
//!
//! The receiver prints its port; the sender reads it, sends on schedule, and prints its report.
//! Then the receiver's standard input is closed, and it stops after a short silence.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Args;
use rushes::{Codec, ReceivePath, Security, SendPath, StreamBuilder, Suite, sleep_until};
use serde::{Deserialize, Serialize};

use crate::cpu::cpu_time;
use crate::sequence::{Origin, Sequence};

/// The address of both sides.
pub(super) const HOST: &str = "127.0.0.1";

/// Silence after which the receiver is done, once the sender is: longer than packets are waited
/// for.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(90);

/// Interval at which the receiver checks whether the sender is done.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The codecs of generated sequences.
pub(super) const CODECS: [Codec; 3] = [Codec::H265, Codec::H264, Codec::H266];

pub(super) fn parse_codec(text: &str) -> Result<Codec, String> {
    let codec = Codec::named(text).filter(|codec| CODECS.contains(codec));
    codec.ok_or_else(|| format!("{text:?} is not one of h264, h265, h266"))
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TrialArgs {
    /// Whether this side sends
    #[arg(long)]
    pub(super) send: bool,
    /// A loop without RTP
    #[arg(long)]
    pub(super) raw: bool,
    #[arg(long, value_parser = parse_codec)]
    pub(super) codec: Codec,
    /// Bits per second of a sequence to generate (for the sender)
    #[arg(long, default_value_t = 0)]
    bit_rate: u64,
    /// The sequence to read (for the sender)
    #[arg(long)]
    file: Option<PathBuf>,
    /// Access units to send
    #[arg(long)]
    pub(super) units: usize,
    /// Access units per second
    #[arg(long)]
    pub(super) rate: f64,
    #[arg(long, default_value = "auto")]
    pub(super) send_path: SendPath,
    #[arg(long, default_value = "auto")]
    pub(super) receive_path: ReceivePath,
    #[arg(long)]
    srtp: Option<Suite>,
    /// Batches are spread over the interval between access units
    #[arg(long)]
    pub(super) paced: bool,
    #[arg(long)]
    pub(super) socket_buffer: Option<usize>,
    #[arg(long)]
    pub(super) core: usize,
}

/// The report of a side, printed as one line of JSON.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Done {
    /// Access units sent, or received complete.
    pub(super) units: u64,
    /// Their octets.
    pub(super) octets: u64,
    /// Seconds since 1970 when the first access unit was due, or when the last arrived.
    pub(super) at: f64,
    /// Seconds from when the first access unit was due until the last was passed on; of the sender.
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
}

impl TrialArgs {
    pub(super) fn sequence(&self) -> anyhow::Result<Sequence> {
        let origin = match &self.file {
            Some(path) => Origin::File(path.clone()),
            None => Origin::Made(self.bit_rate),
        };
        Sequence::from(&origin, self.codec)
    }

    /// Calls `push` for each access unit when it is due, or as soon as possible after that. Gives
    /// up when this takes several times as long as planned.
    pub(super) fn keep_schedule(
        &self,
        mut push: impl FnMut(usize) -> anyhow::Result<u64>,
    ) -> anyhow::Result<Done> {
        let cpu = cpu_time();
        let mut done = Done { at: seconds_since_1970(), ..Done::default() };
        let start = Instant::now();
        let due = |n: usize| start + Duration::from_secs_f64(n as f64 / self.rate);
        let end = due(4 * self.units) + Duration::from_secs(1);
        for n in 0..self.units {
            sleep_until(due(n));
            done.octets += push(n)?;
            done.units += 1;
            if Instant::now() > end {
                break;
            }
        }
        done.seconds = start.elapsed().as_secs_f64();
        done.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
        Ok(done)
    }

    pub(super) fn stream(&self, mut builder: StreamBuilder) -> anyhow::Result<StreamBuilder> {
        if let Some(octets) = self.socket_buffer {
            builder = builder.socket_buffer(octets);
        }
        let Some(suite) = self.srtp else { return Ok(builder) };
        // A fixed key, known to both sides, is sufficient here.
        let key = vec![0x2d; suite.key_and_salt_len()];
        Ok(builder.security(Security::shared(suite, &key)?))
    }
}

/// Reports the receiver's port to the parent process.
pub(super) fn print_port(port: u16) -> anyhow::Result<()> {
    println!("{port}");
    Ok(std::io::stdout().flush()?)
}

/// Reads the receiver's port from the parent process.
pub(super) fn read_port() -> anyhow::Result<u16> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    line.trim().parse().context("the receiver has no port")
}

pub(super) fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Determines when the receiver is done.
pub(super) struct Listening {
    units: u64,
    sender_is_done: Arc<AtomicBool>,
    last: Instant,
    cpu: Duration,
}

impl Listening {
    /// Waits for `units` access units, and for the end of the standard input.
    pub(super) fn to(units: usize) -> Self {
        let sender_is_done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&sender_is_done);
        std::thread::spawn(move || {
            // An error also means that nothing more will be sent.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            flag.store(true, Relaxed);
        });
        Self { units: units as u64, sender_is_done, last: Instant::now(), cpu: cpu_time() }
    }

    /// Notes that something arrived.
    pub(super) fn note_arrival(&mut self) {
        self.last = Instant::now();
    }

    /// Notes that an access unit of `octets` arrived complete.
    pub(super) fn count(&self, done: &mut Done, octets: usize) {
        done.units += 1;
        done.octets += octets as u64;
        done.at = seconds_since_1970();
        done.cpu_seconds = cpu_time().saturating_sub(self.cpu).as_secs_f64();
    }

    pub(super) fn goes_on(&self, done: &Done) -> bool {
        done.units < self.units
            && (!self.sender_is_done.load(Relaxed) || self.last.elapsed() < SILENCE_TIMEOUT)
    }
}
