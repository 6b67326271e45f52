//! Uncompressed video and audio over a network with everything at once: jitter, a queue that overflows, loss
//! in bursts, packets that are hundreds of places late, copies, a path that changes, and strangers beside.
//!
//! What arrives in time is in its place, what does not is reported as missing, and nothing else is delivered.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_netsim::{Bottleneck, Course, Link, Loss, Path, Straying};
use rushes_proto::payload::pcm::{Pcm, Sample};
use rushes_proto::payload::raw::{Lines, Raw, RawVideo, Sampling, Scan};
use rushes_proto::payload::{Frame, PayloadFormat};
use rushes_proto::rtp::Packet;
use rushes_proto::stream::{
    Discard, ReceiveStatistics, Receiver, ReceiverConfig, Sender, SenderConfig,
};
use rushes_proto::{Batch, ClockRate, FrameRate, RtpTimestamp, SequenceNumber};
use world::{PAYLOAD_TYPE, SSRC, Seeded};

const MS: Duration = Duration::from_millis(1);
const FRAMES: usize = 30;

/// The window of the receivers, in packets.
const WINDOW: usize = 1024;

/// A packet that was sent: when, its frame, and the octets of that frame in it.
struct Sent {
    at: Duration,
    octets: Vec<u8>,
    frame: usize,
    place: Range<usize>,
}

/// Sends `frames`, one every 33 ms, each within 20 ms. `data_len` returns the octets of a frame in a payload.
fn send(
    format: &dyn PayloadFormat,
    frames: &[Vec<u8>],
    (packet_len_max, padding_limit): (usize, u16),
    data_len: fn(&[u8]) -> usize,
) -> Vec<Sent> {
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(65_400),
        first_timestamp: RtpTimestamp(u32::MAX - 40_000),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max,
    };
    let sender = Sender::new(format.packetiser(), config).unwrap();
    let mut sender = sender.with_padding_limit(padding_limit);
    let mut batch = Batch::new();
    let mut all = Vec::new();
    for (number, frame) in frames.iter().enumerate() {
        let mut octets = Vec::new();
        let mut outgoing = sender.push(frame, None).unwrap();
        while outgoing.fill(&mut batch) {
            octets.extend(batch.datagrams().map(<[u8]>::to_vec));
        }
        let (count, mut end) = (octets.len() as u32, 0);
        for (n, octets) in (0..).zip(octets) {
            let start = end;
            end += data_len(Packet::parse(&octets).unwrap().payload());
            let at = 33 * MS * number as u32 + 20 * MS * n / count;
            all.push(Sent { at, octets, frame: number, place: start..end });
        }
        assert_eq!(end, frame.len());
    }
    all
}

/// Returns a path with some of everything.
fn any_path(random: &mut Seeded) -> Path {
    let places = [0, 30, 300, 600][random.below(4) as usize];
    Path {
        delay: MS * random.below(60) as u32,
        jitter: MS * random.below(15) as u32,
        jitter_reorders: random.chance(0.3),
        bottleneck: random.chance(0.7).then(|| Bottleneck {
            rate: 1_000_000 * random.between(8, 100),
            queue: random.between(6_000, 60_000) as usize,
            ecn_threshold: None,
        }),
        loss: Loss::bursts(0.1 * random.unit() * random.unit(), 1.0 + 8.0 * random.unit(), 30),
        reordering: Straying::places(0.01 * random.unit(), 0..=places),
        duplication: Straying::places(0.05 * random.unit(), 0..=places),
        ..Path::default()
    }
}

/// A datagram that arrives: when, whose, and the number of the packet if it is a genuine one.
struct Arrival {
    at: Duration,
    from: SocketAddr,
    octets: Vec<u8>,
    packet: Option<usize>,
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 5004))
}

/// Returns the arrivals over a path that changes into another one on the way. The first packets, by which a
/// source is believed, are not disturbed.
fn arrivals(sent: &[Sent], random: &mut Seeded) -> Vec<Arrival> {
    let calm = Path { delay: 20 * MS, ..Path::default() };
    let course = Course::from(calm)
        .then(sent[4].at, any_path(random))
        .then(MS * random.below(33 * FRAMES as u64) as u32 + sent[5].at, any_path(random));
    let mut link = Link::new(course, random.roll());
    for (n, packet) in sent.iter().enumerate() {
        link.push(packet.at, packet.octets.len(), n);
    }
    link.finish();
    std::iter::from_fn(|| link.poll(Duration::MAX))
        .map(|it| Arrival {
            at: it.at,
            from: address(1),
            octets: sent[it.item].octets.clone(),
            packet: Some(it.item),
        })
        .collect()
}

/// What a receiver did with arrivals.
struct Received {
    frames: Vec<Frame>,
    /// For each packet, whether it arrived in time.
    used: Vec<bool>,
    statistics: ReceiveStatistics,
    held_max: usize,
    sources_max: usize,
}

