//! Both ends of the streams, and the thread of each.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::sleep_until;
use rushes::{
    Codec, Context, FramePush, FramePusher, Pacing, Poller, Rtcp, Security, Session, Ssrc,
    StreamBuilder, StreamReceiver, StreamSender, Suite,
};
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::cpu::thread_time;

/// Octets of a frame: Opus at 64 kbit/s.
pub(super) const FRAME_LEN: usize = 160;

/// Packets of a stream in a second, and the time between two.
pub(super) const RATE: u64 = 50;
pub(super) const INTERVAL: Duration = Duration::from_millis(20);

/// Parts of the interval in which the sender pushes, a share of the streams in each.
pub(super) const PARTS: usize = 20;

/// The time after the last packet in which frames are still pulled.
pub(super) const LINGER: Duration = Duration::from_millis(300);

/// Octets of the sockets' buffers.
pub(super) const BUFFER: usize = 8 << 20;

/// Octets of a packet with its headers down to IP.
const WIRE_LEN: usize = FRAME_LEN + 12 + 28;

/// How streams of the library are used.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Kind {
    pub(crate) rtcp: bool,
    pub(crate) srtp: bool,
    /// Whether frames are pushed with `push_many` and pulled with a `Poller`, not stream by stream.
    pub(crate) many: bool,
}

/// What can be read while streams run.
pub(super) struct Watched {
    pub(super) is_over: AtomicBool,
    pub(super) received: AtomicU64,
    rtcp: Vec<Rtcp>,
}

impl Watched {
    /// Returns the octets of RTCP that both ends have sent.
    pub(super) fn rtcp_octets(&self) -> u64 {
        self.rtcp.iter().map(|rtcp| rtcp.statistics().octets_sent).sum()
    }

    /// Returns the same beside those of the media that has arrived.
    pub(super) fn rtcp_share(&self) -> f64 {
        let media = self.received.load(Relaxed) * WIRE_LEN as u64;
        self.rtcp_octets() as f64 / media.max(1) as f64
    }
}

/// How much is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) streams: usize,
    pub(super) seconds: u32,
}

impl Load {
    /// Packets of each stream.
    pub(super) fn rounds(self) -> u64 {
        (u64::from(self.seconds) * RATE).max(1)
    }

    pub(super) fn packets(self) -> u64 {
        self.rounds() * self.streams as u64
    }

