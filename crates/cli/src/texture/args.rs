//! The command lines of `rushes texture`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, Args, value_parser};
use rushes::net::Interface;
use rushes::texture::{
    Adaptation, ColourHint, ColourRange, Fec, Format, Matrix, Primaries, Quality, Rate, Transfer,
    Transport,
};
use rushes::{Burst, Pacing};

use super::security::SecurityArgs;
use super::values::{
    SizeMax, parse_adaptation, parse_fec, parse_on, parse_packet, parse_pixels, parse_size_max,
    parse_transport,
};
use crate::args::OutputArgs;
use crate::endpoint::{Endpoint, parse_listen, parse_server};
use crate::metrics::MetricsArgs;
use crate::overwrite::OverwriteArgs;
use crate::values::{parse_burst, parse_duration, parse_pacing, parse_size};

/// Properties of a source that it does not contain, or that override its own.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceArgs {
    /// Width and height of frames in a file without a header, or of the pattern
    #[arg(long, value_parser = parse_pixels, value_name = "WIDTHxHEIGHT",
        help_heading = "Source")]
    pub(crate) size: Option<(u32, u32)>,
    /// Format of frames in a file without a header, or of the pattern; also by FFmpeg's names rgba,
    /// yuv420p, yuv422p and rgb565le
    #[arg(long, value_name = "FORMAT", help_heading = "Source")]
    pub(crate) input_format: Option<Format>,
    /// Frames per second, overriding the source: 60, 59.94, 30000/1001
    #[arg(long, value_name = "RATE", help_heading = "Source")]
    pub(crate) fps: Option<Rate>,
    /// Matrix of YUV, overriding the file: bt601, bt709 or bt2020; by default the file's; if it has
    /// none, and with --transfer pq, that of the primaries, or bt601 below 720 rows and bt709 from there on
    #[arg(long, value_name = "MATRIX", help_heading = "Source")]
    pub(crate) matrix: Option<Matrix>,
    /// Range of YUV, overriding the file: limited (black is 16) or full (black is 0); by default the
    /// file's, and if it has none, limited
    #[arg(long, value_name = "RANGE", help_heading = "Source")]
    pub(crate) range: Option<ColourRange>,
    /// Curve, overriding the file: sdr, or pq for HDR10, which implies the matrix and the primaries of
    /// BT.2020; by default the file's, and if it has none, sdr
    #[arg(long, value_name = "CURVE", help_heading = "Source")]
    pub(crate) transfer: Option<Transfer>,
    /// Primaries, overriding the file: bt709 or bt2020; by default the file's; if it has none, and with
    /// --transfer pq, bt2020 with pq or the matrix of BT.2020, else bt709
    #[arg(long, value_name = "PRIMARIES", help_heading = "Source")]
    pub(crate) primaries: Option<Primaries>,
    /// Take the first NUMBER frames only
    #[arg(long, value_parser = value_parser!(u64).range(1..), value_name = "NUMBER",
        help_heading = "Source")]
    pub(crate) frames: Option<u64>,
}

impl SourceArgs {
    /// Returns the colours that override the file's.
    pub(crate) fn colour(&self) -> ColourHint {
        ColourHint {
            matrix: self.matrix,
            range: self.range,
            transfer: self.transfer,
            primaries: self.primaries,
        }
    }
}

/// Conversion of one file into another.
#[derive(Args, Debug)]
pub(crate) struct FileArgs {
    /// Frames to read: .y4m, .ktx2, .png (one, a folder, or film_%05d.png), .rgb .rgba .yuv .raw
    /// (with --size), or pattern:WIDTHxHEIGHT@RATE,frames=NUMBER; - is the standard input: Y4M, or
    /// pixels (with --size, --input-format and --fps)
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// File to write, by its extension: .ktx2, .y4m, .png (a file for each frame, numbered if there
    /// are several), .rgb .rgba .yuv .raw (octets without a header)
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) report: OutputArgs,
}

