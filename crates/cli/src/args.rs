//! The options of streams, and options that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum, value_parser};
use rushes::payload::raw::{RawVideo, Sampling};
use rushes::{
    Burst, ClockRate, Codec, Delivery, ExtensionMap, Fec, FecFormat, FrameRate, Pacing,
    PayloadType, ReceivePath, Recovery, SendPath, Ssrc,
};

use crate::Usage;
use crate::endpoint::{Endpoint, Peer, parse_from, parse_to};
use crate::key_frames::KeyFrameArgs;
use crate::metrics::MetricsArgs;
use crate::overwrite::OverwriteArgs;
use crate::security::SecurityArgs;
use crate::send::RateArgs;
use crate::token::EntryArgs;
use crate::values::{
    parse_burst, parse_capture_time, parse_clock_rate, parse_duration, parse_extension, parse_fec,
    parse_mtu, parse_pacing, parse_payload_type, parse_rate, parse_size, parse_ssrc,
    parse_video_size,
};

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum DeliveryName {
    /// Whole access units
    AccessUnit,
    /// Each NAL unit as soon as it is whole
    NalUnit,
}

impl From<DeliveryName> for Delivery {
    fn from(name: DeliveryName) -> Self {
        match name {
            DeliveryName::AccessUnit => Self::AccessUnit,
            DeliveryName::NalUnit => Self::Unit,
        }
    }
}

/// Returns the names of codecs in options, from the table of formats.
pub(crate) fn codec_names() -> Vec<&'static str> {
    let name = |codec: Codec| if codec == Codec::Generic { "raw" } else { codec.name };
    let mut names: Vec<_> = Codec::all().map(name).collect();
    names.sort_unstable();
    names
}

fn payload_type_help() -> String {
    let codec = |name: &&str| Codec::named(name).map_or(0, |codec| codec.payload_type.value());
    let names = codec_names();
    let types: Vec<_> = names.iter().map(|name| format!("{} {name}", codec(name))).collect();
    format!("RTP payload type; default {}", types.join(", "))
}

pub(crate) fn codec_parser() -> impl TypedValueParser<Value = Codec> {
    let value = |name| PossibleValue::new(name).help(Codec::named(name).map_or("", |it| it.title));
    let names = PossibleValuesParser::new(codec_names().into_iter().map(value));
    names.try_map(|name| Codec::named(&name).ok_or("not a codec"))
}

