//! What a stream has done so far, in one snapshot.

use rushes_net::Counters;
use rushes_proto::stream::{ReceiveStatistics, SendStatistics};

/// A stream's counters at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Frames and packets sent.
    pub send: SendStatistics,
    /// Frames and packets received, lost and discarded, in all and by source.
    pub receive: ReceiveStatistics,
    /// System calls and datagrams of the socket; streams on one port share them.
    pub socket: Counters,
    /// Datagrams from other hosts than the session's peer, and reports in the name of a media
    /// source from elsewhere, ignored; by socket.
    pub foreign: u64,
    /// Datagrams that no stream on the port takes; by socket.
    pub unrouted: u64,
    /// Datagrams turned away because the stream's finished frames were not collected.
    pub uncollected: u64,
}
