//! Links with a rate and a short queue, like a port of a switch: losses near their rate.
//!
//! The link is a token bucket between two network namespaces. Its rate includes the Ethernet
//! header, as in the kernel, and so does the offered load.

use super::pair::{self, Figures};
use super::spec::{Clock, ETHERNET_LEN, IP_UDP_LEN, Spec, Spread, Units};
use super::{ScalingArgs, left_out, series};
use crate::hosts::Hosts;
use crate::report::{Across, BARE, Cell, Figure, Plot, Series};

/// Like a port of a small switch. Bursts of 128 KiB pass at once, which segmented messages need and
/// which allows the kernel's timer 0.1 ms at 10 Gbit/s; 512 KiB can wait.
const QUEUE: &str = "burst 128k limit 512k";

const MTU: usize = 1500;

/// Share of the link that paced streams use.
const PACED_SHARE: f64 = 0.98;

/// Period of intra-coded access units, and how many times as large as others they are.
const GROUP: (u64, usize) = (8, 4);

const LOADS: [f64; 8] = [30.0, 50.0, 70.0, 80.0, 85.0, 90.0, 95.0, 100.0];
const QUICK_LOADS: [f64; 2] = [50.0, 90.0];

/// The load where the rate of access units is varied, and these rates.
const LOAD: f64 = 90.0;
const RATES: [f64; 3] = [60.0, 120.0, 240.0];

/// A way of sending.
struct Way {
    name: &'static str,
    segmented: bool,
    bare: bool,
    /// The spread for a share of the link's rate, in bits of UDP payload per second.
    spread: fn(u64) -> Spread,
}

const WAYS: [Way; 6] = [
    Way { name: "GSO, unpaced", segmented: true, bare: false, spread: |_| Spread::Burst },
    Way { name: "sendmmsg, unpaced", segmented: false, bare: false, spread: |_| Spread::Burst },
    Way { name: "paced over half the interval", segmented: true, bare: false, spread: half },
    Way { name: "paced at 98 % of the link", segmented: true, bare: false, spread: Spread::Rate },
    Way { name: "GSO, unpaced", segmented: true, bare: true, spread: |_| Spread::Burst },
    Way { name: "paced at 98 % of the link", segmented: true, bare: true, spread: Spread::Rate },
];

fn half(_: u64) -> Spread {
    Spread::Half
}

impl Way {
    fn name(&self) -> String {
        format!("{}{}", self.name, if self.bare { BARE } else { "" })
    }

    /// The run of this way on a link of `link` bits per second.
    fn spec(&self, args: &ScalingArgs, units: Units, fps: f64, link: f64) -> Spec {
        let payload = (MTU - IP_UDP_LEN) as f64 / (MTU + ETHERNET_LEN) as f64;
        #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
        let spread = (self.spread)((link * PACED_SHARE * payload) as u64);
        Spec {
            mtu: MTU,
            segmented: self.segmented,
            bare: self.bare,
            clock: Clock::Steady(fps, spread),
            // Losses should occur on the link, not at the receiver.
            buffer: 32 << 20,
            ..Spec::new(units, args.frames(units, fps))
        }
    }
}

/// One link, and its names.
struct Link {
    bits: f64,
    rate: &'static str,
    table: &'static str,
    rates_table: &'static str,
}

const LINKS: [Link; 2] = [
    Link { bits: 1e9, rate: "1gbit", table: "bucket-1g", rates_table: "bucket-1g-fps" },
    Link { bits: 1e10, rate: "10gbit", table: "bucket-10g", rates_table: "bucket-10g-fps" },
];

