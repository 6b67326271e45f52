//! `rushes bench latency` and `start-code`: the presence of their figures, whatever the values are.

use serde_json::Value;

use crate::rig::{json, run, text};

fn measured(words: &[&str]) -> Value {
    let output = run(words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    json(&output)["figures"].clone()
}

#[test]
fn every_receive_path_has_its_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let small = ["--frame-size", "1500", "--frame-size", "12500", "--frames", "20"];
    let figures =
        measured(&[&["bench", "latency", "--quick", "--json", "--out", out], &small[..]].concat());
    let names: Vec<&str> =
        figures.as_array().unwrap().iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["latency-video", "latency-size", "latency-many"]);
    for (figure, rows) in figures.as_array().unwrap().iter().zip([6, 6, 6]) {
        let found = figure["rows"].as_array().unwrap();
        assert_eq!(found.len(), rows, "{figure}");
        for row in found {
            // The number of frames that return in time depends on the load of the machine; each of
            // them has a round-trip time.
            let (failed, sent) = (row["failed"].as_u64().unwrap(), row["frames"].as_u64().unwrap());
            let median = row["p50 ms"].as_f64();
            assert!(failed <= sent && sent > 0, "{row}");
            assert_eq!(median.is_some_and(|median| median > 0.0), failed < sent, "{row}");
        }
        let name = figure["name"].as_str().unwrap();
        let csv = std::fs::read_to_string(folder.path().join(format!("{name}.csv"))).unwrap();
        assert_eq!(csv.lines().count(), rows + 1);
    }
    let svg = std::fs::read_to_string(folder.path().join("latency-size.svg")).unwrap();
    for part in ["round trip (ms)", "access unit (KB)", "hook, spinning", "pull, bare"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn start_codes_are_searched_in_every_kind_of_octets() {
    let figures = measured(&["bench", "start-code", "--quick", "--json"]);
    let rows = figures[0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row["library"].as_f64().unwrap() > 0.0));
}
