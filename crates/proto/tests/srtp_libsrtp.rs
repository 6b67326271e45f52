//! SRTP and SRTCP compared with libsrtp2 (interop/srtp/peer.c): both protect every packet in the
//! same way, and over a bad network each accepts the genuine packets of the other once.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;

use rushes_proto::Ssrc;
use rushes_proto::srtp::{
    MasterKey, Policy, Protector, SrtcpProtector, SrtcpUnprotector, Suite, UnprotectError,
    Unprotector,
};

/// The sources, and the sequence numbers with which they begin. The first one sends nearly all
/// packets and rolls over three times. None begins so close to a roll-over that a loss could hide
/// it.
const SOURCES: [(u32, u16); 5] =
    [(0xcafe_babe, 65_000), (1, 0x1000), (0xffff_ffff, 0x7fe0), (0x8000_0000, 40_000), (0, 64_000)];

/// The answer of libsrtp's program for a refused packet, in place of a length.
const REFUSED: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Rtp,
    Rtcp,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Rtp => "rtp",
            Self::Rtcp => "rtcp",
        }
    }

    fn packets(self) -> usize {
        match self {
            Self::Rtp => 200_000,
            Self::Rtcp => 20_000,
        }
    }

    /// Returns the replay window; that of libsrtp for SRTCP is fixed.
    fn window(self) -> usize {
        match self {
            Self::Rtp => 1024,
            Self::Rtcp => 128,
        }
    }
}

/// A fixed sequence that looks random (splitmix64).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn append_octets(&mut self, octets: &mut Vec<u8>, len: usize) {
        let end = octets.len() + len;
        while octets.len() < end {
            octets.extend_from_slice(&self.next().to_le_bytes());
        }
        octets.truncate(end);
    }
}

/// Clear packets, the same in each run.
struct Packets {
    protocol: Protocol,
    random: Random,
    sequences: [u16; SOURCES.len()],
    left: usize,
}

impl Packets {
    fn new(protocol: Protocol) -> Self {
        let sequences = SOURCES.map(|(_, first)| first);
        Self { protocol, random: Random(1), sequences, left: protocol.packets() }
    }

    fn rtp(&mut self, source: usize) -> Vec<u8> {
        let Self { random, sequences, .. } = self;
        let contributing = if random.one_in(8) { random.below(16) } else { 0 };
        let (extended, padded) = (random.one_in(8), random.one_in(8));
        let first = 0x80 | u8::from(padded) << 5 | u8::from(extended) << 4 | contributing as u8;
        let mut packet = vec![first, random.next() as u8];
        packet.extend_from_slice(&sequences[source].to_be_bytes());
        sequences[source] = sequences[source].wrapping_add(1);
        random.append_octets(&mut packet, 4);
        packet.extend_from_slice(&SOURCES[source].0.to_be_bytes());
        random.append_octets(&mut packet, 4 * contributing);
        if extended {
            let words = random.below(9);
            packet.extend_from_slice(&[0xbe, 0xde, 0, words as u8]);
            random.append_octets(&mut packet, 4 * words);
        }
        let len = random.below(1401);
        random.append_octets(&mut packet, len);
        if padded {
            let padding = 1 + random.below(255);
            packet.resize(packet.len() + padding - 1, 0);
            packet.push(padding as u8);
        }
        packet
    }

    fn rtcp(&mut self, source: usize) -> Vec<u8> {
        let words = 1 + self.random.below(if self.random.clone().one_in(4) { 350 } else { 30 });
        let mut packet = vec![0x80 | self.random.below(32) as u8, 200 + self.random.below(2) as u8];
        packet.extend_from_slice(&(words as u16).to_be_bytes());
        packet.extend_from_slice(&SOURCES[source].0.to_be_bytes());
        self.random.append_octets(&mut packet, 4 * (words - 1));
        packet
    }
}

impl Iterator for Packets {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(1)?;
        let others = SOURCES.len() - 1;
        let source = if self.random.one_in(16) { 1 + self.random.below(others) } else { 0 };
        Some(match self.protocol {
            Protocol::Rtp => self.rtp(source),
            Protocol::Rtcp => self.rtcp(source),
        })
    }
}

