//! `rushes bench texture`: the latency of frames, as measured in the thesis.

mod bare;
mod delivery;
mod encode;
mod frames;
#[cfg(feature = "gpu")]
mod gpu;
mod latency;
mod pictures;
mod point;
mod sockets;
mod stream;
mod sweep;
mod timings;

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rushes::texture::{Format, Layout, Transport};

use self::pictures::{Pictures, Resolution};
use self::point::Turns;
use self::stream::{Setup, Stream};
use crate::Usage;
use crate::report::Figure;
use crate::settings::{Measure, Settings};
use crate::values::parse_size;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Server and client are threads of this process, so that one clock times both, and frames travel by
loopback. Latency is from the moment when the picture is in memory until the last octet of its frame
is in place. One frame is in flight at a time; in turns, as many octets go through sockets alone:

  bare        UDP: datagrams of the same size, by GSO out of one buffer and by GRO into the receive
              buffers, which are reused, without assembling frames; at most 2 MiB in flight.
              TCP: writes of 1 MiB from one buffer, reads into another.
  in place    as bare by UDP, but each datagram's octets are copied into one of three frames
  of bare     the bare loop's median latency as a share of ours: 100 % is the limit of sockets
  not whole   frames that lacked packets or were not received; medians are of complete frames
  per core    Gbit/s at the median latency, by all cores of this machine
  cpu         processor time of both sides for a frame

With --gpu frames are received into a graphics processor's memory as well, in every available way,
and pictures drawn and encoded there.

latency is figure 5.2 of the thesis by Jussi Iho (Low-Latency and High-Bandwidth Video Stream Delivery,
Tampere University, 2021), frames is 5.1, units 5.3, packet-size 5.4, timings table 5.2, of which gpu
has the rows of the buffer transfer.
--out writes each as CSV and its plots as SVG.")]
pub(crate) struct TextureArgs {
    /// What to measure
    #[arg(long, value_enum, default_value_t = Which::All)]
    figure: Which,
    /// Number of streams for `frames`, and of turns for `encode`; 12 by default, 3 with --quick
    #[arg(long, value_name = "NUMBER")]
    runs: Option<NonZeroUsize>,
    /// Frames at each point; 30 by default (in at most 1 s), 10 with --quick
    #[arg(long, value_name = "NUMBER")]
    frames: Option<NonZeroUsize>,
    /// Transport of the frames
    #[arg(long, value_enum, default_value_t = Ways::All)]
    transport: Ways,
    /// Units of a frame; by default the number of cores
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=64))]
    units: Option<u8>,
    /// Only resolutions with this number of lines (144 to 4320); may be given several times
    #[arg(long, value_name = "LINES")]
    resolution: Vec<u32>,
    /// Octets of each socket's buffers
    #[arg(long, default_value = "4M", value_parser = parse_size, value_name = "OCTETS")]
    socket_buffer: usize,
    /// Also measure the graphics processor, like `--figure gpu` alone
    #[arg(long)]
    gpu: bool,
    /// Bits per second at which datagrams are paced, 0 for no pacing; by default as in a server
    #[arg(long, value_name = "BITS")]
    bit_rate: Option<u64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Which {
    /// Latency against resolution
    Latency,
    /// The first 20 frames of a stream
    Frames,
    /// Latency against the number of units
    Units,
    /// Latency against the size of packets
    PacketSize,
    /// The parts of a frame's latency
    Timings,
    /// Goodput and processor time beside sockets alone
    Sockets,
    /// Speed and quality of the encoders, on one core
    Encode,
    /// Receiving into the memory of a graphics processor; drawing and encoding there
    Gpu,
    /// Everything but the graphics processor
    All,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Ways {
    Udp,
    Tcp,
    Rtp,
    All,
}

/// The context of every figure.
struct Bench<'a> {
    args: &'a TextureArgs,
    settings: &'a Settings,
    transports: Vec<Transport>,
    cores: usize,
    units: usize,
}

/// The format of a picture, and the format in which it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Kind {
    input: Format,
    output: Format,
}

impl Kind {
    /// Creates a format that is sent without encoding.
    const fn of(format: Format) -> Self {
        Self { input: format, output: format }
    }

    /// Creates a format that is encoded while sending.
    const fn live(format: Format) -> Self {
        Self { input: Format::Rgba8, output: format }
    }

    fn is_live(self) -> bool {
        self.input != self.output
    }

    fn name(self) -> String {
        if self.is_live() {
            format!("{} to {}", self.input, self.output)
        } else {
            self.output.to_string()
        }
    }
}

