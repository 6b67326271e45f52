//! The command line: its commands.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::args::{LoopbackArgs, RecvArgs, SendArgs};
use crate::bench::BenchArgs;
use crate::inspect::InspectArgs;
use crate::keygen::KeygenArgs;
use crate::log::Verbosity;
use crate::pages::ManArgs;
use crate::serve::ServeArgs;
use crate::texture::TextureArgs;

/// Stream video and audio between machines in real time, over RTP.
#[derive(Debug, Parser)]
#[command(name = "rushes", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Examples:
  rushes loopback                          stream a built-in clip over loopback and check every byte
  rushes loopback film.265 --fps 60        the same with a file, at 60 frames a second
  rushes recv --from 5004 --codec h265 -o copy.265
  rushes send film.265 --to 127.0.0.1:5004 --fps 30
  rushes texture serve pattern --listen 7000
  rushes inspect call.pcap                 the streams in a capture, with their statistics

Exit code: 0 for success, 1 for failure, 2 for an error in the command line.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a file over loopback through real sockets and check every byte
    Loopback(LoopbackArgs),
    /// Send a file to a host
    Send(SendArgs),
    /// Receive a stream into a file
    Recv(RecvArgs),
    /// Show a file or a live source to browsers, or what one of them publishes (WebRTC)
    Serve(ServeArgs),
    /// Report the contents of a capture, and extract streams from it
    Inspect(InspectArgs),
    /// Encode, decode, send and receive frames in texture formats
    Texture(TextureArgs),
    /// Benchmark this machine
    #[cfg_attr(not(feature = "bench"), doc = "(not in this build: cargo's feature `bench`)")]
    Bench(BenchArgs),
    /// Make a random key for --key-file, or a secret for --secret-file
    Keygen(KeygenArgs),
    /// Print a completion script for a shell
    Completions {
        /// Shell to print the script for
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

impl Command {
    /// Returns how many of the libraries' log messages the command shows.
    pub(crate) fn verbosity(&self) -> Verbosity {
        let output = match self {
            Self::Loopback(args) => args.output,
            Self::Send(args) => args.output,
            Self::Recv(args) => args.output,
            Self::Serve(args) => args.output,
            Self::Texture(args) => args.output(),
            Self::Inspect(InspectArgs { quiet, verbose, .. }) => {
                return Verbosity { quiet: *quiet, verbose: verbose.verbose };
            }
            Self::Bench(_) | Self::Keygen(_) | Self::Completions { .. } | Self::Man(_) => {
                return Verbosity::default();
            }
        };
        Verbosity { quiet: output.quiet, verbose: output.verbose.verbose }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory;

    use super::*;
    use crate::endpoint::Endpoint;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_recv_line_is_understood() {
        let line = ["rushes", "recv", "--from", "5004", "--codec", "h265", "-o", "x.265"];
        let Command::Recv(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("not recv")
        };
        assert_eq!(args.from, Some(Endpoint { host: None, port: 5004 }));
        assert_eq!(args.idle_timeout, Duration::from_secs(2));
    }
}
