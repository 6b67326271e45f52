//! Latency against the number of units and the size of packets (figs. 5.3 and 5.4 of the thesis).

use rushes::texture::{Format, Transport};

use super::pictures::{FULL, Pictures, Resolution, UHD};
use super::{Bench, Kind, Setup, delivery, name, point};
use crate::captions;
use crate::report::{Across, Caption, Figure, Plot, Table};

/// A frame of 8.3 MB, and the thesis's frame of 99.5 MB.
const CASES: [(Resolution, Format); 2] = [(UHD, Format::YCoCgBc3), (FULL, Format::Rgb24)];

const UNITS: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
const UNITS_QUICK: [usize; 4] = [1, 2, 4, 16];

/// Octets of a datagram's payload.
const DATAGRAMS: [usize; 9] = [512, 1_024, 1_408, 2_048, 4_096, 8_192, 16_384, 32_768, 65_000];
const DATAGRAMS_QUICK: [usize; 3] = [512, 1_408, 65_000];

/// Octets of a chunk on a TCP connection.
const CHUNKS: [usize; 7] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
const CHUNKS_QUICK: [usize; 3] = [16 << 10, 256 << 10, 1 << 20];

/// The varied parameter.
struct Sweep {
    caption: &'static Caption,
    /// The head of its column, and its axis.
    head: &'static str,
    x: &'static str,
}

pub(super) fn units(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let sweep = Sweep {
        caption: &captions::UNITS,
        head: "units",
        x: "units (sockets and threads on each side)",
    };
    let values = bench.settings.choose(&UNITS[..], &UNITS_QUICK);
    sweep.measure(bench, |_| values, |setup, units| setup.units = units)
}

pub(super) fn packet_sizes(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let sweep = Sweep {
        caption: &captions::PACKET_SIZE,
        head: "payload",
        x: "octets of a packet behind its header",
    };
    let values = |transport| match (transport, bench.settings.quick) {
        (Transport::Tcp, false) => &CHUNKS[..],
        (Transport::Tcp, true) => &CHUNKS_QUICK,
        // RTP packets are made to fit in those of a network.
        (Transport::Rtp | Transport::Multicast, _) => &DATAGRAMS[..3],
        (Transport::Udp, false) => &DATAGRAMS,
        (Transport::Udp, true) => &DATAGRAMS_QUICK,
    };
    sweep.measure(bench, values, |setup, payload| setup.payload = payload)
}

impl Sweep {
    fn measure<'v>(
        &self,
        bench: &Bench<'_>,
        values: impl Fn(Transport) -> &'v [usize],
        set: impl Fn(&mut Setup, usize),
    ) -> anyhow::Result<Vec<Figure>> {
        let (mut rows, mut plots) = (Vec::new(), Vec::new());
        let Caption { name: sweep, title, .. } = self.caption;
        let cases = bench.settings.choose(&CASES[..], &CASES[..1]);
        for &(wished, format) in cases {
            for resolution in bench.of_resolutions(&[wished])? {
                let mut pictures = Pictures::draw(resolution)?;
                let mut series = vec![Vec::new(); bench.transports.len()];
                let what = format!("{} {format}", resolution.name());
                for (&transport, series) in bench.transports.iter().zip(&mut series) {
                    for &value in values(transport) {
                        let by = name(transport);
                        bench.progress(&format!("{sweep}: {value}, {what} by {by}"));
                        let mut setup = bench.setup(&mut pictures, Kind::of(format), transport)?;
                        set(&mut setup, value);
                        let measured = point::measure(&setup, bench.turns())?;
                        delivery::plot(series, &by, value as f64, &measured);
                        delivery::plot_bare(series, &by, value as f64, &measured);
                        let (what, format) = (what.clone(), String::new());
                        rows.push(delivery::Row { what, format, value, transport, measured });
                    }
                }
                let file = format!("{sweep}-{}", what.replace(' ', "-"));
                let (axes, lines) = ([self.x, "latency (ms)"], series.into_iter().flatten());
                let title = format!("{title}, {what}, medians");
                let plot = Plot::new(file, title, axes, Across::Octaves, lines);
                plots.push(plot.with_bars(delivery::BARS));
            }
        }
        let table = Table::of(&rows)
            .text("frame", |row| &row.what)
            .with(delivery::by)
            .count(self.head, |row| row.value as u64)
            .with(|table| delivery::columns(table, bench.cores));
        let settings = format!("{} cores, loopback, medians of frames", bench.cores);
        Ok(vec![table.figure(self.caption, settings).plots(plots)])
    }
}
