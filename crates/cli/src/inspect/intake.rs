//! Datagrams from the packets of a capture, dispatched by kind.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes::file::FileError;

use super::capture::Captured;
use super::classify::Kind;
use super::clock::VirtualClock;
use super::fragments::Fragments;
use super::ip::{self, IpPacket, UDP, Udp, parse_udp};
use super::link::{LinkType, NoIp};
use super::offload::segments;
use super::rtcp::Control;
use super::streams::{Arrival, Streams};

/// Maximum number of link types in the report.
const LINKS_MAX: usize = 16;

/// Packets that are not UDP datagrams, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skipped {
    /// Not IP.
    pub(crate) not_ip: u64,
    /// IP, but not UDP.
    pub(crate) not_udp: u64,
    /// Packets of an unsupported link type.
    pub(crate) unknown_link: u64,
    /// Packets with headers that are inconsistent or cut off.
    pub(crate) malformed: u64,
}

/// The first RTP or RTCP packet that the capture cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) packet: u64,
    pub(crate) kept: usize,
    pub(crate) original: usize,
}

/// Everything that was found in a capture.
#[derive(Debug)]
pub(crate) struct Intake {
    clock: VirtualClock,
    pub(crate) octets: u64,
    pub(crate) first: Option<Duration>,
    pub(crate) last: Option<Duration>,
    pub(crate) links: BTreeMap<LinkType, u64>,
    pub(crate) kinds: [u64; Kind::ALL.len()],
    pub(crate) skipped: Skipped,
    pub(crate) fragments: Fragments,
    pub(crate) streams: Streams,
    pub(crate) control: Control,
    /// Number of datagrams that contain several RTP packets, and of these packets.
    pub(crate) offloaded: (u64, u64),
    pub(crate) cut_packets: u64,
    pub(crate) cut: Option<Cut>,
}

/// A UDP datagram with fields of lower layers.
struct Datagram<'d> {
    packet: IpPacket<'d>,
    /// The payload of IP, UDP header included.
    payload: &'d [u8],
    wire_len: usize,
}

impl Intake {
    pub(crate) fn new(streams: Streams) -> Self {
        Self {
            clock: VirtualClock::new(Instant::now()),
            octets: 0,
            first: None,
            last: None,
            links: BTreeMap::new(),
            kinds: [0; Kind::ALL.len()],
            skipped: Skipped::default(),
            fragments: Fragments::default(),
            streams,
            control: Control::default(),
            offloaded: (0, 0),
            cut_packets: 0,
            cut: None,
        }
    }

    /// Handles a packet.
    ///
    /// # Errors
    /// If the stream to be extracted cannot be written.
    pub(crate) fn take(&mut self, captured: Captured<'_>) -> Result<(), FileError> {
        self.octets += captured.original_len as u64;
        self.first = self.first.or(captured.time);
        self.last = self.last.max(captured.time);
        self.count_link(captured.link);
        let Some(packet) = self.udp_packet(&captured) else { return Ok(()) };
        let Some(fragment) = packet.fragment else {
            let (payload, wire_len) = (packet.payload, packet.len);
            return self.take_datagram(captured, &Datagram { packet, payload, wire_len });
        };
        match self.fragments.take(&packet, fragment) {
            Some(whole) => {
                let (payload, wire_len) = (&whole.payload[..], whole.wire_len);
                self.take_datagram(captured, &Datagram { packet, payload, wire_len })
            }
            None => Ok(()),
        }
    }

    /// Returns the IP packet in `captured` if it carries UDP; others are only counted.
    fn udp_packet<'c>(&mut self, captured: &Captured<'c>) -> Option<IpPacket<'c>> {
        let skipped = &mut self.skipped;
        let found = captured.link.ip_packet(captured.data);
        let parsed = found.and_then(|packet| ip::parse(packet).ok_or(NoIp::TooShort));
        let reason = match parsed {
            Ok(packet) if packet.protocol == UDP => return Some(packet),
            Ok(_) => &mut skipped.not_udp,
            Err(NoIp::Other) => &mut skipped.not_ip,
            Err(NoIp::TooShort) => &mut skipped.malformed,
            Err(NoIp::Link(_)) => &mut skipped.unknown_link,
        };
        *reason += 1;
        None
    }

    fn take_datagram(
        &mut self,
        captured: Captured<'_>,
        datagram: &Datagram<'_>,
    ) -> Result<(), FileError> {
        let Some(udp) = parse_udp(datagram.payload) else {
            self.skipped.malformed += 1;
            return Ok(());
        };
        let whole = udp.data.len() == udp.len;
        let kind = Kind::of(udp.data);
        if kind == Kind::Rtp {
            return self.take_rtp(captured, datagram, udp);
        }
        self.kinds[kind as usize] += 1;
        if kind == Kind::Rtcp {
            self.note_cut(captured, whole);
            self.control.take(captured.time, udp.data);
        }
        Ok(())
    }

    fn take_rtp(
        &mut self,
        captured: Captured<'_>,
        datagram: &Datagram<'_>,
        udp: Udp<'_>,
    ) -> Result<(), FileError> {
        let now = self.clock.at(captured.time);
        let headers_len = datagram.wire_len.saturating_sub(udp.len);
        let mut segments = segments(udp.data).peekable();
        let mut count = 0;
        while let Some(segment) = segments.next() {
            let last = segments.peek().is_none();
            let whole = !last || udp.data.len() == udp.len;
            self.note_cut(captured, whole);
            let missing = if last { udp.len - udp.data.len() } else { 0 };
            count += 1;
            self.streams.take(Arrival {
                time: captured.time,
                now,
                source: SocketAddr::new(datagram.packet.source, udp.source),
                destination: SocketAddr::new(datagram.packet.destination, udp.destination),
                datagram: segment,
                wire_len: headers_len + segment.len() + missing,
                whole,
            })?;
        }
        self.kinds[Kind::Rtp as usize] += count;
        if count > 1 {
            self.offloaded.0 += 1;
            self.offloaded.1 += count;
        }
        Ok(())
    }

    fn note_cut(&mut self, captured: Captured<'_>, whole: bool) {
        if whole {
            return;
        }
        self.cut_packets += 1;
        self.cut.get_or_insert(Cut {
            packet: captured.number,
            kept: captured.data.len(),
            original: captured.original_len,
        });
    }

    fn count_link(&mut self, link: LinkType) {
        if self.links.len() < LINKS_MAX || self.links.contains_key(&link) {
            *self.links.entry(link).or_default() += 1;
        }
    }
}
