//! `rushes texture` over RTP: in the clear, with a given key and with an agreed one; and `serve
//! --once`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;

use crate::rig::{json, text};
use crate::texture_rig::{frames, must, serving, texture, viewing};

const PATTERN: &str = "pattern:320x180@60";

/// A key of 28 octets; below, another one.
const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";
const OTHER_KEY: &str = "MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";
/// A key of 30 octets.
const SUITE_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYjAx";
const GCM: [&str; 3] = ["--srtp", "AEAD_AES_128_GCM", "--key"];

/// Sends 40 frames between a server and a client with the same options; returns their reports.
fn copy(file: &Path, options: &[&str]) -> [serde_json::Value; 2] {
    let serve = ["--format", "ycocg-bc3", "--frames", "40", "--every-frame", "--once", "--json"];
    let server = serving(PATTERN, &[&serve, options].concat());
    let file = file.to_str().unwrap();
    let view = ["view", &server.address, "-o", file, "--every-frame", "--json", "-f"];
    let viewed = must(&[&view, options].concat());
    let (served, log) = server.finish();
    assert!(served.status.success(), "{options:?}: {log}");
    let reports = [json(&served), json(&viewed)];
    assert_eq!(reports[1]["frames_written"], 40, "{options:?}: {}", reports[1]);
    if options.contains(&"--zrtp") {
        let words = reports[1]["zrtp"]["sas"].as_str().unwrap();
        for log in [&log, &text(&viewed.stderr)] {
            assert_eq!(log.matches(&format!("the same words: {words}\n")).count(), 1, "{log}");
        }
    }
    reports
}

#[test]
fn frames_over_rtp_equal_those_over_tcp_clear_or_secured() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    copy(&path("tcp.y4m"), &["--transport", "tcp"]);
    let expected = frames(&path("tcp.y4m"));
    assert_eq!(expected.1.len(), 40);
    let secured = [&GCM[..], &[KEY]].concat();
    for (options, name) in [
        (&["--transport", "rtp"][..], None),
        (&secured, Some("AEAD_AES_128_GCM")),
        (&["--zrtp"], Some("ZRTP")),
    ] {
        let [served, viewed] = copy(&path("rtp.y4m"), options);
        assert!(frames(&path("rtp.y4m")) == expected, "{options:?}");
        assert_eq!((&served["transport"], &viewed["transport"]), (&"rtp".into(), &"rtp".into()));
        assert_eq!((&served["security"], &viewed["security"]), (&name.into(), &name.into()));
    }
}

#[test]
fn a_server_shows_the_words_of_each_client_and_the_client_remembers_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let server = serving(PATTERN, &["--zrtp", "--json"]);
    let view = ["view", &server.address, "--null", "--frames", "20", "--json", "--zrtp"];
    let view = [&view, &["--zrtp-cache", cache.to_str().unwrap()][..]].concat();
    let viewed = [json(&must(&view)), json(&must(&view))];
    assert!(cache.exists());
    let (served, log) = server.interrupt();
    assert!(served.status.success(), "{log}");
    let served = json(&served);
    assert_eq!(served["clients_served"], 2);
    let words = served["zrtp"].as_array().unwrap();
    assert_eq!(words, &[viewed[0]["zrtp"].clone(), viewed[1]["zrtp"].clone()]);
    assert!(words.iter().all(|it| !it["sas"].as_str().unwrap().is_empty()));
}

