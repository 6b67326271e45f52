//! Shared by the fuzz targets: octets cut into packets, and receivers with small limits.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod delivery;
pub mod dtls;
pub mod fec;
pub mod frames;
pub mod ice;
pub mod negotiation;
pub mod packing;
pub mod parsers;
pub mod png;
pub mod rate;
pub mod repairs;
pub mod seeds;
pub mod targets;
pub mod texture;
pub mod whip;
pub mod window;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::control::{MediaSent, Participant, ParticipantConfig, Reception};
use rushes_proto::payload::{
    Delivery, FrameBuilder, FramePool, FrameSettings, Framing, PacketInfo, PayloadFormat,
};
use rushes_proto::repair::fec::{DecoderLimits, FecFormat};
use rushes_proto::rtcp::{Compound, Packet, XrBlock};
use rushes_proto::rtp::{Elements, Extension, ExtensionKind, ExtensionMap, TWO_BYTE_PROFILE};
use rushes_proto::srtp::{
    BATCH_MAX, ExtensionIds, MasterKey, Policy, Protector, SrtcpProtector, SrtcpUnprotector, Suite,
    UnprotectError, Unprotector,
};
use rushes_proto::stream::{FecReception, Receiver, ReceiverConfig};
use rushes_proto::timer::TimerConfig;
use rushes_proto::{ClockRate, ExtendedSequence, NtpTime, PayloadType, RtpTimestamp, Ssrc};
use rushes_zrtp::{AlgorithmList, Config, KeyAgreement, MemoryStore, Session};

/// Octets in the largest frame that the receivers accept.
pub const FRAME_LEN_MAX: usize = 64 << 10;

/// Cuts `octets` into packets: two octets before each give its length and its flags.
pub fn packets(mut octets: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[len, flags], rest) = octets.split_first_chunk()?;
        let (packet, rest) = rest.split_at(usize::from(len).min(rest.len()));
        octets = rest;
        Some((flags, packet))
    })
}

fn settings(flags: u8) -> FrameSettings {
    FrameSettings {
        delivery: if flags & 1 == 0 { Delivery::Unit } else { Delivery::AccessUnit },
        framing: if flags & 2 == 0 { Framing::AnnexB } else { Framing::LengthPrefixed },
        frame_len_max: FRAME_LEN_MAX,
        incomplete: flags & 8 != 0,
        packed: flags & 16 != 0,
    }
}

/// Returns the elements of header extensions that streams read: known ones, and one of an application.
fn extensions() -> ExtensionMap {
    (1..)
        .zip(ExtensionKind::ALL)
        .fold(ExtensionMap::default(), |map, (id, kind)| map.with(kind, id).unwrap_or(map))
        .with_own(200)
        .unwrap_or_default()
}

/// Reads `octets` as a header extension, whose profile are the first two: what frames have of it is
/// read again, each element once.
pub fn extension(octets: &[u8]) {
    let Some((profile, data)) = octets.split_first_chunk() else { return };
    let data = &data[..data.len() & !3];
    let extension = Extension { profile: u16::from_be_bytes(*profile), data };
    let (map, mut out) = (extensions(), Vec::new());
    let read = map.read(extension, Some(NtpTime(1 << 40)), &mut out);
    let Some(elements) = Elements::new(TWO_BYTE_PROFILE, &out) else { return };
    let elements: Vec<_> = elements.map(|element| element.expect("it was written")).collect();
    assert!(read.is_ok() || elements.is_empty());
    for (n, element) in elements.iter().enumerate() {
        assert!(map.contains(element.id));
        assert!(elements[..n].iter().all(|other| other.id != element.id));
    }
}