/// A secured packet that arrives, and its expected outcome.
struct Arrival {
    packet: Vec<u8>,
    /// The clear packet; `None` if the arrival must be refused.
    expected: Option<Vec<u8>>,
}

/// A network that loses, delays, repeats and forges packets.
struct Network {
    random: Random,
    window: usize,
    forges: bool,
    sent: usize,
    /// The delayed packets, ordered by arrival.
    delayed: BTreeMap<(usize, usize), Copy>,
    /// Which packets have arrived, by number.
    arrived: Vec<bool>,
}

struct Copy {
    number: usize,
    packet: Vec<u8>,
    clear: Vec<u8>,
    is_forged: bool,
    is_too_late: bool,
}

impl Network {
    fn new(protocol: Protocol, suite: Suite) -> Self {
        let forges = matches!(protocol, Protocol::Rtcp) || suite.rtp_tag_len() > 0;
        let window = protocol.window();
        let arrived = vec![false; protocol.packets()];
        Self { random: Random(2), window, forges, sent: 0, delayed: BTreeMap::new(), arrived }
    }

    /// Sends one packet, and passes packets that arrive meanwhile to `arrive`.
    fn send(&mut self, packet: &[u8], clear: &[u8], mut arrive: impl FnMut(Arrival)) {
        let number = self.sent;
        self.sent += 1;
        let is_main = clear[4..].windows(4).take(5).any(|w| w == SOURCES[0].0.to_be_bytes());
        let random = &mut self.random;
        let copy = |is_forged, is_too_late| {
            let (packet, clear) = (packet.to_vec(), clear.to_vec());
            Copy { number, packet, clear, is_forged, is_too_late }
        };
        let (lost, late, very_late) =
            (random.one_in(40), random.one_in(20), is_main && random.one_in(400));
        let (again, forged) = (random.one_in(20), self.forges && random.one_in(50));
        // The delay is less than the window, so that a delayed packet is still in it.
        let delay = |random: &mut Random, is_delayed| {
            if is_delayed { 1 + random.below(self.window - 20) } else { 0 }
        };
        if forged {
            let mut copy = copy(true, false);
            let bit = random.below(8 * copy.packet.len());
            copy.packet[bit / 8] ^= 1 << (bit % 8);
            self.delayed.insert((number + delay(random, late), 4 * number), copy);
        }
        if very_late {
            self.delayed.insert((number + 3 * self.window, 4 * number + 1), copy(false, true));
        }
        if again {
            self.delayed.insert((number + delay(random, true), 4 * number + 2), copy(false, false));
        }
        if !lost && !very_late {
            self.delayed.insert((number + delay(random, late), 4 * number + 3), copy(false, false));
        }
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= number
        {
            let Copy { number, packet, clear, is_forged, is_too_late } = entry.remove();
            let is_new = !is_forged && !is_too_late && !self.arrived[number];
            self.arrived[number] |= is_new;
            arrive(Arrival { packet, expected: is_new.then_some(clear) });
        }
    }
}

enum Sender {
    Rtp(Protector),
    Rtcp(SrtcpProtector),
}

impl Sender {
    fn new(protocol: Protocol, policy: &Policy, key: &MasterKey) -> Self {
        match protocol {
            Protocol::Rtp => Self::Rtp(Protector::new(policy, key).unwrap()),
            Protocol::Rtcp => Self::Rtcp(SrtcpProtector::new(policy, key).unwrap()),
        }
    }

    /// Starts at index 1 like libsrtp; RFC 3711 section 3.4 and Rushes start at 0.
    fn count_as_libsrtp(&mut self) {
        if let Self::Rtcp(sender) = self {
            for (ssrc, _) in SOURCES {
                sender.set_index(Ssrc(ssrc), 1).unwrap();
            }
        }
    }

    fn protect(&mut self, mut packet: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Rtp(sender) => sender.protect(&mut packet).unwrap(),
            Self::Rtcp(sender) => sender.protect(&mut packet).unwrap(),
        }
        packet
    }
}

/// Receivers that unprotect packets one by one and, for RTP, also in batches.
enum Receiver {
    Rtp {
        one: Box<Unprotector>,
        many: Box<Unprotector>,
        waiting: Vec<Arrival>,
        sizes: Random,
        room: usize,
    },
    Rtcp(Box<SrtcpUnprotector>),
}

