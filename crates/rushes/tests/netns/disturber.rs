//! A stranger who hears a multicast group, and sends altered packets to it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use rushes_netsim::Seeded;

/// Octets of a packet's header: eight bits of its frame's number, and its own number.
const HEADER: usize = 4;

/// Octets that hold any packet.
const PACKET_MAX: usize = 2_048;

/// How long to wait for the first packet of a unit.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait for a packet of one unit before the next one is heard.
const HEARS: Duration = Duration::from_millis(20);

/// One port of the group.
pub(crate) struct Unit {
    hears: UdpSocket,
    says: UdpSocket,
    server: SocketAddr,
    to: SocketAddrV4,
}

/// Joins the units of a group through the interface with the address `local`, and waits for a packet of each.
pub(crate) fn units(local: Ipv4Addr, group: SocketAddrV4, units: u16) -> io::Result<Vec<Unit>> {
    (0..units)
        .map(|unit| Unit::join(local, SocketAddrV4::new(*group.ip(), group.port() + unit)))
        .collect()
}

/// Sends an altered packet for each of the server's, `packets` until `until` at most; returns how many.
pub(crate) fn disturb(units: &[Unit], packets: u64, until: Instant) -> io::Result<u64> {
    let (mut sent, mut random) = (0, Seeded(packets));
    let mut packet = [0; PACKET_MAX];
    while sent < packets && Instant::now() < until {
        for unit in units {
            let len = match unit.hears.recv_from(&mut packet) {
                Ok((len, from)) if from == unit.server => len,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            alter(&mut packet[..len], sent % 3, &mut random);
            // A full queue loses it.
            sent += u64::from(unit.says.send_to(&packet[..len], unit.to).is_ok());
            if sent == packets {
                break;
            }
        }
    }
    Ok(sent)
}

impl Unit {
    fn join(local: Ipv4Addr, to: SocketAddrV4) -> io::Result<Self> {
        let hears = UdpSocket::bind(to)?;
        hears.join_multicast_v4(to.ip(), &local)?;
        hears.set_read_timeout(Some(PATIENCE))?;
        let (_, server) = hears.recv_from(&mut [0; PACKET_MAX])?;
        hears.set_read_timeout(Some(HEARS))?;
        // From the server's port, unless this is the server's machine.
        let at = |port| UdpSocket::bind(SocketAddrV4::new(local, port));
        let says = at(server.port()).or_else(|_| at(0))?;
        Ok(Self { hears, says, server, to })
    }
}

/// Changes the content of a packet, also its numbers, or everything.
fn alter(packet: &mut [u8], kind: u64, random: &mut Seeded) {
    let content = packet.iter_mut().skip(HEADER);
    content.for_each(|octet| *octet = !*octet);
    match kind {
        0 => {}
        1 => {
            let mut change = [0; HEADER];
            random.fill(&mut change);
            // To those of another packet of a frame near this one.
            for (octet, change) in packet.iter_mut().zip(change) {
                *octet ^= change & 0x07;
            }
        }
        _ => random.fill(packet),
    }
}
