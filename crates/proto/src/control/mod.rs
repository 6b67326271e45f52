//! The RTP control protocol of one participant: when and what it reports, the reports of others,
//! and SSRC collisions (RFC 3550 sections 6 and 8, RFC 4585, RFC 5104).
//!
//! [`Participant`] does no I/O: its input is datagrams and time, its output datagrams and
//! [`ControlEvent`]s. The module `rtcp` has the formats of the packets, `timer` decides when they
//! may be sent, and `stream` handles the media, of which this module needs only counts
//! ([`MediaSent`], [`Reception`]).

mod answer;
mod circuit_breaker;
mod clock;
mod compose;
mod config;
mod conflict;
mod event;
mod limits;
mod participant;
mod pending;
mod remote;
mod reported_path;
mod round_trip;
mod secure;
mod sync;

pub use circuit_breaker::CircuitBreaker;
pub use clock::ClockMapping;
pub use config::{MediaSent, ParticipantConfig, Reception};
pub use conflict::Conflict;
pub use event::{ControlEvent, KeyFrameRequest};
pub use participant::{ControlStatistics, Participant};
pub use pending::AppData;
pub use remote::RemoteStatistics;
pub use round_trip::RoundTripTime;
pub use secure::ControlError;
pub use sync::LipSync;
