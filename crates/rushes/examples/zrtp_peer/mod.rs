//! A ZRTP endpoint with its sockets, clock, files and media, for tests against other endpoints.

pub(crate) mod endpoint;
pub(crate) mod faults;
pub(crate) mod hex;
mod media;
pub(crate) mod options;
mod report;
mod store;
mod wire;
