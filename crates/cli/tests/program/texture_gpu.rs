//! Frames that the graphics processor encodes while they are served.

use crate::rig::{run, rushes, text};
use crate::texture_rig::serving;

/// Returns whether a device can be opened; fails without one if graphics tests are required.
pub(crate) fn has_device() -> bool {
    let probe = ["texture", "serve", "pattern:64x64", "--listen", "127.0.0.1:0", "--gpu"];
    let more = ["--format", "bc1", "--duration", "1ms"];
    let output = rushes(&[&probe[..], &more].concat()).output().unwrap();
    let has_driver = !text(&output.stderr).contains("no graphics driver");
    if !has_driver {
        crate::skipped::missing("a graphics driver", "mesa-vulkan-drivers libvulkan1");
    }
    has_driver
}

fn viewed(format: &str, more: &[&str]) -> Vec<u8> {
    let serve = ["--format", format, "--transport", "tcp", "--once", "--every-frame"];
    let pixels = if format == "etc2" { "rgb24" } else { "rgba8" };
    let server =
        serving(&format!("pattern:322x182@30,{pixels},frames=5"), &[&serve, more].concat());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("film.ktx2");
    let view = ["texture", "view", &server.address, "--output", file.to_str().unwrap()];
    let output = run(&[&view[..], &["--every-frame"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    server.finish();
    std::fs::read(file).unwrap()
}

#[test]
fn frames_are_equal_from_either_processor() {
    if !has_device() {
        return;
    }
    for format in ["bc1", "ycocg-bc3"] {
        let wanted = viewed(format, &[]);
        assert!(wanted.len() > 5 * 322 * 182 / 2, "{format}: {} octets", wanted.len());
        assert!(viewed(format, &["--gpu"]) == wanted, "{format}");
    }
    // Other pixel formats are converted to RGBA8 first. ETC2 cannot be encoded by the main
    // processor.
    assert!(viewed("etc2", &["--gpu"]).len() > 5 * 322 * 182 / 2);
}

#[test]
fn a_format_that_the_device_does_not_encode_is_an_error() {
    let serve = ["texture", "serve", "pattern:64x64", "--listen", "127.0.0.1:0", "--gpu"];
    let output = run(&[&serve[..], &["--format", "rgb565", "--duration", "1s"]].concat());
    assert!(!output.status.success());
    let output = run(&serve);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}
