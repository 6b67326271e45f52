//! Streams that are set up from descriptions, and the descriptions that `send` writes.

use std::net::UdpSocket;
use std::path::Path;

use crate::rig::{MEDIA, free_port, json, media, receiving, run, rushes, text, units};

const RTX: [&str; 8] =
    ["--recovery", "rtx", "--ssrc", "7", "--rtx-ssrc", "0x8", "--rtx-payload-type", "120"];

/// Returns the description that `rushes send` writes of a stream to `port`.
fn description(port: u16, more: &[&str]) -> String {
    let (name, to) = (media(MEDIA[1]), format!("127.0.0.1:{port}"));
    let arguments = ["send", &name, "--to", &to, "--sdp", "-", "--dry-run"];
    let output = rushes(&arguments).args(more).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_description_has_the_sources_of_media_and_of_retransmissions() {
    let words = description(5004, &[&RTX[..], &["--cname", "camera"]].concat());
    for line in [
        "m=video 5004 RTP/AVPF 97 120",
        "a=fmtp:120 apt=97",
        "a=recvonly",
        "a=ssrc:7 cname:camera",
        "a=ssrc:8 cname:camera",
        "a=ssrc-group:FID 7 8",
    ] {
        assert!(words.lines().any(|one| one == line), "{line} is not in\n{words}");
    }
}

#[test]
fn a_description_has_the_capture_time_and_its_receiver_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let name = media(MEDIA[1]);
    let elements = [
        (None, "1 http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"),
        (
            Some("abs-capture-time:5"),
            "5 http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
        ),
        (Some("ntp-64"), "1 urn:ietf:params:rtp-hdrext:ntp-64"),
        (Some("ntp-64:255"), "255 urn:ietf:params:rtp-hdrext:ntp-64"),
    ];
    let words = description(5004, &["--capture-time=ntp-56:16"]);
    assert!(words.contains("\na=extmap:16 urn:ietf:params:rtp-hdrext:ntp-56\r\n"), "{words}");
    for (n, (value, mapping)) in elements.into_iter().enumerate() {
        let option =
            value.map_or_else(|| "--capture-time".to_owned(), |it| format!("--capture-time={it}"));
        for from_option in [false, true] {
            let port = free_port();
            let words = description(port, &[&option]);
            assert!(words.contains(&format!("\na=extmap:{mapping}\r\n")), "{words}");
            let file = folder.path().join("stream.sdp");
            std::fs::write(&file, &words).unwrap();
            let copy = folder.path().join(format!("copy{n}{from_option}.265"));
            let (file, to) = (file.to_str().unwrap(), format!("127.0.0.1:{port}"));
            let source: &[&str] =
                if from_option { &["--from", &to, &option] } else { &["--sdp", file] };
            let receiver = receiving(port, source, &copy);
            let sent = run(&["send", &name, "--to", &to, &option, "--flat-out"]);
            assert!(sent.status.success(), "{}", text(&sent.stderr));
            let report = json(&receiver.wait_with_output().unwrap());
            let latency = &report["capture_to_delivery"];
            assert_eq!(latency["frames_with_capture_time"], report["frames_received"], "{report}");
            assert!(latency["p99_ms"].is_f64() && latency["frames"].as_u64() > Some(0), "{report}");
        }
    }
}

#[test]
fn a_capture_time_that_does_not_exist_is_refused_with_those_that_do() {
    for (value, reason) in [
        ("ntp", "abs-capture-time, ntp-64, ntp-56"),
        ("ntp-64:15", "reserved"),
        ("ntp-64:256", "1 to 14 or 16 to 255"),
    ] {
        let option = format!("--capture-time={value}");
        let output = run(&["send", &media(MEDIA[1]), "--to", "127.0.0.1:5004", &option]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(reason), "{said}");
    }
}

#[test]
fn odd_lines_of_a_description_are_named_and_the_rest_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let good = description(port, &[]);
    let start = good.find("m=").unwrap();
    let odd = format!(
        "{}m=audio 9 RTP/AVP 72\nm=audio 9 RTP/AVP 111\na=rtpmap:111 opus/48000/2\n\
         a=fmtp:111 stereo=2\n{}b=AS:\na=fmtp:97 sprop-sei=?\n",
        good[..start].replace("o=- ", "o=- 9"),
        &good[start..],
    );
    let (sdp, copy) = (folder.path().join("odd.sdp"), folder.path().join(MEDIA[1]));
    std::fs::write(&sdp, &odd).unwrap();
    let arguments = ["--sdp", sdp.to_str().unwrap(), "--codec", "h265"];
    let receiver = receiving(port, &arguments, &copy);
    let name = media(MEDIA[1]);
    let sent = run(&["send", &name, "--to", &format!("127.0.0.1:{port}"), "--fps", "1000"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    let log = text(&received.stderr);
    assert!(received.status.success(), "{log}");
    assert!(units(&copy) == units(Path::new(&name)));
    let line = |part: &str| {
        let number = odd.lines().position(|line| line.contains(part)).unwrap() + 1;
        format!("odd.sdp: line {number}: ")
    };
    for (part, wanted) in [
        ("AVP 72", "payload type 72 is among 64 to 95"),
        ("stereo=2", "the parameter stereo is left out"),
        ("b=AS:", "the bandwidth of b= is missing or malformed"),
        ("sprop-sei=?", "the parameter sprop-sei is left out"),
    ] {
        let start = line(part);
        let found = log.lines().any(|line| line.contains(&start) && line.contains(wanted));
        assert!(found, "{start}{wanted} is not in\n{log}");
    }
}

#[test]
fn a_description_of_which_nothing_can_be_used_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let sdp = folder.path().join("none.sdp");
    for (words, wanted) in [
        ("HTTP/1.1 404 Not Found\n", "line 1: a session description begins with v=0"),
        ("v=0\nm=video\n", "no media can be read: line 2: the port of m="),
        ("v=0\nm=video 5004 RTP/AVP 72\n", "the media has no format"),
        ("v=0\n", "it describes no media"),
    ] {
        std::fs::write(&sdp, words).unwrap();
        let output = run(&["recv", "--sdp", sdp.to_str().unwrap(), "-o", "x.264"]);
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{log}");
        assert!(log.contains(wanted), "{wanted} is not in\n{log}");
    }
    std::fs::write(&sdp, "v=0\nm=video\nm=audio 9 RTP/AVP 9\n").unwrap();
    let output = run(&["recv", "--sdp", sdp.to_str().unwrap(), "-o", "x.264", "-q"]);
    let log = text(&output.stderr);
    assert!(log.contains("line 2: the port of m=") && log.contains("G722"), "{log}");
}

