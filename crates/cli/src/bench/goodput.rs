//! `rushes bench goodput`: what each path to the kernel costs.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;
use rushes::{ReceivePath, SendPath};
use serde_json::json;

use super::hosts::{Hosts, Side};
use super::sides::Measured;
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

/// One way of sending and receiving.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: &'static str,
    raw: bool,
    send: SendPath,
    receive: ReceivePath,
    /// Whether lost packets would be asked for and sent again.
    recovery: bool,
    /// Runs take this part of the amount: slow rows need not take minutes.
    part: usize,
}

const FASTEST: Row = Row {
    name: "gso/gro",
    raw: false,
    send: SendPath::Gso,
    receive: ReceivePath::Gro,
    recovery: false,
    part: 1,
};

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

/// What one run of a row measured, sender and receiver.
type Pair = (Measured, Measured);

pub(crate) fn run(args: &GoodputArgs) -> anyhow::Result<Outcome> {
    let hosts = if args.veth { Hosts::namespaces()? } else { Hosts::loopback() };
    let mut runs: Vec<Vec<Pair>> = vec![Vec::new(); ROWS.len()];
    for run in 0..args.runs {
        for (row, pairs) in ROWS.iter().zip(&mut runs) {
            if !args.json {
                eprintln!("run {} of {}: {}", run + 1, args.runs, row.name);
            }
            pairs.push(measure(args, &hosts, *row, None)?);
        }
    }
    let best = figures(&runs[1]).gigabits;
    let frames_per_second = best * 1e9 / 8.0 / args.frame_size as f64 * args.paced_share;
    let mut paced = Vec::new();
    for _ in 0..args.runs {
        let rate = Some(frames_per_second);
        paced.push(measure(args, &hosts, ROWS[1], rate)?);
    }
    let names = ROWS.iter().map(|row| row.name).chain(["paced"]);
    let rows: Vec<(&str, Figures)> =
        names.zip(runs.iter().chain([&paced]).map(|pairs| figures(pairs))).collect();
    print(args, &rows);
    let lost = rows.iter().any(|(_, figures)| figures.lost > 0);
    Ok(if lost { Outcome::Fell } else { Outcome::Done })
}

/// Medians of a row's runs.
#[derive(Clone, Copy, Debug)]
struct Figures {
    gigabits: f64,
    send_cpu: f64,
    receive_cpu: f64,
    send_calls: f64,
    receive_calls: f64,
    lost: u64,
}

fn figures(pairs: &[Pair]) -> Figures {
    let median = |figure: &dyn Fn(&Pair) -> f64| {
        table::median(&mut pairs.iter().map(figure).collect::<Vec<f64>>())
    };
    let per_gigabyte = |value: f64, octets: u64| value / (octets as f64 / 1e9).max(1e-9);
    let frames = |measured: &Measured| measured.frames.max(1) as f64;
    Figures {
        gigabits: median(&|(send, receive)| {
            receive.payload_octets as f64 * 8e-9 / send.seconds.max(receive.seconds).max(1e-9)
        }),
        send_cpu: median(&|(send, _)| per_gigabyte(send.cpu_seconds, send.payload_octets)),
        receive_cpu: median(&|(_, receive)| {
            per_gigabyte(receive.cpu_seconds, receive.payload_octets)
        }),
        send_calls: median(&|(send, _)| send.system_calls as f64 / frames(send)),
        receive_calls: median(&|(_, receive)| receive.system_calls as f64 / frames(receive)),
        lost: pairs.iter().map(|(_, receive)| receive.packets_lost).sum(),
    }
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

/// Runs both sides once.
fn measure(
    args: &GoodputArgs,
    hosts: &Hosts,
    row: Row,
    frame_rate: Option<f64>,
) -> anyhow::Result<Pair> {
    let frames = (args.amount / row.part / args.frame_size).max(10);
    let side = |side: Side, core: &str, more: &[String]| -> anyhow::Result<Command> {
        let mut command = hosts.command(side)?;
        command
            .args(["bench", "side", "--host", hosts.receiver, "--core", core])
            .args(["--frames", &frames.to_string(), "--frame-len", &args.frame_size.to_string()])
            .args(["--send-path", &row.send.to_string()])
            .args(["--receive-path", &row.receive.to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if row.raw {
            command.arg("--raw");
        }
        if row.recovery {
            command.arg("--recovery");
        }
        Ok(command)
    };
    let mut receiver = side(Side::Receive, "1", &[])?.spawn().context("cannot start a process")?;
    let mut from_receiver = reader(receiver.stdout.take())?;
    let port = line(&mut from_receiver)?;
    let mut more = vec!["--send".to_owned(), "--port".to_owned(), port];
    if let Some(rate) = frame_rate {
        more.extend(["--fps".to_owned(), rate.to_string()]);
    }
    let mut sender = side(Side::Send, "0", &more)?.spawn().context("cannot start a process")?;
    let mut from_sender = reader(sender.stdout.take())?;
    let news = line(&mut from_sender)?.replace("0.0.0.0", hosts.sender);
    if let Some(mut stdin) = receiver.stdin.take() {
        writeln!(stdin, "{news}")?;
    }
    let sent = measured(&mut from_sender)?;
    let received = measured(&mut from_receiver)?;
    for (name, child) in [("sender", &mut sender), ("receiver", &mut receiver)] {
        if !child.wait()?.success() {
            bail!("the {name} of row {:?} failed", row.name);
        }
    }
    Ok((sent, received))
}

fn reader(stdout: Option<ChildStdout>) -> anyhow::Result<BufReader<ChildStdout>> {
    stdout.map(BufReader::new).context("a side has no output")
}

fn line(from: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        bail!("a side ended before it began");
    }
    Ok(line.trim().to_owned())
}

fn measured(from: &mut impl Read) -> anyhow::Result<Measured> {
    let mut text = String::new();
    from.read_to_string(&mut text)?;
    serde_json::from_str(&text).with_context(|| format!("a side said {text:?}"))
}
