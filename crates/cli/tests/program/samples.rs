//! Uncompressed audio between two programs.

use std::fs;
use std::path::Path;

use rushes::file::{MediaWriter, Sampling};
use rushes::{ClockRate, Codec, RtpTimestamp};
use rushes_netsim::{Conditions, Loss, Path as NetworkPath, Relay, Straying};

use crate::rig::{free_port, json, receiving, run, text};

/// Writes so many samples of each channel to a WAV file.
fn make(path: &Path, codec: Codec, (hertz, channels): (u32, u8), count: usize) {
    let sampling = Sampling { rate: ClockRate::new(hertz).unwrap(), channels };
    let mut writer = MediaWriter::create(path, codec).unwrap().with_sampling(sampling);
    let len = count * usize::from(channels) * codec.sample.unwrap().len();
    let samples: Vec<u8> = (0..len).map(|at| (at * 167 + at / 251) as u8).collect();
    writer.write(&samples, RtpTimestamp(0)).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_wav_file_comes_out_as_it_went_in_by_its_description_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text_of = |name: &str| path(name).to_str().unwrap().to_owned();
    for (codec, of, more, rtpmap, ptime) in [
        (Codec::L24, (48_000, 8), &["--packet-time", "125us"][..], "103 L24/48000/8", "0.125"),
        (Codec::L24, (48_000, 64), &[], "103 L24/48000/64", "0.125"),
        (Codec::L16, (44_100, 1), &[], "102 L16/44100", "0.997732"),
        (Codec::Pcma, (8000, 1), &[], "8 PCMA/8000", "20"),
        (Codec::Pcmu, (16_000, 2), &["--payload-type", "97"], "97 PCMU/16000/2", "20"),
    ] {
        make(&path("sound.wav"), codec, of, of.0 as usize / 4);
        let port = free_port();
        let to = format!("127.0.0.1:{port}");
        let (sound, sdp) = (text_of("sound.wav"), text_of("sound.sdp"));
        let send = [&["send", &sound, "--to", &to], more].concat();
        let order = ["--channel-order", "SMPTE2110.(U64)"];
        let described =
            run(&[&send[..], &["--sdp", &sdp, "--dry-run", "--force"], &order].concat());
        assert!(described.status.success(), "{}", text(&described.stderr));
        let description = fs::read_to_string(&sdp).unwrap();
        let payload_type = rtpmap.split(' ').next().unwrap();
        for line in [
            format!("a=rtpmap:{rtpmap}\r\n"),
            format!("a=ptime:{ptime}\r\n"),
            format!("a=fmtp:{payload_type} channel-order=SMPTE2110.(U64)\r\n"),
            format!("m=audio {port} RTP/AVP {payload_type}\r\n"),
        ] {
            assert!(description.contains(&line), "{line}{description}");
        }
        let receiver =
            receiving(port, &["--sdp", &sdp, "--force", "--until-bye"], &path("copy.wav"));
        let sent = run(&send);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let received = receiver.wait_with_output().unwrap();
        assert!(received.status.success(), "{}", text(&received.stderr));
        assert_eq!(json(&received)["silence_ms"], 0.0);
        assert!(fs::read(path("copy.wav")).unwrap() == fs::read(path("sound.wav")).unwrap());
    }
}

