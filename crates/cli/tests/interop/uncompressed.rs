//! Uncompressed video with FFmpeg and GStreamer at the other end, bit for bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rushes::payload::raw::{RawVideo, Scan};
use rushes::{Codec, Context};
use serde_json::Value;

use crate::ffmpeg::{GOODBYE, ffmpeg_receives};
use crate::gstreamer::launch;
use crate::media::units;
use crate::rig::{
    describe, have, have_elements, ports, receive, receive_described, received, send,
};

/// A sampling and a depth, with the names that other programs have for them.
#[derive(Clone, Copy)]
struct Form {
    sampling: &'static str,
    depth: &'static str,
    /// FFmpeg's pixel format and encoder, or GStreamer's format and the elements before a file.
    name: &'static str,
    more: &'static str,
    /// The extension of files: planes have `y4m`, frames as packets have them another.
    extension: &'static str,
}

const fn form(
    sampling: &'static str,
    depth: &'static str,
    name: &'static str,
    more: &'static str,
    extension: &'static str,
) -> Form {
    Form { sampling, depth, name, more, extension }
}

/// What FFmpeg 5.1 sends and receives. Its YCbCr-4:2:0 is not that of RFC 4175: it cuts planes into
/// lines.
const FFMPEG: [Form; 4] = [
    form("YCbCr-4:2:2", "8", "uyvy422", "rawvideo", "rgb"),
    form("YCbCr-4:2:2", "10", "yuv422p10le", "bitpacked", "rgb"),
    form("RGB", "8", "rgb24", "rawvideo", "rgb"),
    form("BGR", "8", "bgr24", "rawvideo", "rgb"),
];

/// All that GStreamer 1.22 sends and receives.
const GSTREAMER: [Form; 9] = [
    form("YCbCr-4:2:2", "8", "UYVY", "", "rgb"),
    form("YCbCr-4:2:2", "10", "UYVP", "", "rgb"),
    form("RGB", "8", "RGB", "", "rgb"),
    form("RGBA", "8", "RGBA", "", "rgb"),
    form("BGR", "8", "BGR", "", "rgb"),
    form("BGRA", "8", "BGRA", "", "rgb"),
    form("YCbCr-4:2:0", "8", "I420", "y4menc ! ", "y4m"),
    form("YCbCr-4:1:1", "8", "Y41B", "y4menc ! ", "y4m"),
    form("YCbCr-4:4:4", "8", "AYUV", "videoconvert ! video/x-raw,format=Y444 ! y4menc ! ", "y4m"),
];

const SIZE: &str = "320x180";

/// The test pictures of FFmpeg.
const PICTURES: [&str; 4] = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=0.4"];

impl Form {
    /// Returns the options of `rushes` for files and streams of this form.
    fn options(self) -> Vec<&'static str> {
        let size = ["--codec", "uncompressed", "--size", SIZE];
        [&size[..], &["--sampling", self.sampling, "--depth", self.depth]].concat()
    }

    fn file(self, folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{name}-{}.{}", self.name, self.extension))
    }
}

fn assert_same(form: Form, sent: &Path, received: &Path) {
    let read = |file: &Path| match form.extension {
        "y4m" => units(file, Codec::Uncompressed),
        _ => vec![fs::read(file).unwrap()],
    };
    let (sent, received) = (read(sent), read(received));
    assert!(!sent[0].is_empty());
    let (form, lens) = (form.name, (sent.concat().len(), received.concat().len()));
    assert!(sent == received, "{form}: other pictures, {lens:?} octets");
}

/// Makes FFmpeg write its test pictures as packets have them.
fn ffmpeg_makes(form: Form, file: &Path) {
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin"])
        .args(PICTURES)
        .args(["-pix_fmt", form.name, "-c:v", form.more, "-f", "rawvideo"])
        .arg(file)
        .status()
        .unwrap();
    assert!(status.success(), "ffmpeg cannot make {}", file.display());
}

