//! What stands for sealed control connections in a build without SRTP: clear ones.

use rushes_proto::delivery::control::Channel;
use rushes_proto::delivery::control::ChannelError;

use crate::error::Error;
use crate::security::Security;

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Client,
    Server,
}

/// How connections are sealed: not at all.
#[derive(Clone, Debug)]
pub(super) struct Sealing;

#[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in a build with SRTP")]
impl Sealing {
    pub(super) fn new(_security: Option<&Security>, _end: End) -> Result<Self, ChannelError> {
        Ok(Self)
    }

    pub(super) fn channel(&self) -> Result<Channel, Error> {
        Ok(Channel::clear())
    }

    pub(super) fn media(&self, _channel: &Channel) -> Result<Option<Security>, Error> {
        Ok(None)
    }
}
