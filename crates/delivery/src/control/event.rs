//! Events of both sides.

use super::message::{Change, FrameNotice, Nack, Report, ServerStatistics};
use super::offer::{Accept, Offer};
use super::opening::{UnitOpening, Wishes};
use super::reason::Stopped;

/// An event of a server's connection.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The connection belongs to a unit: pass it to the session of the unit, or refuse it. This
    /// state machine has ended.
    Unit(UnitOpening),
    /// The client requests a session: answer with [`Server::offer`](super::Server::offer) or
    /// [`Server::refuse`](super::Server::refuse).
    Wants(Wishes),
    /// The client accepted the offer; its units are to be bound.
    Accepted(Accept),
    /// All units are bound, and the offer of this epoch is in force: its frames may be sent.
    Streaming {
        /// The epoch.
        epoch: u16,
    },
    /// The client requests a change: call [`Server::change`](super::Server::change) or ignore it. Before the first offer
    /// is accepted it waits for another: call [`Server::offer`](super::Server::offer).
    ChangeWanted(Change),
    /// The client's counters.
    Report(Report),
    /// The client requests packets that have not arrived; only if the offer has
    /// [`Abilities::RECOVERY`](super::Abilities::RECOVERY).
    Nack(Nack),
    /// The session has ended: send the remaining octets and close the connection.
    Stopped(Stopped),
}

impl ServerEvent {
    /// Returns whether the event may be discarded in favour of a later one.
    pub(super) fn is_droppable(&self) -> bool {
        matches!(self, Self::ChangeWanted(_) | Self::Report(_) | Self::Nack(_))
    }
}

/// An event of a client's connection.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server makes a first offer, or one for a change: prepare for it, and answer with
    /// [`Client::accept`](super::Client::accept) or [`Client::stop`](super::Client::stop).
    Offered(Box<Offer>),
    /// The offer of this epoch is in force: its frames follow.
    Streaming {
        /// The epoch.
        epoch: u16,
    },
    /// The server announced a frame.
    Frame(FrameNotice),
    /// The server's counters.
    Statistics(ServerStatistics),
    /// The session has ended: send the remaining octets and close the connection.
    Stopped(Stopped),
}

impl ClientEvent {
    /// Returns whether the event may be discarded in favour of a later one.
    pub(super) fn is_droppable(&self) -> bool {
        matches!(self, Self::Frame(_) | Self::Statistics(_))
    }
}
