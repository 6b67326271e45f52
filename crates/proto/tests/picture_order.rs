//! Presentation positions of files made by FFmpeg, compared with those in its containers.
//!
//! With `RUSHES_INTEROP=require` (as `.ci/run` sets it) a missing FFmpeg is a failure; otherwise
//! the tests are skipped with a message.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::process::Command;

use rushes_proto::FrameRate;
use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{
    AccessUnitReader, NalCodec, PictureClock, PictureLookAhead, PictureOrder, PictureTime,
};

/// An encoding.
#[derive(Clone, Copy, Debug)]
struct Encoding {
    /// Its name in messages of the tests.
    name: &'static str,
    codec: NalCodec,
    rate: &'static str,
    /// Arguments of FFmpeg's encoder.
    arguments: &'static str,
    /// Whether the stream declares that it reorders pictures.
    reorders: bool,
    /// Whether a clock that sees no later picture finds the same positions.
    is_exact_live: bool,
}

const fn h264(name: &'static str, rate: &'static str, arguments: &'static str) -> Encoding {
    let codec = NalCodec::H264;
    Encoding { name, codec, rate, arguments, reorders: true, is_exact_live: true }
}

const fn h265(name: &'static str, rate: &'static str, arguments: &'static str) -> Encoding {
    let codec = NalCodec::H265;
    Encoding { name, codec, rate, arguments, reorders: true, is_exact_live: true }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn is_installed() -> bool {
    skipped::have(&["ffmpeg", "ffprobe"])
}

/// Returns the path of an MP4 file.
fn encoded(encoding: &Encoding) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.mp4", encoding.name));
    let source = format!("testsrc2=size=128x96:rate={}", encoding.rate);
    let encoder = match encoding.codec {
        NalCodec::H264 => "libx264",
        NalCodec::H265 => "libx265",
        NalCodec::H266 => "libvvenc",
    };
    let mut arguments = vec!["-v", "error", "-y", "-f", "lavfi", "-i", &source];
    arguments.extend(["-frames:v", "140", "-pix_fmt", "yuv420p", "-c:v", encoder]);
    arguments.extend(encoding.arguments.split_whitespace());
    arguments.push(path.to_str().unwrap());
    run("ffmpeg", &arguments);
    path
}

/// Returns the access units of an MP4 file.
fn access_units(path: &Path, codec: NalCodec) -> Vec<Vec<u8>> {
    let [name, extension] = match codec {
        NalCodec::H264 => ["h264_mp4toannexb", "264"],
        NalCodec::H265 => ["hevc_mp4toannexb", "265"],
        NalCodec::H266 => ["vvc_mp4toannexb", "266"],
    };
    let bitstream = path.with_extension(extension);
    let path = path.to_str().unwrap();
    let input = ["-v", "error", "-y", "-i", path, "-c", "copy", "-bsf:v", name];
    run("ffmpeg", &[&input[..], &[bitstream.to_str().unwrap()]].concat());
    read(codec, &std::fs::read(bitstream).unwrap())
}

fn read(codec: NalCodec, octets: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = AccessUnitReader::new(codec, Framing::AnnexB);
    reader.feed(octets);
    reader.finish();
    std::iter::from_fn(|| reader.next_access_unit().unwrap().map(<[u8]>::to_vec)).collect()
}

fn fraction(text: &str) -> FrameRate {
    let (numerator, denominator) = text.trim().split_once('/').unwrap_or((text, "1"));
    FrameRate::new(numerator.parse().unwrap(), denominator.parse().unwrap()).unwrap()
}

fn live(codec: NalCodec, access_units: &[Vec<u8>]) -> Vec<PictureTime> {
    let mut clock = PictureClock::new(codec);
    access_units.iter().map(|access_unit| clock.push(access_unit, Framing::AnnexB)).collect()
}

fn with_look_ahead(codec: NalCodec, access_units: &[Vec<u8>]) -> Vec<PictureTime> {
    let mut clock = PictureLookAhead::new(codec, 16);
    let mut times = Vec::new();
    for access_unit in access_units {
        clock.push(access_unit, Framing::AnnexB);
        times.extend(std::iter::from_fn(|| clock.next_time()));
    }
    clock.finish();
    times.extend(std::iter::from_fn(|| clock.next_time()));
    times
}

/// Returns the positions relative to the first picture, in 1/120 of a frame interval.
fn distances(times: &[PictureTime]) -> Vec<i64> {
    times.iter().map(|time| time.position.0 - times[0].position.0).collect()
}

