//! Damaged and cut captures, other files, and invalid command lines.

use std::time::Duration;

use serde_json::json;

use super::{
    AVC, AVC_SENDING, Bench, Capture, Format, START, Sending, addresses, capture_of, inspect,
    media, rtp_packets, run, text, udp, units,
};

#[test]
fn a_file_that_ends_early_is_reported_up_to_there() {
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    for format in [Format::Micros, Format::Ng(6, 0)] {
        let (from, to) = addresses();
        let mut capture = Capture::new(format, false, 101);
        for (time, packet) in &packets[..50] {
            capture.packet(*time, &udp(from, to, packet));
        }
        let whole = capture.octets.len();
        capture.packet(packets[50].0, &udp(from, to, &packets[50].1));
        let bench = Bench::new();
        let path = bench.capture(&capture.octets[..whole + 30]);
        let (report, code) = inspect(&path, &[]);
        assert_eq!(code, 1);
        assert_eq!(report["packets"], 50);
        assert_eq!(report["streams"][0]["packets"], 50);
        assert_eq!(report["error"]["packet"], 51);
        let output = run(&[path.to_str().unwrap()]);
        assert!(text(&output.stderr).contains("the file ends inside packet 51"));
        assert!(text(&output.stdout).contains("H.264"));
    }
}

