//! `rushes bench peers`: other programs compared with Rushes, on the same sequence.

mod adapter;
mod description;
mod ends;
mod memory;
mod output;
mod running;
mod sweep;
mod table;
mod trials;
mod watch;
mod words;

use clap::Args;
use rushes::Codec;

use self::adapter::Adapter;
use self::sweep::{Steps, Sweep, units};
use self::table::{KERNEL, Line, State};
use self::trials::{Part, Rig, StartUp};
use crate::rates::contestant::Contestant as _;
use crate::rates::raw;
use crate::report::Figure;
use crate::sequence::Sequence;
use crate::settings::Settings;
use crate::{Outcome, Usage};

#[derive(Args, Clone, Debug)]
#[command(after_help = HELP)]
pub(crate) struct PeersArgs {
    /// Codecs: h264, h265; both by default
    #[arg(long, value_parser = parse_codec, value_name = "CODEC")]
    codec: Vec<Codec>,
    /// Bit rate of the sequence at 120 access units per second, in Mbit/s
    #[arg(long, default_value_t = BIT_RATE / 1_000_000, value_name = "MBITS",
        value_parser = clap::value_parser!(u64).range(1..20_000))]
    bit_rate: u64,
    /// The first frame rate
    #[arg(long, default_value_t = FIRST_RATE, value_name = "FPS",
        value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    from: u32,
    /// The highest frame rate to try
    #[arg(long, default_value_t = LAST_RATE, value_name = "FPS",
        value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    to: u32,
    /// Name of another program, which --send-command and --receive-command start
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// The command line of its sender
    #[arg(long, value_name = "COMMAND", requires = "peer")]
    send_command: Option<String>,
    /// The command line of its receiver
    #[arg(long, value_name = "COMMAND", requires = "peer")]
    receive_command: Option<String>,
    /// Measure only Rushes and --peer
    #[arg(long)]
    only: bool,
    #[command(flatten)]
    settings: Settings,
}

const HELP: &str = "\
Each row is a program that is started by a command: Rushes (send and recv), FFmpeg and GStreamer, each
with options chosen for its best result, and one of your own. The parts measured are

  whole    its sender and its receiver: access units that the receiver wrote, octet for octet
  send     its sender, into a sink that counts packets and is never the slower end
  receive  its receiver, from a source of packets made beforehand, evenly spread over time

The frame rate is doubled until more than 2.5 % of the access units are lost or the rate is not kept
twice, then the rates between are tried (or, if the first was too high, half and a quarter of it), and
the peak's until there are three trials of it: their median counts. Programs of one part take turns at
each rate. The peak is the highest goodput with no more lost, whether the rate was kept or not: \"fps\"
is the measured rate, \"of fps\" the requested one. A program that is a sixth faster than requested is
\"too fast\": it does not keep a rate, and its goodput is that at its own rate. CPU time is that of the
program, user and system, in seconds per gigabyte (10^9 octets) that arrived, at the peak; the time to
start and to end, measured once without work, is subtracted. \"UDP alone\" is the kernel's limit, as in
bench rates; only in long runs. One access unit more is sent than counts, because FFmpeg holds the last
one back. Halves and SRTP are measured with the first codec. --quick measures one part, the whole; with
--only, all three.

Measuring another program:
  --peer NAME --send-command '...' --receive-command '...'
Either command may be left out. They are split into words as by a shell, at quotes and backslashes, but
no shell is started: write sh -c '...' to use one. In the words, these placeholders are replaced:

  {file}      the sequence, a byte stream (Annex B)      {codec}     h264, h265
  {sdp}       a description of the stream (receiver)     {encoding}  H264, H265
  {host}      where the receiver is                      {format}    h264, hevc
  {port}      its port, even, the next one is free too   {fps}       access units per second
  {out}       where it writes what it received           {rushes}    this program
  {octetrate} octets per second that {fps} have

The receiver writes the byte stream that it received, start codes included, to its standard output or
to {out}, which is the same file in memory; only the content of that file counts. Its growth gives the
times; it is read after the trial. Standard output is a little faster: emptying {out} first gives its
memory back to the system. The receiver has to bind {port} on IPv4 or IPv6, and is sent SIGINT at the
end; what it writes only then is late. RTP has the payload type 96, packets 1472 octets.";