/// The quality of blocks.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct QualityArgs {
    /// How near to the pictures bc1, bc3 and ycocg-bc3 are: fast, for live video, or high, which takes
    /// several times as long and helps coloured text most
    #[arg(long, value_name = "fast|high", default_value = "fast")]
    pub(crate) quality: Quality,
}

#[derive(Args, Debug)]
#[command(after_help = "\
OUT appears when it is complete: after an error there is no OUT, after Ctrl-C it has the frames so
far. The speed is that of encoding alone, on all processors, 16 at most.

Examples:
  rushes texture encode film.y4m film.ktx2                     BC1, half an octet a pixel
  rushes texture encode film.y4m film.ktx2 --format ycocg-bc3 --psnr
  rushes texture encode slides.png slides.ktx2 --quality high
  rushes texture encode shot_%05d.png shots.ktx2 --fps 24
  rushes texture encode pattern:3840x2160@60 test.ktx2 --frames 100
  rushes texture encode film.rgb film.ktx2 --size 1920x1080")]
pub(crate) struct EncodeArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Format to encode to; by default chosen for OUT: bc1 in .ktx2 and .raw
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) quality: QualityArgs,
    /// Decode every frame again and report its difference from the input, in decibels
    #[arg(long)]
    pub(crate) psnr: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
OUT appears when it is complete: after an error there is no OUT, after Ctrl-C it has the frames so
far.

Examples:
  rushes texture decode film.ktx2 film.y4m
  rushes texture decode film.ktx2 frame_%05d.png --frames 10
  rushes texture decode film.raw film.rgb --input-format bc1 --size 1920x1080")]
pub(crate) struct DecodeArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
}

/// Transport of tiles.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeliveryArgs {
    /// Transport of tiles: udp, tcp, rtp, or multicast (see serve --multicast); the client's choice overrides the
    /// server's
    #[arg(long, value_parser = parse_transport, value_name = "TRANSPORT",
        help_heading = "Delivery")]
    pub(crate) transport: Option<Transport>,
    /// Number of tiles of a frame, each with a socket and a thread on both sides; by default as
    /// many as the server has processors, up to 8. Each plane has at least one: yuv420, yuv422 and
    /// ycocg420 have 3 or more
    #[arg(long, value_parser = value_parser!(u8).range(1..=64), value_name = "1..64",
        help_heading = "Delivery")]
    pub(crate) units: Option<u8>,
    /// Size of a packet in octets, its header of 4 included; by default 1412 over UDP, 256K over
    /// TCP, and over RTP what fits into an IP packet of 1500 octets
    #[arg(long, value_parser = parse_packet, value_name = "OCTETS", help_heading = "Delivery")]
    pub(crate) packet_size: Option<usize>,
    /// Size of the socket buffers, with K, M or G for binary multiples
    #[arg(long, default_value = "4M", value_parser = parse_size, value_name = "OCTETS",
        help_heading = "Delivery")]
    pub(crate) socket_buffer: usize,
    /// What to do about packets that did not arrive (UDP): on, the default, requests them as long as an
    /// answer can be in time (view) and sends them again (serve); off does not
    #[arg(long, value_parser = parse_on, default_value = "on", action = ArgAction::Set, value_name = "on|off",
        hide_default_value = true, help_heading = "Delivery")]
    pub(crate) recovery: bool,
    /// Whether stripes that have not changed are left out, and others are sent as LZ4 blocks: on or off. By
    /// default serve sends none (off), and view takes them (on); not together with --fec
    #[arg(long, value_parser = parse_on, action = ArgAction::Set, value_name = "on|off",
        help_heading = "Delivery")]
    pub(crate) packing: Option<bool>,
    #[command(flatten)]
    pub(crate) security: SecurityArgs,
}

/// Options of the times at which pictures are taken from the source.
#[derive(Args, Clone, Copy, Debug)]
#[group(multiple = false)]
pub(crate) struct TimingArgs {
    /// Send at the source's rate; slow clients miss whole frames. This is the default
    #[arg(long, help_heading = "Timing")]
    pub(crate) live: bool,
    /// Send at the source's rate or more slowly, so that every client gets every frame
    #[arg(long, help_heading = "Timing")]
    pub(crate) every_frame: bool,
    /// Send every frame, as fast as the slowest client takes them
    #[arg(long, help_heading = "Timing")]
    pub(crate) flat_out: bool,
}

