//! Which part of the graphics processor decodes.

use rushes_texture::{Format, Layout};

use crate::decode::texture;
use crate::device::Gpu;

/// Who decodes the blocks of a frame.
///
/// Both take the same octets by one copy, from memory that the processor wrote. They differ in what
/// they can read and how exactly:
///
/// | | [`Octets`](Self::Octets) | [`Texture`](Self::Texture) |
/// |---|---|---|
/// | formats | all | of blocks, where the device has them ([`Path::can_be`]) |
/// | work | for each pixel shown, four times where scaled | none: the texture unit's |
/// | rounding | the processor's own | the device's: of BC up to 8 of 255 apart, of YCoCg 14 (NVIDIA); 2 and 4 (Mesa) |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Path {
    /// The fragment shader, from octets in a buffer.
    Octets,
    /// The texture unit, from a texture of the frame's blocks. The shader makes RGB of `YCoCg`.
    ///
    /// Blocks that encoders do not make may look otherwise: one of ETC1 that overflows is read as
    /// one of ETC2, and one of ASTC with some colours of high range can have its others shown.
    Texture,
}

impl Path {
    /// The faster path for frames of a layout: the texture unit where the device has the format.
    ///
    /// A software driver gains nothing by it for BC, so there it is the shader, which is more exact;
    /// blocks of ETC2 and ASTC such drivers decode when they are copied, faster than a shader does.
    pub fn best(gpu: &Gpu, layout: &Layout) -> Self {
        let is_bc = matches!(layout.format(), Format::Bc1 | Format::Bc3 | Format::YCoCgBc3);
        let is_slower = gpu.is_software() && is_bc;
        let is_texture = !is_slower && Self::Texture.can_be(gpu, layout);
        if is_texture { Self::Texture } else { Self::Octets }
    }

    /// Whether a device can show frames of a layout so.
    pub fn can_be(self, gpu: &Gpu, layout: &Layout) -> bool {
        match self {
            Self::Octets => {
                layout.bytes() as u64 <= gpu.device.limits().max_storage_buffer_binding_size
            }
            Self::Texture => texture::format_of(layout.format())
                .is_some_and(|format| texture::is_possible(gpu, layout, format)),
        }
    }
}
