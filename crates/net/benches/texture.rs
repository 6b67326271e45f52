//! Sends frames of texture octets over loopback: UDP through an arena, and TCP in chunks of several
//! sizes, in turn.
//!
//! Prints the time from the first send until the last octet is in memory, and the processor time of
//! all threads. Every frame is compared outside the timed part. Alphabetic arguments select
//! contestants; numbers are the turns and the octets of a frame: `cargo bench -p rushes-net --bench
//! texture -- UDP 100 8294400`.
#![allow(clippy::unwrap_used, reason = "a benchmark may")]

use std::io::{IoSlice, IoSliceMut};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rushes_net::{
    Arena, Interest, Read, SendQueue, SocketOptions, TcpListener, TcpOptions, TcpSocket, UdpSocket,
};

const HEADER: usize = 4;
const PAYLOAD: usize = 1_408;
const PACKET: usize = HEADER + PAYLOAD;
/// Packets in one slab, and therefore in one message.
const SLAB: usize = 46;
/// Time after which a frame counts as lost.
const FRAME_TIMEOUT: Duration = Duration::from_millis(500);

fn soon() -> Instant {
    Instant::now() + FRAME_TIMEOUT
}

/// One sender and its receiver.
#[allow(clippy::large_enum_variant, reason = "there are only about a dozen units")]
enum Unit {
    Udp { to: UdpSocket, from: UdpSocket, queue: SendQueue, slab: Vec<u8>, arena: Arena },
    Tcp { to: TcpSocket, from: TcpSocket, chunk: usize, low_water: bool, headers: Vec<u8> },
}

fn udp() -> Unit {
    // The buffer holds a whole frame, because the sender is not paced here and lost packets are not
    // retransmitted.
    let options = SocketOptions { receive_buffer: 128 << 20, ..SocketOptions::default() };
    let bind = || UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let (to, from) = (bind(), bind());
    from.connect(to.local_address()).unwrap();
    let (queue, arena) = (from.send_queue(), to.arena());
    Unit::Udp { to, from, queue, slab: vec![0; SLAB * PACKET], arena }
}

fn tcp(chunk: usize, low_water: bool) -> Unit {
    let options = TcpOptions::default();
    let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let from = TcpSocket::connect(listener.local_address(), &options, soon()).unwrap();
    let to = listener.accept(Some(soon()), None).unwrap().unwrap();
    Unit::Tcp { to, from, chunk, low_water, headers: Vec::new() }
}

fn send_udp(
    socket: &UdpSocket,
    to: &UdpSocket,
    queue: &mut SendQueue,
    slab: &mut [u8],
    tile: &[u8],
) {
    let lengths = [PACKET as u16; SLAB];
    let mut number = 0_u32;
    for part in tile.chunks(SLAB * PAYLOAD) {
        let mut filled = 0;
        let mut packets = 0;
        for (packet, payload) in slab.chunks_exact_mut(PACKET).zip(part.chunks(PAYLOAD)) {
            packet[..HEADER].copy_from_slice(&number.to_be_bytes());
            packet[HEADER..HEADER + payload.len()].copy_from_slice(payload);
            filled += HEADER + payload.len();
            packets += 1;
            number += 1;
        }
        let mut lengths = lengths;
        lengths[packets - 1] = (filled - (packets - 1) * PACKET) as u16;
        let to = to.local_address();
        socket.send(queue, &slab[..filled], &lengths[..packets], to, soon()).unwrap();
    }
}

fn receive_arena(socket: &UdpSocket, arena: &mut Arena, tile: &mut [u8]) -> bool {
    let deadline = soon();
    let mut left = tile.len();
    while left > 0 {
        let datagrams = socket.receive(arena, deadline, None).unwrap();
        if datagrams.is_empty() {
            return false;
        }
        for datagram in datagrams {
            let (header, payload) = datagram.data.split_at(HEADER);
            let at = u32::from_be_bytes(header.try_into().unwrap()) as usize * PAYLOAD;
            tile[at..at + payload.len()].copy_from_slice(payload);
            left -= payload.len();
        }
    }
    true
}

