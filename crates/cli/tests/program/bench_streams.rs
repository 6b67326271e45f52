//! `rushes bench streams` and `scale`: the presence of their figures, whatever the values are.

use serde_json::Value;

use crate::rig::{json, run, text};

#[test]
fn many_streams_have_their_costs_beside_those_of_sockets() {
    let output = run(&["bench", "streams", "--streams", "20", "--quick", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    let rows = |name: &str| -> Vec<Value> {
        let figures = report["figures"].as_array().unwrap();
        let figure = figures.iter().find(|figure| figure["name"] == name).unwrap();
        figure["rows"].as_array().unwrap().clone()
    };
    let ways = rows("many-streams");
    let names: Vec<_> = ways.iter().map(|row| row["way"].as_str().unwrap()).collect();
    let each = |name| [name; 2];
    let expected = [each("RTCP"), each("no RTCP"), each("RTCP and SRTP")].concat();
    assert_eq!(names[..6], expected);
    assert_eq!(names[6..], ["sockets alone"]);
    let by: Vec<_> = ways.iter().map(|row| row["by"].as_str().unwrap()).collect();
    assert_eq!(by[..2], ["push_frame, pull_frame", "push_many, Poller"]);
    for row in &ways {
        assert_eq!(row["lost %"], 0.0, "{row}");
        assert!(row["send us"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["recv us"].as_f64().unwrap() > 0.0, "{row}");
    }
    let idle = rows("many-streams-idle");
    let descriptors: Vec<_> = idle.iter().map(|row| row["descriptors"].as_f64().unwrap()).collect();
    assert_eq!(descriptors, [0.0, 0.0, 2.0, 1.0]);
}

#[test]
fn the_cost_of_a_gigabyte_is_drawn_by_the_size_of_access_units() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = run(&["bench", "scale", "--figure", "octets", "--quick", "--json", "--out", out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    let figure = &report["figures"][0];
    assert_eq!(figure["name"], "scale-octets");
    let octets: Vec<_> =
        figure["rows"].as_array().unwrap().iter().map(|row| &row["octets"]).collect();
    assert_eq!(octets, [1000, 64_000, 1_000_000]);
    let svg = std::fs::read_to_string(folder.path().join("scale-octets.svg")).unwrap();
    assert!(svg.contains("sender") && svg.contains("receiver"));
}
