//! The files that are streamed, which are from this project or made by FFmpeg, and their
//! comparison.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rushes::file::{MediaReader, ReadOptions, codec_of};
use rushes::payload::nal;
use rushes::{Codec, Framing};

/// A codec, with its names and parameters in the tests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Kind {
    pub(crate) codec: Codec,
    pub(crate) extension: &'static str,
    pub(crate) payload_type: u8,
    /// The encoding name in SDP and in GStreamer's caps.
    pub(crate) encoding: &'static str,
}

pub(crate) const H264: Kind =
    Kind { codec: Codec::H264, extension: "264", payload_type: 96, encoding: "H264" };
pub(crate) const H265: Kind =
    Kind { codec: Codec::H265, extension: "265", payload_type: 97, encoding: "H265" };
pub(crate) const VP8: Kind =
    Kind { codec: Codec::Vp8, extension: "ivf", payload_type: 104, encoding: "VP8" };
pub(crate) const VP9: Kind =
    Kind { codec: Codec::Vp9, extension: "ivf", payload_type: 105, encoding: "VP9" };
pub(crate) const OPUS: Kind =
    Kind { codec: Codec::Opus, extension: "opus", payload_type: 111, encoding: "OPUS" };

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        self.codec.name
    }

    /// Returns the file of this codec that is part of the project.
    pub(crate) fn own(self) -> PathBuf {
        let own = match self.codec.name {
            "h264" => "avc_cif_60f_baseline.264",
            "h265" => "hevc_192x128_90f_tiny_nals.265",
            "vp8" => "vp8_320x180_60f_libvpx.ivf",
            "vp9" => "vp9_320x180_60f_libvpx.ivf",
            _ => "opus_speech_mono_mixed_durations.opus",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(own)
    }

    /// Returns the files of this codec: one of the project, and others made in `folder`.
    pub(crate) fn files(self, folder: &Path) -> Vec<PathBuf> {
        let made = folder.join(format!("made.{}", self.extension));
        self.make(&made);
        vec![self.own(), made]
    }

    /// Makes a file that needs fragments and has B-pictures or stereo sound.
    fn make(self, file: &Path) {
        let size = "testsrc2=size=640x360:rate=30:duration=1.5";
        let video = ["-f", "lavfi", "-i", size, "-pix_fmt", "yuv420p"];
        let sound = ["-f", "lavfi", "-i", "sine=frequency=440:duration=1.5", "-ac", "2"];
        let encoder: &[&str] = match self.codec.name {
            "h264" => &["-c:v", "libx264", "-x264-params", "slices=3:bframes=2:keyint=20:aud=1"],
            "h265" => {
                &["-c:v", "libx265", "-x265-params", "slices=2:bframes=3:keyint=20:log-level=0"]
            }
            "vp8" => &["-c:v", "libvpx", "-b:v", "4M", "-g", "20", "-deadline", "realtime"],
            "vp9" => &["-c:v", "libvpx-vp9", "-b:v", "4M", "-g", "20", "-deadline", "realtime"],
            _ => &["-c:a", "libopus", "-b:a", "96k"],
        };
        let input: &[&str] = if self == OPUS { &sound } else { &video };
        let status = Command::new("ffmpeg")
            .args(["-v", "error", "-nostdin"])
            .args(input)
            .args(encoder)
            .arg(file)
            .status()
            .unwrap();
        assert!(status.success(), "ffmpeg cannot make {}", file.display());
    }
}

/// The NAL units (or packets) of a file.
pub(crate) fn units(file: &Path, codec: Codec) -> Vec<Vec<u8>> {
    let mut reader = MediaReader::open(file, codec, ReadOptions::default())
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut units = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        if codec.has_nal_units() {
            units.extend(nal_units(&frame.data).map(<[u8]>::to_vec));
        } else {
            units.push(frame.data.clone());
        }
    }
    units
}

/// Returns the NAL units of a frame.
pub(crate) fn nal_units(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut units = Vec::new();
    nal::find_units(frame, Framing::AnnexB, &mut units).unwrap();
    units.into_iter().map(|unit| &frame[unit])
}

/// Fails unless both files hold the same NAL units (or packets).
pub(crate) fn assert_same(sent: &Path, received: &Path) {
    compare(sent, received, |_| true);
}

/// Like [`assert_same`], except for access unit delimiters, which `h264parse` adds.
pub(crate) fn assert_same_but_delimiters(sent: &Path, received: &Path) {
    compare(sent, received, |unit| unit[0] & 0x1f != 9);
}

/// Like [`assert_same`], except for leading parameter sets, which GStreamer copies from a
/// description.
pub(crate) fn assert_same_behind_parameter_sets(sent: &Path, received: &Path) {
    let codec = codec_of(sent).unwrap();
    let (sent, received) = (units(sent, codec), units(received, codec));
    let more = received.len().saturating_sub(sent.len());
    assert!(more <= 3, "{} sent and {} received", sent.len(), received.len());
    assert!(received[more..] == sent[..], "other units behind {more} parameter sets");
    assert!(received[..more].iter().all(|set| sent.contains(set)), "other parameter sets");
}

fn compare(sent: &Path, received: &Path, counts: fn(&Vec<u8>) -> bool) {
    let codec = codec_of(sent).unwrap();
    assert!(
        fs::metadata(received).is_ok_and(|file| file.len() > 0),
        "{}: empty",
        received.display()
    );
    let units = |file| units(file, codec).into_iter().filter(counts).collect::<Vec<_>>();
    let (sent, received) = (units(sent), units(received));
    let same = sent.iter().zip(&received).take_while(|(a, b)| a == b).count();
    assert!(
        sent == received,
        "{same} units are the same, of {} sent and {} received",
        sent.len(),
        received.len()
    );
}
