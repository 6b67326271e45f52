//! Options for servers that are entered over HTTP: tokens and certificates.

use std::path::PathBuf;

use clap::Args;

use crate::Usage;
use crate::ice::IceArgs;
use crate::security::SecretText;

/// A bearer token.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokenArgs {
    /// Token to show, or of `serve` to ask for (RFC 6750). Other users of this machine can read a command line:
    /// --token-file is safer
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file", help_heading = "WebRTC")]
    pub(crate) token: Option<SecretText>,
    /// File with the token, readable by its owner only
    #[arg(long, value_name = "FILE", help_heading = "WebRTC")]
    pub(crate) token_file: Option<PathBuf>,
}

/// How a server of WHIP or WHEP is entered.
#[derive(Args, Clone, Debug)]
pub(crate) struct EntryArgs {
    #[command(flatten)]
    pub(crate) token: TokenArgs,
    /// Certificates of the servers that are trusted, in PEM; by default those that this system trusts
    #[arg(long, value_name = "FILE", help_heading = "WebRTC")]
    pub(crate) trust: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ice: IceArgs,
}

impl EntryArgs {
    /// Refuses options of a server where none is entered.
    pub(crate) fn check_unused(&self, server: &str) -> anyhow::Result<()> {
        let given = [
            ("--token", self.token.token.is_some()),
            ("--token-file", self.token.token_file.is_some()),
            ("--trust", self.trust.is_some()),
            ("--stun", self.ice.stun.is_some()),
            ("--turn", self.ice.turn.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Usage(format!("{option} needs {server}")).into()),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "webrtc")]
impl TokenArgs {
    /// Returns the token, if one is given.
    pub(crate) fn read(&self) -> anyhow::Result<Option<rushes_whip::Token>> {
        let text = match (&self.token, &self.token_file) {
            (Some(token), _) => token.text(),
            (None, Some(file)) => crate::secret_file::read(file)?,
            (None, None) => return Ok(None),
        };
        Ok(Some(text.parse().map_err(|error| Usage(format!("{error}")))?))
    }
}
