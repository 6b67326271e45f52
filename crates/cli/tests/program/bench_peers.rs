//! `rushes bench peers`: the presence of its rows, whatever the values are.

use serde_json::Value;

use crate::rig::{json, run, text};

/// Returns the rows of a small run with Rushes and one other program.
fn rows(more: &[&str]) -> Vec<Value> {
    let small = ["bench", "peers", "--quick", "--json", "--only", "--codec", "h265"];
    let slow = ["--bit-rate", "10", "--from", "30", "--to", "30"];
    let arguments: Vec<&str> = small.iter().chain(&slow).chain(more).copied().collect();
    let output = run(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    report["figures"][0]["rows"].as_array().unwrap().clone()
}

fn row<'a>(rows: &'a [Value], who: &str, part: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["who"] == who && row["part"] == part);
    found.unwrap_or_else(|| panic!("no {who}, {part} in {rows:?}"))
}

#[test]
#[cfg(target_os = "linux")]
fn any_program_is_measured_by_its_two_commands() {
    let rows = rows(&[
        "--peer",
        "mine",
        "--send-command",
        "'{rushes}' send {file} --to {host}:{port} --codec {codec} --payload-type 96 --fps {fps} -q",
        "--receive-command",
        "sh -c 'exec \"{rushes}\" recv --sdp \"{sdp}\" -q -o - > {out}'",
    ]);
    for who in ["Rushes", "mine"] {
        for part in ["whole", "send", "receive"] {
            let row = row(&rows, who, part);
            // A busy machine causes losses and delays; here they only have to be counted.
            let counted = ["measured", "lost too much", "too fast"];
            assert!(counted.iter().any(|state| row["state"] == *state), "{row}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn uncompressed_video_is_measured_like_other_video() {
    let arguments = ["bench", "peers", "--quick", "--json", "--only", "--codec", "uncompressed"];
    let output = run(&[&arguments[..], &["--from", "30", "--to", "30"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = json(&output)["figures"][0]["rows"].as_array().unwrap().clone();
    for part in ["whole", "send", "receive"] {
        let row = row(&rows, "Rushes", part);
        let counted = ["measured", "lost too much", "too fast"];
        assert!(counted.iter().any(|state| row["state"] == *state), "{row}");
    }
}

#[test]
fn a_missing_program_is_reported_in_its_row() {
    let absent = ["--peer", "nobody", "--receive-command", "no-program-is-called-so {sdp} {out}"];
    let rows = rows(&absent);
    let nobody: Vec<_> = rows.iter().filter(|row| row["who"] == "nobody").collect();
    assert_eq!(nobody.len(), 1, "{rows:?}");
    assert_eq!(nobody[0]["part"], "receive");
    assert_eq!(nobody[0]["state"], "absent");
    assert!(nobody[0]["Gbit/s"].is_null());
}

#[test]
fn wrong_commands_are_wrong_command_lines() {
    for wrong in ["x {nowhere}", "x 'y", ""] {
        let output = run(&["bench", "peers", "--peer", "x", "--send-command", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {}", text(&output.stderr));
    }
    let output = run(&["bench", "peers", "--peer", "x"]);
    assert_eq!(output.status.code(), Some(2));
}
