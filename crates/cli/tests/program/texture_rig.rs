//! Texture video in tests: a server with its address, and its output.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use rushes::texture::Layout;
use rushes::texture::file::{FrameReader, Y4mReader};
use rushes::texture::source::read_counter;

use crate::rig::{interrupt, rushes, text};

/// A server process at a free port.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
    errors: Option<thread::JoinHandle<()>>,
}

/// Serves `source` until interrupted.
pub(crate) fn serving(source: &str, more: &[&str]) -> Server {
    serving_by(rushes(&[]), source, more)
}

/// Like [`serving`], with a command that takes the program's arguments.
pub(crate) fn serving_by(mut command: Command, source: &str, more: &[&str]) -> Server {
    command.args(["texture", "serve", source, "--listen", "127.0.0.1:0"]).args(more);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut log = String::new();
    let address = loop {
        assert_ne!(lines.read_line(&mut log).unwrap(), 0, "no server: {log}");
        if let Some((_, address)) = log.split_once("listening on ") {
            break address.trim().to_owned();
        }
    };
    // The log is read, so that its pipe does not fill up.
    let log = Arc::new(Mutex::new(log));
    let appended = log.clone();
    let errors = thread::spawn(move || {
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|octets| octets > 0) {
            appended.lock().unwrap().push_str(&line);
            line.clear();
        }
    });
    Server { child: Some(child), address, log, errors: Some(errors) }
}

impl Server {
    /// Returns the server's process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Returns the server's error output so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the server ends; returns its output.
    pub(crate) fn finish(mut self) -> (Output, String) {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        self.errors.take().unwrap().join().unwrap();
        (output, self.log())
    }

    /// Interrupts the server like Ctrl-C, then waits until it ends.
    #[cfg(unix)]
    pub(crate) fn interrupt(self) -> (Output, String) {
        interrupt(self.child.as_ref().unwrap());
        self.finish()
    }
}

impl Drop for Server {
    /// Ends the server, so that a failing test leaves none behind.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Starts a client and returns it when it is being served.
pub(crate) fn viewing(address: &str, more: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let view = ["texture", "view", address, "--null", "--stats-interval", "10ms", "--json"];
    let mut child = rushes(&[&view, more].concat()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    // The client is being served when it prints statistics.
    assert_ne!(lines.read_line(&mut String::new()).unwrap(), 0);
    (child, lines)
}

/// Runs `rushes texture` with these arguments.
pub(crate) fn texture(arguments: &[&str]) -> Output {
    crate::rig::run(&[&["texture"], arguments].concat())
}

/// Like [`texture`], but fails unless the program succeeds.
pub(crate) fn must(arguments: &[&str]) -> Output {
    let output = texture(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    output
}

/// Returns every frame of a Y4M file.
pub(crate) fn frames(path: &Path) -> (Layout, Vec<Vec<u8>>) {
    let file = BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = Y4mReader::new(file).unwrap();
    let (mut frames, mut frame) = (Vec::new(), Vec::new());
    while reader.read_frame(&mut frame).unwrap() {
        frames.push(frame.clone());
    }
    (*reader.layout(), frames)
}

/// Returns the numbers that the pattern has drawn into the frames of a Y4M file.
pub(crate) fn counters(path: &Path) -> Vec<u32> {
    let (layout, frames) = frames(path);
    frames.iter().map(|frame| read_counter(&layout, frame).unwrap()).collect()
}
