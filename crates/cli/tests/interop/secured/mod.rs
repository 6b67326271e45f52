//! SRTP with FFmpeg and GStreamer at the other end. The received file equals the sent one, and the
//! traffic is not readable.

mod ffmpeg;
mod gstreamer;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::media::{H265, Kind};
use crate::relay::{Recorder, readable};
use crate::rig::{Process, ports, receive, rushes, send};

/// The name in the sender's reports, which only its receiver may read.
const NAME: &str = "someone-else@rushes.example";

/// The sender's SSRC, which GStreamer's decryption needs in advance.
const SSRC: &str = "305419896";

/// A suite, by the names of both sides.
#[derive(Clone, Copy, Debug)]
struct Suite {
    name: &'static str,
    key_len: u8,
    /// FFmpeg's name, if it supports the suite.
    ffmpeg: &'static str,
    /// GStreamer's names of the cipher and of the authentication.
    gstreamer: [&'static str; 2],
}

const AES_128_80: Suite = Suite {
    name: "AES_CM_128_HMAC_SHA1_80",
    key_len: 30,
    ffmpeg: "AES_CM_128_HMAC_SHA1_80",
    gstreamer: ["aes-128-icm", "hmac-sha1-80"],
};
const AES_128_32: Suite = Suite {
    name: "AES_CM_128_HMAC_SHA1_32",
    key_len: 30,
    // Under the other name, FFmpeg shortens the tags of reports, too.
    ffmpeg: "SRTP_AES128_CM_HMAC_SHA1_32",
    gstreamer: ["aes-128-icm", "hmac-sha1-32"],
};
const AES_256_80: Suite = Suite {
    name: "AES_256_CM_HMAC_SHA1_80",
    key_len: 46,
    ffmpeg: "",
    gstreamer: ["aes-256-icm", "hmac-sha1-80"],
};
const GCM_128: Suite =
    Suite { name: "AEAD_AES_128_GCM", key_len: 28, ffmpeg: "", gstreamer: ["aes-128-gcm", "null"] };
const GCM_256: Suite =
    Suite { name: "AEAD_AES_256_GCM", key_len: 44, ffmpeg: "", gstreamer: ["aes-256-gcm", "null"] };

impl Suite {
    /// Returns a master key and salt; keys of different seeds differ in every octet.
    fn key(self, seed: u8) -> Vec<u8> {
        (0..self.key_len).map(|n| n.wrapping_mul(37).wrapping_add(seed)).collect()
    }

    fn base64(self) -> String {
        STANDARD.encode(self.key(1))
    }

    fn hexadecimal(self) -> String {
        self.key(1).iter().fold(String::new(), |mut text, octet| {
            let _ = write!(text, "{octet:02x}");
            text
        })
    }

    /// The parameters of GStreamer's decryption, to be appended to caps.
    fn caps(self) -> String {
        let ([cipher, tag], control_tag) = (self.gstreamer, self.control_tag());
        format!(
            ",ssrc=(uint){SSRC},srtp-key=(buffer){},srtp-cipher=(string){cipher},\
             srtp-auth=(string){tag},srtcp-cipher=(string){cipher},srtcp-auth=(string){control_tag}",
            self.hexadecimal()
        )
    }

    /// The element for GStreamer's encryption.
    fn encrypting(self) -> String {
        let ([cipher, tag], control_tag) = (self.gstreamer, self.control_tag());
        format!(
            "srtpenc key={} rtp-cipher={cipher} rtp-auth={tag} \
             rtcp-cipher={cipher} rtcp-auth={control_tag}",
            self.hexadecimal()
        )
    }

    /// Returns the tag of SRTCP, which is never the short one (RFC 4568 section 6.2.2).
    fn control_tag(self) -> &'static str {
        if self.gstreamer[1] == "null" { "null" } else { "hmac-sha1-80" }
    }
}

/// Sends `file` to `port` with `rushes send`, secured.
fn send_secured(file: &Path, port: u16, suite: Suite) -> Value {
    let key = suite.base64();
    let security = ["--srtp", suite.name, "--key", &key];
    let security = [&security[..], &["--fresh-key", "--ssrc", SSRC, "--cname", NAME]].concat();
    send(file, port, &security)
}

/// Starts `rushes recv` on `port` into `file`, secured; `idle` is the silence that ends it.
fn receive_secured(file: &Path, port: u16, suite: Suite, idle: &str) -> Process {
    let key = suite.base64();
    receive(file, port, &["--srtp", suite.name, "--key", &key, "--idle-timeout", idle])
}

/// Fails if no datagram passed, or if one of them can be read.
fn assert_encrypted(relay: Recorder, file: &Path, reports: bool) {
    let [media, control] = relay.end();
    assert!(media.len() > 20, "{} packets", media.len());
    assert_eq!(!control.is_empty(), reports, "{} reports", control.len());
    let readable = [&media, &control].map(|datagrams| readable(datagrams, file, NAME));
    assert_eq!(readable, [0, 0], "packets and reports can be read");
}

fn copy_path(folder: &Path, n: usize, kind: Kind) -> PathBuf {
    folder.join(format!("received{n}.{}", kind.extension))
}

#[test]
fn what_is_not_encrypted_is_readable_in_between() {
    let relay = Recorder::to(ports());
    let file = H265.own();
    let report = send(&file, relay.port, &["--cname", NAME]);
    let [media, control] = relay.end();
    assert_eq!(report["sent"]["packets"], media.len());
    assert!(readable(&media, &file, NAME) * 10 > media.len() * 9);
    assert!(!control.is_empty());
    assert_eq!(readable(&control, &file, NAME), control.len());
}

#[test]
fn packets_under_a_wrong_key_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    for suite in [AES_128_80, AES_128_32, AES_256_80, GCM_128, GCM_256] {
        let (port, file) = (ports(), H265.own());
        let copy = folder.path().join("copy.265");
        let from = format!("127.0.0.1:{port}");
        let wrong = STANDARD.encode(suite.key(2));
        let process = rushes(&[
            "recv",
            "--from",
            &from,
            "-o",
            copy.to_str().unwrap(),
            "--srtp",
            suite.name,
            "--key",
            &wrong,
        ])
        .listening(port);
        let report = send_secured(&file, port, suite);
        // For the receiver the stream has not begun, so only Ctrl-C ends it.
        let (code, (out, err)) =
            process.having_read(&[port]).ended_after(Duration::from_millis(500));
        let packets = report["sent"]["packets"].as_u64().unwrap();
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(&format!("discarded: {packets} authentication failed\n")), "{err}");
        assert!(err.contains("as not authentic"), "{err}");
        assert!(err.contains("no complete frame was received; no file was written"), "{err}");
        assert!(!err.contains(&wrong), "{err}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{}", suite.name);
    }
}