/// Returns the rank of each value.
fn ranks(values: &[i64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    values.iter().map(|value| sorted.binary_search(value).unwrap()).collect()
}

/// Returns the rate that the headers of a file declare, as FFmpeg reads it; for H.266, which FFmpeg 5
/// does not read, the rate of the encoder.
fn declared_rate(encoding: &Encoding, path: &Path) -> FrameRate {
    if encoding.codec == NalCodec::H266 {
        return fraction(encoding.rate);
    }
    let input = ["-v", "error", "-select_streams", "v:0", "-show_entries", "stream=r_frame_rate"];
    let output = ["-of", "default=nk=1:nw=1", path.to_str().unwrap()];
    let rate = fraction(&run("ffprobe", &[&input[..], &output].concat()));
    assert_eq!(rate, fraction(encoding.rate));
    rate
}

/// Returns a file's presentation times, relative to the first, in 1/120 of a frame interval.
fn container_positions(path: &Path, rate: FrameRate) -> Vec<i64> {
    let input = ["-v", "error", "-i", path.to_str().unwrap()];
    let output = ["-map", "0:v", "-c", "copy", "-copyts", "-f", "framecrc", "-"];
    let text = run("ffmpeg", &[&input[..], &output].concat());
    let scale = text.lines().find_map(|line| line.strip_prefix("#tb 0: ")).unwrap();
    let scale = fraction(scale);
    // Stream, decoding time, presentation time and others, separated by commas.
    let packets = text.lines().filter(|line| !line.starts_with('#'));
    let stamp = |packet: &str| packet.split(',').nth(2).unwrap().trim().parse().unwrap();
    let stamps: Vec<i64> = packets.map(stamp).collect();
    let position = |stamp: &i64| {
        let frames =
            i128::from(stamp - stamps[0]) * i128::from(rate.numerator() * scale.numerator() * 120);
        let divisor = i128::from(rate.denominator() * scale.denominator());
        assert_eq!(frames % divisor, 0, "{}", path.display());
        (frames / divisor) as i64
    };
    stamps.iter().map(position).collect()
}

fn compare(encoding: Encoding) {
    if !is_installed() {
        return;
    }
    let path = encoded(&encoding);
    let declared = Some(declared_rate(&encoding, &path));
    let expected = container_positions(&path, fraction(encoding.rate));

    let access_units = access_units(&path, encoding.codec);
    let order = if encoding.reorders { PictureOrder::Count } else { PictureOrder::Decoding };
    for times in [live, with_look_ahead].map(|times| times(encoding.codec, &access_units)) {
        assert!(times.iter().all(|time| time.frame_rate == declared), "{encoding:?}");
        assert!(times.iter().all(|time| time.reorders == Some(encoding.reorders)));
        assert!(times.iter().all(|time| time.order == order), "{encoding:?}");
        assert_eq!(ranks(&distances(&times)), ranks(&expected), "{encoding:?}");
    }
    let times = with_look_ahead(encoding.codec, &access_units);
    assert_eq!(distances(&times), expected, "{encoding:?}");
    assert_eq!(times.iter().map(|time| time.position.0).min(), Some(0));
    let is_exact = distances(&live(encoding.codec, &access_units)) == expected;
    assert_eq!(is_exact, encoding.is_exact_live, "{encoding:?}");
}

#[test]
fn h264_with_b_frames_has_the_positions_of_its_container() {
    compare(h264("b3", "25", "-bf 3 -b-pyramid normal -g 40"));
    compare(h264("b3-rate", "30000/1001", "-bf 3 -b-pyramid normal -g 40"));
    compare(h264("b3-scenes", "50", "-bf 3 -b-pyramid strict -g 13 -sc_threshold 100"));
}

#[test]
fn h264_without_b_frames_has_the_positions_of_its_container() {
    let encoding = h264("b0", "50", "-bf 0 -g 25");
    compare(Encoding { reorders: false, ..encoding });
    let encoding = h264("baseline", "25", "-profile:v baseline -g 25");
    compare(Encoding { reorders: false, ..encoding });
}

#[test]
fn h264_with_open_groups_of_pictures_has_the_positions_of_its_container() {
    compare(h264("open", "25", "-bf 3 -g 20 -x264-params open-gop=1"));
    compare(h264("refresh", "25", "-bf 0 -x264-params bframes=0:intra-refresh=1").no_reordering());
}

#[test]
fn h264_interlaced_has_the_positions_of_its_container() {
    compare(h264("interlaced", "25", "-bf 2 -g 30 -flags +ildct+ilme"));
    compare(h264("bottom", "30000/1001", "-bf 2 -g 30 -flags +ildct+ilme -x264-params bff=1"));
    compare(h264("slices", "25", "-bf 2 -g 30 -slices 4 -weightp 2 -refs 4"));
}

#[test]
fn h265_with_b_frames_has_the_positions_of_its_container() {
    let common = "-x265-params log-level=error:keyint=40:bframes=4:open-gop=0";
    compare(h265("hevc-b4", "25", common));
    compare(h265("hevc-rate", "30000/1001", common));
    let low = "-x265-params log-level=error:keyint=40:bframes=0";
    compare(h265("hevc-b0", "50", low).no_reordering());
}

#[test]
fn h265_with_open_groups_of_pictures_has_the_positions_of_its_container() {
    compare(h265("hevc-open", "25", "-x265-params log-level=error:keyint=20:bframes=4:open-gop=1"));
}

#[test]
fn h265_with_radl_pictures_has_the_positions_of_its_container() {
    let radl = "-x265-params log-level=error:keyint=20:min-keyint=20:bframes=4:open-gop=0:radl=2";
    compare(Encoding { is_exact_live: false, ..h265("hevc-radl", "50", radl) });
}

#[test]
fn h265_with_temporal_layers_has_the_positions_of_its_container() {
    let layers = "-x265-params log-level=error:keyint=40:bframes=3:temporal-layers=1:hrd=1\
                  :vbv-maxrate=900:vbv-bufsize=900:repeat-headers=1:scaling-list=default";
    compare(h265("hevc-layers", "50", layers));
}

#[test]
fn h266_has_the_positions_of_its_container() {
    if !is_installed() {
        return;
    }
    if !run("ffmpeg", &["-v", "error", "-encoders"]).contains("libvvenc") {
        return skipped::not_here("FFmpeg has no libvvenc");
    }
    let encoding = |name, arguments| {
        let codec = NalCodec::H266;
        let reorders = true;
        Encoding { name, codec, rate: "25", arguments, reorders, is_exact_live: true }
    };
    compare(encoding("vvc-cra", "-preset faster -g 64"));
    let radl = "-preset faster -g 32 -vvenc-params decodingrefreshtype=idr";
    compare(encoding("vvc-idr", radl));
}

fn media_files() -> impl Iterator<Item = PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [root.join("vectors/media"), root.join("../shared/media")];
    let files = folders.into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    files.map(|file| file.unwrap().path())
}

