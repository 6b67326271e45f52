//! `--zrtp`: key agreement, and the authentication strings that the users compare.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes::zrtp::{Opening, PeerRefusal, SasStatus, Warning, ZrtpError};
use rushes::{MediaStream, StreamBuilder};
use serde_json::{Value, json};

use crate::stream;

/// Interval between checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of addresses without keys that are shown.
const FAILED_SHOWN: usize = 10;

/// Maximum time for key agreement between the two ends of a loopback.
const LOOPBACK_TIME: Duration = Duration::from_secs(30);

/// The result of a key agreement.
pub(crate) struct Agreed {
    opening: Opening,
    status: SasStatus,
}

impl Agreed {
    fn of(opening: Opening) -> Option<Self> {
        while let Some(warning) = opening.poll_warning() {
            eprintln!("rushes: {warning}");
        }
        let status = opening.sas()?;
        Some(Self { opening, status })
    }

    /// Returns the result as JSON, for reports.
    pub(crate) fn object(&self) -> Value {
        object(&self.status)
    }

    /// Asks the user whether the strings were equal, and stores the answer.
    pub(crate) fn ask(&self) -> anyhow::Result<()> {
        if self.status.is_verified || self.status.shares_secret {
            return Ok(());
        }
        eprint!("Did the other side see the same words, {}? [y/n] ", self.status.sas);
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => {
                self.opening.verify_sas(true);
            }
            "n" | "N" | "no" => {
                self.opening.verify_sas(false);
                eprintln!(
                    "rushes: a third party intercepts the connection; the other side is not stored"
                );
            }
            _ => eprintln!("rushes: the answer is neither y nor n; nothing changes"),
        }
        Ok(())
    }
}

impl fmt::Display for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = if self.status.is_verified { ", as compared before" } else { "" };
        write!(f, "{}{before}", self.status.sas)
    }
}

/// Returns the result of a key agreement as JSON, for reports.
pub(crate) fn object(status: &SasStatus) -> Value {
    json!({
        "sas": status.sas.to_string(),
        "verified": status.is_verified,
        "secret": status.shares_secret,
    })
}

/// Opens a stream. With key agreement it waits for the other side, at most for `wait` if given, and
/// also returns the result. Returns `None` if it is stopped first.
pub(crate) fn open(
    builder: StreamBuilder,
    is_stopped: impl Fn() -> bool,
    wait: Option<Duration>,
    listening: impl FnOnce(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<Option<(MediaStream, Option<Agreed>)>> {
    if !builder.agrees_on_keys() {
        let stream = builder.open().map_err(stream::explain)?;
        listening(stream.local_address())?;
        return Ok(Some((stream, None)));
    }
    let mut opening = builder.begin().map_err(stream::explain)?;
    listening(opening.local_address())?;
    let mut shown = Shown::default();
    let start = Instant::now();
    while !is_stopped() {
        if let Some(stream) = opening.wait(POLL_INTERVAL).map_err(explain)? {
            return Ok(Some((stream, Agreed::of(opening))));
        }
        shown.show(&mut opening);
        if let Some(wait) = wait.filter(|wait| start.elapsed() >= *wait) {
            let cause = if shown.ignored { ": is --zrtp set on the other side?" } else { "" };
            anyhow::bail!("no keys were agreed on within {wait:?} (--wait){cause}");
        }
    }
    Ok(None)
}

/// Messages shown while waiting. Any stranger can cause them, so their number is limited.
#[derive(Default)]
struct Shown {
    warnings: Vec<Warning>,
    failed: usize,
    ignored: bool,
}

impl Shown {
    /// Shows each warning once, and the first addresses with which key agreement failed.
    fn show(&mut self, opening: &mut Opening) {
        while let Some(warning) = opening.poll_warning() {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
                eprintln!("rushes: {warning}");
            }
        }
        if !self.ignored && opening.datagrams_ignored() > 0 {
            self.ignored = true;
            eprintln!(
                "rushes: packets arrive before any keys, and are ignored: is --zrtp set on the \
                 other side?"
            );
        }
        while let Some((address, error)) = opening.poll_failed() {
            self.failed += 1;
            if self.failed <= FAILED_SHOWN {
                let reason = explain(error);
                eprintln!("rushes: no keys for {address}, still waiting: {reason:#}");
            }
            if self.failed == FAILED_SHOWN {
                eprintln!("rushes: further addresses without keys are not shown");
            }
        }
    }
}

/// Adds advice about a refused peer.
pub(crate) fn explain(error: rushes::Error) -> anyhow::Error {
    let help = match &error {
        rushes::Error::Zrtp(ZrtpError::Peer(PeerRefusal::Changed)) => {
            "refused (if the change is expected: use --zrtp-accept-changed, and compare the words \
             again)"
        }
        rushes::Error::Zrtp(ZrtpError::Peer(PeerRefusal::NoSecret)) => {
            "refused (do both sides have the same --secret-file?)"
        }
        rushes::Error::Zrtp(ZrtpError::Peer(_)) => "refused",
        rushes::Error::Zrtp(ZrtpError::NoPeer) => {
            "the other side does not agree on keys (is --zrtp set there, and is it running?)"
        }
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(help)
}

/// Prints the words to compare.
pub(crate) fn print_agreed(agreed: Option<&Agreed>, quiet: bool) {
    if let Some(agreed) = agreed.filter(|_| !quiet) {
        if agreed.status.shares_secret {
            eprintln!("rushes: secure by ZRTP: the other side has the secret");
        } else {
            eprintln!("rushes: secure by ZRTP; the other side must see the same words: {agreed}");
        }
    }
}

/// Opens two streams that agree on keys with each other.
pub(crate) fn open_both(
    receiver: StreamBuilder,
    sender: impl FnOnce(u16) -> StreamBuilder,
) -> anyhow::Result<([MediaStream; 2], [Agreed; 2])> {
    let mut receiving = receiver.begin()?;
    let mut sending = sender(receiving.local_address().port()).begin()?;
    let deadline = Instant::now() + LOOPBACK_TIME;
    let (mut receiver, mut sender) = (None, None);
    while Instant::now() < deadline {
        for (opening, stream) in [(&mut receiving, &mut receiver), (&mut sending, &mut sender)] {
            if stream.is_none() {
                *stream = opening.wait(Duration::from_millis(2))?;
            }
        }
        if receiver.is_some() && sender.is_some() {
            break;
        }
    }
    let agreed = (Agreed::of(receiving), Agreed::of(sending));
    match (receiver, sender, agreed) {
        (Some(receiver), Some(sender), (Some(one), Some(other))) => {
            Ok(([receiver, sender], [one, other]))
        }
        _ => anyhow::bail!("the two ends did not agree on keys"),
    }
}
