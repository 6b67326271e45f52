//! Packets of one length by padding (RFC 3550 section 5.1): nothing of a frame changes, no more is
//! added than allowed, and wrong counts of padding do no harm.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

mod ends;
mod world;

use std::net::SocketAddr;
use std::time::Instant;

use ends::master;
use proptest::collection::vec;
use proptest::prelude::*;
use rushes_proto::payload::raw::{Raw, RawVideo, Sampling};
use rushes_proto::payload::{Delivery, PayloadFormat};
use rushes_proto::repair::RequestTiming;
use rushes_proto::repair::fec::{DecoderLimits, FecFormat};
use rushes_proto::rtp::{ExtensionKind, ExtensionMap, Packet};
use rushes_proto::srtp::{Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{
    FecReception, FecSending, FrameElements, Placement, ReceiverConfig, Retransmission, Sender,
    SenderConfig,
};
use rushes_proto::{Batch, FrameRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC, Seeded, Source};

const KINDS: [Kind; 5] =
    [Kind::H264, Kind::H265, Kind::H265Numbered, Kind::H266, Kind::H266Numbered];

const SUITES: [Option<Suite>; 3] =
    [None, Some(Suite::AesCm128HmacSha1_80), Some(Suite::AeadAes128Gcm)];

const PLACES: [Placement; 3] = [Placement::First, Placement::Last, Placement::Every];

const RTX: (PayloadType, Ssrc) = (PayloadType::GENERIC, Ssrc(77));

fn sender(kind: Kind, packet_len_max: usize, suite: Option<Suite>) -> Sender {
    sender_of(&*kind.format(), packet_len_max, suite)
}

fn sender_of(format: &dyn PayloadFormat, packet_len_max: usize, suite: Option<Suite>) -> Sender {
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(65_500),
        first_timestamp: RtpTimestamp(9),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max,
    };
    let sender = Sender::new(format.packetiser(), config).unwrap();
    match suite {
        Some(suite) => {
            let protector = Protector::new(&Policy::new(suite), &master(suite, 7, &[])).unwrap();
            sender.secured(protector).unwrap()
        }
        None => sender,
    }
}

fn listener(
    kind: Kind,
    suite: Option<Suite>,
    adjust: impl FnOnce(&mut ReceiverConfig),
) -> Listener {
    let mut listener = Listener::with(kind, Delivery::AccessUnit, |config| {
        config.probation = 1;
        adjust(config);
    });
    if let Some(suite) = suite {
        let unprotector = Unprotector::new(&Policy::new(suite), &master(suite, 7, &[])).unwrap();
        listener.receiver = listener.receiver.secured(unprotector);
    }
    listener
}

/// Returns the datagrams of `frame`.
fn datagrams(sender: &mut Sender, batch: &mut Batch, frame: &[u8]) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    let mut outgoing = sender.push(frame, None).unwrap();
    while outgoing.fill(batch) {
        datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    }
    datagrams
}

/// Returns a frame of units of these lengths.
fn source(kind: Kind, lens: &[usize], random: &mut Seeded) -> Source {
    let units = (0..).zip(lens).map(|(n, len)| kind.unit(n, *len, random)).collect();
    Source::new(kind, units)
}

/// Handles `datagrams` in one call, as a socket delivers them, and returns the frames.
fn received(listener: &mut Listener, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut copies = datagrams.to_vec();
    let mut views: Vec<&mut [u8]> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
    let from = SocketAddr::from(([192, 0, 2, 1], 5004));
    listener.receiver.handle_datagrams(listener.epoch, from, &mut views);
    listener.finish();
    listener.frames.drain(..).map(|frame| frame.to_vec()).collect()
}

fn octets(datagrams: &[Vec<u8>]) -> usize {
    datagrams.iter().map(Vec::len).sum()
}

/// Returns the number of messages in which the system takes the datagrams: a shorter one ends its
/// message, a longer one begins another.
fn messages(datagrams: &[Vec<u8>]) -> usize {
    let mut messages = 0;
    let (mut segment, mut last) = (0, 0);
    for len in datagrams.iter().map(Vec::len) {
        if messages == 0 || last < segment || len > segment {
            (messages, segment) = (messages + 1, len);
        }
        last = len;
    }
    messages
}

