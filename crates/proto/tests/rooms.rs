//! The house rules of this crate: who may know whom, and what nobody may know.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The vocabulary, which every room may use.
const WORDS: [&str; 4] = ["batch", "seq", "ssrc", "time"];

/// A room, and the rooms it may name by a `crate::` path besides the words.
///
/// Grouped imports (`use crate::{a, b}`) and `super::super` fail on purpose: one plain path a line
/// keeps this test, and the reader, honest.
#[rustfmt::skip]
const ROOMS: &[(&str, &[&str])] = &[
    ("batch",   &[]),
    ("seq",     &[]),
    ("ssrc",    &[]),
    ("time",    &[]),
    ("crypto",  &[]),
    ("repair",  &[]),
    ("rtcp",    &[]),
    ("rtp",     &[]),
    ("payload", &[]),
    ("delivery", &["crypto"]),
    ("control", &["rtcp", "srtp", "timer"]),
    ("stream",  &["payload", "repair", "rtp", "srtp"]),
    ("srtp",    &["crypto"]),
    ("timer",   &[]),
    ("sdp",     &[]),
    ("zrtp",    &["crypto", "srtp"]),
];

/// What a protocol without I/O has no word for.
const FORBIDDEN: [&str; 8] = [
    "Instant::now",
    "SystemTime",
    ".elapsed()",
    "std::net",
    "std::thread",
    "std::fs",
    "std::io",
    "std::process",
];

/// Files that are compiled for tests only.
const TEST_FILES: [&str; 5] = [
    "payload/naive.rs",
    "payload/rig.rs",
    "payload/trips.rs",
    "srtp/vectors.rs",
    "zrtp/vectors.rs",
];

/// Calls `look` with each source file below `path`, its documentation and tests cut off.
fn visit(path: &Path, look: &mut dyn FnMut(&Path, &str)) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            visit(&entry.unwrap().path(), look);
        }
        return;
    }
    if TEST_FILES.iter().any(|name| path.ends_with(name)) {
        return;
    }
    let source = fs::read_to_string(path).unwrap();
    let code = source.split("#[cfg(test)]").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    look(path, &lines.collect::<Vec<_>>().join("\n"));
}

fn source(room: &str) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room);
    if path.is_dir() { path } else { path.with_extension("rs") }
}

/// Rooms that `code` names and `room` may not know.
fn trespasses(room: &str, below: &[&str], code: &str) -> BTreeSet<String> {
    let is_word = WORDS.contains(&room);
    let mut named: BTreeSet<String> = code
        .split("crate::")
        .skip(1)
        .map(|path| {
            path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned()
        })
        .collect();
    named.retain(|name| {
        let word = !is_word && WORDS.contains(&name.as_str());
        name != room && !word && !below.contains(&name.as_str())
    });
    if code.contains("super::super") {
        named.insert("super::super".to_owned());
    }
    named
}

#[test]
fn rooms_know_only_the_rooms_below_them() {
    for (room, below) in ROOMS {
        visit(&source(room), &mut |path, code| {
            let trespasses = trespasses(room, below, code);
            assert!(trespasses.is_empty(), "{}: may not know {trespasses:?}", path.display());
        });
    }
}

#[test]
fn every_room_is_in_the_table() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(src).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
        let known = name == "lib" || ROOMS.iter().any(|(room, _)| *room == name);
        assert!(known, "{name} is not in the table");
    }
}

#[test]
fn the_test_of_rooms_can_fail() {
    let found = |code| trespasses("payload", &[], code).into_iter().collect::<Vec<_>>();
    assert_eq!(found("use crate::stream::Sender;"), ["stream"]);
    assert_eq!(found("use crate::{rtp, seq};"), [""]);
    assert_eq!(found("use super::super::rtp;"), ["super::super"]);
    assert!(found("use crate::seq::SequenceNumber;").is_empty());
    assert_eq!(trespasses("seq", &[], "crate::time::X").len(), 1);
}

#[test]
fn nothing_here_knows_a_clock_a_socket_a_thread_or_a_file() {
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |path, code| {
        for word in FORBIDDEN {
            assert!(!code.contains(word), "{}: {word}", path.display());
        }
    });
}
