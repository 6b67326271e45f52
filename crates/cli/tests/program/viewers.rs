//! Viewers of `serve` who come and go.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer};
use rushes::{Codec, Context};
use rushes_whip::{Client, ClientOptions, Session};

use crate::rig::{RunningProgram, free_port, interrupt, media, rushes};

/// Nothing here takes as long, unless it never ends.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many come and go before resources are counted, and until they are counted again.
const BEFORE: u32 = 20;
const AFTER: u32 = 200;
/// Threads and descriptors that may be there only later, such as those of HTTP: far fewer than these viewers have.
const FEW: usize = 24;
/// What allocators keep: far less than what these viewers would take together.
const GROWTH_MAX: u64 = 16 << 20;

/// A program's descriptors and threads, and its resident memory.
#[derive(Debug)]
struct Resources {
    descriptors: usize,
    threads: usize,
    octets: u64,
}

impl Resources {
    fn of(process: u32) -> Self {
        let count = |folder: &str| fs::read_dir(in_proc(process, folder)).unwrap().count();
        let status = fs::read_to_string(in_proc(process, "status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
        let (descriptors, threads) = (count("fd"), count("task"));
        Self { descriptors, threads, octets: kilobytes << 10 }
    }
}

fn in_proc(process: u32, name: &str) -> PathBuf {
    format!("/proc/{process}/{name}").into()
}

/// Enters as a viewer, up to the keys.
fn watch(client: &Client, url: &str) -> (Session, Peer) {
    let peer = Context::new().peer().local_address("127.0.0.1").unwrap().open();
    let mut peer = peer.unwrap();
    peer.add(peer.stream(Codec::H264), Direction::RecvOnly);
    let session = client.post(url, None, &peer.offer().unwrap()).unwrap();
    peer.set_answer(session.answer()).unwrap();
    let streams = peer.connect(PATIENCE).unwrap();
    assert_eq!(streams.unwrap().len(), 1, "it connects");
    (session, peer)
}

#[test]
fn two_hundred_who_come_and_go_leave_nothing_behind() {
    let address = format!("127.0.0.1:{}", free_port());
    let arguments =
        ["serve", &media("avc_cif_60f_baseline.264"), "--fps", "30", "--http", &address];
    let mut server = RunningProgram::of(&mut rushes(&arguments));
    server.wait_for("in a browser");
    let process = server.child.id();
    let (url, mut seen) = (format!("http://{address}/whep"), Vec::new());
    let client = Client::new(ClientOptions::default()).unwrap();
    for number in 1..=AFTER {
        let (session, peer) = watch(&client, &url);
        // One tells the server over HTTP that it leaves, one by DTLS, and one does both.
        match number % 3 {
            0 => session.delete().unwrap(),
            1 => drop(peer),
            _ => {
                drop(peer);
                // The server may have ended the session already.
                let _ = session.delete();
            }
        }
        if number == BEFORE || number == AFTER {
            let start = Instant::now();
            let resources = loop {
                let resources = Resources::of(process);
                let is_as_before = |before: &Resources| {
                    resources.descriptors <= before.descriptors + FEW
                        && resources.threads <= before.threads + FEW
                };
                if seen.first().is_none_or(is_as_before) {
                    break resources;
                }
                assert!(start.elapsed() < PATIENCE, "{resources:?} after {seen:?}");
                std::thread::sleep(Duration::from_millis(10));
            };
            seen.push(resources);
        }
    }
    let [before, after] = &seen[..] else { panic!("{seen:?}") };
    assert!(after.octets < before.octets + GROWTH_MAX, "{seen:?}");
    interrupt(&server.child);
    assert!(server.end().0.success());
}
