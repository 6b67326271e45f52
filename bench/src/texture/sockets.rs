//! Goodput and processor time of frames, as a share of sockets alone with the same octets in datagrams of the
//! same size.

use rushes::texture::{Format, Transport};

use super::pictures::{Pictures, UHD};
use super::point::{self, Measured, Sockets, Turns};
use super::{Bench, Kind, delivery};
use crate::captions;
use crate::report::{Figure, Table, quantile};

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let mut rows = Vec::new();
    for resolution in bench.of_resolutions(&[UHD])? {
        let mut pictures = Pictures::draw(resolution)?;
        for &transport in &bench.transports {
            let what = format!("{} {}", resolution.name(), Format::YCoCgBc3);
            bench.progress(&format!("sockets: {what} by {}", super::name(transport)));
            let mut setup = bench.setup(&mut pictures, Kind::of(Format::YCoCgBc3), transport)?;
            setup.bit_rate = setup.bit_rate.or(Some(0));
            let turns = bench.turns();
            let turns = Turns { frames: turns.frames * 2, with_placed: true, ..turns };
            let measured = point::measure(&setup, turns)?;
            rows.push(delivery::Row { what, format: String::new(), value: 0, transport, measured });
        }
    }
    let settings =
        format!("{} cores, {} units, loopback, unpaced, medians", bench.cores, bench.units);
    let table = Table::of(&rows)
        .text("frame", |row| &row.what)
        .with(delivery::by)
        .count("octets", |row| row.measured.octets as u64)
        .measure("Gbit/s", 1, |row| row.measured.gigabits())
        .measure("bare Gbit/s", 1, |row| gigabits(&row.measured, &row.measured.bare))
        .measure("of bare %", 0, |row| share_of(&row.measured, &row.measured.bare))
        .measure("in place Gbit/s", 1, |row| gigabits(&row.measured, placed(row)))
        .measure("of in place %", 0, |row| share_of(&row.measured, placed(row)))
        .measure("cpu s/GB", 3, |row| per_gigabyte(&row.measured, &row.measured.cpu))
        .measure("bare s/GB", 3, |row| per_gigabyte(&row.measured, &row.measured.bare.cpu))
        .measure("in place s/GB", 3, |row| per_gigabyte(&row.measured, &placed(row).cpu))
        .measure("cpu of bare %", 0, |row| cpu_share(&row.measured, &row.measured.bare))
        .measure("cpu of in place %", 0, |row| cpu_share(&row.measured, placed(row)))
        .count("not whole", |row| row.measured.lost() as u64)
        .count("frames", |row| row.measured.frames.len() as u64);
    Ok(vec![table.figure(&captions::SOCKETS, settings)])
}

/// Returns the sockets whose octets are put in place: by TCP the bare ones read into their place.
fn placed(row: &delivery::Row) -> &Sockets {
    if row.transport == Transport::Tcp { &row.measured.bare } else { &row.measured.placed }
}

fn gigabits(measured: &Measured, sockets: &Sockets) -> Option<f64> {
    Some(measured.octets as f64 * 8e-6 / quantile(&sockets.latencies, 0.5)?)
}

/// Returns our goodput in per cent of that of sockets.
fn share_of(measured: &Measured, sockets: &Sockets) -> Option<f64> {
    Some(100.0 * measured.gigabits()? / gigabits(measured, sockets)?)
}

/// Returns seconds for a gigabyte from milliseconds for each frame.
fn per_gigabyte(measured: &Measured, cpu: &[f64]) -> Option<f64> {
    Some(quantile(cpu, 0.5)? * 1e6 / measured.octets as f64)
}

/// Returns the octets that we transfer in a second of processor time, in per cent of those of sockets.
fn cpu_share(measured: &Measured, sockets: &Sockets) -> Option<f64> {
    Some(100.0 * quantile(&sockets.cpu, 0.5)? / quantile(&measured.cpu, 0.5)?)
}