fn send_tcp(socket: &TcpSocket, chunk: usize, tile: &[u8]) {
    for (number, part) in (0_u32..).zip(tile.chunks(chunk)) {
        let header = number.to_be_bytes();
        let mut parts = [IoSlice::new(&header), IoSlice::new(part)];
        socket.write_all(&mut parts, Some(soon()), None).unwrap();
    }
}

fn receive_tcp(
    socket: &TcpSocket,
    (chunk, low_water): (usize, bool),
    headers: &mut Vec<u8>,
    tile: &mut [u8],
) -> bool {
    headers.resize(tile.len().div_ceil(chunk) * HEADER, 0);
    let mut heads = headers.chunks_exact_mut(HEADER);
    let mut bodies = tile.chunks_mut(chunk);
    let mut next = || Some((heads.next()?, bodies.next()?));
    let Some((mut head, mut body)) = next() else { return true };
    loop {
        let left = head.len() + body.len();
        match socket.read_vectored(&mut [IoSliceMut::new(head), IoSliceMut::new(body)]).unwrap() {
            Read::Octets(octets) => {
                let of_head = octets.min(head.len());
                head = &mut head[of_head..];
                body = &mut body[octets - of_head..];
                if octets == left {
                    let Some(following) = next() else { return true };
                    (head, body) = following;
                }
            }
            Read::Nothing => {
                if low_water {
                    socket.set_low_water(left);
                }
                socket.wait(Interest::Readable, Some(soon()), None).unwrap();
            }
            Read::End => return false,
        }
    }
}

type Sending<'a> = Box<dyn FnOnce() + Send + 'a>;
/// A function that receives a tile; returns whether the tile is complete.
type Receiving<'a> = Box<dyn FnOnce() -> bool + Send + 'a>;

impl Unit {
    /// Returns the two halves that send and receive one tile; the caller runs each after the
    /// barrier.
    fn halves<'a>(
        &'a mut self,
        source: &'a [u8],
        target: &'a mut [u8],
    ) -> (Sending<'a>, Receiving<'a>) {
        match self {
            Self::Udp { to, from, queue, slab, arena } => {
                let to = &*to;
                (
                    Box::new(move || send_udp(from, to, queue, slab, source)),
                    Box::new(move || receive_arena(to, arena, target)),
                )
            }
            Self::Tcp { to, from, chunk, low_water, headers } => {
                let (chunk, low_water) = (*chunk, *low_water);
                (
                    Box::new(move || send_tcp(from, chunk, source)),
                    Box::new(move || receive_tcp(to, (chunk, low_water), headers, target)),
                )
            }
        }
    }

    /// Discards the packets that remain of a lost frame.
    fn drain(&mut self) {
        if let Self::Udp { to, .. } = self {
            let mut arena = to.arena();
            while !to.receive(&mut arena, Instant::now(), None).unwrap().is_empty() {}
        }
    }
}

struct Contestant {
    name: String,
    units: Vec<Unit>,
    wall: Vec<f64>,
    processor: Vec<f64>,
    lost: usize,
}

/// Returns the processor time of all threads in milliseconds, or 0 if it is not available.
fn processor_time() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    }
    #[cfg(not(unix))]
    0.0
}

