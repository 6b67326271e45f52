//! `--srtp` and `--zrtp`: security of tiles over RTP, and the words that users compare.

use std::collections::VecDeque;
use std::path::PathBuf;

use clap::Args;
use rushes::texture::{Reason, Transport};
use rushes::zrtp::{PeerPolicy, SasStatus};
use rushes::{Security, Suite};
use serde_json::Value;

use crate::security::{SecretText, parse_suite};
use crate::{Usage, security};

/// Maximum number of clients whose words are in the final report.
const AGREED_MAX: usize = 100;

/// Security options of tiles over RTP: the options of streams that also work with several clients.
#[derive(Args, Clone, Debug)]
#[allow(clippy::doc_markdown, reason = "clap prints these lines as they are")]
pub(crate) struct SecurityArgs {
    /// Secure sessions with a shared key: the server accepts only clients that prove that they have
    /// it. Tiles are encrypted with this suite (SRTP). Implies --transport rtp
    #[arg(long, value_parser = parse_suite, value_name = "SUITE", help_heading = "Security")]
    srtp: Option<Suite>,
    /// Master key and salt in base64: 28 octets for AEAD_AES_128_GCM, 30 for AES_CM_128. Other
    /// users of this machine can read a command line: --key-file is safer
    #[arg(
        long,
        value_name = "BASE64",
        requires = "srtp",
        conflicts_with = "key_file",
        help_heading = "Security"
    )]
    key: Option<SecretText>,
    /// File with the key, as for --key
    #[arg(long, value_name = "FILE", requires = "srtp", help_heading = "Security")]
    key_file: Option<PathBuf>,
    /// Secure the tiles with keys that both sides agree on (ZRTP); both show a few words, which are
    /// the same unless an attacker is in between. Any client that connects is served. Both sides
    /// need this option. Implies --transport rtp
    #[arg(long, conflicts_with = "srtp", help_heading = "Security")]
    zrtp: bool,
    /// File with a secret of at least 16 octets that both sides have, readable by its owner only.
    /// No words need to be compared; a peer without it is refused
    #[arg(long, value_name = "FILE", requires = "zrtp", help_heading = "Security")]
    secret_file: Option<PathBuf>,
    /// Accept only peers whose words were compared in an earlier session
    #[arg(
        long,
        requires = "zrtp_cache",
        conflicts_with = "secret_file",
        help_heading = "Security"
    )]
    zrtp_verified_only: bool,
    /// Accept a peer that has changed since its words were compared; compare them again
    #[arg(
        long,
        requires = "zrtp_cache",
        conflicts_with = "zrtp_verified_only",
        help_heading = "Security"
    )]
    zrtp_accept_changed: bool,
    /// Remember the other side in this file. Words that were compared once, by `rushes recv` or
    /// `send` with --zrtp-ask and the same file, need not be compared again. Created if missing
    #[arg(long, value_name = "FILE", requires = "zrtp", help_heading = "Security")]
    zrtp_cache: Option<PathBuf>,
}

impl SecurityArgs {
    /// Returns the security of tiles, if any.
    ///
    /// # Errors
    /// [`Usage`] if there is no key or it does not fit, or if tiles would be sent in the clear.
    pub(crate) fn security(
        &self,
        transport: Option<Transport>,
    ) -> anyhow::Result<Option<Security>> {
        let option = if self.zrtp { "--zrtp" } else { "--srtp" };
        if self.is_secure() && transport.is_some_and(|transport| transport != Transport::Rtp) {
            let reason = format!("{option} secures RTP only; use --transport rtp, or leave it out");
            return Err(Usage(reason).into());
        }
        let args = security::SecurityArgs {
            srtp: self.srtp,
            key: self.key.clone(),
            key_file: self.key_file.clone(),
            zrtp: self.zrtp,
            zrtp_cache: self.zrtp_cache.clone(),
            secret_file: self.secret_file.clone(),
            zrtp_accept_changed: self.zrtp_accept_changed,
            zrtp_ask: false,
        };
        let mut security = args.security()?;
        if let (Some(Security::Zrtp(config)), true) = (&mut security, self.zrtp_verified_only) {
            config.policy = Some(PeerPolicy::RefuseUnverified);
        }
        Ok(security)
    }

    pub(super) fn is_secure(&self) -> bool {
        self.srtp.is_some() || self.zrtp
    }

    /// Returns whether keys are agreed on, so that there are words to compare.
    pub(crate) fn agrees_on_keys(&self) -> bool {
        self.zrtp
    }

    /// Returns the requested transport; security implies RTP.
    pub(crate) fn transport(&self, requested: Option<Transport>) -> Option<Transport> {
        requested.or_else(|| self.is_secure().then_some(Transport::Rtp))
    }

    /// Returns the suite, for reports.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.srtp.map(Suite::name).or_else(|| self.zrtp.then_some("ZRTP"))
    }

    /// Returns advice if one side has refused the other for `reason`.
    pub(crate) fn advice(&self, reason: Reason) -> &'static str {
        match (reason, self.srtp, self.zrtp) {
            (Reason::Key, Some(_), _) => ". Do both sides have the same --srtp and key?",
            (Reason::Key, None, true) => ". Is --zrtp set on the server?",
            (Reason::Key, None, false) => {
                ". Try: --srtp SUITE --key-file FILE, or --zrtp, as there"
            }
            _ => "",
        }
    }

    /// Returns a possible cause if no frame was received.
    pub(crate) fn hint(&self) -> &'static str {
        match (self.srtp, self.zrtp) {
            (Some(_), _) => ": do both sides have the same suite and key?",
            (None, true) => ": is --zrtp set on the server?",
            (None, false) => "",
        }
    }
}

/// Returns the message with the words to compare with the `other` side.
pub(crate) fn sas_text(other: &str, status: &SasStatus) -> String {
    if status.shares_secret {
        return format!("secure by ZRTP: {other} has the secret");
    }
    let before = if status.is_verified { ", as compared before" } else { "" };
    format!("secure by ZRTP; {other} must see the same words: {}{before}", status.sas)
}

/// Returns the status as JSON.
pub(crate) fn object(status: &SasStatus) -> Value {
    crate::zrtp::object(status)
}

/// Results of the key agreements with clients.
#[derive(Default)]
pub(crate) struct Agreed {
    now: Vec<SasStatus>,
    all: VecDeque<SasStatus>,
}

impl Agreed {
    /// Replaces the current results; returns those that were not among the previous ones.
    pub(crate) fn take_up(&mut self, now: Vec<SasStatus>) -> Vec<SasStatus> {
        let is_new = |status: &&SasStatus| !self.now.contains(status);
        let new: Vec<_> = now.iter().filter(is_new).cloned().collect();
        self.now = now;
        self.all.extend(new.iter().cloned());
        self.all.drain(..self.all.len().saturating_sub(AGREED_MAX));
        new
    }

    /// Returns the latest results as JSON.
    pub(crate) fn objects(&self) -> Value {
        self.all.iter().map(object).collect()
    }
}
