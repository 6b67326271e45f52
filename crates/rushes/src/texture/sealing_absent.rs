//! Control connections in a build without SRTP: always clear.

use rushes_delivery::control::Channel;

use super::error::TextureError;
use crate::security::Security;
use crate::setup::Session;

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Client,
    Server,
}

/// Seals nothing.
#[derive(Clone, Debug)]
pub(super) struct Sealing;

#[allow(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "same signature as in a build with SRTP"
)]
impl Sealing {
    pub(super) fn new(_security: Option<&Security>, _end: End) -> Result<Self, TextureError> {
        Ok(Self)
    }

    pub(super) fn channel(&self) -> Result<Channel, TextureError> {
        Ok(Channel::clear())
    }

    pub(super) fn media(&self, _channel: &Channel) -> Result<Option<Security>, TextureError> {
        Ok(None)
    }
}

#[allow(clippy::unnecessary_wraps, reason = "same signature as in a build with SRTP")]
pub(super) fn seal(_channel: &mut Channel, _session: Option<&Session>) -> Result<(), TextureError> {
    Ok(())
}
