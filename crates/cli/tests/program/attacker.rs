//! An attacker with ten thousand addresses against honest streams. It sends datagrams of every kind
//! to all ports of a program, before, during and after a stream, in every mode. The stream must
//! arrive complete, and memory and descriptors must stay bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rushes::delivery::control::{Opening, Token, UnitOpening};
use rushes::zrtp::{Config, MemoryStore, Session};

use crate::rig::{MEDIA, free_port, json, media, receiving, rushes, text, units};
use crate::stranger::{opening, wishes};
use crate::strangers::ended;
use crate::texture_rig::serving;

/// Number of addresses of the attacker.
const ADDRESSES: usize = 10_000;

/// Consecutive packets from each address.
const BURST: usize = 10;

/// Minimum number of packets of an attack.
const PACKETS_MIN: usize = 10_000;

/// Maximum memory and number of open files of one program under attack.
pub(crate) const MEMORY_MAX: usize = 200 << 20;
const FILES_MAX: usize = 600;

/// The highest values seen of the programs under attack.
#[derive(Debug, Default)]
struct Worst {
    memory: usize,
    files: usize,
    packets: usize,
}

/// Returns the UDP ports of a process.
fn ports(process: u32) -> BTreeSet<u16> {
    let mut by_inode = BTreeMap::new();
    for table in ["/proc/net/udp", "/proc/net/udp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (Some(local), Some(inode)) = (words.get(1), words.get(9)) else { continue };
            let port = local.rsplit_once(':').and_then(|it| u16::from_str_radix(it.1, 16).ok());
            by_inode.extend(port.map(|port| (format!("socket:[{inode}]"), port)));
        }
    }
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter_map(|link| by_inode.get(link.to_str()?).copied()).collect()
}

/// Peak memory in octets, and number of open files.
pub(crate) fn size(process: u32) -> (usize, usize) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    let files = fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count);
    (kibibytes.unwrap_or(0_usize) << 10, files)
}

/// Returns datagrams of every kind that the ports receive.
fn repertoire() -> Vec<Vec<u8>> {
    let rtp = |payload_type: u8, ssrc: u8, payload: &[u8]| {
        [&[0x80, payload_type, 0, 9, 0, 0, 0, 9, 0, 0, 0, ssrc], payload].concat()
    };
    let now = Instant::now();
    let store = Box::new(MemoryStore::new());
    let mut session =
        Session::new(Config::new([9; 12]), Box::new(|out| out.fill(7)), store).unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], 9));
    session.add_stream(9, Some(to), now).unwrap();
    let hello = session.poll_datagram().unwrap().2;
    let mut broken = hello.clone();
    broken[40] ^= 1;
    let unit = UnitOpening { token: Token([7; 16]), unit: 0 };
    vec![
        rtp(97, 7, &[0x02, 0x01, 0xff]),
        rtp(0xe1, 8, &[0x62, 0x01, 0x80, 1]),
        rtp(96, 9, &[0x7c, 0x85, 1, 2, 3]),
        vec![0x81, 203, 0, 1, 0, 0, 0, 7],
        vec![
            0x80, 200, 0, 6, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9,
        ],
        vec![0x81, 205, 0, 3, 0, 0, 0, 7, 0, 0, 0, 8, 0, 1, 0xff, 0xff],
        hello,
        broken,
        opening(Opening::Unit(unit)),
        vec![0; 8],
        vec![0, 0, 0, 1, 0xff],
        vec![0xff; 1200],
        Vec::new(),
    ]
}

