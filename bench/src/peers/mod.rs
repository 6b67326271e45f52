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
use self::sweep::{plan, units};
use self::table::{KERNEL, Line, State};
use self::trials::{Part, Rig, StartUp};
use crate::Usage;
use crate::ends::Trial;
use crate::rates::kernel;
use crate::report::Figure;
use crate::sequence::Sequence;
use crate::sequence::raw::Video;
use crate::settings::{Measure, Settings};
use crate::sweep::{Plan, sweep as sweep_rates};

#[derive(Args, Clone, Debug)]
#[command(after_help = HELP)]
pub(crate) struct PeersArgs {
    /// Codecs: h264, h265, uncompressed; the first two by default
    #[arg(long, value_parser = parse_codec, value_name = "CODEC")]
    codec: Vec<Codec>,
    /// Size and depth of uncompressed video, YCbCr-4:2:2
    #[arg(long, default_value = "1080p8", value_name = "FORMAT")]
    video: Video,
    /// Bit rate of the sequence at 120 access units per second, in Mbit/s
    #[arg(long, default_value_t = 640, value_name = "MBITS",
        value_parser = clap::value_parser!(u64).range(1..20_000))]
    bit_rate: u64,
    /// The first frame rate
    #[arg(long, default_value_t = 60, value_name = "FPS",
        value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    from: u32,
    /// The highest frame rate to try
    #[arg(long, default_value_t = 8_000, value_name = "FPS",
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
}

const HELP: &str = "\
Each row is a program that is started by a command: Rushes (send and recv) at its defaults and unpaced,
FFmpeg and GStreamer, each with options chosen for its best result, and one of your own. Uncompressed
video is of one size, whatever --bit-rate is, and its frames count like access units. The parts measured are

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
  {size}, {width}, {height}, {depth}, {framelen}         of uncompressed video

The receiver writes the byte stream that it received, start codes included, to its standard output or
to {out}, which is the same file in memory; only the content of that file counts. Its growth gives the
times; it is read after the trial. Standard output is a little faster: emptying {out} first gives its
memory back to the system. The receiver has to bind {port} on IPv4 or IPv6, and is sent SIGINT at the
end; what it writes only then is late. RTP has the payload type 96, packets 1472 octets.";

/// Maximum number of octets that a trial sends.
const AMOUNT: u64 = 400_000_000;

impl PeersArgs {
    fn codecs(&self, settings: &Settings) -> Vec<Codec> {
        match (self.codec.is_empty(), settings.quick) {
            (false, _) => self.codec.clone(),
            (true, true) => vec![Codec::H265],
            (true, false) => vec![Codec::H265, Codec::H264],
        }
    }

    /// Returns the programs and their measured parts, in the order of the table.
    fn rows(&self, settings: &Settings, codec: Codec) -> anyhow::Result<Vec<(Adapter, Part)>> {
        let mut rows = Vec::new();
        let mut clear = Adapter::usual(codec, false)?;
        let mut secured = Adapter::usual(codec, true)?;
        if self.only {
            clear.retain(|adapter| adapter.name == "Rushes");
            secured.clear();
        }
        if settings.quick {
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
        let has_halves = !settings.quick || self.only;
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

impl Measure for PeersArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let plan = plan(self.from, self.to, settings.quick);
        let mut lines = Vec::new();
        for (n, codec) in self.codecs(settings).into_iter().enumerate() {
            let is_raw = codec == Codec::Uncompressed;
            let sequence = if is_raw {
                Sequence::raw(self.video)?
            } else {
                Sequence::make(codec, self.bit_rate * 1_000_000)?
            };
            let mut measuring = Measuring {
                settings,
                sequence: &sequence,
                rig: Rig::new(&sequence)?,
                start_ups: Vec::new(),
            };
            if !settings.quick && !self.only && !is_raw {
                // Starts higher, as it is the fastest.
                let first = (plan.first * 8.0).min(plan.last);
                lines.push(measuring.kernel(&Plan { first, ..plan.clone() })?);
            }
            let is_of = |(adapter, part): &&(Adapter, Part)| {
                n == 0 || self.only || !adapter.secured && *part == Part::Whole
            };
            let rows = self.rows(settings, codec)?;
            let rows: Vec<_> = rows.iter().filter(is_of).cloned().collect();
            // Programs that are compared with each other take turns.
            let is_alike = |(one, part): &(Adapter, Part), (other, its): &(Adapter, Part)| {
                (one.secured, *part) == (other.secured, *its)
            };
            for group in rows.chunk_by(is_alike) {
                lines.extend(measuring.programs(&plan, group)?);
            }
        }
        Ok(vec![table::figure(self.bit_rate, &lines)])
    }
}

/// The measurements with one sequence.
struct Measuring<'a> {
    settings: &'a Settings,
    sequence: &'a Sequence,
    rig: Rig<'a>,
    /// The start-up costs of programs, by name and whether they secure packets: measured once.
    start_ups: Vec<((String, bool), StartUp)>,
}

