//! The sizes and times of a stream's frames.

/// The frame sizes and the frame rate of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Octets of an intra frame, the first of each [`PERIOD`].
    pub(crate) intra: usize,
    /// Octets of any other frame.
    pub(crate) inter: usize,
    /// Access units per second.
    pub(crate) rate: f64,
}

/// Frames from one intra frame to the next.
pub(crate) const PERIOD: u64 = 64;
