//! The traits of the modules that register with a port to receive its datagrams.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use rushes_proto::Ssrc;

use super::{Inbox, Port};

/// The RTCP of one stream.
pub(crate) trait Reports: Send + Sync + fmt::Debug {
    /// Handles a datagram of RTCP; returns whether it was accepted. If it was, and datagrams are protected,
    /// `read` is called with the datagram as it was before its protection; it must not call the stream.
    fn handle_datagram(
        &self,
        port: &Port,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> bool;

    /// Adds the SSRCs that concern the stream: its own, those of the media that it receives, and those of
    /// peers that report on its media.
    fn add_ssrcs(&self, ssrcs: &mut Vec<Ssrc>);

    /// Adds the addresses to which the stream sends media and reports, as far as they are configured.
    fn add_addresses(&self, addresses: &mut Vec<SocketAddr>);

    /// Returns the receiving half of the stream, which keeps the stream's place on the port.
    fn inbox(&self) -> &Inbox;

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