#[test]
fn what_a_network_loses_of_samples_is_silence_and_the_rest_is_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (sound, copy) = (folder.path().join("sound.wav"), folder.path().join("copy.wav"));
    make(&sound, Codec::L24, (48_000, 2), 480 * 100);
    let port = free_port();
    let from = format!("127.0.0.1:{port}");
    let options = ["--codec", "l24", "--packet-time", "1ms"];
    let receiver = receiving(port, &[&["--from", &from], &options[..2]].concat(), &copy);
    // A burst is lost, and other packets are out of order.
    let reordering = Straying::places(0.05, 1..=5);
    let path = NetworkPath { loss: Loss::Outage(300..420), reordering, ..NetworkPath::default() };
    let relay = Relay::to(from.parse().unwrap()).with_control().conditions(Conditions::both(path));
    let relay = relay.seed(5).start().unwrap();
    let to = relay.address().to_string();
    let sent = run(&[&["send", sound.to_str().unwrap(), "--to", &to], &options[..]].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    relay.finish();
    let report = json(&received);
    assert_eq!((&report["packets_lost"], &report["silence_ms"]), (&120.into(), &120.0.into()));
    let (sent, received) = (fs::read(&sound).unwrap(), fs::read(&copy).unwrap());
    assert_eq!(sent.len(), received.len());
    // 48 samples of two channels are a packet.
    let header_len = sent.len() % 288;
    let packets = sent[header_len..].chunks(288).zip(received[header_len..].chunks(288));
    let silent = packets.enumerate().filter(|(n, (sent, received))| {
        let is_silent = received.iter().all(|octet| *octet == 0);
        assert!(is_silent || sent == received, "packet {n}");
        is_silent
    });
    assert_eq!(silent.count(), 120);
}

#[test]
fn a_source_belongs_to_a_group() {
    let output = run(&["recv", "--from", "9", "--source", "::1", "--codec", "h264", "-o", "x.264"]);
    let error = text(&output.stderr);
    assert!(error.contains("--source is for a multicast group"), "{error}");
}

#[test]
fn samples_that_cannot_be_sent_are_named_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sound.wav");
    let file = path.to_str().unwrap();
    let error = |more: &[&str]| {
        let output = run(&[&["send", file, "--to", "127.0.0.1:9"], more].concat());
        assert!(!output.status.success());
        text(&output.stderr)
    };
    make(&path, Codec::L24, (96_000, 64), 96);
    let large = error(&[]);
    assert!(large.contains("at most 7 samples fit"), "{large}");
    make(&path, Codec::L16, (48_000, 2), 48);
    let long = error(&["--packet-time", "20ms"]);
    assert!(long.contains("set a shorter packet time"), "{long}");
    let zero = error(&["--packet-time", "0"]);
    assert!(zero.contains("outside 1 ns to 200 ms"), "{zero}");
    let other = error(&["--clock-rate", "44100"]);
    assert!(other.contains("has 2 channels at 48000 Hz, not 2 channels at 44100 Hz"), "{other}");
    let wide = error(&["--payload-type", "10"]);
    assert!(wide.contains("set a payload type from 96 to 127"), "{wide}");
    let another = error(&["--codec", "l24"]);
    assert!(another.contains("looks like L16, not L24"), "{another}");
    make(&path, Codec::Pcmu, (16_000, 1), 160);
    let fast = error(&[]);
    assert!(fast.contains("payload type 0 is PCMU at another rate"), "{fast}");
    let mut octets = fs::read(&path).unwrap();
    let at = octets.windows(4).position(|it| it == b"fmt ").unwrap() + 8;
    octets[at] = 3;
    for mark in [b"RIFF", b"BW64"] {
        octets[..4].copy_from_slice(mark);
        fs::write(&path, &octets).unwrap();
        let floating = error(&[]);
        assert!(floating.contains("floating-point samples of 8 bits"), "{floating}");
        assert!(floating.contains("-c:a pcm_s24le"), "{floating}");
    }
}

#[test]
fn options_of_samples_are_refused_for_other_codecs() {
    for (command, option) in [
        (&["send", "film.265", "--to", "127.0.0.1:9"][..], ["--packet-time", "1ms"]),
        (&["recv", "--from", "9", "-o", "x.265"], ["--channels", "2"]),
    ] {
        let film = crate::rig::media("hevc_192x128_90f_tiny_nals.265");
        let command: Vec<&str> =
            command.iter().map(|it| if *it == "film.265" { &film } else { *it }).collect();
        let output = run(&[&command[..], &option].concat());
        let error = text(&output.stderr);
        assert!(error.contains("is for l16, l24, pcmu and pcma, not for h265"), "{error}");
    }
}
