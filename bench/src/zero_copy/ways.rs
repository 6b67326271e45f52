//! Ways of sending, and the cost of each.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::net::{Counters, Loan, SendQueue, SocketOptions, UdpSocket};
use rushes::{Codec, Context, MediaStream, Pacing, Security, Suite};
use rustix::time::{ClockId, clock_gettime};

use super::Row;
use super::sink::{FAR, NEAR, Sink};
use crate::report::median;

/// Datagrams in one slab, and octets of each.
const PACKETS: usize = 46;
const PACKET: u16 = 1_412;

/// Number of slabs that are sent in turn, as by a stream.
const SLABS: usize = 8;

/// Octets of a frame: about 1.2 Gbit/s at 60 frames per second.
const FRAME: usize = 2_500_000;

/// Timeout for the kernel, much longer than any normal wait.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A way of sending.
#[allow(clippy::large_enum_variant, reason = "there are only six of them")]
enum Way {
    /// Prepared slabs, straight to the socket.
    Slabs { socket: UdpSocket, queue: SendQueue, free: Vec<Loan> },
    /// Frames, by a stream.
    Frames { stream: MediaStream, frame: Vec<u8> },
}

fn far() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::new(FAR.parse()?, 5004))
}

fn slabs(zero_copy: bool) -> anyhow::Result<Way> {
    let options = SocketOptions { zero_copy, ..SocketOptions::default() };
    let socket = UdpSocket::bind(SocketAddr::new(NEAR.parse()?, 0), &options)?;
    let queue = socket.send_queue();
    let slab = |number| Loan { slab: vec![0x55; 65_507].into(), start: 0, number };
    Ok(Way::Slabs { socket, queue, free: (0..SLABS).map(slab).collect() })
}

fn frames(zero_copy: bool, suite: Option<Suite>) -> anyhow::Result<Way> {
    let mut builder = Context::new().session(FAR)?.stream(Codec::H265);
    builder = builder.remote_port(5004).pacing(Pacing::Off).rtcp(false).zero_copy(zero_copy);
    if let Some(suite) = suite {
        builder = builder.security(Security::shared(suite, &vec![7; suite.key_and_salt_len()])?);
    }
    let mut frame = vec![0, 0, 0, 1, 0x26, 1, 0x80];
    frame.resize(FRAME, 0x55);
    Ok(Way::Frames { stream: builder.open()?, frame })
}

impl Way {
    /// Sends `octets` octets of payload, or a few more; returns how many.
    fn send(&mut self, octets: usize) -> anyhow::Result<usize> {
        let mut sent = 0;
        match self {
            Self::Slabs { socket, queue, free } => {
                let (to, lengths) = (far()?, [PACKET; PACKETS]);
                let deadline = Instant::now() + TIMEOUT;
                while sent < octets {
                    if free.is_empty() {
                        free.extend(socket.reclaim(queue, deadline)?);
                        free.extend(std::iter::from_fn(|| queue.take_returned()));
                    }
                    let loan = free.pop().context("no slab was returned")?;
                    socket.send_lent(queue, loan, &lengths, to, deadline)?;
                    sent += PACKETS * usize::from(PACKET);
                }
            }
            Self::Frames { stream, frame } => {
                while sent < octets {
                    stream.push_frame(frame, None)?;
                    sent += frame.len();
                }
            }
        }
        Ok(sent)
    }

    fn counters(&self) -> Counters {
        match self {
            Self::Slabs { socket, .. } => socket.counters(),
            Self::Frames { stream, .. } => stream.statistics().socket,
        }
    }
}

/// Returns the CPU time of this thread, including the kernel's work for it while sending.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Measures all ways in turns, `turns` times with `octets` octets each. Moves this thread into the
/// sink's namespace.
pub(super) fn measure(turns: usize, octets: usize) -> anyhow::Result<Vec<Row>> {
    let sink = Sink::new()?;
    sink.enter()?;
    let mut ways = Vec::new();
    let suite = Some(Suite::AeadAes128Gcm);
    for is_lent in [false, true] {
        ways.push(("slabs", is_lent, slabs(is_lent)?));
    }
    for (what, suite) in [("frames", None), ("frames, AES-128-GCM", suite)] {
        for is_lent in [false, true] {
            ways.push((what, is_lent, frames(is_lent, suite)?));
        }
    }
    let mut taken = vec![(Vec::new(), Vec::new(), 0.0); ways.len()];
    for _ in 0..turns.max(1) {
        for ((_, _, way), (cpu, gigabits, message)) in ways.iter_mut().zip(&mut taken) {
            way.send(octets / 16)?;
            let messages = sink.messages()?;
            let (start, before) = (Instant::now(), cpu_seconds());
            let sent = way.send(octets)? as f64;
            cpu.push((cpu_seconds() - before) / sent * 1e9);
            gigabits.push(sent * 8e-9 / start.elapsed().as_secs_f64());
            *message = sent / (sink.messages()? - messages).max(1) as f64;
        }
    }
    let rows = ways.iter().zip(taken).map(|((what, is_lent, way), taken)| {
        let (cpu, gigabits, message) = taken;
        let counters = way.counters();
        Row {
            what,
            is_lent: *is_lent,
            cpu: median(cpu),
            gigabits: median(gigabits),
            lent: (counters.lent, counters.lent_copied + counters.lent_refused),
            message,
        }
    });
    Ok(rows.collect())
}
