//! `--srtp` and `--key`: how tiles over RTP are secured.

use std::path::PathBuf;

use clap::Args;
use rushes::Security;
use rushes::Suite;
use rushes::texture::Transport;

use crate::Usage;
use crate::security;
use crate::security::SecretText;
use crate::security::parse_suite;

/// How tiles over RTP are secured: what streams have that makes sense for many at once.
#[derive(Args, Clone, Debug)]
#[allow(clippy::doc_markdown, reason = "clap prints these lines as they are")]
pub(crate) struct SecurityArgs {
    /// Secure the tiles (SRTP) with this suite; both sides must agree. Means --transport rtp
    #[arg(long, value_parser = parse_suite, value_name = "SUITE", help_heading = "Security")]
    srtp: Option<Suite>,
    /// Master key and salt in base64: 28 octets for AEAD_AES_128_GCM, 30 for AES_CM_128. Others on
    /// this machine can read a command line: --key-file is safer
    #[arg(
        long,
        value_name = "BASE64",
        requires = "srtp",
        conflicts_with = "key_file",
        help_heading = "Security"
    )]
    key: Option<SecretText>,
    /// A file that holds what --key would say
    #[arg(long, value_name = "FILE", requires = "srtp", help_heading = "Security")]
    key_file: Option<PathBuf>,
}

impl SecurityArgs {
    /// How tiles are secured, if at all.
    ///
    /// # Errors
    /// [`Usage`] if there is no key or it does not fit, or if tiles would go in the clear.
    pub(crate) fn security(
        &self,
        transport: Option<Transport>,
    ) -> anyhow::Result<Option<Security>> {
        if self.srtp.is_some() && transport.is_some_and(|transport| transport != Transport::Rtp) {
            let reason = "--srtp secures RTP only; say --transport rtp, or leave it out";
            return Err(Usage(reason.to_owned()).into());
        }
        let args = security::SecurityArgs {
            srtp: self.srtp,
            key: self.key.clone(),
            key_file: self.key_file.clone(),
            zrtp: false,
            zrtp_cache: None,
            zrtp_ask: false,
        };
        args.security()
    }

    /// The transport asked for: security has only one.
    pub(crate) fn transport(&self, asked: Option<Transport>) -> Option<Transport> {
        asked.or_else(|| self.srtp.map(|_| Transport::Rtp))
    }

    /// The suite, for reports.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.srtp.map(Suite::name)
    }
}
