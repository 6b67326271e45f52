//! Texture video to a multicast group: `texture serve --multicast`, `texture view --transport multicast`.

use std::process::Stdio;

use serde_json::Value;

use crate::rig::{rushes, text};
use crate::texture_rig::serving;

/// Returns a group that no other run of this test uses at the same time.
fn group() -> String {
    let [a, b, ..] = std::process::id().to_le_bytes();
    format!("239.255.{a}.{b}:7100")
}

#[test]
fn viewers_of_a_group_see_every_frame_from_their_first_on() {
    let options = ["--multicast", &group(), "--every-frame", "--loop", "--units", "2"];
    // A busy machine has 40 ms to send a frame, and to answer requests for what sockets had no room for.
    let server = serving("pattern:160x90@25", &options);
    let view = |format: &str| {
        let mut view = rushes(&["texture", "view", &server.address, "--null", "--json"]);
        view.args(["--transport", "multicast", "--duration", "2s", "--format", format]);
        view.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = view("rgb24");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let viewers = [first, view("rgb24")];
    let other = view("bc1").wait_with_output().unwrap();
    assert_eq!(other.status.code(), Some(1));
    assert!(
        text(&other.stderr).contains("the group's frames are rgb24"),
        "{}",
        text(&other.stderr)
    );
    for viewer in viewers {
        let output = viewer.wait_with_output().unwrap();
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(seen["transport"], "multicast", "{seen}");
        assert_eq!((&seen["frames_lost"], &seen["complete"]), (&0.into(), &true.into()), "{seen}");
        assert!(seen["frames"].as_u64().unwrap() > 20, "{seen}");
    }
}

#[test]
fn a_group_is_one_and_is_not_encrypted() {
    let refused = |options: &[&str]| {
        let mut serve =
            rushes(&["texture", "serve", "pattern:64x64@30", "--listen", "127.0.0.1:0"]);
        let output = serve.args(options).output().unwrap();
        assert!(!output.status.success());
        text(&output.stderr)
    };
    for (options, reason) in [
        (
            &["--transport", "multicast"][..],
            "needs a group, for example --multicast 239.255.0.1:7100",
        ),
        (&["--multicast", "10.1.2.3:7100"], "10.1.2.3:7100 is not a multicast group"),
        (&["--multicast", "239.1.2.3:7100", "--zrtp"], "a multicast group is not encrypted"),
        (&["--ttl", "3"], "--multicast"),
    ] {
        let said = refused(options);
        assert!(said.contains(reason), "{options:?}: {said}");
    }
    let server = serving("pattern:64x64@30", &["--once"]);
    let view = ["texture", "view", &server.address, "--null", "--transport", "multicast"];
    let output = rushes(&view).output().unwrap();
    assert!(text(&output.stderr).contains("the server has no multicast group"));
}