fn receive(
    format: Arc<dyn PayloadFormat>,
    incomplete: bool,
    packets: usize,
    arrivals: &[Arrival],
) -> Received {
    let mut config = ReceiverConfig::new(PAYLOAD_TYPE, format.clock_rate());
    (config.reorder_packets_max, config.reorder_time) = (WINDOW, 60 * MS);
    (config.frame.incomplete, config.frame.frame_len_max) = (incomplete, 64 << 10);
    config.memory_max = 4 << 20;
    let mut receiver = Receiver::new(format, config).unwrap();
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    let epoch = Instant::now();
    let (mut frames, mut used) = (Vec::new(), vec![false; packets]);
    let (mut held_max, mut sources_max) = (0, 0);
    for arrival in arrivals {
        let now = epoch + arrival.at;
        while let Some(due) = receiver.poll_timeout().filter(|due| *due <= now) {
            receiver.handle_timeout(due);
        }
        let late = receiver.statistics().discards.get(Discard::Late);
        receiver.handle_datagram_from(now, Some(arrival.from), &arrival.octets);
        let statistics = receiver.statistics();
        if let Some(packet) = arrival.packet {
            used[packet] |= statistics.discards.get(Discard::Late) == late;
        }
        held_max = held_max.max(statistics.held_octets);
        sources_max = sources_max.max(statistics.sources.len());
        frames.extend(std::iter::from_fn(|| receiver.poll_frame()));
    }
    while let Some(due) = receiver.poll_timeout() {
        receiver.handle_timeout(due);
        frames.extend(std::iter::from_fn(|| receiver.poll_frame()));
    }
    let statistics = receiver.statistics();
    Received { frames, used, statistics, held_max, sources_max }
}

/// Returns the video, its frames of random octets and their packets.
fn film(seed: u64, random: &mut Seeded) -> (RawVideo, Vec<Vec<u8>>, Vec<Sent>) {
    let video = match seed % 6 {
        0 => RawVideo::new(Sampling::YCbCr422, 10, 96, 54),
        1 => RawVideo::new(Sampling::YCbCr420, 8, 97, 61),
        2 => RawVideo::new(Sampling::Rgba, 16, 40, 30),
        3 => RawVideo::new(Sampling::Bgr, 12, 61, 40),
        4 => RawVideo::new(Sampling::YCbCr422, 8, 90, 80).unwrap().with_scan(Scan::Interlaced),
        _ => {
            RawVideo::new(Sampling::YCbCr444, 8, 60, 80).unwrap().with_scan(Scan::InterlacedByField)
        }
    };
    let video = video.unwrap();
    let len = video.frame_len();
    let frame = |random: &mut Seeded| (0..len).map(|_| 1 + random.below(255) as u8).collect();
    let frames: Vec<Vec<u8>> = (0..FRAMES).map(|_| frame(random)).collect();
    let data_len = |payload: &[u8]| {
        let lines = Lines::parse(payload).unwrap();
        lines.segments().map(|(_, octets)| octets.len()).sum()
    };
    let packet_len_max = 150 + random.below(700) as usize;
    let padding_limit = if seed.is_multiple_of(5) { 0 } else { 20 };
    let sent = send(&Raw::new(video), &frames, (packet_len_max, padding_limit), data_len);
    (video, frames, sent)
}

/// Checks the frames of the genuine source against the packets that arrived in time; returns how many were
/// whole, and how many were delivered with missing parts.
fn check(
    received: &Received,
    video: RawVideo,
    (frames, sent): (&[Vec<u8>], &[Sent]),
    incomplete: bool,
) -> (usize, usize) {
    let mut covered: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
    for (packet, _) in sent.iter().zip(&received.used).filter(|(_, used)| **used) {
        let octets = covered.entry(packet.frame).or_insert_with(|| vec![false; video.frame_len()]);
        octets[packet.place.clone()].fill(true);
    }
    let mut delivered = received.frames.iter().filter(|frame| frame.ssrc() == SSRC);
    let (mut whole, mut partly) = (0, 0);
    for (number, covered) in covered {
        let missing = covered.iter().filter(|it| !**it).count();
        if missing > 0 && (!incomplete || 2 * missing > covered.len()) {
            continue;
        }
        *if missing == 0 { &mut whole } else { &mut partly } += 1;
        let frame = delivered.next().unwrap_or_else(|| panic!("frame {number} is missing"));
        let mut told = vec![true; covered.len()];
        frame.missing().iter().for_each(|range| told[range.clone()].fill(false));
        assert!(told == covered, "frame {number}: {:?}", frame.missing());
        let octets =
            frames[number].iter().zip(&covered).map(|(octet, has)| *octet * u8::from(*has));
        assert!(octets.eq(frame.iter().copied()), "frame {number} has other octets");
        assert_eq!(frame.is_second_field(), video.is_interlaced() && number % 2 == 1);
    }
    assert!(delivered.next().is_none(), "a frame that was not sent");
    (whole, partly)
}

