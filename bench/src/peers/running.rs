//! A running program, and the CPU time that it used.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::memory::MemoryFile;
use crate::leftovers::Leftover;

/// Polling interval.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A started program. It is ended when the value is dropped, if not before.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// Its CPU seconds, once it has ended.
    cpu: Option<f64>,
    /// Its registration for cleanup, until it has ended.
    leftover: Option<Leftover>,
}

impl Running {
    /// Starts a program, with its standard error written to `errors`.
    pub(super) fn start(
        words: &[String],
        errors: &MemoryFile,
        stdout: Stdio,
    ) -> anyhow::Result<Self> {
        errors.clear(0)?;
        let (program, arguments) = words.split_first().context("an empty command")?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(errors.writer()?)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let leftover = Some(Leftover::process(child.id()));
        Ok(Self { child, cpu: None, leftover })
    }

    /// Returns whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        self.note_end(|child| matches!(child.try_wait(), Ok(Some(_))));
        self.cpu.is_some()
    }

    /// Notes its CPU time if `has_ended` finds that it has ended. Children are waited for only
    /// there, by one thread: the difference belongs to this child.
    fn note_end(&mut self, has_ended: impl FnOnce(&mut Child) -> bool) {
        let before = cpu_of_ended();
        if self.cpu.is_none() && has_ended(&mut self.child) {
            self.cpu = Some(cpu_of_ended() - before);
            self.leftover = None;
        }
    }

    /// Waits for its end; `false` if it is still running at `deadline`.
    pub(super) fn wait(&mut self, deadline: Instant) -> bool {
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        true
    }

    /// Interrupts it, like Ctrl-C.
    pub(super) fn interrupt(&mut self) {
        #[cfg(target_os = "linux")]
        if !self.has_ended() {
            use rustix::process::{Pid, Signal, kill_process};
            // Fails if it has ended meanwhile.
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        }
    }

    /// Kills it if it is still running.
    pub(super) fn end(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            self.note_end(|child| child.wait().is_ok());
        }
    }

    /// Returns the CPU seconds that the program used, user and system, including its own children;
    /// `None` before its end, and where it is not known.
    pub(super) fn cpu(&self) -> Option<f64> {
        self.cpu.filter(|_| cfg!(target_os = "linux"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the CPU seconds of all child processes that have been waited for.
#[cfg(target_os = "linux")]
fn cpu_of_ended() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeVal;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[cfg(not(target_os = "linux"))]
fn cpu_of_ended() -> f64 {
    0.0
}

/// Returns whether a program of this name or path exists.
pub(super) fn is_installed(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Waits until a program has bound a UDP port; `false` if none has at `deadline`.
pub(super) fn wait_for_port(port: u16, running: &mut Running, deadline: Instant) -> bool {
    let ending = format!(":{port:04X}");
    let is_bound = || {
        ["/proc/net/udp", "/proc/net/udp6"].iter().any(|file| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            text.lines().any(|line| {
                line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&ending))
            })
        })
    };
    while !is_bound() {
        if Instant::now() >= deadline || running.has_ended() {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_with_its_value() {
        let words = ["sleep", "60"].map(str::to_owned);
        let errors = MemoryFile::new().unwrap();
        let running = Running::start(&words, &errors, Stdio::null()).unwrap();
        let process = format!("/proc/{}", running.child.id());
        assert_eq!(Path::new(&process).exists(), cfg!(target_os = "linux"));
        drop(running);
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(is_installed("sh") && is_installed("/bin/sh"));
        assert!(
            !is_installed("no-program-is-called-so")
                && !is_installed("/bin/no-program-is-called-so")
        );
    }
}
