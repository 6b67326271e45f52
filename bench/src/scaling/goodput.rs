//! Goodput and CPU time by the number of streams, by the size of packets and by the network.

use super::{Bench, MTU, left_out, lines};
use crate::captions;
use crate::ends::{Path, Spec, Trial, Trials};
use crate::hosts::Hosts;
use crate::report::{Across, Figure, Plot, Series, Table, medians_of};

/// Maximum number of streams.
const STREAMS_MAX: usize = 16;

/// Octets of an IP packet: the minimum that every host accepts, a size that passes tunnels,
/// Ethernet, and larger ones up to about the maximum of UDP.
const SIZES: [usize; 8] = [576, 1200, 1500, 3000, 9000, 16_000, 32_000, 64_000];

const QUICK_SIZES: [usize; 3] = [576, 1500, 9000];

/// Octets of an IP packet on each network.
const MTUS: [usize; 2] = [MTU, 9000];

/// The paths, and whether sockets are bare.
const WAYS: [(Path, bool); 3] = [(Path::Gso, false), (Path::Sendmmsg, false), (Path::Gso, true)];

/// Gbit/s by one message for each packet, about, per octet of a packet; segmentation is faster.
const SENDMMSG_RATE: f64 = 1.0 / 200.0;
const GSO_RATE: f64 = 40.0;

/// The results of one sending method on one path.
struct Row {
    /// The path: loopback, or a device between namespaces.
    place: String,
    spec: Spec,
    trials: Trials,
}

impl Row {
    fn path(&self) -> &'static str {
        if self.spec.bare { "sockets alone" } else { self.spec.path.name() }
    }

    /// Returns whether the path and the packets are those of the library by default.
    fn is_default(&self) -> bool {
        self.spec.path == Path::Gso && !self.spec.bare && self.spec.mtu == MTU
    }

    /// Returns the name of its line in a plot, and whether it is of bare sockets.
    fn line(&self) -> (String, bool) {
        (self.spec.path.name().to_owned(), self.spec.bare)
    }
}

/// Returns the ways, measured in turns.
fn measure(
    bench: &Bench<'_>,
    hosts: &Hosts,
    place: &str,
    specs: Vec<Spec>,
) -> anyhow::Result<Vec<Row>> {
    let results = bench.measure(hosts, &specs)?.into_iter().zip(specs);
    Ok(results.map(|(trials, spec)| Row { place: place.to_owned(), spec, trials }).collect())
}

