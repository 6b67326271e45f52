//! `send` to a receiver whose reports say that nothing arrives (RFC 8083).

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rushes::Ssrc;
use rushes::proto::rtcp::{ReportBlock, Writer};

use crate::rig::{MEDIA, media};

#[test]
fn a_stream_that_does_not_arrive_ends_with_the_reason_and_a_way_on() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let to = receiver.local_addr().unwrap().to_string();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rushes"));
    command.args(["send", &media(MEDIA[1]), "--to", &to, "--rtcp-mux", "--loop", "0"]);
    let mut sender = command.stderr(Stdio::piped()).spawn().unwrap();
    let (deadline, mut reported) = (Instant::now() + Duration::from_secs(120), Instant::now());
    while sender.try_wait().unwrap().is_none() {
        if Instant::now() >= deadline {
            sender.kill().unwrap();
        }
        let mut packet = [0; 2048];
        let Ok((_, from)) = receiver.recv_from(&mut packet) else { continue };
        if (192..=223).contains(&packet[1]) || reported.elapsed() < Duration::from_secs(1) {
            continue;
        }
        reported = Instant::now();
        let ssrc = Ssrc(u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]));
        let mut writer = Writer::new();
        let block = ReportBlock { ssrc, highest: 7, ..ReportBlock::default() };
        writer.receiver_report(Ssrc(7), &[block]);
        receiver.send_to(writer.bytes(), from).unwrap();
    }
    let output = sender.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let reason = "stopped sending, because no packet has reached the receiver";
    assert!(text.contains(reason) && text.contains("--no-circuit-breakers"), "{text}");
}
