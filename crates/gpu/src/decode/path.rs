//! The part of the graphics processor that decodes.

use rushes_texture::{Format, Layout};

use crate::decode::texture;
use crate::device::Gpu;

/// The part of the graphics processor that decodes the blocks of a frame.
///
/// Either part reads a copy of the bytes that the main processor wrote. They differ in formats, work
/// and exactness:
///
/// | | [`Octets`](Self::Octets) | [`Texture`](Self::Texture) |
/// |---|---|---|
/// | formats | all | block formats that the device supports ([`Path::is_supported`]) |
/// | work | one decoding for each visible pixel, or four if the frame is scaled | none: done by the texture unit |
/// | rounding | the main processor's | differs from the main processor's by up to 8 of 255 in BC and 14 in YCoCg (NVIDIA), 2 and 4 (Mesa) |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Path {
    /// The fragment shader, from bytes in a buffer.
    Octets,
    /// The texture unit, from a texture of the frame's blocks.
    ///
    /// For `YCoCg`, the shader converts texels to RGB. Blocks that encoders do not produce may look
    /// different: an ETC1 block that overflows is read as ETC2, and an ASTC block that has some
    /// colours of high range may show the others.
    Texture,
}

impl Path {
    /// Returns the faster path for frames of a layout: the texture unit if the device supports the
    /// format.
    ///
    /// With software drivers the texture unit is not faster for BC, so the more exact shader is
    /// used there. Such drivers decode ETC2 and ASTC blocks when they are copied, which is faster
    /// than a shader.
    pub fn best(gpu: &Gpu, layout: &Layout) -> Self {
        let is_bc = matches!(layout.format(), Format::Bc1 | Format::Bc3 | Format::YCoCgBc3);
        let is_slower = gpu.is_software() && is_bc;
        let is_texture = !is_slower && Self::Texture.is_supported(gpu, layout);
        if is_texture { Self::Texture } else { Self::Octets }
    }

    /// Returns whether a device can show frames of a layout by this path.
    pub fn is_supported(self, gpu: &Gpu, layout: &Layout) -> bool {
        match self {
            Self::Octets => {
                layout.bytes() as u64 <= gpu.device.limits().max_storage_buffer_binding_size
            }
            Self::Texture => texture::format_of(layout.format())
                .is_some_and(|format| texture::is_possible(gpu, layout, format)),
        }
    }
}
