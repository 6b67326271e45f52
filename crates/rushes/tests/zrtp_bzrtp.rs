//! ZRTP against bzrtp (interop/zrtp/peer.c): the same keys and the same short authentication string
//! at both ends.
//!
//! The tests are skipped if libbzrtp is not installed, unless `RUSHES_INTEROP=require` is set.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "../examples/zrtp_peer/mod.rs"]
#[allow(dead_code, reason = "the example uses the rest")]
mod peer;
#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use peer::endpoint::Endpoint;
use peer::options::{Options, Ports};
use rushes::file::{MediaReader, ReadOptions};
use rushes::srtp::Unprotector;
use rushes::zrtp::{
    AlgorithmList, Cipher, Config, ErrorCode, MemoryStore, Message, Session, ZrtpConfig,
    write_packet,
};
use rushes::{Codec, Context, Framing, MasterKey, Pacing, Policy, Security, Suite};
use serde_json::{Value, json};

/// A timeout longer than an exchange may take by the schedules of RFC 6189 section 6.
const PATIENCE: Duration = Duration::from_secs(25);

/// Number of agreements that run in parallel, since each mostly waits.
const AT_ONCE: usize = 8;

/// Builds bzrtp as a program; prints the reason and returns `None` if it cannot be built.
fn bzrtp() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAM.get_or_init(build) {
        Ok(program) => Some(program),
        Err(reason) => {
            let packages = "libbzrtp-dev libbctoolbox-dev libsqlite3-dev pkg-config gcc";
            skipped::missing(reason, packages);
            None
        }
    }
}

fn build() -> Result<PathBuf, String> {
    let libraries = ["--cflags", "--libs", "libbzrtp", "bctoolbox", "sqlite3"];
    let flags = run(Command::new("pkg-config").args(libraries))?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/zrtp/peer.c");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bzrtp_peer");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).arg(source).args(flags.split_whitespace());
    run(&mut compiler)?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The end that sends the Commit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Initiator {
    Rushes,
    Bzrtp,
    /// Both ends, until one yields.
    Either,
}

/// The parameters that two ends must agree on, and the conditions.
#[derive(Clone, Debug)]
struct Case {
    /// Key agreement, cipher, hash, authentication tag, rendering of the string.
    names: [&'static str; 5],
    initiator: Initiator,
    streams: usize,
    /// Whether Rushes accepts any address as the peer's.
    waits: bool,
    /// Packets lost in each direction, in hundredths.
    loss: u32,
    seed: u64,
    /// Further options of either end.
    rushes: Vec<String>,
    bzrtp: Vec<String>,
}

impl Case {
    fn new(names: [&'static str; 5], initiator: Initiator) -> Self {
        let (rushes, bzrtp) = (Vec::new(), Vec::new());
        Self { names, initiator, streams: 1, waits: false, loss: 0, seed: 1, rushes, bzrtp }
    }

    /// The options that both ends have in common.
    fn shared(&self) -> Vec<String> {
        let names = ["--kex", "--cipher", "--hash", "--auth", "--sas"].into_iter().zip(self.names);
        let mut options: Vec<String> =
            names.flat_map(|(option, name)| [option.to_owned(), name.to_owned()]).collect();
        let (loss, seed) = (self.loss.to_string(), self.seed.to_string());
        options.extend(["--loss".to_owned(), loss, "--seed".to_owned(), seed]);
        options
    }
}

/// The reports of both ends, stream by stream.
#[derive(Debug)]
struct Outcome {
    rushes: Vec<Value>,
    bzrtp: Vec<Value>,
}

/// A running bzrtp, which ends when this is dropped.
struct Bzrtp {
    child: Child,
    lines: Receiver<Value>,
    ports: Vec<u16>,
    hello_hash: String,
}

impl Bzrtp {
    fn start(program: &Path, case: &Case, remotes: &[u16]) -> Self {
        let mut command = Command::new(program);
        command.args(case.shared()).args(&case.bzrtp);
        if case.initiator == Initiator::Rushes {
            command.arg("--passive");
        }
        for port in remotes {
            command.args(["--remote", &port.to_string()]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        let ports = first["local"].as_array().unwrap();
        let ports = ports.iter().map(|port| port.as_u64().unwrap() as u16).collect();
        let hello_hash = first["hello_hash"].as_str().unwrap().to_owned();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, lines, ports, hello_hash }
    }
}

impl Drop for Bzrtp {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Another host that keeps sending its own messages to Rushes. bzrtp would take them for its
/// peer's.
struct Stranger {
    socket: UdpSocket,
    packets: Vec<Vec<u8>>,
    sent: usize,
}

impl Stranger {
    fn new() -> Self {
        let mut session = zrtp_session(9);
        let now = Instant::now();
        let nobody = "192.0.2.1:9".parse().unwrap();
        session.add_stream(9, Some(nobody), now);
        let (_, _, hello) = session.poll_datagram().unwrap();
        let packet = |message: Message<'_>| {
            let (mut octets, mut packet) = (Vec::new(), Vec::new());
            message.write(&mut octets);
            write_packet(1, 9, &octets, &mut packet);
            packet
        };
        let error = Message::Error(ErrorCode::CriticalSoftware);
        let packets = vec![hello, packet(Message::HelloAck), packet(error)];
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        Self { socket, packets, sent: 0 }
    }

