//! Captures of the library's packets, written octet by octet.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rushes::file::{MediaReader, ReadOptions, codec_of};
use rushes::format::FormatOptions;
use rushes::proto::FrameRate;
use rushes::proto::stream::{Sender, SenderConfig};
use rushes::proto::{Batch, RtpTimestamp, SequenceNumber};
use rushes::{Framing, PayloadType, Ssrc};

/// 2024-01-02 03:04:05 UTC.
pub(crate) const START: Duration = Duration::from_secs(1_704_164_645);

/// The file format of a capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Format {
    Micros,
    Nanos,
    /// pcapng, with the resolution as a power of ten or two, and an offset in seconds.
    Ng(u8, i64),
}

/// A capture file being written.
pub(crate) struct Capture {
    pub(crate) octets: Vec<u8>,
    format: Format,
    big_endian: bool,
    link: u16,
}

impl Capture {
    pub(crate) fn new(format: Format, big_endian: bool, link: u16) -> Self {
        let mut capture = Self { octets: Vec::new(), format, big_endian, link };
        match format {
            Format::Micros | Format::Nanos => {
                let nanos = format == Format::Nanos;
                capture.word(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
                capture.half_word(2);
                capture.half_word(4);
                for word in [0, 0, 262_144, u32::from(link)] {
                    capture.word(word);
                }
            }
            Format::Ng(resolution, offset) => {
                let mut section = capture.words(&[0x1a2b_3c4d]);
                section.extend(capture.halves(&[1, 0]));
                section.extend([0xff; 8]);
                capture.block(0x0a0d_0d0a, &section);
                let mut interface = capture.halves(&[link, 0]);
                interface.extend(capture.words(&[0]));
                interface.extend(capture.halves(&[9, 1]));
                interface.extend([resolution, 0, 0, 0]);
                interface.extend(capture.halves(&[14, 8]));
                interface.extend(if big_endian {
                    offset.to_be_bytes()
                } else {
                    offset.to_le_bytes()
                });
                interface.extend(capture.halves(&[0, 0]));
                capture.block(1, &interface);
                // A block of an unknown type must be skipped.
                capture.block(0x0bad_0bad, b"unknown!");
            }
        }
        capture
    }

    /// Adds an IP packet, after a header of the link layer.
    pub(crate) fn packet(&mut self, time: Duration, packet: &[u8]) {
        self.cut_packet(time, packet, usize::MAX);
    }

    /// Adds the first `kept` octets of the frame of an IP packet.
    pub(crate) fn cut_packet(&mut self, time: Duration, packet: &[u8], kept: usize) {
        let frame = [link_header(self.link, packet[0] >> 4 == 6), packet.to_vec()].concat();
        let data = &frame[..kept.min(frame.len())];
        let lengths = [data.len() as u32, frame.len() as u32];
        match self.format {
            Format::Micros => self.record(time, time.subsec_micros(), lengths, data),
            Format::Nanos => self.record(time, time.subsec_nanos(), lengths, data),
            Format::Ng(resolution, offset) => {
                let per_second = if resolution & 0x80 == 0 {
                    10_u128.pow(u32::from(resolution))
                } else {
                    1 << (resolution & 0x7f)
                };
                let seconds = time.as_secs().checked_add_signed(-offset).unwrap();
                let fraction = u128::from(time.subsec_nanos()) * per_second;
                let ticks = u128::from(seconds) * per_second + fraction.div_ceil(1_000_000_000);
                let mut block =
                    self.words(&[0, (ticks >> 32) as u32, ticks as u32, lengths[0], lengths[1]]);
                block.extend(data);
                block.resize(block.len().next_multiple_of(4), 0);
                self.block(6, &block);
            }
        }
    }

    fn record(&mut self, time: Duration, fraction: u32, lengths: [u32; 2], data: &[u8]) {
        for word in [time.as_secs() as u32, fraction, lengths[0], lengths[1]] {
            self.word(word);
        }
        self.octets.extend(data);
    }

    fn block(&mut self, block_type: u32, body: &[u8]) {
        let len = body.len() as u32 + 12;
        self.word(block_type);
        self.word(len);
        self.octets.extend(body);
        self.word(len);
    }

    fn word(&mut self, word: u32) {
        self.octets.extend(self.words(&[word]));
    }

    fn half_word(&mut self, half: u16) {
        self.octets.extend(self.halves(&[half]));
    }

    fn words(&self, words: &[u32]) -> Vec<u8> {
        let bytes =
            |word: &u32| if self.big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        words.iter().flat_map(bytes).collect()
    }

    fn halves(&self, halves: &[u16]) -> Vec<u8> {
        let bytes =
            |half: &u16| if self.big_endian { half.to_be_bytes() } else { half.to_le_bytes() };
        halves.iter().flat_map(bytes).collect()
    }
}

fn link_header(link: u16, six: bool) -> Vec<u8> {
    let ether_type: [u8; 2] = if six { [0x86, 0xdd] } else { [8, 0] };
    match link {
        0 => vec![if six { 30 } else { 2 }, 0, 0, 0],
        108 => vec![0, 0, 0, if six { 24 } else { 2 }],
        1 => [&[2; 12][..], &[0x81, 0, 0, 7], &ether_type].concat(),
        113 => [&[0; 14][..], &ether_type].concat(),
        276 => [&ether_type[..], &[0; 18]].concat(),
        _ => Vec::new(),
    }
}

/// Returns a UDP datagram in one IP packet.
pub(crate) fn udp(from: SocketAddr, to: SocketAddr, data: &[u8]) -> Vec<u8> {
    let datagram = udp_datagram(from, to, data);
    ip(from, to, &datagram, None)
}

/// Returns a UDP datagram in fragments of `len` octets each, which must be a multiple of 8.
pub(crate) fn fragments(from: SocketAddr, to: SocketAddr, data: &[u8], len: usize) -> Vec<Vec<u8>> {
    let datagram = udp_datagram(from, to, data);
    let count = datagram.len().div_ceil(len);
    let piece = |(n, piece): (usize, &[u8])| ip(from, to, piece, Some((n * len, n + 1 < count)));
    datagram.chunks(len).enumerate().map(piece).collect()
}

fn udp_datagram(from: SocketAddr, to: SocketAddr, data: &[u8]) -> Vec<u8> {
    let len = data.len() as u16 + 8;
    let header = [from.port(), to.port(), len, 0];
    [header.map(u16::to_be_bytes).concat(), data.to_vec()].concat()
}

fn ip(from: SocketAddr, to: SocketAddr, data: &[u8], part: Option<(usize, bool)>) -> Vec<u8> {
    let (offset, more) = part.unwrap_or((0, false));
    match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            let flags = (offset / 8) as u16 | u16::from(more) << 13;
            let fields = [0x4500, data.len() as u16 + 20, 77, flags, 0x4011, 0];
            let addresses = [from.ip().octets(), to.ip().octets()].concat();
            [fields.map(u16::to_be_bytes).concat(), addresses, data.to_vec()].concat()
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let extension = match part {
                Some(_) => {
                    vec![17, 0, (offset >> 8) as u8, offset as u8 | u8::from(more), 0, 0, 0, 7]
                }
                None => Vec::new(),
            };
            let len = (extension.len() + data.len()) as u16;
            let next = if part.is_some() { 44 } else { 17 };
            let header = [&[0x60, 0, 0, 0][..], &len.to_be_bytes(), &[next, 64]].concat();
            let addresses = [from.ip().octets(), to.ip().octets()].concat();
            [header, addresses, extension, data.to_vec()].concat()
        }
        _ => panic!("one family"),
    }
}

