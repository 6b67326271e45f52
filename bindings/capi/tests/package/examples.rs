//! The examples, built with `CMake` and with pkg-config, running against each other and `rushes`.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, thread};

use rushes::Framing;
use rushes::payload::nal::find_units;

use crate::rig::{Process, folder, have, home, prefix, run, rushes, skip};
use crate::taken::is_taken;

const CLIP: &str = "../../vectors/media/hevc_192x128_90f_tiny_nals.265";

/// The examples, built by pkg-config and make.
fn made() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let place = folder("make");
        let mut make = Command::new("make");
        make.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
        make.arg("-C").arg(home().join("examples")).arg(format!("OUT={}", place.display()));
        run(&mut make);
        place
    })
}

/// The examples, built by `CMake`.
fn configured() -> &'static Path {
    static CONFIGURED: OnceLock<PathBuf> = OnceLock::new();
    CONFIGURED.get_or_init(|| {
        let place = folder("cmake");
        let mut cmake = Command::new("cmake");
        cmake.arg("-S").arg(home().join("examples")).arg("-B").arg(&place);
        run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
        run(Command::new("cmake").arg("--build").arg(&place).args(["--parallel", "2"]));
        place
    })
}

fn can_build() -> bool {
    have(&["cc", "c++", "make", "pkg-config", "cmake"])
}

/// Returns the NAL units of an H.265 file.
fn units(path: &Path) -> Vec<Vec<u8>> {
    let octets = fs::read(path).unwrap();
    let mut ranges = Vec::new();
    find_units(&octets, Framing::AnnexB, &mut ranges).unwrap();
    ranges.into_iter().map(|range| octets[range].to_vec()).collect()
}

/// Returns the first of two consecutive free ports, outside the kernel's ephemeral port range. No
/// two calls return the same.
fn ports() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(61);
    for _ in 0..1000 {
        let pair = start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % 1000;
        let port = 18_000 + 2 * pair as u16;
        if [port, port + 1].iter().all(|&port| UdpSocket::bind(("127.0.0.1", port)).is_ok()) {
            return port;
        }
    }
    panic!("no two consecutive ports are free");
}

/// The implementation at one end of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    C,
    Cpp,
    Rust,
}

fn receiver(end: End, zrtp: bool, port: u16, copy: &Path) -> Option<Command> {
    let options = if zrtp { Some(if end == End::Rust { "--zrtp" } else { "zrtp" }) } else { None };
    let port = port.to_string();
    let mut command = match end {
        End::C => Command::new(configured().join("receive")),
        End::Cpp => Command::new(made().join("receive_hook")),
        End::Rust => {
            let mut command = Command::new(rushes()?);
            command.args(["recv", "--codec", "h265", "--idle-timeout", "3s"]);
            command.args(["--from", &format!("127.0.0.1:{port}"), "-o"]).arg(copy).args(options);
            return Some(command);
        }
    };
    command.arg(port).arg(copy).args(options);
    Some(command)
}

fn sender(end: End, zrtp: bool, port: u16, clip: &Path) -> Option<Command> {
    let options = if zrtp { Some(if end == End::Rust { "--zrtp" } else { "zrtp" }) } else { None };
    let mut command = match end {
        End::C => Command::new(made().join("send")),
        End::Cpp => Command::new(configured().join("send_cpp")),
        End::Rust => {
            let mut command = Command::new(rushes()?);
            command.arg("send").arg(clip).args(["--to", &format!("127.0.0.1:{port}")]);
            command.args(["--fps", "300"]).args(options);
            return Some(command);
        }
    };
    command.arg("127.0.0.1").arg(port.to_string()).arg(clip).arg("300").args(options);
    Some(command)
}

