//! Certificate and role of DTLS in descriptions (`a=fingerprint`, `a=setup`; RFC 8122, RFC 8842).

use std::borrow::Cow;

use rushes_proto::sdp::{Attribute, Media, Profile};

use crate::dtls::{DtlsConfig, Fingerprint, Setup};
use crate::error::{DtlsSetupError, Error};
use crate::security::Security;
use crate::setup::StreamBuilder;

const FINGERPRINT: &str = "fingerprint";
const SETUP: &str = "setup";

/// Maximum fingerprints that are read from a description.
const FINGERPRINTS_MAX: usize = 16;

/// Returns media with keys from DTLS as media with other keys, whose formats are the same.
pub(super) fn as_rtp(media: &Media) -> Cow<'_, Media> {
    if !matches!(media.profile, Profile::Dtls { .. }) {
        return Cow::Borrowed(media);
    }
    Cow::Owned(Media { profile: Profile::Savp, ..media.clone() })
}

impl StreamBuilder {
    /// Puts the fingerprint of the certificate, and which end begins, into the description.
    pub(super) fn describe_certificate(
        &self,
        config: &DtlsConfig,
        media: &mut Media,
    ) -> Result<(), Error> {
        self.check_dtls()?;
        media.profile = Profile::Dtls { tcp: false, feedback: media.profile == Profile::Avpf };
        let fingerprint = self.dtls_certificate(config)?.fingerprint();
        media.attributes.push(Attribute::new(FINGERPRINT, fingerprint.to_string()));
        let begins = self.begins_handshake(config);
        let setup = if begins { Setup::Active } else { Setup::Passive };
        media.attributes.push(Attribute::new(SETUP, setup.to_string()));
        Ok(())
    }

    /// Sets up key agreement with the peer whose certificate has a fingerprint in `media`.
    pub(super) fn with_certificate_of(self, media: &Media) -> Result<Self, Error> {
        if let Profile::Dtls { tcp: true, .. } = media.profile {
            return Err(DtlsSetupError::Tcp.into());
        }
        let named = |name: &'static str| {
            media.attributes.iter().filter(move |one| one.name.eq_ignore_ascii_case(name))
        };
        let read: Vec<_> = named(FINGERPRINT)
            .take(FINGERPRINTS_MAX)
            .map(|one| one.value.parse::<Fingerprint>())
            .collect();
        let expected: Vec<Fingerprint> = read.iter().flatten().cloned().collect();
        if let (true, Some(Err(error))) = (expected.is_empty(), read.into_iter().next()) {
            return Err(DtlsSetupError::Fingerprint(error).into());
        }
        // Without the attribute, the author begins (RFC 4145 section 4).
        let theirs = named(SETUP).next().map_or(Ok(Setup::Active), |one| one.value.parse());
        let setup = match theirs.map_err(DtlsSetupError::from)? {
            Setup::Active => Setup::Passive,
            Setup::Passive => Setup::Active,
            Setup::ActPass => Setup::ActPass,
        };
        let config = DtlsConfig { setup, ..DtlsConfig::new(expected) };
        Ok(self.security(Security::Dtls(config)))
    }
}
