//! The program `rushes`: stream media files over RTP, receive them, check and measure.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod compare;
mod interrupt;
mod loopback;
mod pages;
mod progress;
mod recv;
mod report;
mod send;
mod source;
mod stream;
mod values;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

/// How a command ended, short of an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// What was asked for happened.
    Done,
    /// It did not, and the report says why.
    Fell,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Loopback(args) => loopback::run(args),
        Command::Send(args) => send::run(args),
        Command::Recv(args) => recv::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Completions { shell } => {
            pages::completions(*shell);
            Ok(Outcome::Done)
        }
        Command::Man => pages::man(),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Fell) => ExitCode::from(1),
        Err(error) => {
            eprintln!("rushes: {error:#}");
            ExitCode::from(1)
        }
    }
}
