//! Elements of header extensions from a sender to the frames of a receiver: over networks that lose,
//! reorder and duplicate, clear and secured, with retransmissions and repair packets.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ends::master;
use rushes_netsim::Path;
use rushes_proto::payload::{
    Delivery, Depacketiser, Fragment, Frame, FrameBuilder, FrameError, PacketInfo, Packetiser,
    PayloadError, PayloadFormat, Run,
};
use rushes_proto::repair::RequestTiming;
use rushes_proto::repair::fec::{DecoderLimits, FecFormat};
use rushes_proto::rtp::{
    AbsSendTime, Element, ElementError, ExtensionKind, ExtensionMap, Packet, TransportCounter,
    TransportSequence,
};
use rushes_proto::srtp::{ExtensionIds, Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{
    ConfigError, FecReception, FecSending, FrameElements, Placement, Receiver, ReceiverConfig,
    Retransmission, Sender, SenderConfig, WideArrivals,
};
use rushes_proto::{
    Batch, ClockRate, FrameRate, NtpTime, PayloadType, RtpTimestamp, SequenceNumber, Ssrc,
};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC, Seeded, Source, arrivals, path, sources};

const LEN_MAX: usize = 300;
const FIRST: RtpTimestamp = RtpTimestamp(90);
const REPAIR: Ssrc = Ssrc(8);

/// The identifiers of the elements for the first, the last and every packet, and of known ones.
#[derive(Clone, Copy, Debug)]
struct Ids {
    first: u8,
    last: u8,
    every: u8,
    mid: u8,
    number: u8,
}

const LOW: Ids = Ids { first: 1, last: 2, every: 3, mid: 4, number: 14 };
const HIGH: Ids = Ids { first: 16, last: 255, every: 3, mid: 77, number: 5 };

impl Ids {
    fn map(self) -> ExtensionMap {
        let map = ExtensionMap::default().with(ExtensionKind::Mid, self.mid).unwrap();
        let map = map.with(ExtensionKind::TransportSequence, self.number).unwrap();
        [self.first, self.last, self.every].iter().fold(map, |map, id| map.with_own(*id).unwrap())
    }

    /// Returns the elements of frame `n`. Some frames have none.
    fn of_frame(self, n: usize) -> FrameElements {
        if n % 7 == 6 {
            return FrameElements::default();
        }
        FrameElements::default()
            .with(Placement::First, self.first, [n as u8, 1])
            .with(Placement::Last, self.last, [n as u8, 2, 2])
            .with(Placement::Every, self.every, [n as u8])
    }

    /// Returns the elements that a receiver has of a packet of frame `n`.
    fn expected(self, n: usize, is_first: bool, is_last: bool) -> BTreeMap<u8, Vec<u8>> {
        let mut expected = BTreeMap::from([(self.mid, b"v".to_vec())]);
        if n % 7 != 6 {
            expected.extend(is_first.then(|| (self.first, vec![n as u8, 1])));
            expected.extend(is_last.then(|| (self.last, vec![n as u8, 2, 2])));
            expected.insert(self.every, vec![n as u8]);
        }
        expected
    }
}