impl Measure for TextureArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let units = self.units.map_or(cores, usize::from);
        let mut bench = Bench { args: self, settings, transports: Vec::new(), cores, units };
        bench.resolutions()?;
        bench.transports = bench.find_transports()?;
        bench.progress(&format!("{cores} cores, loopback, {units} units unless stated otherwise"));
        let mut all = Vec::new();
        for (which, measure) in FIGURES {
            if self.figure == which || self.figure == Which::All {
                all.extend(measure(&bench)?);
            }
        }
        if self.gpu || self.figure == Which::Gpu {
            all.extend(gpu::measure(&bench)?);
        }
        Ok(all)
    }
}

/// Without the feature `gpu`.
#[cfg(not(feature = "gpu"))]
mod gpu {
    pub(super) fn measure(_: &super::Bench<'_>) -> anyhow::Result<Vec<crate::report::Figure>> {
        let line = "cargo install --path crates/cli --features bench,window";
        Err(crate::Usage(format!("this build has no graphics; install it with: {line}")).into())
    }
}

type Figures = fn(&Bench<'_>) -> anyhow::Result<Vec<Figure>>;

const FIGURES: [(Which, Figures); 7] = [
    (Which::Frames, frames::measure),
    (Which::Latency, latency::measure),
    (Which::Units, sweep::units),
    (Which::PacketSize, sweep::packet_sizes),
    (Which::Timings, timings::measure),
    (Which::Sockets, sockets::measure),
    (Which::Encode, encode::measure),
];

impl Bench<'_> {
    /// Returns the requested resolutions, or those of the thesis.
    fn resolutions(&self) -> anyhow::Result<Vec<Resolution>> {
        let wished = &self.args.resolution;
        let known = |lines: &u32| Resolution::ALL.iter().any(|one| one.height == *lines);
        if let Some(lines) = wished.iter().find(|lines| !known(lines)) {
            return Err(Usage(format!("no resolution has {lines} lines; see --help")).into());
        }
        let is_wished = |one: &Resolution| {
            if wished.is_empty() {
                !self.settings.quick || [1080, 2160].contains(&one.height)
            } else {
                wished.contains(&one.height)
            }
        };
        Ok(Resolution::ALL.into_iter().filter(is_wished).collect())
    }

    /// Returns the requested ones among `some` resolutions; the largest requested if there is none.
    fn of_resolutions(&self, some: &[Resolution]) -> anyhow::Result<Vec<Resolution>> {
        let wished = self.resolutions()?;
        let both: Vec<_> = some.iter().copied().filter(|one| wished.contains(one)).collect();
        Ok(if both.is_empty() { wished.last().copied().into_iter().collect() } else { both })
    }

    /// Returns the requested transports; if all are requested, those that work here.
    fn find_transports(&self) -> anyhow::Result<Vec<Transport>> {
        Ok(match self.args.transport {
            Ways::Udp => vec![Transport::Udp],
            Ways::Tcp => vec![Transport::Tcp],
            Ways::Rtp => vec![Transport::Rtp],
            Ways::All => {
                let mut all = vec![Transport::Udp, Transport::Tcp];
                let mut pictures = Pictures::draw(Resolution::ALL[0])?;
                let kind = Kind::of(Format::Bc1);
                match Stream::open(&self.setup(&mut pictures, kind, Transport::Rtp)?) {
                    Ok(stream) => {
                        stream.close();
                        all.push(Transport::Rtp);
                    }
                    Err(error) => eprintln!("RTP is left out: {error}"),
                }
                all
            }
        })
    }

    fn setup(
        &self,
        pictures: &mut Pictures,
        kind: Kind,
        transport: Transport,
    ) -> anyhow::Result<Setup> {
        let Resolution { width, height } = pictures.resolution();
        Ok(Setup {
            input: Layout::new(kind.input, width, height)?,
            output: kind.output,
            pictures: pictures.of(kind.input)?,
            transport,
            units: self.units,
            payload: 0,
            socket_buffer: self.args.socket_buffer,
            bit_rate: self.args.bit_rate,
        })
    }

    /// Returns the turns at each point.
    fn turns(&self) -> Turns {
        let (frames, longest) = self.settings.choose((30, 1_000), (10, 400));
        let longest = match self.args.frames {
            Some(_) => Duration::MAX,
            None => Duration::from_millis(longest),
        };
        let frames = self.args.frames.map_or(frames, NonZeroUsize::get);
        Turns { frames, longest, with_bare: true, with_placed: false }
    }

    fn runs(&self) -> usize {
        self.args.runs.map_or_else(|| self.settings.choose(12, 3), NonZeroUsize::get)
    }

    /// Prints what is being measured.
    fn progress(&self, what: &str) {
        self.settings.progress(what);
    }
}

/// Returns the name of a transport in tables and plots.
fn name(transport: Transport) -> String {
    transport.to_string().to_uppercase()
}
