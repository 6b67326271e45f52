//! The keys of a stream in its own description and in the peer's.

use rushes_proto::sdp::{Attribute, Media, Profile};

use crate::error::{Error, SdesError};
use crate::security::Security;
use crate::setup::StreamBuilder;

/// The attribute of RFC 9335 section 4.
const CRYPTEX: &str = "cryptex";

impl StreamBuilder {
    /// Puts the keys into the description of the stream.
    pub(super) fn describe_security(&self, media: &mut Media) -> Result<(), Error> {
        let Some(security) = &self.security else { return Ok(()) };
        let Some(keys) = security.known_keys() else {
            #[cfg(feature = "zrtp")]
            return self.describe_hello(media);
            #[cfg(not(feature = "zrtp"))]
            return Ok(());
        };
        media.crypto.push(security.to_crypto(1)?);
        media.profile = match media.profile {
            Profile::Avpf => Profile::Savpf,
            _ => Profile::Savp,
        };
        if keys.policy.cryptex {
            media.attributes.push(Attribute::new(CRYPTEX, ""));
        }
        Ok(())
    }

    /// Secures the stream as described in `media`: by the first usable `a=crypto` line.
    pub(super) fn with_security_of(self, media: &Media) -> Result<Self, Error> {
        if !media.is_secured() {
            #[cfg(feature = "zrtp")]
            return Ok(self.with_hello_hash_of(media));
            #[cfg(not(feature = "zrtp"))]
            return Ok(self);
        }
        let cryptex = media.attribute(CRYPTEX).is_some();
        let mut security = None;
        let chosen = media.first_acceptable_crypto(|valid| {
            security = Security::read(valid.line, cryptex).ok();
            security.is_some()
        });
        let (Some(_), Some(security)) = (chosen, security) else {
            let mut reasons =
                media.crypto.iter().filter_map(|line| Security::read(line, cryptex).err());
            return Err(reasons.next().unwrap_or(SdesError::Missing).into());
        };
        Ok(self.security(security))
    }
}
