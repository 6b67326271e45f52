//! Setting streams up: context, session, builder, and the opening of a stream.

mod builder;
mod context;
mod control;
mod destinations;
mod fec;
mod open;
#[cfg(any(feature = "webrtc", feature = "zrtp"))]
mod opening;
mod security;
mod session;

pub use self::builder::StreamBuilder;
pub use self::context::Context;
pub use self::control::Recovery;
pub use self::fec::Fec;
#[cfg(feature = "webrtc")]
pub(crate) use self::open::random_ssrc_except;
#[cfg(any(feature = "webrtc", feature = "zrtp"))]
pub use self::opening::Opening;
#[cfg(feature = "webrtc")]
pub(crate) use self::session::ControlPort;
pub use self::session::Session;
