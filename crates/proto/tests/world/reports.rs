//! Participants of one session on a virtual network, and a reader of all RTCP packets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_netsim::{Link, Path};
use rushes_proto::control::{ControlEvent, MediaSent, Participant, ParticipantConfig, Reception};
use rushes_proto::rtcp::{Compound, Nack, Packet, XrBlock};
use rushes_proto::timer::{FeedbackTiming, TimerConfig};
use rushes_proto::{ClockRate, ExtendedSequence, NtpTime, RtpTimestamp, Ssrc};

/// Calls every accessor of the packets in an RTCP datagram; returns the number of packets.
pub fn read_all(datagram: &[u8]) -> Option<usize> {
    let compound = Compound::parse(datagram).ok()?;
    let mut count = 0;
    for packet in compound.packets() {
        count += 1;
        let Ok(packet) = packet else { continue };
        match packet {
            Packet::SenderReport(report) => {
                assert!(report.blocks().count() <= 31);
                let _ = (report.ssrc(), report.info(), report.extension());
            }
            Packet::ReceiverReport(report) => {
                assert!(report.blocks().count() <= 31);
                let _ = (report.ssrc(), report.extension());
            }
            Packet::SourceDescription(description) => {
                let items: usize = description.chunks().map(|chunk| chunk.items().count()).sum();
                assert!(items <= datagram.len());
                for item in description.chunks().flat_map(|chunk| chunk.items()) {
                    let _ = item.private();
                }
            }
            Packet::Bye(bye) => assert!(bye.sources().len() <= 31),
            Packet::App(app) => assert!(app.data().len() <= datagram.len()),
            Packet::TransportFeedback(feedback) => {
                let nacks = feedback.nacks().into_iter().flatten();
                assert!(nacks.flat_map(Nack::sequences).count() <= 17 * datagram.len());
                let _ = feedback.bit_rate_requests().map(Iterator::count);
                let _ = feedback.bit_rate_notification().map(Iterator::count);
                let blocks = feedback.congestion().into_iter().flat_map(|report| report.blocks());
                assert!(blocks.flat_map(|block| block.packets()).count() <= datagram.len());
                let wide = feedback.transport_wide();
                assert!(wide.into_iter().flat_map(|wide| wide.packets()).count() <= 16_384);
            }
            Packet::PayloadFeedback(feedback) => {
                let _ = feedback.full_intra_requests().map(Iterator::count);
                let _ = feedback.estimate().map(|estimate| estimate.sources().len());
            }
            Packet::ExtendedReport(report) => {
                for block in report.blocks() {
                    if let XrBlock::Delays(delays) = block {
                        assert!(delays.iter().len() <= datagram.len());
                    }
                }
            }
            _ => {}
        }
    }
    assert!(count <= datagram.len() / 4);
    Some(count)
}

/// A participant and the media that it pretends to send and receive.
pub struct Party {
    pub participant: Participant,
    pub sent: MediaSent,
    pub received: Vec<Reception>,
    pub address: SocketAddr,
    pub events: Vec<ControlEvent>,
    /// Every datagram that it sent.
    pub datagrams: Vec<(Duration, Vec<u8>)>,
}

/// The source address and the octets of an RTCP datagram.
type Report = (SocketAddr, Vec<u8>);

/// The parties, with a separate link between any two.
pub struct Session {
    pub epoch: Instant,
    pub clock: Duration,
    pub parties: Vec<Party>,
    path: Path,
    /// The links by sender and receiver.
    links: Vec<Vec<Link<Report>>>,
}

pub const WALL: NtpTime = NtpTime(0xeeab_0000_0000_0000);
pub const PACKET_LEN_MAX: usize = 1200;

impl Session {
    /// Creates a session whose links have this delay.
    pub fn new(delay: Duration) -> Self {
        Self::over(Path { delay, ..Path::default() })
    }

    /// Creates a session whose links have this path.
    pub fn over(path: Path) -> Self {
        let clock = Duration::ZERO;
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let epoch = Instant::now();
        Self { epoch, clock, parties: Vec::new(), path, links: Vec::new() }
    }