/// Makes FFmpeg send its test pictures, with `filter`, into `copy`; returns the receiver's report.
fn ffmpeg_sends(form: Form, copy: &Path, filter: &[&str]) -> Value {
    let (sdp, port) = (copy.with_extension("sdp"), ports());
    let sends = |real_time: &[&str], more: &[&str]| {
        let status = Command::new("ffmpeg")
            .args(["-v", "error", "-nostdin"])
            .args(real_time)
            .args(PICTURES)
            .args(filter)
            .args(["-pix_fmt", form.name, "-c:v", form.more, "-f", "rtp"])
            .args(["-payload_type", "96", "-rtpflags", "send_bye"])
            .args(more)
            .arg(format!("rtp://127.0.0.1:{port}"))
            .output()
            .unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    };
    // FFmpeg writes the description before a receiver listens.
    sends(&[], &["-sdp_file", sdp.to_str().unwrap(), "-t", "0.02"]);
    let process = receive_described(copy, &sdp, port, &[]);
    sends(&["-re"], &[]);
    received(process)
}

#[test]
fn ffmpeg_sends_uncompressed_video() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for form in FFMPEG {
        let [file, copy] = ["sent", "copy"].map(|name| form.file(folder.path(), name));
        ffmpeg_makes(form, &file);
        let report = ffmpeg_sends(form, &copy, &[]);
        assert_eq!(report["complete"], true, "{report}");
        assert_same(form, &file, &copy);
    }
}

#[test]
fn ffmpeg_receives_uncompressed_video() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for form in FFMPEG {
        let [file, copy] = ["sent", "copy"].map(|name| form.file(folder.path(), name));
        ffmpeg_makes(form, &file);
        let options = [form.options(), vec!["--fps", "25"]].concat();
        let port = ports();
        let sdp = describe(&file, port, folder.path(), &options);
        let output = ["-c", "copy", "-f", "rawvideo", "-y", copy.to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, port, &output);
        send(&file, port, &options);
        process.stop_after(GOODBYE);
        assert_same(form, &file, &copy);
    }
}

/// Makes GStreamer send its test pictures to `port` while it writes them to `file`.
fn gstreamer_sends(form: Form, file: &Path, port: u16, properties: &str) {
    let source = "videotestsrc num-buffers=8 pattern=smpte";
    let caps = format!("video/x-raw,format={},width=320,height=180,framerate=25/1", form.name);
    let sink = format!("udpsink host=127.0.0.1 port={port} sync=false max-bitrate=100000000");
    let pipeline = format!(
        "{source} ! {caps} ! tee name=t t. ! queue ! {}filesink location={} t. ! queue ! rtpvrawpay \
         pt=107 {properties} ! {sink}",
        form.more,
        file.display()
    );
    launch(&pipeline, &[]).finish();
}