/// Options common to all streams.
#[derive(Args, Clone, Debug)]
pub(crate) struct StreamArgs {
    /// Codec; guessed from the file name if possible
    #[arg(long, value_parser = codec_parser(), help_heading = "Stream")]
    pub(crate) codec: Option<Codec>,
    /// Size of the largest IP packet in octets, headers included: 100 to 65535
    #[arg(long, default_value = "1500", value_parser = parse_mtu, help_heading = "Stream",
        value_name = "OCTETS")]
    pub(crate) mtu: usize,
    #[arg(long, value_parser = parse_payload_type, help_heading = "Stream", value_name = "0..127",
        help = payload_type_help())]
    pub(crate) payload_type: Option<PayloadType>,
    /// RTP clock rate, of samples the sampling rate; default that of a file to send, otherwise 48000 for
    /// opus, l16 and l24, 8000 for pcmu and pcma, 90000 for the others
    #[arg(long, value_parser = parse_clock_rate, help_heading = "Stream", value_name = "HERTZ")]
    pub(crate) clock_rate: Option<ClockRate>,
    /// Number of channels of l16, l24, pcmu and pcma, 1 to 255; default that of a file to send, otherwise
    /// 2, or 1 of pcmu and pcma
    #[arg(long, value_parser = value_parser!(u8).range(1..), help_heading = "Stream")]
    pub(crate) channels: Option<u8>,
    /// Size of the socket buffers, with K, M or G for binary multiples; 4M by default, and a frame of
    /// received uncompressed video if that is larger
    #[arg(long, value_parser = parse_size, help_heading = "Stream", value_name = "OCTETS")]
    pub(crate) socket_buffer: Option<usize>,
    /// Method of passing datagrams to the kernel: auto, gso, sendmmsg, single
    #[arg(long, default_value = "auto", help_heading = "Stream", value_name = "PATH")]
    pub(crate) send_path: SendPath,
    /// Method of taking datagrams from the kernel: auto, gro, recvmmsg, single
    #[arg(long, default_value = "auto", help_heading = "Stream", value_name = "PATH")]
    pub(crate) receive_path: ReceivePath,
    /// Network interface: its name, its index or, for an IPv4 group, its address
    #[arg(long, help_heading = "Network", value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Maximum number of hops for multicast
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(0..256),
        help_heading = "Network", value_name = "HOPS")]
    pub(crate) ttl: u32,
    /// Differentiated services code point of sent packets, 0 to 63
    #[arg(long, value_parser = value_parser!(u8).range(0..64), help_heading = "Network",
        value_name = "CODE")]
    pub(crate) dscp: Option<u8>,
    /// Carry the capture time of each frame in a header extension of its first packet, in the
    /// FORMAT abs-capture-time (the default), ntp-64 or ntp-56 (RFC 6051), with the identifier ID (1
    /// by default). Receivers need the same option, or the description; without it, they know the
    /// capture time from the reports of the sender
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "abs-capture-time",
        value_parser = parse_capture_time, help_heading = "Stream", value_name = "FORMAT[:ID]")]
    pub(crate) capture_time: Option<ExtensionMap>,
    /// Width and height of uncompressed video in pixels; Y4M files and descriptions (--sdp) say them
    #[arg(long, value_parser = parse_video_size, value_name = "WIDTHxHEIGHT", requires = "sampling",
        help_heading = "Uncompressed video")]
    pub(crate) size: Option<[u16; 2]>,
    /// Sampling of uncompressed video: RGB, RGBA, BGR, BGRA, YCbCr-4:4:4, YCbCr-4:2:2, YCbCr-4:2:0,
    /// YCbCr-4:1:1, or 4:2:2 for short
    #[arg(long, requires = "size", value_name = "NAME", help_heading = "Uncompressed video")]
    pub(crate) sampling: Option<Sampling>,
    /// Bits of a sample of uncompressed video: 8 (the default), 10, 12 or 16
    #[arg(long, requires = "size", value_name = "BITS", help_heading = "Uncompressed video")]
    pub(crate) depth: Option<u8>,
    /// Duration of the samples in a packet of l16, l24, pcmu and pcma, for example 125us or 20ms; default
    /// 1 ms, of pcmu and pcma 20 ms, or less where more channels do not fit. For senders
    #[arg(long, value_parser = parse_duration, help_heading = "Stream", value_name = "TIME")]
    pub(crate) packet_time: Option<Duration>,
    /// Agree on an element of header extensions (RFC 8285): its identifier ID, 1 to 14 or 16 to 255,
    /// and its URI or one of mid, rid, repaired-rid, audio-level, abs-send-time, transport-sequence,
    /// dependency-descriptor. May be given several times; both ends need the same. Packets sent carry
    /// mid (--mid), abs-send-time and transport-sequence
    #[arg(long, value_parser = parse_extension, help_heading = "Stream", value_name = "ID=NAME")]
    pub(crate) extension: Vec<(u8, String)>,
    /// Octets in each frame of a raw file
    #[arg(long, default_value = "64K", value_parser = parse_size, help_heading = "Stream",
        value_name = "OCTETS")]
    pub(crate) frame_size: usize,
}

impl Default for StreamArgs {
    /// Returns the values of a command line without any of the options.
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            stream: StreamArgs,
        }
        <Line as clap::Parser>::parse_from(["rushes"]).stream
    }
}

impl StreamArgs {
    /// Returns the uncompressed video that the options describe, if they do.
    pub(crate) fn raw_video(&self) -> Result<Option<RawVideo>, Usage> {
        let Some((size, sampling)) = self.size.zip(self.sampling) else { return Ok(None) };
        let [width, height] = size;
        let video = RawVideo::new(sampling, self.depth.unwrap_or(8), width, height);
        video.map(Some).map_err(|error| Usage(error.to_string()))
    }
}

/// Format of repair packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum FecFormatName {
    /// That of RFC 8627, in a stream of its own
    Flexfec,
    /// That of draft 03, as WebRTC programs use it
    #[value(name = "flexfec-03")]
    Flexfec03,
    /// ULPFEC (RFC 5109), in one stream with the media within RED, for WebRTC programs and GStreamer
    Ulpfec,
}

