//! `rushes bench rate`: every case under rate control and at a fixed rate. Its results are the same on
//! every machine.

use crate::rig::{json, run, text};

#[test]
fn every_case_of_rate_control_has_its_rows_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = run(&["bench", "rate", "--quick", "--json", "--out", out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let figures = json(&output)["figures"].clone();
    let rows = figures[0]["rows"].as_array().unwrap();
    let cases: Vec<&str> =
        rows.iter().step_by(2).map(|row| row["case"].as_str().unwrap()).collect();
    let expected = ["5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.6, 1 s", "5.7", "5.8"];
    assert_eq!(cases, expected);
    for pair in rows.chunks(2) {
        let [controlled, fixed] = pair else { panic!("{pair:?}") };
        assert_eq!(
            (&controlled["media"], &fixed["media"]),
            (&"rate control".into(), &"fixed rate".into())
        );
        assert_eq!(controlled["case"], fixed["case"]);
        assert!(controlled["lost %"].as_f64().unwrap() < 2.0, "{controlled}");
    }
    for (plot, parts) in [
        ("rate-5.1-sent", ["sent (kbit/s)", "time (s)", "flow 1", "capacity"]),
        ("rate-5.6-1s-sent", ["beside a long TCP flow", "TCP", "flow 1", "capacity"]),
        ("rate-5.5-queue", ["in the queue (ms)", "time (s)", "rate control", "fixed rate"]),
    ] {
        let svg = std::fs::read_to_string(folder.path().join(format!("{plot}.svg"))).unwrap();
        assert!(parts.iter().all(|part| svg.contains(part)), "{plot}");
    }
}
