//! The program that the tests run.

use std::path::PathBuf;

/// Returns the program that was built for the tests, or the one that `RUSHES_PROGRAM` names, as
/// `release/check` does with the installed one.
pub(crate) fn program() -> PathBuf {
    let built = || assert_cmd::cargo::cargo_bin!("rushes").to_path_buf();
    std::env::var_os("RUSHES_PROGRAM").map_or_else(built, PathBuf::from)
}