impl From<FecFormatName> for FecFormat {
    fn from(name: FecFormatName) -> Self {
        match name {
            FecFormatName::Flexfec => Self::FlexFec,
            FecFormatName::Flexfec03 => Self::FlexFec03,
            FecFormatName::Ulpfec => Self::Ulp,
        }
    }
}

/// Recovery of lost packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum RecoveryName {
    /// No recovery
    Off,
    /// Request lost packets, to be retransmitted in a separate stream (RFC 4588)
    Rtx,
    /// Request lost packets, to be retransmitted unchanged
    Verbatim,
}

impl From<RecoveryName> for Recovery {
    fn from(name: RecoveryName) -> Self {
        match name {
            RecoveryName::Off => Self::Off,
            RecoveryName::Rtx => Self::On,
            RecoveryName::Verbatim => Self::Verbatim,
        }
    }
}

/// Options of RTCP and recovery between two programs.
#[derive(Args, Clone, Debug)]
pub(crate) struct ControlArgs {
    /// Neither send nor read RTCP
    #[arg(long, conflicts_with_all = ["rtcp_mux", "recovery", "feedback"], help_heading = "Control")]
    pub(crate) no_rtcp: bool,
    /// Use the stream's own port for RTCP (RFC 5761) rather than the next; both sides must agree
    #[arg(long, help_heading = "Control")]
    pub(crate) rtcp_mux: bool,
    /// Remote port for RTCP, if it is not the one after the stream's
    #[arg(long, value_name = "PORT", help_heading = "Control")]
    pub(crate) rtcp_port: Option<u16>,
    /// Recovery of lost packets; both sides must agree
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Control")]
    pub(crate) recovery: Option<RecoveryName>,
    /// Payload type of retransmissions with --recovery rtx; both sides must agree. By default 127
    /// for a stream of payload type 96, 126 for 97, and so on down
    #[arg(long, value_parser = parse_payload_type, value_name = "0..127", help_heading = "Control")]
    pub(crate) rtx_payload_type: Option<PayloadType>,
    /// SSRC of retransmissions with --recovery rtx, decimal or 0x hexadecimal: of those sent
    /// (random by default), or of those accepted (any by default)
    #[arg(long, value_parser = parse_ssrc, value_name = "SSRC", help_heading = "Control")]
    pub(crate) rtx_ssrc: Option<Ssrc>,
    /// Send requests at once (profile AVPF) rather than with the next report
    #[arg(long, help_heading = "Control")]
    pub(crate) feedback: bool,
    /// Canonical name in reports; random by default
    #[arg(long, value_name = "NAME", help_heading = "Control")]
    pub(crate) cname: Option<String>,
    /// Keep the path open by sending an empty datagram after this much silence, for example 15s
    #[arg(long, value_parser = parse_duration, value_name = "TIME", help_heading = "Control")]
    pub(crate) keep_alive: Option<Duration>,
}

/// How many of the libraries' log messages are shown; warnings always, unless `--quiet` is given.
#[derive(Args, Clone, Copy, Debug, Default)]
#[allow(clippy::doc_markdown, reason = "clap prints these lines as they are")]
pub(crate) struct VerboseArgs {
    /// Print more than warnings: -v for events, for example why a client was refused, -vv for
    /// debugging. RUST_LOG, for example RUST_LOG=rushes_net=debug, overrides -v and -q
    #[arg(long, short, action = ArgAction::Count, conflicts_with = "quiet",
        help_heading = "Output")]
    pub(crate) verbose: u8,
}

/// Output options of a command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputArgs {
    /// Print one JSON object on the standard output
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) verbose: VerboseArgs,
    /// Print a line of statistics at this interval, for example 1s
    #[arg(long, value_parser = parse_duration, help_heading = "Output", value_name = "TIME")]
    pub(crate) stats_interval: Option<Duration>,
}

