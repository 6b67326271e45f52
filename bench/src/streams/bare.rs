//! The reference: the same packets in sockets alone, found by their SSRC.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::ReceivePath;
use rushes::net::{SocketOptions, UdpSocket};

use super::Outcome;
use super::side::{BUFFER, FRAME_LEN, INTERVAL, LINGER, Load, ssrc};
use crate::cpu::thread_time;

/// Octets of an RTP header.
const HEADER_LEN: usize = 12;

pub(super) fn run(load: Load) -> anyhow::Result<Outcome> {
    let options = SocketOptions {
        receive_path: ReceivePath::Recvmmsg,
        receive_buffer: BUFFER,
        send_buffer: BUFFER,
        ..SocketOptions::default()
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let socket = UdpSocket::bind(any, &options)?;
    let (to, sender) = (socket.local_address(), std::net::UdpSocket::bind(any)?);
    let is_over = AtomicBool::new(false);
    let mut packets: Vec<_> = (0..load.streams).map(packet).collect();
    let (sent, received) = std::thread::scope(|scope| {
        let pulling = scope.spawn(|| pull_all(&socket, load.streams, &is_over));
        let begin = thread_time();
        let pushed = load.push_all(|part| {
            for packet in &mut packets[part] {
                let next = u16::from_be_bytes([packet[2], packet[3]]).wrapping_add(1);
                packet[2..4].copy_from_slice(&next.to_be_bytes());
                sender.send_to(packet, to)?;
            }
            Ok(())
        });
        let sent = pushed.map(|()| thread_time().saturating_sub(begin));
        std::thread::sleep(LINGER);
        is_over.store(true, Relaxed);
        (sent, pulling.join())
    });
    let (received, time) = received.ok().context("an end panicked")??;
    let packets = load.packets();
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / packets as f64;
    Ok(Outcome {
        packets,
        lost: packets.saturating_sub(received),
        send: micros(sent?),
        receive: micros(time),
        ..Outcome::default()
    })
}

fn packet(n: usize) -> Vec<u8> {
    let mut packet = vec![0x78; HEADER_LEN + FRAME_LEN];
    packet[..8].copy_from_slice(&[0x80, 111, 0, 0, 0, 0, 0, 0]);
    packet[8..12].copy_from_slice(&ssrc(0, n).0.to_be_bytes());
    packet
}

/// Copies packets to their streams once in each interval; returns their number and the CPU time.
fn pull_all(
    socket: &UdpSocket,
    streams: usize,
    is_over: &AtomicBool,
) -> anyhow::Result<(u64, Duration)> {
    let numbers = (0..streams).map(|n| (ssrc(0, n).0, n));
    let (table, mut arena): (HashMap<u32, usize>, _) = (numbers.collect(), socket.arena());
    let mut frames = vec![Vec::new(); streams];
    let (begin, start) = (thread_time(), Instant::now());
    let (mut received, mut round) = (0, 0_u32);
    loop {
        round += 1;
        let (until, was_over) = (start + INTERVAL * round, is_over.load(Relaxed));
        loop {
            let datagrams = socket.receive(&mut arena, until, None)?;
            if datagrams.is_empty() {
                break;
            }
            for datagram in datagrams {
                let Some((header, payload)) = datagram.data.split_first_chunk::<HEADER_LEN>()
                else {
                    continue;
                };
                let Some(ssrc) = header.last_chunk() else { continue };
                let Some(n) = table.get(&u32::from_be_bytes(*ssrc)) else { continue };
                let frame: &mut Vec<u8> = &mut frames[*n];
                frame.clear();
                frame.extend_from_slice(payload);
                received += 1;
            }
        }
        if was_over {
            return Ok((received, thread_time().saturating_sub(begin)));
        }
    }
}
