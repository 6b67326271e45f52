//! The rooms of the two large crates: the other rooms that each may name, and the names that are
//! forbidden in protocols.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate's rooms, from the lowest up.
struct House {
    /// The crate's folder below `crates`.
    folder: &'static str,
    /// Rooms that every other room may name.
    words: &'static [&'static str],
    /// Each room and the rooms that it may name by a `crate::` path besides `words`. These must
    /// precede it in this list, so that there are no cycles.
    rooms: &'static [(&'static str, &'static [&'static str])],
    /// Files above all rooms.
    roof: &'static [&'static str],
}

/// Grouped imports (`use crate::{a, b}`) and `super::` out of a room fail on purpose, because plain
/// paths are clear to this test and to readers.
#[rustfmt::skip]
const HOUSES: [House; 2] = [
    House {
        folder: "proto",
        words: &["batch", "ecn", "seq", "ssrc", "time"],
        rooms: &[
            ("batch",    &[]),
            ("ecn",      &[]),
            ("seq",      &[]),
            ("ssrc",     &[]),
            ("time",     &[]),
            ("rtcp",     &[]),
            ("rtp",      &[]),
            ("repair",   &["rtp"]),
            ("rate",     &["rtcp"]),
            ("payload",  &["rtp"]),
            ("sdp",      &[]),
            ("timer",    &[]),
            ("srtp",     &[]),
            ("control",  &["rtcp", "srtp", "timer"]),
            ("stream",   &["payload", "repair", "rtp", "srtp"]),
        ],
        roof: &["lib"],
    },
    House {
        folder: "rushes",
        words: &["error", "hex", "lock", "stats"],
        rooms: &[
            ("error",     &[]),
            ("hex",       &[]),
            ("lock",      &[]),
            ("stats",     &[]),
            ("rate",      &[]),
            ("pace",      &[]),
            ("format",    &[]),
            ("port",      &["rate"]),
            ("poll",      &["port"]),
            ("reports",   &["pace", "port", "rate"]),
            ("agreement", &["port"]),
            ("dtls",      &["port"]),
            ("security",  &["agreement", "dtls"]),
            ("media",     &["pace", "poll", "port", "rate", "reports"]),
            ("setup",     &["agreement", "dtls", "format", "media", "pace", "port", "rate", "reports", "security"]),
            ("sdp",       &["agreement", "dtls", "format", "security", "setup"]),
            ("peer",      &["format", "media", "port", "security", "setup"]),
            ("texture",   &["agreement", "media", "pace", "security", "setup"]),
        ],
        roof: &["lib", "zrtp"],
    },
];

/// Names that are forbidden in protocols without I/O.
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

impl House {
    fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(self.folder).join("src")
    }

    fn room(&self, name: &str) -> PathBuf {
        let path = self.source().join(name);
        if path.is_dir() { path } else { path.with_extension("rs") }
    }

    /// Returns rooms that `code` names although `room` may not. `depth` is the number of `super::`
    /// that lead out of the room.
    fn trespasses(&self, room: &str, below: &[&str], depth: usize, code: &str) -> BTreeSet<String> {
        let is_word = self.words.contains(&room);
        let name = |path: &str| {
            let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
            path[..end].to_owned()
        };
        let mut named: BTreeSet<String> = code.split("crate::").skip(1).map(name).collect();
        named.retain(|name| {
            let is_allowed = !is_word && self.words.contains(&name.as_str());
            name != room && !is_allowed && !below.contains(&name.as_str())
        });
        let up = "super::".repeat(depth);
        if code.contains(&up) {
            named.insert(up);
        }
        named
    }

    /// Returns the depth of a file's module, which is 1 for a top module.
    fn depth(&self, file: &Path) -> usize {
        let depth = file.strip_prefix(self.source()).unwrap().components().count();
        depth - usize::from(file.ends_with("mod.rs"))
    }
}

/// Calls `check` with each source file below `path`, without comments and tests.
fn visit(path: &Path, check: &mut dyn FnMut(&Path, &str)) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            visit(&entry.unwrap().path(), check);
        }
        return;
    }
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code = code.split("#[cfg(test)]\n#[allow").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    check(path, &lines.collect::<Vec<_>>().join("\n"));
}

/// Returns whether the parent of a file declares it for tests only.
fn is_test_file(path: &Path) -> bool {
    let (Some(stem), Some(folder)) = (path.file_stem(), path.parent()) else { return false };
    let parent = [folder.join("mod.rs"), folder.with_extension("rs"), folder.join("lib.rs")];
    let declared = format!("#[cfg(test)]\nmod {};", stem.to_str().unwrap());
    parent.iter().any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&declared)))
}

#[test]
fn rooms_name_only_the_rooms_below_them() {
    for house in &HOUSES {
        for (room, below) in house.rooms {
            visit(&house.room(room), &mut |path, code| {
                let trespasses = house.trespasses(room, below, house.depth(path), code);
                let is_free = trespasses.is_empty() || is_test_file(path);
                assert!(is_free, "{}: may not name {trespasses:?}", path.display());
            });
        }
    }
}

#[test]
fn no_room_in_the_table_names_a_higher_one() {
    for house in &HOUSES {
        for (n, (room, below)) in house.rooms.iter().enumerate() {
            for name in *below {
                let is_below = house.rooms[..n].iter().any(|(other, _)| other == name);
                assert!(is_below, "{}: {room} knows {name}", house.folder);
            }
        }
    }
}

#[test]
fn every_room_is_in_the_table() {
    for house in &HOUSES {
        for entry in fs::read_dir(house.source()).unwrap() {
            let name = entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
            let is_known = house.roof.contains(&name.as_str())
                || house.rooms.iter().any(|(room, _)| *room == name);
            assert!(is_known, "{}: {name} is not in the table", house.folder);
        }
    }
}

#[test]
fn the_test_of_rooms_can_fail() {
    let [proto, _] = &HOUSES;
    let found = |code| proto.trespasses("payload", &[], 2, code).into_iter().collect::<Vec<_>>();
    assert_eq!(found("use crate::stream::Sender;"), ["stream"]);
    assert_eq!(found("use crate::{rtp, seq};"), [""]);
    assert_eq!(found("use super::super::rtp;"), ["super::super::"]);
    assert!(found("use crate::seq::SequenceNumber;").is_empty());
    assert_eq!(proto.trespasses("seq", &[], 1, "crate::time::X").len(), 1);
}

#[test]
fn protocols_name_no_clock_socket_thread_or_file() {
    for folder in ["proto", "zrtp", "delivery"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join("src");
        visit(&source, &mut |path, code| {
            for word in FORBIDDEN {
                assert!(!code.contains(word) || is_test_file(path), "{}: {word}", path.display());
            }
        });
    }
}
