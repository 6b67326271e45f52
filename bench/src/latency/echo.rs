//! Sending access units back and forth, by Rushes and by bare sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rushes::net::{self, SocketOptions};
use rushes::{Codec, Context, MediaStream, Pacing, RtpTimestamp, StreamSender, sleep_until};

use super::shape::{PERIOD, Shape, Way};
use crate::ends::{RAW_DATAGRAM_LEN, send_datagrams};
use crate::sequence::access_unit;

/// Timeout for an access unit.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// Longer than any measurement.
const SPIN_TIME: Duration = Duration::from_secs(3600);

/// Access units sent before the measured ones, to touch memory and fill the kernel's caches.
const WARM_UP: u64 = 8;

/// Ticks between the timestamps of two access units; timestamps identify replies.
const TICKS: u32 = 90;

/// The send and receive path of one side.
pub(super) trait Link: Sized {
    /// Returns the port at which it receives.
    fn port(&self) -> u16;
    /// Sends all received access units to `to` until the process ends.
    fn answer(self, to: SocketAddr) -> anyhow::Result<()>;
    /// Sets the destination of `push`.
    fn connect(&mut self, to: SocketAddr) -> anyhow::Result<()>;
    /// Sends access unit `n`.
    fn push(&mut self, octets: &mut [u8], n: u32) -> anyhow::Result<()>;
    /// Returns the next reply, and when it was complete; `None` if there was none until `deadline`.
    fn take(&mut self, deadline: Instant) -> anyhow::Result<Option<(u32, Instant)>>;
}

/// Returns the round-trip time of each access unit; `None` if it did not come back.
pub(super) fn ask(
    mut link: impl Link,
    shape: Shape,
    frames: u64,
) -> anyhow::Result<Vec<Option<Duration>>> {
    let (mut intra, mut inter) = (access_unit(shape.intra), access_unit(shape.inter));
    let interval = Duration::from_secs_f64(1.0 / shape.rate);
    let count = frames + WARM_UP;
    let mut pushed: Vec<Instant> = Vec::with_capacity(count as usize);
    let mut times: Vec<Option<Duration>> = vec![None; count as usize];
    let record = |reply: Option<(u32, Instant)>, pushed: &[Instant], times: &mut [Option<_>]| {
        if let Some((n, at)) = reply
            && let (Some(from), Some(time)) = (pushed.get(n as usize), times.get_mut(n as usize))
        {
            time.get_or_insert(at - *from);
        }
    };
    let start = Instant::now() + interval;
    for n in 0..count {
        sleep_until(start + interval.mul_f64(n as f64));
        let is_intra = n >= WARM_UP && (n - WARM_UP).is_multiple_of(PERIOD);
        let octets = if is_intra || n == 0 { &mut intra } else { &mut inter };
        pushed.push(Instant::now());
        link.push(octets, n as u32)?;
        let next = start + interval.mul_f64((n + 1) as f64);
        while Instant::now() < next && times[n as usize].is_none() {
            record(link.take(next)?, &pushed, &mut times);
        }
    }
    let end = Instant::now() + REPLY_TIMEOUT;
    while Instant::now() < end && times.iter().any(Option::is_none) {
        record(link.take(end)?, &pushed, &mut times);
    }
    Ok(times.split_off(WARM_UP as usize))
}

/// A link by Rushes.
pub(super) struct Rtp {
    receiving: MediaStream,
    sender: Option<StreamSender>,
    way: Way,
    replies: Option<mpsc::Receiver<(u32, Instant)>>,
    /// The receiving half of the sending stream, kept open.
    half: Option<rushes::StreamReceiver>,
}

impl Rtp {
    pub(super) fn open(way: Way) -> anyhow::Result<Self> {
        let is_spinning = matches!(way, Way::PullSpinning | Way::HookSpinning);
        let spin = if is_spinning { SPIN_TIME } else { Duration::ZERO };
        let session = Context::new().session_any().local_address("127.0.0.1")?;
        let receiving = session.stream(Codec::H265).probation(1).spin(spin).open()?;
        Ok(Self { receiving, sender: None, way, replies: None, half: None })
    }

    fn is_hooked(&self) -> bool {
        matches!(self.way, Way::Hook | Way::HookSpinning)
    }
}

impl Link for Rtp {
    fn port(&self) -> u16 {
        self.receiving.local_address().port()
    }

    fn answer(mut self, to: SocketAddr) -> anyhow::Result<()> {
        let (mut sender, _receiver) = sender(to)?.split()?;
        // The asking side detects missing replies.
        if self.is_hooked() {
            self.receiving.on_frame(move |frame| {
                let _ = sender.push_frame(&frame, frame.timestamp());
            })?;
            loop {
                std::thread::park();
            }
        }
        loop {
            if let Ok(Some(frame)) = self.receiving.pull_frame(REPLY_TIMEOUT) {
                let _ = sender.push_frame(&frame, frame.timestamp());
            }
        }
    }

    fn connect(&mut self, to: SocketAddr) -> anyhow::Result<()> {
        let (sender, receiver) = sender(to)?.split()?;
        (self.sender, self.half) = (Some(sender), Some(receiver));
        if self.is_hooked() {
            let (reply_sender, replies) = mpsc::channel();
            self.receiving.on_frame(move |frame| {
                let _ = reply_sender.send((frame.timestamp().0 / TICKS, Instant::now()));
            })?;
            self.replies = Some(replies);
        }
        Ok(())
    }