impl Measuring<'_> {
    /// Measures programs in turns, one frame rate after the other.
    fn programs(&mut self, plan: &Plan, group: &[(Adapter, Part)]) -> anyhow::Result<Vec<Line>> {
        let codec = self.sequence.codec.title;
        let swept = sweep_rates(group, plan, |(adapter, part), rate| {
            if !adapter.is_installed() {
                return Ok(None);
            }
            let (name, part_name) = (&adapter.name, part.name());
            self.progress(&format!("{codec}: {name}, {part_name}, {rate} fps"));
            let trial = self.trial(adapter, *part, rate);
            Ok(trial.map_err(|error| self.progress(&format!("{error:#}"))).ok())
        })?;
        let line = |((adapter, part), points): (&(Adapter, Part), Option<_>)| {
            let missing = if adapter.is_installed() { State::Failed } else { State::Absent };
            let state = points.map_or(missing, State::Swept);
            let (name, secured) = (adapter.name.clone(), adapter.secured);
            Line { codec, name, secured, part: *part, state }
        };
        Ok(group.iter().zip(swept).map(line).collect())
    }

    /// Returns the limit of the kernel, without the work of any program.
    fn kernel(&self, plan: &Plan) -> anyhow::Result<Line> {
        let codec = self.sequence.codec.title;
        self.progress(&format!("{codec}: {KERNEL}"));
        let swept = sweep_rates(&[()], plan, |(), rate| {
            let trial = kernel(self.sequence, rate);
            Ok(trial.map_err(|error| self.progress(&format!("{error:#}"))).ok())
        })?;
        let state = swept.into_iter().flatten().next().map_or(State::Failed, State::Swept);
        Ok(Line { codec, name: KERNEL.to_owned(), secured: false, part: Part::Whole, state })
    }

    fn trial(&mut self, adapter: &Adapter, part: Part, rate: f64) -> anyhow::Result<Trial> {
        let start_up = self.start_up(adapter)?;
        #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
        let fps = rate as u32;
        let amount = self.settings.choose(AMOUNT, AMOUNT / 4);
        self.rig.run((adapter, part), start_up, fps, units(self.sequence, fps, amount))
    }

    fn start_up(&mut self, adapter: &Adapter) -> anyhow::Result<StartUp> {
        let key = (adapter.name.clone(), adapter.secured);
        if let Some((_, start_up)) = self.start_ups.iter().find(|(its, _)| *its == key) {
            return Ok(*start_up);
        }
        let start_up = self.rig.start_up(adapter)?;
        self.start_ups.push((key, start_up));
        Ok(start_up)
    }

    fn progress(&self, what: &str) {
        self.settings.progress(&format!("peers: {what}"));
    }
}

fn parse_codec(text: &str) -> Result<Codec, String> {
    match Codec::named(text) {
        Some(codec) if [Codec::H264, Codec::H265, Codec::Uncompressed].contains(&codec) => {
            Ok(codec)
        }
        Some(codec) if codec == Codec::H266 => {
            Err("neither FFmpeg nor GStreamer has RTP for H.266".to_owned())
        }
        _ => Err(format!("{text:?} is not one of h264, h265, uncompressed")),
    }
}
