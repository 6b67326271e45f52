//! Media of every format, a sender and a receiver of it, and its delivery by a network.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub mod reports;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use rushes_netsim::Seeded;
use rushes_netsim::{Course, Link, Loss, Path, Straying};
use rushes_proto::FrameRate;
use rushes_proto::payload::av1::Av1;
use rushes_proto::payload::generic::Generic;
use rushes_proto::payload::h264::H264;
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::h266::H266;
use rushes_proto::payload::opus::Opus;
use rushes_proto::payload::pcm::{Pcm, Sample};
use rushes_proto::payload::raw::{Raw, RawVideo, Sampling};
use rushes_proto::payload::vp8::Vp8;
use rushes_proto::payload::vp9::Vp9;
use rushes_proto::payload::{Delivery, Fragment, Frame, FrameSettings, PayloadFormat, Piece};
use rushes_proto::rtp::{CaptureTime, ExtensionKind, ExtensionMap};
use rushes_proto::stream::{Receiver, ReceiverConfig, Sender, SenderConfig};
use rushes_proto::{Batch, ClockRate, NtpTime, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

/// Samples in packets that hold the frames of tests.
pub const PCM: Pcm = Pcm {
    packet_time: Some(Duration::from_micros(500)),
    ..Pcm::new(Sample::L16, ClockRate::OPUS, 1)
};

/// The formats that the tests use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    H264,
    H265,
    H265Numbered,
    H265Interleaved,
    H266,
    H266Numbered,
    H266Interleaved,
    Opus,
    /// Samples of 16 bits of one channel.
    Pcm,
    Vp8,
    Vp9,
    Av1,
    Raw,
    Generic,
}

/// Octets of every frame of uncompressed video.
const RAW_LEN: usize = 40 * 6 * 3;

/// The `sprop-max-don-diff` of streams made by [`interleave`].
const MAX_DON_DIFF: u16 = 64;

impl Kind {
    /// All kinds except the interleaved ones.
    pub const ALL: [Self; 12] = [
        Self::H264,
        Self::H265,
        Self::H265Numbered,
        Self::H266,
        Self::H266Numbered,
        Self::Opus,
        Self::Pcm,
        Self::Vp8,
        Self::Vp9,
        Self::Av1,
        Self::Raw,
        Self::Generic,
    ];

    pub fn format(self) -> Arc<dyn PayloadFormat> {
        match self {
            Self::H264 => Arc::new(H264::default()),
            Self::H265 => Arc::new(H265::default()),
            Self::H265Numbered => Arc::new(H265 { max_don_diff: 1, ..H265::default() }),
            Self::H265Interleaved => {
                Arc::new(H265 { max_don_diff: MAX_DON_DIFF, ..H265::default() })
            }
            Self::H266Interleaved => {
                Arc::new(H266 { max_don_diff: MAX_DON_DIFF, ..H266::default() })
            }
            Self::H266 => Arc::new(H266::default()),
            Self::H266Numbered => Arc::new(H266 { max_don_diff: 1, ..H266::default() }),
            Self::Opus => Arc::new(Opus::default()),
            Self::Pcm => Arc::new(PCM),
            Self::Vp8 => Arc::new(Vp8::default()),
            Self::Vp9 => Arc::new(Vp9::default()),
            Self::Av1 => Arc::new(Av1::default()),
            Self::Raw => Arc::new(Raw::new(RawVideo::new(Sampling::Rgb, 8, 40, 6).unwrap())),
            Self::Generic => Arc::new(Generic::default()),
        }
    }

    pub fn has_nal_units(self) -> bool {
        self.delimiter().is_some()
    }

    /// Returns whether each packet is a frame, so that frames of tests are small. (Larger frames of
    /// samples are tested in `samples.rs`.)
    pub fn has_one_packet_frames(self) -> bool {
        matches!(self, Self::Opus | Self::Pcm)
    }

    /// Returns the ticks from a frame of `len` octets to the next.
    pub fn ticks(self, len: usize) -> u32 {
        match self {
            Self::Opus => 960,
            Self::Pcm => len as u32 / 2,
            _ => self.format().clock_rate().hertz() / 30,
        }
    }

