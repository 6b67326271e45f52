//! Frequent mistakes: the error states what is wrong and what to type instead.

use crate::rig::{media, run, text};

const OPUS: &str = "opus_speech_mono_mixed_durations.opus";

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

/// The first octets of an MP4 file, and of files of containers that are not read.
const MP4: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41\0\0\0\x08free";
const AVI: &[u8] = b"RIFF\0\0\0\0AVI LIST";

#[test]
fn a_container_is_named_with_the_command_that_helps() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, octets: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, octets).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (old, named) = (write("film.avi", AVI), write("film.265", AVI));
    let empty = write("my film.mkv", b"");
    let film = write("film.mp4", MP4);
    let command = |from: &str, to: &str| {
        format!("ffmpeg -i {from} -c copy {}", folder.path().join(to).display())
    };
    let quoted = format!("'{empty}'");
    for (arguments, kind, shown) in [
        (&["send", &old, "--to", "127.0.0.1:9"][..], "AVI", command(&old, "film.264")),
        (&["loopback", &old], "AVI", command(&old, "film.264")),
        (&["loopback", &old, "--codec", "h265"], "AVI", command(&old, "film.265")),
        (&["loopback", &named], "AVI", command(&named, "film.bare.265")),
        (&["loopback", &empty], "MKV", format!("ffmpeg -i {quoted} -c copy '")),
    ] {
        let errors = refused(arguments);
        assert!(errors.contains(kind) && errors.contains(&shown), "{errors}");
    }
    let output = run(&["send", &film, "--to", "127.0.0.1:9"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("no index (moov)"), "{errors}");
    let out = folder.path().join("film.ktx2");
    let out = out.to_str().unwrap();
    let frames = folder.path().join("film.y4m");
    let shown = format!("ffmpeg -i {film} -pix_fmt yuv420p {}", frames.display());
    for arguments in [
        &["texture", "encode", &film, out][..],
        &["texture", "serve", &film, "--listen", "127.0.0.1:0"],
    ] {
        let errors = refused(arguments);
        assert!(errors.contains("MP4") && errors.contains(&shown), "{errors}");
    }
    // Any octets can be sent as such.
    let sent = run(&["send", &film, "--codec", "raw", "--to", "127.0.0.1:9", "-q"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
}

#[test]
fn audio_beside_a_film_is_an_audio_file() {
    let (film, speech) = (media("avc_cif_60f_baseline.264"), media(OPUS));
    let to = ["--to", "127.0.0.1:9", "--flat-out", "--no-rtcp", "--json"];
    let sent = run(&[&["send", &film, "--audio", &speech][..], &to].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let report: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    let codecs: Vec<_> = (0..2).map(|it| report["streams"][it]["codec"].clone()).collect();
    assert_eq!(codecs, ["h264", "opus"]);
    let errors = refused(&[&["send", &film, "--audio", &film][..], &to].concat());
    assert!(errors.contains("--audio needs an audio file") && errors.contains("H.264"), "{errors}");
    let errors = refused(&["send", &film, "--audio", &speech, "--to", "127.0.0.1:65535"]);
    assert!(errors.contains("two ports after"), "{errors}");
}

#[test]
fn a_bitstream_of_another_codec_is_recognised_by_its_nal_units() {
    let folder = tempfile::tempdir().unwrap();
    let avc = media("avc_cif_60f_baseline.264");
    let (named, bare) = (folder.path().join("film.265"), folder.path().join("film"));
    std::fs::copy(&avc, &named).unwrap();
    std::fs::copy(&avc, &bare).unwrap();
    let named = named.to_str().unwrap();
    for arguments in [
        &["loopback", named][..],
        &["loopback", &avc, "--codec", "h266"],
        &["send", &avc, "--codec", "opus", "--to", "127.0.0.1:9"],
        &["loopback", bare.to_str().unwrap()],
    ] {
        let errors = refused(arguments);
        assert!(errors.contains("looks like H.264"), "{errors}");
        assert!(errors.contains("7 (SPS), 8 (PPS)"), "{errors}");
        assert!(errors.contains("Try: --codec h264"), "{errors}");
    }
    let output = run(&["loopback", named, "--codec", "h264", "-q"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn formats_that_only_the_graphics_processor_encodes_name_its_option() {
    let serve = ["texture", "serve", "pattern:64x64", "--listen", "127.0.0.1:0", "--format"];
    for format in ["etc1", "etc2", "astc-4x4"] {
        let errors = refused(&[&serve[..], &[format]].concat());
        assert!(errors.contains(&format!("Try: --format {format} --gpu")), "{errors}");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.ktx2");
    let encode = ["texture", "encode", "pattern:64x64", out.to_str().unwrap(), "--frames", "1"];
    let errors = refused(&[&encode[..], &["--format", "etc2"]].concat());
    assert!(errors.contains("--gpu") && !out.exists(), "{errors}");
}

#[test]
fn a_misspelled_name_is_answered_with_the_nearest() {
    for (arguments, meant) in [
        (&["loopback", "--codec", "h263"][..], "h26"),
        (&["texture", "serve", "pattern", "--listen", "0", "--format", "ycocgbc3"], "ycocg-bc3"),
        (&["texture", "view", "127.0.0.1:9", "--null", "--formt", "bc1"], "--format"),
    ] {
        assert!(refused(arguments).contains(meant), "{arguments:?}");
    }
    let errors = refused(&["texture", "serve", "pattern,frame=3", "--listen", "127.0.0.1:0"]);
    assert!(errors.contains("did you mean \"frames=\"?"), "{errors}");
}

#[test]
fn a_payload_type_that_looks_like_rtcp_is_explained() {
    let errors = refused(&["loopback", "--payload-type", "72"]);
    assert!(errors.contains("RFC 5761") && errors.contains("96 to 127"), "{errors}");
}