fn costs(table: Table<'_, Row>) -> Table<'_, Row> {
    table
        .text("path", Row::path)
        .defaults(Row::is_default)
        .measure("Gbit/s", 2, |row| row.trials.gigabits())
        .measure("send s/GB", 3, |row| row.trials.costs()[0])
        .measure("recv s/GB", 3, |row| row.trials.costs()[1])
        .count("not whole", |row| row.trials.lost())
}

fn goodput_lines(rows: &[Row], ways: usize) -> Vec<Series> {
    lines(rows, ways, Row::line, |row| row.trials.span(Trial::gigabits))
}

/// Returns the lines of the sender, and those of the receiver, whose names are made from those of
/// ways.
fn cpu_lines(rows: &[Row], ways: usize, name: impl Fn(&str, &str) -> String) -> [Vec<Series>; 2] {
    type Cost = fn(&Trial) -> Option<f64>;
    let ends: [(&str, Cost); 2] = [("sender", Trial::send_cost), ("receiver", Trial::receive_cost)];
    ends.map(|(end, cost)| {
        let name = |row: &Row| (name(row.spec.path.name(), end), row.spec.bare);
        lines(rows, ways, name, |row| row.trials.span(|trial| cost(trial).unwrap_or(0.0)))
    })
}

/// Measures more streams, each with a socket and a thread at either end.
pub(super) fn by_streams(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = bench.settings.choose((4 * cores).clamp(8, STREAMS_MAX), 2);
    let counts: Vec<usize> = (0..=most.ilog2()).map(|n| 1 << n).collect();
    let mut specs = Vec::new();
    for &streams in &counts {
        for bare in [false, true] {
            let spec = bench.flat(GSO_RATE);
            // The same total work for any number of streams, so that runs take equally long.
            let frames = (spec.frames / streams as u64).max(4);
            specs.push(Spec { streams, frames, bare, ..spec });
        }
    }
    bench.settings.progress(&format!("scaling: {} streams", specs.len()));
    let rows = measure(bench, &Hosts::loopback(), "", specs)?;
    let plot = |name, what, y, series| {
        let title = format!("{what} by number of streams, {cores} cores, loopback");
        Plot::new(name, title, ["streams", y], Across::names(&counts), series)
    };
    let [senders, receivers] = cpu_lines(&rows, 2, |_, end| end.to_owned());
    let cpu = senders.into_iter().zip(receivers).flat_map(<[Series; 2]>::from).collect();
    let plots = [
        plot("streams-goodput", "Goodput of all streams", "Gbit/s", goodput_lines(&rows, 2)),
        plot("streams-cpu", "CPU time", "CPU seconds a gigabyte", cpu),
    ];
    let settings = format!(
        "{cores} cores, loopback, {} octets an access unit, unpaced, {}",
        bench.args.frame_size,
        medians_of(bench.runs(3))
    );
    let table = Table::of(&rows).count("streams", |row| row.spec.streams as u64);
    Ok(vec![costs(table).figure(&captions::STREAMS, settings).plots(plots)])
}

/// Measures packets of other sizes.
pub(super) fn by_packet_size(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let sizes = bench.settings.choose(&SIZES[..], &QUICK_SIZES);
    let mut specs = Vec::new();
    for &mtu in sizes {
        for (path, bare) in WAYS {
            let slow = GSO_RATE.min(mtu as f64 * SENDMMSG_RATE);
            let gigabits = if path == Path::Gso { GSO_RATE } else { slow };
            specs.push(Spec { path, bare, mtu, ..bench.flat(gigabits) });
        }
    }
    bench.settings.progress(&format!("scaling: {} packet sizes", sizes.len()));
    let rows = measure(bench, &Hosts::loopback(), "", specs)?;
    let plot = |name, what, y, series| {
        let title = format!("{what} by packet size, loopback");
        Plot::new(name, title, ["octets in an IP packet", y], Across::names(sizes), series)
    };
    let goodput = goodput_lines(&rows, WAYS.len());
    let cpu = cpu_lines(&rows, WAYS.len(), |path, end| format!("{path} {end}")).concat();
    let settings = format!(
        "loopback, {} octets an access unit, unpaced, {}",
        bench.args.frame_size,
        medians_of(bench.runs(3))
    );
    let table = Table::of(&rows).count("IP packet", |row| row.spec.mtu as u64);
    Ok(vec![costs(table).figure(&captions::PACKET_SIZES, settings).plots([
        plot("packet-sizes-goodput", "Goodput", "Gbit/s", goodput),
        plot("packet-sizes-cpu", "CPU time", "CPU seconds a gigabyte", cpu),
    ])])
}

/// Measures other networks: this host's loopback, and virtual Ethernet between two namespaces.
pub(super) fn by_place(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let mut places: Vec<(String, usize, Hosts)> = Vec::new();
    let mut refused = None;
    for mtu in MTUS {
        places.push((format!("loopback, {mtu}"), mtu, Hosts::loopback()));
        match Hosts::namespaces_with(mtu) {
            Ok(hosts) => places.push((format!("veth, {mtu}"), mtu, hosts)),
            Err(why) => refused = Some(why),
        }
    }
    if let Some(why) = refused {
        left_out("virtual Ethernet is", &why);
    }
    let mut rows = Vec::new();
    for (name, mtu, hosts) in &places {
        bench.settings.progress(&format!("scaling: {name}"));
        let specs = WAYS.map(|(path, bare)| {
            let gigabits = if path == Path::Gso { GSO_RATE } else { 8.0 };
            Spec { mtu: *mtu, path, bare, ..bench.flat(gigabits) }
        });
        rows.extend(measure(bench, hosts, name, specs.into())?);
    }
    let plot = Plot::new(
        "places",
        "Goodput by network and octets in an IP packet",
        ["network", "Gbit/s"],
        Across::names(places.iter().map(|place| &place.0)),
        goodput_lines(&rows, WAYS.len()),
    );
    let size = bench.args.frame_size;
    let settings = format!("{size} octets an access unit, unpaced, {}", medians_of(bench.runs(3)));
    let table = Table::of(&rows).text("network", |row| &row.place);
    Ok(vec![costs(table).figure(&captions::PLACES, settings).plots([plot])])
}
