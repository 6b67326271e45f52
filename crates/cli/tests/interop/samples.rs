//! Uncompressed audio: FFmpeg and GStreamer at the other end, both ways, bit for bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rushes::file::{MediaReader, MediaWriter, ReadOptions, Sampling};
use rushes::{ClockRate, Codec, RtpTimestamp};

use crate::ffmpeg::{GOODBYE, ffmpeg_receives};
use crate::gstreamer::launch;
use crate::rig::{Process, describe, have, have_elements, ports, receive, received, send};

/// Samples of a codec, and their names in other programs.
#[derive(Clone, Copy)]
struct Sound {
    codec: Codec,
    hertz: u32,
    channels: u8,
    payload_type: u8,
    /// FFmpeg's codec and its format of bare samples.
    ffmpeg: [&'static str; 2],
    /// The elements of GStreamer from the output of `wavparse` to the payloader, and the depayloader.
    gstreamer: [&'static str; 2],
}

const STEREO: Sound = Sound {
    codec: Codec::L16,
    hertz: 48_000,
    channels: 2,
    payload_type: 102,
    ffmpeg: ["pcm_s16be", "s16be"],
    gstreamer: ["audioconvert ! audio/x-raw,format=S16BE ! rtpL16pay", "rtpL16depay"],
};

/// The static payload type of samples of compact discs.
const DISC: Sound = Sound { hertz: 44_100, payload_type: 10, ..STEREO };

const STUDIO: Sound = Sound {
    codec: Codec::L24,
    hertz: 96_000,
    payload_type: 103,
    ffmpeg: ["pcm_s24be", "s24be"],
    gstreamer: ["audioconvert ! audio/x-raw,format=S24BE ! rtpL24pay", "rtpL24depay"],
    ..STEREO
};

const EIGHT: Sound = Sound { hertz: 48_000, channels: 8, ..STUDIO };

const MU_LAW: Sound = Sound {
    codec: Codec::Pcmu,
    hertz: 8000,
    channels: 1,
    payload_type: 0,
    // Its decoder and encoder make one of the two zeros of the law the other.
    ffmpeg: ["copy", "mulaw"],
    gstreamer: ["rtppcmupay", "rtppcmudepay"],
};

const A_LAW: Sound = Sound {
    codec: Codec::Pcma,
    payload_type: 8,
    ffmpeg: ["copy", "alaw"],
    gstreamer: ["rtppcmapay", "rtppcmadepay"],
    ..MU_LAW
};

impl Sound {
    /// Writes a second of samples of every value to a WAV file; returns it and the samples.
    fn make(self, folder: &Path) -> (PathBuf, Vec<u8>) {
        let file = folder.join("sound.wav");
        let sampling =
            Sampling { rate: ClockRate::new(self.hertz).unwrap(), channels: self.channels };
        let mut writer = MediaWriter::create(&file, self.codec).unwrap().with_sampling(sampling);
        let group_len = self.codec.sample.unwrap().len() * usize::from(self.channels);
        let len = self.hertz as usize * group_len;
        let samples: Vec<u8> = (0..len).map(|at| (at * 167 + at / 251) as u8).collect();
        writer.write(&samples, RtpTimestamp(0)).unwrap();
        writer.finish().unwrap();
        (file, samples)
    }

    /// Returns the options of the program for this sound.
    fn options(self) -> Vec<String> {
        let number = |name: &str, value: u32| [name.to_owned(), value.to_string()];
        let mut options = vec!["--codec".to_owned(), self.codec.name.to_owned()];
        options.extend(number("--clock-rate", self.hertz));
        options.extend(number("--channels", self.channels.into()));
        options.extend(number("--payload-type", self.payload_type.into()));
        options
    }

    fn caps(self) -> String {
        let Self { codec, hertz, channels, payload_type, .. } = self;
        format!(
            "application/x-rtp,media=(string)audio,clock-rate=(int){hertz},\
             encoding-name=(string){},channels=(int){channels},payload=(int){payload_type}",
            codec.title
        )
    }
}

/// Returns all samples of a WAV file.
fn samples_of(file: &Path, codec: Codec) -> Vec<u8> {
    let mut reader = MediaReader::open(file, codec, ReadOptions::default()).unwrap();
    let mut samples = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        samples.extend_from_slice(&frame.data);
    }
    samples
}

/// Fails unless both are the same.
fn check(received: &[u8], sent: &[u8]) {
    let same = received.iter().zip(sent).take_while(|(a, b)| a == b).count();
    let lens = (received.len(), sent.len());
    assert!(received == sent, "{same} octets are the same; received and sent: {lens:?}");
}

fn to_ffmpeg(sound: Sound, more: &[&str]) {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, samples) = sound.make(folder.path());
    let port = ports();
    let payload_type = sound.payload_type.to_string();
    let more = [&["--payload-type", &payload_type], more].concat();
    let sdp = describe(&file, port, folder.path(), &more);
    let copy = folder.path().join("copy.raw");
    let [codec, format] = sound.ffmpeg;
    let output = ["-c:a", codec, "-f", format, "-y", copy.to_str().unwrap()];
    let process = ffmpeg_receives(&sdp, port, &output);
    send(&file, port, &more);
    process.stop_after(GOODBYE);
    check(&fs::read(copy).unwrap(), &samples);
}

