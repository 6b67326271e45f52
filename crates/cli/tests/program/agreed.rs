//! `--zrtp`: two processes that agree on keys.

use std::path::Path;
use std::time::Duration;

use crate::rig::{MEDIA, free_port, json, listening, media, receiving, run, rushes, text, units};

#[test]
fn loopback_shows_the_same_words_on_both_ends() {
    let output = run(&["loopback", &media(MEDIA[1]), "--zrtp"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let words = text(&output.stdout);
    let (_, after) = words.split_once("ZRTP; one end sees: ").unwrap();
    let (one, after) = after.split_once("; the other: ").unwrap();
    assert_eq!(one, after.lines().next().unwrap());
    assert_eq!(one.split(' ').count(), 2, "{one}");
    assert!(words.ends_with("identical\n"));
    let report = json(&run(&["loopback", &media(MEDIA[1]), "--zrtp", "--json"]));
    assert!(!report["zrtp"][0]["sas"].as_str().unwrap().is_empty());
    assert_eq!(report["zrtp"][0], report["zrtp"][1]);
}

#[test]
fn two_processes_show_the_same_words_and_the_file_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(MEDIA[1]);
    let name = media(MEDIA[1]);
    let cache = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (here, there) = (cache("here"), cache("there"));
    for session in 0..2 {
        let (receiver, to) = listening(&copy, &["-f", "--zrtp", "--zrtp-cache", &here]);
        let mut arguments = vec!["send", &name, "--to", &to, "--fps", "1000", "--json"];
        arguments.extend(["--zrtp", "--zrtp-cache", &there]);
        let sent = run(&arguments);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let received = receiver.wait_with_output().unwrap();
        assert!(received.status.success(), "{}", text(&received.stderr));
        let (sent, received) = (json(&sent), json(&received));
        assert_eq!(sent["zrtp"], received["zrtp"], "session {session}");
        assert!(!sent["zrtp"]["sas"].as_str().unwrap().is_empty());
        assert!(units(&copy) == units(Path::new(&name)));
    }
}

/// Sends a file between two programs, with the options `there` for the sender and `here` for the
/// receiver. Returns the output of both, and whether the copy is identical, if there is one.
#[cfg(unix)]
fn pass(here: &[&str], there: &[&str]) -> ([std::process::Output; 2], Option<bool>) {
    let folder = tempfile::tempdir().unwrap();
    let (copy, name) = (folder.path().join(MEDIA[1]), media(MEDIA[1]));
    let (receiver, to) = listening(&copy, &[&["--zrtp"], here].concat());
    let mut arguments = vec!["send", &name, "--to", &to, "--fps", "1000", "--json", "--zrtp"];
    arguments.extend(there);
    let sent = run(&arguments);
    if !sent.status.success() {
        crate::rig::interrupt(&receiver);
    }
    let received = receiver.wait_with_output().unwrap();
    let is_same = copy.exists().then(|| units(&copy) == units(Path::new(&name)));
    ([sent, received], is_same)
}

#[test]
#[cfg(unix)]
fn a_shared_secret_needs_no_words_and_excludes_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let [secret, other] = ["secret", "other"].map(|name| {
        let file = folder.path().join(name);
        std::fs::write(&file, format!("{name} of sixteen octets or more\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let known = ["--secret-file", &secret];
    let ([sent, received], is_same) = pass(&known, &known);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert_eq!(is_same, Some(true));
    for output in [&sent, &received] {
        assert_eq!(json(output)["zrtp"]["secret"], true);
        let log = text(&output.stderr);
        assert!(log.contains("has the secret") && !log.contains("words"), "{log}");
    }
    for (here, there) in
        [(&known[..], &["--secret-file", &other][..]), (&known, &[]), (&[], &known)]
    {
        let ([sent, received], is_same) = pass(here, there);
        let log = [text(&sent.stderr), text(&received.stderr)].concat();
        assert_eq!((sent.status.code(), received.status.code()), (Some(1), Some(1)), "{log}");
        assert!(log.contains("do both sides have the same --secret-file?"), "{log}");
        assert_eq!(is_same, None, "a peer without the secret gets something");
    }
}

#[test]
#[cfg(unix)]
fn a_peer_that_was_compared_and_has_changed_gets_nothing_unless_that_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let [here, there] =
        ["here", "there"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let (near, far) = (["--zrtp-cache", &here], ["--zrtp-cache", &there]);
    let accepted = [&far[..], &["--zrtp-accept-changed"]].concat();
    assert_eq!(pass(&near, &far).1, Some(true));
    // The caches are changed as if users had found the words equal.
    for cache in [&here, &there] {
        let kept = std::fs::read_to_string(cache).unwrap();
        assert!(kept.contains(" 0 never"), "{kept}");
        std::fs::write(cache, kept.replace(" 0 never", " 1 never")).unwrap();
    }
    let ([sent, _], is_same) = pass(&near, &far);
    assert_eq!((json(&sent)["zrtp"]["verified"].clone(), is_same), (true.into(), Some(true)));
    // The receiver has lost its cache, or is another host.
    let kept = std::fs::read_to_string(&here).unwrap();
    let name: String = kept.lines().take(2).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(&here, name).unwrap();
    let ([sent, received], is_same) = pass(&near, &far);
    let log = text(&sent.stderr);
    assert_eq!((sent.status.code(), received.status.code()), (Some(1), Some(1)), "{log}");
    assert!(log.contains("--zrtp-accept-changed"), "{log}");
    assert_eq!(is_same, None, "a peer that has changed gets something");
    let ([sent, _], is_same) = pass(&near, &accepted);
    assert_eq!((json(&sent)["zrtp"]["verified"].clone(), is_same), (false.into(), Some(true)));
}

/// Sends with a description that `change` may change before it is read. Returns the output of both
/// programs.
fn by_description(change: impl FnOnce(String) -> String) -> [std::process::Output; 2] {
    let folder = tempfile::tempdir().unwrap();
    let (sdp, copy) = (folder.path().join("a.sdp"), folder.path().join(MEDIA[1]));
    let port = free_port();
    let (name, to) = (media(MEDIA[1]), format!("127.0.0.1:{port}"));
    let mut arguments = vec!["send", &name, "--to", &to, "--fps", "1000", "--json", "--zrtp"];
    arguments.extend(["--sdp", sdp.to_str().unwrap()]);
    let sender = rushes(&arguments).spawn().unwrap();
    while !sdp.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let words = std::fs::read_to_string(&sdp).unwrap();
    assert!(words.contains("a=zrtp-hash:1.10 ") && words.contains("RTP/AVP"), "{words}");
    std::fs::write(&sdp, change(words)).unwrap();
    let receiver = receiving(port, &["--sdp", sdp.to_str().unwrap()], &copy);
    let sent = sender.wait_with_output().unwrap();
    if !sent.status.success() {
        crate::rig::interrupt(&receiver);
    }
    [sent, receiver.wait_with_output().unwrap()]
}

#[test]
#[cfg(unix)]
fn a_description_announces_the_hello_and_another_is_not_taken() {
    let [sent, received] = by_description(|words| words);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert_eq!(json(&sent)["zrtp"], json(&received)["zrtp"]);
    let [sent, received] = by_description(|words| {
        let (before, after) = words.split_once("zrtp-hash:1.10 ").unwrap();
        let other = if after.starts_with('0') { "1" } else { "0" };
        format!("{before}zrtp-hash:1.10 {other}{}", &after[1..])
    });
    assert_eq!(sent.status.code(), Some(1));
    // The sender's Hello is received, but not answered.
    assert!(text(&sent.stderr).contains("no ZRTP peer answered"), "{}", text(&sent.stderr));
    let log = text(&received.stderr);
    assert!(log.contains("ignored a Hello that does not match"), "{log}");
    assert_eq!(received.status.code(), Some(1), "{log}");
}

#[test]
fn without_a_peer_nothing_is_sent_and_the_program_reports_it() {
    let to = format!("127.0.0.1:{}", free_port());
    let output = run(&["send", &media(MEDIA[1]), "--to", &to, "--zrtp"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing was sent unencrypted"));
}

#[test]
fn wrong_use_of_zrtp_is_a_wrong_command_line() {
    let name = media(MEDIA[1]);
    for (arguments, word) in [
        (&["--zrtp", "--srtp", "AEAD_AES_128_GCM"][..], "cannot be used with"),
        (&["--zrtp-cache", "x"], "--zrtp"),
        (&["--zrtp", "--sdp", "x", "--dry-run"], "--dry-run"),
    ] {
        let output = run(&[&["send", &name, "--to", "127.0.0.1:9"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(word), "{}", text(&output.stderr));
    }
}