fn collected<'e>(elements: impl Iterator<Item = Element<'e>>) -> BTreeMap<u8, Vec<u8>> {
    elements.map(|element| (element.id, element.data.to_vec())).collect()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Repair {
    None,
    Rtx,
    Verbatim,
    FlexFec,
    Ulp,
}

impl Repair {
    const ALL: [Self; 5] = [Self::None, Self::Rtx, Self::Verbatim, Self::FlexFec, Self::Ulp];

    fn fec_format(self) -> Option<FecFormat> {
        match self {
            Self::FlexFec => Some(FecFormat::FlexFec),
            Self::Ulp => Some(FecFormat::Ulp),
            _ => None,
        }
    }

    fn retransmission(self) -> Option<Retransmission> {
        match self {
            Self::Rtx => Some(Retransmission::Rtx {
                payload_type: payload_type(120),
                ssrc: REPAIR,
                first_sequence: SequenceNumber(65_530),
            }),
            Self::Verbatim => Some(Retransmission::Verbatim),
            _ => None,
        }
    }
}

fn payload_type(value: u8) -> PayloadType {
    PayloadType::new(value).unwrap()
}

fn sender(kind: Kind, ids: Ids, repair: Repair, policy: Option<&Policy>) -> Sender {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(100),
        first_timestamp: FIRST,
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: LEN_MAX,
    };
    let sender = Sender::new(format.packetiser(), config).unwrap().with_extensions(ids.map());
    let mut sender = sender
        .with_names(Some("v"), None)
        .unwrap()
        .with_transport_counter(TransportCounter::new(SequenceNumber(65_500)));
    if let Some(policy) = policy {
        let key = master(policy.suite, 7, &[]);
        sender = sender.secured(Protector::new(policy, &key).unwrap()).unwrap();
    }
    if let Some(format) = repair.fec_format() {
        let fec = FecSending {
            format,
            payload_type: payload_type(115),
            red: format.is_in_red().then(|| payload_type(116)),
            ssrc: REPAIR,
            first_sequence: SequenceNumber(65_534),
            percent: 30,
            span: Duration::from_millis(100),
        };
        sender = sender.with_fec(fec).unwrap();
    }
    match repair.retransmission() {
        Some(way) => sender.with_history(4000, way),
        None => sender,
    }
}

fn listener(kind: Kind, ids: Ids, repair: Repair, policy: Option<&Policy>) -> Listener {
    let mut listener = Listener::with(kind, Delivery::AccessUnit, |config| {
        (config.extensions, config.wide_arrivals) = (ids.map(), true);
        (config.probation, config.remote_ssrc) = (1, Some(SSRC));
        config.requests = repair.retransmission().map(|_| RequestTiming::default());
        config.retransmission =
            (repair == Repair::Rtx).then_some((payload_type(120), Some(REPAIR)));
        config.fec = repair.fec_format().map(|format| FecReception {
            format,
            payload_type: payload_type(115),
            red: format.is_in_red().then(|| payload_type(116)),
            ssrc: None,
            wait: Duration::from_millis(30),
            limits: DecoderLimits::default(),
        });
    });
    if let Some(policy) = policy {
        let unprotector = Unprotector::new(policy, &master(policy.suite, 7, &[])).unwrap();
        listener.receiver = listener.receiver.secured(unprotector);
    }
    listener
}

/// A sent datagram, and its transport-wide number.
struct Sent {
    octets: Vec<u8>,
    number: u16,
}

/// Sends the frames; returns the datagrams, and the number of packets of media of each frame.
fn send(
    sender: &mut Sender,
    batch: &mut Batch,
    sources: &[Source],
    ids: Ids,
) -> (Vec<Sent>, Vec<u64>) {
    let (mut sent, mut counts) = (Vec::new(), Vec::new());
    for (n, source) in sources.iter().enumerate() {
        let before = sender.statistics().packets;
        let mut outgoing = sender.push_with(&source.frame, None, None, &ids.of_frame(n)).unwrap();
        while outgoing.fill(batch) {
            sent.extend(taken(batch));
        }
        drop(outgoing);
        counts.push(sender.statistics().packets - before);
    }
    sender.keep_alive(batch);
    sent.extend(taken(batch));
    (sent, counts)
}

fn taken(batch: &Batch) -> Vec<Sent> {
    let numbers = batch.transport_sequences();
    assert_eq!(numbers.len(), batch.lengths().len());
    let octets = batch.datagrams().map(<[u8]>::to_vec);
    octets.zip(numbers).map(|(octets, number)| Sent { octets, number: *number }).collect()
}

fn number(frame: &Frame, kind: Kind) -> usize {
    (frame.timestamp().distance(FIRST).unsigned_abs() / kind.ticks(frame.len())) as usize
}

