//! The sink, what is sent into it, and what that costs.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use rushes::net::Loan;
use rushes::net::SendQueue;
use rushes::net::SocketOptions;
use rushes::net::UdpSocket;
use rushes::{Codec, Context, MediaStream, Pacing};
use rustix::thread::LinkNameSpaceType;
use rustix::thread::move_into_link_name_space;
use rustix::time::ClockId;
use rustix::time::clock_gettime;
use serde_json::Value;

/// Addresses for benchmarks (RFC 2544).
const NEAR: &str = "198.18.0.1";
const FAR: &str = "198.18.0.2:5004";
const DEVICE: &str = "sink0";

/// Datagrams of one slab, and their octets.
const PACKETS: usize = 46;
const PACKET: usize = 1_412;
/// Slabs that are lent in turn, as by a stream.
const SLABS: usize = 8;
/// Octets of a frame: some 1.2 Gbit/s at 60 frames a second.
const FRAME: usize = 2_500_000;

/// The medians of one way of sending.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    name: &'static str,
    /// Processor seconds for 10^9 octets of payload.
    cpu: f64,
    /// Gigabits of payload a second.
    rate: f64,
    /// Messages that were lent, copied all the same, and refused, in the last turn.
    lent: (u64, u64, u64),
    /// Octets of a message that came to the device.
    message: f64,
}

/// Runs a command of the system, and returns what it prints.
fn run(command: &str) -> Result<String, String> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A network namespace with a device that throws away what it is given.
struct Sink {
    name: String,
}

impl Sink {
    fn new() -> Result<Self, String> {
        let name = format!("rushes-sink-{}", std::process::id());
        run(&format!("ip netns add {name}"))?;
        let sink = Self { name };
        let name = &sink.name;
        let add = |kind| run(&format!("ip -n {name} link add {DEVICE} type {kind}"));
        add("ifb").or_else(|_| add("dummy"))?;
        run(&format!("ip -n {name} address add {NEAR}/15 dev {DEVICE}"))?;
        run(&format!("ip -n {name} link set {DEVICE} arp off up"))?;
        Ok(sink)
    }

    /// Moves this thread into it.
    fn enter(&self) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.name);
        let file = File::open(format!("/run/netns/{}", self.name)).map_err(|e| failed(&e))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| failed(&e))
    }

    /// Messages that it has thrown away.
    fn messages(&self) -> u64 {
        let text = run(&format!("ip -n {} -j -s link show dev {DEVICE}", self.name)).unwrap();
        let links: Value = serde_json::from_str(&text).unwrap();
        let count = |way: &str, what: &str| links[0]["stats64"][way][what].as_u64().unwrap_or(0);
        // An `ifb` drops them, a `dummy` sends them.
        count("tx", "packets").max(count("rx", "dropped"))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = run(&format!("ip netns del {}", self.name));
    }
}

/// A way of sending.
#[allow(clippy::large_enum_variant, reason = "there are eight in all")]
enum Way {
    /// Slabs that are ready, straight to the socket.
    Slabs { socket: UdpSocket, queue: SendQueue, free: Vec<Loan> },
    /// Frames, by a stream.
    Frames { stream: MediaStream, frame: Vec<u8> },
}

fn slabs(zero_copy: bool) -> Way {
    let options = SocketOptions { zero_copy, ..SocketOptions::default() };
    let socket = UdpSocket::bind(format!("{NEAR}:0").parse().unwrap(), &options).unwrap();
    let queue = socket.send_queue();
    let slab = |number| Loan { slab: vec![0x55; 65_507].into(), start: 0, number };
    Way::Slabs { socket, queue, free: (0..SLABS).map(slab).collect() }
}

fn frames(codec: Codec, zero_copy: bool, secured: bool) -> Way {
    let host = FAR.split(':').next().unwrap();
    let builder = Context::new().session(host).unwrap().stream(codec).remote_port(5004);
    let builder = builder.pacing(Pacing::Off).rtcp(false).zero_copy(zero_copy);
    #[cfg(feature = "srtp")]
    let builder = if secured {
        let suite = rushes::Suite::AeadAes128Gcm;
        let key = vec![7; suite.key_and_salt_len()];
        builder.security(rushes::Security::shared(suite, &key).unwrap())
    } else {
        builder
    };
    let _ = secured;
    let mut frame = vec![0, 0, 0, 1, 0x26, 1, 0x80];
    frame.resize(FRAME, 0x55);
    Way::Frames { stream: builder.open().unwrap(), frame }
}

