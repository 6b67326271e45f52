//! The program `rushes`: sends media files over RTP, receives streams, checks and measures them.
//!
//! [`run`] is the whole program. An application with its own format registers the format and calls
//! `run`; its program then also sends, receives and inspects that format
//! (`examples/own_format.rs`).
#![forbid(unsafe_code)]

mod args;
#[cfg(feature = "bench")]
mod bench;
#[cfg(not(feature = "bench"))]
#[path = "bench_absent.rs"]
mod bench;
#[cfg(all(test, feature = "bench"))]
mod bench_absent;
mod command_line;
mod compare;
mod control;
mod describe;
mod endpoint;
mod features;
mod ice;
mod inspect;
mod interrupt;
mod key_frames;
mod keygen;
mod latency;
mod line_output;
mod live;
mod log;
mod loopback;
mod metrics;
mod outage;
mod overwrite;
#[cfg(test)]
mod page_commands;
mod pages;
mod progress;
mod recognise;
mod recv;
mod report;
#[cfg(feature = "webrtc")]
mod restarts;
mod schedule;
mod secret_file;
mod security;
mod send;
mod serve;
mod source;
mod stop;
mod stream;
mod texture;
mod token;
mod values;
#[cfg(feature = "webrtc")]
mod webrtc;
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
    /// The command failed; its report states the reason.
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
            // The parser returns help and version as errors with code 0.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    log::show(cli.command.verbosity());
    let outcome = match features::check(&cli.command, features::BUILT) {
        Ok(()) => run_command(&cli.command),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("rushes: {}", explain(&error));
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn run_command(command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Loopback(args) => loopback::run(args),
        Command::Send(args) => send::run(args),
        Command::Recv(args) => recv::run(args),
        #[cfg(feature = "webrtc")]
        Command::Serve(args) => serve::run(args),
        #[cfg(not(feature = "webrtc"))]
        Command::Serve(_) => Ok(Outcome::Failed),
        Command::Texture(args) => texture::run(args),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::run(args),
        #[cfg(not(feature = "bench"))]
        Command::Bench(_) => Ok(Outcome::Failed),
        Command::Inspect(args) => inspect::run(args),
        Command::Completions { shell } => pages::completions(*shell),
        Command::Keygen(args) => keygen::run(args),
        Command::Man(args) => pages::man(args),
    }
}

/// Formats the error and its causes, each only once, because many errors already quote their cause.
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
    fn a_cause_that_an_error_quotes_is_printed_once() {
        let cause = || std::io::Error::other("disk full");
        assert_eq!(
            explain(&anyhow::Error::new(cause()).context("cannot write")),
            "cannot write: disk full"
        );
        assert_eq!(explain(&anyhow::Error::new(cause()).context("x: disk full")), "x: disk full");
    }
}