    pub fn join(&mut self, ssrc: u32, adjust: impl FnOnce(&mut ParticipantConfig)) -> usize {
        let n = self.parties.len();
        let mut config = ParticipantConfig {
            ssrc: Ssrc(ssrc),
            retransmission: None,
            cname: format!("party{n}"),
            description: Vec::new(),
            clock_rate: ClockRate::VIDEO,
            wall_clock: (self.epoch, WALL),
            timer: TimerConfig {
                feedback: Some(FeedbackTiming {
                    regular_interval_min: Duration::from_millis(200),
                    delay_max: Duration::from_millis(500),
                }),
                ..TimerConfig::new(2_000_000)
            },
            seed: 77 + n as u64,
            packet_len_max: PACKET_LEN_MAX,
            header_len: 28,
            reduced_size: false,
            sources_max: 16,
        };
        adjust(&mut config);
        let now = self.epoch + self.clock;
        self.parties.push(Party {
            participant: Participant::new(config, now),
            sent: MediaSent::default(),
            received: Vec::new(),
            address: SocketAddr::from(([192, 0, 2, n as u8 + 1], 5005)),
            events: Vec::new(),
            datagrams: Vec::new(),
        });
        let link = |from, to| Link::new(self.path.clone(), 1000 * from as u64 + to as u64);
        for (from, links) in self.links.iter_mut().enumerate() {
            links.push(link(from, n));
        }
        self.links.push((0..=n).map(|to| link(n, to)).collect());
        n
    }

    pub fn now(&self) -> Instant {
        self.epoch + self.clock
    }

    /// Notes that party `n` has sent `packets` of media, the last just now.
    pub fn send_media(&mut self, n: usize, packets: u64) {
        let ticks = (self.clock.as_nanos() * 90_000 / 1_000_000_000) as u32;
        let last = Some((RtpTimestamp(ticks.wrapping_add(1000)), self.now()));
        let sent = MediaSent { packets, octets: 100 * packets, last, ..self.parties[n].sent };
        self.parties[n].sent = sent;
    }

    /// Notes that party `n` has received `received` of `expected` packets of `ssrc`.
    pub fn receive_media(&mut self, n: usize, ssrc: Ssrc, expected: u64, received: u64) {
        let reception = Reception {
            ssrc,
            expected,
            received,
            highest: ExtendedSequence(0x1_0000 + expected),
            jitter: 9,
            last_heard: self.now(),
        };
        let list = &mut self.parties[n].received;
        list.retain(|other| other.ssrc != ssrc);
        list.push(reception);
    }

    /// Lets `time` pass, a millisecond at a time.
    pub fn run(&mut self, time: Duration) {
        let end = self.clock + time;
        while self.clock < end {
            self.clock += Duration::from_millis(1);
            self.step();
        }
    }

    fn step(&mut self) {
        let (now, clock) = (self.now(), self.clock);
        for links in &mut self.links {
            for (link, party) in links.iter_mut().zip(&mut self.parties) {
                while let Some(delivery) = link.poll(clock) {
                    let (from, datagram) = delivery.item;
                    let _ = party.participant.handle_datagram(now, Some(from), &datagram);
                }
            }
        }
        for n in 0..self.parties.len() {
            let Party { participant, sent, received, address, events, datagrams } =
                &mut self.parties[n];
            let mut out = Vec::new();
            while let Some(datagram) = participant.poll_datagram(now, sent, received) {
                out.push(datagram.to_vec());
            }
            events.extend(std::iter::from_fn(|| participant.poll_event()));
            let from = *address;
            datagrams.extend(out.iter().map(|datagram| (clock, datagram.clone())));
            for datagram in out {
                for to in (0..self.parties.len()).filter(|to| *to != n) {
                    self.links[n][to].push(clock, datagram.len(), (from, datagram.clone()));
                }
            }
        }
    }
}
