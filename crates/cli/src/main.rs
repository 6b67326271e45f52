//! The program `rushes`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    rushes_cli::run(std::env::args_os())
}