/// Sends a stream over `path`; returns how many frames arrived.
fn deliver(
    (kind, ids): (Kind, Ids),
    repair: Repair,
    policy: Option<&Policy>,
    path: &Path,
    seed: u64,
) -> usize {
    let case = (kind, ids, repair, policy);
    let mut random = Seeded(seed);
    let sources = sources(kind, 40, 1200, &mut random);
    let mut sender = sender(kind, ids, repair, policy);
    let mut batch = Batch::with_history(1 << 21);
    let (sent, counts) = send(&mut sender, &mut batch, &sources, ids);
    assert!(sent.iter().all(|datagram| datagram.octets.len() <= LEN_MAX), "{case:?}");
    let numbers: Vec<u16> = sent.iter().map(|datagram| datagram.number).collect();
    let consecutive = (0..).map(|n: u16| 65_500_u16.wrapping_add(n));
    assert!(numbers.iter().copied().eq(consecutive.take(sent.len())), "{case:?}");

    let mut listener = listener(kind, ids, repair, policy);
    let (mut again, mut requested) = (Batch::new(), Vec::new());
    let mut arrived = BTreeSet::new();
    for (time, n) in arrivals(sent.iter().map(|datagram| datagram.octets.len()), path, &mut random)
    {
        listener.take(time, &sent[n].octets);
        arrived.insert(sent[n].number);
        let now = listener.epoch + time;
        request(&mut listener, now, &mut requested);
        for sequence in requested.drain(..) {
            again.clear();
            let Ok(true) = sender.retransmit(now, sequence, &batch, &mut again) else { continue };
            if repair == Repair::Rtx {
                arrived.extend(again.transport_sequences());
            } else {
                // Unchanged packets have their old numbers.
                arrived.insert(sent[usize::from(sequence.0 - 100)].number);
            }
            for datagram in again.datagrams() {
                assert!(datagram.len() <= LEN_MAX + 2);
                listener.receiver.handle_datagram(now, datagram);
            }
        }
    }
    listener.finish();
    check_arrivals(&mut listener, &arrived);
    for frame in &listener.frames {
        let n = number(frame, kind);
        let is_single = counts[n] == 1;
        let expected = ids.expected(n, true, is_single);
        assert_eq!(collected(frame.first_elements()), expected, "{case:?} {n}");
        let expected = ids.expected(n, is_single, true);
        assert_eq!(collected(frame.last_elements()), expected, "{case:?} {n}");
        assert_eq!(frame.element(ids.mid), Some(&b"v"[..]));
        assert_eq!(frame.element(ids.last).is_some(), n % 7 != 6);
        assert_eq!(frame.element(ids.number), None, "{case:?}");
    }
    assert_eq!(listener.receiver.statistics().extensions_malformed, 0, "{case:?}");
    listener.frames.len()
}

fn request(listener: &mut Listener, now: Instant, out: &mut Vec<SequenceNumber>) {
    while listener.receiver.requests_due().is_some_and(|due| due <= now) {
        listener.receiver.poll_requests(now, out);
    }
}

/// The arrivals by transport-wide number are exactly those of the packets that arrived.
fn check_arrivals(listener: &mut Listener, arrived: &BTreeSet<u16>) {
    let mut arrivals = WideArrivals::default();
    let mut noted = BTreeSet::new();
    while let Some((number, at)) = listener.receiver.poll_wide_arrival() {
        let TransportSequence(SequenceNumber(value)) = number;
        noted.insert(value);
        arrivals.note(number, at);
    }
    assert_eq!(&noted, arrived);
    let mut times = Vec::new();
    let begin = arrivals.take(&mut times).unwrap();
    for (n, time) in (0..).zip(&times) {
        assert_eq!(time.is_some(), arrived.contains(&begin.plus(n).0));
    }
}

fn policies(ids: Ids) -> Vec<Option<Policy>> {
    let encrypted_extensions = ExtensionIds::new(&[ids.first, ids.number]);
    let mut policies = vec![None];
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm] {
        let plain = Policy::new(suite);
        policies.push(Some(plain));
        policies.push(Some(Policy { encrypted_extensions, ..plain }));
        policies.push(Some(Policy { cryptex: true, ..plain }));
    }
    policies
}

/// Formats whose packets show where frames begin and end.
fn kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| !kind.is_numbered())
}

