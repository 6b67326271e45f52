//! The keys of a stream in its own description and in the peer's.

use rushes_proto::sdp::{Attribute, Media, Profile};
use rushes_proto::srtp::ExtensionIds;

use super::extensions::is_readable;
use crate::error::{Error, SdesError};
use crate::security::{HeaderPrivacy, Security};
use crate::setup::StreamBuilder;

/// The attribute of RFC 9335 section 4.
const CRYPTEX: &str = "cryptex";

impl StreamBuilder {
    /// Puts the keys into the description of the stream.
    pub(super) fn describe_security(&self, media: &mut Media) -> Result<(), Error> {
        let Some(security) = &self.security else { return Ok(()) };
        let Some(keys) = security.known_keys() else {
            return self.describe_agreement(security, media);
        };
        let encrypted = keys.policy.encrypted_extensions;
        let is_described = |id| media.extensions.iter().any(|it| it.id == u16::from(id));
        if !(1..=255).all(|id| !encrypted.contains(id) || is_described(id)) {
            let what = "an encrypted header extension (RFC 6904) that the stream does not have";
            return Err(SdesError::Undescribable(what).into());
        }
        media.crypto.push(security.to_line(1)?);
        media.profile = match media.profile {
            Profile::Avpf => Profile::Savpf,
            _ => Profile::Savp,
        };
        if keys.policy.cryptex {
            media.attributes.push(Attribute::new(CRYPTEX, ""));
        }
        Ok(())
    }

    /// Puts what the peer needs for the key agreement into the description.
    #[cfg_attr(
        not(any(feature = "webrtc", feature = "zrtp")),
        allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "no key agreement")
    )]
    fn describe_agreement(&self, security: &Security, media: &mut Media) -> Result<(), Error> {
        match security {
            #[cfg(feature = "zrtp")]
            Security::Zrtp(config) => self.describe_hello(config, media),
            #[cfg(feature = "webrtc")]
            Security::Dtls(config) => self.describe_certificate(config, media),
            Security::Keys { .. } => {
                let _ = media;
                Ok(())
            }
        }
    }

    /// Secures the stream as described in `media`: by the first usable `a=crypto` line.
    pub(super) fn with_security_of(self, media: &Media) -> Result<Self, Error> {
        if let Profile::Dtls { .. } = media.profile {
            #[cfg(feature = "webrtc")]
            return self.with_certificate_of(media);
            #[cfg(not(feature = "webrtc"))]
            return Err(SdesError::Missing.into());
        }
        if !media.is_secured() {
            #[cfg(feature = "zrtp")]
            return Ok(self.with_hello_hash_of(media));
            #[cfg(not(feature = "zrtp"))]
            return Ok(self);
        }
        let headers = HeaderPrivacy {
            cryptex: media.attribute(CRYPTEX).is_some(),
            encrypted: encrypted_extensions(media),
        };
        let mut security = None;
        let chosen = media.first_acceptable_crypto(|valid| {
            security = Security::read(valid.line, headers).ok();
            security.is_some()
        });
        let (Some(_), Some(security)) = (chosen, security) else {
            let mut reasons =
                media.crypto.iter().filter_map(|line| Security::read(line, headers).err());
            return Err(reasons.next().unwrap_or(SdesError::Missing).into());
        };
        Ok(self.security(security))
    }
}

/// Returns the elements that are encrypted (RFC 6904 section 4), known or not.
fn encrypted_extensions(media: &Media) -> ExtensionIds {
    let readable = media.extensions.iter().filter(|mapping| is_readable(mapping, media));
    let encrypted = readable.filter(|mapping| mapping.encrypted);
    let ids: Vec<u8> = encrypted.filter_map(|mapping| mapping.id.try_into().ok()).collect();
    ExtensionIds::new(&ids)
}
