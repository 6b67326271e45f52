//! Control connections under the keys of [`Security::Keys`], and the keys of each session.
//!
//! Keys that the application gave are a secret that both ends show that they know. They encrypt
//! nothing: each session's media is under keys that follow from its own connection.

use rushes_proto::delivery::control::Channel;
use rushes_proto::delivery::control::ChannelError;
use rushes_proto::delivery::control::ControlSecret;
use rushes_proto::srtp::MasterKey;
use rushes_proto::srtp::Policy;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::security::Security;

const TO_CLIENT: &[u8] = b"media to client";
const TO_SERVER: &[u8] = b"media to server";

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    Client,
    Server,
}

/// How one end of a server's or client's connections is sealed.
#[derive(Clone, Debug)]
pub(super) struct Sealing {
    end: End,
    /// `None` if connections are clear: without security, or where ZRTP makes the keys.
    secret: Option<(ControlSecret, Policy)>,
    security: Option<Security>,
}

impl Sealing {
    pub(super) fn new(security: Option<&Security>, end: End) -> Result<Self, ChannelError> {
        let secret = match security.and_then(Security::given) {
            None => None,
            Some(keys) => {
                let (to_client, to_server) = match end {
                    End::Client => (keys.receive, keys.send),
                    End::Server => (keys.send, keys.receive),
                };
                let suite = keys.policy.suite.name().as_bytes();
                let parts = [suite, to_client.key_and_salt(), to_server.key_and_salt()];
                Some((ControlSecret::new(&parts)?, *keys.policy))
            }
        };
        Ok(Self { end, secret, security: security.cloned() })
    }

    /// The channel of a new connection.
    pub(super) fn channel(&self) -> Result<Channel, Error> {
        let Some((secret, _)) = &self.secret else { return Ok(Channel::clear()) };
        let mut random = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *random).map_err(|error| Error::Random(error.to_string()))?;
        let mut entropy = |out: &mut [u8]| out.copy_from_slice(&*random);
        match self.end {
            End::Server => Ok(Channel::accept(secret, &mut entropy)),
            End::Client => {
                let channel = Channel::connect(secret, &mut entropy);
                channel.map_err(|error| Error::Random(error.to_string()))
            }
        }
    }

    /// How the media of the session of `channel` is secured.
    pub(super) fn media(&self, channel: &Channel) -> Result<Option<Security>, Error> {
        let Some((_, policy)) = &self.secret else { return Ok(self.security.clone()) };
        let key = |label: &[u8]| -> Result<MasterKey, Error> {
            let mut octets = Zeroizing::new(vec![0; policy.suite.key_and_salt_len()]);
            if !channel.export(label, &mut octets) {
                return Err(Error::Random("the connection has no keys".into()));
            }
            Ok(MasterKey::new(policy.suite, &octets)?)
        };
        let (to_client, to_server) = (key(TO_CLIENT)?, key(TO_SERVER)?);
        let (send, receive) = match self.end {
            End::Client => (to_server, to_client),
            End::Server => (to_client, to_server),
        };
        Ok(Some(Security::Keys { policy: *policy, send, receive, further: Vec::new() }))
    }
}
