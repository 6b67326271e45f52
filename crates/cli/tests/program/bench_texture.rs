//! `rushes bench texture`: the presence of its figures, whatever the values are.

use serde_json::Value;

use crate::rig::{json, run, text};

fn small(more: &[&str]) -> Vec<String> {
    let always = ["bench", "texture", "--quick", "--frames", "2", "--runs", "1"];
    let few = ["--resolution", "144", "--resolution", "360"];
    always.iter().chain(&few).chain(more).map(|&word| word.to_owned()).collect()
}

fn measured(more: &[&str]) -> Value {
    let arguments = small(more);
    let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    json(&output)
}

fn rows<'a>(report: &'a Value, name: &str) -> &'a Vec<Value> {
    let figures = report["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["name"] == name);
    figure.unwrap_or_else(|| panic!("no {name} in {report}"))["rows"].as_array().unwrap()
}

#[test]
fn every_figure_of_deliveries_has_its_table_and_its_plots() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (figure, table, plots) in [
        ("latency", "latency", &["latency-udp", "latency-tcp"][..]),
        ("frames", "frames", &["frames-udp", "frames-tcp"]),
        ("units", "units", &["units-360p-ycocg-bc3"]),
        ("packet-size", "packet-size", &["packet-size-360p-ycocg-bc3"]),
        ("timings", "timings", &[]),
        ("sockets", "texture-sockets", &[]),
    ] {
        let report = measured(&["--figure", figure, "--json", "--out", out]);
        let rows = rows(&report, table);
        assert!(!rows.is_empty());
        let csv = std::fs::read_to_string(folder.path().join(format!("{table}.csv"))).unwrap();
        assert_eq!(csv.lines().count(), rows.len() + 1);
        for plot in plots {
            let svg = std::fs::read_to_string(folder.path().join(format!("{plot}.svg"))).unwrap();
            assert!(svg.starts_with("<svg") && svg.contains("latency (ms)"), "{plot}");
        }
    }
}

#[test]
fn what_is_delivered_by_tcp_is_whole_and_beside_sockets_alone() {
    let report = measured(&["--figure", "latency", "--transport", "tcp", "--json"]);
    let rows = rows(&report, "latency");
    assert_eq!(rows.len(), 2 * 5);
    for row in rows {
        assert_eq!(row["not whole"], 0, "{row}");
        assert!(row["p50 ms"].as_f64().unwrap() > 0.0);
        let is_live = row["format"].as_str().unwrap().contains(" to ");
        assert_eq!(row["bare p50 ms"].is_null(), is_live, "{row}");
    }
}

#[test]
fn what_is_no_resolution_is_a_wrong_command_line() {
    let output = run(&["bench", "texture", "--resolution", "145"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("145"));
}