#[test]
fn gstreamer_sends_and_receives_uncompressed_video() {
    if !have(&["gst-launch-1.0"]) || !have_elements(&["rtpvrawpay", "y4menc", "videotestsrc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, form) in GSTREAMER.into_iter().enumerate() {
        let [file, copy, back] =
            ["sent", "copy", "back"].map(|name| form.file(folder.path(), name));
        let options = form.options();
        let port = ports();
        let process = receive(&copy, port, &[&options[..], &["--idle-timeout", "1s"]].concat());
        gstreamer_sends(form, &file, port, if n % 2 == 0 { "" } else { "mtu=8000" });
        received(process);
        assert_same(form, &file, &copy);
        // The same pictures back to GStreamer.
        let port = ports();
        let caps = format!(
            "application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,payload=107,\
             sampling=(string){},depth=(string){},width=(string)320,height=(string)180",
            form.sampling, form.depth
        );
        let process = launch(
            &format!(
                "udpsrc address=127.0.0.1 port={port} buffer-size=8000000 caps={caps} ! rtpvrawdepay \
                 ! {}filesink buffer-mode=unbuffered location={}",
                form.more,
                back.display()
            ),
            &[],
        )
        .listening(port);
        send(&file, port, &[&options[..], &["--fps", "25"]].concat());
        process.having_read(&[port]).stop_after(Duration::from_millis(500));
        assert_same(form, &file, &back);
    }
}

/// The same as interlaced frames, each of two fields.
const INTERLACED: [&str; 2] = ["-vf", "setfield=tff"];

/// Returns the fields of a file of frames, one after the other: the even lines of a frame, then its odd
/// ones.
fn fields_of(file: &Path, line: usize) -> Vec<Vec<u8>> {
    let frames = fs::read(file).unwrap();
    let field = |frame: &[u8], first| {
        frame.chunks(line).skip(first).step_by(2).flatten().copied().collect()
    };
    frames.chunks(180 * line).flat_map(|frame| [field(frame, 0), field(frame, 1)]).collect()
}

/// Returns the octets of a line.
fn line_len(form: Form) -> usize {
    let sampling = form.sampling.parse().unwrap();
    RawVideo::new(sampling, form.depth.parse().unwrap(), 320, 180).unwrap().row_len()
}

/// FFmpeg numbers lines in each field, and gives both fields one timestamp. Its description does not say
/// so.
#[test]
fn ffmpeg_sends_interlaced_video_in_fields() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for form in FFMPEG {
        let [file, copy] = ["frames", "fields"].map(|name| form.file(folder.path(), name));
        ffmpeg_makes(form, &file);
        let report = ffmpeg_sends(form, &copy, &INTERLACED);
        assert_eq!(report["complete"], true, "{report}");
        let fields = fields_of(&file, line_len(form));
        assert_eq!(fields.len(), 20);
        assert!(fs::read(&copy).unwrap() == fields.concat(), "{}: other fields", form.name);
    }
}

#[test]
fn ffmpeg_receives_interlaced_video_in_fields() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for form in FFMPEG {
        let [file, copy] = ["frames", "copy"].map(|name| form.file(folder.path(), name));
        ffmpeg_makes(form, &file);
        let video =
            RawVideo::new(form.sampling.parse().unwrap(), form.depth.parse().unwrap(), 320, 180)
                .and_then(|video| video.with_scan(Scan::InterlacedByField))
                .unwrap();
        let port = ports();
        let session = Context::new().session("127.0.0.1").unwrap();
        let builder = session.stream(Codec::Uncompressed).raw_video(video).remote_port(port);
        let encoding = rushes::sdp::encoding_of(Codec::Uncompressed, b"").unwrap();
        let sdp = folder.path().join("x.sdp");
        fs::write(&sdp, builder.description(encoding).unwrap().write()).unwrap();
        let output = ["-c", "copy", "-f", "rawvideo", "-y", copy.to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, port, &output);
        let mut sender = builder.open().unwrap();
        for field in fields_of(&file, line_len(form)) {
            sender.push_frame(&field, None).unwrap();
            sender.sender().wait_until(Instant::now() + Duration::from_millis(20)).unwrap();
        }
        drop(sender);
        process.stop_after(GOODBYE);
        assert_same(form, &file, &copy);
    }
}

#[test]
fn gstreamer_sends_interlaced_video_in_fields() {
    if !have(&["gst-launch-1.0"]) || !have_elements(&["rtpvrawpay", "videotestsrc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [file, copy, sdp] =
        ["frames.rgb", "fields.rgb", "x.sdp"].map(|name| folder.path().join(name));
    let port = ports();
    let text = format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video {port} \
         RTP/AVP 107\r\na=rtpmap:107 raw/90000\r\na=fmtp:107 sampling=YCbCr-4:2:2; width=320; \
         height=180; depth=8; interlace\r\n"
    );
    fs::write(&sdp, text).unwrap();
    let process = receive_described(&copy, &sdp, port, &["--idle-timeout", "1s"]);
    let interlaced = "UYVY,interlace-mode=interleaved,field-order=top-field-first";
    let form = Form { name: interlaced, ..FFMPEG[0] };
    gstreamer_sends(Form { more: "", ..form }, &file, port, "");
    received(process);
    let fields = fields_of(&file, 320 * 2);
    assert!(fields.len() == 2 * 8 && fs::read(&copy).unwrap() == fields.concat());
}
