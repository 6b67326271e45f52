//! The files of a scene, each made by its name.

use std::fs;
use std::path::Path;
use std::process::Command;

use rushes::file::{MediaReader, MediaWriter, ReadOptions, Sampling, codec_of};
use rushes::{ClockRate, Codec, RtpTimestamp};

use super::wire::{Capture, Format, Sending, media, rtp_packets, udp};
use crate::program;

/// Frames of each video file.
const FRAMES: usize = 15;

const AVC: &str = "avc_cif_60f_baseline.264";
const HEVC: &str = "hevc_192x128_90f_tiny_nals.265";
const SPEECH: &str = "opus_speech_mono_mixed_durations.opus";

/// Makes the file at `path`.
pub(super) fn make(path: &Path) {
    let folder = path.parent().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let run = |program: &str, arguments: &str| {
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).arg(name).current_dir(folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let rushes = program::program();
    let rushes = rushes.to_str().unwrap();
    match name {
        "film.264" | "made.264" => first_frames(AVC, path),
        "film.265" => first_frames(HEVC, path),
        "speech.opus" | "film.opus" => fs::copy(media(SPEECH), path).map(drop).unwrap(),
        "sound.wav" => samples(path, Codec::L16, (48_000, 2)),
        "studio.wav" => samples(path, Codec::L24, (96_000, 8)),
        "film.mp4" => {
            make(&folder.join("made.264"));
            let speech = media(SPEECH);
            let inputs = format!("-framerate 30 -i made.264 -i {}", speech.display());
            run("ffmpeg", &format!("-v error {inputs} -c copy -shortest"));
        }
        "film.y4m" | "film.ktx2" => {
            let verb = if name == "film.y4m" { "decode" } else { "encode" };
            run(rushes, &format!("texture {verb} pattern:64x64@30 --frames 60 -q"));
        }
        "call.pcapng" => fs::write(path, capture()).unwrap(),
        name => panic!("no rule makes {name}"),
    }
}

/// Writes half a second of samples.
fn samples(path: &Path, codec: Codec, (hertz, channels): (u32, u8)) {
    let sampling = Sampling { rate: ClockRate::new(hertz).unwrap(), channels };
    let mut writer = MediaWriter::create(path, codec).unwrap().with_sampling(sampling);
    let len = hertz as usize / 2 * usize::from(channels) * codec.sample.unwrap().len();
    let octets: Vec<u8> = (0..len).map(|at| (at / 7) as u8).collect();
    writer.write(&octets, RtpTimestamp(0)).unwrap();
    writer.finish().unwrap();
}

/// Writes the beginning of a file.
fn first_frames(name: &str, path: &Path) {
    let codec = codec_of(path).unwrap();
    let mut reader = MediaReader::open(&media(name), codec, ReadOptions::default()).unwrap();
    let mut writer = MediaWriter::create(path, codec).unwrap();
    for _ in 0..FRAMES {
        let frame = reader.next_frame().unwrap().unwrap();
        writer.write(&frame.data, RtpTimestamp(0)).unwrap();
    }
    writer.finish().unwrap();
}

/// Returns a capture with one stream.
fn capture() -> Vec<u8> {
    let [from, to] = ["192.0.2.1:4000", "192.0.2.2:5004"].map(|it| it.parse().unwrap());
    let sending = Sending { payload_type: 97, ssrc: 0x1f2e_3d4c, packet_len: 1200 };
    let mut capture = Capture::new(Format::Ng(9, 0), false, 1);
    for (time, packet) in rtp_packets(&media(HEVC), sending) {
        capture.packet(time, &udp(from, to, &packet));
    }
    capture.octets
}
