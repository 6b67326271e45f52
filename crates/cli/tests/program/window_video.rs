//! A received video that FFmpeg decodes for a window, and that is also written to a file.

use std::process::Command;

use rushes::texture::{Colour, Decoder, Format, Layout, Siting};

use crate::rig::{free_port, media, run, rushes, text, units};
use crate::window::{Display, have, wait_for};

const FILE: &str = "avc_cif_60f_baseline.264";
const SIZE: (u32, u32) = (352, 288);

/// Returns the pictures of the file as a window should show them, as RGB24.
fn pictures() -> Vec<Vec<u8>> {
    let filter = "scale=out_color_matrix=bt709:out_range=limited,format=yuv420p";
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-i", &media(FILE), "-vf", filter])
        .args(["-f", "rawvideo", "-"])
        .output()
        .unwrap();
    let colour = Colour { siting: Siting::Left, ..Colour::default() };
    let layout = Layout::new(Format::Yuv420, SIZE.0, SIZE.1).unwrap().with_colour(colour);
    let decoder = Decoder::of(layout, Format::Rgb24).unwrap();
    let decoded = |frame| {
        let mut picture = vec![0; decoder.output().bytes()];
        decoder.decode(frame, &mut picture).unwrap();
        picture
    };
    let frames = output.stdout.chunks_exact(decoder.input().bytes());
    frames.map(decoded).collect()
}

#[test]
fn a_video_is_seen_in_a_window_and_written_beside_it() {
    if !have(&["Xvfb", "xdotool", "import", "ffmpeg"]) {
        return;
    }
    let pictures = pictures();
    assert_eq!(pictures.len(), 60);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.264");
    let display = Display::new();
    let port = free_port().to_string();
    let receive = ["recv", "--from", &port, "-o", copy.to_str().unwrap(), "--window", "-q"];
    let mut command = rushes(&receive);
    command.args(["--idle-timeout", "1s"]);
    let (viewer, window) = display.open(command);
    display.xdotool(&["windowsize", &window, "352", "288"]);
    wait_for("black", || {
        Some(display.pixels(&window)).filter(|all| all.len() == pictures[0].len())
    });

    let to = format!("127.0.0.1:{port}");
    let sending =
        std::thread::spawn(move || run(&["send", &media(FILE), "--to", &to, "--fps", "10", "-q"]));
    wait_for("a picture of the file", || {
        let shown = display.pixels(&window);
        pictures.iter().position(|picture| {
            let pairs = picture.iter().zip(&shown);
            picture.len() == shown.len() && pairs.into_iter().all(|(a, b)| a.abs_diff(*b) <= 1)
        })
    });
    let sent = sending.join().unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));

    // The sender sent a goodbye, so the window closes by itself.
    let output = viewer.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(units(&copy), units(media(FILE).as_ref()));
}

#[test]
fn what_is_no_video_is_refused_before_anything_is_received() {
    let output = run(&["recv", "--from", "5004", "--window"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--codec"), "{}", text(&output.stderr));
    // The same holds with a description. There is no screen, so that no window can appear even
    // briefly.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audio.sdp");
    let lines = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
        m=audio 5004 RTP/AVP 96\r\na=rtpmap:96 opus/48000/2\r\n";
    std::fs::write(&file, lines).unwrap();
    let mut command = rushes(&["recv", "--sdp", file.to_str().unwrap(), "--window"]);
    let output = command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("shows video"), "{}", text(&output.stderr));
}

#[test]
fn a_missing_decoder_is_reported_before_a_window_opens() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = rushes(&["recv", "--from", "5004", "--codec", "h264", "--window"]);
    command.env("PATH", empty.path());
    let output = command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().unwrap();
    let log = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("the program ffmpeg, which cannot be started"), "{log}");
}
