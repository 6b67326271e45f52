//! Metrics read by the parser of Prometheus' own Python client, over Python's HTTP client.

use std::process::Command;

use crate::media::H265;
use crate::rig::{have_python_module, ports, receive, rushes};

/// The system's Python, for which `.ci/peers` installs the module.
const PYTHON: &str = "/usr/bin/python3";

/// Prints the names and types of all families that the parser reads without an error.
const SCRIPT: &str = "
import sys, time, urllib.request
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for attempt in range(600):
    try:
        answer = urllib.request.urlopen(sys.argv[1], timeout=30)
        break
    except OSError:
        time.sleep(0.05)
assert answer.headers['Content-Type'].startswith('application/openmetrics-text; version=1.0.0')
for family in text_string_to_metric_families(answer.read().decode()):
    assert family.documentation and family.samples, family.name
    print(family.name, family.type)
";

#[test]
fn the_parser_of_prometheus_reads_the_metrics_of_both_ends() {
    if !have_python_module(
        PYTHON,
        "prometheus_client.openmetrics.parser",
        "python3-prometheus-client",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [port, at_receiver, at_sender] = [(); 3].map(|()| ports());
    let [receiving, sending] = [at_receiver, at_sender].map(|port| format!("127.0.0.1:{port}"));
    let _receiver = receive(&folder.path().join("copy.265"), port, &["--metrics", &receiving]);
    let (file, to) = (H265.own(), format!("127.0.0.1:{port}"));
    let send = ["send", file.to_str().unwrap(), "--to", &to, "--loop", "0"];
    let _sender = rushes(&[&send[..], &["--metrics", &sending]].concat());
    for (address, expected) in [
        (&receiving, ["rushes_packets_received counter", "rushes_latency_seconds histogram"]),
        (&sending, ["rushes_packets_sent counter", "rushes_target_frame_rate_hertz gauge"]),
    ] {
        let url = format!("http://{address}/metrics");
        let output = Command::new(PYTHON).args(["-c", SCRIPT, &url]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let families = String::from_utf8(output.stdout).unwrap();
        for family in expected {
            assert!(families.lines().any(|line| line == family), "{family}: {families}");
        }
    }
}
