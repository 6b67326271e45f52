//! Links with a rate and a short queue, like a port of a switch: losses near their rate.
//!
//! The link is a token bucket between two network namespaces. Its rate includes the Ethernet
//! header, as in the kernel, and so does the offered load.

use super::{Bench, GROUP, MTU, grouped, left_out};
use crate::captions;
use crate::ends::{Clock, ETHERNET_LEN, IP_UDP_LEN, Path, Spec, Spread, Trial, Trials, in_turns};
use crate::hosts::Hosts;
use crate::report::{Across, BARE, Caption, Figure, Plot, Series, Table};

/// Like a port of a small switch. Bursts of 128 KiB pass at once, which segmented messages need and
/// which allows the kernel's timer 0.1 ms at 10 Gbit/s; 512 KiB can wait.
const QUEUE: &str = "burst 128k limit 512k";

/// Share of the link that paced streams use.
const PACED_SHARE: f64 = 0.98;

const LOADS: [f64; 8] = [30.0, 50.0, 70.0, 80.0, 85.0, 90.0, 95.0, 100.0];
const QUICK_LOADS: [f64; 2] = [50.0, 90.0];

/// The load where the rate of access units is varied, and these rates.
const LOAD: f64 = 90.0;
const RATES: [f64; 3] = [60.0, 120.0, 240.0];

/// Octets of the headers of RTP and of an H.265 fragment in a packet.
const RTP_LEN: usize = 12 + 3;

/// A way of sending.
struct Way {
    name: &'static str,
    path: Path,
    bare: bool,
    /// The spread for a share of the link's rate, in bits of UDP payload per second.
    spread: fn(u64) -> Spread,
}

impl Way {
    const fn new(name: &'static str, path: Path, bare: bool, spread: fn(u64) -> Spread) -> Self {
        Self { name, path, bare, spread }
    }

    fn name(&self) -> String {
        format!("{}{}", self.name, if self.bare { BARE } else { "" })
    }
}

/// The name of the library's default.
const DEFAULT: &str = "default pacing";

static WAYS: [Way; 6] = [
    Way::new(DEFAULT, Path::Gso, false, |_| Spread::Default),
    Way::new("GSO, unpaced", Path::Gso, false, |_| Spread::Burst),
    Way::new("sendmmsg, unpaced", Path::Sendmmsg, false, |_| Spread::Burst),
    Way::new("paced at 98 % of the link", Path::Gso, false, Spread::Rate),
    Way::new("GSO, unpaced", Path::Gso, true, |_| Spread::Burst),
    Way::new("paced at 98 % of the link", Path::Gso, true, Spread::Rate),
];

/// Returns the octets on the wire for each octet of access units, Ethernet headers included.
fn overhead() -> f64 {
    let packet = (MTU - IP_UDP_LEN - RTP_LEN) as f64;
    1.0 + (ETHERNET_LEN + IP_UDP_LEN + RTP_LEN) as f64 / packet
}

/// One link, and its names.
struct Link {
    bits: f64,
    rate: &'static str,
    /// The figure by load, and that by rate of access units.
    by_load: &'static Caption,
    by_rate: &'static Caption,
}

static LINKS: [Link; 2] = [
    Link {
        bits: 1e9,
        rate: "1gbit",
        by_load: &captions::BUCKET_1G,
        by_rate: &captions::BUCKET_1G_FPS,
    },
    Link {
        bits: 1e10,
        rate: "10gbit",
        by_load: &captions::BUCKET_10G,
        by_rate: &captions::BUCKET_10G_FPS,
    },
];

pub(super) fn figures(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for link in &LINKS {
        let hosts = Hosts::namespaces_with(MTU).and_then(|hosts| {
            hosts.set_queue(&format!("tbf rate {} {QUEUE}", link.rate))?;
            Ok(hosts)
        });
        match hosts {
            Ok(hosts) => {
                hosts.spread_receiving();
                figures.push(link.by_load(bench, &hosts)?);
                if !bench.settings.quick {
                    figures.push(link.by_rate(bench, &hosts)?);
                }
            }
            Err(why) => {
                left_out("links with a token bucket are", &why);
                break;
            }
        }
    }
    Ok(figures)
}

/// The results of one way at one load or rate.
struct Row {
    x: f64,
    way: &'static Way,
    trials: Trials,
    /// Messages that the link dropped.
    dropped: u64,
    /// Percentage of the link's rate that was sent.
    sent: f64,
}

