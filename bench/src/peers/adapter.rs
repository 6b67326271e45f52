//! The command lines with which a program sends or receives, with placeholders.

use std::path::Path;

use anyhow::anyhow;
use rushes::Codec;

use super::{running, words};
use crate::Usage;
use crate::sequence::raw::Video;

/// One program, Rushes or another.
#[derive(Clone, Debug)]
pub(super) struct Adapter {
    pub(super) name: String,
    /// Words with placeholders; `None` if it is not measured as a sender.
    pub(super) send: Option<Vec<String>>,
    pub(super) receive: Option<Vec<String>>,
    /// Whether it secures its packets (`AES_CM_128_HMAC_SHA1_80`).
    pub(super) secured: bool,
}

/// The values of the placeholders of a command.
#[derive(Clone, Debug)]
pub(super) struct Places<'a> {
    pub(super) codec: Codec,
    pub(super) file: &'a Path,
    pub(super) sdp: &'a Path,
    pub(super) out: &'a Path,
    pub(super) port: u16,
    pub(super) fps: u32,
    /// Octets per second at `fps` access units per second.
    pub(super) octet_rate: u32,
    /// The format of uncompressed video.
    pub(super) video: Video,
}

/// The address of both programs.
pub(super) const HOST: &str = "127.0.0.1";

/// A master key of 16 octets and a salt of 14: test keys are not secret.
pub(super) const KEY: &str = "LS0tLS0tLS0tLS0tLS0tLS0tLS0tLS0tLS0tLS0t";
const KEY_HEXADECIMAL: &str = "2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d2d";

impl Adapter {
    /// Returns an adapter of two command lines, either of which may be missing.
    pub(super) fn parse(
        name: &str,
        send: Option<&str>,
        receive: Option<&str>,
        secured: bool,
    ) -> anyhow::Result<Self> {
        let words = |line: Option<&str>| -> anyhow::Result<Option<Vec<String>>> {
            let Some(line) = line else { return Ok(None) };
            let words = words::split(line).map_err(Usage)?;
            // Unknown placeholders are reported before the measurement.
            filled(&words, &Places::any())?;
            Ok(Some(words))
        };
        Ok(Self { name: name.to_owned(), send: words(send)?, receive: words(receive)?, secured })
    }

    /// Returns whether its programs are installed on this machine.
    pub(super) fn is_installed(&self) -> bool {
        [&self.send, &self.receive].into_iter().flatten().all(|words| {
            let program = words
                .first()
                .and_then(|word| filled(std::slice::from_ref(word), &Places::any()).ok());
            program.is_some_and(|program| program.iter().all(|name| running::is_installed(name)))
        })
    }

    /// Rushes, FFmpeg and GStreamer with `codec`, in the clear and secured. Uncompressed video is not
    /// measured secured.
    pub(super) fn usual(codec: Codec, secured: bool) -> anyhow::Result<Vec<Self>> {
        let lines: &[(&str, &str, &str)] = match (codec == Codec::Uncompressed, secured) {
            (true, false) => &RAW,
            (true, true) => &[],
            (false, false) => &CLEAR,
            (false, true) => &SECURED,
        };
        let adapter = |&(name, send, receive): &(&str, &str, &str)| {
            Self::parse(name, Some(send), Some(receive), secured)
        };
        lines.iter().map(adapter).collect()
    }
}

impl Places<'_> {
    fn any() -> Self {
        let (codec, empty) = (Codec::H265, Path::new(""));
        let video = Video::default();
        Self { codec, file: empty, sdp: empty, out: empty, port: 1, fps: 1, octet_rate: 1, video }
    }

    fn values(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        // The name of the codec in this project, in RTP, and of its byte stream in FFmpeg.
        let (codec, encoding) = (self.codec.name, self.codec.encoding.unwrap_or_default());
        let format = self.codec.ffmpeg.unwrap_or_default();
        let text = |path: &Path| path.display().to_string();
        let rushes = std::env::current_exe()?;
        let (width, height) = self.video.size();
        // FFmpeg's demuxer, its pixel format and its encoder, and GStreamer's format.
        let [demuxer, pixels, encoder, packed] = match self.video {
            Video::Hd => ["rawvideo", "uyvy422", "rawvideo", "uyvy"],
            Video::UltraHd => ["bitpacked", "yuv422p10", "bitpacked", "uyvp"],
        };
        Ok(vec![
            ("file", text(self.file)),
            ("sdp", text(self.sdp)),
            ("out", text(self.out)),
            ("host", HOST.to_owned()),
            ("port", self.port.to_string()),
            ("fps", self.fps.to_string()),
            // Some programs accept no more; none is that fast.
            ("octetrate", self.octet_rate.min(i32::MAX as u32).to_string()),
            ("codec", codec.to_owned()),
            ("encoding", encoding.to_owned()),
            ("format", format.to_owned()),
            ("key", KEY.to_owned()),
            ("hexkey", KEY_HEXADECIMAL.to_owned()),
            ("rushes", text(&rushes)),
            ("size", format!("{width}x{height}")),
            ("width", width.to_string()),
            ("height", height.to_string()),
            ("depth", self.video.depth().to_string()),
            ("framelen", self.video.format()?.frame_len().to_string()),
            ("demuxer", demuxer.to_owned()),
            ("pixels", pixels.to_owned()),
            ("encoder", encoder.to_owned()),
            ("packed", packed.to_owned()),
        ])
    }
}

