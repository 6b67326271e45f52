//! `rushes bench zero-copy`: the savings of a sender by zero-copy sending.

#[cfg(target_os = "linux")]
mod sink;
#[cfg(target_os = "linux")]
mod ways;

use clap::Args;

use crate::Outcome;
use crate::report::{Cell, Figure};
use crate::settings::Settings;
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
    #[command(flatten)]
    settings: Settings,
}

impl ZeroCopyArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        Self { turns: 15, amount: 128 << 20, settings: settings.clone() }
    }

    fn turns(&self) -> usize {
        usize::from(if self.settings.quick { self.turns.min(5) } else { self.turns })
    }

    fn amount(&self) -> usize {
        if self.settings.quick { self.amount / 4 } else { self.amount }
    }
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

pub(crate) fn run(args: &ZeroCopyArgs) -> anyhow::Result<Outcome> {
    args.settings.report_all(&figures(args))?;
    Ok(Outcome::Done)
}

/// Without rows where it cannot be measured, which is reported.
pub(crate) fn figures(args: &ZeroCopyArgs) -> Vec<Figure> {
    args.settings.progress(&format!("zero copy: {} turns", args.turns()));
    let rows = measure(args).unwrap_or_else(|why| {
        eprintln!("zero copy: left out: needs Linux, root and `ip` ({why:#})");
        Vec::new()
    });
    vec![figure(&rows, args.turns())]
}

#[cfg(target_os = "linux")]
fn measure(args: &ZeroCopyArgs) -> anyhow::Result<Vec<Row>> {
    let (turns, amount) = (args.turns(), args.amount());
    // A separate thread, because it enters the namespace and cannot leave it.
    let measuring = std::thread::spawn(move || ways::measure(turns, amount));
    measuring.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the measuring thread panicked")))
}

#[cfg(not(target_os = "linux"))]
fn measure(_: &ZeroCopyArgs) -> anyhow::Result<Vec<Row>> {
    Err(anyhow::anyhow!("this system is not Linux"))
}

fn figure(rows: &[Row], turns: usize) -> Figure {
    let cells = |row: &Row| {
        let copied = rows.iter().find(|other| other.what == row.what && !other.is_lent);
        vec![
            Cell::text(row.what),
            Cell::text(if row.is_lent { "lent" } else { "copied" }),
            Cell::Measure(row.cpu, 4),
            Cell::measure(copied.map(|copied| 100.0 * row.cpu / copied.cpu), 0),
            Cell::Measure(row.gigabits, 1),
            Cell::Measure(row.message, 0),
            Cell::Count(row.lent.0),
            Cell::Count(row.lent.1),
        ]
    };
    Figure {
        name: "zero-copy",
        title: format!("Sending into a device that discards packets: medians of {turns} turns"),
        heads: HEADS.to_vec(),
        rows: rows.iter().map(cells).collect(),
        plots: Vec::new(),
    }
}

const HEADS: [&str; 8] =
    ["what", "slabs", "send s/GB", "% of copied", "Gbit/s", "message", "lent", "copied after all"];

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