#[derive(Args, Debug)]
#[allow(clippy::doc_markdown, reason = "clap prints these lines as they are")]
#[command(after_help = "\
The source plays from its beginning whenever the first client connects; at its end, the clients are
notified, and others may connect. Ctrl-C notifies the clients too.

A pipe or a device plays once, as its frames arrive: each is sent when its last octet was read,
which is also its time of capture. Without a client, frames are discarded; with --every-frame the
pipe waits instead, for the first client too. A program that reads a file, and so is ahead of its
rate, is read at its rate: that of the Y4M header or --fps. The end of the pipe ends the server. If
it ends within a frame, the frames before are sent, and the exit code is 1.

The exit code is 0 after Ctrl-C, --duration or --once, and 1 if the source cannot be read, or if
with --once the client was refused, received no frame, disappeared or broke the protocol.

Examples:
  rushes texture serve pattern:3840x2160@60 --listen 7000 --format bc1
  rushes texture serve film.y4m --listen 192.0.2.7:7000 --format ycocg-bc3 --loop
  rushes texture serve film.ktx2 --listen [::]:7000 --preload --loop --transport tcp
  rushes texture serve film.y4m --listen 127.0.0.1:7000 --every-frame --once
  rushes texture serve film.y4m --listen 7000 --zrtp   no key needed: compare a few words
  rushes texture serve film.y4m --listen 7000 --loop --multicast 239.255.0.1:7100
  ffmpeg -f v4l2 -i /dev/video0 -pix_fmt yuv420p -f yuv4mpegpipe - |
    rushes texture serve - --listen 7000
  rushes texture serve camera.fifo --size 1280x720 --input-format rgba --fps 60 --listen 7000
  rushes texture serve film.rgb --size 1920x1080 --fps 30 --listen 7000 --stats-interval 1s")]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct ServeArgs {
    /// Frames to send: .y4m, .ktx2, .png (one, a folder, or film_%05d.png), .rgb .rgba .yuv .raw
    /// (with --size), or pattern[:WIDTHxHEIGHT][@RATE][,FORMAT][,frames=NUMBER]; - is the standard
    /// input; pipes and devices are live: Y4M, or pixels (with --size, --input-format and --fps)
    pub(crate) source: PathBuf,
    /// Address and port to listen on; by default all IPv4 addresses, with [::] all IPv6 addresses.
    /// Port 0 selects a free one
    #[arg(long, value_parser = parse_listen, value_name = "[ADDRESS:]PORT")]
    pub(crate) listen: Endpoint,
    /// Format to encode to for clients that request no other; by default the source's
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) quality: QualityArgs,
    /// Encode on the graphics processor, to bc1, ycocg-bc3, etc1, etc2 or astc-4x4, and send the
    /// first rows while it encodes the others (over UDP and RTP if that takes less than half the
    /// time between frames, and less than 25 ms). Clients cannot request other formats then. It has
    /// one quality, fast; its astc-4x4 is coarse: a file that an ASTC encoder made, which is sent as it
    /// is, looks better
    #[cfg_attr(not(feature = "window"), doc = "(not in this build: cargo's feature `window`)")]
    #[arg(long, requires = "format")]
    pub(crate) gpu: bool,
    /// Maximum number of clients at once; any others are asked to try again later
    #[arg(long, default_value_t = 8, value_name = "NUMBER",
        value_parser = value_parser!(u16).range(1..=256))]
    pub(crate) clients: u16,
    /// Maximum number of clients at once from one host (an IPv4 address, or an IPv6 network of 64
    /// bits)
    #[arg(long, default_value_t = 4, value_name = "NUMBER",
        value_parser = value_parser!(u16).range(1..=256))]
    pub(crate) clients_per_host: u16,
    /// End when the first client has left or was refused
    #[arg(long, conflicts_with = "clients")]
    pub(crate) once: bool,
    /// End after this time, for example 10s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) input: SourceArgs,
    /// Start again at the end of the source
    #[arg(long = "loop", help_heading = "Source")]
    pub(crate) repeat: bool,
    /// Read frames into memory first, up to this many octets
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "1G",
        value_parser = parse_size, value_name = "OCTETS", help_heading = "Source")]
    pub(crate) preload: Option<usize>,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    /// Spread the packets of a frame over time (UDP and RTP): over a share of the frame interval, by
    /// default 0.9, or at a rate in bits per second to each client, for example 900M. off sends them
    /// as fast as the client can receive, for links whose queues hold a frame. With --flat-out UDP
    /// is not paced by default, and RTP at 10G
    #[arg(long, value_parser = parse_pacing, help_heading = "Timing", value_name = "PACING")]
    pub(crate) pacing: Option<Pacing>,
    /// Largest burst of a paced server, in octets, and with a rate the time that it may take:
    /// 16K or 16K,1ms; by default 32K,2ms
    #[arg(long, value_parser = parse_burst, help_heading = "Timing", value_name = "SIZE[,TIME]")]
    pub(crate) burst: Option<Burst>,
    /// What to change when a client reports lost packets (UDP and RTP, with --live): format (to
    /// ycocg-bc3, then bc1), format-and-rate (then the rate to a half, then a quarter; the default), or
    /// off. What a client requested is kept
    #[arg(long, value_parser = parse_adaptation, help_heading = "Timing", value_name = "WHAT")]
    pub(crate) adapt: Option<Adaptation>,
    /// Add repair packets, from which clients compute packets that did not arrive without asking for them
    /// (UDP): this many for 100 packets, 1 to 100, or auto for as many as the losses that a client reports
    /// need, at most 50, and none if requests alone suffice. By default off
    #[arg(long, value_parser = parse_fec, help_heading = "Delivery", value_name = "PERCENT|auto|off")]
    pub(crate) fec: Option<Fec>,
    /// Whether pictures are scaled down for clients that ask for it (view --max-size): on, the default, or off.
    /// Each size takes time for each picture
    #[arg(long, value_parser = parse_on, default_value = "on", action = ArgAction::Set, value_name = "on|off",
        hide_default_value = true, help_heading = "Delivery")]
    pub(crate) scaling: bool,
    #[command(flatten)]
    pub(crate) multicast: MulticastArgs,
    #[command(flatten)]
    pub(crate) delivery: DeliveryArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) report: OutputArgs,
}

