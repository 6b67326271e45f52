//! The program `rushes`: stream media files over RTP, receive them, check and measure.
//!
//! [`run`] is all of it. An application with a format of its own registers the format and calls
//! `run`: its program then sends, receives and inspects that format, too
//! (`examples/own_format.rs`).
#![forbid(unsafe_code)]

mod args;
mod command_line;
mod compare;
mod control;
mod describe;
mod endpoint;
mod inspect;
mod interrupt;
mod latency;
mod live;
mod loopback;
mod metrics;
mod outage;
mod overwrite;
mod pages;
mod progress;
mod recognise;
mod recv;
mod report;
mod schedule;
mod secret_file;
mod security;
mod send;
mod source;
mod stream;
mod texture;
mod values;
mod zrtp;

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use clap::Parser;

use crate::command_line::{Cli, Command};

/// The outcome of a command that returned no error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// The command succeeded.
    Done,
    /// It failed; the report states the reason.
    Failed,
}

/// An error in the command line that the parser cannot detect.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs the program with the arguments `args`, the first of which is its name; returns its exit
/// code: 0 on success, 1 on failure, 2 for a wrong command line.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors of the parser, too, with code 0.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let outcome = match &cli.command {
        Command::Loopback(args) => loopback::run(args),
        Command::Send(args) => send::run(args),
        Command::Recv(args) => recv::run(args),
        Command::Texture(args) => texture::run(args),
        Command::Bench(args) => rushes_bench::run(args).map(|outcome| match outcome {
            rushes_bench::Outcome::Done => Outcome::Done,
            rushes_bench::Outcome::PacketsLost => Outcome::Failed,
        }),
        Command::Inspect(args) => inspect::run(args),
        Command::Completions { shell } => pages::completions(*shell),
        Command::Man => pages::man(),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("rushes: {}", explain(&error));
            ExitCode::from(if error.is::<Usage>() || error.is::<rushes_bench::Usage>() {
                2
            } else {
                1
            })
        }
    }
}

/// Formats the error and its causes, each once: many errors already quote their cause.
fn explain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_quotes_is_said_once() {
        let cause = || std::io::Error::other("disk full");
        assert_eq!(
            explain(&anyhow::Error::new(cause()).context("cannot write")),
            "cannot write: disk full"
        );
        assert_eq!(explain(&anyhow::Error::new(cause()).context("x: disk full")), "x: disk full");
    }
}