/// Octets of units: small ones, those that nearly fit a packet, and large ones.
fn lens() -> impl Strategy<Value = Vec<usize>> {
    let mixed =
        vec(prop_oneof![20..80_usize, 900..1300_usize, 1300..1500_usize, 20..9000_usize], 1..24);
    let equal = (20..9000_usize, 1..40_usize).prop_map(|(len, count)| vec![len; count]);
    let near = (1000..9000_usize, vec(0..40_usize, 1..40))
        .prop_map(|(len, more)| more.into_iter().map(|more| len + more).collect());
    prop_oneof![mixed, equal, near]
}

/// Octets of units that fit a packet each, every second one longer.
fn unlike_pairs() -> impl Strategy<Value = Vec<usize>> {
    let lens = (600..900_usize, 0..255_usize, 1..20_usize);
    lens.prop_map(|(len, more, count)| [len, len + more].repeat(count))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_arrive_whole_and_no_more_is_added_than_allowed(
        kind in prop::sample::select(&KINDS[..]), suite in prop::sample::select(&SUITES[..]),
        frames in vec(lens(), 1..4), limit in prop_oneof![150..1500_usize, 1472..1473_usize],
        per_mille in prop_oneof![0..40_u16, 20..21_u16, 0..=1000_u16], seed in any::<u64>(),
    ) {
        let mut random = Seeded(seed);
        let mut full = sender(kind, limit, suite);
        let mut padded = sender(kind, limit, suite).with_padding_limit(per_mille);
        let mut listener = listener(kind, suite, |_| {});
        let mut batch = Batch::new();
        let (mut all, mut whole) = (Vec::new(), Vec::new());
        for lens in &frames {
            let source = source(kind, lens, &mut random);
            let least = datagrams(&mut full, &mut batch, &source.frame);
            let sent = datagrams(&mut padded, &mut batch, &source.frame);
            prop_assert!(sent.iter().all(|datagram| datagram.len() <= limit));
            let added = octets(&sent) - octets(&least);
            prop_assert!(added * 1000 <= octets(&least) * usize::from(per_mille), "{added}");
            all.extend(sent);
            whole.push(source.delivered(kind));
        }
        prop_assert_eq!(received(&mut listener, &all), whole);
        let statistics = padded.statistics();
        prop_assert!(per_mille > 0 || statistics.padding_octets == 0);
        prop_assert_eq!(statistics.payload_octets, listener.receiver.statistics().payload_octets);
    }

    #[test]
    fn header_extensions_that_few_packets_have_allow_no_more_padding(
        kind in prop::sample::select(&KINDS[..]), lens in prop_oneof![lens(), unlike_pairs()],
        limit in 1400..1500_usize, per_mille in 0..150_u16, seed in any::<u64>(),
        mid in "[a-z]{0,20}",
        elements in vec((prop::sample::select(&PLACES[..]), 1..4_u8, 1..120_usize), 0..4),
    ) {
        let map = (1..4).fold(ExtensionMap::default(), |map, id| map.with_own(id).unwrap());
        let map = map.with(ExtensionKind::Mid, 200).unwrap();
        let map = map.with(ExtensionKind::TransportSequence, 201).unwrap();
        let elements = elements.into_iter().fold(FrameElements::default(), |all, (place, id, len)| {
            all.with(place, id, vec![7; len])
        });
        let source = source(kind, &lens, &mut Seeded(seed));
        let sent = [0, per_mille].map(|per_mille| {
            let sender = sender(kind, limit, None).with_padding_limit(per_mille);
            let mid = Some(&mid[..]).filter(|mid| !mid.is_empty());
            let mut sender = sender.with_extensions(map).with_names(mid, None).unwrap();
            let (mut batch, mut octets) = (Batch::new(), 0);
            let mut outgoing = sender.push_with(&source.frame, None, None, &elements).unwrap();
            while outgoing.fill(&mut batch) {
                octets += batch.bytes().len();
            }
            octets
        });
        let added = sent[1] - sent[0];
        prop_assert!(added * 1000 <= sent[0] * usize::from(per_mille), "{added} to {}", sent[0]);
    }

    #[test]
    fn wrong_counts_of_padding_are_dropped(
        kind in prop::sample::select(&KINDS[..2]), suite in prop::sample::select(&SUITES[..]),
        len in 1460..6000_usize, count in any::<u8>(), at in any::<prop::sample::Index>(),
        body in 0..300_usize, seed in any::<u64>(),
    ) {
        // A packet in the middle of a unit claims padding.
        let mut random = Seeded(seed);
        let source = source(kind, &[len, len], &mut random);
        let mut sent = datagrams(&mut sender(kind, 1472, None), &mut Batch::new(), &source.frame);
        // The loss of a source's first packet cannot be noticed.
        let at = 1 + at.index(sent.len() - 1);
        let packet = &mut sent[at];
        packet[0] |= 0x20;
        packet.resize(12 + body, 1);
        if body > 0 {
            packet[11 + body] = count;
        }
        let is_valid = count > 0 && usize::from(count) <= body;
        let mut listener = listener(kind, suite, |_| {});
        if let Some(suite) = suite {
            let mut protector =
                Protector::new(&Policy::new(suite), &master(suite, 7, &[])).unwrap();
            for packet in &mut sent {
                protector.protect(packet).unwrap();
            }
        }
        let frames = received(&mut listener, &sent);
        prop_assert!(is_valid || frames.is_empty());
        let packets = sent.len() as u64 - u64::from(!is_valid);
        // The source has ended by now.
        let sources = listener.receiver.statistics().ended;
        prop_assert_eq!(sources.first().map_or(0, |source| source.received), packets);
    }
}

