//! Rate control: a file that is thinned for a slow path, and an encoder that gets its target.

use std::io::Write;
use std::path::Path as FilePath;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rushes::file::{MediaReader, ReadOptions, codec_of};
use rushes_netsim::{Bottleneck, Conditions, Path, Relay};

use crate::rig::{MEDIA, free_port, json, media, receiving, run, rushes, text};
use crate::skipped;

const KBIT: u64 = 1000;

/// A path of this rate whose queue holds 300 ms.
fn path(rate: u64) -> Conditions {
    let queue = (rate / 8 * 3 / 10) as usize;
    let bottleneck = Some(Bottleneck { rate, queue, ecn_threshold: None });
    Conditions::there(Path { bottleneck, delay: Duration::from_millis(5), ..Path::default() })
}

/// Encodes six seconds of noise at about 2 Mbit/s, with pictures that no other needs and a key frame
/// each second; `false` if FFmpeg cannot.
fn encode(encoder: &str, file: &FilePath) -> bool {
    let source = "testsrc2=size=320x240:rate=30:duration=6,noise=alls=20:allf=t";
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p"]);
    command.args(["-c:v", encoder, "-preset", "ultrafast", "-b:v", "2M", "-g", "30", "-bf", "3"]);
    // No picture is so large that it fills the path for long.
    command.args(["-maxrate", "2M", "-bufsize", "300K"]);
    command.arg(file).output().is_ok_and(|output| output.status.success())
}

/// Returns the number of pictures that FFmpeg decodes; fails if it reports an error.
fn decoded(file: &FilePath) -> usize {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-xerror", "-err_detect", "explode", "-i"]).arg(file);
    let output =
        command.args(["-f", "framemd5", "-fps_mode", "passthrough", "-"]).output().unwrap();
    let log = text(&output.stderr);
    assert!(output.status.success() && log.is_empty(), "{log}");
    text(&output.stdout).lines().filter(|line| !line.starts_with('#')).count()
}

#[test]
fn a_file_above_the_rate_of_the_path_is_thinned_and_every_picture_that_arrives_decodes() {
    if !skipped::have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (encoder, name) in [("libx264", "film.264"), ("libx265", "film.265")] {
        let (film, copy) = (folder.path().join(name), folder.path().join(format!("copy-{name}")));
        if !encode(encoder, &film) {
            skipped::not_here(format!("FFmpeg has no encoder {encoder}"));
            continue;
        }
        let all = decoded(&film);
        let port = free_port();
        let from = format!("127.0.0.1:{port}");
        let receiver = receiving(port, &["--from", &from, "--report-arrivals"], &copy);
        let relay = Relay::to(from.parse().unwrap()).with_control().conditions(path(1200 * KBIT));
        let relay = relay.start().unwrap();
        let (to, file) = (relay.address().to_string(), film.to_str().unwrap());
        let sent = run(&["send", file, "--to", &to, "--max-rate", "auto", "--json"]);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let received = receiver.wait_with_output().unwrap();
        let [passed, _] = relay.finish();
        let (sent, received) = (json(&sent), json(&received));
        let left_out = sent["rate"]["frames_left_out"].as_u64().unwrap();
        let frames = sent["sent"]["frames"].as_u64().unwrap();
        println!("{name}: {left_out} of {all} left out, {passed:?}, {}", sent["rate"]);
        assert_eq!(frames + left_out, all as u64, "{sent}");
        assert!(left_out > 0 && frames > 12, "{sent}");
        assert!(passed.overflowed * 20 < passed.sent, "{passed:?}");
        // Frames that the path has lost are missing at the receiver, too.
        if passed.overflowed == 0 {
            assert_eq!(received["received"]["frames"], frames, "{received}");
            assert_eq!(decoded(&copy) as u64, frames);
        }
    }
}

#[test]
fn a_file_below_the_rate_of_the_path_arrives_whole() {
    for name in &MEDIA[..3] {
        let folder = tempfile::tempdir().unwrap();
        let (copy, port) = (folder.path().join(name), free_port());
        let from = format!("127.0.0.1:{port}");
        let receiver = receiving(port, &["--from", &from, "--report-arrivals"], &copy);
        let rates = ["--max-rate", "100M", "--start-rate", "50M", "--min-rate", "50M"];
        let file = media(name);
        let arguments = ["send", &file, "--to", &from, "--json", "--ecn", "classic"];
        let sent = run(&[&arguments[..], &rates].concat());
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let received = receiver.wait_with_output().unwrap();
        assert_eq!(json(&sent)["rate"]["frames_left_out"], 0);
        assert!(json(&sent)["rate"]["round_trip_ms"].is_f64(), "{}", text(&sent.stdout));
        assert!(received.status.success(), "{}", text(&received.stdout));
        assert!(std::fs::read(&copy).unwrap().len() > 1000);
    }
}

