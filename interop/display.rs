//! A screen in memory for programs that open windows.
//!
//! Test programs include this file by `#[path]`.
#![allow(dead_code, reason = "each test program uses only some items")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// A virtual screen, which needs `Xvfb`.
pub(crate) struct Display {
    server: Child,
    pub(crate) name: String,
}

impl Display {
    /// Starts a screen of a size such as "1000x700".
    pub(crate) fn of_size(size: &str) -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", &format!("{size}x24"), "-nolisten", "tcp"])
            // Without this option the server resets whenever its last client disconnects, and does
            // not answer meanwhile.
            .arg("-noreset")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Self { server, name: format!(":{}", number.trim()) }
    }

    /// Runs a program on the screen, and ends it after a time at which it has no result any more.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["--signal", "KILL", "20", program]).args(arguments);
        command.env("DISPLAY", &self.name).output().unwrap()
    }

    /// Returns the pixels of a window, or of the "root", as RGB24; empty while there are none. It needs `import`.
    pub(crate) fn pixels(&self, window: &str) -> Vec<u8> {
        self.command("import", &["-window", window, "-depth", "8", "rgb:-"]).stdout
    }

    /// Ends the screen; does nothing if it has already ended.
    pub(crate) fn end(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.end();
    }
}
