//! What a build without SRTP has in the place of `security`: nothing to do.

use rushes_proto::SequenceNumber;
use rushes_proto::control::Participant;
use rushes_proto::sdp::Media;
use rushes_proto::stream::Receiver;
use rushes_proto::stream::Sender;

use crate::builder::StreamBuilder;
use crate::error::Error;

/// How a stream would be secured.
#[derive(Clone, Debug)]
pub(crate) enum Security {}

#[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in a build with SRTP")]
impl StreamBuilder {
    #[cfg(feature = "texture")]
    pub(crate) fn secured_if(self, security: Option<&Security>) -> Self {
        match security {
            Some(security) => match *security {},
            None => self,
        }
    }

    pub(crate) fn secure_sender(&self, sender: Sender) -> Result<Sender, Error> {
        match &self.security {
            Some(security) => match *security {},
            None => Ok(sender),
        }
    }

    pub(crate) fn secure_receiver(&self, receiver: Receiver) -> Result<Receiver, Error> {
        Ok(receiver)
    }

    pub(crate) fn secure_participant(
        &self,
        participant: Participant,
    ) -> Result<Participant, Error> {
        Ok(participant)
    }

    pub(crate) fn awaits_keys(&self) -> bool {
        false
    }

    pub(crate) fn first_sequence(&self, random: u32) -> SequenceNumber {
        SequenceNumber(random as u16)
    }

    pub(crate) fn describe_security(&self, _media: &mut Media) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn secured_as(self, media: &Media) -> Result<Self, Error> {
        if media.is_secured() { Err(Error::Encrypted) } else { Ok(self) }
    }
}