/// Options of the times at which frames are sent.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TimingArgs {
    /// Frames per second, for example 30, 29.97 or 30000/1001; by default opus packets follow their
    /// durations
    #[arg(long, value_parser = parse_rate, help_heading = "Timing", value_name = "RATE")]
    pub(crate) fps: Option<FrameRate>,
    /// Send as fast as possible, without waiting for the receiver
    #[arg(long, conflicts_with = "fps", help_heading = "Timing")]
    pub(crate) flat_out: bool,
    /// Spreading of large frames over time: off, a share of the frame interval, 0.9 by default, or
    /// a rate in bits per second such as 900M
    #[arg(long, value_parser = parse_pacing, help_heading = "Timing", value_name = "PACING")]
    pub(crate) pacing: Option<Pacing>,
    /// Largest burst of a paced sender, in octets, and with a rate the time that it may take:
    /// 32K,2ms by default
    #[arg(long, value_parser = parse_burst, help_heading = "Timing", value_name = "SIZE[,TIME]")]
    pub(crate) burst: Option<Burst>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Two sockets and two threads in this process: one stream sends, the other receives, and every NAL
unit (or Opus packet, or frame) is compared with the file. Without --fps it goes as fast as the
receiver keeps up; with --flat-out, it goes faster, and losses are reported.

Examples:
  rushes loopback
  rushes loopback film.266 --mtu 9000 --ipv6
  rushes loopback speech.opus --fps 50 --json
  rushes loopback film.265 --srtp AEAD_AES_128_GCM     encrypted, with a random key
  rushes loopback film.265 --zrtp                      with keys that both ends agree on")]
pub(crate) struct LoopbackArgs {
    /// File to send; by default a short built-in H.265 clip
    pub(crate) file: Option<PathBuf>,
    /// Use IPv6 instead of IPv4
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// Unit that is received as one frame
    #[arg(long, value_enum, default_value = "access-unit")]
    pub(crate) delivery: DeliveryName,
    /// Send the file this many times
    #[arg(long = "loop", default_value_t = 1, value_parser = value_parser!(u64).range(1..),
        value_name = "TIMES")]
    pub(crate) repeat: u64,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) security: SecurityArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A container (MP4, QuickTime, Matroska, WebM) is sent with its own times: its video to the port of --to,
its audio to the port two after that, and in step. --codec selects one of them.

The exit code is 0 if all frames were sent and the host did not report that the port was closed all
the time. A receiver may start later.

