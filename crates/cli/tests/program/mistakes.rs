//! Frequent mistakes: the exit code, and an error that states what is wrong and what to type instead.
//!
//! Those that show only when packets arrive (other keys, no keys, another payload type) are in
//! `keys_differ.rs` and `unusable.rs`.

use std::net::UdpSocket;
use std::path::Path;

use rushes::file::MediaWriter;
use rushes::{Codec, RtpTimestamp};

use crate::ports::four_ports;
use crate::rig::{
    MEDIA, free_port, json, media, receiving, run, rushes, silent_receiver, text, units,
};

const OPUS: &str = "opus_speech_mono_mixed_durations.opus";

/// A command line without `rushes`, its exit code, and texts of its error output.
type Mistake = (&'static str, i32, &'static [&'static str]);

/// A new row needs nothing else, unless it names a file that [`make_files`] does not make.
const MISTAKES: &[Mistake] = &[
    // Unknown names, with the nearest one.
    ("frobnicate", 2, &["--help"]),
    ("loopback --mtu many", 2, &["an MTU is 100 to 65535 octets", "--help"]),
    ("loopback --fps 30 --flat-out", 2, &["cannot be used with", "--help"]),
    ("loopback --codec h263", 2, &["h26"]),
    ("texture serve pattern --listen 0 --format ycocgbc3", 2, &["ycocg-bc3"]),
    ("texture view 127.0.0.1:9 --null --formt bc1", 2, &["--format"]),
    ("texture serve pattern,frame=3 --listen 127.0.0.1:0", 2, &["did you mean \"frames=\"?"]),
    ("keygen AES_128", 2, &["AES_CM_128_HMAC_SHA1_80"]),
    // Addresses.
    ("send film.264", 2, &["--to <HOST:PORT>", "--help"]),
    ("send film.264 --to 192.0.2.7", 2, &["port is missing", "--to 192.0.2.7:5004", "--help"]),
    ("send film.264 --to 2001:db8::7", 2, &["port", "--to [2001:db8::7]:5004"]),
    ("recv -o x.264 --from 127.0.0.1", 2, &["port is missing", "--from 127.0.0.1:5004"]),
    ("texture view 192.0.2.7 --null", 2, &["port is missing", "192.0.2.7:7000"]),
    ("texture serve pattern --listen 127.0.0.1", 2, &["port", "--listen 127.0.0.1:7000"]),
    ("recv --from 5004 -o x.264 --metrics 127.0.0.1", 2, &["--metrics 127.0.0.1:9464"]),
    ("send film.264 --to srtp://127.0.0.1:9", 2, &["--srtp"]),
    ("send film.264 --to rtsp://camera/live", 2, &["does not speak RTSP"]),
    ("send film.264 --to http://127.0.0.1:9", 2, &["HOST:5004"]),
    ("send film.264 --to 0.0.0.0:5004", 2, &["is not a peer", "--to 127.0.0.1:5004"]),
    ("recv --from 5004 -o x.264 --peer 0.0.0.0", 2, &["is not a peer", "--peer 127.0.0.1"]),
    ("recv --from 192.0.2.1:5004 -o x.265", 1, &["192.0.2.1"]),
    ("send film.264 --to rtp://RECEIVER --fps 30000/1 -q", 0, &[]),
    ("send film.264 --to 127.0.0.1:9 --fps 30000/1001 --sdp - --dry-run", 0, &[]),
    // Payload types that look like RTCP.
    ("loopback --payload-type 64", 2, &["RFC 5761", "96 to 127"]),
    ("loopback --payload-type 95", 2, &["RFC 5761", "96 to 127"]),
    ("loopback --payload-type 128", 2, &["outside 0 to 127", "96 to 127"]),
    // Files that are not there, are there already, or contain something else.
    ("loopback missing.265", 1, &["missing.265"]),
    ("send missing.265 --to 127.0.0.1:9", 1, &["missing.265"]),
    ("inspect missing.pcap", 1, &["missing.pcap: cannot open"]),
    ("recv --from 127.0.0.1:0 -o x", 2, &["cannot determine the codec", "--codec"]),
    ("recv --from 127.0.0.1:0 -o film.264", 1, &["film.264 exists; --force overwrites it"]),
    ("texture encode pattern:16x16 old.ktx2", 1, &["old.ktx2 exists; --force overwrites it"]),
    ("loopback text.265", 1, &["no start code at octet 0"]),
    ("loopback renamed.265", 2, &["looks like H.264", "7 (SPS), 8 (PPS)", "Try: --codec h264"]),
    ("loopback film", 2, &["looks like H.264", "7 (SPS), 8 (PPS)", "Try: --codec h264"]),
    ("loopback film.264 --codec h266", 2, &["looks like H.264", "Try: --codec h264"]),
    ("send film.264 --codec opus --to 127.0.0.1:9", 2, &["looks like H.264"]),
    ("loopback renamed.265 --codec h264 -q", 0, &[]),
    // Uncompressed video of unknown size.
    (
        "recv --from 127.0.0.1:0 -o x.y4m",
        2,
        &["do not say its size", "--sdp FILE", "--size WIDTHxHEIGHT --sampling NAME"],
    ),
    ("recv --from 127.0.0.1:0 -o x.y4m --size 4x2", 2, &["--sampling <NAME>"]),
    ("recv --from 127.0.0.1:0 -o x.y4m --size 4 --sampling RGB", 2, &["1920x1080"]),
    ("recv --from 127.0.0.1:0 -o x.y4m --size 4x2 --sampling RBG", 2, &["YCbCr-4:2:2"]),
    (
        "recv --from 127.0.0.1:0 -o x.y4m --size 4x2 --sampling RGB --depth 9",
        2,
        &["8, 10, 12 or 16"],
    ),
    ("send text.265 --codec uncompressed --to 127.0.0.1:9", 1, &["YUV4MPEG2", "their size"]),
    // Containers.
    ("send film.avi --to 127.0.0.1:9", 2, &["AVI", "ffmpeg -i film.avi -c copy film.264"]),
    ("loopback film.avi", 2, &["AVI", "ffmpeg -i film.avi -c copy film.264"]),
    ("loopback film.avi --codec h265", 2, &["AVI", "ffmpeg -i film.avi -c copy film.265"]),
    ("loopback avi.265", 2, &["AVI", "ffmpeg -i avi.265 -c copy avi.bare.265"]),
    ("loopback empty.mkv", 2, &["MKV", "ffmpeg -i empty.mkv -c copy"]),
    ("send cut.mp4 --to 127.0.0.1:9", 1, &["no index (moov)"]),
    ("send sound.mp4 --codec h264 --to 127.0.0.1:9", 2, &["has no H.264, but opus"]),
    ("texture encode cut.mp4 x.ktx2", 2, &["MP4", "ffmpeg -i cut.mp4 -pix_fmt yuv420p cut.y4m"]),
    (
        "texture serve cut.mp4 --listen 127.0.0.1:0",
        2,
        &["MP4", "ffmpeg -i cut.mp4 -pix_fmt yuv420p cut.y4m"],
    ),
    // Any octets can be sent as such.
    ("send cut.mp4 --codec raw --to RECEIVER -q", 0, &[]),
    ("send film.264 --audio film.264 --to 127.0.0.1:9", 2, &["needs an audio file", "H.264"]),
    ("send film.264 --audio speech.opus --to 127.0.0.1:65535", 2, &["two ports after"]),
    // Formats that only the graphics processor encodes.
    (
        "texture serve pattern:64x64 --listen 127.0.0.1:0 --format etc1",
        2,
        &["Try: --format etc1 --gpu"],
    ),
    (
        "texture serve pattern:64x64 --listen 127.0.0.1:0 --format etc2",
        2,
        &["Try: --format etc2 --gpu"],
    ),
    (
        "texture serve pattern:64x64 --listen 127.0.0.1:0 --format astc-4x4",
        2,
        &["Try: --format astc-4x4 --gpu"],
    ),
    ("texture encode pattern:64x64 x.ktx2 --frames 1 --format etc2", 2, &["--gpu"]),
    // Measurements.
    ("bench goodput --runs 0", 2, &["at least one run"]),
];

/// The first octets of an MP4 file, and of files of containers that are not read.
const MP4: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41\0\0\0\x08free";
const AVI: &[u8] = b"RIFF\0\0\0\0AVI LIST";

fn make_files(folder: &Path) {
    let path = |name: &str| folder.join(name);
    let avc = media(MEDIA[0]);
    for name in ["film.264", "renamed.265", "film"] {
        std::fs::copy(&avc, path(name)).unwrap();
    }
    std::fs::copy(media(OPUS), path("speech.opus")).unwrap();
    for (name, octets) in [
        ("film.avi", AVI),
        ("avi.265", AVI),
        ("empty.mkv", b""),
        ("cut.mp4", MP4),
        ("old.ktx2", b"precious"),
        ("text.265", b"this is not a bitstream"),
    ] {
        std::fs::write(path(name), octets).unwrap();
    }
    let mut sound = MediaWriter::create(&path("sound.mp4"), Codec::Opus).unwrap();
    sound.write(&[0xfc, 0xff, 0xfe], RtpTimestamp(0)).unwrap();
    sound.finish().unwrap();
}

#[test]
fn mistakes_are_answered_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    make_files(folder.path());
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let before = files();
    let (_receiver, receiver) = silent_receiver();
    let mut wrong = Vec::new();
    for (line, code, texts) in MISTAKES {
        let line = line.replace("RECEIVER", &receiver);
        let words: Vec<_> = line.split(' ').collect();
        let output = rushes(&words).current_dir(folder.path()).output().unwrap();
        let errors = text(&output.stderr);
        let is_told = texts.iter().all(|text| errors.contains(text));
        if output.status.code() != Some(*code) || !is_told {
            wrong
                .push(format!("rushes {line}: {}, not {code} {texts:?}:\n{errors}", output.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(files(), before, "a file was written");
}

#[test]
#[cfg(unix)]
fn all_addresses_of_ipv6_are_those_of_ipv4_too() {
    if UdpSocket::bind("[::1]:0").is_err() {
        crate::skipped::not_here("no IPv6");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (copy, port) = (folder.path().join(MEDIA[0]), free_port());
    let receiver = receiving(port, &["--from", &format!("[::]:{port}")], &copy);
    let to = format!("127.0.0.1:{port}");
    let sent = run(&["send", &media(MEDIA[0]), "--to", &to, "--fps", "1000", "-q"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = crate::strangers::ended(receiver);
    assert_eq!(json(&received)["complete"], true, "{}", text(&received.stderr));
    assert!(units(&copy) == units(media(MEDIA[0]).as_ref()));
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

#[test]
fn audio_beside_a_film_is_a_stream_of_its_own() {
    let (film, speech) = (media(MEDIA[0]), media(OPUS));
    let port = four_ports();
    // One of the two streams is received.
    let _receiver = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let to = ["--to", &format!("127.0.0.1:{port}"), "--flat-out", "--no-rtcp", "--json"];
    let sent = run(&[&["send", &film, "--audio", &speech][..], &to].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let report = json(&sent);
    let codecs: Vec<_> = (0..2).map(|it| report["streams"][it]["codec"].clone()).collect();
    assert_eq!(codecs, ["h264", "opus"]);
}
