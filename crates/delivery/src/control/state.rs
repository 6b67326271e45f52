//! The states of a session, which both sides share.

use core::fmt;

/// The state of a session; the tables of states are in the documentation of the module.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// The server waits for an opening, or the client for the answer to its opening.
    Opening,
    /// The server has to make an offer, or the client to answer it.
    Negotiating,
    /// An offer was accepted, and its units are to be bound.
    Binding,
    /// The server sends frames to the client.
    Streaming,
    /// The server sends frames of the old offer while a new one is answered and bound.
    Changing,
    /// The session has ended.
    Stopped,
}

impl State {
    /// Returns whether the server sends frames to the client in this state.
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