    /// Calls `push` with the streams of each part of each interval, in turn.
    pub(super) fn push_all(
        self,
        mut push: impl FnMut(Range<usize>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (start, share) = (Instant::now(), self.streams.div_ceil(PARTS).max(1));
        for round in 0..self.rounds() as u32 {
            for part in 0..PARTS {
                sleep_until(start + INTERVAL * round + INTERVAL * part as u32 / PARTS as u32);
                push((part * share).min(self.streams)..((part + 1) * share).min(self.streams))?;
            }
        }
        Ok(())
    }
}

/// Returns the SSRC of stream `n` of an end.
pub(super) fn ssrc(end: u32, n: usize) -> Ssrc {
    Ssrc((n as u32 + 1).wrapping_mul(0x9e37_79b1) ^ end << 31)
}

pub(super) fn session() -> anyhow::Result<Session> {
    Ok(Context::new().session("127.0.0.1")?)
}

/// Returns the settings that all streams have.
pub(super) fn configured(
    session: &Session,
    rtcp: bool,
    srtp: bool,
) -> anyhow::Result<StreamBuilder> {
    let builder = session.stream(Codec::Opus).rtcp(rtcp).pacing(Pacing::Off);
    // What is lost on a machine that is too slow is counted; it must not end the run.
    let builder = builder.socket_buffer(BUFFER).circuit_breakers(false);
    if !srtp {
        return Ok(builder);
    }
    let suite = Suite::AeadAes128Gcm;
    Ok(builder.security(Security::shared(suite, &vec![0x2d; suite.key_and_salt_len()])?))
}

/// The two halves of the streams of one end.
type Halves = (Vec<StreamSender>, Vec<StreamReceiver>);

/// Opens the streams of both ends, each end on a port.
fn open(load: Load, kind: Kind) -> anyhow::Result<[Halves; 2]> {
    let ends = [session()?, session()?];
    let mut halves = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    let mut ports = [None, None];
    // The first stream of each end finds its port; that of the receiver needs none to send to.
    for n in 0..load.streams {
        for (end, (senders, receivers)) in halves.iter_mut().enumerate() {
            let other = 1 - end;
            let mut builder = configured(&ends[end], kind.rtcp, kind.srtp)?
                .ssrc(ssrc(end as u32, n))
                .remote_ssrc(ssrc(other as u32, n));
            if let Some(port) = ports[end] {
                builder = builder.local_port(port);
            }
            if let Some(port) = ports[other] {
                builder = builder.remote_port(port);
            }
            let stream = builder.open()?;
            ports[end] = Some(stream.local_address().port());
            let (sender, receiver) = stream.split()?;
            senders.push(sender);
            receivers.push(receiver);
        }
    }
    Ok(halves)
}

/// Carries the load over streams of the library. `watch` is called with what can be read meanwhile, on a
/// thread of its own.
pub(super) fn run(
    load: Load,
    kind: Kind,
    watch: impl FnOnce(&Watched) + Send,
) -> anyhow::Result<Outcome> {
    let [(mut idle, receivers), (mut senders, others)] = open(load, kind)?;
    let frame = vec![0x78; FRAME_LEN];
    let watched = Watched {
        is_over: AtomicBool::new(false),
        received: AtomicU64::new(0),
        rtcp: senders.iter().chain(&idle).map(StreamSender::rtcp).collect(),
    };
    let (sent, received) = std::thread::scope(|scope| {
        let (first, watched) = (idle.first_mut(), &watched);
        let pulling = scope.spawn(move || {
            if kind.many {
                poll_all(receivers, watched)
            } else {
                pull_all(receivers, first, watched)
            }
        });
        scope.spawn(move || watch(watched));
        let mut pusher = FramePusher::new();
        let begin = thread_time();
        let pushed = load.push_all(|part| {
            if !kind.many {
                return Ok(senders[part]
                    .iter_mut()
                    .try_for_each(|it| it.push_frame(&frame, None))?);
            }
            let frames = senders[part].iter_mut().map(|it| FramePush::new(it, &frame));
            let failed = pusher.push_many(&mut frames.collect::<Vec<_>>());
            failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error.into()))
        });
        let sent = pushed.map(|()| thread_time().saturating_sub(begin));
        std::thread::sleep(LINGER);
        watched.is_over.store(true, Relaxed);
        (sent, pulling.join())
    });
    let (time, drops) = received.ok().context("an end panicked")??;
    drop(others);
    let packets = load.packets();
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / packets as f64;
    Ok(Outcome {
        packets,
        lost: packets.saturating_sub(watched.received.load(Relaxed)),
        drops,
        send: micros(sent?),
        receive: micros(time),
        rtcp: watched.rtcp_octets() as f64 / (packets as f64 * WIRE_LEN as f64),
        ..Outcome::default()
    })
}

/// Pulls a frame of every stream once in each interval, and all that are left at the end; returns the CPU
/// time, and the datagrams that the kernel dropped.
fn pull_all(
    mut streams: Vec<StreamReceiver>,
    mut first: Option<&mut StreamSender>,
    watched: &Watched,
) -> anyhow::Result<(Duration, u64)> {
    let (begin, start) = (thread_time(), Instant::now());
    let mut round = 0_u32;
    while !watched.is_over.load(Relaxed) {
        let mut received = 0;
        for stream in &mut streams {
            received += u64::from(stream.pull_frame(Duration::ZERO)?.is_some());
        }
        watched.received.fetch_add(received, Relaxed);
        round += 1;
        if let Some(first) = &mut first {
            first.wait_until(start + INTERVAL * round)?;
        }
    }
    let time = thread_time().saturating_sub(begin);
    for stream in &mut streams {
        while stream.pull_frame(Duration::ZERO)?.is_some() {
            watched.received.fetch_add(1, Relaxed);
        }
    }
    Ok((time, drops(streams.first())))
}

/// As [`pull_all`], with a poller for all streams.
fn poll_all(streams: Vec<StreamReceiver>, watched: &Watched) -> anyhow::Result<(Duration, u64)> {
    let mut poller = Poller::new()?;
    for (token, stream) in (0..).zip(streams) {
        poller.add(stream, token)?;
    }
    let begin = thread_time();
    while !watched.is_over.load(Relaxed) {
        let mut received = 0;
        while received < ROUND_MAX && poller.pull(INTERVAL)?.is_some() {
            received += 1;
        }
        watched.received.fetch_add(received, Relaxed);
    }
    let time = thread_time().saturating_sub(begin);
    while poller.pull(Duration::ZERO)?.is_some() {
        watched.received.fetch_add(1, Relaxed);
    }
    Ok((time, drops(poller.receiver(0).map(|it| &*it))))
}

/// Frames after which the end is looked for.
const ROUND_MAX: u64 = 1000;

/// Returns the datagrams that the kernel dropped at the port of a stream, for want of room.
fn drops(stream: Option<&StreamReceiver>) -> u64 {
    stream.map_or(0, |stream| stream.statistics().socket.kernel_drops)
}