/// Returns a command with its placeholders replaced.
pub(super) fn filled(words: &[String], places: &Places<'_>) -> anyhow::Result<Vec<String>> {
    let values = places.values()?;
    let fill = |word: &String| words::fill(word, &values).map_err(|error| anyhow!(Usage(error)));
    words.iter().map(fill).collect()
}

// The README of this crate lists the options that were tried, with their results. FFmpeg: `-re`
// keeps the frame rate; reading files in pieces of 1 MiB costs less than its default of 1 KiB.
// GStreamer: parsers of byte streams do not set timestamps, so `identity` keeps the octet rate that
// corresponds to the frame rate.
// Neither of them spreads pictures over time, so Rushes is measured as it is by default and without
// pacing.
const CLEAR: [(&str, &str, &str); 4] = [
    (
        "Rushes",
        "{rushes} send {file} --to {host}:{port} --codec {codec} --payload-type 96 --fps {fps} --quiet",
        "{rushes} recv --from {host}:{port} --codec {codec} --payload-type 96 -o - --quiet",
    ),
    (
        "Rushes, unpaced",
        "{rushes} send {file} --to {host}:{port} --codec {codec} --payload-type 96 --fps {fps} --quiet \
         --pacing off",
        "{rushes} recv --from {host}:{port} --codec {codec} --payload-type 96 -o - --quiet",
    ),
    (
        "FFmpeg",
        "ffmpeg -nostdin -v error -re -framerate {fps} -raw_packet_size 1048576 -f {format} -i {file} \
         -c copy -f rtp -payload_type 96 \
         rtp://{host}:{port}?pkt_size=1472&buffer_size=4194304",
        "ffmpeg -nostdin -v error -protocol_whitelist file,udp,rtp -probesize 32 \
         -analyzeduration 0 -fpsprobesize 0 -reorder_queue_size 0 -buffer_size 4194304 -i {sdp} \
         -c copy -f {format} pipe:1",
    ),
    (
        "GStreamer",
        "gst-launch-1.0 -q filesrc location={file} blocksize=1048576 ! \
         video/x-{codec},stream-format=byte-stream,framerate={fps}/1 ! {codec}parse ! \
         video/x-{codec},alignment=au ! identity datarate={octetrate} sync=true ! queue ! \
         rtp{codec}pay pt=96 mtu=1472 ! \
         udpsink host={host} port={port} sync=false async=false buffer-size=4194304",
        "gst-launch-1.0 -q -e udpsrc address={host} port={port} buffer-size=4194304 \
         caps=application/x-rtp,media=video,clock-rate=90000,encoding-name={encoding},payload=96 ! \
         queue max-size-buffers=0 max-size-bytes=0 max-size-time=0 ! rtp{codec}depay ! \
         video/x-{codec},stream-format=byte-stream,alignment=au ! \
         fdsink async=false sync=false",
    ),
];

// FFmpeg would send frames of a file that it copies as fields, because nothing says that they are none; of
// frames that it writes again it knows. GStreamer's `rawvideoparse` sets timestamps, by which `identity`
// keeps the frame rate.
const RAW: [(&str, &str, &str); 4] = [
    (
        "Rushes",
        "{rushes} send {file} --to {host}:{port} --codec uncompressed --size {size} --sampling 4:2:2 \
         --depth {depth} --payload-type 96 --fps {fps} --quiet",
        "{rushes} recv --from {host}:{port} --codec uncompressed --size {size} --sampling 4:2:2 \
         --depth {depth} --payload-type 96 -o - --quiet",
    ),
    (
        "Rushes, unpaced",
        "{rushes} send {file} --to {host}:{port} --codec uncompressed --size {size} --sampling 4:2:2 \
         --depth {depth} --payload-type 96 --fps {fps} --quiet --pacing off",
        "{rushes} recv --from {host}:{port} --codec uncompressed --size {size} --sampling 4:2:2 \
         --depth {depth} --payload-type 96 -o - --quiet",
    ),
    (
        "FFmpeg",
        "ffmpeg -nostdin -v error -re -f {demuxer} -pixel_format {pixels} -video_size {size} \
         -framerate {fps} -i {file} -c:v {encoder} -f rtp -payload_type 96 \
         rtp://{host}:{port}?pkt_size=1472&buffer_size=4194304",
        "ffmpeg -nostdin -v error -protocol_whitelist file,udp,rtp -probesize 32 \
         -analyzeduration 0 -fpsprobesize 0 -reorder_queue_size 0 -buffer_size 4194304 -i {sdp} \
         -c copy -f rawvideo pipe:1",
    ),
    (
        "GStreamer",
        "gst-launch-1.0 -q filesrc location={file} blocksize={framelen} ! \
         rawvideoparse width={width} height={height} format={packed} framerate={fps}/1 ! \
         identity sync=true ! queue ! rtpvrawpay pt=96 mtu=1472 ! \
         udpsink host={host} port={port} sync=false async=false buffer-size=4194304",
        "gst-launch-1.0 -q -e udpsrc address={host} port={port} buffer-size=4194304 \
         caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,payload=96,\
         sampling=(string)YCbCr-4:2:2,depth=(string){depth},width=(string){width},height=(string){height} ! \
         queue max-size-buffers=0 max-size-bytes=0 max-size-time=0 ! rtpvrawdepay ! \
         fdsink async=false sync=false",
    ),
];

