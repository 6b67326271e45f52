//! The tests written in C and C++, plain and under memory checkers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::rig::{folder, have, home, prefix, run, skip, static_flags};

/// The tests and the language standards that they are compiled with.
const PROGRAMS: [(&str, &str); 7] = [
    ("misuse.c", "c11"),
    ("streams.c", "c11"),
    ("poller.c", "c11"),
    ("media.c", "c11"),
    ("textures.c", "c11"),
    ("peers.c", "c11"),
    ("wrapper.cpp", "c++17"),
];

/// The wrapper's test with a later standard. It runs without memory checkers, which would find
/// nothing new.
const LATER: (&str, &str) = ("wrapper.cpp", "c++20");

fn compiler((source, standard): (&str, &str)) -> Command {
    let mut command = Command::new(if standard.starts_with("c++") { "c++" } else { "cc" });
    command.arg(format!("-std={standard}"));
    let media = fs::canonicalize(home().join("../../vectors/media")).unwrap();
    command.arg(format!("-DMEDIA=\"{}\"", media.display()));
    command.args(["-D_POSIX_C_SOURCE=200809L", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]);
    command.arg("-I").arg(prefix().join("include")).arg(home().join("tests/c").join(source));
    command
}

/// The tests, compiled against the shared library.
fn plain() -> &'static [PathBuf] {
    static PLAIN: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let place = folder("plain");
        PROGRAMS.map(|program| compile(program, &place, &[])).into()
    })
}

/// Compiles a test against the shared library.
pub(crate) fn compile((source, standard): (&str, &str), place: &Path, flags: &[&str]) -> PathBuf {
    let program = place.join(format!("{source}-{standard}"));
    let libraries = prefix().join("lib");
    let mut command = compiler((source, standard));
    command.args(flags).arg("-o").arg(&program).arg("-L").arg(&libraries).arg("-lrushes");
    run(command.arg(format!("-Wl,-rpath,{}", libraries.display())).arg("-pthread"));
    program
}

#[test]
fn they_pass() {
    if !have(&["cc", "c++"]) {
        return;
    }
    let later = compile(LATER, &folder("later"), &[]);
    for program in plain().iter().chain([&later]) {
        run(&mut Command::new(program));
    }
}

#[test]
fn they_pass_under_address_sanitizer() {
    if !have(&["cc", "c++"]) {
        return;
    }
    let place = folder("asan");
    let probe = place.join("probe.c");
    fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
    let mut probing = Command::new("cc");
    probing.arg("-fsanitize=address").arg(&probe).arg("-o").arg(place.join("probe"));
    if !probing.output().is_ok_and(|output| output.status.success()) {
        skip("the compiler has no AddressSanitizer");
        return;
    }
    for program in PROGRAMS {
        run(&mut Command::new(compile(program, &place, &["-fsanitize=address"])));
    }
    // One test is also linked statically.
    let program = place.join("inside");
    let mut command = compiler(PROGRAMS[0]);
    command.arg("-fsanitize=address").arg("-o").arg(&program);
    run(command.args(static_flags()));
    run(&mut Command::new(program));
}

#[test]
fn they_pass_under_valgrind() {
    if !have(&["cc", "c++", "valgrind"]) {
        return;
    }
    for program in plain() {
        let mut command = Command::new("valgrind");
        // The checker reports Rust's handle of the main thread as possibly lost, because it points
        // into a block.
        command.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
        command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
        // Without fair scheduling, spinning threads would keep the threads that they wait for from
        // running.
        command.arg("--fair-sched=try").arg(program);
        // With this argument, the tests in which a child process ends by a signal are omitted.
        run(command.arg("no-forks"));
    }
}
