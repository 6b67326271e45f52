//! The RTCP of a stream: [`Rtcp`] for the application, the reporter on the port, and the
//! participant of `rushes-proto` behind it.

mod arrivals;
mod attached;
mod events;
mod origins;
mod reporter;
mod rtcp;

pub(crate) use self::attached::Attached;
pub(crate) use self::reporter::{Reporter, ReporterConfig};
pub use self::rtcp::Rtcp;