/// Waits until a process has bound `port`.
fn wait_for(port: u16) {
    for _ in 0..3000 {
        if is_taken(port) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing listens on port {port}");
}

fn pairs(zrtp: bool) {
    if !can_build() {
        return;
    }
    let place = folder(if zrtp { "pairs-zrtp" } else { "pairs" });
    let clip = home().join(CLIP);
    let wanted = units(&clip);
    assert!(wanted.len() > 90);
    let ends = [End::C, End::Cpp, End::Rust];
    thread::scope(|scope| {
        for from in ends {
            let (clip, wanted, place) = (&clip, &wanted, &place);
            scope.spawn(move || {
                for to in ends {
                    let copy = place.join(format!("{from:?}-{to:?}.265"));
                    transfer((from, to), zrtp, (clip, &copy));
                    assert!(units(&copy) == *wanted, "the NAL units differ, {from:?} to {to:?}");
                }
            });
        }
    });
}

/// Sends a clip from one end to the other, which writes a copy.
fn transfer((from, to): (End, End), zrtp: bool, (clip, copy): (&Path, &Path)) {
    let port = ports();
    let commands = (receiver(to, zrtp, port, copy), sender(from, zrtp, port, clip));
    let (Some(mut receiver), Some(mut sender)) = commands else {
        skip("the program `rushes` is not built: cargo build -p rushes-cli");
        // This pair is skipped; the clip itself stands for the copy.
        fs::copy(clip, copy).unwrap();
        return;
    };
    let receiving = Process::start(&mut receiver);
    wait_for(port);
    let (sent, sender_output) = Process::start(&mut sender).end();
    let (received, receiver_output) = receiving.end();
    let output = format!("{from:?} to {to:?}: {sender_output}\n{receiver_output}");
    assert!(sent && received, "{output}");
    if zrtp && from != End::Rust && to != End::Rust {
        assert_eq!(agreed_string(&sender_output), agreed_string(&receiver_output), "{output}");
    }
}

/// Returns the short authentication string that an example printed.
fn agreed_string(output: &str) -> &str {
    output
        .lines()
        .find_map(|line| line.strip_prefix("agreed: "))
        .expect("the example prints the string")
}

#[test]
fn every_end_understands_every_other() {
    pairs(false);
}

#[test]
fn every_end_agrees_on_keys_with_every_other() {
    pairs(true);
}

#[test]
fn the_senders_read_a_pipe() {
    if !can_build() {
        return;
    }
    let (place, clip) = (folder("pipes"), home().join(CLIP));
    for sender in [made().join("send"), configured().join("send_cpp")] {
        let (port, copy) = (ports(), place.join("copy.265"));
        let mut receiver = receiver(End::C, false, port, &copy).unwrap();
        let receiving = Process::start(&mut receiver);
        wait_for(port);
        let line =
            format!("cat '{}' | '{}' 127.0.0.1 {port} - 300", clip.display(), sender.display());
        let output = run(Command::new("sh").arg("-c").arg(line));
        assert!(output.contains("90 frames"), "{output}");
        let (received, output) = receiving.end();
        assert!(received, "{output}");
        assert!(units(&copy) == units(&clip), "{}", sender.display());
    }
}

#[test]
fn the_first_program_of_the_documentation_runs() {
    if !have(&["c++", "pkg-config"]) {
        return;
    }
    let page = fs::read_to_string(home().join("../../docs/from-c++.md")).unwrap();
    let program = page.split("```cpp\n").nth(1).unwrap().split("```").next().unwrap();
    let place = folder("first");
    fs::write(place.join("first.cpp"), program).unwrap();
    let libraries = prefix().join("lib");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-Wall", "-Werror", "-I"]).arg(prefix().join("include"));
    compiler.arg(place.join("first.cpp")).arg("-o").arg(place.join("first"));
    compiler.arg("-L").arg(&libraries).arg("-lrushes");
    run(compiler.arg(format!("-Wl,-rpath,{}", libraries.display())));
    assert_eq!(run(&mut Command::new(place.join("first"))), "12 octets\n");
}

#[test]
fn the_examples_run_by_themselves() {
    if !can_build() {
        return;
    }
    for place in [made(), configured()] {
        for name in ["srtp", "zrtp", "texture"] {
            let output = run(&mut Command::new(place.join(name)));
            assert!(!output.is_empty(), "{name}");
        }
    }
    // This program must not need the shared library.
    let needed = run(Command::new("readelf").arg("-d").arg(configured().join("send_static")));
    assert!(!needed.contains("librushes"), "{needed}");
}
