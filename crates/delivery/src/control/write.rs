//! Serialisation of messages.

use core::net::{IpAddr, SocketAddr};

use super::message::{
    ACCEPT, CHANGE, FRAME, Message, NACK, NACK_RUNS_MAX, OFFER, PING, PONG, REFUSE, REPORT, SEALED,
    START, STATISTICS, STOP,
};
use super::offer::{Accept, Offer};
use super::reason::{Reason, printable};
use super::transport::{Abilities, Transport};
use super::{HEADER_LEN, UNITS_MAX};

impl Message {
    /// Appends the message to `octets`.
    ///
    /// A text is cut to 200 octets, a list to 64 entries, and a `Nack` to 255 runs.
    pub fn write(&self, octets: &mut Vec<u8>) {
        let start = octets.len();
        octets.extend([self.kind(), 0, 0, 0]);
        self.write_body(octets);
        let [_, len @ ..] = ((octets.len() - start - HEADER_LEN) as u32).to_be_bytes();
        octets[start + 1..start + HEADER_LEN].copy_from_slice(&len);
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Offer(_) => OFFER,
            Self::Refuse { .. } => REFUSE,
            Self::Start { .. } => START,
            Self::Frame(_) => FRAME,
            Self::Pong(_) => PONG,
            Self::Statistics(_) => STATISTICS,
            Self::Stop { .. } => STOP,
            Self::Sealed(_) => SEALED,
            Self::Accept(_) => ACCEPT,
            Self::Change(_) => CHANGE,
            Self::Ping(_) => PING,
            Self::Report(_) => REPORT,
            Self::Nack(_) => NACK,
        }
    }

    fn write_body(&self, octets: &mut Vec<u8>) {
        match self {
            Self::Offer(offer) => write_offer(offer, octets),
            Self::Refuse { reason, text } | Self::Stop { reason, text } => {
                write_end(*reason, text, octets);
            }
            Self::Sealed(message) => octets.extend(message),
            Self::Start { epoch } => octets.extend(epoch.to_be_bytes()),
            Self::Frame(frame) => {
                let fields =
                    [frame.number, frame.captured, frame.sent, frame.octets, frame.dropped];
                octets.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
            }
            Self::Pong(pong) => {
                octets.extend(pong.id.to_be_bytes());
                let fields = [pong.t1, pong.t2, pong.t3];
                octets.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
            }
            Self::Statistics(s) => {
                let counts = [s.frames, s.dropped, s.packets, s.octets];
                octets.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
                let times = [s.send_p50, s.send_p99];
                octets.extend(times.iter().flat_map(|time| time.to_be_bytes()));
            }
            Self::Accept(accept) => write_accept(accept, octets),
            Self::Change(change) => {
                octets.push(change.format);
                let rate = change.rate.map_or([0, 0], |rate| [rate.numerator, rate.denominator]);
                octets.extend(rate.iter().flat_map(|part| part.to_be_bytes()));
                let size = change.size_max.map(|(width, height)| [width, height]);
                octets.extend(size.iter().flatten().flat_map(|side| side.to_be_bytes()));
            }
            Self::Ping(ping) => {
                octets.extend(ping.id.to_be_bytes());
                octets.extend(ping.t1.to_be_bytes());
            }
            Self::Report(r) => {
                let (lost, concealed) = (r.packets_lost, r.tiles_concealed);
                let counts = [r.frames, r.frames_lost, lost, r.late, r.duplicate, concealed];
                octets.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
                octets.extend(r.latency_p50.to_be_bytes());
                octets.extend(r.latency_p99.to_be_bytes());
                let is_repaired = r.packets_repaired > 0 || r.answers_in_time > 0;
                if r.packets_recovered > 0 || is_repaired {
                    octets.extend(r.packets_recovered.to_be_bytes());
                }
                if is_repaired {
                    octets.extend(r.packets_repaired.to_be_bytes());
                    octets.push(r.answers_in_time);
                }
            }
            Self::Nack(nack) => {
                let runs = &nack.packets[..nack.packets.len().min(NACK_RUNS_MAX)];
                octets.extend(nack.frame.to_be_bytes());
                octets.push(runs.len() as u8);
                for run in runs {
                    octets.extend(&run.start.to_be_bytes()[1..]);
                    octets.extend((run.len() as u16).to_be_bytes());
                }
            }
        }
    }
}

fn write_offer(offer: &Offer, octets: &mut Vec<u8>) {
    octets.extend(offer.token.0);
    octets.extend(offer.epoch.to_be_bytes());
    octets.extend([offer.mode.format, offer.transport.number()]);
    let mode = offer.mode;
    let fields = [mode.width, mode.height, mode.rate.numerator, mode.rate.denominator];
    octets.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
    let fields = [offer.stripe_rows, offer.payload, offer.clock_rate];
    octets.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
    octets.extend(offer.first_frame.to_be_bytes());
    octets.extend(offer.units);
    write_addresses(&offer.ports, &offer.ssrcs, octets);
    // An older client, which has no abilities, does not know the field.
    let group = offer.group.filter(|_| offer.transport == Transport::Multicast);
    octets.extend(Some(offer.abilities.0).filter(|it| *it > 0 || group.is_some()));
    if offer.abilities.contains(Abilities::COLOUR) {
        octets.extend(offer.colour);
    }
    if let Some(group) = group {
        write_group(group, octets);
    }
}

fn write_group(group: SocketAddr, octets: &mut Vec<u8>) {
    let address = match group.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    octets.extend(address.octets());
    octets.extend(group.port().to_be_bytes());
}

fn write_accept(accept: &Accept, octets: &mut Vec<u8>) {
    octets.extend(accept.epoch.to_be_bytes());
    write_addresses(&accept.ports, &accept.ssrcs, octets);
}

fn write_addresses(ports: &[u16], ssrcs: &[u32], octets: &mut Vec<u8>) {
    let ports = &ports[..ports.len().min(UNITS_MAX)];
    let ssrcs = &ssrcs[..ssrcs.len().min(UNITS_MAX)];
    octets.push(ports.len() as u8);
    octets.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    octets.push(ssrcs.len() as u8);
    octets.extend(ssrcs.iter().flat_map(|ssrc| ssrc.to_be_bytes()));
}

fn write_end(reason: Reason, text: &str, octets: &mut Vec<u8>) {
    let text = printable(text);
    octets.extend([reason.number(), text.len() as u8]);
    octets.extend(text.as_bytes());
}