impl Receiver {
    fn new(protocol: Protocol, policy: &Policy, key: &MasterKey) -> Self {
        match protocol {
            Protocol::Rtp => Self::Rtp {
                one: Unprotector::new(policy, key).unwrap().into(),
                many: Unprotector::new(policy, key).unwrap().into(),
                waiting: Vec::new(),
                sizes: Random(3),
                room: 1,
            },
            Protocol::Rtcp => Self::Rtcp(Box::new(SrtcpUnprotector::new(policy, key).unwrap())),
        }
    }

    fn take(&mut self, arrival: Arrival) {
        match self {
            Self::Rtp { one, many, waiting, sizes, room } => {
                let mut packet = arrival.packet.clone();
                let outcome = one.unprotect(&mut packet);
                check(&packet, outcome, arrival.expected.as_deref());
                waiting.push(arrival);
                if waiting.len() == *room {
                    unprotect_together(many, waiting);
                    *room = 1 + sizes.below(40);
                }
            }
            Self::Rtcp(receiver) => {
                let Arrival { mut packet, expected } = arrival;
                let outcome = receiver.unprotect(&mut packet);
                check(&packet, outcome, expected.as_deref());
            }
        }
    }
}

fn unprotect_together(receiver: &mut Unprotector, waiting: &mut Vec<Arrival>) {
    let mut outcomes = vec![Err(UnprotectError::Malformed); waiting.len()];
    let mut packets: Vec<_> = waiting.iter_mut().map(|one| one.packet.as_mut_slice()).collect();
    receiver.unprotect_batch(&mut packets, &mut outcomes);
    for (Arrival { packet, expected }, outcome) in waiting.drain(..).zip(outcomes) {
        check(&packet, outcome, expected.as_deref());
    }
}

fn check(packet: &[u8], outcome: Result<usize, UnprotectError>, expected: Option<&[u8]>) {
    let received = outcome.map(|len| &packet[..len]);
    assert!(
        received.ok() == expected,
        "{outcome:?}, expected to be accepted: {}",
        expected.is_some()
    );
}

