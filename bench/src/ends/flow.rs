//! The threads that send and receive one stream, and the acknowledgements between the two.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use rushes::sleep_until;

use super::spec::Spec;
use super::trial::Report;

/// Maximum number of unacknowledged access units of a stream, with acknowledgements.
const FRAMES_IN_FLIGHT: u64 = 2;

/// Time after which a sender without acknowledgements gives up.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Silence after which nothing is in transit any more, once the sender has ended: longer than
/// packets are waited for.
const SILENCE: Duration = Duration::from_millis(120);

/// The sending half of one stream: of the library, or a bare socket.
pub(super) trait Outlet: Send {
    /// Sends access unit `n`, which is due at `due`; returns its octets.
    fn push(&mut self, n: u64, due: Instant) -> anyhow::Result<u64>;
    /// Adds the counts of the socket, when all has been sent.
    fn finish(&mut self, report: &mut Report) -> anyhow::Result<()>;
}

/// The receiving half of one stream.
pub(super) trait Inlet: Send {
    fn port(&self) -> u16;
    /// Receives until `deadline` at the latest, and calls `whole` with the octets of each access
    /// unit that is complete; returns whether anything arrived.
    fn pull(&mut self, deadline: Instant, whole: &mut dyn FnMut(usize)) -> anyhow::Result<bool>;
    /// Adds the counts of the socket.
    fn finish(&mut self, report: &mut Report);
}

/// Sends the access units of one stream, each when it is due or as soon as possible after that.
/// Gives up when this takes several times as long as planned.
pub(super) fn send(
    outlet: &mut dyn Outlet,
    spec: &Spec,
    mut window: Window,
    start: Instant,
) -> anyhow::Result<Report> {
    let mut report = Report::default();
    sleep_until(start);
    for n in 0..spec.frames {
        let mut due = start;
        match spec.rate() {
            None => window.wait()?,
            Some(rate) => {
                due += Duration::from_secs_f64(n as f64 / rate);
                sleep_until(due);
            }
        }
        report.octets += outlet.push(n, due)?;
        report.frames += 1;
        let is_late = |rate| start.elapsed().as_secs_f64() > 1.0 + 4.0 * spec.frames as f64 / rate;
        if spec.rate().is_some_and(is_late) {
            break;
        }
    }
    if spec.rate().is_none() {
        window.wait_for_all()?;
    }
    report.end = seconds_since_1970();
    outlet.finish(&mut report)?;
    Ok(report)
}

/// Receives the access units of one stream, until all are complete or nothing more arrives.
pub(super) fn receive(
    inlet: &mut dyn Inlet,
    spec: &Spec,
    acknowledger: &Acknowledger,
    sender_has_ended: &AtomicBool,
) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let mut last = Instant::now();
    while report.frames < spec.frames {
        let whole = &mut |octets| {
            report.frames += 1;
            report.octets += octets as u64;
            report.end = seconds_since_1970();
            acknowledger.acknowledge(report.frames);
        };
        let silence = last.elapsed();
        if inlet.pull(Instant::now() + SILENCE / 4, whole)? {
            last = Instant::now();
        } else if sender_has_ended.load(Ordering::Relaxed) && silence >= SILENCE {
            break;
        }
    }
    inlet.finish(&mut report);
    Ok(report)
}

pub(super) fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The sender's end of the acknowledgements.
pub(super) struct Window {
    socket: UdpSocket,
    sent: u64,
    seen: u64,
}

impl Window {
    pub(super) fn open(host: &str) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((host, 0))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { socket, sent: 0, seen: 0 })
    }

    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits until another access unit may be sent.
    fn wait(&mut self) -> anyhow::Result<()> {
        self.wait_for((self.sent + 1).saturating_sub(FRAMES_IN_FLIGHT))?;
        self.sent += 1;
        Ok(())
    }

    fn wait_for_all(&mut self) -> anyhow::Result<()> {
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
pub(super) struct Acknowledger {
    socket: UdpSocket,
    to: SocketAddr,
}

impl Acknowledger {
    /// Acknowledges from `host` to an address that the sender has printed.
    pub(super) fn open(host: &str, to: &str) -> anyhow::Result<Self> {
        Ok(Self { socket: UdpSocket::bind((host, 0))?, to: to.parse()? })
    }

    fn acknowledge(&self, frames: u64) {
        // A lost acknowledgement is repeated by that of the next frame.
        let _ = self.socket.send_to(&frames.to_be_bytes(), self.to);
    }
}
