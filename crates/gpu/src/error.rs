//! Errors of the graphics processor.

/// An error that prevents frames from being drawn or encoded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No driver was found.
    #[error(
        "no graphics driver was found ({0}); a machine without a graphics processor can draw with \
         Mesa's software drivers (Debian and Ubuntu: mesa-vulkan-drivers, or libgl1-mesa-dri)"
    )]
    NoDriver(String),
    /// The driver does not provide a device.
    #[error("the graphics driver {driver} provides no device: {reason}")]
    NoDevice {
        /// The adapter's name.
        driver: String,
        /// The driver's error message.
        reason: String,
    },
    /// A frame is larger than the device can read.
    #[error("a frame of {octets} bytes is too large: {driver} can read at most {most} at once")]
    TooLarge {
        /// Bytes of the frame.
        octets: u64,
        /// Bytes that the device can read.
        most: u64,
        /// The adapter's name.
        driver: String,
    },
    /// The device does not support a requested feature.
    #[error("{driver} does not provide {what}")]
    Unsupported {
        /// The adapter's name.
        driver: String,
        /// The missing feature.
        what: String,
    },
    /// An invalid frame size, or a picture of the wrong length.
    #[error(transparent)]
    Codec(#[from] rushes_texture::CodecError),
    /// The device stopped working.
    #[error("the graphics device was lost or refused work: {0}")]
    Device(String),
}