    fn push(&mut self, octets: &mut [u8], n: u32) -> anyhow::Result<()> {
        if let Some(sender) = &mut self.sender {
            sender.push_frame(octets, RtpTimestamp(n * TICKS))?;
        }
        Ok(())
    }

    fn take(&mut self, deadline: Instant) -> anyhow::Result<Option<(u32, Instant)>> {
        let timeout = deadline.saturating_duration_since(Instant::now());
        if let Some(replies) = &self.replies {
            return Ok(replies.recv_timeout(timeout).ok());
        }
        let frame = self.receiving.pull_frame(timeout)?;
        Ok(frame.map(|frame| (frame.timestamp().0 / TICKS, Instant::now())))
    }
}

fn sender(to: SocketAddr) -> anyhow::Result<MediaStream> {
    let session = Context::new().session(&to.ip().to_string())?;
    Ok(session.stream(Codec::H265).remote_port(to.port()).pacing(Pacing::Off).open()?)
}

/// A link by bare sockets.
pub(super) struct Bare {
    socket: net::UdpSocket,
    queue: net::SendQueue,
    arena: net::Arena,
    to: Option<SocketAddr>,
    received: Vec<u8>,
    /// Ends of the complete access units in `received`: several may arrive at once.
    ends: VecDeque<usize>,
}

impl Bare {
    pub(super) fn open(shape: Shape) -> anyhow::Result<Self> {
        let local = net::resolve("127.0.0.1", 0)?;
        let socket = net::UdpSocket::bind(local, &SocketOptions::default())?;
        let (queue, arena) = (socket.send_queue(), socket.arena());
        let received = Vec::with_capacity(shape.intra.max(shape.inter) + (64 << 10));
        Ok(Self { socket, queue, arena, to: None, received, ends: VecDeque::new() })
    }

    fn send(&mut self, octets: &[u8], to: SocketAddr) -> anyhow::Result<()> {
        let socket = (&self.socket, &mut self.queue);
        send_datagrams(socket, octets, RAW_DATAGRAM_LEN, to, |_| ())
    }

    /// Reads until there is a complete access unit, and returns its end in `received`. A datagram
    /// that is shorter than the others ends it.
    fn receive(&mut self, deadline: Instant) -> anyhow::Result<Option<usize>> {
        while self.ends.is_empty() && Instant::now() < deadline {
            for datagram in self.socket.receive(&mut self.arena, deadline, None)? {
                self.received.extend_from_slice(datagram.data);
                if datagram.data.len() < RAW_DATAGRAM_LEN {
                    self.ends.push_back(self.received.len());
                }
            }
        }
        Ok(self.ends.pop_front())
    }

    /// Removes the access unit that ends at `end`.
    fn forget(&mut self, end: usize) {
        self.received.drain(..end);
        for other in &mut self.ends {
            *other -= end;
        }
    }
}

impl Link for Bare {
    fn port(&self) -> u16 {
        self.socket.local_address().port()
    }

    fn answer(mut self, to: SocketAddr) -> anyhow::Result<()> {
        loop {
            if let Ok(Some(end)) = self.receive(Instant::now() + REPLY_TIMEOUT) {
                let octets = std::mem::take(&mut self.received);
                let _ = self.send(&octets[..end], to);
                self.received = octets;
                self.forget(end);
            }
        }
    }

    fn connect(&mut self, to: SocketAddr) -> anyhow::Result<()> {
        self.to = Some(to);
        Ok(())
    }

    fn push(&mut self, octets: &mut [u8], n: u32) -> anyhow::Result<()> {
        // The last datagram must be short and contain the number.
        let over = octets.len() % RAW_DATAGRAM_LEN;
        let len = if over < 4 { octets.len() - over - 4 } else { octets.len() };
        let octets = &mut octets[..len];
        if let Some(last) = octets.last_chunk_mut() {
            *last = n.to_be_bytes();
        }
        let Some(to) = self.to else { return Ok(()) };
        self.send(octets, to)
    }

    fn take(&mut self, deadline: Instant) -> anyhow::Result<Option<(u32, Instant)>> {
        let Some(end) = self.receive(deadline)? else { return Ok(None) };
        let at = Instant::now();
        // The number is at the end.
        let number = self.received[..end].last_chunk().copied().map(u32::from_be_bytes);
        self.forget(end);
        Ok(number.map(|n| (n, at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_units_that_wait_together_are_taken_one_by_one() {
        let shape = Shape { intra: 4_000, inter: 4_000, rate: 1.0 };
        let (mut from, mut to) = (Bare::open(shape).unwrap(), Bare::open(shape).unwrap());
        from.connect(SocketAddr::from(([127, 0, 0, 1], to.port()))).unwrap();
        let mut octets = access_unit(shape.inter);
        for n in 0..3 {
            from.push(&mut octets, n).unwrap();
        }
        let taken = [(); 3].map(|()| to.take(Instant::now() + REPLY_TIMEOUT).unwrap());
        assert_eq!(taken.map(|reply| reply.map(|(n, _)| n)), [Some(0), Some(1), Some(2)]);
    }
}