#[test]
fn ffmpeg_receives_l16() {
    to_ffmpeg(STEREO, &[]);
    to_ffmpeg(DISC, &["--packet-time", "5ms"]);
}

#[test]
fn ffmpeg_receives_l24() {
    to_ffmpeg(STUDIO, &[]);
    to_ffmpeg(EIGHT, &["--packet-time", "125us"]);
}

#[test]
fn ffmpeg_receives_pcmu_and_pcma() {
    to_ffmpeg(MU_LAW, &[]);
    to_ffmpeg(A_LAW, &["--packet-time", "10ms"]);
}

/// Receives what `send` sends to a port, and compares it.
fn from(sound: Sound, send: impl FnOnce(&Path, u16)) {
    let folder = tempfile::tempdir().unwrap();
    let (file, samples) = sound.make(folder.path());
    let (port, copy) = (ports(), folder.path().join("copy.wav"));
    let options = sound.options();
    let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
    arguments.extend(["--idle-timeout", "1s"]);
    let process = receive(&copy, port, &arguments);
    send(&file, port);
    let report = received(process);
    check(&samples_of(&copy, sound.codec), &samples);
    assert_eq!(report["complete"], true, "{report}");
    assert_eq!(report["silence_ms"], 0.0, "{report}");
}

fn from_ffmpeg(sound: Sound) {
    if !have(&["ffmpeg"]) {
        return;
    }
    from(sound, |file, port| {
        let [codec, _] = sound.ffmpeg;
        let payload_type = sound.payload_type.to_string();
        let url = format!("rtp://127.0.0.1:{port}");
        let arguments = [
            "-nostdin",
            "-v",
            "error",
            "-re",
            "-i",
            file.to_str().unwrap(),
            "-c:a",
            codec,
            "-f",
            "rtp",
            "-payload_type",
            &payload_type,
            "-rtpflags",
            "send_bye",
            &url,
        ];
        Process::start("ffmpeg", &arguments).finish();
    });
}

#[test]
fn ffmpeg_sends_l16() {
    from_ffmpeg(STEREO);
    from_ffmpeg(DISC);
}

#[test]
fn ffmpeg_sends_l24() {
    from_ffmpeg(STUDIO);
    from_ffmpeg(EIGHT);
}

#[test]
fn ffmpeg_sends_pcmu_and_pcma() {
    from_ffmpeg(MU_LAW);
    from_ffmpeg(A_LAW);
}

fn has_gstreamer(sound: Sound) -> bool {
    let [payloader, depayloader] = sound.gstreamer;
    let payloader = payloader.rsplit(' ').next().unwrap();
    have(&["gst-launch-1.0"]) && have_elements(&["wavparse", payloader, depayloader])
}

fn to_gstreamer(sound: Sound, more: &[&str]) {
    if !has_gstreamer(sound) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, samples) = sound.make(folder.path());
    let (port, copy) = (ports(), folder.path().join("copy.raw"));
    let [_, depayloader] = sound.gstreamer;
    let process = launch(
        &format!(
            "udpsrc address=127.0.0.1 port={port} buffer-size=8000000 caps={} ! {depayloader} ! \
             filesink buffer-mode=unbuffered location={}",
            sound.caps(),
            copy.display()
        ),
        &[],
    )
    .listening(port);
    let payload_type = sound.payload_type.to_string();
    send(&file, port, &[&["--payload-type", &payload_type], more].concat());
    process.having_read(&[port]).stop_after(Duration::from_millis(500));
    check(&fs::read(copy).unwrap(), &samples);
}

#[test]
fn gstreamer_receives_samples() {
    for sound in [STEREO, DISC, STUDIO, MU_LAW, A_LAW] {
        to_gstreamer(sound, &[]);
    }
}

#[test]
fn gstreamer_sends_samples() {
    for sound in [STEREO, DISC, STUDIO, MU_LAW, A_LAW] {
        if !has_gstreamer(sound) {
            return;
        }
        from(sound, |file, port| {
            let [payloader, _] = sound.gstreamer;
            let pipeline = format!(
                "filesrc location={} ! wavparse ! {payloader} pt={} ! \
                 udpsink host=127.0.0.1 port={port}",
                file.display(),
                sound.payload_type
            );
            launch(&pipeline, &[]).finish();
        });
    }
}
