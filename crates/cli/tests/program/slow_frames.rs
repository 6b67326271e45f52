//! Ctrl-C while a frame is sent that takes minutes at its rate.
#![cfg(unix)]

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use crate::rig::{RunningProgram, interrupt, rushes};

/// Writes an H.264 file of one large key frame.
fn write_film(film: &Path) {
    let mut content = vec![0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xda, 0x05, 0x07, 0xe4];
    content.extend([0, 0, 0, 1, 0x68, 0xce, 0x38, 0x80, 0, 0, 0, 1, 0x65, 0x88]);
    content.resize(1_500_000, 0xaa);
    std::fs::write(film, content).unwrap();
}

fn is_rtcp(packet: &[u8]) -> bool {
    (192..=223).contains(&packet[1])
}

/// Returns whether a compound packet contains BYE.
fn says_bye(mut compound: &[u8]) -> bool {
    while let [_, kind, high, low, ..] = *compound {
        if kind == 203 {
            return true;
        }
        let len = 4 * (usize::from(u16::from_be_bytes([high, low])) + 1);
        compound = compound.get(len..).unwrap_or_default();
    }
    false
}

#[test]
fn ctrl_c_ends_a_frame_that_takes_minutes_and_the_stream_with_bye() {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film.264");
    write_film(&film);
    // At these rates the frame takes four minutes.
    let paces = [&["--pacing", "50K"][..], &["--max-rate", "50K", "--min-rate", "50K"]];
    for pace in paces {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let to = receiver.local_addr().unwrap().to_string();
        let mut command = rushes(&["send", film.to_str().unwrap(), "--to", &to, "--rtcp-mux"]);
        let mut sender = RunningProgram::of(command.args(pace));
        let mut packet = [0; 2048];
        let mut media = 0;
        while media < 3 {
            let len = receiver.recv(&mut packet).unwrap_or_else(|error| {
                panic!("{pace:?}: {error}");
            });
            media += u32::from(!is_rtcp(&packet[..len]));
        }
        interrupt(&sender.child);
        sender.wait_for("sent ");
        let (status, log) = sender.end();
        assert_eq!(status.code(), Some(1), "{pace:?} {log}");
        assert!(log.contains("cut: 1 frame, of which"), "{pace:?} {log}");
        receiver.set_nonblocking(true).unwrap();
        let mut has_ended = false;
        while let Ok(len) = receiver.recv(&mut packet) {
            has_ended |= is_rtcp(&packet[..len]) && says_bye(&packet[..len]);
        }
        assert!(has_ended, "{pace:?} {log}");
    }
}
