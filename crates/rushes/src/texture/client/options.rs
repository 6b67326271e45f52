//! Options of a texture client.

use std::time::Duration;

use rushes_delivery::control::{Abilities, FormatSet, FrameRate, Transport, TransportSet, Wishes};
use rushes_net::{SocketOptions, TcpOptions};
use rushes_texture::Format;

/// Options of a [`TextureClient`](crate::texture::TextureClient), each with a working default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Formats that the sink accepts; by default all.
    pub formats: Vec<Format>,
    /// The requested format; by default the server chooses.
    pub format: Option<Format>,
    /// The requested transport; by default the server chooses.
    pub transport: Option<Transport>,
    /// The requested number of units, up to 64; with 0, the default, the server chooses.
    pub units: u8,
    /// The requested octets of a packet after its header, up to 65 503 (TCP: 1 MiB); with 0, the
    /// default, the server chooses.
    pub payload: u32,
    /// The requested frames per second; by default those of the server's source.
    pub rate: Option<FrameRate>,
    /// The largest width and height of frames, in pixels; by default those of the server's source.
    ///
    /// The server scales larger pictures down to the largest size that fits, with the same ratio of the sides; it
    /// scales none up. One of an older release, or that cannot scale its pictures, sends them as they are, which
    /// [`TextureClient::shape`](crate::texture::TextureClient::shape) shows. A size with a 0 in it is none.
    pub size_max: Option<(u32, u32)>,
    /// Maximum bytes of a frame in memory, 512 MiB by default. The client refuses offers of larger
    /// frames.
    pub frame_bytes_max: usize,
    /// Number of frames held in memory, 2 to 8. One of them is the last delivered frame, so with 2 the
    /// packets of a frame wait until the previous frame has ended.
    ///
    /// 0, the default, means 3 and, with [`recovery`](Self::recovery) over UDP, those that arrive while a
    /// frame waits for packets that are sent again: up to 8 in all, with at most 256 MiB more.
    pub slots: usize,
    /// Whether packets that did not arrive are requested (UDP and multicast); on by default. The server must support it.
    ///
    /// A packet is requested if later ones of its stripe have arrived, up to three times, while an answer
    /// can arrive within [`deadline_max`](Self::deadline_max). Until then its frame waits, and those after
    /// it. A client of a multicast group requests packets if the server supports it, whatever this is.
    pub recovery: bool,
    /// Whether packed stripes are received; on by default. The server decides whether to send any
    /// ([`ServerOptions::packing`](crate::texture::ServerOptions::packing)).
    ///
    /// They are unpacked from memory that is at most as large as that of the frames, straight into
    /// the sink's.
    pub packing: bool,
    /// The shortest wait for missing packets, from the latest packet of their frame on: a server
    /// spreads the packets of a frame over its interval.
    ///
    /// Zero, the default, means the interval between frames, limited to 2 to 100 ms: a busy server
    /// or client may be that late.
    pub deadline_min: Duration,
    /// The longest wait for missing packets, from the latest packet of their frame on, and that for
    /// the first frame: 100 ms by default. While packets of a frame arrive, however slowly, it does
    /// not end, nor, for up to 100 ms more, while a thread of the client is late (UDP).
    pub deadline_max: Duration,
    /// Buffers of UDP sockets, 4 MiB by default, and their receiving options.
    pub udp: SocketOptions,
    /// Buffers of TCP connections: 4 MiB by default.
    pub tcp: TcpOptions,
    /// Time limit for connecting to the server: 5 s by default.
    pub connect_timeout: Duration,
    /// Security of sessions; none by default. With it, units travel by RTP only.
    ///
    /// With [`Security::Keys`](crate::Security::Keys) both ends prove that they have the keys
    /// before any offer is made, and the control connection is encrypted. The given keys only
    /// authenticate: each session has its own keys, with forward secrecy. With
    /// [`Security::Zrtp`](crate::Security::Zrtp) the control connection is clear until the units'
    /// streams have agreed on keys, and encrypted from then on, before the first frame. A reason
    /// for the end that the server sends before that is reported as not authenticated.
    pub security: Option<crate::security::Security>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            formats: Format::ALL.to_vec(),
            format: None,
            transport: None,
            units: 0,
            payload: 0,
            rate: None,
            size_max: None,
            frame_bytes_max: 512 << 20,
            slots: 0,
            recovery: true,
            packing: true,
            deadline_min: Duration::ZERO,
            deadline_max: Duration::from_millis(100),
            udp: SocketOptions::default(),
            tcp: TcpOptions::default(),
            connect_timeout: Duration::from_secs(5),
            security: None,
        }
    }
}

impl ClientOptions {
    pub(super) fn wishes(&self) -> Wishes {
        let add = |set: FormatSet, format: &Format| set.with(format.number());
        let wished = self.format.iter();
        let rtp_alone = TransportSet::default().with(Transport::Rtp);
        let is_of_group = self.transport == Some(Transport::Multicast);
        let transports = match self.security {
            Some(_) => rtp_alone,
            None if is_of_group => TransportSet::ALL.with(Transport::Multicast),
            None => TransportSet::ALL,
        };
        // Other clients of a group request packets, too.
        let recovery = self.recovery || is_of_group;
        Wishes {
            formats: self.formats.iter().chain(wished).fold(FormatSet::default(), add),
            transports,
            format: self.format.map_or(0, Format::number),
            transport: self.transport.filter(|&wished| transports.contains(wished)),
            units: self.units,
            payload: self.payload,
            rate: self.rate,
            abilities: [(recovery, Abilities::RECOVERY), (self.packing, Abilities::PACKING)]
                .into_iter()
                .filter(|(is_used, _)| *is_used)
                .fold(
                    Abilities::FEC.with(Abilities::COLOUR).with(Abilities::SIZES),
                    |abilities, (_, ability)| abilities.with(ability),
                ),
        }
    }
}
