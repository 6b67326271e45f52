//! Every format of the table is streamed, described, received by SDP, written to a file, read again
//! and recognised by its packets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use rushes::file::{MediaReader, MediaWriter, ReadOptions, codec_of};
use rushes::format::{Codec, FORMATS, FormatOptions, MediaFormat, guess};
use rushes::payload::nal::find_units;
use rushes::payload::raw::{RawVideo, Sampling};
use rushes::proto::FrameRate;
use rushes::proto::rtp::Packet;
use rushes::proto::stream::{Sender, SenderConfig};
use rushes::proto::{Batch, SequenceNumber};
use rushes::sdp::{Description, encoding_of};
use rushes::{
    Context, Error, Framing, MediaStream, Pacing, RtpTimestamp, Session, Ssrc, StreamBuilder,
};

/// A format's name, some of its frames, and whether it is recognised by its packets.
type Row = (&'static str, fn() -> Vec<Vec<u8>>, bool);

const ROWS: &[Row] = &[
    ("av1", || frames_of("av1_320x180_60f_libaom.obu"), true),
    ("generic", || (0..20).map(|n| vec![n; 100 + 400 * usize::from(n)]).collect(), false),
    ("h264", || frames_of("avc_cif_60f_baseline.264"), true),
    ("h265", || frames_of("hevc_192x128_90f_tiny_nals.265"), true),
    ("h266", || frames_of("vvc_192x128_64f_vvenc_tiny_nals.266"), true),
    ("klv", klv_items, true),
    ("uncompressed", || (0..4).map(|n| vec![n * 50; raw_video().frame_len()]).collect(), true),
    ("l16", || samples(48, 4), true),
    ("l24", || samples(48, 6), true),
    ("opus", || frames_of("opus_speech_mono_mixed_durations.opus"), true),
    ("pcma", || quiet(0xd5), true),
    ("pcmu", || quiet(0xff), true),
    ("vp8", || frames_of("vp8_320x180_60f_libvpx.ivf"), true),
    ("vp9", || frames_of("vp9_320x180_60f_libvpx.ivf"), true),
];

/// Returns the uncompressed video of the tests.
fn raw_video() -> RawVideo {
    RawVideo::new(Sampling::YCbCr420, 8, 160, 90).unwrap()
}

/// Returns a stream of `codec` with what its format needs to be known.
fn stream(session: &Session, codec: Codec) -> StreamBuilder {
    let builder = session.stream(codec).rtcp(false);
    if codec == Codec::Uncompressed { builder.raw_video(raw_video()) } else { builder }
}

const PATIENCE: Duration = Duration::from_secs(10);

fn frames_of(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name);
    read(&path, codec_of(&path).unwrap(), 0)
}

/// Returns frames of so many sample groups, each a packet.
fn samples(groups: usize, group_len: usize) -> Vec<Vec<u8>> {
    let frame = |n: usize| (0..groups * group_len).map(|at| (at * n + at / 7) as u8).collect();
    (0..30).map(frame).collect()
}

/// Returns frames of quiet speech, whose silence is this octet.
fn quiet(silence: u8) -> Vec<Vec<u8>> {
    let near = |frame: Vec<u8>| frame.iter().map(|octet| silence ^ (octet % 50)).collect();
    samples(160, 1).into_iter().map(near).collect()
}

/// Returns items of KLV (SMPTE ST 336) with lengths of 0 to 7 600, which take one packet or
/// several.
fn klv_items() -> Vec<Vec<u8>> {
    let item = |n: u8| {
        let len = 400 * u16::from(n);
        let [high, low] = len.to_be_bytes();
        let head = [b"\x06\x0e\x2b\x34twelve octet", &[0x82, high, low][..]].concat();
        [head, vec![n; len.into()]].concat()
    };
    (0..20).map(item).collect()
}

fn read(path: &Path, codec: Codec, frame_len: usize) -> Vec<Vec<u8>> {
    let mut options = ReadOptions::default();
    options.frame_len = frame_len;
    let mut reader = MediaReader::open(path, codec, options).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame.data.clone());
    }
    frames
}

/// Returns the codec of each row, its frames, and whether it is recognised.
fn all() -> impl Iterator<Item = (Codec, Vec<Vec<u8>>, bool)> {
    let row = |(name, frames, shows): &Row| (Codec::named(name).unwrap(), frames(), *shows);
    ROWS.iter().map(row)
}

#[test]
fn every_format_has_a_row() {
    let rows: BTreeSet<&str> = ROWS.iter().map(|(name, ..)| *name).collect();
    let formats: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(rows, formats);
}

/// Returns a frame with all start codes, if it has any, of one length.
fn normal(codec: Codec, frame: &[u8]) -> Vec<u8> {
    if codec.nal.is_none() {
        return frame.to_vec();
    }
    let mut units = Vec::new();
    find_units(frame, Framing::AnnexB, &mut units).unwrap();
    units.into_iter().flat_map(|unit| [&[0, 0, 0, 1], &frame[unit]].concat()).collect()
}

