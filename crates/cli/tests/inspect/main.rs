//! `rushes inspect` on captures made by these tests, whose contents are known exactly, and on
//! captures of other senders.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod codecs;
mod damage;
mod others;
#[path = "../shared/program.rs"]
mod program;
#[path = "../../../../interop/skipped.rs"]
mod skipped;
mod wire;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rushes::Ssrc;
use rushes::proto::NtpTime;
use rushes::proto::rtcp::{ReportBlock, SenderInfo, Writer};
use serde_json::{Value, json};

use crate::program::program;
use crate::wire::{Capture, Format, START, Sending, fragments, media, rtp_packets, udp, units};

const AVC: &str = "avc_cif_60f_baseline.264";
const HEVC: &str = "hevc_192x128_90f_tiny_nals.265";
const VVC: &str = "vvc_192x128_64f_vvenc_tiny_nals.266";
const OPUS: &str = "opus_speech_mono_mixed_durations.opus";

const AVC_SENDING: Sending = Sending { payload_type: 96, ssrc: 0x0102_0304, packet_len: 1200 };
const OPUS_SENDING: Sending = Sending { payload_type: 111, ssrc: 77, packet_len: 1200 };

fn addresses() -> (SocketAddr, SocketAddr) {
    ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5004".parse().unwrap())
}

fn addresses_v6() -> (SocketAddr, SocketAddr) {
    ("[2001:db8::1]:4000".parse().unwrap(), "[2001:db8::2]:5004".parse().unwrap())
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("inspect").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Returns the report on a capture, and the exit code.
fn inspect(file: &Path, more: &[&str]) -> (Value, i32) {
    let output = run(&[&[file.to_str().unwrap(), "--json"], more].concat());
    let code = output.status.code().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (report.unwrap_or_else(|_| panic!("{code}: {}", text(&output.stderr))), code)
}

/// A folder with a capture, for one test.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn capture(&self, octets: &[u8]) -> PathBuf {
        let path = self.path("capture");
        std::fs::write(&path, octets).unwrap();
        path
    }

    /// Returns the names of all files except the capture.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "capture").collect()
    }
}

/// Creates a plain capture of RTP packets over IPv4.
fn capture_of(packets: &[(Duration, Vec<u8>)]) -> Capture {
    let (from, to) = addresses();
    let mut capture = Capture::new(Format::Micros, false, 101);
    for (time, packet) in packets {
        capture.packet(*time, &udp(from, to, packet));
    }
    capture
}

#[test]
fn every_format_and_link_layer_holds_the_same_stream() {
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let bench = Bench::new();
    let formats =
        [Format::Micros, Format::Nanos, Format::Ng(6, 0), Format::Ng(9, -5), Format::Ng(0x94, 7)];
    for format in formats {
        for big_endian in [false, true] {
            for (link, six) in [0, 1, 101, 108, 113, 276, 228, 229]
                .into_iter()
                .flat_map(|link| [(link, false), (link, true)])
                .filter(|pair| !matches!(pair, (228, true) | (229, false)))
            {
                let (from, to) = if six { addresses_v6() } else { addresses() };
                let mut capture = Capture::new(format, big_endian, link);
                for (time, packet) in &packets {
                    capture.packet(*time, &udp(from, to, packet));
                }
                let (report, code) = inspect(&bench.capture(&capture.octets), &[]);
                let name = format!("{format:?} {big_endian} {link} {six}");
                assert_eq!(code, 0, "{name}");
                let stream = &report["streams"][0];
                assert_eq!(stream["source"], from.to_string(), "{name}");
                assert_eq!(stream["packets"], packets.len(), "{name}");
                assert_eq!(stream["lost"], 0, "{name}");
                assert_eq!(stream["units"], 63, "{name}");
                assert!((report["start"].as_f64().unwrap() - START.as_secs_f64()).abs() < 1e-3);
                let seconds = stream["seconds"].as_f64().unwrap();
                assert!((seconds - 59.0 / 30.0).abs() < 1e-3, "{name} {seconds}");
            }
        }
    }
}

