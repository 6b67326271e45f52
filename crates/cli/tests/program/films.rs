//! Both streams of a description received into one file.

use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rushes::Codec;
use rushes::file::{MediaReader, ReadOptions, tracks};
use rushes_netsim::{Conditions, Loss, Path as NetPath, Relay, Straying};
use serde_json::Value;

use crate::attacker::{MEMORY_MAX, size};
use crate::ports::four_ports;
use crate::rig::{MEDIA, json, media, receiving, run, rushes, text};
use crate::strangers::{Source, ended};

const MS: Duration = Duration::from_millis(1);

const FILM: [(&str, Codec); 2] = [(MEDIA[0], Codec::H264), (MEDIA[3], Codec::Opus)];

/// A busy machine may delay packets more than the network does.
const PATIENT: [&str; 6] = ["--reorder-time", "2s", "--latency", "10s", "--idle-timeout", "20s"];

/// Returns the arguments that send the film to `port`.
fn sending(port: u16, more: &[&str]) -> Vec<String> {
    let (film, sound) = (media(FILM[0].0), media(FILM[1].0));
    let to = format!("127.0.0.1:{port}");
    let arguments = ["send", &film, "--audio", &sound, "--to", &to, "--mtu", "300", "--json"];
    [&arguments[..], more].concat().into_iter().map(str::to_owned).collect()
}

fn send(port: u16, more: &[&str]) -> Value {
    let arguments = sending(port, more);
    let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    json(&output)
}

/// Returns a receiver of the film at `port` that is listening.
fn receiver(port: u16, copy: &Path, options: &[&str], more: &[&str]) -> Child {
    let sdp = copy.with_extension("sdp");
    let sdp = sdp.to_str().unwrap();
    send(port, &[&["--sdp", sdp, "--dry-run", "--force"], options].concat());
    receiving(port, &[&["--sdp", sdp, "--force"], more].concat(), copy)
}

fn frames(path: &Path, codec: Codec) -> Vec<Vec<u8>> {
    let mut reader = MediaReader::open(path, codec, ReadOptions::default()).unwrap();
    std::iter::from_fn(|| reader.next_frame().unwrap().map(|it| it.data.clone())).collect()
}

/// Returns the slices of a frame, or the frame of a codec without any: containers store parameter
/// sets elsewhere.
fn content(codec: Codec, frame: &[u8]) -> Vec<Vec<u8>> {
    let Some(nal) = codec.nal else { return vec![frame.to_vec()] };
    let mut ranges = Vec::new();
    rushes::payload::nal::find_units(frame, rushes::Framing::AnnexB, &mut ranges).unwrap();
    let units = ranges.into_iter().map(|range| frame[range].to_vec());
    units.filter(|unit| nal.header(unit).is_some_and(|it| nal.is_vcl(it.nal_type))).collect()
}

/// Returns the content of a track's frames in the original and in the copy.
fn both(copy: &Path, (name, codec): (&str, Codec)) -> [Vec<Vec<Vec<u8>>>; 2] {
    [PathBuf::from(media(name)), copy.to_owned()]
        .map(|path| frames(&path, codec).iter().map(|frame| content(codec, frame)).collect())
}

fn assert_whole(output: &Output, copy: &Path) -> Value {
    let report = json(output);
    assert_eq!(output.status.code(), Some(0), "{report} {}", text(&output.stderr));
    assert_eq!(report["complete"], true, "{report}");
    for of in FILM {
        let [original, copied] = both(copy, of);
        assert!(original == copied, "{} differs: {report}", of.0);
    }
    report
}

#[test]
fn both_streams_of_a_description_are_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, more) in [("copy.mp4", &[][..]), ("copy.mkv", &["--no-rtcp"])] {
        let (port, copy) = (four_ports(), folder.path().join(name));
        let options = [more, &["--stats-interval", "1s"]].concat();
        let receiver = receiver(port, &copy, more, &options);
        let arguments = sending(port, &options);
        let sent = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let output = receiver.wait_with_output().unwrap();
        // Lines of statistics name their streams, at both ends, and the report comes last.
        for output in [&sent, &output] {
            assert!(output.status.success(), "{}", text(&output.stderr));
            let lines = text(&output.stdout);
            let lines: Vec<Value> =
                lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let (report, lines) = lines.split_last().unwrap();
            for codec in ["h264", "opus"] {
                assert!(lines.iter().any(|line| line["codec"] == codec), "{lines:?}");
            }
            assert_eq!(report["streams"].as_array().unwrap().len(), 2, "{report}");
        }
        for of in FILM {
            let [original, copied] = both(&copy, of);
            assert!(original == copied, "{} differs", of.0);
        }
        assert!(!folder.path().join(format!("{name}.part")).exists());
    }
}

