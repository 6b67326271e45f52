//! Inputs made by our own senders, so that no target starts without seeds.
#![allow(clippy::missing_panics_doc, reason = "our own senders make valid inputs")]

use std::path::Path;
use std::time::{Duration, Instant};

use rushes::file::{FileError, MediaReader, MediaWriter, ReadOptions, Sampling};
use rushes::format::{FORMATS, FormatOptions, MediaFormat};
use rushes::sdp::encoding_of;
use rushes::{Codec, Context, Fec, FecFormat};
use rushes_delivery::control::{
    Channel, ControlSecret, FrameNotice, Message, Nack, Offer, Opening, Ping, Reason, Token,
    UnitOpening,
};
use rushes_delivery::{Creditor, UnitHeader};
use rushes_proto::control::{MediaSent, Reception};
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::nal::find_start_codes;
use rushes_proto::payload::{Fragment, PayloadFormat};
use rushes_proto::rtcp::{Arrival, Ecn, Writer};
use rushes_proto::rtp::{Element, ExtensionForm, Header, HeaderExtension};
use rushes_proto::srtp::Suite;
use rushes_proto::stream::{FecReception, FecSending, Sender, SenderConfig};
use rushes_proto::{
    Batch, ClockRate, ExtendedSequence, FrameRate, NtpTime, PayloadType, RtpTimestamp,
    SequenceNumber, Ssrc,
};

use crate::targets::media_of;
use crate::{FEC, delivery, participant, zrtp_between};

/// Octets in the longest packet: its length is one octet of an input.
const PACKET_MAX: usize = 200;

/// Returns an input of packets, each preceded by its length and flags.
fn cut<'p>(head: &[u8], packets: impl IntoIterator<Item = (u8, &'p [u8])>) -> Vec<u8> {
    let mut input = head.to_vec();
    for (flags, packet) in packets {
        let packet = &packet[..packet.len().min(255)];
        input.extend([packet.len() as u8, flags]);
        input.extend(packet);
    }
    input
}

/// Returns the first frames of a file in `vectors/media`.
fn frames(name: &str, count: usize) -> Vec<Vec<u8>> {
    let path = format!("{}/../vectors/media/{name}", env!("CARGO_MANIFEST_DIR"));
    let codec = rushes::file::codec_of(path.as_ref()).expect("the extension is known");
    let octets = std::fs::read(&path).expect("the file is in the repository");
    let reader = MediaReader::from_octets(octets, name, codec, ReadOptions::default());
    let mut reader = reader.expect("the file is valid");
    let frame = || reader.next_frame().expect("the file is valid").map(|frame| frame.data.clone());
    std::iter::from_fn(frame).take(count).collect()
}

/// Returns the payloads in which `format` carries frames, and whether each has the marker bit.
fn carried(format: &dyn PayloadFormat) -> Vec<(bool, Vec<u8>)> {
    let frames = match (media_of(format), format.placement()) {
        (Some(name), _) => frames(name, 12),
        (None, Some(placement)) => (1..4).map(|n| vec![n; placement.frame_len]).collect(),
        (None, None) => vec![vec![7; 900], (0..=255).collect(), vec![1; 5]],
    };
    let mut packetiser = format.packetiser();
    let (mut fragment, mut payloads) = (Fragment::default(), Vec::new());
    for frame in &frames {
        // A frame of no whole number of samples cannot be sent.
        if packetiser.start(frame, PACKET_MAX).is_err() {
            continue;
        }
        while packetiser.next(frame, &mut fragment) {
            let mut payload = vec![0; fragment.len()];
            fragment.write(frame, &mut payload);
            payloads.push((fragment.marker(), payload));
            fragment.clear();
        }
    }
    payloads.truncate(60);
    payloads
}