pub(super) fn figures(args: &ScalingArgs) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for link in &LINKS {
        let hosts = Hosts::namespaces_with(MTU).and_then(|hosts| {
            hosts.set_queue(&format!("tbf rate {} {QUEUE}", link.rate))?;
            Ok(hosts)
        });
        match hosts {
            Ok(hosts) => {
                hosts.spread_receiving();
                figures.push(link.by_load(args, &hosts)?);
                if !args.is_quick() {
                    figures.push(link.by_rate(args, &hosts)?);
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

/// The measurements at one load or rate.
struct Point {
    x: f64,
    /// The figures of each way, with the number of messages that the link dropped.
    ways: Vec<(Figures, u64)>,
}

impl Link {
    fn by_load(&self, args: &ScalingArgs, hosts: &Hosts) -> anyhow::Result<Figure> {
        let loads: &[f64] = if args.is_quick() { &QUICK_LOADS } else { &LOADS };
        let mut points = Vec::new();
        for &load in loads {
            args.settings.progress(&format!("scaling: {} at {load} %", self.rate));
            let units = Units { mean: args.frame_size, group: GROUP.0, intra: GROUP.1 };
            let fps = self.bits * load / 100.0 / 8.0 / units.wire_len(MTU);
            points.push(Point { x: load, ways: self.ways(args, hosts, units, fps)? });
        }
        let size = args.frame_size;
        let title = format!("by offered load: {size} octets an access unit");
        Ok(self.figure(args, self.table, &title, "offered load, % of the link's rate", &points))
    }

    fn by_rate(&self, args: &ScalingArgs, hosts: &Hosts) -> anyhow::Result<Figure> {
        let mut points = Vec::new();
        for fps in RATES {
            args.settings.progress(&format!("scaling: {} at {fps} a second", self.rate));
            let overhead = Units::flat(1_000_000).wire_len(MTU) / 1e6;
            #[allow(clippy::cast_sign_loss, reason = "sizes are above zero")]
            let mean = (self.bits * LOAD / 100.0 / 8.0 / fps / overhead) as usize;
            let units = Units { mean, group: GROUP.0, intra: GROUP.1 };
            points.push(Point { x: fps, ways: self.ways(args, hosts, units, fps)? });
        }
        let title = format!("by rate of access units, at {LOAD} % of the link's rate");
        Ok(self.figure(args, self.rates_table, &title, "access units a second", &points))
    }

    fn ways(
        &self,
        args: &ScalingArgs,
        hosts: &Hosts,
        units: Units,
        fps: f64,
    ) -> anyhow::Result<Vec<(Figures, u64)>> {
        let mut runs = vec![(Vec::new(), 0); WAYS.len()];
        for _ in 0..args.runs(2) {
            for (way, (runs, dropped)) in WAYS.iter().zip(&mut runs) {
                let before = hosts.queue_drops()?;
                let spec = way.spec(args, units, fps, self.bits);
                runs.push(pair::measure(hosts, &spec)?);
                *dropped += hosts.queue_drops()?.saturating_sub(before);
            }
        }
        Ok(runs.iter().map(|(runs, dropped)| (Figures::of(runs), *dropped)).collect())
    }

    fn figure(
        &self,
        args: &ScalingArgs,
        name: &'static str,
        what: &str,
        x: &'static str,
        points: &[Point],
    ) -> Figure {
        let gigabits = self.bits / 1e9;
        let row = |point: &Point, way: &Way, (figures, dropped): &(Figures, u64)| {
            vec![
                Cell::Measure(point.x, 0),
                Cell::text(way.name()),
                Cell::Measure(100.0 * figures.wire_gigabits / gigabits, 1),
                Cell::Count(figures.offered),
                Cell::Count(figures.lost),
                Cell::Measure(figures.loss(), 2),
                Cell::Count(*dropped),
                Cell::Count(figures.socket_drops),
                Cell::Measure(figures.gigabits, 2),
            ]
        };
        let rows = points.iter().flat_map(|point| {
            WAYS.iter().zip(&point.ways).map(move |(way, measured)| row(point, way, measured))
        });
        let line = |(n, way): (usize, &Way)| -> Series {
            let loss = |point: &Point| {
                let (figures, _) = point.ways.get(n)?;
                // A sender that did not reach the load is shown at the load it reached.
                let sent = 100.0 * figures.wire_gigabits / gigabits;
                Some((if name == self.table { sent } else { point.x }, figures.loss()))
            };
            let mut line: Vec<(f64, f64)> = points.iter().filter_map(loss).collect();
            line.sort_by(|one, other| one.0.total_cmp(&other.0));
            series(way.name(), line, way.bare)
        };
        Figure {
            name,
            title: format!(
                "A link of {gigabits} Gbit/s, counted from Ethernet's header on ({QUEUE} octets), \
                 {what}, each {}th {} times as large as others, {} runs",
                GROUP.0,
                GROUP.1,
                args.runs(2)
            ),
            heads: [x].into_iter().chain(HEADS).collect(),
            rows: rows.collect(),
            plots: vec![Plot {
                name: name.to_owned(),
                title: format!("Access units not whole on a link of {gigabits} Gbit/s"),
                x,
                y: "access units not whole, %",
                across: Across::Linear,
                decades: false,
                series: WAYS.iter().enumerate().map(line).collect(),
            }],
        }
    }
}

/// The heads of the columns after the load or rate.
const HEADS: [&str; 8] =
    ["sent", "% of link", "units", "not whole", "%", "full queue", "full socket", "Gbit/s"];
