//! The RTP control protocol of one participant: when and what it reports, the reports of others,
//! and SSRC collisions (RFC 3550 sections 6 and 8, RFC 4585, RFC 5104).
//!
//! [`Participant`] does no I/O: datagrams and time go in, datagrams and [`ControlEvent`]s come out.
//! The module `rtcp` has the packets' formats, `timer` decides when they may be sent, and `stream`
//! handles the media, of which only counts are needed here ([`MediaSent`], [`Reception`]).

mod answer;
mod clock;
mod compose;
mod config;
mod conflict;
mod event;
mod limits;
mod participant;
mod pending;
mod remote;
mod round_trip;
mod secure;
mod sync;

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
