//! `rushes texture encode` and `decode`: files.

use crate::rig::{json, text};
use crate::texture_rig::{counters, frames, must, texture};

const PATTERN: &str = "pattern:320x180@60";

#[test]
fn a_film_encoded_and_decoded_is_much_like_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let name = |name: &str| file(name).to_str().unwrap().to_owned();
    must(&["encode", PATTERN, &name("film.y4m"), "--frames", "6", "--fps", "24"]);
    let (layout, original) = frames(&file("film.y4m"));
    // A few colours per block do not reproduce the edges of the pattern.
    for (format, least) in [("bc1", 26.0), ("ycocg-bc3", 34.0), ("rgb24", 40.0)] {
        let encode = ["encode", &name("film.y4m"), &name("film.ktx2"), "--format", format];
        let report = json(&must(&[&encode[..], &["--psnr", "--json", "-f"]].concat()));
        assert_eq!((&report["frames"], &report["format"]), (&6.into(), &format.into()));
        // If nothing differs, the value is not a number.
        let decibels = report["psnr"]["decibels"].as_f64().unwrap_or(f64::INFINITY);
        assert!(decibels > least, "{format}: {report}");
        must(&["decode", &name("film.ktx2"), &name("copy.y4m"), "-q", "-f"]);
        let (copied, copy) = frames(&file("copy.y4m"));
        assert_eq!((copied, copy.len()), (layout, 6));
        for (copy, original) in copy.iter().zip(&original) {
            let likeness = rushes::texture::metric::psnr(copy, original);
            assert!(likeness > least, "{format}: {likeness}");
        }
        assert_eq!(counters(&file("copy.y4m")), [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn the_quality_high_is_nearer_to_the_film_and_refused_where_it_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (format, gain) in [("bc1", 1.0), ("bc3", 1.0), ("ycocg-bc3", 0.3)] {
        let encoded = |quality: &str| {
            let file = name(&format!("{quality}.ktx2"));
            let encode = ["encode", PATTERN, &file, "--frames", "2", "--format", format, "-f"];
            let rest = ["--psnr", "--json", "--quality", quality];
            let report = json(&must(&[&encode[..], &rest].concat()));
            (report["psnr"]["decibels"].as_f64().unwrap(), std::fs::read(file).unwrap())
        };
        let (fast, high) = (encoded("fast"), encoded("high"));
        assert!(high.0 >= fast.0 + gain, "{format}: {} against {}", high.0, fast.0);
        assert_eq!(high.1.len(), fast.1.len());
        let default = ["encode", PATTERN, &name("default.ktx2"), "--frames", "2", "-f"];
        must(&[&default[..], &["--format", format]].concat());
        assert!(std::fs::read(name("default.ktx2")).unwrap() == fast.1, "{format}");
    }
    for (output, rest, words) in [
        ("a.y4m", &["--quality", "high"][..], "has no effect on yuv420"),
        ("a.rgb", &["--quality", "high"], "the frames are rgb24 and stay so"),
        ("a.ktx2", &["--quality", "best"], "the quality is fast or high"),
    ] {
        let encode = ["encode", PATTERN, &name(output), "--frames", "2"];
        let refused = texture(&[&encode[..], rest].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
    let serve = ["serve", PATTERN, "--listen", "0", "--format", "bc1", "--gpu"];
    let refused = texture(&[&serve[..], &["--quality", "high"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("leave out --gpu"), "{}", text(&refused.stderr));
}

#[test]
fn images_and_octets_without_a_header_lead_back_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    must(&["encode", PATTERN, &name("a.rgb"), "--frames", "3"]);
    must(&["decode", &name("a.rgb"), &name("i_%02d.png"), "--size", "320x180"]);
    must(&["decode", &name("i_%02d.png"), &name("b.rgb")]);
    assert!(std::fs::read(name("a.rgb")).unwrap() == std::fs::read(name("b.rgb")).unwrap());
    must(&["encode", &name("a.rgb"), &name("a.raw"), "--size", "320x180", "--format", "bc1"]);
    assert_eq!(std::fs::metadata(name("a.raw")).unwrap().len(), 3 * 80 * 45 * 8);
    let size = ["--size", "320x180", "--input-format", "bc1"];
    must(&[&["decode", &name("a.raw"), &name("c.y4m")], &size[..]].concat());
    assert_eq!(counters(&folder.path().join("c.y4m")), [0, 1, 2]);
}

#[test]
fn one_frame_has_the_given_name_and_several_are_numbered() {
    for (frames, images, words) in [
        (1, &["d.png"][..], "/d.png: 1 frame of"),
        (3, &["d_00000.png", "d_00001.png", "d_00002.png"], "/d_00002.png: 3 frames of"),
    ] {
        let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let film = folder.path().join("a.ktx2").to_str().unwrap().to_owned();
        must(&["encode", PATTERN, &film, "--frames", &frames.to_string()]);
        let output = out.path().join("d.png").to_str().unwrap().to_owned();
        let log = text(&must(&["decode", &film, &output]).stderr);
        assert!(log.contains(words), "{log}");
        let entries = std::fs::read_dir(out.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, images);
        let report = json(&must(&["decode", &film, &output, "--json", "--force"]));
        let name = |image: &str| out.path().join(image).to_str().unwrap().to_owned();
        assert!(log.starts_with(&name(images[0])), "{log}");
        assert_eq!(report["first_file"], name(images[0]));
        assert_eq!(report["last_file"], name(images[images.len() - 1]));
    }
}

#[test]
fn an_error_leaves_nothing_behind_and_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let frame = [&b"FRAME\n"[..], &[128; 6]].concat();
    let cut = [&b"YUV4MPEG2 W2 H2 F25:1\n"[..], &frame, b"FRAME\nab"].concat();
    std::fs::write(name("cut.y4m"), cut).unwrap();
    std::fs::write(name("text.ktx2"), "no texture").unwrap();
    for (arguments, word) in [
        (["encode", &name("cut.y4m"), &name("a.ktx2")], "cut.y4m: the file ends within frame 1"),
        (["decode", &name("text.ktx2"), &name("a.y4m")], "text.ktx2"),
        (["decode", &name("none.ktx2"), &name("a.y4m")], "none.ktx2"),
        (["decode", &name("cut.y4m"), &name("no/a.rgb")], "a.rgb"),
        (["decode", &name("cut.rgb"), &name("a.y4m")], "--size"),
        (["encode", "pattern:32x32,frames=0", &name("a.y4m")], "contains no frame"),
    ] {
        let output = texture(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains(word), "{arguments:?}: {}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_wrong_command_line_exits_with_2_and_advice() {
    for (arguments, word) in [
        (&["encode", PATTERN, "a.mp4", "--frames", "1"][..], ".ktx2"),
        (&["encode", PATTERN, "a.ktx2"], "--frames"),
        (&["encode", "pattern:9x", "a.y4m"], "pattern:9x"),
        (&["encode", PATTERN, "a.ktx2", "--format", "bc9"], "ycocg-bc3"),
        (&["decode", "a.ktx2"], "--help"),
        (&["serve", PATTERN], "--listen"),
        (&["serve", PATTERN, "--listen", "0", "--live", "--flat-out"], "--flat-out"),
        (&["serve", PATTERN, "--listen", "0", "--packet-size", "4"], "5 to"),
        (&["serve", PATTERN, "--listen", "0", "--srtp", "AEAD_AES_128_GCM"], "--key"),
        (&["view", "127.0.0.1:1"], "--null"),
        (&["view", "127.0.0.1:1", "--null", "--output", "a.y4m"], "--null"),
        (&["view", "127.0.0.1:0", "--null"], "port"),
        (&["view", "127.0.0.1:1", "--output", "a.mp4"], ".y4m"),
        (&["view", "127.0.0.1:1", "--output", "-", "--json"], "standard output"),
        (&["view", "127.0.0.1:1", "--null", "--transport", "quic"], "udp, tcp, rtp or multicast"),
        (
            &["view", "h:1", "--null", "--transport", "udp", "--srtp", "AEAD_AES_128_GCM"],
            "--transport rtp",
        ),
        (&["view", "h:1", "--null", "--transport", "tcp", "--zrtp"], "--zrtp secures RTP only"),
        (&["serve", PATTERN, "--listen", "0", "--zrtp-cache", "x"], "--zrtp"),
    ] {
        let output = texture(arguments);
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {log}");
        assert!(log.contains(word), "{arguments:?}: {log}");
    }
}
