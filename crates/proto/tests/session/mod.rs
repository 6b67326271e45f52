//! A whole session over the simulated network in virtual time: a sender and a receiver of media
//! with their RTCP, retransmissions and SRTP, combined as in the facade.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_netsim::{Conditions, Network, Statistics, Way};
use rushes_proto::FrameRate;
use rushes_proto::control::{ControlEvent, MediaSent, Participant, ParticipantConfig, Reception};
use rushes_proto::payload::Frame;
use rushes_proto::repair::RequestTiming;
use rushes_proto::repair::fec::{DecoderLimits, FecFormat};
use rushes_proto::rtp::Packet;
use rushes_proto::srtp::{
    MasterKey, Policy, Protector, SrtcpProtector, SrtcpUnprotector, Suite, Unprotector,
};
use rushes_proto::stream::{
    Event, FecReception, FecSending, ReceiveStatistics, Receiver, ReceiverConfig, Retransmission,
    Sender, SenderConfig, SentSoFar,
};
use rushes_proto::timer::{FeedbackTiming, TimerConfig};
use rushes_proto::{Batch, NtpTime, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

use crate::world::{Kind, Source};

const MS: Duration = Duration::from_millis(1);
const FRAME_INTERVAL: Duration = Duration::from_micros(33_333);
pub const MEDIA: Ssrc = Ssrc(0x1234_5678);
const RTX: (PayloadType, Ssrc) = (PayloadType::OPUS, Ssrc(0x8765_4321));
const REPAIR: (PayloadType, Ssrc) = (PayloadType::GENERIC, Ssrc(0x2222_3333));
const LISTENER: Ssrc = Ssrc(0x1111_2222);

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct Setting {
    pub kind: Kind,
    pub conditions: Conditions,
    pub seed: u64,
    pub delivery: rushes_proto::payload::Delivery,
    /// How lost packets are retransmitted, if at all, and how long the receiver waits for one.
    pub recovery: Option<(Recovery, Duration)>,
    /// Repair packets for 100 packets, if any, and how long a packet is not requested for them.
    pub fec: Option<(u8, Duration)>,
    pub secured: bool,
    pub packet_len_max: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recovery {
    Rtx,
    Verbatim,
}

/// The outcome of a session.
pub struct Outcome {
    pub frames: Vec<Frame>,
    pub events: Vec<Event>,
    pub received: ReceiveStatistics,
    pub packets_sent: u64,
    /// Number of packets sent before the first received one, and after the last.
    pub outside: u64,
    pub media: Statistics,
    /// Maximum octets held at the end of any frame interval.
    pub held_max: usize,
}

#[derive(Clone)]
enum Item {
    /// A datagram, with its number unless it is a retransmission or a repair packet.
    Media(Vec<u8>, Option<u64>),
    Report(Vec<u8>),
}

/// One end's RTCP.
struct Control {
    participant: Participant,
    sent: MediaSent,
    received: Vec<Reception>,
}

pub struct Session {
    epoch: Instant,
    clock: Duration,
    network: Network<Item>,
    sender: Sender,
    receiver: Receiver,
    batch: Batch,
    again: Batch,
    ends: [Control; 2],
    pushed: u64,
    /// The lowest and the highest number of a received packet, without retransmissions.
    arrived: Option<(u64, u64)>,
    out: Outcome,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end as u8 + 1], 5004))
}

fn key() -> MasterKey {
    let suite = Suite::AeadAes128Gcm;
    let octets: Vec<u8> = (0..suite.key_and_salt_len()).map(|n| n as u8 * 7).collect();
    MasterKey::new(suite, &octets).unwrap()
}

fn control(ssrc: Ssrc, epoch: Instant, setting: &Setting, policy: &Policy) -> Control {
    let is_rtx = setting.recovery.is_some_and(|(recovery, _)| recovery == Recovery::Rtx);
    let config = ParticipantConfig {
        ssrc,
        retransmission: (ssrc == MEDIA && is_rtx).then_some(RTX.1),
        cname: format!("{}", ssrc.0),
        description: Vec::new(),
        clock_rate: setting.kind.format().clock_rate(),
        wall_clock: (epoch, NtpTime(0xeeab_0000_0000_0000)),
        timer: TimerConfig {
            feedback: setting
                .recovery
                .map(|_| FeedbackTiming { regular_interval_min: 1000 * MS, delay_max: 500 * MS }),
            ..TimerConfig::new(10_000_000)
        },
        seed: setting.seed ^ u64::from(ssrc.0),
        packet_len_max: setting.packet_len_max,
        header_len: 28,
        reduced_size: false,
        sources_max: 16,
    };
    let mut participant = Participant::new(config, epoch);
    if setting.secured {
        let out = SrtcpProtector::new(policy, &key()).unwrap();
        participant = participant.secured(out, SrtcpUnprotector::new(policy, &key()).unwrap());
    }
    Control { participant, sent: MediaSent::default(), received: Vec::new() }
}

