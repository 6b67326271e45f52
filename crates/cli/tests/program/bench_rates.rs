//! `rushes bench rates`: the presence of its figures, whatever the values are.

use serde_json::Value;

use crate::rig::{json, media, run, text};

/// Runs a few trials of small sequences; returns the report.
fn measured(more: &[&str]) -> Value {
    let always = ["bench", "rates", "--quick", "--fps", "300", "--fps", "400", "--json"];
    let output = run(&[&always, more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    json(&output)
}

fn rows<'a>(report: &'a Value, name: &str) -> &'a Vec<Value> {
    let figures = report["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["name"] == name);
    figure.unwrap_or_else(|| panic!("no {name} in {report}"))["rows"].as_array().unwrap()
}

#[test]
fn a_sweep_of_frame_rates_has_its_tables_and_its_plots() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let report = measured(&["--bit-rate", "4", "--bit-rate", "8", "--out", out]);
    let points = rows(&report, "rates-points");
    // There are seven rows with two rates each.
    assert_eq!(points.len(), 14);
    for point in points {
        assert!([300.0, 400.0].map(Value::from).contains(&point["fps"]), "{point}");
        assert!(point["Gbit/s"].is_number() && point["loss %"].is_number(), "{point}");
    }
    for (table, count) in [("rates-points", 14), ("rates", 7), ("rates-codecs", 3)] {
        assert_eq!(rows(&report, table).len(), count, "{table}");
        let csv = std::fs::read_to_string(folder.path().join(format!("{table}.csv"))).unwrap();
        assert_eq!(csv.lines().count(), count + 1);
    }
    for (plot, label) in [("goodput", "goodput (Gbit/s)"), ("loss", "access units lost (%)")] {
        for group in ["plain", "aes-cm", "aead"] {
            let file = folder.path().join(format!("rates-{group}-{plot}.svg"));
            let svg = std::fs::read_to_string(file).unwrap();
            assert!(svg.starts_with("<svg") && svg.contains(label), "{group} {plot}");
            assert!(svg.contains("access units a second") && svg.contains("raw gso/gro"));
        }
    }
}

#[test]
fn a_file_is_sent_instead() {
    for name in ["avc_cif_60f_baseline.264", "vvc_192x128_64f_vvenc_tiny_nals.266"] {
        let report = measured(&["--file", &media(name), "--socket-buffer", "1M"]);
        let points = rows(&report, "rates-points");
        assert_eq!(points.len(), 14);
        assert!(points.iter().any(|point| point["Gbit/s"].as_f64().unwrap() > 0.0));
    }
}

#[test]
fn a_sequence_is_written_and_arrives_identical() {
    let folder = tempfile::tempdir().unwrap();
    for codec in ["h264", "h265", "h266"] {
        let file = folder.path().join(format!("made.{codec}"));
        let file = file.to_str().unwrap();
        let arguments = ["bench", "rates", "--codec", codec, "--bit-rate", "4", "--write", file];
        assert!(run(&arguments).status.success());
        let report = json(&run(&["loopback", file, "--json"]));
        assert_eq!(report["identical"], true, "{report}");
    }
}

#[test]
fn what_cannot_be_swept_is_a_wrong_command_line() {
    for wrong in [["--fps", "0"], ["--codec", "opus"], ["--file", "speech.opus"]] {
        let output = run(&["bench", "rates", wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(text(&output.stderr).contains(wrong[1]), "{}", text(&output.stderr));
    }
}
