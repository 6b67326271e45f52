//! Sampling instants compared with FFmpeg's: FFmpeg sends a container, and Rushes sends the bare
//! bitstream of the same pictures.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::rig::{have, rushes};

/// A timeout longer than any pause between packets and than the start of FFmpeg.
const SILENCE: Duration = Duration::from_secs(5);

/// Returns the timestamps of the frames that a program sends to a port, in order, relative to the
/// first.
fn timestamps(send: impl FnOnce(u16) + Send + 'static) -> Vec<i32> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let sender = thread::spawn(move || send(port));
    let (mut found, mut packet) = (Vec::<u32>::new(), [0; 2048]);
    while let Ok(len) = socket.recv(&mut packet) {
        // Both programs send reports to the next port.
        if len > 12 {
            let timestamp = u32::from_be_bytes(packet[4..8].try_into().unwrap());
            if found.last() != Some(&timestamp) {
                found.push(timestamp);
            }
        }
    }
    sender.join().unwrap();
    let first = found[0];
    found.iter().map(|it| it.wrapping_sub(first).cast_signed()).collect()
}

pub(crate) fn ffmpeg(arguments: &[&str]) {
    let mut command = Command::new("ffmpeg");
    let status = command.args(["-v", "error", "-nostdin", "-y"]).args(arguments).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

/// Makes a film with B-pictures in a container, and its bare bitstream.
fn film(folder: &Path, codec: &[&str], rate: &str, extension: &str) -> (String, String) {
    let path = |extension| folder.join(format!("film.{extension}")).display().to_string();
    let (film, bare) = (path("mp4"), path(extension));
    let source = format!("testsrc2=size=320x180:rate={rate}:duration=2");
    let input = ["-f", "lavfi", "-i", &source, "-pix_fmt", "yuv420p"];
    ffmpeg(&[&input[..], codec, &[&film]].concat());
    ffmpeg(&["-i", &film, "-c", "copy", &bare]);
    (film, bare)
}

#[test]
fn timestamps_are_those_that_ffmpeg_sends_from_a_container() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let h264 = ["-c:v", "libx264", "-bf", "3", "-g", "20"];
    let h265 = ["-c:v", "libx265", "-x265-params", "bframes=3:keyint=20:log-level=0"];
    for (codec, rate, extension) in
        [(&h264[..], "25", "264"), (&h264, "30000/1001", "264"), (&h265, "50", "265")]
    {
        let folder = tempfile::tempdir().unwrap();
        let (film, bare) = film(folder.path(), codec, rate, extension);
        let theirs = thread::spawn({
            let film = film.clone();
            move || {
                timestamps(move |port| {
                    let to = format!("rtp://127.0.0.1:{port}");
                    ffmpeg(&["-re", "-i", &film, "-c", "copy", "-f", "rtp", &to]);
                })
            }
        });
        let of_container = thread::spawn(move || {
            timestamps(move |port| {
                let to = format!("127.0.0.1:{port}");
                rushes(&["send", &film, "--to", &to, "--no-rtcp", "-q"]).finish();
            })
        });
        let ours = timestamps(move |port| {
            let to = format!("127.0.0.1:{port}");
            rushes(&["send", &bare, "--to", &to, "--no-rtcp", "-q"]).finish();
        });
        let theirs = theirs.join().unwrap();
        assert_eq!(of_container.join().unwrap(), theirs, "{extension} at {rate}");
        assert!(ours.len() > 40, "{ours:?}");
        assert_eq!(ours.len(), theirs.len(), "{extension} at {rate}");
        // FFmpeg rounds each timestamp to its container's clock.
        let near = |(ours, theirs): (&i32, &i32)| ours.abs_diff(*theirs) <= 1;
        assert!(ours.iter().zip(&theirs).all(near), "{rate}\n{ours:?}\n{theirs:?}");
    }
}
