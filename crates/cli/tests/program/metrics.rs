//! `--metrics`: a running command, observed from outside.
#![allow(clippy::float_cmp, reason = "these are counts")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use crate::openmetrics::Exposition;
use crate::rig::{MEDIA, free_port, interrupt, json, listening, media, run, rushes, text};
use crate::texture_rig::serving;

/// Returns a free address for metrics.
fn address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// Sends `request` and returns the whole answer; empty if the connection was closed without one.
fn ask(address: &str, request: &[u8]) -> String {
    let mut stream = connect(address);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server that refuses a request closes the connection while it is still being written.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    text(&answer)
}

/// Connects when the program listens.
fn connect(address: &str) -> TcpStream {
    for _ in 0..2000 {
        if let Ok(stream) = TcpStream::connect(address) {
            return stream;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing listens at {address}");
}

fn scrape(address: &str) -> Exposition {
    let answer = ask(address, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    Exposition::parse(body)
}

/// Scrapes until `is_so` returns true; returns the last scrape.
fn scrape_until(address: &str, is_so: impl Fn(&Exposition) -> bool) -> Exposition {
    for _ in 0..600 {
        let found = scrape(address);
        if is_so(&found) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the metrics do not become as expected: {:?}", scrape(address));
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Returns the metrics that `docs/observing.md` lists for `command`, with their types.
fn documented(command: &str) -> BTreeMap<String, String> {
    let page = page("observing.md");
    let rows = page.lines().filter(|line| line.starts_with("| `rushes_"));
    let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().to_owned()).collect());
    let of_command = |cells: &Vec<String>| cells[3].split(", ").any(|it| it == command);
    let cells = cells.filter(of_command);
    cells.map(|cells| (cells[1].trim_matches('`').to_owned(), cells[2].clone())).collect()
}

/// Scrapes until all metrics that the page lists for `command` are present, except those of options
/// that are not given.
fn scrape_whole(address: &str, command: &str, not_given: &[&str]) -> Exposition {
    let mut listed = documented(command);
    for name in not_given {
        assert!(listed.remove(*name).is_some(), "{name}");
    }
    let found = scrape_until(address, |found| {
        let is_listed = |(name, kind): (&String, &String)| listed.get(name) == Some(kind);
        assert!(found.types.iter().all(is_listed), "unlisted: {:?}", found.types);
        found.types.len() == listed.len()
    });
    assert_eq!(found.types, listed);
    found
}

fn finish(child: Child) -> Value {
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", text(&output.stderr)))
}

fn copy(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("copy.265")
}

#[test]
fn a_reception_is_seen_from_outside_as_its_report_has_it() {
    let (folder, metrics) = (tempfile::tempdir().unwrap(), address());
    let more = ["--metrics", &metrics, "--idle-timeout", "600s"];
    let (receiver, to) = listening(&copy(&folder), &more);
    let send = ["send", &media(MEDIA[1]), "--to", &to, "--json", "--no-rtcp"];
    let sender = rushes(&[&send[..], &["--fps", "50", "--loop", "2"]].concat()).spawn().unwrap();
    scrape_until(&metrics, |found| {
        found.values("rushes_source_frames_received_total", "").sum::<f64>() > 5.0
    });
    // A stranger sends too little to be written, and a datagram that is not RTP.
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0; 50], &to).unwrap();
    let other = json(&run(&[&send[..], &["--flat-out"]].concat()));
    let sent = json(&sender.wait_with_output().unwrap());
    let packets = [&sent, &other].map(|report| report["sent"]["packets"].as_f64().unwrap());
    let found = scrape_until(&metrics, |found| {
        found.value("rushes_packets_received_total", "") >= packets[0] + packets[1]
            && found.value("rushes_discards_total", "reason=\"not RTP\"") > 0.0
    });
    let report = finish(receiver);
    let (own, all) = (&report["received"], &report["other_sources"]);
    for (name, pointer) in [
        ("packets_received", "packets"),
        ("packets_lost", "packets_lost"),
        ("frames_received", "frames"),
        ("frames_dropped", "frames_dropped"),
    ] {
        let of_source = found.value(&format!("rushes_source_{name}_total"), "ssrc=");
        assert_eq!(Some(of_source), own[pointer].as_f64(), "{name}");
        let total = found.value(&format!("rushes_{name}_total"), "codec=\"h265\"");
        assert_eq!(Some(total - of_source), all[pointer].as_f64(), "{name}");
    }
    for (name, pointer) in [
        ("payload_received_bytes", "payload_octets"),
        ("packets_reordered", "reordered"),
        ("retransmissions_requested", "requested"),
        ("foreign_datagrams", "foreign"),
        ("kernel_drops", "kernel_drops"),
    ] {
        let total = found.value(&format!("rushes_{name}_total"), "stream=\"0\"");
        assert_eq!(Some(total), own[pointer].as_f64(), "{name}");
    }
    for (reason, count) in own["discards"].as_object().unwrap() {
        let label = format!("reason=\"{reason}\"");
        assert_eq!(Some(found.value("rushes_discards_total", &label)), count.as_f64(), "{label}");
    }
    let all: f64 = found.values("rushes_discards_total", "").sum();
    let reported = own["discards"].as_object().unwrap().values().filter_map(Value::as_f64);
    assert_eq!(all, reported.sum::<f64>());
    let written = format!("ssrc=\"{}\"", own["ssrc"].as_str().unwrap());
    let jitter = found.value("rushes_source_jitter_seconds", &written) * 1e3;
    assert!((jitter - own["jitter_ms"].as_f64().unwrap()).abs() < 1e-6, "{jitter}");
    let counted = found.value("rushes_latency_seconds_count", "stage=\"arrival_to_delivery\"");
    assert!(counted > 0.0 && Some(counted) <= report["frames_received"].as_f64(), "{counted}");
}

/// The metrics of `send --max-rate`.
const RATE_CONTROL: [&str; 2] =
    ["rushes_queue_delay_seconds", "rushes_target_rate_bytes_per_second"];

#[test]
fn a_sender_with_rate_control_has_its_target_and_the_delay_of_the_path() {
    let (folder, metrics) = (tempfile::tempdir().unwrap(), address());
    let (mut receiver, to) = listening(&copy(&folder), &["--report-arrivals"]);
    let mut sender = rushes(&["send", &media(MEDIA[1]), "--to", &to, "--json", "--loop", "0"]);
    let sender = sender.args(["--metrics", &metrics, "--max-rate", "8M", "--min-rate", "8M"]);
    let sender = sender.args(["--start-rate", "8M"]).spawn().unwrap();
    let sent = scrape_whole(&metrics, "send", &["rushes_pacing_bytes_per_second"]);
    assert_eq!(sent.value("rushes_target_rate_bytes_per_second", ""), 1e6);
    assert_eq!(finish(sender)["rate"]["target"], 8_000_000);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

#[test]
fn both_ends_of_a_stream_have_all_metrics_of_the_page() {
    let (folder, [at_receiver, at_sender]) =
        (tempfile::tempdir().unwrap(), [(); 2].map(|()| address()));
    let recovery = ["--recovery", "rtx", "--metrics"];
    let (receiver, to) = listening(&copy(&folder), &[&recovery[..], &[&at_receiver]].concat());
    let mut sender = rushes(&["send", &media(MEDIA[1]), "--to", &to, "--json", "--loop", "0"]);
    let sender = sender.args(recovery).args([&at_sender, "--pacing", "900M", "--fps", "50"]);
    let sender = sender.spawn().unwrap();
    let sent = scrape_whole(&at_sender, "send", &RATE_CONTROL);
    scrape_whole(&at_receiver, "recv", &[]);
    assert_eq!(sent.value("rushes_target_frame_rate_hertz", ""), 50.0);
    assert_eq!(sent.value("rushes_pacing_bytes_per_second", ""), 112.5e6);
    assert_eq!(sent.value("rushes_build_info", env!("CARGO_PKG_VERSION")), 1.0);
    let stage = "stage=\"capture_to_delivery\"";
    let received = scrape_until(&at_receiver, |found| {
        found.value("rushes_latency_seconds_count", stage) > 0.0
    });
    let later = scrape(&at_receiver);
    for (series, value) in later.counters() {
        let before = received.values(&series.0, &series.1).next().unwrap_or_default();
        assert!(before <= value, "{series:?} went back from {before} to {value}");
    }
    let report = finish(sender);
    for (name, pointer) in [("frames_sent", "frames"), ("packets_sent", "packets")] {
        let seen = sent.value(&format!("rushes_{name}_total"), "codec=\"h265\"");
        assert!(seen > 0.0 && Some(seen) <= report["sent"][pointer].as_f64(), "{name}: {seen}");
    }
    let output = receiver.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_server_and_a_viewer_of_textures_have_all_metrics_of_the_page() {
    let [at_server, at_viewer] = [(); 2].map(|()| address());
    let more = ["--format", "bc1", "--pacing", "800M", "--json", "--metrics", &at_server];
    let server = serving("pattern:320x180@60", &more);
    let view = ["texture", "view", &server.address, "--null", "--json", "--metrics", &at_viewer];
    let viewer = rushes(&view).spawn().unwrap();
    scrape_whole(&at_server, "serve", &[]);
    scrape_whole(&at_viewer, "view", &[]);
    let seen = scrape_until(&at_viewer, |found| {
        let of_stage = |stage| found.value("rushes_latency_seconds_count", stage);
        of_stage("\"capture_to_delivery\"") > 0.0 && of_stage("\"first_packet_to_delivery\"") > 0.0
    });
    let served = scrape_until(&at_server, |found| {
        let of_stage = |stage| found.value("rushes_latency_seconds_count", stage);
        of_stage("\"encode_and_send\"") > 0.0 && of_stage("\"capture_to_encoder\"") > 0.0
    });
    assert_eq!(served.value("rushes_clients", "codec=\"bc1\""), 1.0);
    assert_eq!(served.value("rushes_pacing_bytes_per_second", ""), 100e6);
    let report = finish(viewer);
    let (output, log) = server.interrupt();
    for (exposition, report, rows) in [
        (&seen, &report, [("frames_received", "frames"), ("received_bytes", "octets")]),
        (&served, &json(&output), [("frames_sent", "frames"), ("tiles_sent_bytes", "octets")]),
    ] {
        for (name, pointer) in rows {
            let value = exposition.value(&format!("rushes_{name}_total"), "codec=\"bc1\"");
            let most = report[pointer].as_f64();
            assert!(value > 0.0 && Some(value) <= most, "{name}: {value} {most:?} {log}");
        }
    }
}

#[test]
fn strangers_at_the_port_of_metrics_disturb_neither_it_nor_the_stream() {
    let (folder, metrics) = (tempfile::tempdir().unwrap(), address());
    let (receiver, to) =
        listening(&copy(&folder), &["--metrics", &metrics, "--idle-timeout", "600s"]);
    let send = ["send", &media(MEDIA[1]), "--to", &to, "--loop", "4", "--fps", "100", "-q"];
    let mut sender = rushes(&send).spawn().unwrap();
    let status = |request: &[u8]| ask(&metrics, request).lines().next().map(str::to_owned);
    for (request, expected) in [
        (&b"\x16\x03\x01\x02\0\x01\0\0garbage\r\n\r\n"[..], "HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
    ] {
        assert_eq!(status(request).as_deref(), Some(expected));
    }
    let head = ask(&metrics, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "an answer to HEAD has no body: {head}");
    // The server may close the connection before its answer to this is read.
    let huge = [b"GET /metrics HTTP/1.1\r\nA: ".as_slice(), &vec![b'a'; 1_000_000]].concat();
    let answer = status(&huge).unwrap_or_default();
    assert!(answer.is_empty() || answer.contains("431"), "{answer}");
    let halves: Vec<TcpStream> = (0..200)
        .map(|n| {
            let mut stream = connect(&metrics);
            let _ = stream.write_all(if n % 2 == 0 { b"" } else { b"GET /metrics HTTP/1.1\r\nA" });
            stream
        })
        .collect();
    assert!(scrape(&metrics).value("rushes_packets_received_total", "") >= 0.0);
    // All connections are closed in the end, so that the program holds nothing for them.
    for mut stream in halves {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let end = stream.read_to_end(&mut Vec::new());
        let is_timeout = end.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!is_timeout, "a silent connection stays open");
    }
    assert!(sender.wait().unwrap().success());
    let output = receiver.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(json(&output)["complete"], true);
}

#[test]
fn a_port_of_metrics_that_is_taken_is_an_error_before_anything_is_sent() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = taken.local_addr().unwrap().to_string();
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let [to, serving] =
        [peer.local_addr().unwrap(), server.local_addr().unwrap()].map(|it| it.to_string());
    let folder = tempfile::tempdir().unwrap();
    let file = copy(&folder);
    let from = address();
    for command in [
        &["send", &media(MEDIA[1]), "--to", &to][..],
        &["recv", "--from", &from, "-o", file.to_str().unwrap()],
        &["texture", "serve", "pattern:64x64", "--listen", "127.0.0.1:0"],
        &["texture", "view", &serving, "--null"],
    ] {
        let output = run(&[command, &["--metrics", &metrics]].concat());
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {log}");
        assert!(log.contains("cannot serve metrics at") && log.contains(&metrics), "{log}");
        assert!(log.contains("in use") && log.contains("--metrics 0"), "{log}");
    }
    peer.set_nonblocking(true).unwrap();
    server.set_nonblocking(true).unwrap();
    assert!(peer.recv(&mut [0; 10]).is_err() && server.accept().is_err(), "something was sent");
    assert!(!file.exists());
    let output = run(&["send", &media(MEDIA[1]), "--to", &to, "--metrics", "localhost"]);
    let log = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{log}");
    assert!(log.contains("Try: --metrics localhost:9464"), "{log}");
}

#[test]
fn the_dashboard_names_only_metrics_of_the_page() {
    let dashboard: Value = serde_json::from_str(&page("grafana.json")).unwrap();
    let (mut expressions, mut left) = (Vec::new(), vec![&dashboard]);
    while let Some(value) = left.pop() {
        match value {
            Value::Object(object) => {
                expressions.extend(object.get("expr").and_then(Value::as_str));
                expressions.extend(object.get("definition").and_then(Value::as_str));
                left.extend(object.values());
            }
            Value::Array(values) => left.extend(values),
            _ => {}
        }
    }
    let mut listed = BTreeMap::new();
    for command in ["send", "recv", "serve", "view"] {
        listed.extend(documented(command));
    }
    assert!(expressions.len() >= 10, "{expressions:?}");
    for expression in expressions {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let names = expression.split(|c| !is_part(c)).filter(|it| it.starts_with("rushes_"));
        let mut number = 0;
        for name in names {
            let is_histogram = ["_bucket", "_sum", "_count"].iter().any(|end| {
                let name = name.strip_suffix(end).and_then(|name| listed.get(name));
                name.is_some_and(|kind| kind == "histogram")
            });
            let kind = listed.get(name);
            let is_plain = kind.is_some_and(|kind| kind != "histogram");
            assert!(is_plain || is_histogram, "{name} in {expression}");
            let is_total = kind.is_some_and(|kind| kind == "counter");
            assert!(!is_total || expression.contains("rate("), "no rate: {expression}");
            number += 1;
        }
        assert!(number > 0, "no metric in {expression}");
    }
}
