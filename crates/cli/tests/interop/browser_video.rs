//! Films of FFmpeg's encoders, as browsers need them.

use std::path::Path;
use std::process::Command;

use rushes::Codec;
use rushes::file::{BrowserVideo, BrowserVideoError, ReadOptions};

use crate::rig::have;

/// Runs a command line of FFmpeg in `folder`.
fn run(folder: &Path, line: &str) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(["-nostdin", "-v", "error"])
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn films_with_b_frames_are_refused_and_the_advice_makes_them_right() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "-f lavfi -i testsrc2=size=320x180:rate=30:duration=2";
    for (name, codec, encoder) in [
        ("film.264", Codec::H264, "-c:v libx264 -bf 3"),
        ("film.mp4", Codec::H264, "-c:v libx264 -bf 3"),
        ("film.265", Codec::H265, "-c:v libx265 -x265-params bframes=3:log-level=error"),
    ] {
        run(folder.path(), &format!("ffmpeg {source} {encoder} {name}"));
        let open = |name: &str| {
            let path = folder.path().join(name);
            BrowserVideo::open(&path, codec, ReadOptions::default())
        };
        let Err(BrowserVideoError::Reordered { advice, .. }) = open(name) else {
            panic!("{name}: its pictures are reordered");
        };
        // The command names the file by its path.
        let line = advice.strip_prefix("Try: ").unwrap();
        run(folder.path(), line);
        let new = line.split_whitespace().last().unwrap();
        let video = open(new).unwrap();
        let is_baseline = video.profile_level_id().map(|[profile, ..]| profile == 66);
        assert_eq!(is_baseline, (codec == Codec::H264).then_some(true), "{new}");
        assert!(video.encoding().is_some(), "{new}");
    }
}