#[test]
fn sides_that_do_not_share_a_key_get_no_frame_but_a_reason() {
    let (key, other) = ([&GCM[..], &[KEY]].concat(), [&GCM[..], &[OTHER_KEY]].concat());
    let suite = ["--srtp", "AES_CM_128_HMAC_SHA1_80", "--key", SUITE_KEY];
    let (clear, zrtp) = (["--transport", "rtp"], ["--zrtp"]);
    let (is_same, is_zrtp) =
        ("Do both sides have the same --srtp and key?", "Is --zrtp set on the");
    let try_both = "Try: --srtp SUITE --key-file FILE, or --zrtp, as there";
    for (serve, view, word, advice) in [
        (&key[..], &other[..], "the two sides have different keys", is_same),
        (&key, &suite, "the two sides have different keys", is_same),
        (&key, &clear, "accepts only clients that have its key", try_both),
        (&key, &["--transport", "tcp"], "accepts only clients that have its key", try_both),
        (&key, &[], "accepts only clients that have its key", try_both),
        (&key, &zrtp, "accepts only clients that have its key", is_zrtp),
        (&clear, &key, "this server has no key", is_same),
        (&["--transport", "udp"], &key, "this server has no key", is_same),
        (&clear, &zrtp, "the peer has not agreed on a key", is_zrtp),
        (&zrtp, &key, "this server has no key", is_same),
        (&zrtp, &clear, "the server agrees on keys (ZRTP), and this side does not", try_both),
        (&zrtp, &[], "the server agrees on keys (ZRTP), and this side does not", try_both),
        (&zrtp, &["--transport", "udp"], "the server sends nothing unencrypted", try_both),
        (&zrtp, &["--transport", "tcp"], "the server sends nothing unencrypted", try_both),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("copy.y4m").to_str().unwrap().to_owned();
        let server = serving(PATTERN, serve);
        let arguments = ["view", &server.address, "-o", &name, "--idle-timeout", "1s"];
        let viewed = texture(&[&arguments, view].concat());
        let log = text(&viewed.stderr);
        assert_eq!(viewed.status.code(), Some(1), "{view:?}: {log}");
        assert!(log.contains(word) && !log.contains(KEY), "{serve:?}, {view:?}: {log}");
        assert!(log.contains(advice), "{serve:?}, {view:?}: {log}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(server.interrupt().0.status.success());
    }
}

#[test]
#[cfg(unix)]
fn zrtp_accepts_only_peers_with_the_secret_or_compared_before() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (secret, here, there) = (path("secret"), path("here"), path("there"));
    std::fs::write(&secret, "a secret of sixteen octets").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let view = |address: &str, more: &[&str]| {
        let arguments = ["view", address, "--null", "--frames", "5", "--json", "--zrtp"];
        texture(&[&arguments, more].concat())
    };
    let server = serving(PATTERN, &["--zrtp", "--secret-file", &secret]);
    let viewed = view(&server.address, &["--secret-file", &secret]);
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    assert_eq!(json(&viewed)["zrtp"]["secret"], true);
    assert_eq!(view(&server.address, &[]).status.code(), Some(1));
    assert!(server.interrupt().0.status.success());

    let known = ["--zrtp-cache", &there];
    let open = serving(PATTERN, &["--zrtp", "--zrtp-cache", &here]);
    assert!(view(&open.address, &known).status.success());
    assert!(open.interrupt().0.status.success());
    let strict = ["--zrtp", "--zrtp-cache", &here, "--zrtp-verified-only"];
    let server = serving(PATTERN, &strict);
    assert_eq!(view(&server.address, &known).status.code(), Some(1), "never compared");
    assert!(server.interrupt().0.status.success());
    // The caches are changed as if users had found the words equal.
    for cache in [&here, &there] {
        let kept = std::fs::read_to_string(cache).unwrap();
        std::fs::write(cache, kept.replace(" 0 never", " 1 never")).unwrap();
    }
    let server = serving(PATTERN, &strict);
    let viewed = view(&server.address, &known);
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    assert_eq!(json(&viewed)["zrtp"]["verified"], true);
    assert_eq!(view(&server.address, &[]).status.code(), Some(1), "a stranger");
    assert!(server.interrupt().0.status.success());
}

#[test]
fn once_fails_if_its_client_vanishes() {
    let server = serving(PATTERN, &["--once"]);
    let (mut child, _) = viewing(&server.address, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(1), "{log}");
    assert!(log.contains("did not end the stream: connection closed by the peer"), "{log}");
}

/// Starts a relay between a client and a server, which also returns a connection for writing to the
/// server.
fn between(server: &str) -> (String, std::thread::JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = TcpStream::connect(server).unwrap();
    let relay = |mut from: TcpStream, mut to: TcpStream| {
        let mut octets = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut octets) {
            if to.write_all(&octets[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    };
    let accepting = std::thread::spawn(move || {
        let client = listener.accept().unwrap().0;
        let (to, from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || relay(from, to));
        let from = server.try_clone().unwrap();
        std::thread::spawn(move || relay(from, client));
        server
    });
    (address, accepting)
}

#[test]
fn once_fails_if_its_client_breaks_the_protocol() {
    let server = serving(PATTERN, &["--once"]);
    let (address, accepting) = between(&server.address);
    let (mut child, _) = viewing(&address, &["--transport", "udp"]);
    accepting.join().unwrap().write_all(&[0xff; 64]).unwrap();
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(1), "{log}");
    assert!(log.contains("did not end the stream: peer violated the protocol"), "{log}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
