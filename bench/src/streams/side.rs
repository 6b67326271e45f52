//! Both ends of the streams, and the thread of each.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::sleep_until;
use rushes::{Codec, Context, MediaStream, Pacing, Security, Session, Ssrc, StreamBuilder, Suite};

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

/// How much is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) streams: usize,
    pub(super) seconds: u16,
}

impl Load {
    /// Packets of each stream.
    pub(super) fn rounds(self) -> u64 {
        (u64::from(self.seconds) * RATE).max(1)
    }

    pub(super) fn packets(self) -> u64 {
        self.rounds() * self.streams as u64
    }

    /// Calls `push` for every stream once in each interval, spread over it.
    pub(super) fn push_all(
        self,
        mut push: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (start, share) = (Instant::now(), self.streams.div_ceil(PARTS).max(1));
        for round in 0..self.rounds() as u32 {
            for part in 0..PARTS {
                sleep_until(start + INTERVAL * round + INTERVAL * part as u32 / PARTS as u32);
                let end = self.streams.min((part + 1) * share);
                (part * share..end).try_for_each(&mut push)?;
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
    let builder = builder.socket_buffer(BUFFER);
    if !srtp {
        return Ok(builder);
    }
    let suite = Suite::AeadAes128Gcm;
    Ok(builder.security(Security::shared(suite, &vec![0x2d; suite.key_and_salt_len()])?))
}

/// Opens the streams of both ends, each end on a port.
fn open(load: Load, rtcp: bool, srtp: bool) -> anyhow::Result<[Vec<MediaStream>; 2]> {
    let ends = [session()?, session()?];
    let mut streams = [Vec::new(), Vec::new()];
    let mut ports = [None, None];
    // The first stream of each end finds its port; that of the receiver needs none to send to.
    for n in 0..load.streams {
        for (end, opened) in streams.iter_mut().enumerate() {
            let other = 1 - end;
            let mut builder = configured(&ends[end], rtcp, srtp)?
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
            opened.push(stream);
        }
    }
    Ok(streams)
}

/// Carries the load over streams of the library.
pub(super) fn run(load: Load, rtcp: bool, srtp: bool) -> anyhow::Result<Outcome> {
    let [mut receivers, mut senders] = open(load, rtcp, srtp)?;
    let (is_over, frame) = (AtomicBool::new(false), vec![0x78; FRAME_LEN]);
    let (sent, received) = std::thread::scope(|scope| {
        let pulling = scope.spawn(|| pull_all(&mut receivers, &is_over));
        let begin = thread_time();
        let pushed = load.push_all(|n| Ok(senders[n].push_frame(&frame, None)?));
        let sent = pushed.map(|()| thread_time().saturating_sub(begin));
        std::thread::sleep(LINGER);
        is_over.store(true, Relaxed);
        (sent, pulling.join())
    });
    let (received, time) = received.ok().context("an end panicked")??;
    let rtcp = |ends: &[MediaStream]| -> u64 {
        ends.iter().map(|stream| stream.rtcp().statistics().octets_sent).sum()
    };
    let packets = load.packets();
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / packets as f64;
    Ok(Outcome {
        packets,
        lost: packets.saturating_sub(received),
        send: micros(sent?),
        receive: micros(time),
        rtcp: (rtcp(&senders) + rtcp(&receivers)) as f64
            / (packets as f64 * (FRAME_LEN + 12 + 28) as f64),
        ..Outcome::default()
    })
}

/// Pulls a frame of every stream once in each interval, and all that are left at the end; returns
/// their number and the CPU time.
fn pull_all(streams: &mut [MediaStream], is_over: &AtomicBool) -> anyhow::Result<(u64, Duration)> {
    let (begin, start) = (thread_time(), Instant::now());
    let (mut received, mut round) = (0, 0_u32);
    while !is_over.load(Relaxed) {
        for stream in &mut *streams {
            received += u64::from(stream.pull_frame(Duration::ZERO)?.is_some());
        }
        round += 1;
        let next = start + INTERVAL * round;
        if let Some(first) = streams.first_mut() {
            first.sender().wait_until(next)?;
        }
    }
    let time = thread_time().saturating_sub(begin);
    for stream in streams {
        while stream.pull_frame(Duration::ZERO)?.is_some() {
            received += 1;
        }
    }
    Ok((received, time))
}
