//! When the stream is open, a key that was given to the program is no longer in its memory. The
//! test reads the memory of the running program.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::rig::{RunningProgram, free_port, interrupt, rushes};

/// Returns the occurrences of `needle` in the memory of a process, as lines of its map, or `None`
/// if the memory may not be read.
fn copies(process: u32, needle: &[u8]) -> Option<Vec<String>> {
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let mut found = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        let mut octets = vec![0; (end - start) as usize];
        if memory.read_exact_at(&mut octets, start).is_ok() {
            let count = octets.windows(needle.len()).filter(|window| *window == needle).count();
            found.extend((0..count).map(|_| line.to_owned()));
        }
    }
    Some(found)
}

#[test]
fn a_key_file_is_not_in_the_memory_of_a_program_that_has_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let octets: Vec<u8> = (0..30).map(|n: u8| n.wrapping_mul(151) ^ 0x6d).collect();
    let text = STANDARD.encode(&octets);
    let name = folder.path().join("key");
    let options = File::options().write(true).create_new(true).mode(0o600).clone();
    options.open(&name).unwrap().write_all(text.as_bytes()).unwrap();
    let key = name.to_str().unwrap();
    let arguments: [&[&str]; 2] = [
        &["--srtp", "AES_CM_128_HMAC_SHA1_80", "--key-file", key],
        &["--zrtp", "--secret-file", key],
    ];
    for arguments in arguments {
        let (copy, from) = (folder.path().join("a.265"), format!("127.0.0.1:{}", free_port()));
        let mut command = rushes(&["recv", "-o", copy.to_str().unwrap(), "--from", &from]);
        let mut receiver = RunningProgram::of(command.args(arguments));
        receiver.wait_for("listening on");
        let needles = [&octets[..16], &text.as_bytes()[..32]];
        let found = needles.map(|needle| copies(receiver.child.id(), needle));
        interrupt(&receiver.child);
        receiver.end();
        let [Some(key), Some(text)] = found else {
            let why = "this process may not read the memory of another";
            return crate::skipped::not_here(why);
        };
        // ZRTP needs its secret until the key agreement, with one copy in the session and one in
        // the stream to be opened.
        let most = if arguments[0] == "--zrtp" { 2 } else { 0 };
        assert!(key.len() <= most, "{arguments:?}: {} copies of the key: {key:?}", key.len());
        assert!(text.len() <= most, "{arguments:?}: {} of its text: {text:?}", text.len());
    }
}
