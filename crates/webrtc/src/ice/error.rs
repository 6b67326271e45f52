//! What an agent refuses from its caller.

use std::net::SocketAddr;

/// Why an agent refused what its caller asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The address cannot be a candidate: unspecified, multicast, broadcast, link-local, or port 0.
    #[error(
        "{0} cannot be a candidate: give an address of this machine and the port of its socket"
    )]
    Address(SocketAddr),
    /// The agent has as many candidates, servers or remote candidates as it may.
    #[error("the agent has {limit} {what} already")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Both user name fragments together do not fit a check's USERNAME.
    #[error("the user name of {length} octets is longer than {limit}: use a shorter ice-ufrag")]
    UserName {
        /// Octets of `remote:local`.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The peer said that it has no further candidates (RFC 8838 section 13).
    #[error("a candidate after end-of-candidates")]
    AfterEnd,
    /// The candidate belongs to other credentials than the peer's: to an earlier or later restart.
    #[error("the candidate belongs to other credentials than the peer's")]
    OtherCredentials,
    /// A lite agent has host candidates only (RFC 8445 section 5.2).
    #[error("a lite agent gathers no candidates from STUN and TURN servers")]
    Lite,
    /// The user name of a TURN server is empty or too long.
    #[error("the user name of a TURN server has {length} octets, not 1 to {limit}")]
    TurnLogin {
        /// Its octets.
        length: usize,
        /// The limit.
        limit: usize,
    },
}