/// Attacks `processes`, and a TCP port if given. Ends when `over` is set and `least` packets were
/// sent.
fn attack(processes: &[u32], tcp: Option<SocketAddr>, over: &AtomicBool, least: usize) -> Worst {
    let (repertoire, mut worst) = (repertoire(), Worst::default());
    let control = opening(Opening::Control(wishes(rushes::texture::Transport::Udp)));
    let (mut targets, mut connections) = (Vec::new(), Vec::new());
    for n in 0..10_000_000 {
        if over.load(Ordering::Relaxed) && worst.packets >= least {
            break;
        }
        if n % 50 == 0 {
            targets = processes.iter().flat_map(|process| ports(*process)).collect();
            for (memory, files) in processes.iter().map(|process| size(*process)) {
                worst.memory = worst.memory.max(memory);
                worst.files = worst.files.max(files);
            }
            // Some connections send an opening, others nothing, and none is kept for long.
            connections.extend(tcp.and_then(|tcp| TcpStream::connect(tcp).ok()));
            if let (Some(mut connection), 0) = (connections.last(), n % 100) {
                let _ = std::io::Write::write_all(&mut connection, &control);
            }
            connections.drain(..connections.len().saturating_sub(40));
        }
        let address = n % ADDRESSES;
        let host = Ipv4Addr::new(127, 1 + (address >> 14) as u8, (address >> 7) as u8 & 127, 9);
        let Ok(socket) = UdpSocket::bind((host, 0)) else { continue };
        for (at, port) in targets.iter().cycle().take(BURST).enumerate() {
            let datagram = &repertoire[(n + at) % repertoire.len()];
            worst.packets += usize::from(socket.send_to(datagram, ("127.0.0.1", *port)).is_ok());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    worst
}

fn check(worst: &Worst, mode: &str) {
    assert!(worst.packets > PACKETS_MIN, "{mode}: {worst:?}");
    assert!(worst.memory < MEMORY_MAX && worst.files < FILES_MAX, "{mode}: {worst:?}");
}

/// Writes a secret to a file that only its owner may read.
fn secret(folder: &Path) -> String {
    let path = folder.join("secret");
    fs::write(&path, "q6ViqSyMOX1Cr/0L0xyvXiqYBMdPpgH2NjdcKr3U").unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_honest_stream_is_complete_while_ten_thousand_addresses_attack() {
    let folder = tempfile::tempdir().unwrap();
    let secret = secret(folder.path());
    let srtp = ["--srtp", "AES_CM_128_HMAC_SHA1_80", "--key-file", &secret];
    let zrtp = ["--zrtp", "--secret-file", &secret];
    for (mode, security) in [("clear", &[][..]), ("SRTP", &srtp), ("ZRTP", &zrtp)] {
        let name = MEDIA[1];
        let copy = folder.path().join(name);
        let port = free_port();
        let to = format!("127.0.0.1:{port}");
        let more = [&["--from", &to, "--idle-timeout", "60s"], security].concat();
        let receiver = receiving(port, &more, &copy);
        let over = AtomicBool::new(false);
        let (worst, output) = std::thread::scope(|scope| {
            let (id, over) = (receiver.id(), &over);
            let before = attack(&[id], None, &AtomicBool::new(true), PACKETS_MIN + 1);
            let send = ["send", &media(name), "--to", &to, "--fps", "30", "-q"];
            let sender = rushes(&[&send, security].concat()).spawn().unwrap();
            let processes = [id, sender.id()];
            let during = scope.spawn(move || attack(&processes, None, over, 0));
            let sent = ended(sender);
            assert!(sent.status.success(), "{mode}: {}", text(&sent.stderr));
            let output = ended(receiver);
            over.store(true, Ordering::Relaxed);
            let mut worst = during.join().unwrap();
            assert!(worst.packets > 0, "{mode}: nothing was sent during the stream");
            worst.packets += before.packets;
            (worst, output)
        });
        check(&worst, mode);
        let report = json(&output);
        assert!(output.status.success(), "{mode}: {report} {}", text(&output.stderr));
        assert_eq!((&report["complete"], &report["packets_lost"]), (&true.into(), &0.into()));
        assert_eq!(report["end"], "bye", "{mode}: {report}");
        assert!(units(&copy) == units(Path::new(&media(name))), "{mode}: {report}");
        fs::remove_file(&copy).unwrap();
    }
}

#[test]
fn frames_of_texture_video_are_complete_while_ten_thousand_addresses_attack() {
    let folder = tempfile::tempdir().unwrap();
    let secret = secret(folder.path());
    let srtp = ["--srtp", "AES_CM_128_HMAC_SHA1_80", "--key-file", &secret];
    let zrtp = ["--zrtp", "--secret-file", &secret];
    let clear = |transport| ["--transport", transport];
    for (mode, options) in [
        ("UDP", &clear("udp")[..]),
        ("TCP", &clear("tcp")),
        ("RTP", &clear("rtp")),
        ("SRTP", &srtp),
        ("ZRTP", &zrtp),
    ] {
        // By RTP a packet is late if it comes more than an interval of frames after the one before it: 100 ms here, in
        // which also a thread of a busy machine has its turn.
        let server = serving("pattern:640x360@10", &[&["--units", "2"], options].concat());
        let tcp = server.address.parse().unwrap();
        let base = ["texture", "view", &server.address, "--null", "--deadline", "5s", "--json"];
        let view = |frames| [&base[..], &["--frames", frames], options].concat();
        let viewer = rushes(&view("30")).spawn().unwrap();
        let over = AtomicBool::new(false);
        let (worst, viewed, late) = std::thread::scope(|scope| {
            let processes = [server.id(), viewer.id()];
            let over = &over;
            let attack = scope.spawn(move || attack(&processes, Some(tcp), over, PACKETS_MIN + 1));
            let viewed = ended(viewer);
            // A viewer that connects during the attack is served as well.
            let late = ended(rushes(&view("10")).spawn().unwrap());
            over.store(true, Ordering::Relaxed);
            (attack.join().unwrap(), viewed, late)
        });
        check(&worst, mode);
        for viewed in [viewed, late] {
            assert!(viewed.status.success(), "{mode}: {}", text(&viewed.stderr));
            let report = json(&viewed);
            let counts = [&report["frames_lost"], &report["frames_damaged"]];
            assert_eq!(counts, [0, 0], "{mode}: {report}");
        }
        let (served, log) = server.interrupt();
        assert!(served.status.success(), "{mode}: {log}");
    }
}
