//! The traits of the modules that register with a port to receive its datagrams.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use super::Port;

/// The RTCP of one stream.
pub(crate) trait Reports: Send + Sync + fmt::Debug {
    /// Handles a datagram of RTCP.
    fn handle_datagram(&self, port: &Port, now: Instant, from: SocketAddr, datagram: &[u8]);

    /// Sends the datagrams due at `now`; returns when the next one is due.
    fn serve(&self, port: &Port, now: Instant) -> Option<Instant>;

    /// Returns whether events are queued for a hook.
    fn has_events(&self) -> bool;

    /// Calls the application's hook with the queued events.
    fn dispatch(&self);
}

/// A protocol beside RTP and RTCP on the media's own port, such as key agreement.
#[cfg(any(feature = "webrtc", feature = "zrtp"))]
pub(crate) trait SideProtocol: Send + Sync + fmt::Debug {
    /// Returns whether a datagram is of this protocol.
    fn owns(&self, datagram: &[u8]) -> bool;

    /// Handles a datagram that it [owns](Self::owns).
    fn handle_datagram(&self, now: Instant, from: SocketAddr, datagram: &[u8]);

    /// Does what is due at `now`, and returns when something is due next. By default nothing is: the
    /// protocol is driven by the thread that waits for its end.
    fn serve(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Returns the datagrams that tell peers of the end of the port, and their addresses.
    fn leave(&self, _now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        Vec::new()
    }
}