const BIT_RATE: u64 = 640_000_000;
const FIRST_RATE: u32 = 60;
const LAST_RATE: u32 = 8_000;

/// Maximum number of octets that a trial sends.
const AMOUNT: u64 = 400_000_000;

impl PeersArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        Self {
            codec: Vec::new(),
            bit_rate: BIT_RATE / 1_000_000,
            from: FIRST_RATE,
            to: LAST_RATE,
            peer: None,
            send_command: None,
            receive_command: None,
            only: false,
            settings: settings.clone(),
        }
    }

    fn codecs(&self) -> Vec<Codec> {
        match (self.codec.is_empty(), self.settings.quick) {
            (false, _) => self.codec.clone(),
            (true, true) => vec![Codec::H265],
            (true, false) => vec![Codec::H265, Codec::H264],
        }
    }

    fn steps(&self) -> Steps {
        let (first, last) = (self.from, self.to);
        if self.settings.quick {
            let amount = AMOUNT / 4;
            Steps { first, last, factor: 4, halvings: 1, peak_runs: 1, amount }
        } else {
            Steps { first, last, factor: 2, halvings: 2, peak_runs: 3, amount: AMOUNT }
        }
    }

    /// The programs and their measured parts, in the order of the table.
    fn rows(&self) -> anyhow::Result<Vec<(Adapter, Part)>> {
        let mut rows = Vec::new();
        let mut clear = Adapter::usual(false)?;
        let mut secured = Adapter::usual(true)?;
        if self.only {
            clear.truncate(1);
            secured.clear();
        }
        if self.settings.quick {
            secured.clear();
        }
        if let Some(name) = &self.peer {
            let (send, receive) = (self.send_command.as_deref(), self.receive_command.as_deref());
            if send.is_none() && receive.is_none() {
                let reason = "--peer needs --send-command, --receive-command or both";
                return Err(Usage(reason.to_owned()).into());
            }
            clear.push(Adapter::parse(name, send, receive, false)?);
        }
        // Sender and receiver alone take as long as the whole, and show less.
        let has_halves = !self.settings.quick || self.only;
        let parts: &[Part] =
            if has_halves { &[Part::Whole, Part::Send, Part::Receive] } else { &[Part::Whole] };
        for &part in parts {
            let has = |adapter: &&Adapter| match part {
                Part::Whole => adapter.send.is_some() && adapter.receive.is_some(),
                Part::Send => adapter.send.is_some(),
                Part::Receive => adapter.receive.is_some(),
            };
            rows.extend(clear.iter().filter(has).map(|adapter| (adapter.clone(), part)));
        }
        rows.extend(secured.into_iter().map(|adapter| (adapter, Part::Whole)));
        Ok(rows)
    }
}

pub(crate) fn run(args: &PeersArgs) -> anyhow::Result<Outcome> {
    args.settings.prepare()?;
    args.settings.report_all(&figures(args)?)?;
    Ok(Outcome::Done)
}

pub(crate) fn figures(args: &PeersArgs) -> anyhow::Result<Vec<Figure>> {
    let rows = args.rows()?;
    let mut lines = Vec::new();
    for (n, codec) in args.codecs().into_iter().enumerate() {
        let sequence = Sequence::make(codec, args.bit_rate * 1_000_000)?;
        let mut rig = Rig::new(&sequence)?;
        // The start-up cost of a program is measured once.
        let mut start_ups = Vec::new();
        if !args.settings.quick && !args.only {
            lines.push(kernel(args, &sequence));
        }
        let is_of = |(adapter, part): &&(Adapter, Part)| {
            n == 0 || args.only || !adapter.secured && *part == Part::Whole
        };
        let of_codec = rows.iter().filter(is_of);
        let rows: Vec<_> = of_codec.cloned().collect();
        // Programs that are compared with each other take turns.
        for group in
            rows.chunk_by(|(one, part), (other, its)| (one.secured, *part) == (other.secured, *its))
        {
            lines.extend(measure(args, &sequence, &mut rig, &mut start_ups, group));
        }
    }
    Ok(vec![table::figure(args.bit_rate, &lines)])
}