Examples:
  rushes send film.265 --to 192.0.2.7:5004
  rushes send film.mp4 --to 192.0.2.7:5004 --sdp film.sdp
  rushes send film.264 --audio film.opus --to 192.0.2.7:5004
  rushes send film.264 --to [2001:db8::7]:5004 --fps 59.94 --loop 10
  rushes send film.266 --to 239.1.2.3:5004 --pacing 900M
  rushes send film.265 --to 192.0.2.7:5004 --to 192.0.2.8:5004     to two hosts
  rushes send film.265 --to 192.0.2.7:5004 --recovery rtx --sdp film.sdp
  ffmpeg -f v4l2 -i /dev/video0 -c:v libx264 -tune zerolatency -f h264 - |
    rushes send - --codec h264 --to 192.0.2.7:5004     a live camera
  rushes send film.265 --to 192.0.2.7:5004 --max-rate auto     no more than the path carries
  rushes send film.265 --to 192.0.2.7:5004 --zrtp      no key needed: compare a few words
  rushes send film.265 --to 192.0.2.7:5004 --zrtp --secret-file secret     with a shared secret
  rushes send film.265 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM --key-file film.key
  rushes send film.265 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM --sdp film.sdp --dry-run
  rushes send film.265 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM --key-file film.sdp
                                                      once the receiver has film.sdp and listens")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub(crate) struct SendArgs {
    /// File to send; - for the standard input. A pipe or a device is a live source: each frame is
    /// sent when the next one begins, or after half a frame interval of silence, with the time of
    /// its arrival or, with --fps, at that rate
    pub(crate) file: PathBuf,
    /// Audio file to send with it, to the port two after that of --to. Options of a stream, such as
    /// --ssrc and --payload-type, are those of the video
    #[arg(long, value_name = "FILE")]
    pub(crate) audio: Option<PathBuf>,
    /// Host and port to send to. Given several times, at most 64, each packet goes to all of them, and
    /// is made once: all have one key, each gets the packets that it requests, and one that cannot be
    /// reached stops no other. --sdp describes the first
    #[arg(long, required_unless_present = "whip", value_parser = parse_to, value_name = "HOST:PORT")]
    pub(crate) to: Vec<Endpoint>,
    /// Publish to the server of WHIP at this URL (RFC 9725), such as an engine that carries the stream to
    /// browsers
    #[arg(long, value_name = "URL", help_heading = "WebRTC",
        conflicts_with_all = ["to", "local_port", "ssrc", "mid", "sdp", "max_rate", "fec",
            "payload_type", "clock_rate", "socket_buffer", "send_path", "receive_path", "interface",
            "ttl", "dscp", "capture_time", "extension", "size", "no_rtcp", "rtcp_mux", "rtcp_port",
            "rtx_payload_type", "rtx_ssrc", "feedback", "keep_alive", "srtp", "zrtp"])]
    pub(crate) whip: Option<String>,
    #[command(flatten)]
    pub(crate) entry: EntryArgs,
    /// Local port; 0 selects a free one
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub(crate) local_port: u16,
    /// SSRC, decimal or 0x hexadecimal; random by default
    #[arg(long, value_parser = parse_ssrc, help_heading = "Stream")]
    pub(crate) ssrc: Option<Ssrc>,
    /// Identification of the media (a=mid), which packets carry with --extension ID=mid until the
    /// receiver has reported on the stream
    #[arg(long, help_heading = "Stream")]
    pub(crate) mid: Option<String>,
    /// Confirm that the key is new, which permits --ssrc or --rtx-ssrc with it. A second run with
    /// the same key and SSRC would repeat the key stream
    #[arg(long, requires = "srtp", help_heading = "Security")]
    pub(crate) fresh_key: bool,
    /// Write a description of the stream (SDP) for receivers; - for the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) sdp: Option<PathBuf>,
    /// Order of the channels of l16 and l24 in the description (RFC 3190 section 7), for example
    /// "SMPTE2110.(51)" or DV.LRLsRs; receivers of the samples alone do not know it
    #[arg(long, requires = "sdp", value_name = "CONVENTION.ORDER", help_heading = "Stream")]
    pub(crate) channel_order: Option<String>,
    /// Write the description and send nothing. With --srtp but no key, the description gets a new
    /// one, with which a later run sends: --key-file with the description, in place of --sdp
    #[arg(long, requires = "sdp")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// End when the network has prevented sending for this long: no route, an interface that is
    /// down, a firewall. Frames until then are lost, and the exit code is 1
    #[arg(long, default_value = "30s", value_parser = parse_duration, value_name = "TIME",
        help_heading = "Network")]
    pub(crate) give_up: Duration,
    /// Keep sending although reports show for 15 seconds that the receiver or the network cannot
    /// take the stream (RFC 8083); by default, end then with exit code 1
    #[arg(long, help_heading = "Network")]
    pub(crate) no_circuit_breakers: bool,
    /// Send the file this many times; 0: until Ctrl-C
    #[arg(long = "loop", default_value_t = 1, value_name = "TIMES")]
    pub(crate) repeat: u64,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    #[command(flatten)]
    pub(crate) rate: RateArgs,
    #[command(flatten)]
    pub(crate) key_frames: KeyFrameArgs,
    /// Send the temporal layers of the video up to this one, 0 being the base; those above are left out.
    /// Of H.265, H.266, AV1, and H.264 with prefix units
    #[arg(long, value_name = "ID", help_heading = "Rate")]
    pub(crate) max_temporal_id: Option<u8>,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    /// Add repair packets, so that a receiver recovers lost packets without asking for them
    /// (RFC 8627): this many for 100 packets, 1 to 100, or auto for ten for each packet
    /// that the receiver reports lost, at most 50. By default none; the receiver needs --fec or --sdp
    #[arg(long, value_parser = parse_fec, value_name = "PERCENT|auto", help_heading = "Control")]
    pub(crate) fec: Option<Fec>,
    /// Format of the repair packets; both ends need the same
    #[arg(
        long,
        value_enum,
        default_value = "flexfec",
        requires = "fec",
        value_name = "FORMAT",
        help_heading = "Control"
    )]
    pub(crate) fec_format: FecFormatName,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) security: SecurityArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The file is NAME.part until the stream ends: when its sender says goodbye (RTCP BYE), after
