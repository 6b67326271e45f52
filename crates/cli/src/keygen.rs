//! `rushes keygen`: random keys for `--key-file`, and secrets for `--secret-file`.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use rushes::Suite;
use zeroize::Zeroizing;

use crate::Outcome;
use crate::overwrite::OverwriteArgs;
use crate::security::parse_suite;

/// Octets of a secret for `--secret-file`.
const SECRET_LEN: usize = 32;

#[derive(Args, Debug)]
#[allow(clippy::doc_markdown, reason = "clap prints these lines as they are")]
#[command(after_help = "\
The key is one line of base64, from the system's random numbers. A file that it is written to is for
its owner only (mode 0600): with -o, and also with > if the file is new or empty. Both sides need the
same key: copy the file over a connection that is encrypted, for example with scp -p.

Examples:
  rushes keygen AEAD_AES_128_GCM > film.key
  rushes keygen AES_CM_128_HMAC_SHA1_80 -o film.key
  rushes send film.265 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM --key-file film.key
  rushes keygen secret -o secret
  rushes send film.265 --to 192.0.2.7:5004 --zrtp --secret-file secret")]
pub(crate) struct KeygenArgs {
    /// Suite of --srtp for which to make a master key and salt, for example AEAD_AES_128_GCM; or
    /// `secret`, for a secret of 32 octets that both sides of --zrtp have
    #[arg(value_parser = parse_kind, value_name = "SUITE|secret")]
    kind: Kind,
    /// File to write, readable by its owner only; by default the standard output
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output_file: PathBuf,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

/// The kind of key to generate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Key(Suite),
    Secret,
}

impl Kind {
    fn len(self) -> usize {
        match self {
            Self::Key(suite) => suite.key_and_salt_len(),
            Self::Secret => SECRET_LEN,
        }
    }
}

fn parse_kind(text: &str) -> Result<Kind, String> {
    if text == "secret" {
        return Ok(Kind::Secret);
    }
    parse_suite(text).map(Kind::Key).map_err(|error| format!("{error}; or secret, for --zrtp"))
}

pub(crate) fn run(args: &KeygenArgs) -> anyhow::Result<Outcome> {
    let mut octets = Zeroizing::new(vec![0; args.kind.len()]);
    getrandom::fill(&mut octets).context("the system has no random numbers")?;
    let mut line = Zeroizing::new(STANDARD.encode(&*octets));
    line.push('\n');
    let file = &args.output_file;
    if file == Path::new("-") {
        print(line.as_bytes())?;
    } else {
        args.overwrite.check(file)?;
        create_private(file)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .with_context(|| file.display().to_string())?;
    }
    Ok(Outcome::Done)
}

fn print(line: &[u8]) -> anyhow::Result<()> {
    if stdout().is_terminal() {
        eprintln!("rushes: keep it secret; -o FILE writes it to a file that only you may read");
    }
    #[cfg(unix)]
    make_private()?;
    let mut out = stdout().lock();
    out.write_all(line).and_then(|()| out.flush()).context("the standard output")
}

/// Makes an empty file that the shell has created for the standard output readable by its owner
/// only. Otherwise other users could read the key, and `--key-file` would refuse the file.
#[cfg(unix)]
fn make_private() -> anyhow::Result<()> {
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;
    // If the standard output is closed, writing to it reports the error.
    let Ok(descriptor) = stdout().as_fd().try_clone_to_owned() else { return Ok(()) };
    let file = std::fs::File::from(descriptor);
    let Ok(metadata) = file.metadata() else { return Ok(()) };
    if metadata.is_file() && metadata.len() == 0 && metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
            .context("the file of the standard output cannot be hidden from other users")?;
    }
    Ok(())
}

/// Creates a file that only its owner may read; replaces an existing one.
pub(crate) fn create_private(file: &Path) -> std::io::Result<std::fs::File> {
    let _ = std::fs::remove_file(file);
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_suite_or_a_secret() {
        assert_eq!(parse_kind("secret"), Ok(Kind::Secret));
        for suite in Suite::ALL {
            assert_eq!(parse_kind(suite.name()), Ok(Kind::Key(suite)));
        }
        let error = parse_kind("zrtp").unwrap_err();
        assert!(error.contains("AEAD_AES_128_GCM") && error.contains("secret"), "{error}");
    }
}