#[test]
fn many_equal_units_are_few_messages() {
    for kind in KINDS {
        for (units, len) in [(100, 6670), (200, 3335), (400, 1667)] {
            let source = source(kind, &vec![len; units], &mut Seeded(1));
            let mut batch = Batch::new();
            let full = datagrams(&mut sender(kind, 1472, None), &mut batch, &source.frame);
            let mut padding = sender(kind, 1472, None).with_padding_limit(20);
            let padded = datagrams(&mut padding, &mut batch, &source.frame);
            assert!(messages(&full) >= units, "{kind:?} {units}");
            assert!(messages(&padded) <= 4, "{kind:?} {units}: {}", messages(&padded));
            assert_eq!(padded.len(), full.len(), "{kind:?} {units}");
        }
    }
}

/// Lines do not fill packets: one that holds the end of a line has one more line header.
#[test]
fn lines_of_any_length_are_few_messages() {
    for (sampling, depth, width, height) in [
        (Sampling::YCbCr422, 10, 3840, 2160),
        (Sampling::YCbCr422, 8, 1920, 1080),
        (Sampling::YCbCr420, 10, 1916, 1080),
        (Sampling::Rgb, 8, 1366, 768),
        (Sampling::YCbCr422, 8, 320, 180),
        (Sampling::Rgba, 16, 100, 400),
        // Three lines are shorter than a packet, which has no more of them.
        (Sampling::YCbCr422, 8, 160, 900),
        (Sampling::YCbCr422, 8, 224, 900),
    ] {
        let video = RawVideo::new(sampling, depth, width, height).unwrap();
        let mut batch = Batch::new();
        let frame = vec![7; video.frame_len()];
        let full = datagrams(&mut sender_of(&Raw::new(video), 1472, None), &mut batch, &frame);
        let mut padding = sender_of(&Raw::new(video), 1472, None).with_padding_limit(20);
        let padded = datagrams(&mut padding, &mut batch, &frame);
        assert!(messages(&padded) <= 2, "{video:?}: {}", messages(&padded));
        assert_eq!(padded.len(), full.len(), "{video:?}");
        let added = padding.statistics().padding_octets as usize;
        assert_eq!(octets(&padded), octets(&full) + added, "{video:?}");
        assert!(added <= octets(&full) / 50, "{video:?}: {added}");
        assert!(octets(&padded[..1]) <= 1472);
    }
}

#[test]
fn units_of_any_length_are_paired() {
    let mut random = Seeded(3);
    let lens: Vec<usize> = (0..100).map(|_| 3000 + random.below(7000) as usize).collect();
    let source = source(Kind::H265, &lens, &mut random);
    let mut batch = Batch::new();
    let full = datagrams(&mut sender(Kind::H265, 1472, None), &mut batch, &source.frame);
    let mut padding = sender(Kind::H265, 1472, None).with_padding_limit(20);
    let padded = datagrams(&mut padding, &mut batch, &source.frame);
    assert!(messages(&full) > 95 && messages(&padded) < 60, "{}", messages(&padded));
}

#[test]
fn a_frame_of_one_unit_is_sent_in_full_packets() {
    for kind in KINDS {
        let source = source(kind, &[100_000], &mut Seeded(1));
        let mut batch = Batch::new();
        let full = datagrams(&mut sender(kind, 1472, None), &mut batch, &source.frame);
        let mut padding = sender(kind, 1472, None).with_padding_limit(20);
        assert_eq!(datagrams(&mut padding, &mut batch, &source.frame), full);
    }
}