#[test]
fn the_census_of_an_h264_stream_is_that_of_its_file() {
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let bench = Bench::new();
    let (report, _) = inspect(&bench.capture(&capture_of(&packets).octets), &[]);
    let stream = &report["streams"][0];
    let expected = json!([
        { "type": 1, "name": "slice", "units": 59 },
        { "type": 5, "name": "IDR slice", "units": 1 },
        { "type": 6, "name": "SEI", "units": 1 },
        { "type": 7, "name": "SPS", "units": 1 },
        { "type": 8, "name": "PPS", "units": 1 },
    ]);
    let mut rows = stream["nal_units"].clone();
    let octets: u64 =
        rows.as_array().unwrap().iter().map(|row| row["octets"].as_u64().unwrap()).sum();
    for row in rows.as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("octets");
    }
    assert_eq!(rows, expected);
    assert_eq!(octets, units(&media(AVC)).iter().map(|unit| unit.len() as u64).sum::<u64>());
    assert_eq!(stream["codec"], "H.264");
    assert_eq!(stream["codec_known"], "by default");
    assert_eq!((&stream["frames"], &stream["markers"]), (&json!(60), &json!(60)));
    assert_eq!(stream["random_access"], 1);
    assert!((stream["frames_per_second"].as_f64().unwrap() - 30.0).abs() < 1e-6);
    let payload: usize = packets.iter().map(|(_, packet)| packet.len() - 12).sum();
    assert_eq!(stream["payload_octets"], payload);
    assert_eq!(stream["wire_octets"], payload + 40 * packets.len());
    assert_eq!(stream["first_sequence"], 65_500);
    assert_eq!(stream["ssrc"], "01020304");
    assert_eq!(stream["first"], 0.0);
    assert!(stream["jitter_ms"].as_f64().unwrap() < 0.05);
}

#[test]
fn losses_duplicates_and_late_packets_are_counted_exactly() {
    let mut packets = rtp_packets(&media(OPUS), OPUS_SENDING);
    assert_eq!(packets.len(), 105);
    let late = Duration::from_millis(500);
    // Changes from the end, so that positions stay the same: one packet lost, two swapped, one
    // repeated at once, one repeated three packets later, two lost, one half a second late.
    packets.remove(90);
    let short = |n: &usize| packets[n + 1].0 < packets[*n].0 + Duration::from_millis(11);
    let swapped = (65..85).find(short).unwrap();
    let times = (packets[swapped].0, packets[swapped + 1].0);
    (packets[swapped + 1].0, packets[swapped].0) = times;
    let repeated = packets[60].clone();
    packets.insert(61, repeated);
    let repeated = packets[50].clone();
    packets.insert(54, repeated);
    packets.drain(30..32);
    let mut straggler = packets.remove(20);
    straggler.0 += late;
    packets.push(straggler);
    packets.sort_by_key(|(time, _)| *time);
    let bench = Bench::new();
    let (report, code) = inspect(&bench.capture(&capture_of(&packets).octets), &[]);
    assert_eq!(code, 0);
    let stream = &report["streams"][0];
    for (key, expected) in [
        ("packets", 104),
        ("expected", 105),
        ("lost", 3),
        ("cumulative_lost", 1),
        ("duplicates", 2),
        // The reordered packets are the late one and one of the two swapped.
        ("reordered", 2),
        ("late", 1),
        ("units", 101),
        ("frames", 101),
        ("units_dropped", 0),
    ] {
        assert_eq!(stream[key], expected, "{key}");
    }
    let percent = stream["lost_percent"].as_f64().unwrap();
    assert!((percent - 300.0 / 105.0).abs() < 1e-9);
    assert_eq!(report["datagrams"]["rtp"], 104);
}

#[test]
fn packets_out_of_order_are_counted_once_each() {
    let mut packets = rtp_packets(&media(AVC), AVC_SENDING);
    // The times stay in order, the packets do not.
    let times: Vec<Duration> = packets.iter().map(|(time, _)| *time).collect();
    packets.swap(10, 11);
    packets[20..25].rotate_left(1);
    packets[40..45].rotate_right(1);
    for ((time, _), in_order) in packets.iter_mut().zip(times) {
        *time = in_order;
    }
    let bench = Bench::new();
    let (report, _) =
        inspect(&bench.capture(&capture_of(&packets).octets), &["--reorder-time", "1s"]);
    let stream = &report["streams"][0];
    // One packet is one position late, one is four positions late, and one is four positions early,
    // which makes four late.
    assert_eq!(stream["reordered"], 1 + 1 + 4);
    assert_eq!((&stream["lost"], &stream["late"]), (&json!(0), &json!(0)));
    assert_eq!(stream["units"], 63);
}