/// The multicast group of a server.
#[derive(Args, Clone, Debug)]
pub(crate) struct MulticastArgs {
    /// Send frames once to this multicast group, for all clients that request it with --transport multicast:
    /// for example 239.255.0.1:7100. The port is that of the first tile; each further tile has the next one.
    /// Without encryption
    #[arg(long, value_name = "GROUP:PORT", help_heading = "Delivery")]
    pub(crate) multicast: Option<SocketAddr>,
    /// Network interface for the group: its name, its index or, for an IPv4 group, its address; by default
    /// the one by which the first client is connected
    #[arg(long, requires = "multicast", help_heading = "Delivery", value_name = "INTERFACE")]
    pub(crate) interface: Option<Interface>,
    /// Maximum number of hops to the group's members
    #[arg(long, requires = "multicast", default_value_t = 1, value_parser = value_parser!(u32).range(0..256),
        help_heading = "Delivery", value_name = "HOPS")]
    pub(crate) ttl: u32,
}

/// Options of the window.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WindowArgs {
    /// Show frames in a window: received into the graphics processor's memory, decoded as they are
    /// drawn. F or F11 fills the screen, S shows statistics, C asks for the next format of bc1, ycocg-bc3,
    /// yuv420 and rgb24, - for half the frame rate and + for twice, Escape or Q closes it
    #[cfg_attr(not(feature = "window"), doc = "(not in this build: cargo's feature `window`)")]
    #[arg(long)]
    pub(crate) window: bool,
    /// Start in full screen
    #[arg(long, requires = "window")]
    pub(crate) full_screen: bool,
    /// Show the window's statistics from the start
    #[arg(long, requires = "window")]
    pub(crate) statistics: bool,
    /// Time from a frame's capture to its presentation, for example 50ms; 0 presents each frame as soon as
    /// it is received. By default it is one frame interval more than the least delay of the last
    /// frames, so that network jitter of up to an interval is not visible. At most 15 frames wait
    #[arg(long, requires = "window", value_parser = parse_duration, value_name = "TIME")]
    pub(crate) latency: Option<Duration>,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("to").required(true).args(["output", "null", "window"]))]