/// The start-up costs of programs, by name and whether they secure packets.
type StartUps = Vec<((String, bool), StartUp)>;

/// Measures programs in turns, one frame rate after the other.
fn measure(
    args: &PeersArgs,
    sequence: &Sequence,
    rig: &mut Rig<'_>,
    start_ups: &mut StartUps,
    group: &[(Adapter, Part)],
) -> Vec<Line> {
    let steps = args.steps();
    let codec = sequence.codec.title;
    let mut sweeps: Vec<(Sweep, Option<State>)> = group
        .iter()
        .map(|(adapter, _)| (Sweep::new(steps), (!adapter.is_installed()).then_some(State::Absent)))
        .collect();
    let mut is_over = false;
    while !is_over {
        is_over = true;
        for ((adapter, part), (sweep, end)) in group.iter().zip(&mut sweeps) {
            if end.is_some() {
                continue;
            }
            let Some(fps) = sweep.next() else { continue };
            is_over = false;
            let (name, part_name) = (&adapter.name, part.name());
            args.settings.progress(&format!("peers: {codec}: {name}, {part_name}, {fps} fps"));
            let mut run = || {
                let start_up = start_up(rig, start_ups, adapter)?;
                rig.run((adapter, *part), start_up, fps, units(sequence, fps, steps.amount))
            };
            match run() {
                Ok(trial) => sweep.take(fps, trial),
                Err(error) => {
                    args.settings.progress(&format!("peers: {error:#}"));
                    *end = Some(State::Failed);
                }
            }
        }
    }
    let lines = group.iter().zip(sweeps).map(|((adapter, part), (sweep, end))| {
        let state = end.unwrap_or_else(|| State::Swept(sweep.points()));
        let (name, secured) = (adapter.name.clone(), adapter.secured);
        Line { codec, name, secured, part: *part, state }
    });
    lines.collect()
}

/// The limit of the kernel, without the work of any program.
fn kernel(args: &PeersArgs, sequence: &Sequence) -> Line {
    let codec = sequence.codec.title;
    args.settings.progress(&format!("peers: {codec}: {KERNEL}"));
    let steps = args.steps();
    // Starts higher, as it is the fastest.
    let first = steps.first.saturating_mul(8).min(steps.last);
    let mut sweep = Sweep::new(Steps { first, ..steps });
    let mut end = None;
    while let Some(fps) = sweep.next() {
        match raw().run(sequence, f64::from(fps)) {
            Ok(trial) => sweep.take(fps, trial),
            Err(error) => {
                args.settings.progress(&format!("peers: {error:#}"));
                end = Some(State::Failed);
                break;
            }
        }
    }
    let state = end.unwrap_or_else(|| State::Swept(sweep.points()));
    Line { codec, name: KERNEL.to_owned(), secured: false, part: Part::Whole, state }
}

fn start_up(
    rig: &mut Rig<'_>,
    start_ups: &mut StartUps,
    adapter: &Adapter,
) -> anyhow::Result<StartUp> {
    let is_its = |((name, secured), _): &&((String, bool), StartUp)| {
        (name, *secured) == (&adapter.name, adapter.secured)
    };
    if let Some((_, start_up)) = start_ups.iter().find(is_its) {
        return Ok(*start_up);
    }
    let start_up = rig.start_up(adapter)?;
    start_ups.push(((adapter.name.clone(), adapter.secured), start_up));
    Ok(start_up)
}

fn parse_codec(text: &str) -> Result<Codec, String> {
    match Codec::named(text) {
        Some(codec) if [Codec::H264, Codec::H265].contains(&codec) => Ok(codec),
        Some(codec) if codec == Codec::H266 => {
            Err("neither FFmpeg nor GStreamer has RTP for H.266".to_owned())
        }
        _ => Err(format!("{text:?} is not one of h264, h265")),
    }
}
