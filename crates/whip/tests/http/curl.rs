//! curl as the client.

use std::process::Command;

use rushes_whip::ServerConfig;

use crate::fake::{OFFER, serve, url};
use crate::skipped;

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "-i"]).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn curl_opens_and_deletes_a_session() {
    if !skipped::have(&["curl"]) {
        return;
    }
    let token = Some("secret".parse().unwrap());
    let (server, fake) = serve(ServerConfig { token, ..ServerConfig::default() });
    let whip = url(&server, "/whip");
    let sdp = ["-H", "Content-Type: application/sdp", "--data-binary", OFFER];
    let refused = curl(&[&sdp[..], &[&whip]].concat());
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let token = ["-H", "Authorization: Bearer secret"];
    let created = curl(&[&sdp[..], &token, &[&whip]].concat());
    assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
    let location = created.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    let session = url(&server, location);
    let expect = ["-H", "Expect: 100-continue", "-X", "PATCH", "-H", "If-Match: *"];
    let fragment =
        ["-H", "Content-Type: application/trickle-ice-sdpfrag", "--data-binary", "restart"];
    let patched = curl(&[&expect[..], &fragment, &token, &[&session]].concat());
    assert!(patched.contains("HTTP/1.1 200 ") && patched.ends_with("credentials"), "{patched}");
    let deleted = curl(&[&["-X", "DELETE"][..], &token, &[&session]].concat());
    assert!(deleted.starts_with("HTTP/1.1 200 "), "{deleted}");
    assert_eq!(fake.open_sessions(), 0);
}
