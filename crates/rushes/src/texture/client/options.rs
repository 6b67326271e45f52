//! How a texture client works.

use std::time::Duration;

use rushes_net::SocketOptions;
use rushes_net::TcpOptions;
use rushes_proto::delivery::control::FormatSet;
use rushes_proto::delivery::control::FrameRate;
use rushes_proto::delivery::control::Transport;
use rushes_proto::delivery::control::TransportSet;
use rushes_proto::delivery::control::Wishes;
use rushes_texture::Format;

/// How a [`TextureClient`](crate::texture::TextureClient) works. Every setting has a default that
/// works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Formats that the sink takes; by default all.
    pub formats: Vec<Format>,
    /// The format wished; by default the server chooses.
    pub format: Option<Format>,
    /// The transport wished; by default the server chooses.
    pub transport: Option<Transport>,
    /// Units wished, up to 64; 0, the default, lets the server choose.
    pub units: u8,
    /// Octets of a packet behind its header, up to 65 503 (TCP: 1 MiB); 0, the default, lets the
    /// server choose.
    pub payload: u32,
    /// Frames per second wished; by default as many as the server has.
    pub rate: Option<FrameRate>,
    /// Octets of a frame that there is memory for, 512 MiB by default. A server that has larger
    /// ones is refused.
    pub frame_bytes_max: usize,
    /// Frames that there is memory for, 2 to 8: 3 by default. One holds the frame handed over last,
    /// so with 2 a frame's packets wait while the one before still has time.
    pub slots: usize,
    /// The shortest wait for missing packets; zero, the default, is the interval between frames,
    /// from 2 to 100 ms: so long may a busy server or client miss its turn.
    pub deadline_min: Duration,
    /// The longest wait for missing packets, and the first: 100 ms by default.
    pub deadline_max: Duration,
    /// Buffers of UDP sockets, and how they receive: 4 MiB by default.
    pub udp: SocketOptions,
    /// Buffers of TCP connections: 4 MiB by default.
    pub tcp: TcpOptions,
    /// How long to wait for the connection to the server: 5 s by default.
    pub connect_timeout: Duration,
    /// How sessions are secured; by default not at all. With it, units travel by RTP only.
    ///
    /// With [`Security::Keys`](crate::Security::Keys) both ends prove that they have the keys before
    /// anything is offered, and the control connection is encrypted. The given keys only
    /// authenticate: each session has its own keys, with forward secrecy. With
    /// [`Security::Zrtp`](crate::Security::Zrtp) the control connection is clear until the units'
    /// streams have agreed on keys, and encrypted from then on, before the first frame. A reason that
    /// the server gives before that is shown as not authenticated.
    #[cfg(feature = "srtp")]
    pub security: Option<crate::Security>,
    #[cfg(not(feature = "srtp"))]
    pub(crate) security: Option<crate::security::Security>,
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
            frame_bytes_max: 512 << 20,
            slots: 3,
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
        let transports = if self.security.is_some() { rtp_alone } else { TransportSet::ALL };
        Wishes {
            formats: self.formats.iter().chain(wished).fold(FormatSet::default(), add),
            transports,
            format: self.format.map_or(0, Format::number),
            transport: self.transport.filter(|&wished| transports.contains(wished)),
            units: self.units,
            payload: self.payload,
            rate: self.rate,
        }
    }
}
