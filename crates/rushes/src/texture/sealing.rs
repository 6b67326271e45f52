//! Sealed control connections, and the keys of each session's media.
//!
//! The keys of [`Security::Keys`] only authenticate: server and client prove to each other that
//! they have them. Each session's media has its own keys, exported from its control connection.
//!
//! With [`Security::Zrtp`] the order is reversed: the media's streams agree on keys, and then the
//! control connection, until then clear, is sealed under a key exported from that agreement.

use rushes_delivery::control::{Channel, ChannelError, ControlSecret};
use rushes_proto::srtp::{MasterKey, Policy};
use zeroize::Zeroizing;

use super::error::TextureError;
use crate::error::Error;
use crate::security::Security;
use crate::setup::Session;

const TO_CLIENT: &[u8] = b"media to client";
const TO_SERVER: &[u8] = b"media to server";

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    Client,
    Server,
}

/// The sealing of a server's or a client's control connections.
#[derive(Clone, Debug)]
pub(super) struct Sealing {
    end: End,
    /// The given keys and their policy, if any.
    secret: Option<(ControlSecret, Policy)>,
    security: Option<Security>,
}

impl Sealing {
    pub(super) fn new(security: Option<&Security>, end: End) -> Result<Self, TextureError> {
        #[cfg(feature = "webrtc")]
        if let Some(Security::Dtls(_)) = security {
            return Err(Error::from(crate::error::DtlsSetupError::Texture).into());
        }
        let secret = match security.and_then(Security::known_keys) {
            None => None,
            Some(keys) => {
                let (to_client, to_server) = match end {
                    End::Client => (keys.receive, keys.send),
                    End::Server => (keys.send, keys.receive),
                };
                let suite = keys.policy.suite.name().as_bytes();
                let parts = [suite, to_client.key_and_salt(), to_server.key_and_salt()];
                Some((ControlSecret::new(&parts).map_err(|error| failed(&error))?, *keys.policy))
            }
        };
        Ok(Self { end, secret, security: security.cloned() })
    }

    /// Returns the channel of a new connection.
    pub(super) fn channel(&self) -> Result<Channel, TextureError> {
        let Some((secret, _)) = &self.secret else {
            #[cfg(feature = "zrtp")]
            if let Some(Security::Zrtp(_)) = &self.security {
                return Ok(Channel::clear_at_first(self.end == End::Client));
            }
            return Ok(Channel::clear());
        };
        let random = random()?;
        let mut entropy = |out: &mut [u8]| out.copy_from_slice(&*random);
        match self.end {
            End::Server => Ok(Channel::accept(secret, &mut entropy)),
            End::Client => Channel::connect(secret, &mut entropy).map_err(|error| failed(&error)),
        }
    }

    /// Returns the security of the media of the session on `channel`.
    pub(super) fn media(&self, channel: &Channel) -> Result<Option<Security>, TextureError> {
        let Some((_, policy)) = &self.secret else { return Ok(self.security.clone()) };
        let key = |label: &[u8]| -> Result<MasterKey, TextureError> {
            let mut octets = Zeroizing::new(vec![0; policy.suite.key_and_salt_len()]);
            if !channel.export(label, &mut octets) {
                return Err(failed(&ChannelError::Primitive));
            }
            Ok(MasterKey::new(policy.suite, &octets).map_err(Error::from)?)
        };
        let (to_client, to_server) = (key(TO_CLIENT)?, key(TO_SERVER)?);
        let (send, receive) = match self.end {
            End::Client => (to_server, to_client),
            End::Server => (to_client, to_server),
        };
        Ok(Some(Security::Keys { policy: *policy, send, receive, further: Vec::new() }))
    }
}

/// Begins to seal a channel that was clear at first, if `session` has agreed on a key.
///
/// Logs the warnings of the agreement, for which texture video has no events.
pub(super) fn seal(channel: &mut Channel, session: Option<&Session>) -> Result<(), TextureError> {
    #[cfg(feature = "zrtp")]
    while let Some(warning) = session.and_then(Session::poll_zrtp_warning) {
        tracing::warn!("ZRTP: {warning}");
    }
    let session = session.filter(|_| channel.awaits_secret());
    let Some(key) = session.and_then(Session::exported_key) else { return Ok(()) };
    let parts = [&b"ZRTP"[..], &key];
    let secret = ControlSecret::new(&parts).map_err(|error| failed(&error))?;
    let random = random()?;
    let mut entropy = |out: &mut [u8]| out.copy_from_slice(&*random);
    channel.seal(&secret, &mut entropy).map_err(|error| failed(&error))
}

/// Returns the random octets of an ephemeral key.
fn random() -> Result<Zeroizing<[u8; 32]>, TextureError> {
    let mut random = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *random).map_err(|error| Error::Random(error.to_string()))?;
    Ok(random)
}

fn failed(error: &ChannelError) -> TextureError {
    TextureError::Failed(error.to_string())
}
