//! `--srtp` and `--key`: options that secure a stream.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use rushes::sdp::{Description, InlineKey};
use rushes::zrtp::{PeerPolicy, ZrtpConfig};
use rushes::{ControlEvent, Event, Security, Ssrc, StreamBuilder, Suite};
use zeroize::Zeroizing;

use crate::progress::note;
use crate::report::counted;
use crate::{Usage, secret_file};

/// Minimum octets of a secret.
const SECRET_LEN_MIN: usize = 16;

/// Options that secure a stream.
#[derive(Args, Clone, Debug)]
#[allow(clippy::doc_markdown, reason = "clap prints these lines as they are")]
pub(crate) struct SecurityArgs {
    /// Secure the stream (SRTP) with this suite; both sides must agree. AEAD_AES_128_GCM is the
    /// fastest, AES_CM_128_HMAC_SHA1_80 the most widely supported
    #[arg(long, value_parser = parse_suite, value_name = "SUITE", help_heading = "Security")]
    pub(crate) srtp: Option<Suite>,
    /// Master key and salt in base64: 28 octets for AEAD_AES_128_GCM, 30 for AES_CM_128. Other
    /// users of this machine can read a command line: --key-file is safer. A description (--sdp)
    /// carries a key: `send` generates one for it, `recv` takes it from there
    #[arg(
        long,
        value_name = "BASE64",
        requires = "srtp",
        conflicts_with = "key_file",
        help_heading = "Security"
    )]
    pub(crate) key: Option<SecretText>,
    /// File with the key in base64, as `rushes keygen` makes it, or a description (SDP) with it, as
    /// `send --sdp` writes it; readable by its owner only. Use a new key for each run: packets
    /// recorded in an earlier run under the same key are accepted again. Between two Rushes
    /// programs, --zrtp --secret-file is safer
    #[arg(long, value_name = "FILE", requires = "srtp", help_heading = "Security")]
    pub(crate) key_file: Option<PathBuf>,
    /// Secure the stream with keys that both sides agree on (ZRTP); both show a few words, which
    /// are the same unless an attacker is in between. Both sides need this option
    #[arg(long, conflicts_with = "srtp", help_heading = "Security")]
    pub(crate) zrtp: bool,
    /// Remember the other side in this file: words that were the same once need not be compared
    /// again. Created if missing
    #[arg(long, value_name = "FILE", requires = "zrtp", help_heading = "Security")]
    pub(crate) zrtp_cache: Option<PathBuf>,
    /// File with a secret of at least 16 octets that both sides have, readable by its owner only.
    /// It authenticates both sides, so no words need to be compared; a peer without it is refused
    #[arg(long, value_name = "FILE", requires = "zrtp", help_heading = "Security")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Accept a peer that has changed since its words were compared; compare them again
    #[arg(long, requires = "zrtp_cache", help_heading = "Security")]
    pub(crate) zrtp_accept_changed: bool,
    /// Ask at the end whether the other side saw the same words, and remember the answer
    #[arg(long, requires = "zrtp_cache", help_heading = "Security")]
    pub(crate) zrtp_ask: bool,
}

/// Text of the command line that no message may repeat.
#[derive(Clone)]
pub(crate) struct SecretText(Zeroizing<String>);

