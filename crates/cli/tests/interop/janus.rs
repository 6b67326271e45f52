//! Janus at the other end: its mount points take RTP and SRTP.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::media::{H264, assert_same};
use crate::rig::{Process, await_tcp, free_tcp_port, have, ports, receive, received, rushes, send};

const SUITE: &str = "AES_CM_128_HMAC_SHA1_80";
const PLAIN: u16 = 1;
const SECURE: u16 = 2;

/// What this test needs of it are the streaming plugin and HTTP.
const OTHERS: [&str; 2] = [
    "audiobridge duktape lua echotest nosip recordplay sip textroom videocall videoroom voicemail",
    "mqtt nanomsg pfunix rabbitmq websockets",
];

/// A Janus with two mount points, and a handle of a client.
struct Janus {
    _process: Process,
    /// The URL of the handle.
    handle: String,
    /// The ports of [`PLAIN`] and [`SECURE`].
    ports: [u16; 2],
}

impl Janus {
    /// Starts it; the key of [`SECURE`] is then in `key` of `folder`. Without Janus or curl, prints a
    /// message and returns `None`.
    fn start(folder: &Path) -> Option<Self> {
        if !have(&["janus", "curl"]) {
            return None;
        }
        let (key, _) = rushes(&["keygen", SUITE]).finish();
        fs::write(folder.join("key"), &key).unwrap();
        fs::set_permissions(folder.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        let (http, media) = (free_tcp_port(), [ports(), ports()]);
        Self::configure(folder, http, media, key.trim());
        let config = folder.join("janus.jcfg");
        let arguments = ["-F", folder.to_str().unwrap(), "-C", config.to_str().unwrap()];
        let process = Process::start("janus", &arguments).listening(media[1]);
        await_tcp(http);
        let url = format!("http://127.0.0.1:{http}/janus");
        let id = |answer: Value| answer["data"]["id"].as_u64().unwrap();
        let session = format!("{url}/{}", id(post(&url, json!({"janus": "create"}))));
        let attach = json!({"janus": "attach", "plugin": "janus.plugin.streaming"});
        let handle = format!("{session}/{}", id(post(&session, attach)));
        Some(Self { _process: process, handle, ports: media })
    }

    fn configure(folder: &Path, http: u16, media: [u16; 2], key: &str) {
        let [plugins, transports] = OTHERS.map(|names| {
            let files = names.split(' ').map(|name| format!("libjanus_{name}.so"));
            files.collect::<Vec<_>>().join(",")
        });
        let here = folder.display();
        let main = format!(
            "general: {{ configs_folder = \"{here}\" }}\n\
             plugins: {{ disable = \"{plugins}\" }}\n\
             transports: {{ disable = \"{transports}\" }}\n"
        );
        let web = format!(
            "general: {{ http = true port = {http} ip = \"127.0.0.1\" https = false }}\n\
             admin: {{ admin_http = false }}\n"
        );
        let [plain, secure] = media;
        let video = "type = \"rtp\" video = true audio = false videopt = 96 videocodec = \"h264\"";
        let streams = format!(
            "general: {{ }}\n\
             plain: {{ id = {PLAIN} {video} videoport = {plain} }}\n\
             secure: {{ id = {SECURE} {video} videoport = {secure} srtpsuite = 80 \
             srtpcrypto = \"{key}\" }}\n",
        );
        for (name, text) in
            [("janus", main), ("janus.transport.http", web), ("janus.plugin.streaming", streams)]
        {
            fs::write(folder.join(format!("{name}.jcfg")), text).unwrap();
        }
    }

    /// Starts or stops the recording of a mount point into `file`.mjr.
    fn record(&self, action: &str, mount_point: u16, file: &Path) {
        let body = json!({
            "request": "recording",
            "action": action,
            "id": mount_point,
            "video": if action == "start" { json!(file) } else { json!(true) },
        });
        let answer = post(&self.handle, json!({"janus": "message", "body": body}));
        assert_eq!(answer["plugindata"]["data"]["streaming"], "ok", "{answer}");
    }
}

/// Returns the answer of Janus to a request.
fn post(url: &str, mut request: Value) -> Value {
    request["transaction"] = json!("test");
    let output =
        Command::new("curl").args(["-s", url, "-d", &request.to_string()]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the packets of a recording: a header of JSON after its length, then each packet after its
/// time and its length.
fn recorded(file: &Path) -> Vec<Vec<u8>> {
    let octets = fs::read(file.with_extension("mjr")).unwrap();
    let mut rest = octets.strip_prefix(b"MJR00002").unwrap();
    let mut take = |len: usize| rest.split_off(..len).map(<[u8]>::to_vec);
    let len_at =
        |octets: &[u8], at: usize| usize::from(u16::from_be_bytes([octets[at], octets[at + 1]]));
    let header = take(2).unwrap();
    take(len_at(&header, 0)).unwrap();
    let mut packets = Vec::new();
    while let Some(head) = take(10) {
        assert_eq!(head[..4], *b"MEET");
        packets.push(take(len_at(&head, 8)).unwrap());
    }
    packets
}

/// Sends a file to a mount point, and receives what Janus has recorded of it.
fn through(mount_point: u16) {
    let folder = tempfile::tempdir().unwrap();
    let Some(janus) = Janus::start(folder.path()) else { return };
    let (file, recording) = (H264.own(), folder.path().join("recording"));
    janus.record("start", mount_point, &recording);
    let key = folder.path().join("key");
    let key = ["--srtp", SUITE, "--key-file", key.to_str().unwrap()];
    let key = if mount_point == SECURE { &key[..] } else { &[] };
    send(&file, janus.ports[usize::from(mount_point == SECURE)], key);
    janus.record("stop", mount_point, &recording);
    let (copy, port) = (folder.path().join("copy.264"), ports());
    let process = receive(&copy, port, &["--idle-timeout", "1s"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for packet in recorded(&recording) {
        socket.send_to(&packet, ("127.0.0.1", port)).unwrap();
    }
    let report = received(process);
    assert_same(&file, &copy);
    assert_eq!(report["complete"], true, "{report}");
}

#[test]
fn janus_takes_rtp() {
    through(PLAIN);
}

#[test]
fn janus_takes_srtp() {
    through(SECURE);
}
