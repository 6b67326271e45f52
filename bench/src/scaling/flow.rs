//! The state of a thread that sends or receives one stream, and the acknowledgements between the two.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::spec::{Report, Spec, Units};

/// Maximum number of unacknowledged access units of a stream, with acknowledgements.
const FRAMES_IN_FLIGHT: u64 = 2;

/// Silence after which an end gives up.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Silence after which nothing is in transit any more.
pub(crate) const SILENCE: Duration = Duration::from_millis(120);

/// The state of a sending thread.
pub(crate) struct Sending {
    pub(crate) spec: Arc<Spec>,
    pub(crate) to: SocketAddr,
    pub(crate) frames: Arc<Frames>,
    pub(crate) window: Window,
    pub(crate) start: Instant,
}

/// The state of a receiving thread.
pub(crate) struct Receiving {
    pub(crate) spec: Arc<Spec>,
    pub(crate) acknowledger: Acknowledger,
    /// Whether the sender has ended.
    pub(crate) ended: Arc<AtomicBool>,
    pub(crate) received: Received,
}

impl Receiving {
    /// Whether to stop waiting after `silence`.
    pub(crate) fn is_over(&self, silence: Duration) -> bool {
        silence >= TIMEOUT || self.ended.load(Ordering::Relaxed) && silence >= SILENCE
    }

    /// Notes a complete frame.
    pub(crate) fn whole(&mut self, octets: usize) {
        let now = Instant::now();
        self.received.first.get_or_insert(now);
        self.received.last = Some(now);
        self.received.report.frames += 1;
        self.received.report.octets += octets as u64;
        self.acknowledger.acknowledge(self.received.report.frames);
    }
}

/// The received frames, and when they arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) report: Report,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

/// The access units to send, by kind.
pub(crate) struct Frames {
    units: Units,
    longest: Vec<u8>,
    /// Not a prefix of the longest: it has its own end.
    other: Vec<u8>,
}

impl Frames {
    pub(super) fn new(units: Units) -> Self {
        Self { units, longest: access_unit(units.len(0)), other: access_unit(units.len(1)) }
    }

    pub(crate) fn unit(&self, n: u64) -> &[u8] {
        if n.is_multiple_of(self.units.group) { &self.longest } else { &self.other }
    }
}

/// An access unit of one slice: a header, then octets without a start code, like those of a slice.
fn access_unit(len: usize) -> Vec<u8> {
    let mut unit = vec![0, 0, 0, 1, 0x02, 0x01, 0x80];
    let len = len.max(unit.len() + 1);
    // Octets 1 to 255, so that there are no zeros.
    unit.extend((unit.len()..len).map(|n| 1 + (n.wrapping_mul(2_654_435_761) >> 7) as u8 % 255));
    unit
}

/// The sender's end of the acknowledgements.
pub(crate) struct Window {
    pub(super) socket: UdpSocket,
    sent: u64,
    seen: u64,
}

impl Window {
    pub(super) fn open(host: &str) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((host, 0))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { socket, sent: 0, seen: 0 })
    }

    /// Waits until another access unit may be sent.
    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        self.wait_for((self.sent + 1).saturating_sub(FRAMES_IN_FLIGHT))?;
        self.sent += 1;
        Ok(())
    }

    pub(crate) fn wait_for_all(&mut self) -> anyhow::Result<()> {
        self.wait_for(self.sent)
    }

    fn wait_for(&mut self, frames: u64) -> anyhow::Result<()> {
        while self.seen < frames {
            let mut octets = [0; 8];
            self.socket.recv(&mut octets).context("no acknowledgement from the receiver")?;
            self.seen = self.seen.max(u64::from_be_bytes(octets));
        }
        Ok(())
    }
}

/// The receiver's end of the acknowledgements.
pub(crate) struct Acknowledger {
    pub(super) socket: UdpSocket,
    pub(super) to: SocketAddr,
}

impl Acknowledger {
    fn acknowledge(&self, frames: u64) {
        // A lost acknowledgement is repeated by that of the next frame.
        let _ = self.socket.send_to(&frames.to_be_bytes(), self.to);
    }
}
