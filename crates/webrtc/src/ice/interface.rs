//! What goes into an agent and what comes out.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::candidate::Candidate;
use super::credentials::Credentials;
use super::turn::{FIRST_CHANNEL, TurnError};

/// What an agent is made of.
///
/// `Debug` shows neither the password nor the random octets.
#[derive(Clone)]
pub struct AgentConfig {
    /// Our credentials, as the description that we send has them.
    pub credentials: Credentials,
    /// Whether we nominate. RFC 8445 section 6.1.1: the offerer, and always a full agent whose peer is lite. If
    /// both ends believe so, the tie-breaker decides.
    pub is_controlling: bool,
    /// Whether the agent is lite: it only answers, and never nominates. For servers with public addresses, whose
    /// peers are full agents.
    pub is_lite: bool,
    /// Unpredictable octets, new for each agent: they make the tie-breaker and the transaction identifiers of
    /// requests to STUN servers.
    pub random: [u8; 32],
}

impl fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AgentConfig");
        shown.field("credentials", &self.credentials).field("is_lite", &self.is_lite);
        shown.field("is_controlling", &self.is_controlling).finish_non_exhaustive()
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// We have a further candidate; send it to the peer.
    LocalCandidate(Candidate),
    /// From now on media goes from `local` to `remote`. May come again, with a better or another pair.
    Selected {
        /// Our address, the base of the local candidate: that of a relayed one is at the TURN server.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
    },
    /// The peer has not answered for 30 seconds: sending media must stop (RFC 7675 section 5.1). Another pair
    /// may be selected; the same one not without a restart.
    Disconnected,
    /// From now on datagrams of `peer` may come in this channel, and no longer those of the peer that it was for
    /// before. Numbers begin with [`Channel::FIRST`], and are used again after 16 minutes at the earliest.
    ChannelOpened {
        /// The channel.
        channel: Channel,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// There is no relayed candidate any more, and no channel: it has failed, or another path carries the media and
    /// the address was given back.
    RelayClosed(Option<TurnError>),
    /// No pair works. Only [`Agent::restart`](super::Agent::restart) helps.
    Failed,
}

/// A channel of a TURN server: data in it goes to one peer (RFC 8656 section 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// The server's address.
    pub server: SocketAddr,
    /// The number before the data, from 0x4000.
    pub number: u16,
}

impl Channel {
    /// The number of the first channel.
    pub const FIRST: u16 = FIRST_CHANNEL;
}

/// A datagram to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The address of ours to send it from: one of those given to [`Agent::add_local`](super::Agent::add_local).
    pub local: SocketAddr,
    /// Where to send it.
    pub to: SocketAddr,
    /// A whole STUN message, or one in a channel of the TURN server.
    pub datagram: Vec<u8>,
}

/// What an agent has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Checks that we sent.
    pub requests_sent: u64,
    /// Valid responses to our checks.
    pub responses_received: u64,
    /// Valid checks of the peer.
    pub requests_received: u64,
    /// STUN messages that were not for us, not authentic, replayed, or too many.
    pub refused: u64,
    /// The last round trip on the selected pair.
    pub round_trip: Option<Duration>,
}
