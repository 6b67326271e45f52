//! `--srtp`, and keys in descriptions.

use std::path::Path;

use crate::rig::{
    MEDIA, free_port, interrupt, json, listening, media, receiving, run, rushes, silent_receiver,
    text, units,
};

/// A key of 28 octets.
const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";

/// Writes a secret to a file that only its owner may read.
fn write_secret(path: &Path, secret: &str) {
    std::fs::write(path, format!("{secret}\n")).unwrap();
    #[cfg(unix)]
    set_mode(path, 0o600);
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
#[cfg(unix)]
fn a_file_with_a_secret_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    write_secret(&file, KEY);
    let name = file.to_str().unwrap();
    let send = ["send", &media(MEDIA[0]), "--to", "127.0.0.1:9"];
    for (mode, refused) in [(0o644, true), (0o620, true), (0o601, true), (0o400, false)] {
        set_mode(&file, mode);
        for secured in [
            &["--srtp", "AEAD_AES_128_GCM", "--key-file", name, "--sdp", "-", "--dry-run"][..],
            &["--zrtp", "--secret-file", name],
        ] {
            if !refused && secured[0] == "--zrtp" {
                continue;
            }
            let output = run(&[&send, secured].concat());
            let log = text(&output.stderr);
            let code = if refused { Some(2) } else { Some(0) };
            assert_eq!(output.status.code(), code, "{mode:o}: {log}");
            assert_eq!(log.contains(&format!("chmod 600 {name}")), refused, "{log}");
        }
    }
}

