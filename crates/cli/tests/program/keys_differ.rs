//! Senders and receivers whose keys differ: each combination ends with a message that names the
//! difference.

use crate::rig::{MEDIA, RunningProgram, free_port, media, run, rushes, text};

/// A key of 28 octets; below, another one.
const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";
const OTHER_KEY: &str = "MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";
const GCM: [&str; 3] = ["--srtp", "AEAD_AES_128_GCM", "--key"];

#[test]
#[cfg(unix)]
fn a_receiver_whose_keys_differ_names_the_difference_and_fails() {
    let (key, other) = ([&GCM[..], &[KEY]].concat(), [&GCM[..], &[OTHER_KEY]].concat());
    for (send, recv, code, hint) in [
        (&[][..], &key[..], 0, "the sender does not encrypt"),
        (&key, &other, 0, "authentication fails: another key or suite?"),
        (&key, &[], 0, "the sender seems to encrypt"),
        (&["--zrtp"], &[], 1, "the sender wants to agree on keys. Try: --zrtp"),
        (&["--zrtp"], &key, 1, "the sender wants to agree on keys. Try: --zrtp"),
        (&[], &["--zrtp"], 0, "is --zrtp set on the other side?"),
        (&key, &["--zrtp"], 0, "is --zrtp set on the other side?"),
        (&["--no-rtcp"], &key, 0, "another key or suite, or a sender that does not encrypt?"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy.265");
        let (to, file) = (format!("127.0.0.1:{}", free_port()), file.to_str().unwrap());
        let arguments = ["recv", "--from", &to, "-o", file, "--idle-timeout", "1s"];
        let mut receiver = RunningProgram::of(rushes(&arguments).args(recv));
        receiver.wait_for("listening on");
        let arguments = ["send", &media(MEDIA[1]), "--to", &to, "--fps", "100"];
        let sent = run(&[&arguments, send].concat());
        let log = text(&sent.stderr);
        assert_eq!(sent.status.code(), Some(code), "{send:?} to {recv:?}: {log}");
        if code == 1 {
            assert!(log.contains("is --zrtp set there, and is it running?"), "{log}");
        }
        // The receiver prints the hint before it ends.
        receiver.wait_for(hint);
        crate::rig::interrupt(&receiver.child);
        let (status, log) = receiver.end();
        assert_eq!(status.code(), Some(1), "{send:?} to {recv:?}: {log}");
        assert!(!log.contains(KEY) && !log.contains(OTHER_KEY), "{log}");
        // Not even of what a receiver without keys took for media.
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{send:?} to {recv:?}: {log}");
    }
}

#[test]
fn waiting_ends_with_the_reason() {
    for (more, reason) in [
        (&["--zrtp"][..], "no keys were agreed on within 300ms (--wait)"),
        (&[&GCM[..], &[KEY]].concat(), "nothing of the stream came within 300ms (--wait)"),
    ] {
        let from = format!("127.0.0.1:{}", free_port());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy.265");
        let recv = ["recv", "--from", &from, "--wait", "300ms", "-q", "-o", file.to_str().unwrap()];
        let output = run(&[&recv, more].concat());
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{log}");
        assert!(log.contains(reason), "{log}");
    }
}