/// Passes the payloads, losses and markers in `octets` to a depacketiser of `format`.
pub fn depacketise(format: &dyn PayloadFormat, octets: &[u8]) {
    let Some((&flags_of_frames, octets)) = octets.split_first() else { return };
    let mut depacketiser = format.depacketiser();
    let mut frame = FrameBuilder::new(format, settings(flags_of_frames), FramePool::new());
    let arrival = Instant::now();
    for (flags, payload) in packets(octets) {
        if flags & 4 != 0 {
            depacketiser.lost();
            frame.lost(u64::from(flags >> 4));
        }
        let packet = PacketInfo {
            ssrc: Ssrc(1),
            timestamp: RtpTimestamp(u32::from(flags >> 6)),
            marker: flags & 1 != 0,
            arrival,
            stamp: arrival,
            ecn: rushes_proto::Ecn::NotCapable,
            captured: None,
        };
        frame.begin_packet(packet);
        if depacketiser.push(payload, packet, &mut frame).is_err() {
            depacketiser.lost();
            frame.damage();
        }
        frame.end_packet();
        while let Some(frame) = frame.pop() {
            assert!(frame.len() <= FRAME_LEN_MAX);
            assert!(frame.missing().last().is_none_or(|range| range.end <= frame.len()));
            assert!(frame.missing().is_empty() || flags_of_frames & 8 != 0);
        }
        // Units waiting, one unit arriving, and the bookkeeping of each.
        assert!(depacketiser.held_len() <= 4 * FRAME_LEN_MAX + (2 << 20));
    }
    depacketiser.finish(&mut frame);
    frame.finish_source();
    while let Some(frame) = frame.pop() {
        assert!(frame.len() <= FRAME_LEN_MAX);
    }
}

/// The repair packets of receivers that use them: ULPFEC within RED, whose packets are in the stream of
/// the media.
pub const FEC: FecReception = FecReception {
    format: FecFormat::Ulp,
    payload_type: PayloadType::TEXTURE,
    red: Some(PayloadType::GENERIC),
    ssrc: None,
    wait: Duration::from_millis(20),
    limits: DecoderLimits { packets: 64, repairs: 8, packet_len: 1500 },
};

/// Passes the datagrams and times in `octets` to two receivers, one by one and in runs.
pub fn receive(format: Arc<dyn PayloadFormat>, octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else { return };
    let mut config = ReceiverConfig::new(PayloadType::H265, format.clock_rate());
    config.frame = settings(*flags);
    config.reorder_packets_max = 16;
    config.reorder_len_max = 4096;
    config.sources_max = 3;
    config.source_timeout = Duration::from_millis(100);
    config.fec = (flags & 4 != 0).then_some(FEC);
    config.extensions = extensions();
    config.wide_arrivals = true;
    let receivers = [(); 2].map(|()| Receiver::new(format.clone(), config.clone()));
    let [Ok(mut single), Ok(mut runs)] = receivers else { return };
    let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 5004));
    let mut now = Instant::now();
    let mut run: Vec<Vec<u8>> = Vec::new();
    let mut packets = packets(octets).peekable();
    while let Some((flags, datagram)) = packets.next() {
        if run.is_empty() {
            now += Duration::from_millis(u64::from(flags));
            single.handle_timeout(now);
            runs.handle_timeout(now);
        }
        single.handle_datagram_from(now, Some(from), datagram);
        run.push(datagram.to_vec());
        // Without a time step, datagrams arrive together.
        if packets.peek().is_some_and(|(flags, _)| *flags == 0) {
            continue;
        }
        let mut views: Vec<&mut [u8]> = run.iter_mut().map(|one| &mut one[..]).collect();
        runs.handle_datagrams(now, from, &mut views);
        run.clear();
        loop {
            let (one, other) = (single.poll_frame(), runs.poll_frame());
            assert_eq!(one.as_deref(), other.as_deref());
            let (Some(frame), Some(other)) = (one, other) else { break };
            assert!(frame.first_elements().eq(other.first_elements()));
            assert!(frame.last_elements().eq(other.last_elements()));
            assert!(frame.len() <= FRAME_LEN_MAX);
        }
        loop {
            let events = [single.poll_event(), runs.poll_event()];
            assert_eq!(format!("{:?}", events[0]), format!("{:?}", events[1]));
            if events[0].is_none() {
                break;
            }
        }
        assert!(single.statistics().held_octets <= 1 << 20);
        assert!(runs.statistics().held_octets <= 1 << 20);
    }
}

