//! What each side is told.

use super::message::Change;
use super::message::FrameNotice;
use super::message::Report;
use super::message::ServerStatistics;
use super::offer::Accept;
use super::offer::Offer;
use super::opening::UnitOpening;
use super::opening::Wishes;
use super::reason::Stopped;

/// What a server is told of its client.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The connection is a unit's: look for its session, and give it to that, or refuse it. This
    /// state machine is done.
    Unit(UnitOpening),
    /// The client wants a session: answer with [`Server::offer`](super::Server::offer) or
    /// [`Server::refuse`](super::Server::refuse).
    Wants(Wishes),
    /// The client accepted the offer; its units are to be bound.
    Accepted(Accept),
    /// All units are bound, and the offer of this epoch holds: frames from its first on may be sent.
    Streaming {
        /// The epoch.
        epoch: u16,
    },
    /// The client would have something otherwise: answer with
    /// [`Server::change`](super::Server::change), or not at all.
    ChangeWanted(Change),
    /// What the client has seen so far.
    Report(Report),
    /// Over: send what waits, and close the connection.
    Stopped(Stopped),
}

impl ServerEvent {
    /// Whether a later one replaces it.
    pub(super) fn can_be_missed(&self) -> bool {
        matches!(self, Self::ChangeWanted(_) | Self::Report(_))
    }
}

/// What a client is told of its server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// A first offer, or one for a change: make what it needs, and answer with
    /// [`Client::accept`](super::Client::accept) or [`Client::stop`](super::Client::stop).
    Offered(Box<Offer>),
    /// The offer of this epoch holds: frames from its first on come by it.
    Streaming {
        /// The epoch.
        epoch: u16,
    },
    /// A frame is on its way.
    Frame(FrameNotice),
    /// What the server has done so far.
    Statistics(ServerStatistics),
    /// Over: send what waits, and close the connection.
    Stopped(Stopped),
}

impl ClientEvent {
    /// Whether a later one replaces it.
    pub(super) fn can_be_missed(&self) -> bool {
        matches!(self, Self::Frame(_) | Self::Statistics(_))
    }
}