impl Link {
    fn by_load(&self, bench: &Bench<'_>, hosts: &Hosts) -> anyhow::Result<Figure> {
        let mut rows = Vec::new();
        let size = bench.args.frame_size;
        for &load in bench.settings.choose(&LOADS[..], &QUICK_LOADS) {
            bench.settings.progress(&format!("scaling: {} at {load} %", self.rate));
            let fps = self.bits * load / 100.0 / 8.0 / (size as f64 * overhead());
            rows.extend(self.ways(bench, hosts, load, (size, fps))?);
        }
        let what = format!("{size} octets an access unit");
        let x = "offered load, % of the link's rate";
        Ok(figure(bench, self.by_load, (&what, x), &rows, |row| row.sent))
    }

    fn by_rate(&self, bench: &Bench<'_>, hosts: &Hosts) -> anyhow::Result<Figure> {
        let mut rows = Vec::new();
        for fps in RATES {
            bench.settings.progress(&format!("scaling: {} at {fps} a second", self.rate));
            #[allow(clippy::cast_sign_loss, reason = "sizes are above zero")]
            let size = (self.bits * LOAD / 100.0 / 8.0 / fps / overhead()) as usize;
            rows.extend(self.ways(bench, hosts, fps, (size, fps))?);
        }
        let what = format!("at {LOAD} % of the link's rate");
        let x = "access units a second";
        Ok(figure(bench, self.by_rate, (&what, x), &rows, |row| row.x))
    }

    /// Returns the ways in turns, with access units of this mean size and rate.
    fn ways(
        &self,
        bench: &Bench<'_>,
        hosts: &Hosts,
        x: f64,
        (size, fps): (usize, f64),
    ) -> anyhow::Result<Vec<Row>> {
        let payload = (MTU - IP_UDP_LEN) as f64 / (MTU + ETHERNET_LEN) as f64;
        #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
        let paced = (self.bits * PACED_SHARE * payload) as u64;
        let results = in_turns(&WAYS, bench.runs(2), |_, way| {
            let before = hosts.queue_drops()?;
            let spec = Spec {
                mtu: MTU,
                path: way.path,
                bare: way.bare,
                clock: Clock::Steady(fps, (way.spread)(paced)),
                // Losses should occur on the link, not at the receiver.
                buffers: [32 << 20; 2],
                ..bench.spec(grouped(size), fps)
            };
            let trial = Trial::run(hosts, &spec)?;
            Ok((trial, hosts.queue_drops()?.saturating_sub(before)))
        })?;
        let row = |(way, runs): (&'static Way, Vec<(Trial, u64)>)| {
            let dropped = runs.iter().map(|(_, dropped)| dropped).sum();
            let trials = Trials(runs.into_iter().map(|(trial, _)| trial).collect());
            let sent = 100.0 * trials.median(|trial| trial.wire_gigabits) * 1e9 / self.bits;
            Row { x, way, trials, dropped, sent }
        };
        Ok(WAYS.iter().zip(results).map(row).collect())
    }
}

/// Returns the figure of `rows`, whose points are at `place` on the axis `x`.
fn figure(
    bench: &Bench<'_>,
    caption: &'static Caption,
    (what, x): (&str, &'static str),
    rows: &[Row],
    // A sender that did not reach the load is shown at the load it reached.
    place: impl Fn(&Row) -> f64,
) -> Figure {
    let line = |(n, way): (usize, &Way)| {
        let of_way = rows.iter().skip(n).step_by(WAYS.len());
        let mut line: Vec<_> = of_way.map(|row| (place(row), row.trials.loss_span())).collect();
        line.sort_by(|one, other| one.0.total_cmp(&other.0));
        Series::new(way.name(), line)
    };
    let plot = Plot::new(
        caption.name,
        caption.title,
        [x, "access units not whole, %"],
        Across::Linear,
        WAYS.iter().enumerate().map(line),
    );
    let table = Table::of(rows)
        .measure(x, 0, |row| row.x)
        .text("sent", |row| row.way.name())
        .defaults(|row| row.way.name == DEFAULT)
        .measure("% of link", 1, |row| row.sent)
        .count("units", |row| row.trials.offered())
        .count("not whole", |row| row.trials.lost())
        .measure("%", 2, |row| row.trials.loss())
        .count("full queue", |row| row.dropped)
        .count("full socket", |row| row.trials.sum(|trial| trial.socket_drops))
        .measure("Gbit/s", 2, |row| row.trials.gigabits());
    let settings = format!(
        "{what}, each {}th {} times as large as others, queue: {QUEUE} octets, runs: {}",
        GROUP.0,
        GROUP.1,
        bench.runs(2)
    );
    table.figure(caption, settings).plots([plot])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_all_headers() {
        assert!((1457.0 * overhead() - 1514.0).abs() < 1e-9);
    }
}
