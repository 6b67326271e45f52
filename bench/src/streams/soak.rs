//! Many streams for a long time: whether memory stays the same, and what is lost.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rushes::sleep_until;
use serde::{Deserialize, Serialize};

use super::memory::resident;
use super::side::{self, Kind, Load, Watched};
use super::{Job, Outcome, Way};
use crate::captions;
use crate::report::{Figure, Table};
use crate::settings::Settings;

/// What was seen at one moment.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Sample {
    /// Seconds since the beginning.
    at: f64,
    /// Octets of memory of the process, both ends.
    resident: u64,
    /// Packets received so far.
    received: u64,
    /// RTCP octets of both ends so far, for an octet of media.
    rtcp: f64,
}

/// Samples of a run, evenly spread, and the time between two that are looked at for its end.
const SAMPLES: u32 = 10;
const STEP: Duration = Duration::from_millis(100);

/// Runs the streams for `minutes` in this process.
pub(super) fn run(streams: usize, kind: Kind, minutes: u16) -> anyhow::Result<Outcome> {
    let load = Load { streams, seconds: u32::from(minutes) * 60 };
    let (sender, samples) = mpsc::channel();
    let interval = Duration::from_secs(load.seconds.into()) / SAMPLES;
    let outcome = side::run(load, kind, move |watched| {
        let start = Instant::now();
        // Those that cannot be read are left out of the table.
        for n in 1..=SAMPLES {
            let next = start + interval * n;
            while Instant::now() < next && !watched.is_over.load(Relaxed) {
                sleep_until(next.min(Instant::now() + STEP));
            }
            let _ = sample(start, watched).map(|sample| sender.send(sample));
        }
    })?;
    Ok(Outcome { samples: samples.into_iter().collect(), ..outcome })
}

fn sample(start: Instant, watched: &Watched) -> anyhow::Result<Sample> {
    let (at, received) = (start.elapsed().as_secs_f64(), watched.received.load(Relaxed));
    Ok(Sample { at, resident: resident()?, received, rtcp: watched.rtcp_share() })
}

/// Returns the figure of streams that run for `minutes`; it has failed if more packets are lost than the kernel
/// has dropped.
pub(super) fn figure(settings: &Settings, streams: usize, minutes: u16) -> anyhow::Result<Figure> {
    settings.progress(&format!("streams: {streams} for {minutes} min"));
    let kind = Kind { rtcp: true, srtp: false, many: true };
    let outcome = Job { way: Way::Soak(kind, minutes), streams, seconds: 0 }.measure()?;
    let words = format!(
        "{streams} streams, {minutes} min, loopback: {} packets, {} lost, {} of them dropped by the kernel; \
         {:.2} us to send a packet, {:.2} to receive it",
        outcome.packets, outcome.lost, outcome.drops, outcome.send, outcome.receive,
    );
    let has_failed = outcome.lost > outcome.drops;
    let table = Table::of(&outcome.samples)
        .measure("s", 0, |sample| sample.at)
        .measure("MB resident", 2, |sample| sample.resident as f64 / f64::from(1 << 20))
        .count("received", |sample| sample.received)
        .measure("RTCP %", 3, |sample| 100.0 * sample.rtcp)
        .figure(&captions::MANY_STREAMS_SOAK, words);
    Ok(Figure { has_failed, ..table })
}