--idle-timeout of silence, or at Ctrl-C. The exit code is 0 if a frame was received and nothing
that was sent after the first received packet is known to be missing; an end by silence is not a
failure unless --until-bye is set. Complete frames are kept in either case, also when the disk is
full: then in NAME.part.

Any host can send to a port. Of several sources, the one that sends most is written, and the others
are counted separately; a sender that was killed and starts again on the same host continues the
file. --peer, --ssrc, --srtp and --zrtp select the sender.

With --keep each sender has a file of its own, a restarted one too, and --json prints an object for each.
A pipe (-o -) gets all of them. The exit code is 0 if every file is complete.

Examples:
  rushes recv --from 5004 --codec h265 -o copy.265
  rushes recv --from 5004 --codec h265 --peer 192.0.2.7 -o copy.265
  rushes recv --from [::]:5004 -o speech.opus
  rushes recv --from 239.1.2.3:5004 --codec h264 -o - | ffplay -
  rushes recv --from 232.1.2.3:5004 --source 192.0.2.7 --codec h264 -o copy.264
  rushes recv --from rtp://@:5004 --codec h264 -o copy.264          as VLC writes it
  rushes recv --from 5004 --codec h265 --window
  rushes recv --sdp camera.sdp -o camera.264
  rushes recv --sdp film.sdp -o film.mp4               video and audio, in step
  rushes recv --sdp camera.sdp -o camera.mp4 --keep          until Ctrl-C, a file for each sender
  rushes recv --from 5004 --srtp AEAD_AES_128_GCM --key-file film.key -o copy.265")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub(crate) struct RecvArgs {
    /// Port to listen on, optionally after an address to bind to or a multicast group to join; by
    /// default all IPv4 addresses, with [::] all IPv6 and IPv4 addresses
    #[arg(
        long,
        value_parser = parse_from,
        value_name = "[BIND:]PORT",
        required_unless_present_any = ["sdp", "whep"],
        conflicts_with = "sdp"
    )]
    pub(crate) from: Option<Endpoint>,
    /// Play from the server of WHEP at this URL, such as `rushes serve` or an engine
    #[arg(long, value_name = "URL", help_heading = "WebRTC",
        conflicts_with_all = ["from", "sdp", "keep", "ssrc", "peer", "sources", "report_arrivals",
            "report_transport_wide", "payload_type", "clock_rate", "socket_buffer", "send_path",
            "receive_path", "interface", "ttl", "dscp", "capture_time", "extension", "size", "no_rtcp",
            "rtcp_mux", "rtcp_port", "rtx_payload_type", "rtx_ssrc", "feedback", "keep_alive", "fec",
            "srtp", "zrtp"])]
    pub(crate) whep: Option<String>,
    #[command(flatten)]
    pub(crate) entry: EntryArgs,
    /// Description of the stream (SDP), which gives its codec, port, payload type and all other
    /// settings; of several media, the first that can be received or that --codec names, and for a
    /// container (.mp4, .mov, .mkv, .webm) the video and the audio. Unusable lines are reported and
    /// skipped. Only the SSRC that it names is accepted
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["payload_type", "clock_rate", "channels", "capture_time", "extension",
            "rtcp_mux", "recovery", "rtx_payload_type", "feedback", "report_arrivals",
            "report_transport_wide"])]
    pub(crate) sdp: Option<PathBuf>,
    /// File to write; - for the standard output
    #[arg(long, short, value_name = "FILE", required_unless_present = "window")]
    pub(crate) output_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) window: VideoWindowArgs,
    /// Accept this SSRC only, decimal or 0x hexadecimal
    #[arg(long, value_parser = parse_ssrc, help_heading = "Stream")]
    pub(crate) ssrc: Option<Ssrc>,
    /// Accept packets only from this host, and only from this port if given; other packets are
    /// counted and ignored
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Network")]
    pub(crate) peer: Option<Peer>,
    /// Receive a multicast group from this host only, also when others send to it (RFC 4607). May be
    /// given several times; a description (--sdp) may name the hosts, too
    #[arg(long = "source", value_name = "HOST", help_heading = "Network")]
    pub(crate) sources: Vec<String>,
    /// Unit that is received as one frame
    #[arg(long, value_enum, default_value = "access-unit", help_heading = "Stream")]
    pub(crate) delivery: DeliveryName,
    /// Maximum time that a frame waits for retransmissions (with --recovery, by default 500ms);
    /// three round trips recover nearly every loss
    #[arg(long, value_parser = parse_duration, help_heading = "Stream", value_name = "TIME")]
    pub(crate) latency: Option<Duration>,
    /// Maximum wait for a missing packet (by default 50ms, with --recovery at least that long)
    #[arg(long, value_parser = parse_duration, help_heading = "Stream", value_name = "TIME")]
    pub(crate) reorder_time: Option<Duration>,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    /// Report the arrival of each packet to the sender (RFC 8888), which send --max-rate needs
    #[arg(long, conflicts_with = "no_rtcp", help_heading = "Control")]
    pub(crate) report_arrivals: bool,
    /// Report the arrival of each packet by its transport-wide number, as browsers do, for senders
    /// that follow such reports only: needs --extension ID=transport-sequence
    #[arg(long, conflicts_with = "no_rtcp", help_heading = "Control")]
    pub(crate) report_transport_wide: bool,
    /// End after this much silence, once the stream has begun
    #[arg(long, value_parser = parse_duration, default_value = "2s", value_name = "TIME")]
    pub(crate) idle_timeout: Duration,
    /// End with exit code 1 if nothing of the stream has arrived after this long; by default, wait
    /// for ever
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(crate) wait: Option<Duration>,
    /// End this long after the first frame
    #[arg(long, value_parser = parse_duration, value_name = "TIME", conflicts_with = "until_bye")]
    pub(crate) duration: Option<Duration>,
    /// Exit with 1 unless the sender sends a goodbye (RTCP BYE). Some never do, for example FFmpeg
    #[arg(long, conflicts_with = "no_rtcp")]
    pub(crate) until_bye: bool,
    /// Wait for the next sender when one has ended, until Ctrl-C or --duration, and write a file for
    /// each: copy.mp4, copy-2.mp4, copy-3.mp4; names that exist are left out without --force. Writes at
    /// most FILES files, 1000 by default, then ends
    #[arg(long, value_name = "FILES", num_args = 0..=1, require_equals = true,
        default_missing_value = "1000", value_parser = value_parser!(u64).range(1..),
        conflicts_with = "window", requires = "output_file")]
    pub(crate) keep: Option<u64>,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    /// Recover lost packets with the repair packets of send --fec (RFC 8627). A
    /// description (--sdp) says by itself whether there are any
    #[arg(long, conflicts_with = "sdp", help_heading = "Control")]
    pub(crate) fec: bool,
    /// Format of the repair packets; both ends need the same
    #[arg(
        long,
        value_enum,
        default_value = "flexfec",
        requires = "fec",
        value_name = "FORMAT",
        help_heading = "Control"
    )]
    pub(crate) fec_format: FecFormatName,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) security: SecurityArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Missing parts of frames.
#[derive(Args, Debug)]
pub(crate) struct MissingArgs {
    /// Also write frames of uncompressed video of which parts are missing, if at least half arrived; the
    /// parts are as in the frame before
    #[arg(long, help_heading = "Uncompressed video")]
    pub(crate) incomplete: bool,
}

/// Options of the video window.
#[derive(Args, Debug)]
pub(crate) struct VideoWindowArgs {
    /// Show the video in a window, at the size of its first picture, decoded by the program ffmpeg
    /// (5.1 or later; 7.1 for H.266). F or F11 fills the screen, S shows statistics, Escape or Q
    /// closes it and ends the reception
    #[cfg_attr(not(feature = "window"), doc = "(not in this build: cargo's feature `window`)")]
    #[arg(long, help_heading = "Window")]
    pub(crate) window: bool,
    /// Start in full screen
    #[arg(long, requires = "window", help_heading = "Window")]
    pub(crate) full_screen: bool,
    /// Show the window's statistics from the start
    #[arg(long, requires = "window", help_heading = "Window")]
    pub(crate) statistics: bool,
}
