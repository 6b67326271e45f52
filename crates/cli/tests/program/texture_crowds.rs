//! A texture server that may open few files, and strangers that use them all up.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::program;
use crate::rig::{json, rushes, text};
use crate::texture_rig::{must, serving_by};

const PATTERN: &str = "pattern:64x64@50";

#[test]
fn a_server_without_descriptors_warns_and_continues() {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 48; exec \"$@\"", "sh"]);
    limited.arg(program());
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = serving_by(limited, PATTERN, &["--units", "1", "--loop"]);
    // One client is connected before, during and after the attack.
    let view = ["texture", "view", &server.address, "--null", "--frames", "400", "--json"];
    let viewer = rushes(&view).spawn().unwrap();
    let crowd: Vec<_> = (0..100).filter_map(|_| TcpStream::connect(&server.address).ok()).collect();
    assert!(crowd.len() > 48);
    let until = Instant::now() + Duration::from_secs(20);
    while !server.log().contains("new clients have to wait") {
        assert!(Instant::now() < until, "{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.log().contains("Too many open files"), "{}", server.log());
    drop(crowd);
    // A client that connects during the attack waits and is then served.
    let late = json(&must(&["view", &server.address, "--null", "--frames", "20", "--json"]));
    assert_eq!(late["frames_lost"], 0, "{late}");
    let viewed = viewer.wait_with_output().unwrap();
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    let viewed = json(&viewed);
    assert_eq!(viewed["frames_damaged"], 0, "{viewed}");
    let (served, log) = server.interrupt();
    assert!(served.status.success(), "{log}");
    assert!(log.contains("new clients are accepted again"), "{log}");
}
