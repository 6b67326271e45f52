//! The common part of both ends of texture video over RTP.

use std::sync::Arc;
#[cfg(feature = "zrtp")]
use std::time::Duration;

use rushes_net::SocketOptions;
use rushes_proto::payload::texture::Texture;
use rushes_proto::{ClockRate, PayloadType, Ssrc};

use crate::error::Error;
use crate::media::MediaStream;
use crate::pace::Pacing;
use crate::security::Security;
use crate::setup::{Session, StreamBuilder};

/// The clock of the timestamps.
pub(super) const CLOCK_RATE: ClockRate = ClockRate::VIDEO;

/// Octets of a packet besides its payload: headers of RTP, unit, IP and UDP, the longest tag, a
/// reserve.
const OVERHEAD: usize = 128;

/// Maximum octets of a packet after its header in a datagram.
pub(super) const PAYLOAD_MAX: usize = 65_535 - OVERHEAD;

/// Interval at which a wait for keys checks whether to stop.
#[cfg(feature = "zrtp")]
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Sets up the stream of one unit, between these two sources.
pub(super) fn stream(
    session: &Session,
    payload: usize,
    (own, peer): (Ssrc, Ssrc),
    (security, udp): (Option<&Security>, &SocketOptions),
) -> StreamBuilder {
    let mut builder = session
        .stream_of(Arc::new(Texture { payload }), PayloadType::TEXTURE)
        .ssrc(own)
        .remote_ssrc(peer)
        .rtcp_mux(true)
        // Frames that lose packets are given up, and the control connection ends with the client.
        .circuit_breakers(false)
        .pacing(Pacing::Off)
        .mtu((payload + OVERHEAD).min(65_535))
        .secured_if(security);
    builder.socket = udp.clone();
    builder.frame.packed = true;
    builder
}

/// A stream that is open, or whose keys are being agreed on.
pub(super) enum PendingStream {
    Open(Box<MediaStream>),
    #[cfg(feature = "zrtp")]
    Agreeing(Box<crate::setup::Opening>),
}

impl PendingStream {
    pub(super) fn begin(builder: StreamBuilder) -> Result<Self, Error> {
        #[cfg(feature = "zrtp")]
        if let Some(Security::Zrtp(_)) = &builder.security {
            return builder.begin().map(Box::new).map(Self::Agreeing);
        }
        builder.open().map(Box::new).map(Self::Open)
    }

    pub(super) fn local_port(&self) -> u16 {
        match self {
            Self::Open(stream) => stream.local_address().port(),
            #[cfg(feature = "zrtp")]
            Self::Agreeing(opening) => opening.local_address().port(),
        }
    }

    /// Waits until the stream is open; returns `None` if stopped before.
    #[cfg_attr(
        not(feature = "zrtp"),
        allow(unused_variables, clippy::unnecessary_wraps, reason = "used for ZRTP")
    )]
    pub(super) fn wait(
        self,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Box<MediaStream>>, Error> {
        match self {
            Self::Open(stream) => Ok(Some(stream)),
            #[cfg(feature = "zrtp")]
            Self::Agreeing(mut opening) => {
                while !stopped() {
                    if let Some(stream) = opening.wait(POLL_INTERVAL)? {
                        return Ok(Some(Box::new(stream)));
                    }
                }
                Ok(None)
            }
        }
    }
}

/// Returns a random SSRC.
pub(super) fn random_ssrc() -> Result<Ssrc, Error> {
    Ok(Ssrc(random()?))
}

/// Returns 32 unpredictable bits.
pub(super) fn random() -> Result<u32, Error> {
    getrandom::u32().map_err(|error| Error::Random(error.to_string()))
}