#[test]
fn lines_are_in_their_places_and_missing_ones_are_reported_whatever_the_network_does() {
    let (mut all, mut late) = ((0, 0), 0);
    for seed in 0..120 {
        let mut random = Seeded(seed + 1);
        let (video, frames, sent) = film(seed, &mut random);
        let arrivals = arrivals(&sent, &mut random);
        let incomplete = seed % 4 > 0;
        let format = Arc::new(Raw::new(video));
        let received = receive(format, incomplete, sent.len(), &arrivals);
        let (whole, partly) = check(&received, video, (&frames, &sent), incomplete);
        all = (all.0 + whole, all.1 + partly);
        late += received.statistics.discards.get(Discard::Late);
        let used = |n: &usize| received.used[*n];
        // A path that becomes shorter lets others overtake the first packets, which are late then.
        let first = (0..sent.len()).find(used).unwrap() as u64;
        let last = (0..sent.len()).rfind(used).unwrap() as u64;
        let counted = received.used.iter().filter(|used| **used).count() as u64;
        let statistics = &received.statistics;
        assert_eq!(statistics.packets, counted, "seed {seed}");
        assert_eq!(statistics.packets_lost, last + 1 - first - counted, "seed {seed}");
        let most = 2 * WINDOW * 900 + 3 * video.frame_len();
        assert!(received.held_max <= most, "seed {seed}: {} octets", received.held_max);
    }
    // All that is tested has happened.
    assert!(all.0 > 500 && all.1 > 200 && late > 100, "{all:?} {late}");
}

/// What a stranger sends, from an address of its own.
#[derive(Clone, Copy, Debug)]
enum Stranger {
    /// One packet of another source.
    One,
    /// Two packets of a new source for each genuine packet, which begin a frame.
    Many,
    /// All that the genuine sender has sent, a while later.
    Recorded,
}

impl Stranger {
    fn joins(self, arrivals: Vec<Arrival>) -> Vec<Arrival> {
        let other = |at, octets: &[u8], ssrc: Option<u32>| {
            let mut octets = octets.to_vec();
            if let Some(ssrc) = ssrc {
                octets[8..12].copy_from_slice(&ssrc.to_be_bytes());
            }
            Arrival { at, from: address(66), octets, packet: None }
        };
        let mut added = Vec::new();
        match self {
            Self::One => added.push(other(arrivals[40].at, &arrivals[40].octets, Some(1))),
            Self::Many => {
                for (n, pair) in (1..).zip(arrivals.windows(2)) {
                    let two = pair.iter().map(|it| other(pair[1].at, &it.octets, Some(n)));
                    added.extend(two);
                }
            }
            Self::Recorded => {
                added.extend(arrivals.iter().map(|it| other(it.at + 150 * MS, &it.octets, None)));
            }
        }
        let mut all = arrivals;
        all.extend(added);
        all.sort_by_key(|it| it.at);
        all
    }
}

#[test]
fn a_stranger_changes_no_frame_of_the_sender_and_holds_little_memory() {
    for seed in 0..18 {
        for stranger in [Stranger::One, Stranger::Many, Stranger::Recorded] {
            let mut random = Seeded(seed + 1);
            let (video, frames, sent) = film(seed, &mut random);
            let arrivals = stranger.joins(arrivals(&sent, &mut random));
            let format = Arc::new(Raw::new(video));
            let received = receive(format, true, sent.len(), &arrivals);
            let (whole, _) = check(&received, video, (&frames, &sent), true);
            assert!(whole > 0, "seed {seed}, {stranger:?}");
            assert!(received.held_max <= 4 << 20 && received.sources_max <= 16, "{stranger:?}");
            let is_stranger = |frame: &&Frame| frame.ssrc() != SSRC;
            assert!(!received.frames.iter().any(|it| is_stranger(&it) && it.missing().is_empty()));
        }
    }
}

/// A frame of samples is a packet: each is delivered at its place in the signal, or not at all.
#[test]
fn samples_are_in_their_places_whatever_the_network_does() {
    for seed in 0..60 {
        let mut random = Seeded(seed + 1);
        let sample = if seed % 2 == 0 { Sample::L16 } else { Sample::L24 };
        let format = Pcm::new(sample, ClockRate::OPUS, 2);
        let format = Pcm { packet_time: Some(MS), ..format };
        let len = format.group_len() * 1600;
        let frame = |random: &mut Seeded| (0..len).map(|_| random.roll() as u8).collect();
        let frames: Vec<Vec<u8>> = (0..FRAMES).map(|_| frame(&mut random)).collect();
        let sent = send(&format, &frames, (400, 0), <[u8]>::len);
        let arrivals = arrivals(&sent, &mut random);
        let received = receive(Arc::new(format), false, sent.len(), &arrivals);
        let used = sent.iter().zip(&received.used).filter(|(_, used)| **used);
        let expected = used.map(|(packet, _)| {
            let time = Packet::parse(&packet.octets).unwrap().timestamp();
            (time, &frames[packet.frame][packet.place.clone()])
        });
        let delivered = received.frames.iter().map(|frame| (frame.timestamp(), &frame[..]));
        assert!(delivered.eq(expected), "seed {seed}");
    }
}
