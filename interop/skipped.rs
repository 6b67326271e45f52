//! Tests that are skipped, noted for the end of `cargo test` (`zz_skipped.rs`).
//!
//! Test programs include this file by `#[path]`.
#![allow(dead_code, reason = "each test program uses only some items")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Skips the running test for want of programs or libraries, which Debian has in `packages`.
///
/// With `RUSHES_INTEROP=require` (as `.ci/run` sets it) it fails instead.
pub(crate) fn missing(what: impl Display, packages: &str) {
    let required = std::env::var("RUSHES_INTEROP").is_ok_and(|value| value == "require");
    assert!(!required, "missing: {what}{}", advice(packages));
    note(&format!("missing: {what}"), packages);
}

/// Whether all of `programs` are there; otherwise skips the running test as [`missing`] does.
pub(crate) fn have(programs: &[&str]) -> bool {
    let missing_ones: Vec<_> = programs.iter().filter(|program| !on_path(program)).collect();
    if missing_ones.is_empty() {
        return true;
    }
    let names: Vec<_> = missing_ones.iter().map(|name| **name).collect();
    let packages: Vec<_> = names.iter().map(|name| package(name)).collect();
    missing(names.join(", "), &packages.join(" "));
    false
}

/// Skips the running test because this machine does not allow it, whatever is installed.
pub(crate) fn not_here(why: impl Display) {
    note(&why.to_string(), "");
}

/// The folder with a file for each run: a line for each skipped test.
pub(crate) fn run() -> PathBuf {
    // The tests of one `cargo test` have it as their parent, unless a runner is in between.
    #[cfg(unix)]
    let parent = std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    let parent = 0;
    let run = std::env::var("RUSHES_TEST_RUN").unwrap_or_else(|_| parent.to_string());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped").join(run)
}

fn note(reason: &str, packages: &str) {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // Without the hash that cargo adds.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread");
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let file = run();
    let _ = file.parent().map(create_dir_all);
    let file = OpenOptions::new().create(true).append(true).open(file);
    // One write, which others do not divide.
    let line = format!("{reason}\t{packages}\t{program} {test}\n");
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    // Past the test harness, which shows what tests print only if they fail.
    let advice = advice(packages);
    let _ = writeln!(std::io::stderr(), "SKIPPED {program} {test}: {reason}{advice}");
}

/// The skipped tests of a run, by their reasons, and what to install; empty without any.
pub(crate) fn summary(notes: &str) -> String {
    let mut tests: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut packages = BTreeSet::new();
    for note in notes.lines() {
        let mut fields = note.splitn(3, '\t');
        let mut next = || fields.next().unwrap_or_default();
        let reason = next();
        packages.extend(next().split_whitespace());
        tests.entry(reason).or_default().insert(next());
    }
    if tests.is_empty() {
        return String::new();
    }
    let all = tests.values().flatten().collect::<BTreeSet<_>>().len();
    let mut lines = vec![String::new(), format!("SKIPPED {all} tests, wholly or in part:")];
    lines.extend(tests.iter().map(|(reason, tests)| {
        let first = tests.first().copied().unwrap_or_default();
        let others = if tests.len() > 1 { ", ..." } else { "" };
        format!("SKIPPED {:4} {reason}: {first}{others}", tests.len())
    }));
    if !packages.is_empty() {
        let packages: Vec<_> = packages.into_iter().collect();
        lines.push(format!("SKIPPED Try: sudo apt-get install {}", packages.join(" ")));
        lines.push("SKIPPED or .ci/peers and .ci/screen, for all that the tests use".into());
    }
    lines.join("\n") + "\n"
}

fn advice(packages: &str) -> String {
    if packages.is_empty() { String::new() } else { format!(" (apt-get install {packages})") }
}

fn on_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Debian's package with a program.
fn package(program: &str) -> &str {
    match program {
        "c++" => "g++",
        "cc" => "gcc",
        "ffplay" | "ffprobe" => "ffmpeg",
        "gst-inspect-1.0" | "gst-launch-1.0" => "gstreamer1.0-tools",
        "go" => "golang-go",
        "import" | "convert" => "imagemagick",
        "ip" | "tc" => "iproute2",
        "nft" => "nftables",
        "nsenter" | "unshare" => "util-linux",
        "turnserver" => "coturn",
        "Xvfb" => "xvfb",
        program => program,
    }
}