#[test]
fn a_file_with_the_name_of_another_codec_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sdp = folder.path().join("a.sdp");
    for (codec, name, wanted) in [
        ("VP8", "x.264", "x.264 is the name of H.264, and the stream is VP8. Try: -o copy.ivf"),
        ("AV1", "x.mkv", "AV1 is not written to containers: name it .obu"),
    ] {
        let media = format!(
            "v=0\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 104\na=rtpmap:104 {codec}/90000\n"
        );
        std::fs::write(&sdp, media).unwrap();
        let output =
            run(&["recv", "--sdp", sdp.to_str().unwrap(), "-o", name, "--duration", "1ms"]);
        let log = text(&output.stderr);
        assert!(!output.status.success() && log.contains(wanted), "{log}");
    }
}

#[test]
fn the_interface_counts_with_a_description_too() {
    let folder = tempfile::tempdir().unwrap();
    let sdp = folder.path().join("a.sdp");
    for address in ["127.0.0.1", "239.1.2.3/1"] {
        let port = free_port();
        let media =
            format!("v=0\nc=IN IP4 {address}\nm=video {port} RTP/AVP 97\na=rtpmap:97 H265/90000\n");
        std::fs::write(&sdp, media).unwrap();
        let described =
            ["recv", "--sdp", sdp.to_str().unwrap(), "-o", "x.265", "--duration", "1ms"];
        let output = run(&[&described[..], &["--interface", "nowhere0"]].concat());
        let log = text(&output.stderr);
        assert!(!output.status.success() && log.contains("nowhere0"), "{address}: {log}");
    }
}

#[test]
fn the_sources_that_a_description_names_narrow_who_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let (sdp, copy) = (folder.path().join("a.sdp"), folder.path().join(MEDIA[1]));
    std::fs::write(&sdp, description(port, &RTX)).unwrap();
    let receiver = receiving(port, &["--sdp", sdp.to_str().unwrap()], &copy);
    // Before the stream, a stranger sends access units.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for sequence in 0..9 {
        // The header has the marker bit and payload type 97.
        let header = [0x80, 0xe1, 0, sequence, 0, 0, 0, sequence, 0, 0, 0, 99];
        let packet = [&header[..], &[0x02, 0x01, 0xd0]].concat();
        stranger.send_to(&packet, ("127.0.0.1", port)).unwrap();
    }
    let (name, to) = (media(MEDIA[1]), format!("127.0.0.1:{port}"));
    let sent = run(&[&["send", &name, "--to", &to, "--fps", "1000"], &RTX[..]].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    assert!(received.status.success(), "{}", text(&received.stderr));
    assert!(units(&copy) == units(Path::new(&name)));
    let report = json(&received);
    assert_eq!(report["frames_of_other_sources"], 0, "{report}");
}

#[test]
fn errors_about_retransmission_options_name_the_right_ones() {
    let name = media(MEDIA[1]);
    let rtx = ["--recovery", "rtx"];
    for (arguments, wanted) in [
        (&["--rtx-ssrc", "8"][..], "give --recovery rtx too"),
        (&["--rtx-payload-type", "120"], "give --recovery rtx too"),
        (&["--rtx-ssrc", "8", "--recovery", "verbatim"], "give --recovery rtx too"),
        (&[&rtx[..], &["--rtx-payload-type", "97"]].concat(), "give another, from 96 to 127"),
        (&[&rtx[..], &["--ssrc", "8", "--rtx-ssrc", "8"]].concat(), "give another"),
        (&[&rtx[..], &["--rtx-payload-type", "72"]].concat(), "--rtx-payload-type"),
    ] {
        let send = ["send", &name, "--to", "127.0.0.1:9"];
        let recv = ["recv", "--from", "5004", "-o", "x.265"];
        for command in [&send[..], &recv] {
            let output = run(&[command, arguments].concat());
            let log = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {log}");
            assert!(log.contains(wanted), "{arguments:?}: {log}");
        }
    }
    let described = ["--sdp", "x", "--recovery", "rtx", "--rtx-ssrc", "8"];
    let output = run(&[&["send", &name, "--to", "127.0.0.1:9"], &described[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("give --ssrc too"), "{}", text(&output.stderr));
}