/// Returns the seeds of depacketiser targets: all payloads in order, with the marker bit, and with
/// losses.
pub fn payloads(format: &dyn PayloadFormat) -> Vec<Vec<u8>> {
    let carried = carried(format);
    let of = |head: u8, every: usize| {
        let packets = carried.iter().enumerate().filter(|(n, _)| n % every != 5);
        cut(
            &[head],
            packets.map(|(n, (marker, payload))| {
                let loss = if n % every == 6 { 4 | 1 << 4 } else { 0 };
                ((n as u8 / 16) << 6 | loss | u8::from(*marker), &payload[..])
            }),
        )
    };
    [0, 1, 2, 3, 8].into_iter().flat_map(|head| [of(head, usize::MAX), of(head, 7)]).collect()
}

/// Returns payloads of every format of the table, behind its place in it.
pub fn formats() -> Vec<Vec<u8>> {
    let of = |(n, format): (usize, &&MediaFormat)| {
        let mut options = FormatOptions::default();
        options.packet_time = Some(Duration::from_micros(125));
        let payloads = payloads(&*(format.payload)(&options));
        payloads.into_iter().map(move |input| [&[n as u8], &input[..]].concat())
    };
    FORMATS.iter().enumerate().flat_map(of).collect()
}

/// Returns payloads with decoding order numbers.
pub fn numbered() -> Vec<Vec<u8>> {
    let format = H265 { max_don_diff: 4, depack_buf_nalus: 4, ..H265::default() };
    let inputs = payloads(&format).into_iter().chain(payloads(&H265::default()));
    inputs.map(|input| [&[0, 3, 4], &input[..]].concat()).collect()
}

/// Returns RTP packets, one of which has every optional part of a header.
pub fn rtp() -> Vec<Vec<u8>> {
    let packet = |n: usize, marker: bool, payload: &[u8]| {
        let number = SequenceNumber(n as u16);
        let mut header = Header::new(PayloadType::H265, number, RtpTimestamp(3000), Ssrc(7));
        header.marker = marker;
        if n == 1 {
            header.contributing_sources = vec![Ssrc(1), Ssrc(2)];
            let element = Element { id: 1, data: &[1, 2, 3] };
            let extension = HeaderExtension::of_elements(ExtensionForm::OneByte, &[element]);
            header.extension = extension.ok();
        }
        let mut octets = vec![0; header.written_len()];
        header.write(&mut octets).expect("the header fits");
        octets.extend(payload);
        octets
    };
    let carried = carried(&H265::default());
    carried.iter().enumerate().map(|(n, (marker, payload))| packet(n, *marker, payload)).collect()
}

/// Returns header extensions in both forms, each after its profile.
pub fn extensions() -> Vec<Vec<u8>> {
    let elements = [
        Element { id: 1, data: &[1; 16] },
        Element { id: 4, data: b"mid" },
        Element { id: 7, data: &[0x9e] },
        Element { id: 9, data: &[1, 2] },
    ];
    let forms = [ExtensionForm::OneByte, ExtensionForm::TwoByte];
    let write = |form: ExtensionForm| {
        let extension = HeaderExtension::of_elements(form, &elements).expect("the elements fit");
        [&extension.profile.to_be_bytes()[..], &extension.data].concat()
    };
    forms.map(write).into()
}

/// Returns packets for a receiver: in order, then with some swapped and removed.
pub fn streams() -> Vec<Vec<u8>> {
    let mut packets = rtp();
    let mut all = Vec::new();
    for turn in 0..3 {
        let flags = |n: usize| if turn == 1 { (n % 3) as u8 } else { 0 };
        all.push(cut(&[1], packets.iter().enumerate().map(|(n, it)| (flags(n), &it[..]))));
        packets.swap(3 + turn, 9);
        packets.remove(20);
    }
    let protected = protected();
    for lost in [usize::MAX, 5, 20] {
        let arrived = protected.iter().enumerate().filter(|(n, _)| n % 30 != lost);
        all.push(cut(&[5], arrived.map(|(_, packet)| (0, &packet[..]))));
    }
    all
}

