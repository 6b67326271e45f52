//! `rushes bench zero-copy`: the savings of a sender by zero-copy sending.

#[cfg(target_os = "linux")]
mod sink;
#[cfg(target_os = "linux")]
mod ways;

use clap::Args;

use crate::captions;
use crate::report::{Figure, Table, medians_of};
use crate::settings::{Measure, Settings};
use crate::values::parse_size;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Only a sender, into a device that discards its packets, in a network namespace made for it: an `ifb`,
or a `dummy` where that is not available. Both take segmented messages as they are, as a network card
that segments does; `message` is the size of those messages. Loopback is not such a device: there,
lent slabs are copied later.

  slabs             prepared datagrams, straight to the socket: the saving in the kernel
  frames            a stream's push_frame, which fills the slabs
  AES-128-GCM       the same, encrypted into the slabs

Rows take turns; medians. Needs root and `ip`.")]
pub(crate) struct ZeroCopyArgs {
    /// Turns of each row
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    turns: u16,
    /// Octets of a turn
    #[arg(long, default_value = "128M", value_parser = parse_size, value_name = "OCTETS")]
    amount: usize,
}

/// The results of one way of sending: medians.
#[derive(Clone, Debug)]
struct Row {
    what: &'static str,
    is_lent: bool,
    /// CPU seconds per 10^9 octets of payload.
    cpu: f64,
    /// Gbit/s of payload.
    gigabits: f64,
    /// Messages lent to the kernel, and messages that it copied after all or refused.
    lent: (u64, u64),
    /// Octets of a message when it reaches the device.
    message: f64,
}

impl Measure for ZeroCopyArgs {
    /// Without rows where it cannot be measured, which is reported.
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let turns = usize::from(settings.choose(self.turns, self.turns.min(5)));
        let amount = settings.choose(self.amount, self.amount / 4);
        settings.progress(&format!("zero copy: {turns} turns"));
        let rows = measure(turns, amount).unwrap_or_else(|why| {
            eprintln!("zero copy: left out: needs Linux, root and `ip` ({why:#})");
            Vec::new()
        });
        Ok(vec![figure(&rows, turns)])
    }
}

#[cfg(target_os = "linux")]
fn measure(turns: usize, amount: usize) -> anyhow::Result<Vec<Row>> {
    // A separate thread, because it enters the namespace and cannot leave it.
    let measuring = std::thread::spawn(move || ways::measure(turns, amount));
    measuring.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the measuring thread panicked")))
}

#[cfg(not(target_os = "linux"))]
fn measure(_: usize, _: usize) -> anyhow::Result<Vec<Row>> {
    Err(anyhow::anyhow!("this system is not Linux"))
}

fn figure(rows: &[Row], turns: usize) -> Figure {
    let of_copied = |row: &Row| {
        let copied = rows.iter().find(|other| other.what == row.what && !other.is_lent);
        copied.map(|copied| 100.0 * row.cpu / copied.cpu)
    };
    Table::of(rows)
        .text("what", |row| row.what)
        .text("slabs", |row| if row.is_lent { "lent" } else { "copied" })
        .defaults(|row| !row.is_lent)
        .measure("send s/GB", 4, |row| row.cpu)
        .measure("% of copied", 0, of_copied)
        .measure("Gbit/s", 1, |row| row.gigabits)
        .measure("message", 0, |row| row.message)
        .count("lent", |row| row.lent.0)
        .count("copied after all", |row| row.lent.1)
        .figure(&captions::ZERO_COPY, format!("unpaced, {}", medians_of(turns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_stands_beside_what_is_copied() {
        let row = |is_lent, cpu| Row {
            what: "slabs",
            is_lent,
            cpu,
            gigabits: 1.0,
            lent: (0, 0),
            message: 64_000.0,
        };
        let json = figure(&[row(false, 0.2), row(true, 0.05)], 3).json();
        assert_eq!(json["rows"][0]["% of copied"], 100.0);
        assert_eq!(json["rows"][1]["% of copied"], 25.0);
        assert_eq!(json["rows"][1]["slabs"], "lent");
    }
}