const SECURED: [(&str, &str, &str); 3] = [
    (
        "Rushes",
        "{rushes} send {file} --to {host}:{port} --codec {codec} --payload-type 96 --fps {fps} --quiet \
         --srtp AES_CM_128_HMAC_SHA1_80 --key {key}",
        "{rushes} recv --from {host}:{port} --codec {codec} --payload-type 96 -o - --quiet \
         --srtp AES_CM_128_HMAC_SHA1_80 --key {key}",
    ),
    (
        "FFmpeg",
        "ffmpeg -nostdin -v error -re -framerate {fps} -raw_packet_size 1048576 -f {format} -i {file} \
         -c copy -f rtp -payload_type 96 -srtp_out_suite AES_CM_128_HMAC_SHA1_80 \
         -srtp_out_params {key} srtp://{host}:{port}?pkt_size=1472&buffer_size=4194304",
        "ffmpeg -nostdin -v error -protocol_whitelist file,udp,rtp,srtp,crypto -probesize 32 \
         -analyzeduration 0 -fpsprobesize 0 -reorder_queue_size 0 -buffer_size 4194304 -i {sdp} \
         -c copy -f {format} pipe:1",
    ),
    (
        "GStreamer",
        "gst-launch-1.0 -q filesrc location={file} blocksize=1048576 ! \
         video/x-{codec},stream-format=byte-stream,framerate={fps}/1 ! {codec}parse ! \
         video/x-{codec},alignment=au ! identity datarate={octetrate} sync=true ! queue ! \
         rtp{codec}pay pt=96 mtu=1458 ssrc=305419896 ! srtpenc key={hexkey} \
         rtp-cipher=aes-128-icm rtp-auth=hmac-sha1-80 rtcp-cipher=aes-128-icm \
         rtcp-auth=hmac-sha1-80 ! \
         udpsink host={host} port={port} sync=false async=false buffer-size=4194304",
        "gst-launch-1.0 -q -e udpsrc address={host} port={port} buffer-size=4194304 \
         caps=application/x-srtp,media=video,clock-rate=90000,encoding-name={encoding},payload=96,\
         ssrc=(uint)305419896,srtp-key=(buffer){hexkey},srtp-cipher=aes-128-icm,\
         srtp-auth=hmac-sha1-80,srtcp-cipher=aes-128-icm,srtcp-auth=hmac-sha1-80 ! \
         queue max-size-buffers=0 max-size-bytes=0 max-size-time=0 ! srtpdec ! rtp{codec}depay ! \
         video/x-{codec},stream-format=byte-stream,alignment=au ! \
         fdsink async=false sync=false",
    ),
];

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_usual_commands_have_no_place_that_cannot_be_filled() {
        for (codec, secured) in
            [(Codec::H264, false), (Codec::H264, true), (Codec::Uncompressed, false)]
        {
            let places = Places { codec, ..Places::any() };
            for adapter in Adapter::usual(codec, secured).unwrap() {
                for words in [adapter.send.unwrap(), adapter.receive.unwrap()] {
                    let filled = filled(&words, &places).unwrap();
                    assert!(filled.iter().all(|word| !word.contains('{')), "{filled:?}");
                    assert!(
                        filled.iter().any(|word| word.contains("264")
                            || word.contains("1080")
                            || word.contains(".sdp")
                            || word.is_empty()),
                        "{filled:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_wrong_place_is_a_wrong_command_line() {
        let error = Adapter::parse("x", Some("x {prot}"), None, false).unwrap_err();
        assert!(error.is::<Usage>(), "{error}");
    }

    #[test]
    fn one_absent_program_is_enough_to_be_absent() {
        let adapter = |receive| Adapter::parse("x", Some("sh -c true"), Some(receive), false);
        assert!(adapter("sh").unwrap().is_installed());
        assert!(!adapter("no-program-is-called-so {sdp}").unwrap().is_installed());
    }
}