/// Returns packets of a sender with ULPFEC within RED.
fn protected() -> Vec<Vec<u8>> {
    let config = SenderConfig {
        ssrc: Ssrc(7),
        payload_type: PayloadType::H265,
        first_sequence: SequenceNumber(9),
        first_timestamp: RtpTimestamp(9),
        clock_rate: ClockRate::VIDEO,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: PACKET_MAX,
    };
    let FecReception { format, payload_type, red, .. } = FEC;
    let (ssrc, first_sequence) = (Ssrc(7), SequenceNumber(0));
    let span = Duration::from_millis(100);
    let fec = FecSending { format, payload_type, red, ssrc, first_sequence, percent: 20, span };
    let sender = Sender::new(H265::default().packetiser(), config).expect("the settings are valid");
    let mut sender = sender.with_fec(fec).expect("the settings are valid");
    let (mut batch, mut packets) = (Batch::new(), Vec::new());
    for frame in frames("hevc_192x128_90f_tiny_nals.265", 12) {
        let mut outgoing = sender.push(&frame, None).expect("the frame can be sent");
        while outgoing.fill(&mut batch) {
            packets.extend(batch.datagrams().map(<[u8]>::to_vec));
        }
    }
    packets
}

/// Returns compound packets of two participants that receive each other's media.
pub fn reports() -> Vec<Vec<u8>> {
    let start = Instant::now();
    let mut ends = [participant(Ssrc(0x0102_0304), start), participant(Ssrc(9), start)];
    let mut reports: Vec<Vec<u8>> = Vec::new();
    for step in 1..40_u32 {
        let now = start + Duration::from_millis(500) * step;
        let last = Some((RtpTimestamp(3000 * step), now));
        let media = MediaSent { packets: step.into(), octets: 100, last, ..MediaSent::default() };
        for from in 0..2 {
            let reception = Reception {
                ssrc: Ssrc([9, 0x0102_0304][from]),
                expected: step.into(),
                received: (step / 2).into(),
                highest: ExtendedSequence(step.into()),
                jitter: 5,
                last_heard: now,
            };
            let Some(report) = ends[from].poll_datagram(now, &media, &[reception]) else {
                continue;
            };
            let report = report.to_vec();
            let _ = ends[1 - from].handle_datagram(now, None, &report);
            reports.push(report);
        }
    }
    let together = cut(&[], reports.iter().map(|report| (30, &report[..])));
    reports.truncate(8);
    reports.push(together);
    let mut wide = Writer::new();
    let arrivals = [0, 3, 90, 2000, 1990].map(|ms| (ms != 3).then(|| Duration::from_millis(ms)));
    wide.transport_wide([Ssrc(9), Ssrc(0x0102_0304)], SequenceNumber(0xfffe), 1, &arrivals);
    reports.push(wide.bytes().to_vec());
    reports
}

/// Returns descriptions of our own streams, and those of other programs.
pub fn descriptions() -> Vec<Vec<u8>> {
    let session = Context::new().session("127.0.0.1").expect("the address is valid");
    let describe = |codec: Codec, name: &str| {
        let frame = frames(name, 1).remove(0);
        let encoding = encoding_of(codec, &frame)?;
        let builder = session.stream(codec).remote_port(5004).ssrc(Ssrc(7));
        Some(builder.description(encoding).ok()?.write().into_bytes())
    };
    let ours = [
        (Codec::H264, "avc_cif_60f_baseline.264"),
        (Codec::H265, "hevc_192x128_90f_tiny_nals.265"),
        (Codec::H266, "vvc_192x128_64f_vvenc_tiny_nals.266"),
        (Codec::Opus, "opus_speech_mono_mixed_durations.opus"),
    ];
    let ours = ours.into_iter().filter_map(|(codec, name)| describe(codec, name));
    let fec = [FecFormat::FlexFec, FecFormat::FlexFec03, FecFormat::Ulp].map(|format| {
        let builder = session.stream(Codec::Opus).remote_port(5004).ssrc(Ssrc(7));
        let builder = builder.fec(Fec::percent(20).format(format));
        let builder = if format.is_in_red() { builder } else { builder.fec_ssrc(Ssrc(8)) };
        let encoding = encoding_of(Codec::Opus, b"").expect("Opus has a name");
        builder.description(encoding).expect("the settings are valid").write().into_bytes()
    });
    let ours = ours.chain(fec);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/proto/tests/sdp");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder exists").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    ours.chain(files.iter().filter_map(|file| std::fs::read(file.path()).ok())).collect()
}

