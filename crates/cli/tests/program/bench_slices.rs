//! `rushes bench slices`: the presence of its figure, and fewer messages with packets of one length.

use serde_json::Value;

use crate::rig::{json, run, text};

#[test]
fn packets_of_one_length_are_received_in_fewer_calls() {
    let small = ["--quick", "--runs", "1", "--frame-size", "200000", "--amount", "16M"];
    let output = run(&[&["bench", "slices", "--slices", "100", "--json"][..], &small].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    let rows = report["figures"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{report}");
    let calls = |sizes: &str, packets: &str| {
        let of = |row: &&Value| row["sizes"] == sizes && row["packets"] == packets;
        rows.iter().find(of).unwrap()["recv calls"].as_f64().unwrap()
    };
    assert!(calls("equal", "one length") < calls("equal", "full packets"), "{report}");
}
