//! `rushes texture view --max-size`: frames that the server scales down.

use std::path::Path;
use std::process::Command;

use rushes::texture::metric::psnr;
use rushes::texture::{Format, Layout};

use crate::rig::{json, text};
use crate::skipped;
use crate::texture_rig::{frames, must, serving, texture};

const FRAMES: usize = 5;

/// Returns what FFmpeg makes of its own test pictures with a filter, as YUV 4:2:0.
fn ffmpeg(filter: &str, more: &[&str]) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-f", "lavfi"]);
    command.args(["-i", "testsrc2=size=640x360:rate=25:duration=0.2"]);
    command.args(["-vf", filter]).args(more);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output.stdout
}

/// Compares with FFmpeg, whose scaler averages areas, too.
#[test]
fn a_file_has_frames_of_the_largest_size_that_fits_as_another_program_makes_them() {
    if !skipped::have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film.y4m");
    let copy = folder.path().join("copy.y4m");
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    ffmpeg("format=yuv420p", &["-f", "yuv4mpegpipe", &name(&film)]);
    for (max, (width, height)) in [("320x999", (320, 180)), ("999x100", (176, 100))] {
        let server = serving(&name(&film), &["--every-frame", "--once"]);
        let output = name(&copy);
        let view = ["view", &server.address, "-o", &output, "--force", "--max-size", max];
        let viewed =
            must(&[&view[..], &["--every-frame", "--transport", "tcp", "--json"]].concat());
        assert_eq!(json(&viewed)["frames_written"], FRAMES);
        assert!(text(&viewed.stderr).contains(&format!("receiving {width}×{height}")));
        let (served, log) = server.finish();
        assert!(served.status.success(), "{log}");
        let (layout, received) = frames(&copy);
        assert_eq!((layout.width(), layout.height()), (width, height));
        let filter = format!("format=yuv420p,scale={width}:{height}:flags=area");
        let made = ffmpeg(&filter, &["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"]);
        let layout = Layout::new(Format::Yuv420, width, height).unwrap();
        assert_eq!((received.len(), made.len()), (FRAMES, FRAMES * layout.bytes()));
        for (ours, theirs) in received.iter().zip(made.chunks_exact(layout.bytes())) {
            let luma = layout.planes()[0].bytes();
            let both = [psnr(&ours[..luma], &theirs[..luma]), psnr(&ours[luma..], &theirs[luma..])];
            println!("{width}x{height}: luma {:.2} dB, chroma {:.2} dB", both[0], both[1]);
            assert!(both.iter().all(|&decibels| decibels > 60.0), "{both:?}");
        }
    }
}

#[test]
fn a_server_that_does_not_scale_is_named() {
    for (source, more) in
        [("pattern:64x48@60", &["--scaling", "off"][..]), ("pattern:64x48@60,rgb565", &[])]
    {
        let server = serving(source, more);
        let view = ["view", &server.address, "--null", "--frames", "3", "--max-size", "32x32"];
        let log = text(&must(&view).stderr);
        assert!(log.contains("does not scale its pictures: --max-size has no effect"), "{log}");
        assert!(log.contains("receiving 64×48"), "{log}");
    }
    // Blocks are made of scaled pictures.
    let server = serving("pattern:64x48@60", &["--format", "bc1"]);
    let log = text(
        &must(&["view", &server.address, "--null", "--frames", "3", "--max-size", "32x32"]).stderr,
    );
    assert!(log.contains("receiving 32×24 bc1") && !log.contains("does not scale"), "{log}");
}

#[test]
fn sizes_that_cannot_be_asked_for_are_refused() {
    for (size, reason) in [
        ("0x9", "is neither a size such as 1280x720 nor window"),
        ("huge", "is neither a size such as 1280x720 nor window"),
        ("40000x9", "a side has up to 32768 pixels"),
        ("window", "--max-size window needs --window; give a size"),
    ] {
        let output = texture(&["view", "127.0.0.1:9", "--null", "--max-size", size]);
        assert_eq!(output.status.code(), Some(2), "{size}");
        assert!(text(&output.stderr).contains(reason), "{size}: {}", text(&output.stderr));
    }
}