/// The rates of FFmpeg 9's `trace_headers`: `num_units_in_tick` and `time_scale`.
#[test]
fn h266_has_the_rate_of_its_sequence_parameter_set() {
    let mut compared = 0;
    for path in media_files().filter(|path| path.extension().is_some_and(|it| it == "266")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let expected = if name.contains("_vtm_") { None } else { FrameRate::new(30, 1) };
        let access_units = read(NalCodec::H266, &std::fs::read(&path).unwrap());
        let rates = with_look_ahead(NalCodec::H266, &access_units);
        assert!(rates.iter().all(|it| it.frame_rate == expected), "{name}");
        compared += 1;
    }
    assert!(compared > 0);
}

/// Files without gaps: the positions of their pictures have no gaps, either.
#[test]
fn pictures_of_a_file_are_one_frame_interval_apart() {
    let mut compared = 0;
    for path in media_files() {
        let codec = match path.extension().and_then(|extension| extension.to_str()) {
            Some("264") => NalCodec::H264,
            Some("265") => NalCodec::H265,
            Some("266") => NalCodec::H266,
            _ => continue,
        };
        let access_units = read(codec, &std::fs::read(&path).unwrap());
        let times = with_look_ahead(codec, &access_units);
        assert!(times.iter().all(|it| it.order != PictureOrder::Unknown), "{}", path.display());
        let mut positions: Vec<i64> = times.iter().map(|time| time.position.0).collect();
        positions.sort_unstable();
        let expected: Vec<i64> = (0..).map(|n| 120 * n).take(positions.len()).collect();
        assert_eq!(positions, expected, "{}", path.display());
        let live = live(codec, &access_units);
        assert_eq!(ranks(&distances(&live)), ranks(&distances(&times)), "{}", path.display());
        compared += 1;
    }
    assert!(compared >= 3);
}

impl Encoding {
    const fn no_reordering(self) -> Self {
        Self { reorders: false, ..self }
    }
}
