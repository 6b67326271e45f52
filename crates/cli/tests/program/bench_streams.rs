//! `rushes bench streams`: the presence of its figures, whatever the values are.

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
    assert_eq!(names, ["sockets alone", "no RTCP", "RTCP", "RTCP and SRTP"]);
    for row in &ways {
        assert_eq!(row["lost %"], 0.0, "{row}");
        assert!(row["send us"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["recv us"].as_f64().unwrap() > 0.0, "{row}");
    }
    let idle = rows("many-streams-idle");
    let descriptors: Vec<_> = idle.iter().map(|row| row["descriptors"].as_f64().unwrap()).collect();
    assert_eq!(descriptors, [0.0, 0.0, 2.0, 1.0]);
}