#[test]
fn an_extracted_stream_is_its_file() {
    for (name, payload_type) in [(AVC, 96), (HEVC, 97), (VVC, 98), (OPUS, 111)] {
        let sending = Sending { payload_type, ssrc: 0xdead_beef, packet_len: 400 };
        let bench = Bench::new();
        let capture = bench.capture(&capture_of(&rtp_packets(&media(name), sending)).octets);
        let copy = bench.path(name);
        for ssrc in ["deadbeef", "0xDEADBEEF", "3735928559"] {
            let more = ["--extract", ssrc, "-o", copy.to_str().unwrap(), "--force"];
            let (report, code) = inspect(&capture, &more);
            assert_eq!(code, 0, "{name}");
            assert_eq!(units(&copy), units(&media(name)), "{name}");
            assert_eq!(report["extracted"]["ssrc"], "deadbeef");
            assert_eq!(report["extracted"]["units"], units(&copy).len());
            assert_eq!(bench.files(), [name]);
        }
    }
}

#[test]
fn frames_without_a_codec_are_extracted_one_after_the_other() {
    let bench = Bench::new();
    let source = bench.path("source.raw");
    let octets: Vec<u8> = (0..200_000_u64).map(|n| ((n * n) >> 7) as u8).collect();
    std::fs::write(&source, &octets).unwrap();
    let sending = Sending { payload_type: 99, ssrc: 1, packet_len: 1000 };
    let capture = bench.capture(&capture_of(&rtp_packets(&source, sending)).octets);
    let copy = bench.path("copy.raw");
    let (report, code) = inspect(&capture, &["--extract", "1", "-o", copy.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert_eq!(report["streams"][0]["codec"], "generic");
    assert_eq!(std::fs::read(&copy).unwrap(), octets);
}

#[test]
fn ip_fragments_are_put_together() {
    for (from, to) in [addresses(), addresses_v6()] {
        let sending = Sending { packet_len: 1200, ..OPUS_SENDING };
        let mut capture = Capture::new(Format::Nanos, false, 1);
        let (mut pieces, mut packets) = (0, 0);
        for (time, packet) in rtp_packets(&media(OPUS), sending) {
            let mut parts = fragments(from, to, &packet, 136);
            // The last fragment comes first, as some systems send them.
            parts.reverse();
            if parts.len() == 1 {
                parts = vec![udp(from, to, &packet)];
            } else {
                (pieces, packets) = (pieces + parts.len(), packets + 1);
            }
            for part in parts {
                capture.packet(time, &part);
            }
        }
        assert!(packets > 10);
        let bench = Bench::new();
        let (report, code) = inspect(&bench.capture(&capture.octets), &[]);
        assert_eq!(code, 0);
        assert_eq!(report["streams"][0]["units"], 105);
        assert_eq!(report["skipped"]["fragments"], pieces);
        assert_eq!(report["skipped"]["reassembled"], packets);
        assert_eq!(report["skipped"]["not_reassembled"], 0);
    }
}

#[test]
fn the_codec_is_given_described_or_guessed() {
    let bench = Bench::new();
    let sdp = bench.path("stream.sdp");
    let description = "v=0\no=- 0 0 IN IP4 192.0.2.1\ns=-\nt=0 0\nm=video 5004 RTP/AVP 103 96\n\
                       a=rtpmap:103 H266/90000\na=rtpmap:96 H265/90000\n";
    std::fs::write(&sdp, description).unwrap();
    let sdp = sdp.to_str().unwrap();
    let cases: [(&str, u8, &[&str], &str, &str); 9] = [
        (AVC, 102, &[], "H.264", "a guess from the payloads"),
        (HEVC, 96, &[], "H.265", "a guess from the payloads"),
        (VVC, 100, &[], "H.266", "a guess from the payloads"),
        (OPUS, 96, &[], "Opus", "a guess from the payloads"),
        (HEVC, 100, &["--codec", "h265"], "H.265", "from the command line"),
        (
            AVC,
            100,
            &["--payload-type", "100=h264", "--codec", "opus"],
            "H.264",
            "from the command line",
        ),
        (VVC, 103, &["--sdp", sdp], "H.266", "from the SDP"),
        (HEVC, 96, &["--sdp", sdp], "H.265", "from the SDP"),
        (AVC, 96, &["--sdp", sdp, "--payload-type", "96=h264"], "H.264", "from the command line"),
    ];
    for (name, payload_type, more, codec, known) in cases {
        let sending = Sending { payload_type, ssrc: 9, packet_len: 300 };
        let capture = bench.capture(&capture_of(&rtp_packets(&media(name), sending)).octets);
        let (report, _) = inspect(&capture, more);
        let stream = &report["streams"][0];
        assert_eq!((&stream["codec"], &stream["codec_known"]), (&json!(codec), &json!(known)));
        assert_eq!(stream["units"], units(&media(name)).len(), "{name} {more:?}");
        assert_eq!(stream["units_dropped"], 0);
    }
}

#[test]
fn rtcp_names_the_sources_and_their_losses() {
    let (camera, viewer) = addresses();
    let report_port = |address: SocketAddr| SocketAddr::new(address.ip(), address.port() + 1);
    let (camera_rtcp, viewer_rtcp) = (report_port(camera), report_port(viewer));
    let media_ssrc = Ssrc(AVC_SENDING.ssrc);
    let mut capture = capture_of(&rtp_packets(&media(AVC), AVC_SENDING));
    let time = START + Duration::from_secs(3);
    let ntp = NtpTime::from_unix(time);
    let mut writer = Writer::new();
    let info = SenderInfo { ntp, packets: 60, octets: 65_000, ..SenderInfo::default() };
    writer.sender_report(media_ssrc, &info, &[]);
    writer.cname(media_ssrc, "camera@example");
    capture.packet(time, &udp(camera_rtcp, viewer_rtcp, writer.bytes()));
    let mut writer = Writer::new();
    let block = ReportBlock {
        ssrc: media_ssrc,
        fraction_lost: 64,
        cumulative_lost: 12,
        jitter: 90,
        last_sender_report: ntp.middle(),
        delay: 65_536,
        highest: 0,
    };
    writer.receiver_report(Ssrc(8), &[block]);
    writer.picture_loss(Ssrc(8), media_ssrc);
    writer.bye(&[Ssrc(8)], "done");
    let answered = time + Duration::from_millis(1025);
    capture.packet(answered, &udp(viewer_rtcp, camera_rtcp, writer.bytes()));
    let bench = Bench::new();
    let path = bench.capture(&capture.octets);
    let (report, _) = inspect(&path, &[]);
    let rtcp = &report["streams"][0]["rtcp"];
    for (key, expected) in [
        ("cname", json!("camera@example")),
        ("sender_reports", json!(1)),
        ("packets_sent", json!(60)),
        ("reports_about", json!(1)),
        ("reported_by", json!("00000008")),
        ("fraction_lost", json!(0.25)),
        ("cumulative_lost", json!(12)),
        ("jitter_ticks", json!(90)),
        ("feedback", json!({ "PLI": 1 })),
    ] {
        assert_eq!(rtcp[key], expected, "{key}");
    }
    assert!((rtcp["round_trip_ms"].as_f64().unwrap() - 25.0).abs() < 1e-3);
    assert_eq!(report["other_sources"]["00000008"]["goodbye"], "done");
    let expected = json!({ "SR": 1, "SDES": 1, "RR": 1, "PSFB": 1, "BYE": 1 });
    assert_eq!(report["rtcp_packets"], expected);
    let words = text(&run(&[path.to_str().unwrap()]).stdout);
    assert!(words.contains("CNAME camera@example") && words.contains("25.00 ms"), "{words}");
}

#[test]
fn elements_of_header_extensions_are_counted() {
    let mut packets = rtp_packets(&media(OPUS), OPUS_SENDING);
    let mut extend = |n: usize, extension: &[u8]| {
        packets[n].1[0] |= 0x10;
        packets[n].1.splice(12..12, extension.iter().copied());
    };
    for n in 20..30 {
        extend(n, &[0xbe, 0xde, 0, 1, 0x10, 7, 0x30, 1]);
    }
    extend(30, &[0x10, 0, 0, 1, 3, 2, 1, 1]);
    // An element beyond the end, and another format.
    extend(31, &[0xbe, 0xde, 0, 1, 0x1f, 7, 0, 0]);
    extend(32, &[0x12, 0x34, 0, 0]);
    let bench = Bench::new();
    let path = bench.capture(&capture_of(&packets).octets);
    let (report, _) = inspect(&path, &[]);
    let stream = &report["streams"][0];
    let expected = json!([
        { "id": 1, "elements": 10, "shortest": 1, "longest": 1 },
        { "id": 3, "elements": 11, "shortest": 1, "longest": 2 },
    ]);
    assert_eq!(stream["extension_elements"], expected);
    assert_eq!((&stream["other_extensions"], &stream["lost"]), (&json!(2), &json!(0)));
    let line =
        "element 1 of 1 octet 10 times, element 3 of 1 to 2 octets 11 times, 2 without a list";
    let words = text(&run(&[path.to_str().unwrap()]).stdout);
    assert!(words.contains(line), "{words}");
}

#[test]
fn another_payload_type_of_the_same_source_is_no_loss() {
    let mut packets = rtp_packets(&media(OPUS), OPUS_SENDING);
    for n in [20, 21, 60] {
        packets[n].1[1] = 101;
    }
    let bench = Bench::new();
    let (report, _) = inspect(&bench.capture(&capture_of(&packets).octets), &[]);
    let stream = &report["streams"][0];
    assert_eq!(stream["other_payload_types"], json!({ "101": 3 }));
    assert_eq!((&stream["lost"], &stream["units"]), (&json!(0), &json!(102)));
}

#[test]
fn packets_that_the_network_interface_would_divide_are_separated() {
    let (from, to) = addresses();
    let packets = rtp_packets(&media(AVC), Sending { packet_len: 200, ..AVC_SENDING });
    let mut capture = Capture::new(Format::Micros, false, 1);
    let mut datagrams = 0;
    // The datagrams are as passed to the kernel: packets of one length, then possibly a shorter
    // one.
    for frame in packets.chunk_by(|(_, a), (_, b)| a[4..8] == b[4..8]) {
        for run in frame.chunk_by(|(_, a), (_, b)| a.len() == 200 && b.len() <= 200) {
            let joined: Vec<u8> = run.iter().flat_map(|(_, packet)| packet.clone()).collect();
            capture.packet(frame[0].0, &udp(from, to, &joined));
            datagrams += 1;
        }
    }
    assert!(datagrams < packets.len());
    let bench = Bench::new();
    let (report, code) = inspect(&bench.capture(&capture.octets), &[]);
    assert_eq!(code, 0);
    let stream = &report["streams"][0];
    assert_eq!((&stream["packets"], &stream["lost"]), (&json!(packets.len()), &json!(0)));
    assert_eq!(stream["units"], 63);
    let wire: usize = packets.iter().map(|(_, packet)| packet.len() + 28).sum();
    assert_eq!(stream["wire_octets"], wire);
    assert!(report["offloaded"]["datagrams"].as_u64().unwrap() > 10);
}

#[test]
fn other_datagrams_than_rtp_are_reported_by_kind() {
    let (from, to) = addresses();
    let mut capture = capture_of(&rtp_packets(&media(AVC), AVC_SENDING));
    let stray = [0x80, 96, 0, 1, 0, 0, 0, 0, 9, 9, 9, 9, 1];
    for data in [
        &[][..],
        &[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 0, 0, 0, 0],
        &[22, 0xfe, 0xfd, 0, 0, 0],
        b"\x10\0\0\x01ZRTP",
        b"hello",
        &stray,
    ] {
        capture.packet(START, &udp(from, to, data));
    }
    let bench = Bench::new();
    let (report, code) = inspect(&bench.capture(&capture.octets), &[]);
    assert_eq!(code, 0);
    let kinds = &report["datagrams"];
    for kind in ["empty", "stun", "dtls", "zrtp", "other"] {
        assert_eq!(kinds[kind], 1, "{kind}");
    }
    assert_eq!(report["skipped"]["rtp_without_stream"], 1);
    assert_eq!(report["streams"].as_array().unwrap().len(), 1);
}

#[test]
fn streams_beyond_the_limit_are_counted() {
    let (from, to) = addresses();
    let mut capture = Capture::new(Format::Micros, false, 101);
    for ssrc in 0..1500_u32 {
        for sequence in 0..4_u16 {
            let head = [[0x80, 99], sequence.to_be_bytes()].concat();
            let packet = [&head[..], &[0; 4], &ssrc.to_be_bytes(), b"frame"].concat();
            capture.packet(START, &udp(from, to, &packet));
        }
    }
    let bench = Bench::new();
    let (report, _) = inspect(&bench.capture(&capture.octets), &[]);
    assert_eq!(report["streams"].as_array().unwrap().len(), 1024);
    assert_eq!(report["skipped"]["rtp_of_further_streams"], (1500 - 1024) * 4);
}
