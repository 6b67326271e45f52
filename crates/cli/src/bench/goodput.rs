//! `rushes bench goodput`: what each path to the kernel costs.

use clap::Args;
use rushes::{ReceivePath, SendPath};
use serde_json::json;

use super::hosts::Hosts;
use super::pairs::{FASTEST, Figures, Load, Pair, Row, figures, measure};
use super::table;
use crate::Outcome;
use crate::values::parse_size;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each row is one sender and one receiver, each a process on a core of its own. Frames are H.265
access units of one slice, made in memory. Rows are interleaved, and medians are printed:

  raw gso/gro   the kernel's limit: datagrams straight from the frame, one copy on receipt, no RTP
  gso/gro, sendmmsg, single
                Rushes by each path, no more than two frames on their way: nothing is lost
  with recovery The same as gso/gro, every packet kept to be sent again
  paced         Rushes at the rate of --paced-share of its own best, over 4 MiB of socket buffers,
                nobody telling the sender anything: what is lost is counted

CPU time is in seconds per gigabyte (10^9 octets) of payload.")]
pub(crate) struct GoodputArgs {
    /// Octets in each access unit
    #[arg(long, default_value = "667000", value_parser = parse_size, value_name = "OCTETS")]
    frame_size: usize,
    /// Octets of payload in each run of a row
    #[arg(long, default_value = "1G", value_parser = parse_size, value_name = "OCTETS")]
    amount: usize,
    /// Runs of each row
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Rate of the paced row, as a share of the best
    #[arg(long, default_value_t = 0.5)]
    paced_share: f64,
    /// Between two network namespaces joined by virtual Ethernet, instead of loopback; needs root
    #[arg(long)]
    veth: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const ROWS: [Row; 5] = [
    Row { name: "raw gso/gro", raw: true, ..FASTEST },
    FASTEST,
    Row { name: "with recovery", recovery: true, ..FASTEST },
    Row {
        name: "sendmmsg/recvmmsg",
        send: SendPath::Sendmmsg,
        receive: ReceivePath::Recvmmsg,
        part: 4,
        ..FASTEST
    },
    Row {
        name: "one by one",
        send: SendPath::Single,
        receive: ReceivePath::Single,
        part: 4,
        ..FASTEST
    },
];

pub(crate) fn run(args: &GoodputArgs) -> anyhow::Result<Outcome> {
    let hosts = if args.veth { Hosts::namespaces()? } else { Hosts::loopback() };
    let load = Load { frame_len: args.frame_size, amount: args.amount };
    let mut runs: Vec<Vec<Pair>> = vec![Vec::new(); ROWS.len()];
    for run in 0..args.runs {
        for (row, pairs) in ROWS.iter().zip(&mut runs) {
            if !args.json {
                eprintln!("run {} of {}: {}", run + 1, args.runs, row.name);
            }
            pairs.push(measure(load, &hosts, *row, None)?);
        }
    }
    let best = figures(&runs[1]).gigabits;
    let frames_per_second = best * 1e9 / 8.0 / args.frame_size as f64 * args.paced_share;
    let mut paced = Vec::new();
    for _ in 0..args.runs {
        let rate = Some(frames_per_second);
        paced.push(measure(load, &hosts, ROWS[1], rate)?);
    }
    let names = ROWS.iter().map(|row| row.name).chain(["paced"]);
    let rows: Vec<(&str, Figures)> =
        names.zip(runs.iter().chain([&paced]).map(|pairs| figures(pairs))).collect();
    print(args, &rows);
    let lost = rows.iter().any(|(_, figures)| figures.lost > 0);
    Ok(if lost { Outcome::Fell } else { Outcome::Done })
}

fn print(args: &GoodputArgs, rows: &[(&str, Figures)]) {
    if args.json {
        let rows: Vec<serde_json::Value> = rows
            .iter()
            .map(|(name, figures)| {
                json!({
                    "name": name,
                    "gigabits_per_second": figures.gigabits,
                    "sender_cpu_seconds_per_gigabyte": figures.send_cpu,
                    "receiver_cpu_seconds_per_gigabyte": figures.receive_cpu,
                    "sender_system_calls_per_frame": figures.send_calls,
                    "receiver_system_calls_per_frame": figures.receive_calls,
                    "packets_lost": figures.lost,
                })
            })
            .collect();
        println!("{}", json!({ "frame_octets": args.frame_size, "veth": args.veth, "rows": rows }));
        return;
    }
    let heads =
        ["", "Gbit/s", "of raw", "send s/GB", "recv s/GB", "send calls", "recv calls", "lost"];
    let raw = rows[0].1.gigabits;
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|(name, figures)| {
            vec![
                (*name).to_owned(),
                format!("{:.2}", figures.gigabits),
                format!("{:.0} %", 100.0 * figures.gigabits / raw.max(1e-9)),
                format!("{:.3}", figures.send_cpu),
                format!("{:.3}", figures.receive_cpu),
                format!("{:.1}", figures.send_calls),
                format!("{:.1}", figures.receive_calls),
                figures.lost.to_string(),
            ]
        })
        .collect();
    let place = if args.veth { "two namespaces, virtual Ethernet" } else { "loopback" };
    println!("{} octets a frame, {place}, medians of {} runs", args.frame_size, args.runs);
    table::print(&heads, &rows);
}