#[test]
fn a_damaged_length_names_its_packet() {
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let mut capture = capture_of(&packets[..20]);
    let record = capture.octets.len();
    let more = capture_of(&packets[20..]).octets;
    capture.octets.extend(&more[24..]);
    capture.octets[record + 8..record + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let bench = Bench::new();
    let (report, code) = inspect(&bench.capture(&capture.octets), &[]);
    assert_eq!(code, 1);
    assert_eq!(report["error"]["packet"], 21);
    assert_eq!(report["streams"][0]["packets"], 20);
}

#[test]
fn packets_cut_by_the_capture_still_count() {
    let (from, to) = addresses();
    let mut capture = Capture::new(Format::Micros, false, 1);
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    for (time, packet) in &packets {
        capture.cut_packet(*time, &udp(from, to, packet), 96);
    }
    let bench = Bench::new();
    let path = bench.capture(&capture.octets);
    let (report, code) = inspect(&path, &[]);
    assert_eq!(code, 1);
    let stream = &report["streams"][0];
    assert_eq!(stream["packets"], packets.len());
    assert_eq!(stream["lost"], 0);
    let wire: usize = packets.iter().map(|(_, packet)| packet.len() + 28).sum();
    assert_eq!(stream["wire_octets"], wire);
    let cut = packets.iter().filter(|(_, packet)| packet.len() + 46 > 96).count();
    assert_eq!(stream["cut"], cut);
    let message = text(&run(&[path.to_str().unwrap()]).stderr);
    assert!(message.contains("was cut to 96 of"), "{message}");
}

#[test]
fn a_capture_without_streams_fails_with_a_message() {
    let (from, to) = addresses();
    let mut capture = Capture::new(Format::Nanos, true, 113);
    capture.packet(START, &udp(from, to, b"no stream"));
    let bench = Bench::new();
    let path = bench.capture(&capture.octets);
    let output = run(&[path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no RTP stream found"));
    assert!(text(&output.stdout).contains("1 packet,"));
}

#[test]
fn what_is_no_capture_is_refused() {
    let bench = Bench::new();
    for octets in [&b""[..], b"\0\0\0\x01\x67", &[0; 100], &[0xd4, 0xc3, 0xb2, 0xa1]] {
        let output = run(&[bench.capture(octets).to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{octets:?}");
        assert!(text(&output.stderr).contains("not a capture"), "{octets:?}");
    }
    let folder = bench.folder.path().to_str().unwrap();
    let missing = bench.path("missing");
    for path in [folder, missing.to_str().unwrap()] {
        assert_eq!(run(&[path]).status.code(), Some(1), "{path}");
    }
}

#[test]
fn command_lines_that_cannot_work_are_usage_errors() {
    let bench = Bench::new();
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let path = bench.capture(&capture_of(&packets).octets);
    let path = path.to_str().unwrap();
    for line in [
        &["--extract", "01020304"][..],
        &["-o", "x"],
        &["--extract", "01020304", "-o", "-"],
        &["--extract", "xyz", "-o", "x"],
        &["--payload-type", "96"],
        &["--payload-type", "72=h264"],
        &["--codec", "mp3"],
        &["--codec", "xyz=h264"],
    ] {
        let output = run(&[&[path], line].concat());
        assert_eq!(output.status.code(), Some(2), "{line:?}");
    }
}

#[test]
fn an_extraction_that_fails_leaves_nothing_behind() {
    let bench = Bench::new();
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let capture = bench.capture(&capture_of(&packets).octets);
    let copy = bench.path("copy.264");
    let (_, code) = inspect(&capture, &["--extract", "99", "-o", copy.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert_eq!(bench.files(), [""; 0]);
    // All packets are lost except the fragments in the middle of pictures.
    let middle: Vec<(Duration, Vec<u8>)> =
        rtp_packets(&media(AVC), Sending { packet_len: 300, ..AVC_SENDING })
            .into_iter()
            .filter(|(_, packet)| packet[12] & 31 == 28 && packet[13] & 0xc0 == 0)
            .collect();
    assert!(middle.len() > 100);
    let fragments = bench.capture(&capture_of(&middle).octets);
    let more = ["--codec", "h264", "--extract", "01020304", "-o", copy.to_str().unwrap()];
    let (report, code) = inspect(&fragments, &more);
    assert_eq!((code, &report["streams"][0]["units"]), (1, &json!(0)));
    assert_eq!(bench.files(), [""; 0]);
    let capture = bench.capture(&capture_of(&packets).octets);
    let nowhere = bench.path("missing/copy.264");
    let more = ["--extract", "01020304", "-o", nowhere.to_str().unwrap(), "--json"];
    let output = run(&[&[capture.to_str().unwrap()], &more[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot create"));
    assert_eq!(bench.files(), [""; 0]);
}

#[test]
fn an_extraction_replaces_a_file_only_when_it_is_whole() {
    let bench = Bench::new();
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let capture = bench.capture(&capture_of(&packets).octets);
    let copy = bench.path("copy.264");
    std::fs::write(&copy, b"before").unwrap();
    let name = copy.to_str().unwrap();
    let refused = run(&[capture.to_str().unwrap(), "--extract", "01020304", "-o", name]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("exists; --force overwrites it"));
    assert_eq!(inspect(&capture, &["--extract", "99", "-o", name, "--force"]).1, 1);
    assert_eq!(std::fs::read(&copy).unwrap(), b"before");
    assert_eq!(inspect(&capture, &["--extract", "01020304", "-o", name, "-f"]).1, 0);
    assert!(std::fs::read(&copy).unwrap().starts_with(&[0, 0, 0, 1, 0x67]));
}

#[test]
fn what_was_whole_before_the_damage_is_extracted() {
    let bench = Bench::new();
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let octets = capture_of(&packets).octets;
    let capture = bench.capture(&octets[..octets.len() - 10]);
    let copy = bench.path("copy.264");
    let more = ["--extract", "01020304", "-o", copy.to_str().unwrap()];
    let (report, code) = inspect(&capture, &more);
    assert_eq!(code, 1);
    assert_eq!(report["extracted"]["units"], 62);
    assert_eq!(units(&copy), units(&media(AVC))[..62]);
}

#[test]
fn a_quiet_run_reports_only_by_its_exit_code() {
    let bench = Bench::new();
    let packets = rtp_packets(&media(AVC), AVC_SENDING);
    let capture = bench.capture(&capture_of(&packets).octets);
    let output = run(&[capture.to_str().unwrap(), "-q"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}
