//! A trial without RTP: the octets of access units in datagrams, one copy on receipt.

use std::time::{Duration, Instant};

use rushes::net::{self, SocketOptions, UdpSocket};

use super::side::{Done, HOST, Listening, POLL_INTERVAL, TrialArgs, print_port, read_port};

/// Octets of UDP payload in an Ethernet packet.
const DATAGRAM_LEN: usize = 1472;

/// Datagrams sent at once: a slab of 64 KiB, as with RTP.
const BATCH: usize = 44;

/// The prefix of the first datagram of an access unit; the unit's length follows.
const MARK: [u8; 8] = *b"rushes\x93\xd6";
const MARK_LEN: usize = 16;

/// Timeout while the socket's buffer is full.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn send(args: &TrialArgs) -> anyhow::Result<Done> {
    let mut sequence = args.sequence()?;
    let to = net::resolve(HOST, read_port()?)?;
    let socket = UdpSocket::bind(net::resolve(HOST, 0)?, &options(args))?;
    let mut queue = socket.send_queue();
    let mut tiny = [0; MARK_LEN];
    args.keep_schedule(|n| {
        let range = sequence.units[n % sequence.units.len()].octets.clone();
        let unit = match &mut sequence.octets[range] {
            unit if unit.len() < MARK_LEN => &mut tiny[..],
            unit => unit,
        };
        let len = unit.len() as u64;
        unit[..8].copy_from_slice(&MARK);
        unit[8..MARK_LEN].copy_from_slice(&len.to_be_bytes());
        for octets in unit.chunks(BATCH * DATAGRAM_LEN) {
            let mut lengths = [DATAGRAM_LEN as u16; BATCH];
            let count = octets.len().div_ceil(DATAGRAM_LEN);
            lengths[count - 1] = (octets.len() - (count - 1) * DATAGRAM_LEN) as u16;
            let deadline = Instant::now() + SEND_TIMEOUT;
            socket.send(&mut queue, octets, &lengths[..count], to, deadline)?;
        }
        Ok(len)
    })
}

pub(super) fn receive(args: &TrialArgs) -> anyhow::Result<Done> {
    let socket = UdpSocket::bind(net::resolve(HOST, 0)?, &options(args))?;
    print_port(socket.local_address().port())?;
    let mut arena = socket.arena();
    let (mut frame, mut wanted) = (Vec::new(), 0);
    let (mut listening, mut done) = (Listening::to(args.units), Done::default());
    while listening.goes_on(&done) {
        let datagrams = socket.receive(&mut arena, Instant::now() + POLL_INTERVAL, None)?;
        if datagrams.is_empty() {
            continue;
        }
        listening.note_arrival();
        for datagram in datagrams {
            if let Some(len) = marked(datagram.data) {
                frame.clear();
                wanted = len;
            }
            // The one copy that any receiver of frames makes.
            frame.extend_from_slice(datagram.data);
            if frame.len() == wanted {
                listening.count(&mut done, wanted);
                frame.clear();
                wanted = 0;
            }
        }
    }
    Ok(done)
}

/// The length of an access unit, if the datagram is its first.
fn marked(datagram: &[u8]) -> Option<usize> {
    let len = datagram.strip_prefix(&MARK)?.first_chunk::<8>()?;
    usize::try_from(u64::from_be_bytes(*len)).ok()
}

fn options(args: &TrialArgs) -> SocketOptions {
    let mut options = SocketOptions::default();
    if let Some(octets) = args.socket_buffer {
        options.send_buffer = octets;
        options.receive_buffer = octets;
    }
    options
}
