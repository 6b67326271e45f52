//! What is sent, and how it is received.

use serde::{Deserialize, Serialize};

/// The frame sizes and the frame rate of a stream.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Shape {
    /// Octets of an intra frame, the first of each [`PERIOD`].
    pub(super) intra: usize,
    /// Octets of any other frame.
    pub(super) inter: usize,
    /// Access units per second.
    pub(super) rate: f64,
}

/// Frames from one intra frame to the next.
pub(super) const PERIOD: u64 = 64;

/// The way in which both processes receive frames.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Way {
    Pull,
    PullSpinning,
    Hook,
    HookSpinning,
    Raw,
}

impl Way {
    pub(super) const ALL: [Self; 5] =
        [Self::Pull, Self::PullSpinning, Self::Hook, Self::HookSpinning, Self::Raw];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::PullSpinning => "pull, spinning",
            Self::Hook => "hook",
            Self::HookSpinning => "hook, spinning",
            Self::Raw => "bare",
        }
    }
}
