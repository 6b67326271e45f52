//! A stream as other threads may ask and tell it.

use std::net::SocketAddr;

use rushes_proto::Ssrc;

use crate::receiver::SharedReceiver;
use crate::rtcp::Rtcp;
use crate::stats::Statistics;

/// What a stream can be asked and told while its halves are at work on other threads, or a hook has
/// its frames; made by [`MediaStream::handle`](crate::MediaStream::handle).
///
/// Cheap to clone; a clone is the same stream's. A handle keeps the stream's socket and RTCP open.
#[derive(Clone, Debug)]
pub struct StreamHandle {
    pub(crate) shared: SharedReceiver,
}

impl StreamHandle {
    /// The stream's counters.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    /// The stream's RTCP: reports, requests, BYE.
    pub fn rtcp(&self) -> Rtcp {
        Rtcp { reporting: self.shared.reporting.clone() }
    }

    /// The stream's own synchronisation source; a collision may change it.
    pub fn ssrc(&self) -> Ssrc {
        self.shared.sending.ssrc()
    }

    /// The local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.port.local_address()
    }
}
