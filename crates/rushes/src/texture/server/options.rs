//! Options of a texture server.

use std::time::Duration;

use rushes_delivery::control::Transport;
use rushes_net::{SocketOptions, TcpOptions};
use rushes_texture::{Format, Quality};

use super::fec::Fec;
use super::feed::Timing;
use super::group::MulticastGroup;
use super::ladder::Adaptation;
use super::places::Limits;
use crate::pace::{Burst, Pacing};

/// Options of a [`TextureServer`](crate::texture::TextureServer), each with a working default.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct ServerOptions {
    /// The format of frames for clients that do not request one; by default the source's own.
    pub format: Option<Format>,
    /// How near to the pictures the blocks of BC1, BC3 and YCoCg-BC3 are, for all clients;
    /// [`Quality::Fast`] by default.
    ///
    /// Pictures that already are in the format of the frames are sent as they are in either quality, those of a
    /// graphics processor among them.
    pub quality: Quality,
    /// The transport of units for clients that do not request one; UDP by default.
    pub transport: Transport,
    /// Units of a frame for clients that do not request a number, 1 to 64.
    ///
    /// Each has a socket and a thread. All clients together have at most 128, or
    /// [`clients_max`](Self::clients_max) times this number if that is more. The default is the
    /// number of processors, at most 8.
    pub units: usize,
    /// Octets of a packet after its header of four octets, for clients that do not request a size.
    ///
    /// 0, the default, means 1 408 over UDP, 262 144 over TCP, and over RTP the largest size that
    /// fits an IP packet of 1 500 octets.
    pub payload: usize,
    /// Maximum octets of a unit in flight (UDP): 4 MiB by default, like a client's socket buffer.
    ///
    /// It is at least 1 MiB and at most the number that the client announces. The unit waits for
    /// the client's credits, so that no full socket buffer drops packets on a fast path. Over RTP
    /// there are no credits.
    pub in_flight: usize,
    /// How the packets of a frame are spread over time, over UDP and RTP, by all units of one client
    /// together: by default over 0.9 of the frame interval.
    ///
    /// A link that the frames fill by up to this share then needs no more queue than a
    /// [burst](Self::burst), and a frame arrives as much later. [`Pacing::Off`] sends a frame as
    /// fast as the client reports that it can receive it, for links whose queue holds a frame.
    /// [`Timing::FlatOut`] has no intervals: instead of by a share of them, RTP and multicast are then paced at
    /// 10 Gbit/s, and UDP is not paced. To a multicast group, frames without pacing are sent as fast as this
    /// machine can.
    pub pacing: Pacing,
    /// The largest burst of all units of one client together, unless [`pacing`](Self::pacing) is
    /// off.
    pub burst: Burst,
    /// How the format and the rate follow the losses that a client reports; both by default.
    pub adaptation: Adaptation,
    /// Whether packets are sent again that a client requests (UDP and multicast); on by default.
    ///
    /// A client requests packets that did not arrive if an answer can be in time for their frame
    /// ([`ClientOptions::recovery`](crate::texture::ClientOptions::recovery)). It may request a quarter
    /// as many as it is sent, each three times. For that, the server keeps the pictures of the last 0.15 s
    /// until the next one begins, up to eight and 64 MiB of them besides the latest.
    pub recovery: bool,
    /// The repair packets for clients by UDP and multicast that use them; none by default.
    ///
    /// They cost bit rate whether packets are lost or not, but no round trip. Each stripe is followed by its own. A
    /// client requests only what they cannot recover.
    ///
    /// As nothing authenticates packets over plain UDP, so nothing authenticates repair packets: octets that are
    /// computed from a forged packet are wrong, too. They replace none that arrived.
    pub fec: Fec,
    /// Whether stripes are packed for clients that can unpack them; off by default.
    ///
    /// A stripe has up to 32 KiB of blocks, or about 250 KiB of pixels. One whose pixels are those of the frame
    /// before is reported as unchanged, and is not encoded. The others are LZ4 blocks, where that saves half at least.
    /// Clients with repair packets ([`fec`](Self::fec)) get neither. For the comparison the server keeps the picture of the last frame.
    /// Over UDP and RTP each stripe is sent nonetheless once in as many frames as make a second at the source's
    /// rate, because packets may be lost. A stripe of a frame that is still being made, as those of a graphics
    /// processor, cannot be compared, and is sent.
    pub packing: bool,
    /// Whether pictures are scaled down for clients that request a largest size
    /// ([`ClientOptions::size_max`](crate::texture::ClientOptions::size_max)); on by default.
    ///
    /// Each size takes time for each picture, however many clients have it. Pictures that are blocks or RGB 5:6:5
    /// already are sent as they are, as are those of the multicast group.
    pub scaling: bool,
    /// The multicast group to which frames are sent once for all clients that request
    /// [`Transport::Multicast`]; none by default.
    ///
    /// All of them get the same frames: in the format that the first one requested, or [`format`](Self::format), at
    /// the source's rate, with [`units`](Self::units) and [`payload`](Self::payload), without adaptation and packing.
    /// Requested packets are sent again to the group, of which all clients together may request a quarter as many as
    /// are sent, and each as much of that as it leaves to the others. [`Fec::ByLoss`] adds no repair packets, [`Fec::Percent`] does. Nothing is encrypted. Each client has a
    /// control connection, to the same address of the server, and counts as a session.
    pub multicast: Option<MulticastGroup>,
    /// Maximum sessions; further clients are refused as busy. 8 by default.
    pub clients_max: usize,
    /// Maximum sessions of one host: an IPv4 address, or an IPv6 network of 64 bits. 4 by default.
    ///
    /// The limit prevents one host from taking all sessions.
    pub clients_per_host_max: usize,
    /// When pictures are taken from the source.
    pub timing: Timing,
    /// Whether the source restarts at its end; otherwise its end ends the sessions.
    pub loops: bool,
    /// Buffers of UDP sockets, 4 MiB by default, and their sending options.
    pub udp: SocketOptions,
    /// Buffers of TCP connections: 4 MiB by default.
    pub tcp: TcpOptions,
    /// Security of sessions; none by default. With it, units travel by RTP only.
    ///
    /// With [`Security::Keys`](crate::Security::Keys) both ends prove that they have the keys
    /// before any offer is made, and the control connection is encrypted. The given keys only
    /// authenticate: each session has its own keys, with forward secrecy. With
    /// [`Security::Zrtp`](crate::Security::Zrtp) the control connection is clear until the units'
    /// streams have agreed on keys, and encrypted from then on, before the first frame: a change of
    /// the offer on the path is detected then, and an eavesdropper can read only the offer.
    pub security: Option<crate::security::Security>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            format: None,
            quality: Quality::default(),
            transport: Transport::Udp,
            units: processors.clamp(1, 8),
            payload: 0,
            in_flight: 4 << 20,
            pacing: Pacing::default(),
            burst: Burst::default(),
            adaptation: Adaptation::default(),
            recovery: true,
            fec: Fec::default(),
            packing: false,
            scaling: true,
            multicast: None,
            clients_max: 8,
            clients_per_host_max: 4,
            timing: Timing::Live,
            loops: false,
            udp: SocketOptions::default(),
            tcp: TcpOptions::default(),
            security: None,
        }
    }
}

