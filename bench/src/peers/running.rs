//! Another program while it runs, and the CPU time that it took.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::memory::MemoryFile;
use crate::leftovers::Leftover;

/// How often is looked whether something has come about.
pub(super) const GLANCE: Duration = Duration::from_millis(2);

/// A program that was started here. It ends with the value at the latest.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// What it took, once it has ended.
    cpu: Option<f64>,
    /// Until then.
    leftover: Option<Leftover>,
}

impl Running {
    /// Starts a program; what it complains of goes to `errors`.
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

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.cpu.is_none() {
            let before = cpu_of_ended();
            // Only here and in `end` is a child waited for, by one thread: the difference is its.
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                self.cpu = Some(cpu_of_ended() - before);
                self.leftover = None;
            }
        }
        self.cpu.is_some()
    }

    /// Waits for its end; `false` if it has not come at `deadline`.
    pub(super) fn wait(&mut self, deadline: Instant) -> bool {
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(GLANCE);
        }
        true
    }

    /// Asks it to end, as Ctrl-C does.
    pub(super) fn interrupt(&mut self) {
        #[cfg(target_os = "linux")]
        if !self.has_ended() {
            use rustix::process::{Pid, Signal, kill_process};
            // It may have ended by now.
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        }
    }

    /// Ends it, whatever it does.
    pub(super) fn end(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let before = cpu_of_ended();
            if self.child.wait().is_ok() {
                self.cpu = Some(cpu_of_ended() - before);
                self.leftover = None;
            }
        }
    }

    /// CPU seconds that it took, user and system, and those of programs that it waited for; `None`
    /// before its end, and where that cannot be told.
    pub(super) fn cpu(&self) -> Option<f64> {
        self.cpu.filter(|_| cfg!(target_os = "linux"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// CPU seconds of all programs that were waited for.
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

/// Whether there is a program of that name.
pub(super) fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Waits until some program hears what comes to a UDP port; `false` if none does at `deadline`.
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
        std::thread::sleep(GLANCE);
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may")]
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
        assert!(is_there("sh") && is_there("/bin/sh"));
        assert!(!is_there("no-program-is-called-so") && !is_there("/bin/no-program-is-called-so"));
    }
}
