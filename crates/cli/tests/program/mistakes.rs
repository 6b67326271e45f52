//! Frequent mistakes: the error states what is wrong and what to type instead.

use crate::rig::{media, run, text};

/// The error output of a command line that is refused with the exit code 2.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    errors
}

#[test]
fn a_missing_port_is_shown_with_the_option() {
    let file = media("avc_cif_60f_baseline.264");
    for (arguments, shown) in [
        (&["send", &file, "--to", "192.0.2.7"][..], "--to 192.0.2.7:5004"),
        (&["send", &file, "--to", "2001:db8::7"], "--to [2001:db8::7]:5004"),
        (&["recv", "-o", "x.264", "--from", "127.0.0.1"], "--from 127.0.0.1:5004"),
        (&["texture", "view", "192.0.2.7", "--null"], "192.0.2.7:7000"),
        (&["texture", "serve", "pattern", "--listen", "127.0.0.1"], "--listen 127.0.0.1:7000"),
    ] {
        let errors = refused(arguments);
        assert!(errors.contains("port") && errors.contains(shown), "{errors}");
    }
}

#[test]
fn urls_are_addresses_if_they_are_of_rtp() {
    let file = media("avc_cif_60f_baseline.264");
    let sent = run(&["send", &file, "--to", "rtp://127.0.0.1:9", "--fps", "30000/1", "-q"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    for (url, hint) in [
        ("srtp://127.0.0.1:9", "--srtp"),
        ("rtsp://camera/live", "does not speak RTSP"),
        ("http://127.0.0.1:9", "HOST:5004"),
    ] {
        let errors = refused(&["send", &file, "--to", url]);
        assert!(errors.contains(hint), "{errors}");
    }
}

#[test]
fn a_frame_rate_is_kept_as_a_fraction() {
    let folder = tempfile::tempdir().unwrap();
    let sdp = folder.path().join("a.sdp");
    let arguments = ["--to", "127.0.0.1:9", "--dry-run", "--sdp", sdp.to_str().unwrap(), "--fps"];
    let described = |rate: &str| {
        let file = media("avc_cif_60f_baseline.264");
        let output = run(&[&["send", &file], &arguments[..], &[rate]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let description = std::fs::read_to_string(&sdp).unwrap();
        std::fs::remove_file(&sdp).unwrap();
        let rate = description.lines().find_map(|line| line.strip_prefix("a=framerate:"));
        rate.unwrap().to_owned()
    };
    // A decimal number would be rounded to thousandths.
    assert_eq!(described("100/7"), "14.285714285714286");
    assert_eq!(described("30000/1001"), described("29.97"));
}
