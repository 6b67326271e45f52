//! Checks that the machine's interpreter imports the built package and runs its first example.
//!
//! The package's behaviour is tested in Python (`.ci/python`); this test needs nothing installed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Imports the package and runs the example of its documentation.
const PROGRAM: &str = "
import doctest, rushes
result = doctest.testmod(rushes)
print(result.attempted)
raise SystemExit(result.failed)
";

/// Returns whether there is an interpreter that the package supports.
fn has_python() -> bool {
    let asks = "import sys; raise SystemExit(sys.version_info < (3, 11))";
    let ended = Command::new("python3").args(["-c", asks]).status();
    let found = ended.is_ok_and(|status| status.success());
    if !found {
        skipped::missing("python3 of 3.11 or later", "python3");
    }
    found
}

/// Returns the extension module, which is built beside this test.
fn library() -> PathBuf {
    let name = format!("{}_rushes{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    std::env::current_exe().unwrap().with_file_name(name)
}

#[test]
fn the_packages_first_example_runs() {
    if cfg!(not(unix)) || !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("rushes");
    std::fs::create_dir(&package).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("rushes");
    for entry in std::fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "py") {
            std::fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    std::fs::copy(library(), package.join("_rushes.abi3.so")).unwrap();

    // The program must not run in the folder of the sources, which has no extension module.
    let mut python = Command::new("python3");
    python.current_dir(folder.path());
    python.args(["-B", "-c", PROGRAM]).env("PYTHONPATH", folder.path());
    let output = python.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{errors}", String::from_utf8_lossy(&output.stdout));
    let examples: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    assert!(examples >= 4, "{examples} statements");
}