#[test]
fn each_element_arrives_with_its_frame_over_every_path_and_with_every_repair() {
    let (calm, rough) = (Path::default(), path(0.02, 0.02, 0.03));
    for kind in kinds() {
        for ids in [LOW, HIGH] {
            for repair in Repair::ALL {
                let whole = deliver((kind, ids), repair, None, &calm, 5);
                assert_eq!(whole, 40, "{kind:?} {ids:?} {repair:?}");
                let frames = deliver((kind, ids), repair, None, &rough, 6);
                assert!(frames >= 15, "{kind:?} {ids:?} {repair:?} {frames}");
            }
        }
    }
}

#[test]
fn each_element_arrives_with_its_frame_whatever_is_encrypted() {
    let rough = path(0.02, 0.02, 0.03);
    for ids in [LOW, HIGH] {
        for policy in policies(ids) {
            for repair in Repair::ALL {
                let frames = deliver((Kind::H265, ids), repair, policy.as_ref(), &rough, 7);
                assert!(frames >= 15, "{policy:?} {ids:?} {repair:?} {frames}");
            }
        }
    }
}

#[test]
fn packets_before_a_report_name_the_stream_and_those_for_repair_always_do() {
    let names = |packet: &[u8], map: ExtensionMap| {
        let packet = Packet::parse(packet).unwrap();
        let elements = packet.extension().and_then(|extension| extension.elements());
        let found = collected(elements.into_iter().flatten().flatten());
        let kinds = [ExtensionKind::Mid, ExtensionKind::Rid, ExtensionKind::RepairedRid];
        kinds.map(|kind| map.id(kind).and_then(|id| found.get(&id).cloned()))
    };
    let map = ExtensionMap::default().with(ExtensionKind::Mid, 1).unwrap();
    let map = map.with(ExtensionKind::Rid, 2).unwrap();
    let map = map.with(ExtensionKind::RepairedRid, 3).unwrap();
    let (mid, rid) = (Some(b"0".to_vec()), Some(b"hi".to_vec()));
    let mut sender = sender(Kind::Generic, LOW, Repair::Rtx, None)
        .with_extensions(map)
        .with_names(Some("0"), Some("hi"))
        .unwrap();
    let (mut batch, mut again) = (Batch::with_history(1 << 20), Batch::new());
    let frame = [7; 1000];
    for is_known in [false, true, false] {
        sender.set_acknowledged(is_known);
        if is_known {
            // Only another SSRC is unknown again.
            assert!(sender.push(&frame, None).unwrap().fill(&mut batch));
        } else {
            sender.set_ssrc(Ssrc(70));
            assert!(sender.push(&frame, None).unwrap().fill(&mut batch));
        }
        let packets: Vec<_> = batch.datagrams().map(<[u8]>::to_vec).collect();
        assert!(packets.len() > 3);
        for packet in &packets {
            let expected =
                if is_known { [None, None, None] } else { [mid.clone(), rid.clone(), None] };
            assert_eq!(names(packet, map), expected);
        }
        let sequence = Packet::parse(&packets[1]).unwrap().sequence();
        again.clear();
        #[allow(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        assert_eq!(sender.retransmit(now, sequence, &batch, &mut again), Ok(true));
        let packet = again.datagrams().next().unwrap();
        assert_eq!(names(packet, map), [mid.clone(), None, rid.clone()]);
        assert!(packet.len() <= LEN_MAX + 2);
    }
    let refused = sender.with_names(Some("seventeen-letters"), None).err();
    assert_eq!(refused, Some(ConfigError::StreamName { len: 17 }));
    let plain = self::sender(Kind::Generic, LOW, Repair::None, None);
    let refused = plain.with_names(None, Some("a b")).err();
    assert_eq!(refused, Some(ConfigError::StreamName { len: 3 }));
}

