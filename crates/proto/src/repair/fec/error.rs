//! Why a repair packet is not used.

use thiserror::Error;

/// Why a repair packet is not used.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FecError {
    /// The FEC header exceeds the packet.
    #[error("a FEC header needs {need} octets, and the packet has {have}")]
    Truncated {
        /// Octets that the header needs.
        need: usize,
        /// Octets of the packet.
        have: usize,
    },
    /// The variant of the FEC header is reserved, or its fields contradict each other.
    #[error("the FEC header has a reserved variant or value")]
    Reserved,
    /// The repair packet protects no packet, or packets of several sources, which are not supported.
    #[error("the repair packet protects {0} sources, not one")]
    Sources(usize),
    /// The repair packet protects another source.
    #[error("the repair packet protects another source")]
    OtherSource,
    /// The protected packets are not in the decoder's window.
    #[error("the protected packets are outside the window")]
    OutsideWindow,
    /// The repair packet is longer than the decoder's limit.
    #[error("a repair packet of {0} octets exceeds the limit")]
    TooLong(usize),
}