/// Calls every accessor of an RTCP datagram.
pub fn read_report(datagram: &[u8]) {
    let Ok(compound) = Compound::parse(datagram) else { return };
    for packet in compound.packets().flatten() {
        match packet {
            Packet::SenderReport(report) => assert!(report.blocks().count() <= 31),
            Packet::ReceiverReport(report) => assert!(report.blocks().count() <= 31),
            Packet::SourceDescription(description) => {
                for item in description.chunks().flat_map(|chunk| chunk.items()) {
                    let _ = item.private();
                }
            }
            Packet::Bye(bye) => assert!(bye.sources().count() <= 31),
            Packet::TransportFeedback(feedback) => {
                let nacks = feedback.nacks().into_iter().flatten();
                assert!(nacks.flat_map(|nack| nack.sequences()).count() <= 17 * datagram.len());
                let _ = feedback.bit_rate_requests().map(Iterator::count);
                let _ = feedback.bit_rate_notification().map(Iterator::count);
                let blocks = feedback.congestion().into_iter().flat_map(|report| report.blocks());
                assert!(blocks.flat_map(|block| block.packets()).count() <= datagram.len());
                let wide = feedback.transport_wide();
                assert!(wide.into_iter().flat_map(|wide| wide.packets()).count() <= 16_384);
            }
            Packet::PayloadFeedback(feedback) => {
                let _ = feedback.full_intra_requests().map(Iterator::count);
                let _ = feedback.estimate().map(|estimate| estimate.sources().count());
            }
            Packet::ExtendedReport(report) => {
                for block in report.blocks() {
                    if let XrBlock::Delays(delays) = block {
                        assert!(delays.iter().count() <= datagram.len());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns a participant with the SSRC `own`.
fn participant(own: Ssrc, start: Instant) -> Participant {
    let config = ParticipantConfig {
        ssrc: own,
        retransmission: None,
        cname: "fuzz".to_owned(),
        description: Vec::new(),
        clock_rate: ClockRate::VIDEO,
        wall_clock: (start, NtpTime(0)),
        timer: TimerConfig::new(1_000_000),
        seed: 1,
        packet_len_max: 1200,
        header_len: 28,
        reduced_size: false,
        sources_max: 4,
    };
    Participant::new(config, start)
}

/// Passes datagrams cut from `octets` to a participant with the SSRC `own`, and parses its answers.
pub fn participate(own: Ssrc, octets: &[u8]) {
    let start = Instant::now();
    let mut participant = participant(own, start);
    participant.set_circuit_breakers(true);
    let mut now = start;
    let mut media = MediaSent {
        packets: 1,
        octets: 2,
        last: Some((RtpTimestamp(3), start)),
        ..MediaSent::default()
    };
    for (flags, datagram) in packets(octets) {
        now += Duration::from_millis(u64::from(flags) * 16);
        media.packets += u64::from(flags % 4);
        media.octets += u64::from(flags) * 100;
        participant.note_sent(now, &media);
        let _ = participant.handle_datagram(now, None, datagram);
        let highest = ExtendedSequence(0x1_0000 + u64::from(flags));
        let reception = Reception {
            ssrc: Ssrc(u32::from(flags)),
            expected: u64::from(flags),
            received: 1,
            highest,
            jitter: 0,
            last_heard: now,
        };
        while let Some(answer) = participant.poll_datagram(now, &media, &[reception]) {
            assert!(answer.len() <= 1200);
            assert!(Compound::parse(answer).is_ok());
        }
        while participant.poll_event().is_some() {}
        assert!(participant.remotes().len() <= 4);
    }
}

/// Returns the policy and two keys, from the first octets, and the remaining octets.
fn agreement(octets: &[u8]) -> Option<(Policy, [MasterKey; 2], &[u8])> {
    let (&[suite, flags, rate, mki_len], rest) = octets.split_first_chunk()?;
    let suite = Suite::ALL[usize::from(suite) % Suite::ALL.len()];
    let mut policy = Policy::new(suite);
    policy.encrypt_rtp = flags & 1 == 0 || suite.is_aead();
    policy.encrypt_rtcp = flags & 2 == 0;
    policy.cryptex = flags & 12 == 4;
    if flags & 12 == 8 {
        policy.encrypted_extensions = ExtensionIds::new(&[1, 2, 14, 200]);
    }
    policy.key_derivation_rate = (rate <= 24).then_some(rate);
    policy.window = 128;
    policy.sources_max = 3;
    let key = |n: u8| {
        let key = MasterKey::new(suite, &vec![n; suite.key_and_salt_len()]).ok()?;
        key.with_mki(&vec![n; usize::from(mki_len % 9)]).ok()
    };
    Some((policy, [key(1)?, key(2)?], rest))
}

/// Returns the packet `clear` as a receiver gets it: cryptex adds an empty extension to a packet
/// that has contributing sources and no extension (RFC 9335 section 5.1).
fn as_received(policy: &Policy, clear: &[u8]) -> Vec<u8> {
    let mut received = clear.to_vec();
    let end = 12 + 4 * usize::from(clear[0] & 15);
    let encrypts = policy.encrypt_rtp && policy.suite != Suite::NullHmacSha1_80;
    if policy.cryptex && encrypts && clear[0] & 0x10 == 0 && end > 12 {
        received[0] |= 0x10;
        received.splice(end..end, [0xbe, 0xde, 0, 0]);
    }
    received
}

/// The newest sequence number and the round of each source that was protected.
#[derive(Default)]
struct Rounds(HashMap<Ssrc, (u16, u32)>);

impl Rounds {
    /// Returns the roll-over counter with which `packet` was just protected.
    fn of(&mut self, sender: &Protector, packet: &[u8]) -> u32 {
        let ssrc = Ssrc(u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]));
        let sequence = u16::from_be_bytes([packet[2], packet[3]]);
        let round = sender.roll_over_counter(ssrc).expect("the source has sent");
        let (newest, before) = self.0.entry(ssrc).or_insert((sequence, round));
        if *before == round && sequence < *newest {
            return round;
        }
        if *before == round && round > 0 && sequence - *newest > 0x8000 {
            return round - 1;
        }
        (*newest, *before) = (sequence, round);
        round
    }
}

/// Protects packets cut from `octets`, and unprotects both these and the original packets, one by one
/// and in batches; an unchanged protected packet must be restored.
pub fn secure(octets: &[u8]) {
    let Some((policy, keys, octets)) = agreement(octets) else { return };
    let Ok(mut sender) = Protector::new(&policy, &keys[0]) else { return };
    let new = || Unprotector::new(&policy, &keys[0]).expect("the sender accepts the policy");
    let (mut single, mut together) = (new(), new());
    single.add_master_key(&keys[1]).expect("the keys have the same suite");
    together.add_master_key(&keys[1]).expect("the keys have the same suite");
    let mut arrivals: Vec<Vec<u8>> = Vec::new();
    let (mut rounds, mut current) = (Rounds::default(), 0);
    for (flags, packet) in packets(octets) {
        let mut protected = packet.to_vec();
        if flags & 1 == 0 && sender.protect(&mut protected).is_ok() {
            let round = rounds.of(&sender, packet);
            let ssrc = Ssrc(u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]));
            let mut receiver =
                Unprotector::new(&policy, &keys[current]).expect("the sender accepts the policy");
            receiver.set_roll_over_counter(ssrc, round).expect("the receiver has no other source");
            let mut copy = protected.clone();
            let len = receiver.unprotect(&mut copy);
            assert_eq!(copy[..len.expect("the packet is authentic")], as_received(&policy, packet));
        } else {
            protected = packet.to_vec();
        }
        if flags & 2 != 0 {
            let changed = sender.set_master_key(&keys[1]);
            assert_eq!(changed.is_ok(), current == 0, "a key must be accepted once only");
            current = 1;
        }
        if let Some(octet) = protected.get_mut(usize::from(flags >> 3)) {
            *octet ^= flags & 4;
        }
        arrivals.push(protected);
    }
    for arrivals in arrivals.chunks(BATCH_MAX + 1) {
        let mut copies = arrivals.to_vec();
        let mut views: Vec<&mut [u8]> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
        let mut outcomes = vec![Err(UnprotectError::Expired); arrivals.len()];
        together.unprotect_batch(&mut views, &mut outcomes);
        for ((arrival, copy), outcome) in arrivals.iter().zip(&copies).zip(outcomes) {
            let mut arrival = arrival.clone();
            let own = single.unprotect(&mut arrival);
            assert_eq!(own, outcome);
            if let Ok(len) = own {
                assert_eq!(arrival[..len], copy[..len]);
            }
        }
    }
}

/// Protects and unprotects reports in the same way; reports are unprotected one by one.
pub fn secure_reports(octets: &[u8]) {
    let Some((policy, keys, octets)) = agreement(octets) else { return };
    let Ok(mut sender) = SrtcpProtector::new(&policy, &keys[0]) else { return };
    let new = || {
        let mut receiver =
            SrtcpUnprotector::new(&policy, &keys[0]).expect("the sender accepts the policy");
        receiver.add_master_key(&keys[1]).expect("the keys have the same suite");
        receiver
    };
    let (mut receiver, mut has_changed) = (new(), false);
    for (flags, report) in packets(octets) {
        let mut protected = report.to_vec();
        if flags & 1 == 0 && sender.protect(&mut protected).is_ok() {
            let mut copy = protected.clone();
            let len = new().unprotect(&mut copy).expect("the report is authentic");
            assert_eq!(copy[..len], *report);
        } else {
            protected = report.to_vec();
        }
        if flags & 2 != 0 {
            let changed = sender.set_master_key(&keys[1]);
            assert_eq!(changed.is_ok(), !has_changed, "a key must be accepted once only");
            has_changed = true;
        }
        if let Some(octet) = protected.get_mut(usize::from(flags >> 3)) {
            *octet ^= flags & 4;
        }
        if let Ok(len) = receiver.unprotect(&mut protected) {
            assert!(len <= protected.len());
            read_report(&protected[..len]);
        }
    }
}

/// Returns a ZRTP packet around `body` with a correct checksum, so that the parsers behind it are
/// reached.
pub fn zrtp_packet(kind: u8, source: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![16 | (kind & 1), 0, 0, 1];
    packet.extend_from_slice(b"ZRTP\0\0\0");
    packet.push(source);
    packet.extend_from_slice(body);
    let crc = packet.iter().fold(u32::MAX, |crc, &octet| {
        (0..8).fold(crc ^ u32::from(octet), |crc, _| crc >> 1 ^ ((crc & 1) * 0x82f6_3b78))
    });
    packet.extend_from_slice(&(!crc).to_le_bytes());
    packet
}

/// Creates one end of a key agreement in X25519, whose random octets are derived from `name`.
fn zrtp_end(name: u8, flags: u8) -> Session {
    let mut config = Config::new([name; 12]);
    config.algorithms.key_agreements =
        AlgorithmList::new(&[KeyAgreement::X255]).expect("the list has one element");
    config.allows_preshared = flags & 1 != 0;
    config.allows_clear = flags & 2 != 0;
    config.is_passive = flags & 4 != 0 && name == 2;
    config.packet_len_max = 128;
    let mut state = u32::from(name);
    let entropy = Box::new(move |octets: &mut [u8]| {
        for octet in octets {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *octet = (state >> 24) as u8;
        }
    });
    Session::new(config, entropy, Box::new(MemoryStore::new())).expect("the configuration is valid")
}

/// Returns every datagram of two ends that agree over a link without losses.
fn zrtp_between(flags: u8) -> Vec<Vec<u8>> {
    let now = Instant::now();
    let mut ends = [zrtp_end(1, flags), zrtp_end(2, flags)];
    for (end, session) in ends.iter_mut().enumerate() {
        session
            .add_stream(end as u32, Some(address(1 - end as u8)), now)
            .expect("the stream is new");
    }
    let mut datagrams = Vec::new();
    loop {
        let before = datagrams.len();
        for from in 0..2 {
            while let Some((stream, _, datagram)) = ends[from].poll_datagram() {
                ends[1 - from].handle_datagram(now, stream, address(from as u8), &datagram);
                datagrams.push(datagram);
            }
        }
        if datagrams.len() == before {
            return datagrams;
        }
    }
}

/// Runs two ends of ZRTP, and a link that loses, repeats, changes and invents datagrams as `octets`
/// specify; both must end without a timer, with the same string or with none.
pub fn agree(octets: &[u8]) {
    let Some((&flags, octets)) = octets.split_first() else { return };
    let start = Instant::now();
    let mut now = start;
    let mut ends = [zrtp_end(1, flags), zrtp_end(2, flags)];
    let mut streams = Vec::new();
    for n in 0..2 {
        let of_both = [0, 1].map(|end| {
            // The second end may wait for any peer to contact it.
            let knows = end == 0 || flags & 8 == 0;
            let peer = knows.then(|| address(1 - end as u8));
            ends[end].add_stream(4 * n + end as u32, peer, now).expect("the stream is new")
        });
        streams.push(of_both);
    }
    for (kind, body) in packets(octets) {
        let to = usize::from(kind >> 1 & 1);
        let stream = streams[usize::from(kind >> 2 & 1)][to];
        match kind >> 3 & 7 {
            0 => {
                let stranger = address(2 + (kind >> 6));
                let from = if kind & 1 == 0 { address(1 - to as u8) } else { stranger };
                ends[to].handle_datagram(now, stream, from, &zrtp_packet(kind, kind, body));
            }
            1 => {
                now = start.max(ends.iter().filter_map(Session::next_timeout).min().unwrap_or(now));
                ends[to].handle_timeout(now);
            }
            2 => drop(ends[1 - to].poll_datagram()),
            3 => drop(ends[to].go_clear(now, stream)),
            4 => drop(ends[to].go_secure(now, stream)),
            _ => pass_on(&mut ends, 1 - to, now, kind, body),
        }
    }
    for _ in 0..10_000 {
        for from in 0..2 {
            while let Some((stream, to, datagram)) = ends[from].poll_datagram() {
                if to == address(1 - from as u8) {
                    ends[1 - from].handle_datagram(now, stream, address(from as u8), &datagram);
                }
            }
            while ends[from].poll_event().is_some() {}
        }
        let Some(next) = ends.iter().filter_map(Session::next_timeout).min() else { break };
        now = now.max(next);
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }
    assert!(ends.iter().all(|end| end.next_timeout().is_none()), "a timer is still running");
    if let [Some(one), Some(other)] = ends.each_ref().map(Session::sas) {
        assert!(one.sas_hash == other.sas_hash, "the ends have different strings");
    }
}

/// Passes on the next datagram of end `from`, changed or twice.
fn pass_on(ends: &mut [Session; 2], from: usize, now: Instant, kind: u8, body: &[u8]) {
    let Some((stream, to, mut datagram)) = ends[from].poll_datagram() else { return };
    if to != address(1 - from as u8) {
        return;
    }
    if let (6, [at, mask, ..]) = (kind >> 3 & 7, body) {
        let end = datagram.len() - 4;
        let at = 12 + usize::from(*at) % (end - 12);
        datagram[at] ^= mask;
        datagram = zrtp_packet(datagram[0], datagram[11], &datagram[12..end]);
    }
    ends[1 - from].handle_datagram(now, stream, address(from as u8), &datagram);
    if kind >> 3 & 7 == 7 {
        ends[1 - from].handle_datagram(now, stream, address(from as u8), &datagram);
    }
}

/// Returns the address of an end: 0 and 1 are the two that agree.
fn address(end: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end], 5004))
}