#[test]
fn every_packet_has_the_time_at_which_it_was_sent() {
    let map = ExtensionMap::default().with(ExtensionKind::AbsSendTime, 3).unwrap();
    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    let begin = Instant::now();
    let time = |packet: &[u8]| {
        let packet = Packet::parse(packet).unwrap();
        let elements = packet.extension().unwrap().elements().unwrap();
        let found = elements.flatten().find(|element| element.id == 3).unwrap();
        AbsSendTime::from_data(found.data).unwrap()
    };
    let mut sender = sender(Kind::Generic, LOW, Repair::Rtx, None).with_extensions(map);
    assert!(!sender.has_send_time());
    sender = sender.with_wall_clock((begin, NtpTime(3 << 32)));
    assert!(sender.has_send_time());
    let (mut batch, mut again) = (Batch::with_history(1 << 20), Batch::new());
    let mut outgoing = sender.push(&[7; 2000], None).unwrap();
    outgoing.limit_batches(LEN_MAX);
    for n in 0..4_u32 {
        outgoing.set_now(begin + n * Duration::from_millis(250));
        assert!(outgoing.fill(&mut batch));
        let expected = AbsSendTime((3 << 18) + (n << 16));
        assert!(batch.datagrams().all(|packet| time(packet) == expected));
    }
    let late = begin + Duration::from_secs(2);
    assert_eq!(outgoing.retransmit(late, SequenceNumber(100), &batch, &mut again), Ok(true));
    assert_eq!(time(again.datagrams().next().unwrap()), AbsSendTime(5 << 18));
}

#[test]
fn a_dependency_descriptor_marks_the_first_and_the_last_packet() {
    let map = ExtensionMap::default().with(ExtensionKind::DependencyDescriptor, 3).unwrap();
    let mut sender = sender(Kind::Av1, LOW, Repair::None, None).with_extensions(map);
    let elements = FrameElements::default().with(Placement::Every, 3, [0xc5, 1, 2]);
    let mut random = Seeded(1);
    for len in [100, 1000] {
        let frame = Source::new(Kind::Av1, vec![Kind::Av1.unit(1, len, &mut random)]).frame;
        let mut batch = Batch::new();
        assert!(sender.push_with(&frame, None, None, &elements).unwrap().fill(&mut batch));
        let count = batch.lengths().len();
        assert_eq!(count > 1, len == 1000);
        for (n, packet) in batch.datagrams().enumerate() {
            let packet = Packet::parse(packet).unwrap();
            let element = packet.extension().unwrap().elements().unwrap().next().unwrap().unwrap();
            let place = u8::from(n == 0) << 7 | u8::from(n + 1 == count) << 6;
            assert_eq!(element.data, [0x05 | place, 1, 2]);
        }
    }
}

#[test]
fn elements_that_cannot_be_sent_are_refused_and_leave_the_stream_as_it_is() {
    let mut plain = sender(Kind::Generic, LOW, Repair::None, None);
    let refused = |sender: &mut Sender, id: u8, data: &[u8]| {
        let elements = FrameElements::default().with(Placement::Last, id, data);
        let outcome = sender.push_with(b"frame", None, None, &elements).map(|_| ());
        match outcome {
            Err(FrameError::Element(error)) => Some(error),
            other => {
                assert_eq!(other, Ok(()));
                None
            }
        }
    };
    let next = plain.next_sequence();
    assert_eq!(refused(&mut plain, 9, b"x"), Some(ElementError::NotAgreed { id: 9 }));
    assert_eq!(refused(&mut plain, 14, b"xy"), Some(ElementError::Internal { id: 14 }));
    for len in [0, 17, 256] {
        let error = ElementError::Length { id: 1, len };
        assert_eq!(refused(&mut plain, 1, &vec![0; len]), Some(error));
    }
    let many =
        (0..70).fold(FrameElements::default(), |all, id| all.with(Placement::Every, id, [0]));
    let error = FrameError::Element(ElementError::TooMany { count: 70 });
    assert_eq!(plain.push_with(b"frame", None, None, &many).err(), Some(error));
    assert_eq!((plain.next_sequence(), plain.statistics().frames), (next, 0));
    let mut without = plain.with_extensions(ExtensionMap::default());
    assert_eq!(refused(&mut without, 1, b"x"), Some(ElementError::NotAgreed { id: 1 }));

    // Mixed forms allow other lengths, and a packet that needs it alone has the two-byte form.
    let mut mixed = without.with_extensions(LOW.map().with_mixed_forms(true));
    for (len, profile) in [(0, 0x1000), (16, 0xbede), (17, 0x1000), (200, 0x1000)] {
        let (data, mut batch) = (vec![3; len], Batch::new());
        let elements = FrameElements::default().with(Placement::First, 1, &data[..]);
        assert!(mixed.push_with(b"frame", None, None, &elements).unwrap().fill(&mut batch));
        let packet = Packet::parse(batch.datagrams().next().unwrap()).unwrap();
        assert_eq!(packet.extension().unwrap().profile, profile, "{len}");
        let found = collected(packet.extension().unwrap().elements().unwrap().flatten());
        assert_eq!(found[&1], data);
    }
    assert_eq!(refused(&mut mixed, 1, &[0; 256]), Some(ElementError::Length { id: 1, len: 256 }));
}

