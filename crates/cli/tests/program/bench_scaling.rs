//! `rushes bench scaling`: the presence of its figures, whatever the values are.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::{interrupt, json, run, rushes, text};

/// Makes a small run of one figure; returns its report and its error output.
fn measured(figure: &str, out: &str) -> (Value, String) {
    let small = ["--quick", "--runs", "1", "--frames", "4", "--frame-size", "60000", "--json"];
    let output =
        run(&[&["bench", "scaling", "--figure", figure, "--out", out][..], &small].concat());
    assert!(output.status.success(), "{figure}: {}", text(&output.stderr));
    (json(&output), text(&output.stderr))
}

/// Returns the rows of a table, which must also exist as CSV, together with these plots.
fn rows(report: &Value, name: &str, plots: &[&str], out: &str) -> Vec<Value> {
    let figures = report["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["name"] == name);
    let figure = figure.unwrap_or_else(|| panic!("no {name} in {report}"));
    let rows = figure["rows"].as_array().unwrap();
    let folder = std::path::Path::new(out);
    let csv = std::fs::read_to_string(folder.join(format!("{name}.csv"))).unwrap();
    assert_eq!(csv.lines().count(), rows.len() + 1);
    for plot in plots {
        let svg = std::fs::read_to_string(folder.join(format!("{plot}.svg"))).unwrap();
        // Every plot compares bare sockets with the library.
        assert!(svg.starts_with("<svg") && svg.contains(", bare"), "{plot}");
    }
    rows.clone()
}

#[test]
fn streams_packet_sizes_and_buffers_have_their_tables_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let (report, _) = measured("streams", out);
    let streams = rows(&report, "streams", &["streams-goodput", "streams-cpu"], out);
    assert_eq!(streams.len(), 2 * 2);
    let (report, _) = measured("packet-size", out);
    let plots = ["packet-sizes-goodput", "packet-sizes-cpu"];
    let sizes = rows(&report, "packet-sizes", &plots, out);
    assert_eq!(sizes.len(), 3 * 3);
    // No sender sends more than the receiver has announced room for.
    for row in streams.iter().chain(&sizes) {
        assert_eq!(row["not whole"], 0, "{row}");
        assert!(row["Gbit/s"].as_f64().unwrap() > 0.0, "{row}");
    }
    let (report, _) = measured("buffers", out);
    for row in rows(&report, "buffers", &["buffers"], out) {
        // Only whole groups of eight units are measured.
        assert_eq!(row["units"], 8, "{row}");
        assert!(!row["granted"].as_str().unwrap().is_empty(), "{row}");
        assert!(row["not whole"].as_u64().unwrap() <= 8, "{row}");
    }
}

#[test]
fn places_and_links_are_measured_or_omitted_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let (report, log) = measured("places", out);
    let places = rows(&report, "places", &["places"], out);
    let here = if log.contains("left out") { 2 } else { 4 };
    assert_eq!(places.len(), 3 * here, "{log}");
    assert!(places.iter().all(|row| row["not whole"] == 0), "{report}");
    let (report, log) = measured("bucket", out);
    if log.contains("left out") {
        assert!(log.contains("needs root") && log.lines().count() == 1, "{log}");
        assert_eq!(report["figures"].as_array().unwrap().len(), 0, "{report}");
        return;
    }
    for link in ["bucket-1g", "bucket-10g"] {
        let rows = rows(&report, link, &[link], out);
        assert_eq!(rows.len(), 6 * 2);
        assert!(rows.iter().all(|row| row["units"] == 8), "{report}");
    }
}

/// Returns the namespaces that process `id` has created and not removed, or `None` if they cannot
/// be listed.
fn namespaces(id: u32) -> Option<Vec<String>> {
    let output = std::process::Command::new("ip").args(["netns", "list"]).output().ok()?;
    let names = text(&output.stdout);
    let ours = names.lines().filter(|line| line.contains(&format!("-{id}-")));
    Some(ours.map(str::to_owned).collect())
}

#[test]
fn an_interrupt_leaves_no_namespace_behind() {
    let mut bench = rushes(&["bench", "scaling", "--figure", "bucket", "--runs", "100", "--json"]);
    let mut bench = bench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = bench.id();
    // Without the rights to create namespaces, the program soon ends by itself.
    let deadline = Instant::now() + Duration::from_secs(20);
    while namespaces(id).is_some_and(|names| names.len() < 2)
        && bench.try_wait().unwrap().is_none()
        && Instant::now() < deadline
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let made = namespaces(id).unwrap_or_default();
    interrupt(&bench);
    let status = bench.wait().unwrap();
    if made.is_empty() {
        return crate::skipped::not_here("no network namespaces");
    }
    assert_eq!(status.code(), Some(130));
    assert_eq!(namespaces(id), Some(Vec::new()), "before: {made:?}");
}