    /// Returns whether units have decoding order numbers and therefore wait for earlier ones.
    pub fn is_numbered(self) -> bool {
        matches!(self, Self::H265Numbered | Self::H266Numbered) || self.is_interleaved()
    }

    /// Returns whether streams of this kind are made by [`interleave`].
    pub fn is_interleaved(self) -> bool {
        matches!(self, Self::H265Interleaved | Self::H266Interleaved)
    }

    /// Returns an access unit delimiter.
    pub fn delimiter(self) -> Option<Vec<u8>> {
        match self {
            Self::H264 => Some(vec![9, 0xf0]),
            Self::H265 | Self::H265Numbered | Self::H265Interleaved => Some(vec![35 << 1, 1, 0x50]),
            Self::H266 | Self::H266Numbered | Self::H266Interleaved => {
                Some(vec![0, 20 << 3 | 1, 0x28])
            }
            Self::Opus
            | Self::Pcm
            | Self::Vp8
            | Self::Vp9
            | Self::Av1
            | Self::Raw
            | Self::Generic => None,
        }
    }

    /// Returns a NAL unit (or frame) of about `len` octets that is made unique by `number`, and is
    /// no access unit delimiter.
    pub fn unit(self, number: u32, len: usize, random: &mut Seeded) -> Vec<u8> {
        let mut unit = match self {
            // nal_ref_idc and a type that a single NAL unit packet may have.
            Self::H264 => vec![(random.below(4) as u8) << 5 | (1 + random.below(8) as u8)],
            Self::H265 | Self::H265Numbered | Self::H265Interleaved => {
                vec![(random.below(35) as u8) << 1, 1 + random.below(7) as u8]
            }
            Self::H266 | Self::H266Numbered | Self::H266Interleaved => {
                vec![random.below(64) as u8 & 0x3f, (random.below(20) as u8) << 3 | 1]
            }
            // One SILK frame of 20 ms.
            Self::Opus => vec![0x08],
            Self::Vp8 | Self::Raw | Self::Generic => vec![0],
            // The frame marker of a key frame.
            Self::Vp9 => vec![0x82],
            Self::Av1 | Self::Pcm => vec![],
        };
        // There are no zeros, so that neither a start code nor a trailing zero arises.
        unit.extend(
            number.to_be_bytes().iter().flat_map(|octet| [0x80 | octet >> 4, 0x80 | octet & 15]),
        );
        let len = if self == Self::Raw { RAW_LEN } else { len };
        while unit.len() < len {
            unit.push(1 + random.below(255) as u8);
        }
        if self == Self::Pcm && !unit.len().is_multiple_of(2) {
            unit.push(1);
        }
        if self == Self::Av1 {
            // A temporal delimiter, then a frame OBU with its size in groups of seven bits.
            let mut begin = vec![0x12, 0, 0x32];
            let mut size = unit.len();
            while size > 0x7f {
                begin.push(0x80 | size as u8 & 0x7f);
                size >>= 7;
            }
            begin.push(size as u8);
            unit.splice(..0, begin);
        }
        unit
    }
}

/// A frame to send, and its units as they must be delivered.
#[derive(Clone, Debug)]
pub struct Source {
    pub frame: Vec<u8>,
    pub units: Vec<Vec<u8>>,
    /// The place of each unit in the frame.
    pub places: Vec<std::ops::Range<usize>>,
}

impl Source {
    pub fn new(kind: Kind, units: Vec<Vec<u8>>) -> Self {
        let mut frame = Vec::new();
        let mut places = Vec::new();
        for (n, unit) in units.iter().enumerate() {
            if kind.has_nal_units() {
                frame.extend_from_slice(if n % 2 == 0 { &[0, 0, 0, 1] } else { &[0, 0, 1] });
            }
            places.push(frame.len()..frame.len() + unit.len());
            frame.extend_from_slice(unit);
        }
        Self { frame, units, places }
    }