#[test]
fn retransmissions_are_sent_without_the_padding() {
    let (payload_type, ssrc) = RTX;
    for suite in SUITES {
        let kind = Kind::H264;
        let retransmission =
            Retransmission::Rtx { payload_type, ssrc, first_sequence: SequenceNumber(5) };
        let mut sender =
            sender(kind, 1472, suite).with_padding_limit(20).with_history(4096, retransmission);
        let mut listener = listener(kind, suite, |config| {
            config.retransmission = Some((payload_type, Some(ssrc)));
            config.requests = Some(RequestTiming::default());
        });
        let source = source(kind, &[1666; 40], &mut Seeded(1));
        let mut batch = Batch::with_history(1 << 20);
        let sent = datagrams(&mut sender, &mut batch, &source.frame);
        assert!(sender.statistics().padding_octets > 0);
        let padded: Vec<usize> = (1..sent.len()).filter(|n| sent[*n][0] & 0x20 != 0).collect();
        let kept: Vec<Vec<u8>> =
            (0..sent.len()).filter(|n| !padded.contains(n)).map(|n| sent[n].clone()).collect();
        let mut views = kept.clone();
        let mut views: Vec<&mut [u8]> = views.iter_mut().map(|copy| &mut copy[..]).collect();
        let from = SocketAddr::from(([192, 0, 2, 1], 5004));
        listener.receiver.handle_datagrams(listener.epoch, from, &mut views);
        let mut repeated = Batch::new();
        for n in padded {
            let number = SequenceNumber(65_500_u16.wrapping_add(n as u16));
            assert!(sender.retransmit(Instant::now(), number, &batch, &mut repeated).unwrap());
        }
        let repeated: Vec<Vec<u8>> = repeated.datagrams().map(<[u8]>::to_vec).collect();
        assert!(repeated.iter().all(|packet| packet[0] == 0x80), "{suite:?}");
        assert_eq!(received(&mut listener, &repeated), [source.delivered(kind)], "{suite:?}");
    }
}

#[test]
fn repair_packets_recover_padded_packets() {
    let suites = SUITES.into_iter();
    let formats = [FecFormat::FlexFec, FecFormat::FlexFec03, FecFormat::Ulp];
    for (suite, format) in suites.flat_map(|suite| formats.map(|format| (suite, format))) {
        let kind = Kind::H265;
        let [payload_type, red] = [115, 116].map(|value| PayloadType::new(value).unwrap());
        let red = format.is_in_red().then_some(red);
        let fec = FecSending {
            format,
            payload_type,
            red,
            ssrc: Ssrc(8),
            first_sequence: SequenceNumber(9),
            percent: 20,
            span: std::time::Duration::from_millis(100),
        };
        let mut sender = sender(kind, 1472, suite).with_padding_limit(20).with_fec(fec).unwrap();
        let mut listener = listener(kind, suite, |config| {
            config.fec = Some(FecReception {
                format,
                payload_type,
                red,
                ssrc: None,
                wait: std::time::Duration::from_millis(200),
                limits: DecoderLimits::default(),
            });
        });
        let source = source(kind, &[1667; 40], &mut Seeded(1));
        let mut batch = Batch::new();
        let mut sent = datagrams(&mut sender, &mut batch, &source.frame);
        sender.keep_alive(&mut batch);
        sent.extend(batch.datagrams().map(<[u8]>::to_vec));
        let before = sent.len();
        let mut n = 0;
        // Every twentieth padded packet is lost, far enough apart to be recovered.
        sent.retain(|packet| {
            let is_padded = packet[0] & 0x20 != 0;
            n += usize::from(is_padded);
            !is_padded || n % 20 != 3
        });
        assert!(sent.len() < before, "{format:?} {suite:?}");
        assert_eq!(
            received(&mut listener, &sent),
            [source.delivered(kind)],
            "{format:?} {suite:?}"
        );
        assert!(listener.receiver.statistics().repaired > 0);
    }
}

#[test]
fn the_last_packets_have_the_marker_bit_and_no_padding() {
    let source = source(Kind::H264, &[1666; 40], &mut Seeded(1));
    let mut sender = sender(Kind::H264, 1472, None).with_padding_limit(20);
    let sent = datagrams(&mut sender, &mut Batch::new(), &source.frame);
    let last = Packet::parse(sent.last().unwrap()).unwrap();
    assert!(last.marker() && last.padding_len() == 0);
}
