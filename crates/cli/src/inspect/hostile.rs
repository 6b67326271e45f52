//! Malicious captures: reading arbitrary octets ends within limits and without a panic.

use std::io::Cursor;
use std::time::Duration;

use super::capture::{CaptureError, CaptureReader};
use super::codec::Encodings;
use super::intake::Intake;
use super::report::Report;
use super::streams::{Settings, Streams};

/// A deterministic generator of pseudorandom numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Returns IP packets of every kind that is parsed.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    // Slices of H.264, an aggregation packet and fragments, each with the number of its picture.
    let payloads: [(u8, &[u8]); 6] = [
        (0, &[0x65, 0x88, 1, 2]),
        (1, &[0x78, 0, 2, 0x67, 1, 0, 2, 0x68, 2]),
        (1, &[0x7c, 0x85, 0x88, 4, 5]),
        (1, &[0x7c, 0x45, 3, 4, 5]),
        (2, &[0x41, 0x9a, 1, 2]),
        (3, &[0x41, 0x9a, 3, 4]),
    ];
    for (n, (picture, payload)) in (0..6_u8).zip(payloads) {
        let rtp = [&[0x80, 96, 0, n, 0, 0, picture, 0, 0, 0, 0, 9], payload].concat();
        packets.push(v4(&[], &rtp));
        let [high, low] = (u16::from(n) * 960).to_be_bytes();
        packets
            .push(v6(&[0x90, 111, 0, n, 0, 0, high, low, 0, 0, 0, 8, 0xbe, 0xde, 0, 0, 0x78, 1]));
    }
    let report = [0x81, 201, 0, 7, 0, 0, 0, 9, 0, 0, 0, 8];
    packets.push(v4(&[1; 4], &[&report[..], &[1; 20]].concat()));
    let names = [0x81, 202, 0, 3, 0, 0, 0, 9, 1, 4, b'n', b'a', b'm', b'e', 0, 0];
    packets.push(v4(&[], &names));
    let mut part = v4(&[], &[7; 24]);
    part[6] = 0x20;
    packets.push(part);
    packets
}

fn udp(data: &[u8]) -> Vec<u8> {
    let len = data.len() as u8 + 8;
    [&[0x10, 0, 0x20, 0, 0, len, 0, 0], data].concat()
}

fn v4(options: &[u8], data: &[u8]) -> Vec<u8> {
    let datagram = udp(data);
    let header = 20 + options.len();
    let len = (header + datagram.len()) as u8;
    let head = [0x40 | (header / 4) as u8, 0, 0, len, 0, 7, 0, 0, 64, 17, 0, 0];
    [&head[..], &[10, 0, 0, 1, 10, 0, 0, 2], options, &datagram].concat()
}

fn v6(data: &[u8]) -> Vec<u8> {
    let payload = [&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp(data)].concat();
    [&[0x60, 0, 0, 0, 0, payload.len() as u8, 60, 64][..], &[1; 32], &payload].concat()
}

fn pcap(link: u8) -> Vec<u8> {
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    capture.extend([link, 0, 0, 0]);
    let header = [[2; 12].as_slice(), &[0x81, 0, 0, 1]].concat();
    for (n, packet) in packets().into_iter().enumerate() {
        let kind: &[u8] = if packet[0] >> 4 == 6 { &[0x86, 0xdd] } else { &[8, 0] };
        let link: &[u8] = if link == 1 { &[&header, kind].concat() } else { &[] };
        let frame = [link, &packet].concat();
        let len = frame.len() as u8;
        capture.extend([9, 0, 0, 0, n as u8, 0, 1, 0, len, 0, 0, 0, len, 0, 0, 0]);
        capture.extend(frame);
    }
    capture
}

fn pcapng() -> Vec<u8> {
    let block = |kind: u8, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = [body.len() as u8 + 12, 0, 0, 0];
        [&[kind, 0, 0, 0], &len[..], &body, &len].concat()
    };
    let section = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    let mut capture = block(0, &section);
    capture[..4].copy_from_slice(&[0x0a, 0x0d, 0x0d, 0x0a]);
    let options = [9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    capture.extend(block(1, &[&[101, 0, 0, 0, 0, 0, 0, 0], &options[..]].concat()));
    for (n, packet) in packets().into_iter().enumerate() {
        let len = packet.len() as u8;
        let head = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, n as u8, 0, len, 0, 0, 0, len, 0, 0, 0];
        capture.extend(block(6, &[&head[..], &packet].concat()));
        if n % 4 == 0 {
            capture.extend(block(3, &[&[len, 0, 0, 0][..], &packet].concat()));
        }
    }
    capture
}

/// Makes one to four random changes: of octets or lengths, by cutting or repeating.
fn mutate(capture: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(capture.len());
        match random.below(8) {
            0 => capture.truncate(at),
            1 => {
                let end = (at + random.below(64)).min(capture.len());
                let piece = capture[at..end].to_vec();
                let to = random.below(capture.len());
                capture.splice(to..to, piece);
            }
            2 => {
                let end = (at + random.below(16)).min(capture.len());
                capture.drain(at..end);
            }
            3 => capture[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            _ => capture[at] ^= 1 << random.below(8),
        }
        if capture.is_empty() {
            break;
        }
    }
}

/// Reads a capture to its end, and writes the findings as text and as JSON.
fn read(capture: Vec<u8>) -> Result<Report, CaptureError> {
    let len = capture.len();
    let mut reader = CaptureReader::new(Cursor::new(capture))?;
    let settings =
        Settings { encodings: Encodings::default(), reorder_time: Duration::from_millis(50) };
    let mut intake = Intake::new(Streams::new(settings, None));
    let ended = loop {
        match reader.next_packet(|captured| intake.take(captured)) {
            Ok(Some(taken)) => taken.unwrap(),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        assert!(reader.packets() <= len as u64 / 16);
    };
    intake.streams.finish().unwrap();
    let report = Report::new("x".to_owned(), "pcap", reader.packets(), &intake);
    assert!(!report.to_string().is_empty());
    assert!(serde_json::to_string(&report).is_ok());
    ended.map(|()| report)
}

#[test]
fn the_captures_are_sound_before_they_are_damaged() {
    for capture in [pcap(101), pcap(1), pcapng()] {
        let report = read(capture).unwrap();
        let codecs: Vec<&str> = report.streams.iter().map(|stream| &*stream.codec).collect();
        assert_eq!(codecs, ["H.264", "Opus"]);
        assert_eq!(report.rtcp_packets.len(), 2);
        assert_eq!(report.skipped.fragments, 1);
    }
}

#[test]
fn a_hundred_thousand_damaged_captures_are_read_without_a_panic() {
    let sound = [pcap(101), pcap(1), pcapng()];
    // Returns how many of `count` damaged captures are read to their end.
    let read_many = |seed, count| {
        let mut random = Random(seed);
        let damaged = (0..count).map(|n| {
            let mut capture = sound[n % sound.len()].clone();
            mutate(&mut capture, &mut random);
            read(capture)
        });
        damaged.flatten().count()
    };
    let whole: usize = std::thread::scope(|scope| {
        let halves = [0x5eed, 0x5eed_5eed].map(|seed| scope.spawn(move || read_many(seed, 50_000)));
        halves.map(|half| half.join().unwrap()).iter().sum()
    });
    let broken = 100_000 - whole;
    // Many captures are read to their end, and many are not.
    assert!(whole > 10_000 && broken > 10_000, "{whole} {broken}");
}