#[test]
fn an_encoder_gets_each_target_as_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, rates) = (folder.path().join(MEDIA[0]), folder.path().join("rates"));
    let port = free_port();
    let from = format!("127.0.0.1:{port}");
    let receiver = receiving(port, &["--from", &from, "--report-arrivals"], &copy);
    let mut sender = rushes(&["send", "-", "--codec", "h264", "--to", &from, "--json"]);
    sender.args(["--max-rate", "400K", "--start-rate", "100K", "--target-rate-to"]).arg(&rates);
    let mut sender = sender.stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = sender.stdin.take().unwrap();
    let options = ReadOptions::default();
    let mut reader =
        MediaReader::open(media(MEDIA[0]).as_ref(), codec_of(MEDIA[0].as_ref()).unwrap(), options)
            .unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame.data.clone());
    }
    let targets = || -> Vec<u64> {
        let lines = std::fs::read_to_string(&rates).unwrap_or_default();
        lines.lines().map(|line| line.parse().unwrap()).collect()
    };
    let begin = Instant::now();
    for frame in frames.iter().cycle() {
        if targets().last() == Some(&400_000) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", targets());
        pipe.write_all(frame).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(pipe);
    let sent = sender.wait_with_output().unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    receiver.wait_with_output().unwrap();
    assert!(targets().len() > 1 && targets()[0] == 100_000, "{:?}", targets());
}

#[test]
fn the_script_of_the_guide_encodes_at_the_target() {
    if !skipped::have(&["ffmpeg", "python3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (copy, port) = (folder.path().join("copy.264"), free_port());
    let from = format!("127.0.0.1:{port}");
    let receiver = receiving(port, &["--from", &from, "--report-arrivals"], &copy);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/follow_rate.py");
    let program = assert_cmd::cargo::cargo_bin!("rushes");
    let pipeline = format!(
        "mkfifo rates; \
         ffmpeg -v error -re -f lavfi -i testsrc2=size=320x240:rate=30:duration=6 \
             -pix_fmt yuv420p -f rawvideo - | \
         python3 '{script}' rates 320x240 30 | \
         '{}' send - --codec h264 --to {from} --max-rate 400K --target-rate-to rates --json",
        program.display()
    );
    let mut command = Command::new("sh");
    let output = command.args(["-c", &pipeline]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(receiver.wait_with_output().unwrap().status.success());
    let sent = json(&output);
    assert_eq!(sent["sent"]["frames"], 180, "{sent}");
    // The script starts at 1 Mbit/s, and the stream at its maximum.
    assert!(sent["sent"]["frame_octets"].as_u64().unwrap() < 6 * 600_000 / 8, "{sent}");
    assert_eq!(decoded(&copy), 180);
}

#[test]
fn a_receiver_that_does_not_report_is_named_with_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, port) = (folder.path().join(MEDIA[0]), free_port());
    let from = format!("127.0.0.1:{port}");
    let receiver = receiving(port, &["--from", &from], &copy);
    let rates = ["--max-rate", "50M", "--start-rate", "50M", "--min-rate", "50M"];
    let file = media(MEDIA[0]);
    let sent = run(&[&["send", &file, "--to", &from, "--loop", "2"], &rates[..]].concat());
    let log = text(&sent.stderr);
    assert!(sent.status.success() && log.contains("recv --report-arrivals"), "{log}");
    assert_eq!(log.matches("recv --report-arrivals").count(), 1, "{log}");
    receiver.wait_with_output().unwrap();
}

#[test]
fn rates_that_cannot_be_kept_are_refused_with_what_to_type_instead() {
    let (film, speech) = (media(MEDIA[0]), media(MEDIA[3]));
    let refused = |file: &str, more: &[&str], expected: &str| {
        let output = run(&[&["send", file, "--to", "127.0.0.1:9"], more].concat());
        let log = text(&output.stderr);
        assert!(output.status.code() == Some(2) && log.contains(expected), "{log}");
    };
    refused(&speech, &["--max-rate", "auto"], "leaves out pictures");
    refused(&film, &["--max-rate", "1M", "--start-rate", "2M"], "other rates");
    refused(&film, &["--max-rate", "fast"], "examples: 500K, 8M");
    refused(&film, &["--max-rate", "auto", "--flat-out"], "cannot be used with");
    refused(&film, &["--ecn", "l4s"], "--max-rate");
    refused(&film, &["--max-rate", "auto", "--target-rate-to", "-", "--json"], "standard output");
    let nowhere = ["--max-rate", "auto", "--target-rate-to", "/nowhere/rates"];
    let output = run(&[&["send", &film, "--to", "127.0.0.1:9"], &nowhere[..]].concat());
    assert!(text(&output.stderr).contains("/nowhere/rates"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn a_descriptor_that_is_not_open_is_refused_and_not_that_of_the_film() {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join(MEDIA[0]);
    std::fs::copy(media(MEDIA[0]), &film).unwrap();
    let command = format!(
        "exec '{}' send '{}' --to 127.0.0.1:9 --max-rate 1M --target-rate-to fd:3 3>&-",
        assert_cmd::cargo::cargo_bin!("rushes").display(),
        film.display()
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    let log = text(&output.stderr);
    assert!(log.contains("descriptor 3 is not open"), "{log}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(&film).unwrap(), std::fs::read(media(MEDIA[0])).unwrap());
}