/// Returns the seeds of the targets of SRTP: these packets under each suite, with both keys and
/// with changes.
pub fn secured(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let packets = || packets.iter().take(20).enumerate();
    let of = |suite: usize, flags: u8| {
        // The tenth changes the key, and every fourth is itself changed.
        let change = |n: usize| u8::from(n == 10) << 1 | if n % 4 == 3 { 4 | 13 << 3 } else { 0 };
        cut(&[suite as u8, flags, 255, 0], packets().map(|(n, it)| (change(n), &it[..])))
    };
    (0..Suite::ALL.len()).flat_map(|suite| [of(suite, 0), of(suite, 4), of(suite, 8)]).collect()
}

/// Returns a bitstream, preceded by flags that specify how it is read.
pub fn access_units() -> Vec<Vec<u8>> {
    let codecs = ["avc_cif_60f_baseline.264", "hevc_192x128_90f_tiny_nals.265"];
    let codecs = codecs.into_iter().chain(["vvc_192x128_64f_vvenc_tiny_nals.266"]);
    let of = |(n, name): (usize, &str)| {
        let octets = frames(name, 6).concat();
        [&[n as u8 | 0x78], &octets[..octets.len().min(2000)]].concat()
    };
    codecs.enumerate().map(of).collect()
}

/// Returns bitstreams of little more than headers, preceded by flags that specify how they are
/// read.
pub fn picture_order() -> Vec<Vec<u8>> {
    let codecs = ["avc_cif_60f_baseline.264", "hevc_192x128_90f_tiny_nals.265"];
    let codecs = codecs.into_iter().chain(["vvc_192x128_64f_vvenc_tiny_nals.266"]);
    let heads = |octets: &[u8]| {
        let starts: Vec<usize> = find_start_codes(octets).take(60).collect();
        let units = starts.windows(2).map(|pair| &octets[pair[0]..pair[1]]);
        units.flat_map(|unit| unit[..unit.len().min(60)].to_vec()).collect::<Vec<u8>>()
    };
    let of = |(n, name): (usize, &str)| {
        let heads = heads(&frames(name, 40).concat());
        [0x18, 0x78].map(|flags| [&[n as u8 | flags], &heads[..]].concat())
    };
    codecs.enumerate().flat_map(of).collect()
}

/// Returns access units.
pub fn nal_units() -> Vec<Vec<u8>> {
    access_units().into_iter().map(|mut input| input.split_off(1)).collect()
}

/// Returns the beginning of an Ogg Opus file.
pub fn ogg_opus() -> Vec<Vec<u8>> {
    let name = "opus_speech_mono_mixed_durations.opus";
    let path = format!("{}/../vectors/media/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut octets = std::fs::read(path).expect("the file is in the repository");
    octets.truncate(8000);
    vec![octets.clone(), octets[..octets.len().min(1000)].to_vec()]
}

/// Returns the beginning of a file of each format, behind the place of the format in the table.
pub fn media_files() -> Vec<Vec<u8>> {
    let y4m = b"YUV4MPEG2 W4 H2 F30:1 C422p10\nFRAME\n0123456789abcdef0123456789abcdef";
    let klv = [&b"\x06\x0e\x2b\x34"[..], &[1; 12], &[3, 7, 7, 7]].concat();
    let of = |(place, codec): (usize, Codec)| {
        let format = (codec.payload)(&FormatOptions::default());
        let path = media_of(&*format)
            .map(|name| format!("{}/../vectors/media/{name}", env!("CARGO_MANIFEST_DIR")));
        let file = path.map(|path| std::fs::read(path).expect("the file is in the repository"));
        let is_raw = codec == Codec::Uncompressed;
        let samples = || codec.sample.map(|sample| samples(codec, 2 * sample.len()));
        let own = || if is_raw { y4m.to_vec() } else { klv.repeat(3) };
        let mut octets = file.or_else(samples).unwrap_or_else(own);
        octets.truncate(4000);
        [&[place as u8], &octets[..]].concat()
    };
    Codec::all().enumerate().map(of).collect()
}

/// Returns a WAV file of a few samples in two channels.
fn samples(codec: Codec, group_len: usize) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("{}-{}.wav", std::process::id(), codec.name));
    let sampling = Sampling { rate: ClockRate::OPUS, channels: 2 };
    let writer = MediaWriter::create(&path, codec).expect("a file can be made");
    let mut writer = writer.with_sampling(sampling);
    writer.write(&vec![7; 100 * group_len], RtpTimestamp(0)).expect("the frame is whole");
    writer.finish().expect("the file can be written");
    let octets = std::fs::read(&path).expect("it was just written");
    // It may be gone already.
    let _ = std::fs::remove_file(path);
    octets
}