#[test]
fn a_stream_is_alone_in_the_file_where_the_other_never_comes() {
    let folder = tempfile::tempdir().unwrap();
    let (port, copy) = (four_ports(), folder.path().join("copy.mp4"));
    let receiver = receiver(port, &copy, &[], &["--idle-timeout", "20s"]);
    let (film, to) = (media(FILM[0].0), format!("127.0.0.1:{port}"));
    let sent = run(&["send", &film, "--to", &to, "--mtu", "300", "-q"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let output = ended(receiver);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report["complete"], false, "{report}");
    let complete = [0, 1].map(|number: usize| report["streams"][number]["complete"] == true);
    assert_eq!(complete, [true, false], "{report}");
    assert!(text(&output.stderr).contains("the file has nothing of it"));
    let found: Vec<_> = tracks(&copy).unwrap().unwrap().iter().map(|it| it.codec).collect();
    assert_eq!(found, [Some(Codec::H264)]);
    let [original, copied] = both(&copy, FILM[0]);
    assert!(original == copied, "{report}");
}

#[test]
fn a_file_of_one_stream_names_the_media_that_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (port, copy) = (four_ports(), folder.path().join("copy.264"));
    let receiver = receiver(port, &copy, &[], &[]);
    send(port, &[]);
    let output = ended(receiver);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let log = text(&output.stderr);
    assert!(log.contains("its Opus media is left out") && log.contains("--codec opus"), "{log}");
    assert_eq!(json(&output)["complete"], true);
    let [original, copied] = both(&copy, FILM[0]);
    assert!(original == copied);
}

/// Sends the film through a network on all four ports.
fn through(
    extension: &str,
    conditions: Conditions,
    options: &[&str],
) -> (Output, PathBuf, tempfile::TempDir, u64) {
    let folder = tempfile::tempdir().unwrap();
    let (port, copy) = (four_ports(), folder.path().join(format!("copy.{extension}")));
    let receiver = receiver(port, &copy, options, &PATIENT);
    let relay = Relay::to(([127, 0, 0, 1], port).into()).ports(4);
    let relay = relay.conditions(conditions).seed(5).start().unwrap();
    send(relay.address().port(), options);
    let output = ended(receiver);
    let [there, _] = relay.finish();
    (output, copy, folder, there.lost)
}

#[test]
fn a_film_is_whole_after_a_network_that_loses_and_reorders_if_packets_are_sent_again() {
    let path = NetPath {
        delay: 30 * MS,
        jitter: 5 * MS,
        reordering: Straying::places(0.05, 1..=20),
        loss: Loss::Outage(30..34),
        ..NetPath::default()
    };
    for extension in ["mp4", "mkv"] {
        let rtx = ["--recovery", "rtx"];
        let (output, copy, _folder, lost) =
            through(extension, Conditions::both(path.clone()), &rtx);
        assert!(lost > 0, "the network loses packets");
        assert_whole(&output, &copy);
    }
}

#[test]
fn what_a_network_loses_of_a_film_is_stated_and_the_rest_can_be_played() {
    let path = NetPath { delay: 30 * MS, loss: Loss::Outage(30..45), ..NetPath::default() };
    for extension in ["mp4", "mkv"] {
        let (output, copy, _folder, _) = through(extension, Conditions::there(path.clone()), &[]);
        let report = json(&output);
        assert_eq!(output.status.code(), Some(1), "{report}");
        assert_eq!(report["complete"], false, "{report}");
        for (number, of) in FILM.into_iter().enumerate() {
            let stream = &report["streams"][number];
            assert_eq!((&stream["packets_lost"], &stream["complete"]), (&15.into(), &false.into()));
            let [original, copied] = both(&copy, of);
            assert!(!copied.is_empty() && copied.len() < original.len(), "{report}");
            let mut rest = original.iter();
            let is_sent = copied.iter().all(|frame| rest.any(|other| other == frame));
            assert!(is_sent, "{}: a frame that was not sent, or not in order", of.0);
        }
    }
}

#[test]
fn a_film_is_whole_beside_a_stranger_at_either_port() {
    let folder = tempfile::tempdir().unwrap();
    for (track, extension) in [(0_u16, "mp4"), (1, "mkv")] {
        let (port, copy) = (four_ports(), folder.path().join(format!("copy.{extension}")));
        let receiver = receiver(port, &copy, &[], &PATIENT);
        let mut stranger = Source::new(0xbad, port + 2 * track);
        let codec = FILM[usize::from(track)].1;
        stranger.payload_type = codec.payload_type().value();
        // A slice of H.264, and a frame of 20 ms of Opus.
        let frame = if track == 0 { [0x41, 0x9a, 0xff] } else { [0xf8, 0xff, 0xfe] };
        // Before the film: more than a burst, less than the film.
        for _ in 0..100 {
            stranger.frame(&frame);
        }
        let over = AtomicBool::new(false);
        let id = receiver.id();
        let (output, memory) = std::thread::scope(|scope| {
            let flood = scope.spawn(|| {
                let mut memory = 0;
                while !over.load(Ordering::Relaxed) {
                    stranger.frame(&frame);
                    memory = memory.max(size(id).0);
                    std::thread::sleep(5 * MS);
                }
                memory
            });
            let arguments = sending(port, &[]);
            let mut sender = rushes(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
            let sent = ended(sender.spawn().unwrap());
            let output = sent.status.success().then(|| ended(receiver));
            over.store(true, Ordering::Relaxed);
            (output.unwrap(), flood.join().unwrap())
        });
        let report = assert_whole(&output, &copy);
        let others = &report["streams"][usize::from(track)]["other_sources"]["packets"];
        assert!(others.as_u64().unwrap() > 100, "{report}");
        assert!(memory > 0 && memory < MEMORY_MAX, "{memory} octets");
    }
}
