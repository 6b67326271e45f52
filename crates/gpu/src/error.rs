//! Why the graphics processor cannot be used.

/// What keeps frames from being drawn or encoded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No driver answers.
    #[error(
        "no graphics driver was found ({0}); a machine without a graphics processor can draw with \
         Mesa's software drivers (Debian and Ubuntu: mesa-vulkan-drivers, or libgl1-mesa-dri)"
    )]
    NoDriver(String),
    /// The driver is there and refuses.
    #[error("the graphics driver {driver} gives no device: {reason}")]
    NoDevice {
        /// The adapter's name.
        driver: String,
        /// In the driver's words.
        reason: String,
    },
    /// A frame is larger than the device can read.
    #[error("a frame of {octets} octets is more than {driver} can read at once, {most}")]
    TooLarge {
        /// Octets of the frame.
        octets: u64,
        /// Octets that the device can read.
        most: u64,
        /// The adapter's name.
        driver: String,
    },
    /// The device cannot do what was asked for by name.
    #[error("{driver} has no {what}")]
    Unsupported {
        /// The adapter's name.
        driver: String,
        /// What is lacking.
        what: String,
    },
    /// A size that no frame has, or a picture of another length than it must.
    #[error(transparent)]
    Codec(#[from] rushes_texture::CodecError),
    /// The device stopped working.
    #[error("the graphics device was lost or refused work: {0}")]
    Device(String),
}