/// Returns short films in each container, behind the number of their codec.
pub fn containers() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, codec, name, containers) in [
        (0, Codec::H264, "avc_cif_60f_baseline.264", &["mp4", "mkv"][..]),
        (1, Codec::H265, "hevc_192x128_90f_tiny_nals.265", &["mp4", "mkv"]),
        (2, Codec::H266, "vvc_192x128_64f_vvenc_tiny_nals.266", &["mp4", "mkv"]),
        (3, Codec::Opus, "opus_speech_mono_mixed_durations.opus", &["mp4", "webm"]),
    ] {
        let path = format!("{}/../vectors/media/{name}", env!("CARGO_MANIFEST_DIR"));
        for container in containers {
            let film = std::env::temp_dir().join(format!("{}.{container}", std::process::id()));
            write_film(path.as_ref(), codec, &film).expect("the file is in the repository");
            let octets = std::fs::read(&film).expect("it was just written");
            // It may be gone already.
            let _ = std::fs::remove_file(film);
            seeds.push([&[number], &octets[..]].concat());
        }
    }
    seeds
}

/// Writes the first frames of a file to a container.
fn write_film(from: &Path, codec: Codec, to: &Path) -> Result<(), FileError> {
    let mut reader = MediaReader::open(from, codec, ReadOptions::default())?;
    let mut writer = MediaWriter::create(to, codec)?;
    for number in 0..4 {
        let Some(frame) = reader.next_frame()? else { break };
        writer.write(&frame.data, RtpTimestamp(number * 3_600))?;
    }
    writer.finish()
}

/// Returns the messages of an agreement, and the packets that carry them.
pub fn zrtp_messages() -> Vec<Vec<u8>> {
    let datagrams = zrtp_between(0);
    let bodies = datagrams.iter().map(|datagram| datagram[12..datagram.len() - 4].to_vec());
    let together = cut(&[], datagrams.iter().map(|it| (it[0] & 1, &it[12..it.len() - 4])));
    bodies.chain(datagrams.iter().cloned()).chain([together]).collect()
}

/// Returns a link while two ends agree: it delivers everything, with occasional other actions.
pub fn agreements() -> Vec<Vec<u8>> {
    let of = |flags: u8, other: u8| {
        let step = |n: u8| match n % 16 {
            15 => [0, 1 << 3],
            9 => [2, other << 3 | (n & 1) << 1],
            _ => [0, 5 << 3 | (n & 1) << 1 | (n >> 2 & 1) << 2],
        };
        let steps = (0..120).flat_map(|n| {
            let [len, kind] = step(n);
            [&[len, kind][..], &[20, 1][..len.into()]].concat()
        });
        std::iter::once(flags).chain(steps).collect()
    };
    (0..16).flat_map(|flags| [2, 5, 6, 7].map(|other| of(flags, other))).collect()
}

fn written(message: &Message) -> Vec<u8> {
    let mut octets = Vec::new();
    message.write(&mut octets);
    octets
}

fn offer() -> Offer {
    delivery::offer(0, &[2, 0, 0, 0, 1, 1, 7, 0])
}