    /// Returns the frame as a receiver delivers it, with 4-octet start codes.
    pub fn delivered(&self, kind: Kind) -> Vec<u8> {
        if !kind.has_nal_units() {
            return self.frame.clone();
        }
        self.units.iter().flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat()).collect()
    }
}

/// A datagram under way, and the units that it carries with their frame.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub octets: Vec<u8>,
    pub frame: usize,
    pub units: Vec<usize>,
}

pub const SSRC: Ssrc = Ssrc(0x1234_5678);
pub const PAYLOAD_TYPE: PayloadType = PayloadType::H265;

/// Sends `sources` and returns their datagrams.
pub fn send(
    kind: Kind,
    sources: &[Source],
    packet_len_max: usize,
    first: (SequenceNumber, RtpTimestamp),
) -> Vec<Datagram> {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: first.0,
        first_timestamp: first.1,
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max,
    };
    let mut sender = Sender::new(format.packetiser(), config).unwrap();
    // A second packetiser in step with the sender's shows what each packet carries.
    let mut twin = format.packetiser();
    let mut batch = Batch::new();
    let mut datagrams = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let mut octets = Vec::new();
        let mut outgoing = sender.push(&source.frame, None).unwrap();
        while outgoing.fill(&mut batch) {
            octets.extend(batch.datagrams().map(<[u8]>::to_vec));
        }
        twin.start(&source.frame, packet_len_max - 12).unwrap();
        for octets in octets {
            let mut fragment = Fragment::default();
            assert!(twin.next(&source.frame, &mut fragment));
            datagrams.push(Datagram { octets, frame: number, units: carried(source, &fragment) });
        }
        let mut fragment = Fragment::default();
        assert!(!twin.next(&source.frame, &mut fragment));
    }
    datagrams
}

/// Reorders `datagrams` like a sender that interleaves units (RFC 7798 section 4.6): a packet, or
/// all fragments of a unit, is at most 4 places late. Sequence numbers increase in the new order.
pub fn interleave(datagrams: Vec<Datagram>, kind: Kind, random: &mut Seeded) -> Vec<Datagram> {
    let numbers: Vec<[u8; 2]> =
        datagrams.iter().map(|datagram| [datagram.octets[2], datagram.octets[3]]).collect();
    let goes_on = |octets: &[u8]| match kind {
        Kind::H265Interleaved => octets[12] >> 1 & 0x3f == 49 && octets[14] & 0x80 == 0,
        _ => octets[13] >> 3 == 29 && octets[14] & 0x80 == 0,
    };
    let mut groups: Vec<Vec<Datagram>> = Vec::new();
    for datagram in datagrams {
        match groups.last_mut() {
            Some(group) if goes_on(&datagram.octets) => group.push(datagram),
            _ => groups.push(vec![datagram]),
        }
    }
    let mut order: Vec<(u64, Vec<Datagram>)> =
        (0..).zip(groups).map(|(place, group)| (place + random.below(5), group)).collect();
    order.sort_by_key(|(place, _)| *place);
    let mut sent: Vec<Datagram> = order.into_iter().flat_map(|(_, group)| group).collect();
    for (datagram, number) in sent.iter_mut().zip(numbers) {
        datagram.octets[2..4].copy_from_slice(&number);
    }
    sent
}

fn carried(source: &Source, fragment: &Fragment) -> Vec<usize> {
    let mut units = Vec::new();
    for piece in fragment.pieces() {
        if let Piece::Frame { start, .. } = piece {
            let unit = source.places.iter().position(|place| place.contains(start)).unwrap();
            units.push(unit);
        }
    }
    units
}

/// A receiver in virtual time.
pub struct Listener {
    pub receiver: Receiver,
    pub epoch: Instant,
    pub frames: Vec<Frame>,
}

impl Listener {
    pub fn new(kind: Kind, delivery: Delivery) -> Self {
        Self::with(kind, delivery, |_| {})
    }

    pub fn with(kind: Kind, delivery: Delivery, adjust: impl FnOnce(&mut ReceiverConfig)) -> Self {
        let format = kind.format();
        let mut config = ReceiverConfig::new(PAYLOAD_TYPE, format.clock_rate());
        config.frame = FrameSettings { delivery, ..FrameSettings::default() };
        adjust(&mut config);
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let epoch = Instant::now();
        Self { receiver: Receiver::new(format, config).unwrap(), epoch, frames: Vec::new() }
    }