#[test]
fn packets_without_elements_are_those_of_a_stream_without_an_agreement() {
    let sources = sources(Kind::H265, 20, 3000, &mut Seeded(9));
    let expected = world::send(Kind::H265, &sources, LEN_MAX, (SequenceNumber(100), FIRST));
    let map = ExtensionMap::default().with_own(1).unwrap().with(ExtensionKind::Mid, 2).unwrap();
    let mut sender = sender(Kind::H265, LOW, Repair::None, None).with_extensions(map);
    let mut batch = Batch::new();
    let mut sent = Vec::new();
    for source in &sources {
        let mut outgoing = sender.push(&source.frame, None).unwrap();
        while outgoing.fill(&mut batch) {
            sent.extend(batch.datagrams().map(<[u8]>::to_vec));
        }
        assert!(batch.transport_sequences().is_empty());
    }
    assert!(sent.iter().eq(expected.iter().map(|datagram| &datagram.octets)));
}

#[test]
fn a_frame_of_many_packets_has_the_elements_of_two() {
    let map = ExtensionMap::default().with_own(1).unwrap().with_mixed_forms(true);
    let mut sender = sender(Kind::Generic, LOW, Repair::None, None).with_extensions(map);
    let mut listener = Listener::with(Kind::Generic, Delivery::AccessUnit, |config| {
        (config.extensions, config.probation) = (map, 1);
    });
    let elements = FrameElements::default().with(Placement::Every, 1, [9; 200]);
    let frame = vec![1; 100_000];
    let (mut batch, mut held) = (Batch::new(), 0);
    let mut outgoing = sender.push_with(&frame, None, None, &elements).unwrap();
    while outgoing.fill(&mut batch) {
        for packet in batch.datagrams() {
            listener.take(Duration::ZERO, packet);
            held = held.max(listener.receiver.statistics().held_octets);
        }
    }
    assert_eq!(listener.frames.len(), 1);
    assert_eq!(listener.frames[0].data(), frame);
    assert!(held < 400_000, "{held}");
    let found = |elements: BTreeMap<u8, Vec<u8>>| elements[&1] == [9; 200];
    assert!(found(collected(listener.frames[0].first_elements())));
    assert!(found(collected(listener.frames[0].last_elements())));
}

/// Early packets are held with their elements, which count against the limit of the window.
#[test]
fn elements_of_early_packets_count_against_the_memory_of_the_window() {
    let map = ExtensionMap::default().with_own(1).unwrap();
    let mut listener = Listener::with(Kind::Generic, Delivery::AccessUnit, |config| {
        (config.extensions, config.probation) = (map, 1);
        (config.reorder_len_max, config.reorder_packets_max) = (20_000, 512);
    });
    let packet = |sequence: u16| {
        let mut packet = vec![0x90, PAYLOAD_TYPE.value()];
        packet.extend(sequence.to_be_bytes());
        packet.extend(u32::from(sequence).to_be_bytes());
        packet.extend(SSRC.0.to_be_bytes());
        packet.extend([0x10, 0, 0, 64, 1, 254]);
        packet.extend([5; 254]);
        packet.extend([7; 3]);
        packet
    };
    listener.take(Duration::ZERO, &packet(0));
    for sequence in 2..400 {
        listener.take(Duration::ZERO, &packet(sequence));
        let held = listener.receiver.statistics().held_octets;
        // The places of the window take 60 000 octets, and all packets would take 100 000 more.
        assert!(held < 95_000, "{sequence} {held}");
    }
}