fn repair_packets(percent: u8, span: Duration) -> FecSending {
    FecSending {
        format: FecFormat::FlexFec,
        payload_type: REPAIR.0,
        red: None,
        ssrc: REPAIR.1,
        first_sequence: SequenceNumber(65_534),
        percent,
        span,
    }
}

impl Session {
    pub fn new(setting: &Setting) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let epoch = Instant::now();
        let format = setting.kind.format();
        let policy = Policy { window: 32_768, ..Policy::new(Suite::AeadAes128Gcm) };
        let config = SenderConfig {
            ssrc: MEDIA,
            payload_type: PayloadType::H265,
            // The number is close to the wrap, so that this occurs in the middle.
            first_sequence: SequenceNumber(65_000_u16.wrapping_add(setting.seed as u16 % 500)),
            first_timestamp: RtpTimestamp(u32::MAX - 90_000),
            clock_rate: format.clock_rate(),
            frame_rate: FrameRate::DEFAULT,
            packet_len_max: setting.packet_len_max,
        };
        let mut sender = Sender::new(format.packetiser(), config).unwrap();
        let mut config = ReceiverConfig::new(PayloadType::H265, format.clock_rate());
        config.frame.delivery = setting.delivery;
        if let Some((recovery, latency_max)) = setting.recovery {
            config.reorder_packets_max = 4096;
            config.requests = Some(RequestTiming { latency_max, ..RequestTiming::default() });
            let rtx = match recovery {
                Recovery::Verbatim => Retransmission::Verbatim,
                Recovery::Rtx => {
                    config.retransmission = Some((RTX.0, None));
                    let first_sequence = SequenceNumber(7);
                    Retransmission::Rtx { payload_type: RTX.0, ssrc: RTX.1, first_sequence }
                }
            };
            sender = sender.with_history(8192, rtx);
        }
        config.fec = setting.fec.map(|(_, wait)| FecReception {
            format: FecFormat::FlexFec,
            payload_type: REPAIR.0,
            red: None,
            ssrc: Some(REPAIR.1),
            wait,
            limits: DecoderLimits::default(),
        });
        let mut receiver = Receiver::new(format, config).unwrap();
        if setting.secured {
            sender = sender.secured(Protector::new(&policy, &key()).unwrap()).unwrap();
            receiver = receiver.secured(Unprotector::new(&policy, &key()).unwrap());
        }
        if let Some((percent, span)) = setting.fec {
            sender = sender.with_fec(repair_packets(percent, span)).unwrap();
        }
        let ends = [MEDIA, LISTENER].map(|ssrc| control(ssrc, epoch, setting, &policy));
        Self {
            epoch,
            clock: Duration::ZERO,
            network: Network::new(setting.conditions.clone(), setting.seed),
            sender,
            receiver,
            batch: Batch::with_history(4 << 20),
            again: Batch::new(),
            ends,
            pushed: 0,
            arrived: None,
            out: Outcome {
                frames: Vec::new(),
                events: Vec::new(),
                received: ReceiveStatistics::default(),
                packets_sent: 0,
                outside: 0,
                media: Statistics::default(),
                held_max: 0,
            },
        }
    }

    /// Sends `sources`, a frame every 33 ms, then waits for `linger` and sends a BYE.
    pub fn run(mut self, sources: &[Source], linger: Duration) -> Outcome {
        for (n, source) in sources.iter().enumerate() {
            self.pass(FRAME_INTERVAL * n as u32);
            self.push(source);
            if n == 0 {
                self.report_at_once();
            }
            let held = self.receiver.statistics().held_octets;
            self.out.held_max = self.out.held_max.max(held);
        }
        self.report_at_once();
        self.pass(self.clock + linger);
        let now = self.epoch + self.clock;
        self.ends[0].participant.leave(now, "");
        self.serve(0);
        self.network.finish();
        self.pass(self.clock + Duration::from_secs(60));
        self.out.received = self.receiver.statistics();
        self.out.packets_sent = self.sender.statistics().packets;
        let inside = self.arrived.map_or(0, |(first, last)| last - first + 1);
        self.out.outside = self.pushed - inside;
        self.out.media = self.network.statistics(Way::There);
        self.out
    }

    fn push(&mut self, source: &Source) {
        let mut outgoing = self.sender.push(&source.frame, None).unwrap();
        let mut datagrams = Vec::new();
        while outgoing.fill(&mut self.batch) {
            datagrams.extend(self.batch.datagrams().map(<[u8]>::to_vec));
        }
        let timestamp = outgoing.timestamp();
        drop(outgoing);
        for datagram in datagrams {
            let is_repair = Packet::parse(&datagram).unwrap().ssrc() == REPAIR.1;
            let item = Item::Media(datagram.clone(), (!is_repair).then_some(self.pushed));
            self.network.push(self.clock, Way::There, datagram.len(), item);
            self.pushed += u64::from(!is_repair);
        }
        let statistics = self.sender.statistics();
        self.ends[0].sent = MediaSent {
            packets: statistics.packets,
            octets: statistics.payload_octets,
            retransmitted: statistics.retransmitted,
            retransmitted_octets: 0,
            last: Some((timestamp, self.epoch + self.clock)),
        };
        self.serve(0);
    }

    fn report_at_once(&mut self) {
        self.ends[0].participant.report_at_once(self.epoch + self.clock);
        self.serve(0);
    }

    /// Handles everything that is due until `end`.
    fn pass(&mut self, end: Duration) {
        loop {
            let since = |at: Instant| at.saturating_duration_since(self.epoch);
            let timers = self.ends.iter().filter_map(|end| end.participant.poll_timeout());
            let receiver = [self.receiver.poll_timeout(), self.receiver.requests_due()];
            let due = timers.chain(receiver.into_iter().flatten()).map(since);
            let due = due.chain(self.network.next_due()).min().filter(|due| *due <= end);
            let Some(due) = due else { break };
            self.clock = self.clock.max(due);
            self.step();
        }
        self.clock = end;
    }

    fn step(&mut self) {
        let now = self.epoch + self.clock;
        self.receiver.handle_timeout(now);
        while let Some((way, delivery)) = self.network.poll(self.clock) {
            let (to, from) = (way.to(), address(1 - way.to()));
            match delivery.item {
                Item::Media(datagram, number) => {
                    if let Some(number) = number {
                        let (first, last) = self.arrived.unwrap_or((number, number));
                        self.arrived = Some((first.min(number), last.max(number)));
                    }
                    self.receiver.handle_datagram_from(now, Some(from), &datagram);
                }
                Item::Report(datagram) => {
                    let participant = &mut self.ends[to].participant;
                    // A secured participant refuses a duplicate.
                    let _ = participant.handle_datagram(now, Some(from), &datagram);
                }
            }
            self.drain();
        }
        self.check_receiver(now);
        (0..2).for_each(|end| self.serve(end));
        self.drain();
    }

    fn drain(&mut self) {
        self.out.frames.extend(std::iter::from_fn(|| self.receiver.poll_frame()));
        self.out.events.extend(std::iter::from_fn(|| self.receiver.poll_event()));
    }

    /// Exchanges state between receiver and participant, as the facade does before reporting.
    fn check_receiver(&mut self, now: Instant) {
        let Self { receiver, ends, .. } = self;
        let participant = &mut ends[1].participant;
        if let Some(time) = participant.round_trip_time_to(MEDIA) {
            receiver.set_round_trip(MEDIA, time.smoothed);
        }
        let mut sequences = Vec::new();
        while let Some(media) = receiver.poll_requests(now, &mut sequences) {
            if !sequences.is_empty() {
                participant.request_packets(now, media, &sequences);
            }
            sequences.clear();
        }
        ends[1].received.clear();
        ends[1].received.extend(receiver.receptions().map(|source| Reception {
            ssrc: source.ssrc,
            expected: source.expected,
            received: source.received,
            highest: source.highest,
            jitter: source.jitter,
            last_heard: source.last_heard,
        }));
    }

    /// Sends one end's RTCP datagrams, and handles its events.
    fn serve(&mut self, end: usize) {
        let now = self.epoch + self.clock;
        let Control { participant, sent, received } = &mut self.ends[end];
        while let Some(datagram) = participant.poll_datagram(now, sent, received) {
            let item = Item::Report(datagram.to_vec());
            self.network.push(self.clock, Way::from(end), datagram.len(), item);
        }
        while let Some(event) = participant.poll_event() {
            let from = address(1 - end).ip();
            match event {
                ControlEvent::Bye { from: source, .. } => {
                    self.receiver.handle_bye(now, source, from);
                }
                ControlEvent::SenderReport { from: source, info } => {
                    let sent = SentSoFar { packets: info.packets, at: info.rtp, ntp: info.ntp };
                    self.receiver.handle_report(now, source, from, Some(sent));
                }
                ControlEvent::PacketsLost { sequences, .. } => {
                    let Self { sender, batch, again, network, clock, .. } = self;
                    for sequence in sequences {
                        again.clear();
                        if sender.retransmit(now, sequence, batch, again).is_ok() {
                            for datagram in again.datagrams().map(<[u8]>::to_vec) {
                                let item = Item::Media(datagram.clone(), None);
                                network.push(*clock, Way::There, datagram.len(), item);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