/// Sends `frames`, and checks that they are received.
fn check_frames(
    codec: Codec,
    sender: &mut MediaStream,
    receiver: &mut MediaStream,
    frames: &[Vec<u8>],
) {
    for (n, frame) in frames.iter().enumerate() {
        sender.push_frame(frame, RtpTimestamp(n as u32 * 3000)).unwrap();
    }
    sender.sender().send_keep_alive().unwrap();
    for (n, frame) in frames.iter().enumerate() {
        let received = receiver.pull_frame(PATIENCE).unwrap();
        let received = received.unwrap_or_else(|| panic!("frame {n} of {}", frames.len()));
        assert_eq!(received[..], normal(codec, frame), "frame {n}");
    }
}

#[test]
fn every_format_is_described_and_received_by_sdp() {
    for (codec, frames, _) in all() {
        let frames = &frames[..frames.len().min(8)];
        let session = Context::new().session("127.0.0.1").unwrap();
        let Some(encoding) = encoding_of(codec, &frames[0]) else {
            // Descriptions cannot name this format, so both ends are set up by hand.
            let mut receiver = stream(&session, codec).open().unwrap();
            let port = receiver.local_address().port();
            let sender = stream(&session, codec).pacing(Pacing::Off);
            let mut sender = sender.remote_port(port).open().unwrap();
            check_frames(codec, &mut sender, &mut receiver, frames);
            continue;
        };
        let mut sending = stream(&session, codec).pacing(Pacing::Off);
        let text = {
            let free = stream(&session, codec).open().unwrap();
            sending = sending.remote_port(free.local_address().port());
            sending.description(encoding).unwrap().write()
        };
        let description = Description::parse(text.as_bytes()).unwrap();
        let media = &description.media[0];
        assert_eq!(rushes::sdp::codec_of(&media.formats[0]), Some(codec), "{text}");
        assert!(text.contains(&format!("m={} ", codec.media)), "{text}");
        let mut receiver = Context::new().described(media).unwrap().rtcp(false).open().unwrap();
        let mut sender = sending.open().unwrap();
        check_frames(codec, &mut sender, &mut receiver, frames);
    }
}

#[test]
fn every_format_is_written_to_a_file_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, frames, _) in all() {
        for extension in codec.files.extensions {
            let path = folder.path().join(format!("file.{extension}"));
            let mut writer = MediaWriter::create(&path, codec).unwrap();
            if codec == Codec::Uncompressed {
                writer.set_raw_video(raw_video(), None).unwrap();
            }
            // The samples of a frame last until the next one.
            let ticks = codec.sample.map_or(960, |_| {
                let packetiser = (codec.payload)(&FormatOptions::default()).packetiser();
                packetiser.duration(&frames[0]).unwrap()
            });
            for (n, frame) in frames.iter().enumerate() {
                writer.write(frame, RtpTimestamp(n as u32 * ticks)).unwrap();
            }
            writer.finish().unwrap();
            assert_eq!(codec_of(&path), Some(codec));
            let again = read(&path, codec, 1 << 20);
            assert_eq!(again.concat(), frames.concat(), "{}", path.display());
            assert!(codec == Codec::Generic || again == frames, "{}", path.display());
        }
    }
}

#[test]
fn formats_are_recognised_by_their_packets_and_by_no_others() {
    for (codec, frames, shows) in all() {
        let config = SenderConfig {
            ssrc: Ssrc(1),
            payload_type: codec.payload_type,
            first_sequence: SequenceNumber(1),
            first_timestamp: RtpTimestamp(1),
            clock_rate: codec.clock_rate,
            frame_rate: FrameRate::DEFAULT,
            packet_len_max: 1200,
        };
        let mut options = FormatOptions::default();
        options.raw = Some(raw_video().into());
        let packetiser = (codec.payload)(&options).packetiser();
        let mut sender = Sender::new(packetiser, config).unwrap();
        let (mut batch, mut datagrams) = (Batch::new(), Vec::new());
        for frame in &frames {
            let mut outgoing = sender.push(frame, None).unwrap();
            while outgoing.fill(&mut batch) {
                let mut rest = batch.bytes();
                for len in batch.lengths() {
                    let (datagram, behind) = rest.split_at(usize::from(*len));
                    datagrams.push(datagram.to_vec());
                    rest = behind;
                }
            }
        }
        let packets: Vec<Packet<'_>> =
            datagrams.iter().map(|datagram| Packet::parse(datagram).unwrap()).collect();
        assert_eq!(guess(&packets), shows.then_some(codec), "{}", codec.name);
        if let Some(nal) = codec.nal {
            let is_key_frame = frames.iter().filter(|frame| (codec.is_key_frame)(frame)).count();
            assert!((1..frames.len()).contains(&is_key_frame), "{nal:?}: {is_key_frame}");
            assert!((codec.has_parameter_sets)(&frames[0]), "{nal:?}");
        }
    }
}