impl ServerOptions {
    /// Returns the pacing of a client's units.
    pub(super) fn paced(&self, transport: Transport) -> (Pacing, Burst) {
        match (self.timing, self.pacing, transport) {
            (Timing::FlatOut, Pacing::Share(_), Transport::Rtp | Transport::Multicast) => {
                (Pacing::Rate(RTP_BIT_RATE), RTP_BURST)
            }
            (Timing::FlatOut, Pacing::Share(_), _) => (Pacing::Off, self.burst),
            (_, pacing, _) => (pacing, self.burst),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { all: self.clients_max, per_host: self.clients_per_host_max, units: self.units }
    }
}

/// The rate at which one core receives secured RTP while another sends it.
const RTP_BIT_RATE: u64 = 10_000_000_000;

/// The burst at that rate: a quarter of the default socket buffer.
const RTP_BURST: Burst = Burst { octets: 1 << 20, time: Duration::from_millis(1) };

/// Returns the default octets of a packet.
pub(super) fn default_payload(transport: Transport) -> usize {
    match transport {
        Transport::Udp | Transport::Multicast => 1_408,
        Transport::Tcp => 256 * 1024,
        // 1 500 less IPv6, UDP, RTP, the header of four and the longest tag of SRTP.
        Transport::Rtp => 1_500 - 40 - 8 - 12 - 4 - 16,
    }
}

/// Time limit for sending the current frame before a session changes.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(2);