pub(crate) fn media(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

/// The parameters for sending a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) payload_type: u8,
    pub(crate) ssrc: u32,
    pub(crate) packet_len: usize,
}

/// Returns the RTP packets of a media file with their times: frames at 30 Hz or according to their
/// durations, the packets of one frame 10 µs apart.
pub(crate) fn rtp_packets(path: &std::path::Path, sending: Sending) -> Vec<(Duration, Vec<u8>)> {
    let codec = codec_of(path).unwrap();
    let format = (codec.payload)(&FormatOptions::default());
    let clock_rate = format.clock_rate();
    let config = SenderConfig {
        ssrc: Ssrc(sending.ssrc),
        payload_type: PayloadType::new(sending.payload_type).unwrap(),
        first_sequence: SequenceNumber(65_500),
        first_timestamp: RtpTimestamp(u32::MAX - 10_000),
        clock_rate,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: sending.packet_len,
    };
    let mut sender = Sender::new(format.packetiser(), config).unwrap();
    let mut reader = MediaReader::open(path, codec, ReadOptions::default()).unwrap();
    let (mut batch, mut packets, mut ticks) = (Batch::new(), Vec::new(), 0);
    while let Some(frame) = reader.next_frame().unwrap() {
        let mut outgoing = sender.push(&frame.data, None).unwrap();
        let start = START + clock_rate.duration(ticks);
        let mut sent = 0;
        while outgoing.fill(&mut batch) {
            for datagram in batch.datagrams() {
                packets.push((start + Duration::from_micros(10) * sent, datagram.to_vec()));
                sent += 1;
            }
        }
        ticks += frame.duration.unwrap_or(3000);
    }
    packets
}

/// The NAL units (or packets) of a file.
pub(crate) fn units(path: &std::path::Path) -> Vec<Vec<u8>> {
    let codec = codec_of(path).unwrap();
    let mut reader = MediaReader::open(path, codec, ReadOptions::default()).unwrap();
    let (mut ranges, mut units) = (Vec::new(), Vec::new());
    while let Some(frame) = reader.next_frame().unwrap() {
        if codec.has_nal_units() {
            rushes::payload::nal::find_units(&frame.data, Framing::AnnexB, &mut ranges).unwrap();
            units.extend(ranges.drain(..).map(|range| frame.data[range].to_vec()));
        } else {
            units.push(frame.data.clone());
        }
    }
    units
}
