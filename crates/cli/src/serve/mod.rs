//! `rushes serve`: shows a file or a live source to browsers, and takes what they publish.

mod args;
#[cfg(feature = "webrtc")]
mod capture_clock;
#[cfg(feature = "webrtc")]
mod feed;
#[cfg(feature = "webrtc")]
mod hub;
#[cfg(feature = "webrtc")]
mod output;
#[cfg(feature = "webrtc")]
mod publisher;
#[cfg(feature = "webrtc")]
mod queue;
#[cfg(feature = "webrtc")]
mod recording;
#[cfg(feature = "webrtc")]
mod session;
#[cfg(feature = "webrtc")]
mod sessions;
#[cfg(feature = "webrtc")]
mod share;
#[cfg(feature = "webrtc")]
mod show;
#[cfg(feature = "webrtc")]
#[cfg(test)]
mod tests;
#[cfg(feature = "webrtc")]
mod viewer;
#[cfg(feature = "webrtc")]
mod workers;

pub(crate) use self::args::ServeArgs;
#[cfg(feature = "webrtc")]
pub(crate) use self::show::run;