    /// Sends the next packet to each port.
    fn send(&mut self, ports: &[u16]) {
        let packet = &self.packets[self.sent % self.packets.len()];
        self.sent += 1;
        for port in ports {
            let _ = self.socket.send_to(packet, ("127.0.0.1", *port));
        }
    }
}

fn zrtp_session(name: u8) -> Session {
    let entropy = Box::new(move |octets: &mut [u8]| octets.fill(name));
    Session::new(Config::new([name; 12]), entropy, Box::new(MemoryStore::new())).unwrap()
}

/// Lets both ends agree in the presence of a stranger, and returns their reports.
fn meet(program: &Path, case: &Case) -> Outcome {
    let bind = |_| UdpSocket::bind("127.0.0.1:0").unwrap();
    let sockets: Vec<UdpSocket> = (0..case.streams).map(bind).collect();
    let locals: Vec<u16> =
        sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
    let bzrtp = Bzrtp::start(program, case, &locals);
    // The ports are placeholders; they are set in `options.streams` below.
    let mut arguments = case.shared();
    arguments.extend(["--local", "1", "--remote", "1"].map(str::to_owned));
    arguments.extend(case.rushes.iter().cloned());
    if case.waits {
        arguments.push("--wait".to_owned());
    } else {
        // The hash that bzrtp's signalling would announce. Any other Hello is ignored.
        arguments.extend(["--hello-hash".to_owned(), bzrtp.hello_hash.clone()]);
    }
    if case.initiator == Initiator::Bzrtp {
        arguments.push("--passive".to_owned());
    }
    let mut options = Options::parse(arguments.into_iter()).unwrap();
    let ports = locals.iter().zip(&bzrtp.ports);
    options.streams = ports.map(|(&local, &remote)| Ports { local, remote, ssrc: None }).collect();
    let mut endpoint = Endpoint::new(options, sockets).unwrap();
    let (start, mut theirs) = (Instant::now(), Vec::new());
    let mut stranger = Stranger::new();
    // Each end answers until both are done.
    while start.elapsed() < PATIENCE && !(endpoint.is_done() && theirs.len() > case.streams) {
        stranger.send(&locals);
        endpoint.turn();
        match bzrtp.lines.try_recv() {
            Ok(line) => theirs.push(line),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => break,
        }
    }
    drop(bzrtp);
    theirs.pop();
    let mut ours = endpoint.report();
    ours.pop();
    Outcome { rushes: ours, bzrtp: theirs }
}

impl Outcome {
    /// Checks that both ends have the same keys for each stream, and the choices of `case`.
    fn check(&self, case: &Case) -> Result<(), String> {
        if self.rushes.len() != case.streams || self.bzrtp.len() != case.streams {
            return Err("a stream is missing".to_owned());
        }
        for (n, (a, b)) in self.rushes.iter().zip(&self.bzrtp).enumerate() {
            let wrong = |what: &str| Err(format!("stream {n}: {what}"));
            if a["secure"] != true || b["secure"] != true {
                return wrong("not secure");
            }
            for (one, other) in [("self", "peer"), ("peer", "self")] {
                for part in ["key", "salt"] {
                    let (own, its) = (&a[format!("{one}_{part}")], &b[format!("{other}_{part}")]);
                    let len = match (part, case.names[1]) {
                        ("salt", _) => 28,
                        (_, "AES1") => 32,
                        _ => 64,
                    };
                    if own != its || own.as_str().map(str::len) != Some(len) {
                        return wrong(&format!("{one}_{part}"));
                    }
                }
            }
            if a["self_key"] == a["peer_key"] {
                return wrong("both ends send under one key");
            }
            let kex = if n == 0 { case.names[0] } else { "Mult" };
            let [_, cipher, hash, auth, sas_type] = case.names;
            let expected = [("kex", kex), ("cipher", cipher), ("hash", hash), ("auth", auth)];
            for (member, name) in expected {
                if a[member] != name || b[member] != name {
                    return wrong(member);
                }
            }
            let roles = [&a["role"], &b["role"]].map(|role| role.as_str().unwrap());
            let allowed = match case.initiator {
                Initiator::Rushes => roles == ["initiator", "responder"],
                Initiator::Bzrtp => roles == ["responder", "initiator"],
                Initiator::Either => roles[0] != roles[1],
            };
            if !allowed {
                return wrong("roles");
            }
            let has_sas = a["sas"] != "" && a["sas_type"] == sas_type && b["sas_type"] == sas_type;
            if n == 0 && !(has_sas && a["sas"] == b["sas"]) {
                return wrong("short authentication strings");
            }
        }
        Ok(())
    }