/// A format whose halves count the uses of their fast paths.
#[derive(Debug)]
struct Counting {
    format: Arc<dyn PayloadFormat>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Packets made in runs.
    in_runs: AtomicUsize,
    /// Packets whose payload went straight into its frame.
    behind: AtomicUsize,
}

struct CountingSplitter(Box<dyn Packetiser>, Arc<Counts>);

struct CountingJoiner(Box<dyn Depacketiser>, Arc<Counts>);

impl PayloadFormat for Counting {
    fn name(&self) -> &'static str {
        self.format.name()
    }

    fn clock_rate(&self) -> ClockRate {
        self.format.clock_rate()
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(CountingSplitter(self.format.packetiser(), self.counts.clone()))
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(CountingJoiner(self.format.depacketiser(), self.counts.clone()))
    }

    fn has_nal_units(&self) -> bool {
        self.format.has_nal_units()
    }
}

impl Packetiser for CountingSplitter {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        self.0.start(frame, limit)
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        self.0.next(frame, fragment)
    }

    fn next_run(&mut self, frame: &[u8], most: usize) -> Option<Run> {
        let run = self.0.next_run(frame, most)?;
        self.1.in_runs.fetch_add(run.count, Relaxed);
        Some(run)
    }
}

impl Depacketiser for CountingJoiner {
    fn push(
        &mut self,
        payload: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        self.0.push(payload, packet, frame)
    }

    fn head_len(&self) -> Option<usize> {
        self.0.head_len()
    }