impl Way {
    /// Sends so many octets of payload or a few more; how many.
    fn send(&mut self, octets: usize) -> usize {
        let mut sent = 0;
        match self {
            Self::Slabs { socket, queue, free } => {
                let (to, lengths) = (FAR.parse().unwrap(), [PACKET as u16; PACKETS]);
                let deadline = Instant::now() + Duration::from_secs(60);
                while sent < octets {
                    if free.is_empty() {
                        free.push(socket.reclaim(queue, deadline).unwrap().unwrap());
                        free.extend(std::iter::from_fn(|| queue.take_returned()));
                    }
                    let loan = free.pop().unwrap();
                    socket.send_lent(queue, loan, &lengths, to, deadline).unwrap();
                    sent += PACKETS * PACKET;
                }
            }
            Self::Frames { stream, frame } => {
                while sent < octets {
                    stream.push_frame(frame, None).unwrap();
                    sent += frame.len();
                }
            }
        }
        sent
    }

    fn counters(&self) -> rushes::net::Counters {
        match self {
            Self::Slabs { socket, .. } => socket.counters(),
            Self::Frames { stream, .. } => stream.statistics().socket,
        }
    }
}

/// Processor time of this program. What the kernel does for it while it sends is in it.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures every way, `turns` times `octets` octets each, in turn.
///
/// # Errors
/// Why it cannot be measured here.
pub(crate) fn measure(turns: usize, octets: usize) -> Result<Vec<Row>, String> {
    let sink = Sink::new()?;
    sink.enter()?;
    let mut ways = vec![
        ("slabs, copied", slabs(false)),
        ("slabs, lent", slabs(true)),
        ("frames, copied", frames(Codec::Generic, false, false)),
        ("frames, lent", frames(Codec::Generic, true, false)),
        ("H.265, copied", frames(Codec::H265, false, false)),
        ("H.265, lent", frames(Codec::H265, true, false)),
    ];
    if cfg!(feature = "srtp") {
        ways.push(("frames and AES-GCM, copied", frames(Codec::Generic, false, true)));
        ways.push(("frames and AES-GCM, lent", frames(Codec::Generic, true, true)));
    }
    let mut taken = vec![(Vec::new(), Vec::new(), 0.0); ways.len()];
    for _ in 0..turns.max(1) {
        for ((_, way), (cpu, rate, message)) in ways.iter_mut().zip(&mut taken) {
            way.send(octets / 16);
            let messages = sink.messages();
            let (start, before) = (Instant::now(), processor_seconds());
            let sent = way.send(octets) as f64;
            cpu.push((processor_seconds() - before) / sent * 1e9);
            rate.push(sent * 8.0 / start.elapsed().as_secs_f64() / 1e9);
            *message = sent / (sink.messages() - messages).max(1) as f64;
        }
    }
    let rows = ways.iter().zip(taken).map(|((name, way), (mut cpu, mut rate, message))| {
        let counters = way.counters();
        Row {
            name,
            cpu: median(&mut cpu),
            rate: median(&mut rate),
            lent: (counters.lent, counters.lent_copied, counters.lent_refused),
            message,
        }
    });
    Ok(rows.collect())
}

/// Prints a table.
pub(crate) fn print(rows: &[Row]) {
    println!("{:28} {:>9} {:>8} {:>9}  lent", "", "CPU s/GB", "Gbit/s", "message");
    for Row { name, cpu, rate, lent: (lent, copied, refused), message } in rows {
        print!("{name:28} {cpu:9.4} {rate:8.1} {message:9.0}  {lent}");
        println!(" ({copied} copied after all, {refused} refused)");
    }
    if rows.iter().any(|row| row.message < 16_384.0) {
        println!("the device has messages cut for it, which hides the gain");
    }
}
