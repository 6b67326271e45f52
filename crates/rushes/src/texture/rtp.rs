//! What both ends of texture video over RTP have in common.

use std::sync::Arc;

use rushes_proto::ClockRate;
use rushes_proto::PayloadType;
use rushes_proto::Ssrc;
use rushes_proto::payload::texture::Texture;

use crate::builder::StreamBuilder;
use crate::error::Error;
use crate::pace::Pacing;
use crate::security::Security;
use crate::session::Session;

/// The clock of the timestamps.
pub(super) const CLOCK_RATE: ClockRate = ClockRate::VIDEO;

/// Octets beside a packet's own: RTP's header, ours, the longest tag, IP and UDP, and some.
const OVERHEAD: usize = 128;

/// Octets of a packet behind its header that still make a datagram.
pub(super) const PAYLOAD_MAX: usize = 65_535 - OVERHEAD;

/// One unit's stream, between these two sources.
pub(super) fn stream(
    session: &Session,
    payload: usize,
    own: Ssrc,
    peer: Ssrc,
    security: Option<&Security>,
) -> StreamBuilder {
    session
        .stream_of(Arc::new(Texture { payload }), PayloadType::TEXTURE)
        .ssrc(own)
        .remote_ssrc(peer)
        .rtcp_mux(true)
        .pacing(Pacing::Off)
        .mtu((payload + OVERHEAD).min(65_535))
        .secured_if(security)
}

/// A source's identifier that nobody else has.
pub(super) fn random_ssrc() -> Result<Ssrc, Error> {
    Ok(Ssrc(random()?))
}

/// 32 bits that nobody can guess.
pub(super) fn random() -> Result<u32, Error> {
    getrandom::u32().map_err(|error| Error::Random(error.to_string()))
}