/// Returns an opening of each kind, and messages.
pub fn openings() -> Vec<Vec<u8>> {
    let token = Token([9; 16]);
    let openings =
        [Opening::Control(delivery::wishes()), Opening::Unit(UnitOpening { token, unit: 3 })];
    let messages = [
        Message::Offer(Box::new(offer())),
        Message::Refuse { reason: Reason::Busy, text: "full".into() },
        Message::Start { epoch: 1 },
        Message::Frame(FrameNotice::default()),
        Message::Sealed([5; 48]),
        Message::Ping(Ping::default()),
        Message::Nack(Nack { frame: 3, packets: vec![1..2, 7..9] }),
    ];
    let openings = openings.iter().map(|opening| {
        let mut octets = Vec::new();
        opening.write(&mut octets);
        octets
    });
    openings.chain(messages.iter().map(written)).collect()
}

/// Returns a session from its opening to its end, as steps of the target.
pub fn control() -> Vec<Vec<u8>> {
    const CARRY: u8 = 5 << 1;
    let server = |kind: u8| 6 << 1 | kind << 4;
    let client = |kind: u8| 7 << 1 | kind << 4;
    let offer = [2, 0, 0, 0, 1, 1, 7, 0];
    let steps = [
        (CARRY, &[][..]),
        (server(0), &offer),
        (CARRY, &[]),
        (client(0), &[]),
        (CARRY, &[]),
        (server(2), &[9]),
        (CARRY, &[]),
        (server(3), &[1]),
        (server(4), &[]),
        (client(4), &[]),
        (client(3), &[7]),
        (client(6), &[2]),
        (CARRY, &[]),
        (server(1), &offer),
        (CARRY, &[]),
        (client(0), &[]),
        (CARRY, &[]),
        (client(5), &[0]),
        (CARRY, &[]),
    ];
    (0..steps.len()).map(|end| cut(&[], steps[..=end].iter().copied())).collect()
}

/// Returns a conversation over a sealed connection, sealed at once and later.
pub fn sealed() -> Vec<Vec<u8>> {
    let mut opening = Vec::new();
    Opening::Control(delivery::wishes()).write(&mut opening);
    let offer = written(&Message::Offer(Box::new(offer())));
    let start = written(&Message::Start { epoch: 0 });
    // Steps of each end: send, transfer, or begin to seal.
    let (send, carry, seal) = (|end: u8| end | 1 << 1, |end: u8| end | 2 << 1 | 31 << 3, |end| end);
    let long = [0; 200];
    let steps: [(u8, &[u8]); 14] = [
        (carry(1), &long),
        (carry(0), &long),
        (send(1), &opening),
        (carry(1), &long),
        (send(0), &offer),
        (carry(0), &long),
        (seal(1), &[]),
        (carry(1), &long),
        (seal(0), &[]),
        (carry(0), &long),
        (send(0), &start),
        (carry(0), &long),
        (send(1), b"report"),
        (carry(1), &long),
    ];
    let heads = (0..4).flat_map(|head| (1..=steps.len()).map(move |end| (head, end)));
    let mut inputs: Vec<_> =
        heads.map(|(head, end)| cut(&[head], steps[..end].iter().copied())).collect();
    let secret = ControlSecret::new(&[b"secret"]).expect("the secret is valid");
    let client = Channel::connect(&secret, &mut |out| out.fill(2)).expect("a key can be made");
    inputs.push(cut(&[0], [(1, client.poll_data())]));
    inputs
}

/// Returns plans of a few units.
pub fn plans() -> Vec<Vec<u8>> {
    let unit = |bytes: u8, stripe: u8| [0, 0, 0, 0, 0, 0, bytes, 9, 0, 0, 0, 0, 0, 0, stripe, 5];
    let head = [0, 0, 5, 120];
    (1..5).map(|n| [&head[..], &unit(40, 3).repeat(n), &unit(n as u8, 1)].concat()).collect()
}

