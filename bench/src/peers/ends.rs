//! Reference ends of a path, which lose nothing and do not slow down the other end: a source of
//! prepared packets, and a sink that counts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rushes::format::FormatOptions;
use rushes::net::{SocketOptions, UdpSocket};
use rushes::proto::rtp::Packet;
use rushes::proto::stream::{Sender, SenderConfig};
use rushes::proto::{Batch, SequenceNumber};
use rushes::{ClockRate, FrameRate, PayloadType, RtpTimestamp, Ssrc, sleep_until};

use crate::sequence::Sequence;

/// Octets in the largest datagram: the maximum in an Ethernet packet with IPv4.
const PACKET_LEN: usize = 1472;

/// Timeout for the kernel to accept packets.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

/// Ticks of a video clock per second.
const CLOCK_RATE: f64 = 90_000.0;

/// The packets of a sequence.
#[derive(Debug)]
pub(super) struct Source {
    /// The batches of each access unit.
    units: Vec<Vec<Packets>>,
}

#[derive(Debug)]
struct Packets {
    octets: Vec<u8>,
    lengths: Vec<u16>,
}

impl Source {
    pub(super) fn of(sequence: &Sequence) -> anyhow::Result<Self> {
        let mut options = FormatOptions::default();
        if let Some(video) = sequence.video() {
            options.raw = Some(video.format()?.into());
        }
        let packetiser = (sequence.codec.payload)(&options).packetiser();
        let config = SenderConfig {
            ssrc: Ssrc(0x1234_5678),
            payload_type: PayloadType::H264,
            first_sequence: SequenceNumber(0),
            first_timestamp: RtpTimestamp(0),
            clock_rate: ClockRate::VIDEO,
            frame_rate: FrameRate::default(),
            packet_len_max: PACKET_LEN,
        };
        let mut sender = Sender::new(packetiser, config)?;
        let mut batch = Batch::new();
        let mut units = Vec::with_capacity(sequence.units.len());
        for n in 0..sequence.units.len() {
            let mut outgoing = sender.push(sequence.unit(n), None)?;
            let mut batches = Vec::new();
            while outgoing.fill(&mut batch) {
                let (octets, lengths) = (batch.bytes().to_vec(), batch.lengths().to_vec());
                batches.push(Packets { octets, lengths });
            }
            units.push(batches);
        }
        Ok(Self { units })
    }

    /// Sends the first `count` access units, `rate` per second, with the packets of each spread
    /// evenly over its interval: the easiest load for a receiver.
    pub(super) fn send(&mut self, to: SocketAddr, count: usize, rate: f64) -> anyhow::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0".parse()?, &SocketOptions::default())?;
        let mut queue = socket.send_queue();
        let (mut sequence, period) = (0_u16, self.units.len());
        let start = Instant::now();
        for n in 0..count {
            #[allow(clippy::cast_sign_loss, reason = "times are not negative")]
            let timestamp = (n as f64 * CLOCK_RATE / rate) as u32;
            let batches = &mut self.units[n % period];
            let share = 1.0 / batches.len().max(1) as f64;
            for (part, batch) in batches.iter_mut().enumerate() {
                batch.number(&mut sequence, timestamp);
                let due = (n as f64 + part as f64 * share) / rate;
                sleep_until(start + Duration::from_secs_f64(due));
                let deadline = Instant::now() + SEND_TIMEOUT;
                socket.send(&mut queue, &batch.octets, &batch.lengths, to, deadline)?;
            }
        }
        Ok(())
    }
}

impl Packets {
    /// Writes the next sequence numbers and a timestamp into the headers.
    fn number(&mut self, sequence: &mut u16, timestamp: u32) {
        let mut rest = &mut self.octets[..];
        for length in &self.lengths {
            let (packet, behind) = rest.split_at_mut(usize::from(*length));
            if let Some(header) = packet.get_mut(2..8) {
                header[..2].copy_from_slice(&sequence.to_be_bytes());
                header[2..].copy_from_slice(&timestamp.to_be_bytes());
            }
            *sequence = sequence.wrapping_add(1);
            rest = behind;
        }
    }
}

/// The packets that arrived at a sink.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SinkCount {
    /// Complete access units, judged by sequence numbers and the marker bit.
    pub(super) whole: u64,
    /// When the first and the last packet arrived.
    pub(super) times: Option<(Instant, Instant)>,
    next: Option<SequenceNumber>,
    is_broken: bool,
}

/// Counts the packets sent to a port.
#[derive(Debug)]
pub(super) struct Sink {
    socket: UdpSocket,
    /// Bound so that reports to it cause no ICMP port-unreachable errors at the sender.
    _reports: std::net::UdpSocket,
}

impl Sink {
    pub(super) fn open(port: u16) -> anyhow::Result<Self> {
        let local = SocketAddr::from(([127, 0, 0, 1], port));
        let socket = UdpSocket::bind(local, &SocketOptions::default())?;
        Ok(Self { socket, _reports: std::net::UdpSocket::bind(("127.0.0.1", port + 1))? })
    }

    /// Counts until `is_over` is set and nothing more arrives.
    pub(super) fn count(&self, is_over: &AtomicBool) -> anyhow::Result<SinkCount> {
        let mut arena = self.socket.arena();
        let mut counted = SinkCount::default();
        loop {
            let ending = is_over.load(Ordering::Relaxed);
            let deadline = Instant::now() + Duration::from_millis(20);
            let datagrams = self.socket.receive(&mut arena, deadline, None)?;
            if datagrams.is_empty() {
                if ending {
                    return Ok(counted);
                }
                continue;
            }
            let now = Instant::now();
            for datagram in datagrams {
                if let Ok(packet) = Packet::parse(datagram.data) {
                    counted.take(&packet, now);
                }
            }
        }
    }
}

impl SinkCount {
    fn take(&mut self, packet: &Packet<'_>, now: Instant) {
        if packet.payload().is_empty() {
            return;
        }
        self.times = Some((self.times.map_or(now, |times| times.0), now));
        let sequence = packet.sequence();
        self.is_broken |= self.next.is_some_and(|next| next != sequence);
        self.next = Some(sequence.plus(1));
        if packet.marker() {
            self.whole += u64::from(!self.is_broken);
            self.is_broken = false;
        }
    }
}
