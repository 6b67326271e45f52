//! Bare sockets with the same load: the same octets in packets of the same size, straight from the
//! access unit, without RTP, copied once on receipt. This is the limit of the kernel.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes::net::{ReceivePath, SocketOptions, UdpSocket};
use rushes::sleep_until;

use super::flow::{Received, Receiving, SILENCE, Sending};
use super::spec::{Clock, ETHERNET_LEN, IP_UDP_LEN, Report, Spec, Spread};

/// Maximum number of octets and datagrams of one system call.
const SLAB_LEN: usize = 65_000;
const SLAB_DATAGRAMS: usize = 64;

/// Octets of the frame number at the start of every datagram.
const NUMBER_LEN: usize = 4;

/// The time by which a sleep may be late.
const SLEEP_LATE: Duration = Duration::from_micros(150);

pub(crate) fn open(host: &str, spec: &Spec) -> anyhow::Result<UdpSocket> {
    let receive_path = if spec.segmented { ReceivePath::Gro } else { ReceivePath::Recvmmsg };
    let options = SocketOptions {
        send_path: spec.send_path(),
        receive_path,
        send_buffer: spec.buffer.max(4 << 20),
        receive_buffer: spec.buffer,
        ..SocketOptions::default()
    };
    Ok(UdpSocket::bind(SocketAddr::new(host.parse()?, 0), &options)?)
}

pub(crate) fn send(mut sending: Sending) -> anyhow::Result<Report> {
    let spec = &sending.spec;
    let socket = open(&spec.sender, spec)?;
    let mut queue = socket.send_queue();
    let datagram = spec.mtu - IP_UDP_LEN;
    let slab = datagram * (SLAB_LEN / datagram).clamp(1, SLAB_DATAGRAMS);
    let mut frame = sending.frames.unit(0).to_vec();
    let (mut report, mut due) = (Report::default(), sending.start);
    for n in 0..spec.frames {
        let octets = sending.frames.unit(n).len();
        let mut rate = None;
        match spec.clock {
            Clock::Window => sending.window.wait()?,
            Clock::Steady(fps, spread) => {
                let time = sending.start + Duration::from_secs_f64(n as f64 / fps);
                sleep_until(time);
                due = due.max(time);
                rate = match spread {
                    Spread::Burst => None,
                    Spread::Half => Some(octets as f64 * 8.0 * 2.0 * fps),
                    Spread::Rate(bits) => Some(bits as f64),
                };
            }
        }
        let frame = &mut frame[..octets];
        for datagram in frame.chunks_mut(datagram) {
            let len = NUMBER_LEN.min(datagram.len());
            datagram[..len].copy_from_slice(&(n as u32).to_be_bytes()[..len]);
        }
        for octets in frame.chunks(slab) {
            let lengths = lengths(octets.len(), datagram);
            if let Some(rate) = rate {
                wait(due);
                // Delays are not caught up with: this is the smoothest pacing.
                due = due.max(Instant::now().checked_sub(SLEEP_LATE).unwrap_or(due))
                    + Duration::from_secs_f64(octets.len() as f64 * 8.0 / rate);
            }
            let until = Instant::now() + Duration::from_secs(2);
            socket.send(&mut queue, octets, &lengths, sending.to, until)?;
        }
        report.frames += 1;
        report.octets += octets as u64;
    }
    if matches!(spec.clock, Clock::Window) {
        sending.window.wait_for_all()?;
    }
    let counters = socket.counters();
    let headers = (ETHERNET_LEN + IP_UDP_LEN) as u64 * counters.sent_datagrams;
    report.wire_octets = counters.sent_bytes + headers;
    Ok(report)
}

/// The lengths of the datagrams of `octets`.
fn lengths(octets: usize, datagram: usize) -> Vec<u16> {
    let mut lengths = vec![datagram as u16; octets / datagram];
    lengths.extend((!octets.is_multiple_of(datagram)).then_some((octets % datagram) as u16));
    lengths
}

/// Waits with microsecond accuracy: sleeps first, then spins.
fn wait(due: Instant) {
    if let Some(sleep) = due.checked_sub(SLEEP_LATE) {
        sleep_until(sleep);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

pub(crate) fn receive(socket: &UdpSocket, mut receiving: Receiving) -> anyhow::Result<Received> {
    let spec = receiving.spec.clone();
    let mut arena = socket.arena();
    let mut frame = Vec::with_capacity(spec.units.len(0));
    // Octets received of each frame.
    let frames = usize::try_from(spec.frames)?;
    let mut have = vec![0_usize; frames];
    let mut last = Instant::now();
    while receiving.received.report.frames < spec.frames {
        let datagrams = socket.receive(&mut arena, Instant::now() + SILENCE / 4, None)?;
        if datagrams.is_empty() {
            if receiving.is_over(last.elapsed()) {
                break;
            }
            continue;
        }
        for datagram in datagrams {
            let Some(number) = datagram.data.first_chunk() else { continue };
            let number = u32::from_be_bytes(*number);
            // The one copy that every receiver of frames makes.
            if frame.len() + datagram.data.len() > frame.capacity() {
                frame.clear();
            }
            frame.extend_from_slice(datagram.data);
            let Some(have) = have.get_mut(number as usize) else { continue };
            *have += datagram.data.len();
            let all = spec.units.len(number.into());
            // A last datagram that is too short for a number is not counted as missing.
            if *have + NUMBER_LEN > all {
                frame.clear();
                receiving.whole(all);
            }
        }
        last = Instant::now();
    }
    receiving.received.report.socket_drops = socket.counters().kernel_drops;
    Ok(receiving.received)
}
