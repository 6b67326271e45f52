//! Running the program, and reading its output.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rushes::file::{MediaReader, ReadOptions, codec_of};
use serde_json::Value;

pub(crate) use crate::ports::ports as free_port;
use crate::program::program;
use crate::taken::is_taken;

pub(crate) fn rushes(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    rushes(arguments).output().unwrap()
}

pub(crate) fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

pub(crate) fn json(output: &Output) -> Value {
    let value = serde_json::from_slice(&output.stdout);
    value.unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

pub(crate) fn media(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name);
    path.to_str().unwrap().to_owned()
}

pub(crate) const MEDIA: [&str; 4] = [
    "avc_cif_60f_baseline.264",
    "hevc_192x128_90f_tiny_nals.265",
    "vvc_192x128_64f_vvenc_tiny_nals.266",
    "opus_speech_mono_mixed_durations.opus",
];

/// Returns a socket that receives and does not answer, and its address.
pub(crate) fn silent_receiver() -> (UdpSocket, String) {
    let socket = UdpSocket::bind(("127.0.0.1", free_port())).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

/// Starts a receiver into `file`, and returns it with its address when it listens.
pub(crate) fn listening(file: &Path, more: &[&str]) -> (Child, String) {
    let port = free_port();
    let from = format!("127.0.0.1:{port}");
    (receiving(port, &[&["--from", &from], more].concat(), file), from)
}

/// Starts a receiver into `file` with `arguments`, and returns it when it listens at `port`.
pub(crate) fn receiving(port: u16, arguments: &[&str], file: &Path) -> Child {
    let mut command = rushes(&["recv", "-o", file.to_str().unwrap(), "--json"]);
    command.args(arguments);
    if !arguments.contains(&"--idle-timeout") {
        command.args(["--idle-timeout", "2s"]);
    }
    let mut child = command.spawn().unwrap();
    // The receiver listens when its port is in use.
    for _ in 0..500 {
        if is_taken(port) || child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// A program whose error output is read line by line while it runs.
pub(crate) struct RunningProgram {
    pub(crate) child: Child,
    lines: Receiver<String>,
    error_output: String,
}

impl RunningProgram {
    /// Maximum wait for the program's next line or for its end.
    const PATIENCE: Duration = Duration::from_secs(120);

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (line, lines) = channel();
        std::thread::spawn(move || errors.lines().try_for_each(|read| line.send(read.unwrap())));
        Self { child, lines, error_output: String::new() }
    }

    fn record_line(&mut self, line: &str) {
        self.error_output += line;
        self.error_output.push('\n');
    }

    /// Waits for a line that contains `expected`.
    pub(crate) fn wait_for(&mut self, expected: &str) {
        loop {
            let line = self.lines.recv_timeout(Self::PATIENCE);
            let line = line.unwrap_or_else(|_| {
                panic!("the text {expected:?} is missing: {}", self.error_output)
            });
            self.record_line(&line);
            if line.contains(expected) {
                return;
            }
        }
    }

    /// Waits until the program ends; returns its status and its error output.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        loop {
            match self.lines.recv_timeout(Self::PATIENCE) {
                Ok(line) => self.record_line(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the program does not end: {}", self.error_output)
                }
            }
        }
        (self.child.wait().unwrap(), std::mem::take(&mut self.error_output))
    }
}

impl Drop for RunningProgram {
    /// Ends the program, so that a failing test leaves none behind; a script runs to its end when
    /// its input ends.
    fn drop(&mut self) {
        if self.child.stdin.take().is_some() {
            while self.lines.recv_timeout(Duration::from_secs(5)).is_ok() {}
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The NAL units (or packets) of a file.
pub(crate) fn units(path: &Path) -> Vec<Vec<u8>> {
    let codec = codec_of(path).unwrap();
    let mut reader = MediaReader::open(path, codec, ReadOptions::default()).unwrap();
    let (mut ranges, mut units) = (Vec::new(), Vec::new());
    while let Some(frame) = reader.next_frame().unwrap() {
        if codec.has_nal_units() {
            let framing = rushes::Framing::AnnexB;
            rushes::payload::nal::find_units(&frame.data, framing, &mut ranges).unwrap();
            units.extend(ranges.drain(..).map(|range| frame.data[range].to_vec()));
        } else {
            units.push(frame.data.clone());
        }
    }
    units
}

#[cfg(unix)]
pub(crate) fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}
