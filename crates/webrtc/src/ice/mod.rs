//! Which pair of addresses carries the media (ICE, RFC 8445).
//!
//! An [`Agent`] gathers candidates ([`Candidate`]), checks each of them against those of the peer by STUN
//! (RFC 8489), selects a pair that works, and watches it (consent, RFC 7675). Candidates may arrive at any
//! time (trickle ICE, RFC 8838). The state machine of the checks is that of the crate `is`.
//!
//! **What the crate `is` draws itself.** The transaction identifiers of checks come from a generator that
//! is not cryptographic. A response counts only if its MESSAGE-INTEGRITY is right, so that a guessed
//! identifier is worth nothing. Everything else that must be unpredictable is made from octets of the caller:
//! credentials, tie-breaker, and the transaction identifiers of requests to STUN servers, whose responses
//! nothing else protects.
//!
//! **Relayed candidates** (TURN, RFC 8656) come from a server over UDP, IPv4 addresses only. They have the lowest
//! priority, so that they carry media only where nothing else does: between two NATs if one maps each destination to a
//! port of its own (symmetric) and the other maps or filters by destination and port. Without a relay the agent
//! then fails after 39.5 seconds ([`Event::Failed`]). The caller frames the media of such a pair itself, by
//! [`Agent::channel`], so that it can send in batches.
//!
//! **Not in scope.** TURN over TCP and TLS, ICE over TCP (RFC 6544), several components (RTCP is
//! multiplexed, RFC 5761) and names of multicast DNS: see [`CandidateError`].

mod agent;
mod budget;
mod candidate;
mod checks;
mod credentials;
mod error;
mod gather;
mod identifiers;
mod interface;
mod paths;
mod stun;
mod turn;

pub use agent::{Agent, PACING, Relayed};
pub use candidate::{Candidate, CandidateError, CandidateKind};
pub use credentials::{Credentials, CredentialsError};
pub use error::AgentError;
pub use interface::{AgentConfig, Channel, Event, Statistics, Transmit};
pub use stun::ufrags_of;
pub use turn::{TurnError, TurnServer};