    fn push_behind(
        &mut self,
        head: &[u8],
        len: usize,
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> bool {
        let continued = self.0.push_behind(head, len, packet, frame);
        self.1.behind.fetch_add(usize::from(continued), Relaxed);
        continued
    }

    fn lost(&mut self) {
        self.0.lost();
    }
}

/// Sends frames of 40 packets each; returns how many packets took the fast paths of both sides. Each
/// packet is handled alone, so that the receiver's path is counted for each.
fn fast_packets(map: ExtensionMap, elements: &FrameElements) -> (usize, usize) {
    let counts = Arc::new(Counts::default());
    let format = Arc::new(Counting { format: Kind::H265.format(), counts: counts.clone() });
    let config = sender(Kind::H265, LOW, Repair::None, None).config().clone();
    let mut sender = Sender::new(format.packetiser(), config).unwrap().with_extensions(map);
    let mut receiving = ReceiverConfig::new(PAYLOAD_TYPE, ClockRate::VIDEO);
    (receiving.extensions, receiving.probation) = (map, 1);
    let mut receiver = Receiver::new(format, receiving).unwrap();
    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    let now = Instant::now();
    let (mut random, mut batch) = (Seeded(3), Batch::new());
    for n in 0..10 {
        let unit = Kind::H265.unit(n, 40 * 250, &mut random);
        let frame = Source::new(Kind::H265, vec![unit]).frame;
        let mut outgoing = sender.push_with(&frame, None, None, elements).unwrap();
        while outgoing.fill(&mut batch) {
            for packet in batch.datagrams() {
                let from = std::net::SocketAddr::from(([192, 0, 2, 1], 5004));
                receiver.handle_datagrams(now, from, &mut [&mut packet.to_vec()]);
            }
        }
        assert_eq!(receiver.poll_frame().unwrap().data(), frame);
    }
    (counts.in_runs.load(Relaxed), counts.behind.load(Relaxed))
}

#[test]
fn only_packets_with_elements_leave_the_fast_paths() {
    let none = fast_packets(ExtensionMap::default(), &FrameElements::default());
    assert!(none.0 >= 300 && none.1 >= 300, "{none:?}");
    // Agreed on, but not used.
    let map = ExtensionMap::default().with_own(1).unwrap().with(ExtensionKind::Mid, 2).unwrap();
    assert_eq!(fast_packets(map, &FrameElements::default()), none);
    // Of elements for the first and the last packet, only these take the other path.
    let ends =
        FrameElements::default().with(Placement::First, 1, [1]).with(Placement::Last, 1, [2]);
    let (in_runs, behind) = fast_packets(map, &ends);
    assert!(in_runs + 20 >= none.0 && behind + 20 >= none.1, "{in_runs} {behind} {none:?}");
    let every = FrameElements::default().with(Placement::Every, 1, [1]);
    assert_eq!(fast_packets(map, &every), (0, 0));
}

/// A packet of many units of one octet, with long elements: each unit is a frame when units are
/// delivered.
#[test]
fn units_of_one_packet_share_its_elements() {
    let map = (1..=10)
        .filter(|id| *id != 15)
        .fold(ExtensionMap::default(), |map, id| map.with_own(id).unwrap());
    let mut listener = Listener::with(Kind::H264, Delivery::Unit, |config| {
        (config.extensions, config.probation) = (map, 1);
    });
    let elements: Vec<u8> =
        (1..=10_u8).flat_map(|id| [&[id, 254][..], &[id; 254]].concat()).collect();
    let mut packet = vec![0x90, PAYLOAD_TYPE.value(), 0, 1, 0, 0, 0, 1];
    packet.extend(SSRC.0.to_be_bytes());
    packet.extend([0x10, 0]);
    packet.extend((elements.len() as u16 / 4).to_be_bytes());
    packet.extend(elements);
    packet.push(24);
    packet.extend([0, 1, 0x41].repeat(20_000));
    let now = listener.epoch;
    listener.receiver.handle_datagram(now, &packet);
    let ready = listener.receiver.ready_octets();
    let mut frames = 0;
    while let Some(frame) = listener.receiver.poll_frame() {
        assert_eq!(frame.element(10), Some(&[10; 254][..]));
        frames += 1;
    }
    assert_eq!(frames, 20_000);
    // The frames' own octets, and the elements once.
    assert!(ready <= 64 * 20_000 + 2 * 2560, "{ready}");
}

#[test]
fn a_stranger_does_not_move_the_numbers_of_a_connection() {
    let map = ExtensionMap::default().with(ExtensionKind::TransportSequence, 1).unwrap();
    let mut listener = Listener::with(Kind::Generic, Delivery::AccessUnit, |config| {
        (config.extensions, config.wide_arrivals) = (map, true);
    });
    let packet = |ssrc: u32, sequence: u16, number: u16| {
        let mut packet = vec![0x90, PAYLOAD_TYPE.value()];
        packet.extend(sequence.to_be_bytes());
        packet.extend(u32::from(sequence).to_be_bytes());
        packet.extend(ssrc.to_be_bytes());
        packet.extend([0xbe, 0xde, 0, 1, 0x11]);
        packet.extend(number.to_be_bytes());
        packet.extend([0, 7]);
        packet
    };
    let [home, other] =
        [5004, 5006].map(|port| Some(std::net::SocketAddr::from(([192, 0, 2, 1], port))));
    let now = listener.epoch;
    for n in 0..10 {
        listener.receiver.handle_datagram_from(now, home, &packet(7, n, n));
        if n == 0 {
            continue;
        }
        // Of another source, of the same, and of a payload type that is not the stream's.
        listener.receiver.handle_datagram_from(now, other, &packet(8, n, 30_000 + n));
        listener.receiver.handle_datagram_from(now, other, &packet(7, n, 30_000 + n));
        let mut beside = packet(9, n, 30_000 + n);
        beside[1] = 20;
        listener.receiver.handle_datagram_from(now, other, &beside);
    }
    let polled = std::iter::from_fn(|| listener.receiver.poll_wide_arrival());
    let numbers: Vec<u16> = polled.map(|(TransportSequence(number), _)| number.0).collect();
    // The first packet was on probation.
    assert_eq!(numbers, (1..10).collect::<Vec<u16>>());
}
