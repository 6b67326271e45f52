//! A stream's counters, in one snapshot.

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
    /// Ignored datagrams from hosts other than the session's peer, and ignored reports that claim
    /// the SSRC of a media source but come from another address; per socket.
    pub foreign: u64,
    /// Datagrams that match no stream on the port; per socket.
    pub unrouted: u64,
    /// Datagrams dropped because too many finished frames of the stream had not been pulled.
    pub uncollected: u64,
}
