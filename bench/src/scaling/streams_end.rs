//! One stream of the library, at both ends.

use std::time::{Duration, Instant};

use rushes::{Codec, Context, FrameRate, MediaStream, Pacing, ReceivePath, sleep_until};

use super::flow::{Received, Receiving, SILENCE, Sending};
use super::spec::{Clock, ETHERNET_LEN, IP_UDP_LEN, Report, Spec, Spread};

pub(crate) fn open_receiver(spec: &Spec) -> anyhow::Result<MediaStream> {
    let session = Context::new().session_any().local_address(&spec.host)?;
    let path = if spec.segmented { ReceivePath::Gro } else { ReceivePath::Recvmmsg };
    let builder = session.stream(Codec::H265).receive_path(path).probation(1);
    Ok(builder.socket_buffer(spec.buffer).frame_len_max(256 << 20).open()?)
}

pub(crate) fn send(mut sending: Sending) -> anyhow::Result<Report> {
    let spec = &sending.spec;
    let mut builder = Context::new()
        .session(&spec.host)?
        .stream(Codec::H265)
        .remote_port(sending.to.port())
        .mtu(spec.mtu)
        .send_path(spec.send_path())
        // Full links should drop packets, instead of blocking the sender.
        .socket_buffer(spec.buffer.max(4 << 20))
        .pacing(Pacing::Off);
    if let Clock::Steady(fps, spread) = spec.clock {
        builder = builder.pacing(match spread {
            Spread::Burst => Pacing::Off,
            Spread::Half => Pacing::Share(0.5),
            Spread::Rate(bits) => Pacing::Rate(bits),
        });
        if let Some(rate) = FrameRate::from_f64(fps) {
            builder = builder.frame_rate(rate);
        }
    }
    let mut stream = builder.open()?;
    for n in 0..spec.frames {
        match spec.clock {
            Clock::Window => sending.window.wait()?,
            Clock::Steady(fps, _) => {
                sleep_until(sending.start + Duration::from_secs_f64(n as f64 / fps));
            }
        }
        stream.push_frame(sending.frames.unit(n), None)?;
    }
    if matches!(spec.clock, Clock::Window) {
        sending.window.wait_for_all()?;
    }
    let statistics = stream.statistics();
    let (send, socket) = (statistics.send, statistics.socket);
    let headers = (ETHERNET_LEN + IP_UDP_LEN) as u64 * socket.sent_datagrams;
    Ok(Report {
        frames: send.frames,
        octets: send.frame_octets,
        wire_octets: socket.sent_bytes + headers,
        ..Report::default()
    })
}

pub(crate) fn receive(
    mut stream: MediaStream,
    mut receiving: Receiving,
) -> anyhow::Result<Received> {
    let mut last = Instant::now();
    while receiving.received.report.frames < receiving.spec.frames {
        match stream.pull_frame(SILENCE / 4)? {
            Some(frame) => {
                let octets = frame.len();
                drop(frame);
                receiving.whole(octets);
                last = Instant::now();
            }
            None if receiving.is_over(last.elapsed()) => break,
            None => {}
        }
    }
    receiving.received.report.socket_drops = stream.statistics().socket.kernel_drops;
    Ok(receiving.received)
}