#[cfg(feature = "webrtc")]
impl SecretText {
    pub(crate) fn text(&self) -> Zeroizing<String> {
        self.0.clone()
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

pub(crate) fn parse_suite(name: &str) -> Result<Suite, String> {
    let known = || Suite::ALL.map(Suite::name).join(", ");
    name.parse().map_err(|_| format!("unknown suite; the known suites are {}", known()))
}

impl SecurityArgs {
    /// Returns the given key, if any.
    fn octets(&self, suite: Suite) -> anyhow::Result<Option<Zeroizing<Vec<u8>>>> {
        let text = match (&self.key, &self.key_file) {
            (Some(SecretText(text)), _) => text.clone(),
            (None, Some(file)) => {
                let text = secret_file::read(file)?;
                match DescribedKey::parse(file, &text, suite)? {
                    Some(described) => return Ok(Some(described.key)),
                    None => text,
                }
            }
            (None, None) => return Ok(None),
        };
        let usage = |reason: String| anyhow::Error::from(Usage(reason));
        let octets =
            STANDARD.decode(text.trim()).map_err(|_| usage("the key is not base64".to_owned()))?;
        let octets = Zeroizing::new(octets);
        let (need, have) = (suite.key_and_salt_len(), octets.len());
        if need != have {
            let reason = format!("{suite} needs a key of {need} octets, this one has {have}");
            return Err(usage(reason));
        }
        Ok(Some(octets))
    }

    /// Returns the security of the stream, if any.
    ///
    /// # Errors
    /// [`Usage`] if there is no key or it does not fit.
    pub(crate) fn security(&self) -> anyhow::Result<Option<Security>> {
        if self.zrtp {
            return Ok(Some(self.agreement()?));
        }
        let Some(suite) = self.srtp else { return Ok(None) };
        let need = suite.key_and_salt_len();
        let octets = self.octets(suite)?.ok_or_else(|| {
            Usage(format!(
                "--srtp needs a key of {need} octets that both sides know: --key or --key-file; \
                 make one with: rushes keygen {suite} -o FILE"
            ))
        })?;
        Ok(Some(Security::shared(suite, &octets)?))
    }

    /// Returns the SSRC in the description in `--key-file`, if there is one.
    pub(crate) fn described_ssrc(&self) -> anyhow::Result<Option<Ssrc>> {
        let (Some(suite), Some(file)) = (self.srtp, &self.key_file) else { return Ok(None) };
        let described = DescribedKey::parse(file, &secret_file::read(file)?, suite)?;
        Ok(described.and_then(|described| described.ssrc))
    }

    fn agreement(&self) -> anyhow::Result<Security> {
        let mut config = ZrtpConfig::default();
        config.cache.clone_from(&self.zrtp_cache);
        config.policy = self.zrtp_accept_changed.then_some(PeerPolicy::Allow);
        if let Some(file) = &self.secret_file {
            let secret = secret_file::read(file)?;
            if secret.len() < SECRET_LEN_MIN {
                let reason = format!(
                    "{} holds a secret of {} octets, and the minimum is {SECRET_LEN_MIN}; make one \
                     with: rushes keygen secret -o FILE",
                    file.display(),
                    secret.len(),
                );
                return Err(Usage(reason).into());
            }
            config.aux_secret = Some(Zeroizing::new(secret.as_bytes().to_vec()));
            config.policy = Some(PeerPolicy::RequireSecret);
        }
        Ok(Security::Zrtp(config))
    }

    /// Returns whether the master key was given, so that it may have been used before.
    pub(crate) fn has_given_key(&self) -> bool {
        self.key.is_some() || self.key_file.is_some()
    }

    /// Returns whether a stream with a description gets a new key.
    pub(crate) fn makes_a_key(&self) -> bool {
        self.srtp.is_some() && !self.has_given_key()
    }

    /// Returns the suite, for reports.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.srtp.map(Suite::name).or_else(|| self.zrtp.then_some("ZRTP"))
    }

    /// Returns the security of the stream, if any, with a random key if none was given.
    pub(crate) fn security_or_random(&self) -> anyhow::Result<Option<Security>> {
        if self.zrtp {
            return Ok(Some(self.agreement()?));
        }
        let Some(suite) = self.srtp else { return Ok(None) };
        Ok(Some(match self.octets(suite)? {
            Some(octets) => Security::shared(suite, &octets)?,
            None => Security::random(suite)?,
        }))
    }
}

/// The key in a description.
struct DescribedKey {
    key: Zeroizing<Vec<u8>>,
    /// The SSRC in the description, which is then the only one that receivers accept.
    ssrc: Option<Ssrc>,
}

impl DescribedKey {
    /// Returns the first key for `suite` in `text`, the content of `file`, or `None` if it is not a
    /// description.
    ///
    /// # Errors
    /// [`Usage`] if the description has no such key.
    fn parse(file: &Path, text: &str, suite: Suite) -> anyhow::Result<Option<Self>> {
        if !text.starts_with("v=") {
            return Ok(None);
        }
        let name = file.display();
        let description = Description::parse(text.as_bytes()).with_context(|| name.to_string())?;
        for media in &description.media {
            let chosen = media.first_acceptable_crypto(|crypto| {
                let is_whole = |key: &InlineKey| key.key_and_salt.len() == suite.key_and_salt_len();
                crypto.line.suite == suite.name()
                    && crypto.line.session_params.is_empty()
                    && crypto.keys.iter().all(is_whole)
            });
            if let Some(key) = chosen.and_then(|crypto| crypto.keys.first().cloned()) {
                let key = Zeroizing::new(key.key_and_salt.to_vec());
                return Ok(Some(Self { key, ssrc: media.ssrc() }));
            }
        }
        Err(Usage(format!("{name} describes no media with a key for {suite} (a=crypto)")).into())
    }
}

/// Secures a stream if `security` is given.
pub(crate) fn set(builder: StreamBuilder, security: Option<Security>) -> StreamBuilder {
    match security {
        Some(security) => builder.security(security),
        None => builder,
    }
}

/// Reports refused packets and expiring keys on the error output, at most once a second.
pub(crate) fn report_event(event: &Event) {
    match event {
        Event::Refused { reason, packets } => {
            note!("refused {}: {}", counted(*packets, "packet"), reason.name());
        }
        Event::KeyExpiring { left } => {
            note!("the key can protect {}", counted(*left, "more packet"));
        }
        Event::KeyExpired => note!("the key is used up"),
        _ => {}
    }
}

/// Reports refused RTCP datagrams on the error output.
pub(crate) fn report_control_event(event: &ControlEvent) {
    if let ControlEvent::Refused { datagrams } = event {
        note!("refused {} as not authentic: another key, or none?", counted(*datagrams, "report"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_repeated() {
        let args = SecurityArgs {
            srtp: Some(Suite::AeadAes128Gcm),
            key: Some(SecretText::from("c2VjcmV0".to_owned())),
            key_file: None,
            zrtp: false,
            zrtp_cache: None,
            secret_file: None,
            zrtp_accept_changed: false,
            zrtp_ask: false,
        };
        assert!(!format!("{args:?}").contains("c2Vj"));
        let error = args.security().unwrap_err().to_string();
        assert!(error.contains("28 octets, this one has 6"), "{error}");
        assert!(!error.contains("c2Vj") && !error.contains("secret"), "{error}");
    }
}
