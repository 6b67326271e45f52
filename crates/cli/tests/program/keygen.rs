//! `rushes keygen`, and keys that a description carries to a later run.

use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rushes::Suite;

use crate::rig::{MEDIA, free_port, media, receiving, run, rushes, silent_receiver, text, units};

/// Returns the octets of a line of base64.
fn decoded(line: &str) -> Vec<u8> {
    STANDARD.decode(line.strip_suffix('\n').unwrap()).unwrap()
}

#[test]
fn each_suite_gets_a_new_key_of_its_length() {
    let made = |kind: &str| {
        let output = run(&["keygen", kind]);
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        decoded(&text(&output.stdout))
    };
    for suite in Suite::ALL {
        let keys = [made(suite.name()), made(suite.name())];
        assert_eq!(keys[0].len(), suite.key_and_salt_len(), "{suite}");
        assert_ne!(keys[0], keys[1]);
    }
    assert_eq!(made("secret").len(), 32);
    let wrong = run(&["keygen", "ROT13"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("AEAD_AES_128_GCM"), "{}", text(&wrong.stderr));
}

#[test]
#[cfg(unix)]
fn a_file_with_a_key_is_for_its_owner_only_and_not_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = folder.path().join("key");
    let write = ["keygen", "AEAD_AES_128_GCM", "-o", path.to_str().unwrap()];
    assert!(run(&write).status.success());
    let first = std::fs::read(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    let again = run(&write);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("--force"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read(&path).unwrap(), first);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(rushes(&write).arg("--force").status().unwrap().success());
    assert_eq!(mode(&path), 0o600);
    assert_ne!(std::fs::read(&path).unwrap(), first);

    // The output is redirected as by the shell's >, which creates files that all users may read.
    let redirected = folder.path().join("redirected");
    let file = std::fs::File::create(&redirected).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o644)).unwrap();
    let made = rushes(&["keygen", "secret"]).stdout(Stdio::from(file)).status().unwrap();
    assert!(made.success());
    assert_eq!((mode(&redirected), std::fs::read(&redirected).unwrap().len()), (0o600, 45));
}

/// The receiver can be started first: the description is written without sending, and a later run
/// takes its key.
#[test]
fn a_described_key_is_that_of_a_later_run() {
    let folder = tempfile::tempdir().unwrap();
    let (sdp, copy) = (folder.path().join("a.sdp"), folder.path().join(MEDIA[1]));
    let (port, name) = (free_port(), media(MEDIA[1]));
    let (to, described) = (format!("127.0.0.1:{port}"), sdp.to_str().unwrap());
    let send = ["send", &name, "--to", &to, "--srtp", "AEAD_AES_128_GCM", "--fps", "1000"];
    let describe = [&send[..], &["--sdp", described, "--dry-run"]].concat();
    let output = run(&describe);
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    let advice = format!("--srtp AEAD_AES_128_GCM --key-file {described} instead of --sdp");
    assert!(log.contains(&advice), "{log}");
    let receiver = receiving(port, &["--sdp", described], &copy);

    // The same command without --dry-run would generate another key.
    let output = run(&[&send[..], &["--sdp", described]].concat());
    assert_eq!(output.status.code(), Some(1));
    let log = text(&output.stderr);
    assert!(log.contains(&format!("--key-file {described} instead of --sdp")), "{log}");

    let sent = run(&[&send[..], &["--key-file", described]].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    assert!(received.status.success(), "{}", text(&received.stderr));
    assert!(units(&copy) == units(Path::new(&name)));
}

/// Two runs with one key and one SSRC would repeat the key stream.
#[test]
fn a_description_that_names_an_ssrc_serves_one_run_only() {
    let folder = tempfile::tempdir().unwrap();
    let (sdp, name) = (folder.path().join("a.sdp"), media(MEDIA[1]));
    let described = sdp.to_str().unwrap();
    let (_receiver, to) = silent_receiver();
    let send = ["send", &name, "--to", &to, "--srtp", "AES_CM_128_HMAC_SHA1_80"];
    let describe = [&send[..], &["--sdp", described, "--dry-run", "--ssrc", "7"]].concat();
    let log = text(&run(&describe).stderr);
    assert!(log.contains(&format!("{described} --ssrc 0x00000007 --fresh-key instead")), "{log}");
    let keyed = [&send[..], &["--key-file", described, "--flat-out", "-q"]].concat();
    for (more, refusal) in [
        (&[][..], "names the SSRC 0x00000007"),
        (&["--ssrc", "8", "--fresh-key"], "names the SSRC 0x00000007"),
        (&["--ssrc", "7"], "--fresh-key"),
    ] {
        let output = run(&[&keyed[..], more].concat());
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {log}");
        assert!(log.contains(refusal), "{more:?}: {log}");
    }
    assert!(run(&[&keyed[..], &["--ssrc", "7", "--fresh-key"]].concat()).status.success());
    let other = [&send[..4], &["--srtp", "AEAD_AES_128_GCM", "--key-file", described]].concat();
    let output = run(&other);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no media with a key for AEAD_AES_128_GCM"));
}