#[test]
fn an_ssrc_is_not_set_under_a_key_that_may_have_been_used() {
    let (_receiver, to) = silent_receiver();
    let send = ["send", &media(MEDIA[0]), "--to", &to, "--flat-out", "--quiet"];
    let keyed = ["--srtp", "AEAD_AES_128_GCM", "--key", KEY];
    for source in [&["--ssrc", "7"][..], &["--recovery", "rtx", "--rtx-ssrc", "8"]] {
        let output = run(&[&send[..], &keyed, source].concat());
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{log}");
        assert!(log.contains("--fresh-key") && log.contains("--secret-file"), "{log}");
        let output = run(&[&send[..], &keyed, source, &["--fresh-key"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
#[cfg(unix)]
fn a_receiver_under_a_given_key_warns_about_replays() {
    let folder = tempfile::tempdir().unwrap();
    let log_of = |more: &[&str]| {
        let (receiver, _) = listening(&folder.path().join("a.265"), more);
        interrupt(&receiver);
        text(&receiver.wait_with_output().unwrap().stderr)
    };
    let keyed = log_of(&["--srtp", "AEAD_AES_128_GCM", "--key", KEY]);
    assert!(
        keyed.contains("recorded under this key in an earlier run would be accepted"),
        "{keyed}"
    );
    assert!(!log_of(&["--zrtp"]).contains("would be accepted"));
}

#[test]
fn loopback_under_every_suite_is_identical() {
    for suite in rushes::Suite::ALL {
        let output = run(&["loopback", &media(MEDIA[1]), "--srtp", suite.name(), "--json"]);
        assert!(output.status.success(), "{suite}: {}", text(&output.stderr));
        let report = json(&output);
        assert_eq!(
            (&report["identical"], &report["security"]),
            (&true.into(), &suite.name().into())
        );
    }
}

#[test]
fn a_file_sent_with_a_key_is_received_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    write_secret(&key_file, KEY);
    let secured = ["--srtp", "AEAD_AES_128_GCM", "--key-file", key_file.to_str().unwrap()];
    let copy = folder.path().join(MEDIA[0]);
    let (receiver, to) = listening(&copy, &secured);
    let name = media(MEDIA[0]);
    let mut arguments = vec!["send", &name, "--to", &to, "--fps", "1000", "-q"];
    arguments.extend(["--srtp", "AEAD_AES_128_GCM", "--key", KEY]);
    let sent = run(&arguments);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    assert!(received.status.success(), "{}", text(&received.stdout));
    assert!(units(&copy) == units(Path::new(&name)));
}

#[test]
#[cfg(unix)]
fn unencrypted_packets_are_refused_counted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(MEDIA[0]);
    let (receiver, to) = listening(&copy, &["--srtp", "AEAD_AES_128_GCM", "--key", KEY]);
    let sent = run(&["send", &media(MEDIA[0]), "--to", &to, "--fps", "1000", "--json"]);
    // Waits longer than a second, because refused packets are reported once a second.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    interrupt(&receiver);
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(received.status.code(), Some(1));
    let report = json(&received);
    assert_eq!(report["received"]["packets"], 0);
    let packets = json(&sent)["sent"]["packets"].as_u64().unwrap();
    let refused = report["received"]["discards"]["authentication failed"].as_u64().unwrap();
    // The packets that end the stream are not media and are also refused.
    assert!(refused >= packets, "{report}");
    let log = text(&received.stderr);
    assert!(log.contains(": authentication failed"), "{log}");
    assert!(!copy.exists());
}

#[test]
fn a_description_carries_the_key() {
    let folder = tempfile::tempdir().unwrap();
    for (suite, recovery) in [("AES_256_CM_HMAC_SHA1_80", "off"), ("AEAD_AES_256_GCM", "verbatim")]
    {
        let port = free_port();
        let to = format!("127.0.0.1:{port}");
        let (sdp, copy) = (folder.path().join("a.sdp"), folder.path().join(MEDIA[1]));
        let name = media(MEDIA[1]);
        let key = "QUFB".repeat(rushes_key_len(suite) / 3)
            + ["", "QQ==", "QUE="][rushes_key_len(suite) % 3];
        let common = ["-f", "--srtp", suite, "--key", &key, "--recovery", recovery];
        let mut arguments = vec!["send", &name, "--to", &to, "--sdp", sdp.to_str().unwrap()];
        arguments.extend(common);
        let described = rushes(&arguments).arg("--dry-run").output().unwrap();
        assert!(described.status.success(), "{}", text(&described.stderr));
        let words = std::fs::read_to_string(&sdp).unwrap();
        let profile = if recovery == "off" { "RTP/SAVP " } else { "RTP/SAVPF " };
        assert!(words.contains(&format!("a=crypto:1 {suite} inline:{key}")), "{words}");
        assert!(words.contains(profile), "{words}");

        let receiver = receiving(port, &["-f", "--sdp", sdp.to_str().unwrap()], &copy);
        arguments.extend(["--fps", "1000", "-q"]);
        let sent = run(&arguments);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let received = receiver.wait_with_output().unwrap();
        assert!(received.status.success(), "{}", text(&received.stdout));
        assert!(units(&copy) == units(Path::new(&name)));
    }
}

fn rushes_key_len(suite: &str) -> usize {
    suite.parse::<rushes::Suite>().unwrap().key_and_salt_len()
}

#[test]
#[cfg(unix)]
fn a_key_made_up_for_a_description_is_new_and_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let sdp = folder.path().join("a.sdp");
    let (_receiver, to) = silent_receiver();
    let mut keys = Vec::new();
    for _ in 0..2 {
        let arguments = ["send", &media(MEDIA[0]), "--to", &to, "--sdp", sdp.to_str().unwrap()];
        let more = ["--srtp", "AES_CM_128_HMAC_SHA1_80", "--fps", "1000", "-q", "--force"];
        let sent = run(&[&arguments[..], &more].concat());
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let words = std::fs::read_to_string(&sdp).unwrap();
        keys.push(words.split_once("inline:").unwrap().1.to_owned());
        assert_eq!(std::fs::metadata(&sdp).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn wrong_security_is_a_wrong_command_line_and_no_key_is_echoed() {
    let name = media(MEDIA[0]);
    let gcm = ["--srtp", "AEAD_AES_128_GCM"];
    for (arguments, word) in [
        (&["--srtp", "ROT13"][..], "AES_CM_128_HMAC_SHA1_80"),
        (&["--key", KEY], "--srtp"),
        (&[&gcm[..], &["--key", KEY, "--key-file", "x"]].concat(), "cannot be used with"),
        (&[&gcm[..], &["--key", "c2VjcmV0"]].concat(), "needs a key of 28 octets, this one has 6"),
        (&[&gcm[..], &["--key", "c2Vjc*V0"]].concat(), "not base64"),
        (&gcm, "--key"),
        (&gcm, "rushes keygen AEAD_AES_128_GCM"),
    ] {
        let output = run(&[&["send", &name, "--to", "127.0.0.1:9"], arguments].concat());
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {log}");
        assert!(log.contains(word), "{arguments:?}: {log}");
        assert!(!log.contains(KEY) && !log.contains("c2Vj"), "{log}");
    }
}