/// The options that the payload format of [`RATED`] was created with.
static MADE_WITH: Mutex<Option<FormatOptions>> = Mutex::new(None);
static RATED: MediaFormat = MediaFormat {
    name: "rated",
    encoding: Some("X-RATED"),
    payload: |options| {
        *MADE_WITH.lock().unwrap() = Some(options.clone());
        (Codec::Generic.payload)(options)
    },
    ..MediaFormat::UNKNOWN
};

#[test]
fn a_described_format_is_made_with_the_rate_and_the_parameters_of_its_description() {
    Codec::register(&RATED).unwrap();
    let text = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
        m=application 5004 RTP/AVP 99\r\na=rtpmap:99 X-RATED/1000\r\na=fmtp:99 unit=mm;depth=3\r\n";
    let description = Description::parse(text.as_bytes()).unwrap();
    let builder = Context::new().described(&description.media[0]).unwrap();
    let _stream = builder.local_port(0).rtcp(false).open().unwrap();
    let options = MADE_WITH.lock().unwrap().take().unwrap();
    assert_eq!(options.clock_rate.map(rushes::ClockRate::hertz), Some(1000));
    assert_eq!(options.parameters, "unit=mm;depth=3");
}

static TWIN: MediaFormat = MediaFormat { name: "H264", ..MediaFormat::UNKNOWN };
static NAMESAKE: MediaFormat =
    MediaFormat { name: "mine", encoding: Some("OPUS"), ..MediaFormat::UNKNOWN };
static ALIAS: MediaFormat = MediaFormat { name: "Raw", ..MediaFormat::UNKNOWN };
static OWN: MediaFormat =
    MediaFormat { name: "own", encoding: Some("X-OWN"), ..MediaFormat::UNKNOWN };

#[test]
fn a_format_that_clashes_with_another_is_not_registered() {
    for (format, other) in [(&TWIN, "h264"), (&NAMESAKE, "opus"), (&ALIAS, "generic")] {
        let error = Codec::register(format).unwrap_err();
        assert!(matches!(error, Error::FormatTaken { other: it, .. } if it == other), "{error}");
    }
    let own = Codec::register(&OWN).unwrap();
    assert_eq!(Codec::register(&OWN).unwrap(), own);
    assert_eq!((Codec::named("own"), Codec::of_encoding("x-own")), (Some(own), Some(own)));
}

#[test]
fn uncompressed_video_of_unknown_or_too_large_size_is_not_opened() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let error = session.stream(Codec::Uncompressed).open().unwrap_err();
    assert!(error.to_string().contains("must be given (raw_video)"), "{error}");
    let error = stream(&session, Codec::Uncompressed).frame_len_max(1000).open().unwrap_err();
    assert!(matches!(error, Error::FrameLen { len: 21_600, limit: 1000 }), "{error}");
    let text = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
        m=video 5004 RTP/AVP 99\r\na=rtpmap:99 raw/90000\r\na=fmtp:99 sampling=CLYCbCr-4:2:2\r\n";
    let description = Description::parse(text.as_bytes()).unwrap();
    let error = Context::new().described(&description.media[0]).unwrap_err();
    assert!(error.to_string().contains("raw: sampling=CLYCbCr-4:2:2"), "{error}");
}

#[test]
fn lost_parts_of_uncompressed_video_are_reported_with_its_frame() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let receiver = stream(&session, Codec::Uncompressed).probation(1).incomplete_frames(true);
    let mut receiver = receiver.open().unwrap();
    let config = SenderConfig {
        ssrc: Ssrc(1),
        payload_type: Codec::Uncompressed.payload_type,
        first_sequence: SequenceNumber(1),
        first_timestamp: RtpTimestamp(1),
        clock_rate: Codec::Uncompressed.clock_rate,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 1200,
    };
    let mut options = FormatOptions::default();
    options.raw = Some(raw_video().into());
    let packetiser = (Codec::Uncompressed.payload)(&options).packetiser();
    let mut sender = Sender::new(packetiser, config).unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let frame = vec![7; raw_video().frame_len()];
    let (mut batch, mut sent) = (Batch::new(), 0);
    let mut outgoing = sender.push(&frame, None).unwrap();
    while outgoing.fill(&mut batch) {
        for datagram in batch.datagrams() {
            sent += 1;
            if sent != 3 {
                socket.send_to(datagram, receiver.local_address()).unwrap();
            }
        }
    }
    let received = receiver.pull_frame(PATIENCE).unwrap().unwrap();
    let [missing] = received.missing() else { panic!("{:?}", received.missing()) };
    // Two packets of three parts, of 1 164 octets each, and a third with the rest of the fifth row and
    // the two rows after it.
    assert_eq!(*missing, 2328..2328 + 72 + 2 * 480);
    let octets: Vec<u8> =
        (0..frame.len()).map(|n| if missing.contains(&n) { 0 } else { 7 }).collect();
    assert!(received[..] == octets);
}
