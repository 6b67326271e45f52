//! `rushes bench`: runs the benchmarks of the crate `rushes-bench`.

pub(crate) use rushes_bench::BenchArgs;

use crate::{Outcome, Usage};

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    match rushes_bench::run(args) {
        Ok(rushes_bench::Outcome::Done) => Ok(Outcome::Done),
        Ok(rushes_bench::Outcome::PacketsLost) => Ok(Outcome::Failed),
        Err(error) if error.is::<rushes_bench::Usage>() => Err(Usage(error.to_string()).into()),
        Err(error) => Err(error),
    }
}
