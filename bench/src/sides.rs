//! The two sides of a goodput measurement, each in its own process.
//!
//! The receiver acknowledges each frame, so that a bounded number is in transit and nothing is
//! lost: the measurement is of the cost, not the size of a buffer. With a frame rate, the sender
//! keeps to that instead, and the receiver counts losses.

use std::io::{BufRead, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::net::{self, SocketOptions};
use rushes::{
    Codec, Context, FrameRate, Pacing, ReceivePath, Recovery, Security, SendPath, StreamBuilder,
    Suite, sleep_until,
};
use serde::{Deserialize, Serialize};

use super::cpu::{cpu_time, pin_to};
use crate::Outcome;

/// Octets of UDP payload in the loop without RTP, as in an Ethernet packet.
pub(crate) const RAW_DATAGRAM_LEN: usize = 1472;

/// Maximum number of frames in transit.
const FRAMES_IN_FLIGHT: u64 = 2;

/// Silence after which a side gives up.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args, Clone, Debug)]
pub(crate) struct SideArgs {
    /// Whether this side sends
    #[arg(long)]
    pub(crate) send: bool,
    /// A loop without RTP
    #[arg(long)]
    pub(crate) raw: bool,
    #[arg(long)]
    pub(crate) host: String,
    /// The receiver's port (for the sender)
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    #[arg(long)]
    pub(crate) frames: u64,
    #[arg(long)]
    pub(crate) frame_len: usize,
    #[arg(long, default_value = "auto")]
    pub(crate) send_path: SendPath,
    #[arg(long, default_value = "auto")]
    pub(crate) receive_path: ReceivePath,
    /// Lost packets are requested and sent again
    #[arg(long)]
    pub(crate) recovery: bool,
    /// Packets are secured
    #[arg(long)]
    pub(crate) srtp: Option<Suite>,
    /// Frames per second, paced; if absent, as fast as the receiver acknowledges frames
    #[arg(long)]
    pub(crate) fps: Option<f64>,
    #[arg(long)]
    pub(crate) core: usize,
}

/// The measurements of a side, printed as one line of JSON.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Measured {
    pub(crate) frames: u64,
    pub(crate) payload_octets: u64,
    pub(crate) packets_lost: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) system_calls: u64,
}

pub(crate) fn run(args: &SideArgs) -> anyhow::Result<Outcome> {
    pin_to(args.core);
    let measured = match (args.send, args.raw) {
        (true, false) => send(args),
        (true, true) => send_raw(args),
        (false, false) => receive(args),
        (false, true) => receive_raw(args),
    }?;
    println!("{}", serde_json::to_string(&measured)?);
    Ok(Outcome::Done)
}

/// An access unit of one slice: a header, then octets without a start code, like those of a slice.
pub(crate) fn access_unit(len: usize) -> Vec<u8> {
    let mut unit = vec![0, 0, 0, 1, 0x02, 0x01, 0x80];
    let mut state = 1_u32;
    while unit.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let octet = (state >> 24) as u8;
        // Approximate emulation prevention: no two zeros in a row.
        unit.push(if octet == 0 && unit.last() == Some(&0) { 1 } else { octet });
    }
    if let Some(last) = unit.last_mut() {
        *last |= 1;
    }
    unit
}

/// The sender's end of the acknowledgements.
struct Window {
    socket: UdpSocket,
    sent: u64,
    seen: u64,
}

impl Window {
    /// Opens the sender's end and prints its address for the parent process.
    fn open(host: &str) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((host, 0))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        println!("{}", socket.local_addr()?);
        std::io::stdout().flush()?;
        Ok(Self { socket, sent: 0, seen: 0 })
    }

    /// Waits until another frame may be sent.
    fn wait(&mut self) -> anyhow::Result<()> {
        while self.sent >= self.seen + FRAMES_IN_FLIGHT {
            self.wait_for_acknowledgement()?;
        }
        self.sent += 1;
        Ok(())
    }

    fn wait_for_all(&mut self) -> anyhow::Result<()> {
        while self.seen < self.sent {
            self.wait_for_acknowledgement()?;
        }
        Ok(())
    }

    fn wait_for_acknowledgement(&mut self) -> anyhow::Result<()> {
        let mut octets = [0; 8];
        self.socket.recv(&mut octets).context("no acknowledgement from the receiver")?;
        self.seen = self.seen.max(u64::from_be_bytes(octets));
        Ok(())
    }
}

/// The receiver's end, which reads the sender's address from the standard input.
struct Acknowledger {
    socket: UdpSocket,
    to: String,
}

impl Acknowledger {
    fn open(host: &str, port: u16) -> anyhow::Result<Self> {
        println!("{port}");
        std::io::stdout().flush()?;
        let mut to = String::new();
        std::io::stdin().lock().read_line(&mut to)?;
        Ok(Self { socket: UdpSocket::bind((host, 0))?, to: to.trim().to_owned() })
    }

    fn acknowledge(&self, frames: u64) {
        // A lost acknowledgement is repeated by that of the next frame.
        let _ = self.socket.send_to(&frames.to_be_bytes(), &self.to);
    }
}

/// A stop-watch of wall and CPU time.
struct Watch(Instant, Duration);

impl Watch {
    fn start() -> Self {
        Self(Instant::now(), cpu_time())
    }

    fn stop(&self, measured: &mut Measured) {
        measured.seconds = self.0.elapsed().as_secs_f64();
        measured.cpu_seconds = cpu_time().saturating_sub(self.1).as_secs_f64();
    }
}