impl Contestant {
    fn frame(&mut self, source: &[u8], target: &mut [u8], timed: bool) {
        let count = self.units.len();
        let tile = source.len().div_ceil(PAYLOAD).div_ceil(count) * PAYLOAD;
        let barrier = Barrier::new(2 * count + 1);
        let first = Mutex::new(None::<Instant>);
        let last = Mutex::new(None::<Instant>);
        let whole = Mutex::new(true);
        let mut before = 0.0;
        thread::scope(|scope| {
            let tiles = source.chunks(tile).zip(target.chunks_mut(tile));
            for (unit, (from, to)) in self.units.iter_mut().zip(tiles) {
                let (send, receive) = unit.halves(from, to);
                let (barrier, first, last, whole) = (&barrier, &first, &last, &whole);
                scope.spawn(move || {
                    barrier.wait();
                    let now = Instant::now();
                    {
                        let mut first = first.lock().unwrap();
                        *first = Some(first.map_or(now, |first| first.min(now)));
                    }
                    send();
                });
                scope.spawn(move || {
                    barrier.wait();
                    let complete = receive();
                    let now = Instant::now();
                    let mut last = last.lock().unwrap();
                    *last = Some(last.map_or(now, |last| last.max(now)));
                    *whole.lock().unwrap() &= complete;
                });
            }
            before = processor_time();
            barrier.wait();
        });
        let processor = processor_time() - before;
        let whole = whole.into_inner().unwrap();
        if !whole {
            self.lost += 1;
            self.units.iter_mut().for_each(Unit::drain);
            return;
        }
        assert!(source == target, "{}: a frame differs", self.name);
        if !timed {
            return;
        }
        let took = last.into_inner().unwrap().unwrap() - first.into_inner().unwrap().unwrap();
        self.wall.push(took.as_secs_f64() * 1e3);
        self.processor.push(processor);
    }
}

fn contestants() -> Vec<Contestant> {
    let mut all = Vec::new();
    for count in [1, 2] {
        let mut add = |name: &str, unit: &dyn Fn() -> Unit| {
            let units = (0..count).map(|_| unit()).collect();
            let name = format!("{name}, {count} to {count}");
            all.push(Contestant { name, units, wall: vec![], processor: vec![], lost: 0 });
        };
        add("UDP arena and copy", &udp);
        for kib in [64, 256, 1024] {
            add(&format!("TCP {kib} KiB"), &|| tcp(kib << 10, false));
            add(&format!("TCP {kib} KiB, low water"), &|| tcp(kib << 10, true));
        }
    }
    all
}

fn noise(length: usize, mut state: u64) -> Vec<u8> {
    let mut octets = Vec::with_capacity(length + 8);
    while octets.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        octets.extend_from_slice(&state.to_le_bytes());
    }
    octets.truncate(length);
    octets
}

/// Returns the minimum and the median.
fn summary(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let nothing = f64::NAN;
    (
        values.first().copied().unwrap_or(nothing),
        values.get(values.len() / 2).copied().unwrap_or(nothing),
    )
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> =
        arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let named =
        |argument: &&String| argument.starts_with(|first: char| first.is_ascii_alphabetic());
    let only = arguments.iter().find(named);
    // Without this argument the program runs as a test, for which one turn is enough.
    let usual = if arguments.iter().any(|argument| argument == "--bench") { 20 } else { 1 };
    let turns = numbers.first().copied().unwrap_or(usual);
    let sizes = if numbers.len() > 1 { &numbers[1..] } else { &[8_294_400, 99_532_800][..] };
    for &size in sizes {
        let sources = [noise(size, 1), noise(size, 2)];
        let mut target = vec![0; size];
        let mut all = contestants();
        all.retain(|contestant| only.is_none_or(|only| contestant.name.contains(only)));
        for turn in 0..turns {
            for contestant in &mut all {
                // The first frame, which is not timed, warms up the caches.
                for frame in 0..3 {
                    contestant.frame(&sources[(turn + frame) % 2], &mut target, frame > 0);
                }
            }
        }
        println!(
            "{size} octets, {turns} turns: minimum and median in ms, processor in ms, Gbit/s, lost"
        );
        for contestant in &mut all {
            let (least, middle) = summary(&mut contestant.wall);
            let (_, processor) = summary(&mut contestant.processor);
            let rate = size as f64 * 8.0 / middle / 1e6;
            println!(
                "{:<34} {least:7.2} {middle:7.2}  processor {processor:7.2}  {rate:5.1}  {}",
                contestant.name, contestant.lost
            );
        }
    }
}
