//! The states of a session, which both sides share.

use core::fmt;

/// The state of a session; the tables of states are in the documentation of the module.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// The server waits for an opening, the client for the answer to its own.
    Opening,
    /// An offer is to be made or answered.
    Negotiating,
    /// An offer was accepted; units are to be bound.
    Binding,
    /// Frames go from server to client.
    Streaming,
    /// As `Streaming`, under the old offer, while a new one is answered and bound.
    Changing,
    /// Over.
    Stopped,
}

impl State {
    /// Whether frames go from server to client.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Streaming | Self::Changing)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opening => "opening",
            Self::Negotiating => "negotiating",
            Self::Binding => "binding",
            Self::Streaming => "streaming",
            Self::Changing => "changing",
            Self::Stopped => "stopped",
        })
    }
}