fn recovery(args: &SideArgs) -> Recovery {
    if args.recovery { Recovery::On } else { Recovery::Off }
}

/// Secures packets if requested, with a fixed key that both sides know.
fn secured(builder: StreamBuilder, args: &SideArgs) -> anyhow::Result<StreamBuilder> {
    let Some(suite) = args.srtp else { return Ok(builder) };
    Ok(builder.security(Security::shared(suite, &vec![0x2d; suite.key_and_salt_len()])?))
}

fn send(args: &SideArgs) -> anyhow::Result<Measured> {
    let mut builder = Context::new()
        .session(&args.host)?
        .stream(Codec::H265)
        .remote_port(args.port)
        .send_path(args.send_path)
        .recovery(recovery(args))
        .pacing(if args.fps.is_some() { Pacing::default() } else { Pacing::Off });
    if let Some(rate) = args.fps.and_then(FrameRate::from_f64) {
        builder = builder.frame_rate(rate);
    }
    let mut stream = secured(builder, args)?.open()?;
    let frame = access_unit(args.frame_len);
    let local = if args.host.starts_with("127.") { "127.0.0.1" } else { "0.0.0.0" };
    let mut window = Window::open(local)?;
    let mut measured = Measured::default();
    let watch = Watch::start();
    for n in 0..args.frames {
        match args.fps {
            None => window.wait()?,
            Some(fps) => sleep_until(watch.0 + Duration::from_secs_f64(n as f64 / fps)),
        }
        stream.push_frame(&frame, None)?;
    }
    if args.fps.is_none() {
        window.wait_for_all()?;
    }
    watch.stop(&mut measured);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(60));
        stream.sender().send_keep_alive()?;
    }
    let statistics = stream.statistics();
    measured.frames = statistics.send.frames;
    measured.payload_octets = statistics.send.frame_octets;
    measured.system_calls = statistics.socket.calls();
    Ok(measured)
}

fn receive(args: &SideArgs) -> anyhow::Result<Measured> {
    let session = Context::new().session_any().local_address(&args.host)?;
    let builder = session.stream(Codec::H265).receive_path(args.receive_path).probation(1);
    let builder = secured(builder.recovery(recovery(args)), args)?;
    let mut stream = builder.open()?;
    let acknowledger = Acknowledger::open(&args.host, stream.local_address().port())?;
    let mut measured = Measured::default();
    let mut watch = None;
    while measured.frames < args.frames {
        let Some(frame) = stream.pull_frame(TIMEOUT)? else { break };
        let watch = watch.get_or_insert_with(Watch::start);
        measured.frames += 1;
        measured.payload_octets += frame.len() as u64;
        drop(frame);
        watch.stop(&mut measured);
        acknowledger.acknowledge(measured.frames);
    }
    // The sender's keep-alive packets reveal losses at the end.
    stream.pull_frame(Duration::from_millis(200))?;
    let statistics = stream.statistics();
    measured.packets_lost = statistics.receive.packets_lost;
    measured.system_calls = statistics.socket.calls();
    Ok(measured)
}

fn send_raw(args: &SideArgs) -> anyhow::Result<Measured> {
    let to = net::resolve(&args.host, args.port)?;
    let socket = net::UdpSocket::bind("0.0.0.0:0".parse()?, &SocketOptions::default())?;
    let frame = access_unit(args.frame_len);
    let lengths: Vec<u16> =
        frame.chunks(RAW_DATAGRAM_LEN).map(|datagram| datagram.len() as u16).collect();
    let local = if args.host.starts_with("127.") { "127.0.0.1" } else { "0.0.0.0" };
    let mut window = Window::open(local)?;
    let mut queue = socket.send_queue();
    let mut measured = Measured::default();
    let watch = Watch::start();
    for _ in 0..args.frames {
        window.wait()?;
        // Slabs of 64 KiB, as with RTP, straight from the frame: the minimum of work.
        for (octets, lengths) in frame.chunks(44 * RAW_DATAGRAM_LEN).zip(lengths.chunks(44)) {
            socket.send(&mut queue, octets, lengths, to, Instant::now() + TIMEOUT)?;
        }
    }
    window.wait_for_all()?;
    watch.stop(&mut measured);
    let counters = socket.counters();
    measured.frames = args.frames;
    measured.payload_octets = counters.sent_bytes;
    measured.system_calls = counters.calls();
    Ok(measured)
}

fn receive_raw(args: &SideArgs) -> anyhow::Result<Measured> {
    let local = net::resolve(&args.host, 0)?;
    let socket = net::UdpSocket::bind(local, &SocketOptions::default())?;
    let acknowledger = Acknowledger::open(&args.host, socket.local_address().port())?;
    let mut arena = socket.arena();
    let mut frame = Vec::with_capacity(args.frame_len);
    let mut measured = Measured::default();
    let mut watch = None;
    while measured.frames < args.frames {
        let datagrams = socket.receive(&mut arena, Instant::now() + TIMEOUT, None)?;
        let before = measured.payload_octets;
        let watch = watch.get_or_insert_with(Watch::start);
        for datagram in datagrams {
            // The one copy that every receiver of frames makes.
            frame.extend_from_slice(datagram.data);
            measured.payload_octets += datagram.data.len() as u64;
            if frame.len() >= args.frame_len {
                frame.clear();
                measured.frames += 1;
                acknowledger.acknowledge(measured.frames);
            }
        }
        watch.stop(&mut measured);
        if measured.payload_octets == before {
            break;
        }
    }
    measured.system_calls = socket.counters().calls();
    Ok(measured)
}
