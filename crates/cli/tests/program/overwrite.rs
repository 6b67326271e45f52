//! Existing files are overwritten only on request.

use std::path::Path;

use crate::rig::{free_port, listening, media, receiving, run, text};

const FILM: &str = "avc_cif_60f_baseline.264";

/// Asserts that the command line overwrites `file` with `--force`, and leaves it unchanged without.
fn asks_before_overwriting(arguments: &[&str], file: &Path) {
    std::fs::write(file, "precious").unwrap();
    let output = run(arguments);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
    let question = format!("{} exists; --force overwrites it", file.display());
    assert!(errors.contains(&question), "{arguments:?}: {errors}");
    assert_eq!(std::fs::read(file).unwrap(), b"precious");
    let output = run(&[arguments, &["--force"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    assert_ne!(std::fs::read(file).unwrap(), b"precious");
    std::fs::remove_file(file).unwrap();
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
}

#[test]
fn programs_that_write_ask_before_overwriting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let name = |name: &str| path(name).to_str().unwrap().to_owned();
    let encode = ["texture", "encode", "pattern:16x16", &name("a.ktx2"), "--frames", "2"];
    asks_before_overwriting(&encode, &path("a.ktx2"));
    let decode = ["texture", "decode", &name("a.ktx2"), &name("a.y4m")];
    asks_before_overwriting(&decode, &path("a.y4m"));
    // Numbered images are protected, too.
    let decode = ["texture", "decode", &name("a.ktx2"), &name("b.png")];
    asks_before_overwriting(&decode, &path("b_00000.png"));
    let film = media(FILM);
    let describe = ["send", &film, "--to", "127.0.0.1:9", "--dry-run", "--sdp", &name("a.sdp")];
    asks_before_overwriting(&describe, &path("a.sdp"));
}

#[test]
fn a_receiver_asks_before_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.264");
    std::fs::write(&copy, "precious").unwrap();
    let (refused, _) = listening(&copy, &[]);
    let refused = refused.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("exists; --force overwrites it"));
    let (receiver, to) = listening(&copy, &["-f"]);
    let sent = run(&["send", &media(FILM), "--to", &to, "--fps", "1000", "-q"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(receiver.wait_with_output().unwrap().status.success());
    assert_ne!(std::fs::read(&copy).unwrap(), b"precious");
}

#[test]
fn a_file_that_appears_meanwhile_is_kept_beside_the_received_frames() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.264");
    let (receiver, to) = listening(&copy, &[]);
    let sent = run(&["send", &media(FILM), "--to", &to, "--fps", "1000", "--no-rtcp", "-q"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    // Without a goodbye, the receiver would wait two more seconds.
    std::fs::write(&copy, "precious").unwrap();
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(received.status.code(), Some(1));
    assert!(text(&received.stderr).contains("copy.264.part keeps"), "{}", text(&received.stderr));
    assert_eq!(std::fs::read(&copy).unwrap(), b"precious");
    assert!(folder.path().join("copy.264.part").metadata().unwrap().len() > 10_000);
}

#[test]
#[cfg(unix)]
fn a_device_is_written_without_a_question() {
    let port = free_port();
    let from = format!("127.0.0.1:{port}");
    let arguments = ["--from", &from, "--codec", "h264"];
    let receiver = receiving(port, &arguments, Path::new("/dev/null"));
    let sent = run(&["send", &media(FILM), "--to", &from, "--fps", "1000", "-q"]);
    assert!(sent.status.success());
    assert!(receiver.wait_with_output().unwrap().status.success());
}
