//! `rushes bench` in a build without the feature `bench`: `features::check` refuses it.

use std::ffi::OsString;

use clap::Args;

/// Any arguments, even `--help`: the answer is always the same.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::{Parser, Subcommand};

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(subcommand)]
        what: What,
    }

    #[derive(Debug, Subcommand)]
    enum What {
        Bench(BenchArgs),
    }

    #[test]
    fn every_line_of_a_missing_bench_reaches_its_answer() {
        for line in ["", " --quick --out report", " goodput --runs 1", " --help", " rates -h"] {
            let line = format!("rushes bench{line}");
            let program = Program::try_parse_from(line.split(' ')).unwrap();
            let What::Bench(args) = program.what;
            assert_eq!(args.arguments.len(), line.split(' ').count() - 2, "{line}");
        }
    }
}