/// Returns credits as a client sends them.
pub fn credits() -> Vec<Vec<u8>> {
    let mut creditor = Creditor::new(1 << 20);
    let mut input = [&[40], &creditor.first().write()[..]].concat();
    for index in 0..40 {
        let header = UnitHeader { frame: 0, index: index * 8 };
        if let Some(credit) = creditor.note(header, 100_000) {
            input.extend([&[200], &credit.write()[..]].concat());
        }
    }
    vec![input]
}

/// Returns reports of congestion control feedback, and transport-wide feedback, on consecutive
/// packets, each with its length.
pub fn rates() -> Vec<Vec<u8>> {
    let (mut input, mut wide) = (Vec::new(), Vec::new());
    for step in 0..40_u16 {
        let mut writer = Writer::new();
        let arrivals = (0..6_u16).map(|n| {
            let ecn = if step == 20 { Ecn::Congestion } else { Ecn::CapableOne };
            let time = Arrival::Before(Duration::from_millis(u64::from(6 - n)));
            (n != 3 || step != 30).then_some((ecn, time))
        });
        let begin = SequenceNumber(0xfff0).plus(6 * step);
        let block = (Ssrc(0x0102_0304), begin, arrivals);
        writer.congestion(Ssrc(9), [block], NtpTime(u64::from(step) << 28));
        input.push(writer.bytes().len() as u8);
        input.extend(writer.bytes());
        writer.clear();
        let time = |n: u16| Duration::from_millis(u64::from(100 * step + 3 * n));
        let arrivals = [0, 1, 2, 3, 4, 5].map(|n| (n != 3 || step != 30).then(|| time(n)));
        writer.transport_wide([Ssrc(9), Ssrc(0x0102_0304)], begin, step as u8, &arrivals);
        wide.push(writer.bytes().len() as u8);
        wide.extend(writer.bytes());
    }
    vec![input, wide]
}

/// Returns frames whose packets arrive in order, with some omitted.
pub fn assembly() -> Vec<Vec<u8>> {
    let head = [2, 1, 200, 0, 100, 50, 3, 0, 1, 20, 0, 0];
    let run = |step: u8, first: u8, count: u8| [3, 0, step, first, count];
    let whole = [run(0, 0, 60), run(1, 0, 60), run(1, 0, 10), run(0, 12, 40), run(1, 0, 60)];
    let reliable = [&head[..7], &[1], &head[8..]].concat();
    [&head[..], &reliable].map(|head| [head, &whole.concat()].concat()).to_vec()
}

/// Returns frames with repair packets of which packets are lost.
pub fn repairs() -> Vec<Vec<u8>> {
    let head = [1, 80, 60, 7, 39, 3, 3];
    let run = |step: u8, first: u8, lost: u8| [4, 0, step, first, 255, lost];
    let forged = [7, 4, 39, 0, 1, 1, 2, 3, 4];
    let frames = [run(0, 0, 0), run(1, 0, 1), run(1, 0, 0x33), run(0, 0, 0)].concat();
    [[&head[..], &frames].concat(), [&head[..], &run(0, 0, 7), &forged, &frames].concat()].to_vec()
}

/// Returns frames with packed stripes: LZ4 blocks, unchanged ones, and one of them sent again.
pub fn packing() -> Vec<Vec<u8>> {
    let head = [49, 19, 1];
    let lz4 = |frame: u8, index: u8| [6, frame, 0, index, 2, 0, 0, 16];
    let unchanged = |frame: u8, index: u8| [6, frame, 0, index, 1, 0, 0, 1];
    let land = [3, 0, 0, 1, 0, 0, 0, 0];
    let first = [lz4(0, 0), land, lz4(0, 4), land, lz4(0, 6), land, lz4(0, 10), land].concat();
    let second = [unchanged(1, 0), unchanged(1, 4), unchanged(1, 6), unchanged(1, 10)].concat();
    let wait = [0, 0, 0, 100, 0, 0, 0, 0];
    [[&head[..], &first, &second].concat(), [&head[..], &second, &wait, &first].concat()].to_vec()
}
