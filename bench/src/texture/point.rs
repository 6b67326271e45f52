//! One point of a figure: frames through a server and a client, in turns with bare sockets.

use std::time::Duration;

use rushes::texture::Transport;

use super::bare::Bare;
use super::stream::{Arrival, Setup, Stream};
use crate::cpu;
use crate::report::quantile;

/// Turns before the measured ones, to touch every slot of the client's memory.
const WARM_UP: usize = 4;

/// Octets of the header of each packet.
const HEADER: usize = 4;

/// The number and the maximum duration of turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub(super) frames: usize,
    /// No further turn begins after this time, but there are at least five.
    pub(super) longest: Duration,
    pub(super) with_bare: bool,
    /// Also with datagrams whose octets are put in place.
    pub(super) with_placed: bool,
}

/// The measurements of sockets alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets {
    /// Latencies in milliseconds.
    pub(super) latencies: Vec<f64>,
    /// Processor time of each turn on both sides together, in milliseconds.
    pub(super) cpu: Vec<f64>,
    pub(super) lost: usize,
}

/// The times of one complete frame, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    /// From the capture of the picture until the frame was in place.
    pub(super) latency: f64,
    /// From the capture of the picture until the first unit began.
    pub(super) waited: f64,
    /// From then until the last unit had sent its last octet.
    pub(super) took: f64,
    pub(super) unit_mean: f64,
    pub(super) unit_max: f64,
    /// From the capture of the picture until the first packet arrived.
    pub(super) first: f64,
    /// From then until the last octet was in place.
    pub(super) arriving: f64,
}

/// The measurements at a point.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// The frames in order; `None` for an incomplete one.
    pub(super) frames: Vec<Option<Timed>>,
    pub(super) bare: Sockets,
    /// Sockets whose octets are put in place (UDP).
    pub(super) placed: Sockets,
    /// Processor time of each frame on both sides together, in milliseconds.
    pub(super) cpu: Vec<f64>,
    pub(super) octets: usize,
}

/// Sends frames, in turns with the same number of octets through bare sockets.
pub(super) fn measure(setup: &Setup, turns: Turns) -> anyhow::Result<Measured> {
    let mut stream = Stream::open(setup)?;
    let layout =
        rushes::texture::Layout::new(setup.output, setup.input.width(), setup.input.height())?;
    let octets = layout.bytes();
    let payload = stream.payload().unwrap_or_else(|| setup.payload.max(1));
    let open = |is_wished: bool, is_placed| {
        is_wished.then(|| open_bare(setup, octets, (payload, is_placed))).transpose()
    };
    let bare = open(turns.with_bare, false)?;
    let placed = open(turns.with_placed && setup.transport != Transport::Tcp, true)?;
    let mut measured = Measured { octets, ..Measured::default() };
    for _ in 0..WARM_UP {
        stream.turn();
        bare.as_ref().map(Bare::turn);
        placed.as_ref().map(Bare::turn);
    }
    let start = std::time::Instant::now();
    let mut arrivals: Vec<Option<Arrival>> = Vec::new();
    for turn in 0..turns.frames {
        if turn >= 5 && start.elapsed() > turns.longest {
            break;
        }
        let before = cpu::cpu_time();
        arrivals.push(stream.turn());
        measured.cpu.push(millis(cpu::cpu_time().saturating_sub(before)));
        measured.bare.turn(bare.as_ref());
        measured.placed.turn(placed.as_ref());
    }
    measured.frames = timed(&arrivals, stream, WARM_UP as u64);
    Ok(measured)
}

/// Measures the first frames of a stream, `interval` apart, without a warm-up.
pub(super) fn first_frames(
    setup: &Setup,
    frames: usize,
    interval: Duration,
) -> anyhow::Result<Vec<Option<Timed>>> {
    let mut stream = Stream::open(setup)?;
    let mut arrivals = Vec::new();
    for _ in 0..frames {
        let due = std::time::Instant::now() + interval;
        arrivals.push(stream.turn());
        rushes::sleep_until(due);
    }
    Ok(timed(&arrivals, stream, 0))
}

fn open_bare(
    setup: &Setup,
    octets: usize,
    (payload, is_placed): (usize, bool),
) -> anyhow::Result<Bare> {
    let buffer = setup.socket_buffer;
    if setup.transport == Transport::Tcp {
        return Bare::tcp(octets, setup.units, buffer);
    }
    let octets = octets + octets.div_ceil(payload) * HEADER;
    Bare::udp(octets, (payload + HEADER, is_placed), setup.units, buffer)
}

/// Combines the times of both sides; the first arrival is that of frame `first`.
fn timed(arrivals: &[Option<Arrival>], stream: Stream, first: u64) -> Vec<Option<Timed>> {
    let sent = stream.close();
    let one = |arrival: &Option<Arrival>| {
        let arrival = arrival.filter(|arrival| arrival.is_whole && arrival.frame >= first)?;
        let sent = sent.iter().find(|sent| sent.frame == arrival.frame)?;
        let since = |at: std::time::Instant| millis(at.saturating_duration_since(sent.captured_at));
        Some(Timed {
            latency: since(arrival.done_at),
            waited: millis(sent.waited),
            took: millis(sent.took),
            unit_mean: millis(sent.unit_mean),
            unit_max: millis(sent.unit_max),
            first: since(arrival.first_at),
            arriving: millis(arrival.done_at.saturating_duration_since(arrival.first_at)),
        })
    };
    arrivals.iter().map(one).collect()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

impl Sockets {
    /// Takes a turn, if there are such sockets.
    fn turn(&mut self, sockets: Option<&Bare>) {
        let Some(sockets) = sockets else { return };
        let before = cpu::cpu_time();
        match sockets.turn() {
            Some(latency) => self.latencies.push(millis(latency)),
            None => self.lost += 1,
        }
        self.cpu.push(millis(cpu::cpu_time().saturating_sub(before)));
    }
}

impl Measured {
    /// Returns one figure of every complete frame.
    pub(super) fn each(&self, figure: impl Fn(&Timed) -> f64) -> Vec<f64> {
        self.frames.iter().flatten().map(figure).collect()
    }

    /// Returns the latency that `share` of the complete frames do not exceed.
    pub(super) fn latency(&self, share: f64) -> Option<f64> {
        quantile(&self.each(|timed| timed.latency), share)
    }

    /// Returns the latency of bare sockets that `share` of the frames do not exceed.
    pub(super) fn bare(&self, share: f64) -> Option<f64> {
        quantile(&self.bare.latencies, share)
    }

    /// Returns the number of incomplete frames.
    pub(super) fn lost(&self) -> usize {
        self.frames.iter().filter(|frame| frame.is_none()).count()
    }

    /// Returns the Gbit/s at the median latency.
    pub(super) fn gigabits(&self) -> Option<f64> {
        Some(self.octets as f64 * 8e-6 / self.latency(0.5)?)
    }
}
