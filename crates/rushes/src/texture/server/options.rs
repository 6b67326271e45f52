//! How a texture server works.

use std::time::Duration;

use rushes_net::SocketOptions;
use rushes_net::TcpOptions;
use rushes_proto::delivery::control::Transport;
use rushes_texture::Format;

use super::feed::Timing;
use super::places::Limits;

/// How a [`TextureServer`](crate::texture::TextureServer) works. Every setting has a default that
/// works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// What frames are encoded to for clients that do not wish otherwise; by default the source's
    /// own format.
    pub format: Option<Format>,
    /// How units travel for clients that do not wish otherwise; UDP by default.
    pub transport: Transport,
    /// Units of a frame for clients that do not wish otherwise, 1 to 64: each has a socket and a
    /// thread. All clients together have 128, or more only if this number for each comes to more. By default as many as there are processors, but no more than 8.
    pub units: usize,
    /// Octets of a packet behind its header of four, for clients that do not wish otherwise; 0, the
    /// default, is 1 408 over UDP, 262 144 over TCP, and what fits 1 500 octets of IP over RTP.
    pub payload: usize,
    /// Octets that a unit may have on their way (UDP): 4 MiB by default and 1 MiB at least, as many as a client's
    /// socket buffers, and never more than it says that it does. The unit waits for the client to
    /// say what came, so that a fast path loses nothing in a full socket. Over RTP nobody says so: a
    /// quarter goes out at once, and the rest at [`bit_rate`](Self::bit_rate).
    pub in_flight: usize,
    /// Bits per second at which the units of one client send together; 0, the default, does not
    /// pace UDP, and RTP at 10 Gbit/s.
    pub bit_rate: u64,
    /// Sessions at once; more clients are told to come again later. 8 by default.
    pub clients_max: usize,
    /// Sessions at once of one IPv4 address, or of one IPv6 network of 64 bits, so that no host takes
    /// everybody's place. 4 by default.
    pub clients_per_host_max: usize,
    /// When pictures are taken from the source.
    pub timing: Timing,
    /// Whether the source begins again at its end; else its end ends the sessions.
    pub loops: bool,
    /// Buffers of UDP sockets, and how they send: 4 MiB by default.
    pub udp: SocketOptions,
    /// Buffers of TCP connections: 4 MiB by default.
    pub tcp: TcpOptions,
    /// How sessions are secured; by default not at all. With it, units travel by RTP only.
    ///
    /// With [`Security::Keys`](crate::Security::Keys) both ends prove that they have the keys before
    /// anything is offered, and the control connection is encrypted. The given keys only
    /// authenticate: each session has its own keys, with forward secrecy. With
    /// [`Security::Zrtp`](crate::Security::Zrtp) the control connection is clear until the units'
    /// streams have agreed on keys, and encrypted from then on, before the first frame: what anyone on
    /// the path has changed in the offer is found then, and what anyone may have read is the offer.
    #[cfg(feature = "srtp")]
    pub security: Option<crate::Security>,
    #[cfg(not(feature = "srtp"))]
    pub(crate) security: Option<crate::security::Security>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            format: None,
            transport: Transport::Udp,
            units: processors.clamp(1, 8),
            payload: 0,
            in_flight: 4 << 20,
            bit_rate: 0,
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
    /// Bits per second at which all units of a client send; 0 for as fast as they can.
    pub(super) fn paced(&self, transport: Transport) -> u64 {
        match (self.bit_rate, transport) {
            (0, Transport::Rtp) => RTP_BIT_RATE,
            (bit_rate, _) => bit_rate,
        }
    }
}

impl ServerOptions {
    pub(super) fn limits(&self) -> Limits {
        Limits { all: self.clients_max, per_host: self.clients_per_host_max, units: self.units }
    }

    /// Octets that a unit may send at once, whatever the rate.
    pub(super) fn burst(&self, transport: Transport) -> usize {
        if transport == Transport::Rtp { self.in_flight / 4 } else { self.in_flight }
    }
}

/// What a core receives of RTP, secured, while another sends.
const RTP_BIT_RATE: u64 = 10_000_000_000;

/// Octets of a packet where nobody wishes otherwise.
pub(super) fn default_payload(transport: Transport) -> usize {
    match transport {
        Transport::Udp => 1_408,
        Transport::Tcp => 256 * 1024,
        // 1 500 less IPv6, UDP, RTP, the header of four and the longest tag of SRTP.
        Transport::Rtp => 1_500 - 40 - 8 - 12 - 4 - 16,
    }
}

/// How long the frame under way may take to be sent before a session changes.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(2);