/// libsrtp in another process.
struct Peer {
    process: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(program: &Path, what: &str, protocol: Protocol, suite: Suite) -> Self {
        let key = key(suite).iter().fold(String::new(), |hex, octet| format!("{hex}{octet:02x}"));
        let mut process = Command::new(program)
            .args([what, suite.name(), &key, protocol.name(), &protocol.window().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = BufWriter::with_capacity(1 << 17, process.stdin.take().unwrap());
        let output = BufReader::with_capacity(1 << 17, process.stdout.take().unwrap());
        Self { process, input, output }
    }
}

fn write(input: &mut impl Write, packet: &[u8]) -> std::io::Result<()> {
    input.write_all(&(packet.len() as u32).to_be_bytes())?;
    input.write_all(packet)
}

/// Returns the next packet, or libsrtp's reason to refuse it.
fn read(output: &mut impl Read) -> Result<Vec<u8>, u32> {
    let mut word = [0; 4];
    output.read_exact(&mut word).expect("libsrtp answers each packet");
    let len = u32::from_be_bytes(word);
    if len == REFUSED {
        output.read_exact(&mut word).unwrap();
        return Err(u32::from_be_bytes(word));
    }
    let mut packet = vec![0; len as usize];
    output.read_exact(&mut packet).unwrap();
    Ok(packet)
}

fn key(suite: Suite) -> Vec<u8> {
    let mut key = Vec::new();
    Random(suite as u64).append_octets(&mut key, suite.key_and_salt_len());
    key
}

fn agreed(protocol: Protocol, suite: Suite) -> (Policy, MasterKey) {
    let mut policy = Policy::new(suite);
    policy.window = protocol.window();
    (policy, MasterKey::new(suite, &key(suite)).unwrap())
}

/// Returns the peer's program, built from its source; `None`, with a reason printed, if that fails.
fn peer() -> Option<&'static Path> {
    static PEER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PEER.get_or_init(build_peer) {
        Ok(program) => Some(program),
        Err(reason) => {
            skipped::missing(reason, "libsrtp2-dev pkg-config gcc");
            None
        }
    }
}

fn build_peer() -> Result<PathBuf, String> {
    let flags = run(Command::new("pkg-config").args(["--cflags", "--libs", "libsrtp2"]))?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/srtp/peer.c");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("srtp_peer");
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

fn accepted_by_libsrtp(program: &Path, protocol: Protocol, suite: Suite) {
    let Peer { mut process, mut input, output } =
        Peer::start(program, "unprotect", protocol, suite);
    let (expectations, expected) = mpsc::channel();
    let write_all = move || {
        let (policy, key) = agreed(protocol, suite);
        let mut sender = Sender::new(protocol, &policy, &key);
        let mut network = Network::new(protocol, suite);
        for clear in Packets::new(protocol) {
            let packet = sender.protect(clear.clone());
            network.send(&packet, &clear, |Arrival { packet, expected }| {
                // If the peer has ended, reading its output fails.
                let _ = write(&mut input, &packet);
                let _ = expectations.send(expected);
            });
        }
    };
    thread::scope(|scope| {
        // The value is dropped when an assertion fails, and the peer then ends.
        let mut output = output;
        scope.spawn(write_all);
        let (mut accepted, mut refused) = (0, 0);
        for expected in expected {
            let received = read(&mut output);
            let outcome = received.as_ref().map(Vec::len);
            assert!(received.as_ref().ok() == expected.as_ref(), "{suite}: {outcome:?}");
            *if expected.is_some() { &mut accepted } else { &mut refused } += 1;
        }
        assert!(accepted > protocol.packets() * 9 / 10 && refused > protocol.packets() / 30);
    });
    assert!(process.wait().unwrap().success());
}

fn equal_and_accepted_here(program: &Path, protocol: Protocol, suite: Suite) {
    let Peer { mut process, mut input, output } = Peer::start(program, "protect", protocol, suite);
    let write_all = move || {
        for clear in Packets::new(protocol) {
            let _ = write(&mut input, &clear);
        }
    };
    thread::scope(|scope| {
        let mut output = output;
        scope.spawn(write_all);
        let (policy, key) = agreed(protocol, suite);
        let mut sender = Sender::new(protocol, &policy, &key);
        sender.count_as_libsrtp();
        let mut receiver = Receiver::new(protocol, &policy, &key);
        let mut network = Network::new(protocol, suite);
        for clear in Packets::new(protocol) {
            let packet = read(&mut output).unwrap();
            assert!(packet == sender.protect(clear.clone()), "{suite}: {clear:02x?}");
            network.send(&packet, &clear, |arrival| receiver.take(arrival));
        }
    });
    assert!(process.wait().unwrap().success());
}

/// Tests both directions and both protocols. Suites with AES-192 are left out: libsrtp 2.5 derives
/// their session keys differently from RFC 6188 section 3.
fn agree(suite: Suite) {
    let Some(program) = peer() else { return };
    for protocol in [Protocol::Rtp, Protocol::Rtcp] {
        accepted_by_libsrtp(program, protocol, suite);
        equal_and_accepted_here(program, protocol, suite);
    }
}

#[test]
fn aes_128_with_tags_of_80_bits_agrees() {
    agree(Suite::AesCm128HmacSha1_80);
}

#[test]
fn aes_128_with_tags_of_32_bits_agrees() {
    agree(Suite::AesCm128HmacSha1_32);
}

#[test]
fn aes_256_with_tags_of_80_bits_agrees() {
    agree(Suite::AesCm256HmacSha1_80);
}

#[test]
fn aes_256_with_tags_of_32_bits_agrees() {
    agree(Suite::AesCm256HmacSha1_32);
}

#[test]
fn galois_counter_mode_with_128_bits_agrees() {
    agree(Suite::AeadAes128Gcm);
}

#[test]
fn galois_counter_mode_with_256_bits_agrees() {
    agree(Suite::AeadAes256Gcm);
}

#[test]
fn tags_without_encryption_agree() {
    agree(Suite::NullHmacSha1_80);
}

#[test]
fn encryption_without_tags_agrees() {
    agree(Suite::AesCm128NullAuth);
}
