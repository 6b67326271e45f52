//! Bare sockets with the same load: the same octets in packets of the same size, straight from the
//! access unit, without RTP, copied once on receipt. This is the limit of the kernel.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes::net::{Arena, SendQueue, SocketOptions, UdpSocket};
use rushes::sleep_until;

use super::flow::{Inlet, Outlet};
use super::spec::{Clock, ETHERNET_LEN, IP_UDP_LEN, Spec, Spread};
use super::trial::Report;
use crate::sequence::Sequence;

/// Octets of UDP payload in an Ethernet packet.
pub(crate) const RAW_DATAGRAM_LEN: usize = 1472;

/// Maximum number of octets and datagrams of one system call.
const SLAB_LEN: usize = 65_000;
const SLAB_DATAGRAMS: usize = 64;

/// Timeout while the socket's buffer is full.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

/// Octets at the start of every datagram: the number of the access unit, and its length.
const HEADER_LEN: usize = 8;

/// The time by which a sleep may be late.
const SLEEP_LATE: Duration = Duration::from_micros(150);

/// Sends `octets` in datagrams of `len` octets, a slab of up to 64 KiB in each call, as with RTP.
/// `wait` is called before each, with its octets.
pub(crate) fn send_datagrams(
    (socket, queue): (&UdpSocket, &mut SendQueue),
    octets: &[u8],
    len: usize,
    to: SocketAddr,
    mut wait: impl FnMut(usize),
) -> anyhow::Result<()> {
    let mut lengths = [0; SLAB_DATAGRAMS];
    for slab in octets.chunks(len * (SLAB_LEN / len).clamp(1, SLAB_DATAGRAMS)) {
        let datagrams = slab.chunks(len);
        let count = datagrams.len();
        for (length, datagram) in lengths.iter_mut().zip(datagrams) {
            *length = datagram.len() as u16;
        }
        wait(slab.len());
        socket.send(queue, slab, &lengths[..count], to, Instant::now() + SEND_TIMEOUT)?;
    }
    Ok(())
}

fn open(host: &str, spec: &Spec) -> anyhow::Result<UdpSocket> {
    let options = SocketOptions {
        send_path: spec.path.send(),
        receive_path: spec.path.receive(),
        send_buffer: spec.buffers[0],
        receive_buffer: spec.buffers[1],
        ..SocketOptions::default()
    };
    Ok(UdpSocket::bind(SocketAddr::new(host.parse()?, 0), &options)?)
}

pub(super) struct BareOutlet {
    socket: UdpSocket,
    queue: SendQueue,
    to: SocketAddr,
    /// Its octets are overwritten by headers.
    sequence: Sequence,
    datagram_len: usize,
    clock: Clock,
    /// When the next datagrams may be sent.
    due: Option<Instant>,
}

impl BareOutlet {
    pub(super) fn open(spec: &Spec, sequence: &Sequence, to: SocketAddr) -> anyhow::Result<Self> {
        let socket = open(&spec.sender, spec)?;
        let (queue, sequence) = (socket.send_queue(), sequence.clone());
        let (datagram_len, clock) = (spec.mtu - IP_UDP_LEN, spec.clock);
        Ok(Self { socket, queue, to, sequence, datagram_len, clock, due: None })
    }
}

impl Outlet for BareOutlet {
    fn push(&mut self, n: u64, due: Instant) -> anyhow::Result<u64> {
        let mut tiny = [0; HEADER_LEN];
        let frame = match self.sequence.unit_mut(usize::try_from(n)?) {
            frame if frame.len() < HEADER_LEN => &mut tiny[..],
            frame => frame,
        };
        let header = ((n as u32 as u64) << 32 | frame.len() as u64).to_be_bytes();
        for datagram in frame.chunks_mut(self.datagram_len) {
            let len = HEADER_LEN.min(datagram.len());
            datagram[..len].copy_from_slice(&header[..len]);
        }
        let rate = match self.clock {
            Clock::Window | Clock::Steady(_, Spread::Burst) => None,
            Clock::Steady(fps, Spread::Default) => Some(frame.len() as f64 * 8.0 / 0.9 * fps),
            Clock::Steady(_, Spread::Rate(bits)) => Some(bits as f64),
        };
        let mut due = self.due.map_or(due, |before| before.max(due));
        let wait = |octets: usize| {
            let Some(rate) = rate else { return };
            wait_until(due);
            // Delays are not caught up with: this is the smoothest pacing.
            due = due.max(Instant::now().checked_sub(SLEEP_LATE).unwrap_or(due))
                + Duration::from_secs_f64(octets as f64 * 8.0 / rate);
        };
        send_datagrams((&self.socket, &mut self.queue), frame, self.datagram_len, self.to, wait)?;
        self.due = Some(due);
        Ok(frame.len() as u64)
    }

    fn finish(&mut self, report: &mut Report) -> anyhow::Result<()> {
        let counters = self.socket.counters();
        let headers = (ETHERNET_LEN + IP_UDP_LEN) as u64 * counters.sent_datagrams;
        report.wire_octets = counters.sent_bytes + headers;
        report.system_calls = counters.calls();
        Ok(())
    }
}

/// Waits with microsecond accuracy: sleeps first, then spins.
fn wait_until(due: Instant) {
    if let Some(sleep) = due.checked_sub(SLEEP_LATE) {
        sleep_until(sleep);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

pub(super) struct BareInlet {
    socket: UdpSocket,
    arena: Arena,
    frame: Vec<u8>,
    /// Octets received of each access unit.
    received: Vec<usize>,
}

impl BareInlet {
    pub(super) fn open(spec: &Spec) -> anyhow::Result<Self> {
        let socket = open(&spec.host, spec)?;
        let (arena, received) = (socket.arena(), vec![0; usize::try_from(spec.frames)?]);
        Ok(Self { socket, arena, frame: Vec::new(), received })
    }
}

impl Inlet for BareInlet {
    fn port(&self) -> u16 {
        self.socket.local_address().port()
    }

    fn pull(&mut self, deadline: Instant, whole: &mut dyn FnMut(usize)) -> anyhow::Result<bool> {
        let datagrams = self.socket.receive(&mut self.arena, deadline, None)?;
        let has_arrived = !datagrams.is_empty();
        for datagram in datagrams {
            let Some(header) = datagram.data.first_chunk().copied().map(u64::from_be_bytes) else {
                continue;
            };
            let (number, all) = (header >> 32, header as u32 as usize);
            if self.frame.len() + datagram.data.len() > all {
                self.frame.clear();
            }
            // The one copy that every receiver of frames makes.
            self.frame.extend_from_slice(datagram.data);
            let Some(received) = self.received.get_mut(usize::try_from(number)?) else { continue };
            *received += datagram.data.len();
            // A last datagram that is too short for the header is not counted as missing.
            if *received + HEADER_LEN > all {
                self.frame.clear();
                whole(all);
            }
        }
        Ok(has_arrived)
    }

    fn finish(&mut self, report: &mut Report) {
        let counters = self.socket.counters();
        report.system_calls = counters.calls();
        report.socket_drops = counters.kernel_drops;
    }
}
