//! Errors of texture video.

use rushes_delivery::PlanError;
use rushes_delivery::control::Stopped;
use rushes_net::NetError;
use rushes_texture::{CodecError, LayoutError, TilingError};

/// Why a texture server or client failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextureError {
    /// A socket could not be created, or failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A frame cannot have this size.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A frame cannot be cut into these units.
    #[error(transparent)]
    Tiling(#[from] TilingError),
    /// A frame cannot be cut into these packets.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Pictures cannot become frames of this format.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A stream of RTP could not be opened, or the pacing is out of range.
    #[error(transparent)]
    Stream(#[from] crate::error::Error),
    /// The address is not that of a multicast group, with a port for each of 64 units.
    #[error("{0} is not a multicast group with a port from 1 to 65472, such as 239.255.0.1:7100")]
    Group(std::net::SocketAddr),
    /// The operating system could not start a thread.
    #[error("no thread could be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The other side refused, was silent for too long, or violated the protocol.
    #[error("{0}")]
    Ended(Stopped),
    /// The sink has no memory for the frames, or a unit failed.
    #[error("{0}")]
    Failed(String),
}