    /// Handles timers, then a datagram, at `time` after the beginning.
    pub fn take(&mut self, time: Duration, datagram: &[u8]) {
        let now = self.epoch + time;
        self.receiver.handle_timeout(now);
        self.receiver.handle_datagram(now, datagram);
        self.drain();
    }

    /// Lets time pass until no timer remains.
    pub fn finish(&mut self) {
        while let Some(due) = self.receiver.poll_timeout() {
            self.receiver.handle_timeout(due);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(frame) = self.receiver.poll_frame() {
            self.frames.push(frame);
        }
    }
}

/// Returns access units of one to three units of 20 to `len_max` octets each; single frames for
/// formats without NAL units.
pub fn sources(kind: Kind, count: u32, len_max: u64, random: &mut Seeded) -> Vec<Source> {
    let unit = |n, random: &mut Seeded| {
        let len = if kind.has_one_packet_frames() {
            40
        } else {
            20 + random.below(len_max - 20) as usize
        };
        kind.unit(n, len, random)
    };
    let units = |n: u32, random: &mut Seeded| {
        let count = if kind.has_nal_units() { 1 + random.below(3) as u32 } else { 1 };
        (0..count).map(|step| unit(8 * n + step, random)).collect()
    };
    (0..count).map(|n| Source::new(kind, units(n, random))).collect()
}

/// Returns the elements of header extensions that [`extend`] writes.
pub fn extensions() -> ExtensionMap {
    let map = ExtensionMap::default().with(ExtensionKind::AbsCaptureTime, 5).unwrap();
    let map = map.with(ExtensionKind::Ntp64, 6).unwrap().with_own(7).unwrap();
    map.with(ExtensionKind::TransportSequence, 8).unwrap()
}

/// Adds a header extension with a capture time to a clear packet; a malformed one if `is_odd`.
pub fn extend(packet: &mut Vec<u8>, is_odd: bool, random: &mut Seeded) {
    if packet.len() < 12 {
        return;
    }
    let capture = CaptureTime::new(NtpTime(random.roll()));
    let mut data = vec![0x81, random.roll() as u8, 0, 0x70 | random.below(16) as u8];
    data.extend([data[1]; 16]);
    extensions().write(capture, &mut data).unwrap();
    if is_odd {
        let at = random.below(data.len() as u64) as usize;
        data[at] ^= 1 << random.below(8);
    }
    let introduction = [0xbe, 0xde, 0, data.len() as u8 / 4];
    packet[0] |= 0x10;
    packet.splice(12..12, introduction.into_iter().chain(data));
}

/// Returns a path that loses, duplicates and reorders with these probabilities, by up to 30 places.
pub fn path(loss: f64, duplication: f64, reordering: f64) -> Path {
    Path {
        loss: Loss::Independent(loss),
        duplication: Straying::places(duplication, 0..=29),
        reordering: Straying::places(reordering, 1..=30),
        ..Path::default()
    }
}

/// The time between two sent datagrams.
const SPACING: Duration = Duration::from_micros(100);

/// Returns the times and numbers of datagrams of these lengths, in order of arrival. The first four
/// are not reordered, because a receiver cannot know where a stream begins.
pub fn arrivals(
    lens: impl IntoIterator<Item = usize>,
    path: &Path,
    random: &mut Seeded,
) -> Vec<(Duration, usize)> {
    let calm = Path { reordering: Straying::default(), ..path.clone() };
    let course = Course::from(calm).then(4 * SPACING, path.clone());
    let mut link = Link::new(course, random.roll());
    for (n, len) in lens.into_iter().enumerate() {
        link.push(SPACING * n as u32, len, n);
    }
    link.finish();
    let arrival = |delivery: rushes_netsim::Delivery<usize>| (delivery.at, delivery.item);
    std::iter::from_fn(|| link.poll(Duration::MAX)).map(arrival).collect()
}
