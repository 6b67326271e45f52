//! The RTP control protocol as one participant lives it: what to report and when, what others
//! report, who collides with whom (RFC 3550 sections 6 and 8, RFC 4585, RFC 5104).
//!
//! [`Participant`] is driven: datagrams and time go in, datagrams and [`ControlEvent`]s come out.
//! How packets look is `rtcp`'s, when they may be sent is `timer`'s; the media itself is
//! `stream`'s, of which only counts are told here ([`MediaSent`], [`Reception`]).

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