    /// Returns the value of `member` at both ends, for their first stream.
    fn both(&self, member: &str) -> [Value; 2] {
        [&self.rushes, &self.bzrtp].map(|lines| lines[0][member].clone())
    }
}

/// Lets the two ends of every case agree, and asserts that they do.
fn assert_all_agree(cases: &[Case]) {
    let Some(program) = bzrtp() else { return };
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = meet(program, case);
                    if let Err(why) = outcome.check(case) {
                        wrong.lock().unwrap().push(format!("{case:?}: {why}: {outcome:#?}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), cases.len(), wrong[0]);
}

fn assert_agreed(program: &Path, case: &Case) -> Outcome {
    let outcome = meet(program, case);
    assert_eq!(outcome.check(case), Ok(()), "{case:?}: {outcome:#?}");
    outcome
}

const KEY_AGREEMENTS: &[&str] = &[
    "X255",
    #[cfg(feature = "x448")]
    "X448",
    "DH3k",
    "DH2k",
];
const CIPHERS: [&str; 2] = ["AES1", "AES3"];
const HASHES: [&str; 2] = ["S256", "S384"];
const TAGS: [&str; 2] = ["HS32", "HS80"];
const STRINGS: [&str; 2] = ["B32", "B256"];

/// Returns the combination of algorithms with these bits.
fn names(kex: &'static str, bits: usize) -> [&'static str; 5] {
    let bit = |n: usize| bits >> n & 1;
    [kex, CIPHERS[bit(0)], HASHES[bit(1)], TAGS[bit(2)], STRINGS[bit(3)]]
}

const BOTH_ROLES: [Initiator; 2] = [Initiator::Rushes, Initiator::Bzrtp];
const ROLES: [Initiator; 3] = [Initiator::Rushes, Initiator::Bzrtp, Initiator::Either];

#[test]
fn every_combination_of_algorithms_agrees_with_either_initiator() {
    let all = KEY_AGREEMENTS.iter().flat_map(|kex| {
        let cases = move |bits| ROLES.map(|role| Case::new(names(kex, bits), role));
        (0..16).flat_map(cases)
    });
    assert_all_agree(&all.collect::<Vec<_>>());
}

#[test]
fn they_agree_if_rushes_waits_for_any_peer() {
    let all = KEY_AGREEMENTS
        .iter()
        .flat_map(|kex| ROLES.map(|role| Case { waits: true, ..Case::new(names(kex, 5), role) }));
    assert_all_agree(&all.collect::<Vec<_>>());
}

#[test]
fn they_agree_if_a_tenth_of_all_packets_is_lost_in_each_direction() {
    let all = (0..32).flat_map(|seed| {
        BOTH_ROLES.map(|role| {
            let mut case =
                Case::new(names(KEY_AGREEMENTS[seed % KEY_AGREEMENTS.len()], seed / 2), role);
            (case.loss, case.seed, case.streams) = (10, seed as u64, 2);
            case
        })
    });
    assert_all_agree(&all.collect::<Vec<_>>());
}

#[test]
fn a_second_stream_derives_its_keys_from_the_first() {
    let Some(program) = bzrtp() else { return };
    for role in ROLES {
        for bits in [0, 15] {
            let mut case = Case::new(names("X255", bits), role);
            // bzrtp supports at most two streams.
            case.streams = 2;
            let outcome = assert_agreed(program, &case);
            assert_ne!(outcome.rushes[0]["self_key"], outcome.rushes[1]["self_key"]);
        }
    }
}

/// Creates two ends that keep their secrets and have compared their strings once.
fn acquainted(program: &Path, folder: &Path, initiator: Initiator) -> Case {
    let mut case = Case::new(names("X255", 0), initiator);
    let cache = |name: &str| ["--cache".to_owned(), folder.join(name).display().to_string()];
    case.rushes = ["--verify-sas", "--zid", "0123456789abcdef01234567"].map(str::to_owned).into();
    case.rushes.extend(cache("rushes"));
    case.bzrtp = vec!["--verify-sas".to_owned()];
    case.bzrtp.extend(cache("bzrtp"));
    let outcome = assert_agreed(program, &case);
    assert_eq!(outcome.both("cache_mismatch"), [json!(0), json!(0)]);
    for end in [&mut case.rushes, &mut case.bzrtp] {
        end.retain(|option| option != "--verify-sas");
    }
    case
}

#[test]
fn ends_with_a_cache_continue_a_verified_session() {
    let Some(program) = bzrtp() else { return };
    for initiator in BOTH_ROLES {
        let folder = tempfile::tempdir().unwrap();
        let case = acquainted(program, folder.path(), initiator);
        for _ in 0..3 {
            let outcome = assert_agreed(program, &case);
            assert_eq!(outcome.both("cache_mismatch"), [json!(0), json!(0)]);
            assert_eq!(outcome.both("verified"), [json!(1), json!(1)]);
        }
    }
}

#[test]
fn bzrtp_warns_where_rushes_lost_its_secrets() {
    let Some(program) = bzrtp() else { return };
    for initiator in BOTH_ROLES {
        let folder = tempfile::tempdir().unwrap();
        let case = acquainted(program, folder.path(), initiator);
        std::fs::remove_file(folder.path().join("rushes")).unwrap();
        let outcome = assert_agreed(program, &case);
        assert_eq!(outcome.both("cache_mismatch"), [json!(0), json!(1)]);
        assert_eq!(outcome.both("verified"), [json!(0), json!(0)]);
    }
}

#[test]
fn rushes_warns_where_bzrtp_lost_its_secrets() {
    let Some(program) = bzrtp() else { return };
    for initiator in BOTH_ROLES {
        let folder = tempfile::tempdir().unwrap();
        let mut case = acquainted(program, folder.path(), initiator);
        case.bzrtp.push("--forget".to_owned());
        let outcome = assert_agreed(program, &case);
        assert_eq!(outcome.both("cache_mismatch"), [json!(1), json!(0)]);
        assert_eq!(outcome.both("verified"), [json!(0), json!(0)]);
    }
}

#[test]
fn a_secret_got_by_other_means_is_compared_at_both_ends() {
    let Some(program) = bzrtp() else { return };
    for initiator in BOTH_ROLES {
        // The secrets are "secret" and another value.
        for (hex, differs) in [("736563726574", 0), ("00", 1)] {
            let mut case = Case::new(names("X255", 0), initiator);
            case.rushes = vec!["--aux".to_owned(), hex.to_owned()];
            case.bzrtp = vec!["--aux".to_owned(), "secret".to_owned()];
            let outcome = assert_agreed(program, &case);
            assert_eq!(outcome.both("aux_mismatch"), [json!(differs), json!(differs)]);
        }
    }
}

/// Relays ZRTP between bzrtp and a peer until `done`; returns the peer's other datagrams.
fn relay(socket: &UdpSocket, bzrtp: u16, done: &AtomicBool) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let (mut media, mut stream, mut buffer) = (Vec::new(), None, [0; 2000]);
    loop {
        // Datagrams that wait at that time are still read.
        let is_done = done.load(Ordering::Relaxed);
        let Ok((len, from)) = socket.recv_from(&mut buffer) else {
            if is_done {
                break;
            }
            continue;
        };
        let datagram = &buffer[..len];
        if from.port() == bzrtp {
            if let Some(stream) = stream {
                socket.send_to(datagram, stream).unwrap();
            }
        } else {
            stream = Some(from);
            if rushes::zrtp::is_zrtp(datagram) {
                socket.send_to(datagram, ("127.0.0.1", bzrtp)).unwrap();
            } else {
                media.push(datagram.to_vec());
            }
        }
    }
    media
}

fn octets(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    let octet = |n: usize| u8::from_str_radix(&hex[n..n + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(octet).collect()
}

/// The packets of a stream after an agreement are decrypted with bzrtp's keys.
#[test]
fn an_encrypted_stream_opens_with_the_keys_that_bzrtp_has() {
    let Some(program) = bzrtp() else { return };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let case = Case::new(["X255", "AES3", "S256", "HS80", "B32"], Initiator::Either);
    let bzrtp = Bzrtp::start(program, &case, &[port]);
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/media/hevc_192x128_90f_tiny_nals.265");
    let done = AtomicBool::new(false);
    let (mut sent, theirs) = (Vec::new(), bzrtp.ports[0]);
    let media = std::thread::scope(|scope| {
        let relay = scope.spawn(|| relay(&socket, theirs, &done));
        let session = Context::new().session("127.0.0.1").unwrap();
        let stream = session.stream(Codec::H265).remote_port(port).pacing(Pacing::Off).rtcp(false);
        let mut config = ZrtpConfig::default();
        config.algorithms.ciphers = AlgorithmList::new(&[Cipher::Aes3]).unwrap();
        let mut stream = stream.security(Security::Zrtp(config)).open().unwrap();
        let options = ReadOptions::default();
        let mut reader = MediaReader::open(Path::new(file), Codec::H265, options).unwrap();
        while let Some(frame) = reader.next_frame().unwrap() {
            stream.push_frame(&frame.data, None).unwrap();
            sent.push(frame.data.clone());
            std::thread::sleep(Duration::from_millis(2));
        }
        done.store(true, Ordering::Relaxed);
        relay.join().unwrap()
    });
    let keys = bzrtp.lines.recv_timeout(PATIENCE).unwrap();
    let key = [octets(&keys["peer_key"]), octets(&keys["peer_salt"])].concat();
    let suite = Suite::AesCm256HmacSha1_80;
    let key = MasterKey::new(suite, &key).unwrap();
    let mut unprotector = Unprotector::new(&Policy::new(suite), &key).unwrap();
    let clear = media.into_iter().map(|mut datagram| {
        let len = unprotector.unprotect(&mut datagram).unwrap();
        datagram.truncate(len);
        datagram
    });
    // A stream without security receives the packets.
    let plain = Context::new().session("127.0.0.1").unwrap().stream(Codec::H265);
    let mut receiver = plain.probation(1).rtcp(false).open().unwrap();
    let mut received = Vec::new();
    for datagram in clear {
        socket.send_to(&datagram, receiver.local_address()).unwrap();
        while let Some(frame) = receiver.pull_frame(Duration::ZERO).unwrap() {
            received.push(frame.to_vec());
        }
    }
    while let Some(frame) = receiver.pull_frame(Duration::from_millis(200)).unwrap() {
        received.push(frame.to_vec());
    }
    // Start codes of three octets are received as four.
    let units = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let mut ranges = Vec::new();
        let mut units = Vec::new();
        for frame in frames {
            rushes::payload::nal::find_units(frame, Framing::AnnexB, &mut ranges).unwrap();
            units.extend(ranges.drain(..).map(|range| frame[range].to_vec()));
        }
        units
    };
    assert_eq!(units(&received).len(), 648);
    assert!(units(&received) == units(&sent));
}
