//! Why texture video does not begin, or has ended.

use rushes_net::NetError;
use rushes_proto::delivery::PlanError;
use rushes_texture::Format;
use rushes_texture::LayoutError;
use rushes_texture::TilingError;

/// Why a texture server or client failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextureError {
    /// A socket could not be made, or failed.
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
}