#[command(after_help = "\
A file is complete or absent: after the server's end, --frames, --duration or Ctrl-C it has the
frames so far. It is decoded and written by a thread of its own, behind a queue of 8 frames. Frames
that do not fit, because the disk is slow, are left out and reported; with --every-frame, receiving
waits instead, which makes the server wait over TCP, and loses packets over UDP.

The exit code is 1 if no frame was received, if the server disappeared, or if a file is written and
frames were lost, damaged or left out (--allow-loss: 0). A frame that the server sent and of which
nothing was received is lost, also at the end of the stream. In a damaged frame, the missing parts
are taken from the frame before. Pictures that a --live server drops are reported and are not lost.

If the server's pictures change their size, those of another size are written to further files:
film-2.y4m after film.y4m, or the next number that no file has.

Examples:
  rushes texture view 127.0.0.1:7000 --window
  rushes texture view 127.0.0.1:7000 --null --stats-interval 1s
  rushes texture view 192.0.2.7:7000 --output film.y4m --every-frame --transport tcp
  rushes texture view 192.0.2.7:7000 --output shot_%05d.png --frames 1
  rushes texture view 192.0.2.7:7000 --output - --quiet | ffplay -
  rushes texture view [2001:db8::7]:7000 --output film.ktx2 --format bc1 --units 4
  rushes texture view 192.0.2.7:7000 --output small.y4m --max-size 640x360
  rushes texture view 192.0.2.7:7000 --output film.y4m --zrtp
  rushes texture view 127.0.0.1:7000 --null --packet-size 8K --duration 10s --json")]
pub(crate) struct ViewArgs {
    /// Host and port of the server
    #[arg(value_parser = parse_server, value_name = "HOST:PORT")]
    pub(crate) server: Endpoint,
    /// File to write: frames are decoded into .y4m, .png and .rgb .rgba .yuv (octets without a
    /// header), and written as received into .ktx2 and .raw; - is Y4M on the standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// Write nothing, measure only
    #[arg(long)]
    pub(crate) null: bool,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Requested format; by default the server chooses
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Requested frames per second, up to the server's rate
    #[arg(long, value_name = "RATE")]
    pub(crate) fps: Option<Rate>,
    /// Largest size of frames, to which the server scales larger pictures down, with the same ratio of the
    /// sides: 1280x720, or window for that of the window at any time. A server whose pictures are blocks already
    /// sends them as they are
    #[arg(long, value_parser = parse_size_max, value_name = "WIDTHxHEIGHT|window")]
    pub(crate) max_size: Option<SizeMax>,
    /// End after this many frames
    #[arg(long, value_parser = value_parser!(u64).range(1..), value_name = "NUMBER")]
    pub(crate) frames: Option<u64>,
    /// End after this time, for example 10s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
    /// Give up after this time without a frame
    #[arg(long, value_parser = parse_duration, default_value = "10s", value_name = "TIME")]
    pub(crate) idle_timeout: Duration,
    /// Maximum wait for missing packets (UDP and RTP); by default 100ms, and 1s for a file
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(crate) deadline: Option<Duration>,
    /// Wait for the disk while receiving rather than leave frames out
    #[arg(long, requires = "output")]
    pub(crate) every_frame: bool,
    /// Do not treat an incomplete file as a failure
    #[arg(long, requires = "output")]
    pub(crate) allow_loss: bool,
    #[command(flatten)]
    pub(crate) delivery: DeliveryArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) report: OutputArgs,
}
