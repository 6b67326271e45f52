//! Runs a scene: a folder with its files, ports of its own, and its commands with a shell.

use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Step;
use super::files::make;
use crate::program::program;
use crate::rig::free_port;

/// Time after which a command counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// Parts of commands that are not available here or would take long, and their replacements.
const INSTEAD: &[(&str, &str)] = &[
    // Two seconds of a test source are the camera.
    ("-f v4l2 -i /dev/video0", "-re -f lavfi -i testsrc2=size=320x240:rate=30:duration=2"),
    ("v4l2src", "videotestsrc is-live=true num-buffers=60"),
    ("autovideosink", "filesink location=seen.yuv"),
    // Other hosts are this one; the groups are joined on loopback.
    ("192.0.2.7:5006", "127.0.0.1:LOCAL"),
    ("192.0.2.7", "127.0.0.1"),
    // Nobody listens there.
    ("192.0.2.8:5004", "127.0.0.1:LOCAL"),
    ("239.1.2.3:5004", "239.1.2.3:5004 --interface lo"),
    // By its address, which is then that of the sender.
    ("232.1.2.3:5004", "232.1.2.3:5004 --interface 127.0.0.1"),
    ("pattern:3840x2160", "pattern:384x216"),
    ("1920x1080", "192x108"),
    ("serve pattern ", "serve pattern:64x64 "),
    ("http://127.0.0.1:9464", "http://127.0.0.1:METRICS"),
    ("--duration 10s", "--duration 2s"),
    ("--metrics 9464", "--metrics METRICS"),
];

/// The ports of a scene.
struct Ports {
    /// For video, and two further for audio.
    media: u16,
    texture: u16,
    metrics: u16,
    /// Of a server for browsers.
    http: u16,
    /// Of a sender.
    local: u16,
}

impl Ports {
    fn new() -> Self {
        let mut media = free_port();
        loop {
            let audio = free_port();
            if audio == media + 2 {
                break;
            }
            media = audio;
        }
        let [texture, metrics, http, local] = std::array::from_fn(|_| free_port());
        Self { media, texture, metrics, http, local }
    }

    /// Returns a command of a page, as it can be run here.
    fn adapt(&self, command: &str) -> String {
        let mut adapted = command.to_owned();
        for (there, here) in INSTEAD {
            adapted = adapted.replace(there, here);
        }
        for (there, here) in [
            ("5004", self.media),
            ("7000", self.texture),
            ("127.0.0.1:9464", self.metrics),
            ("METRICS", self.metrics),
            ("LOCAL", self.local),
        ] {
            adapted = adapted.replace(there, &here.to_string());
        }
        adapted.replace(":8080", &format!(":{}", self.http))
    }

    /// Returns whether some process listens on a port that others of the scene send to.
    fn is_listening(&self) -> bool {
        let names = [self.media, self.texture, self.http].map(|port| format!(":{port:04X} "));
        let tables = ["udp", "udp6", "tcp", "tcp6"].map(|name| format!("/proc/net/{name}"));
        tables
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .any(|table| table.lines().any(|line| names.iter().any(|name| line.contains(name))))
    }
}

/// A shell that runs a command, with all its processes.
struct Shell {
    command: String,
    child: Child,
    number: usize,
}

impl Shell {
    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        let kill = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
        assert!(kill.is_ok());
    }

    /// Returns how it has ended; `None` if it does not end within [`PATIENCE`].
    fn end(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            sleep(Duration::from_millis(10));
        }
        None
    }

    fn is_of_rushes(&self) -> bool {
        self.command.split('|').next_back().is_some_and(|it| it.trim().starts_with("rushes "))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal("-KILL");
            let _ = self.child.wait();
        }
    }
}

/// A scene while it is played.
pub(super) struct Stage<'a> {
    folder: TempDir,
    ports: Ports,
    display: Option<&'a str>,
    shells: usize,
}

impl<'a> Stage<'a> {
    pub(super) fn new(files: &[&str], display: Option<&'a str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in files {
            make(&folder.path().join(name));
        }
        Self { folder, ports: Ports::new(), display, shells: 0 }
    }

    /// Runs all steps. Every command must succeed; those of other programs that go on must only run.
    pub(super) fn play(mut self, steps: &[Step]) {
        let mut going_on = Vec::new();
        for &step in steps {
            let mut shell = self.shell(step.command());
            match step {
                Step::Run(_) => self.expect_success(&mut shell),
                Step::Beside(_) => going_on.push((step, shell)),
                Step::Start(_) | Step::Serve(_) => {
                    self.wait_until_listening(&mut shell);
                    going_on.push((step, shell));
                }
            }
        }
        // A client ends before its server, and a receiver when its sender has ended.
        going_on.reverse();
        going_on.sort_by_key(|(step, _)| !matches!(step, Step::Serve(_)));
        for (step, mut shell) in going_on {
            if !matches!(step, Step::Serve(_)) {
                self.expect_success(&mut shell);
                continue;
            }
            shell.signal("-INT");
            if shell.is_of_rushes() {
                self.expect_success(&mut shell);
            }
        }
    }

    fn shell(&mut self, command: &str) -> Shell {
        let command = self.ports.adapt(command);
        let number = self.shells;
        self.shells += 1;
        let output =
            |name: &str| File::create(self.folder.path().join(format!("{number}.{name}"))).unwrap();
        let program = program();
        let folder = program.parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        // The shell itself stays, and has the exit code of what it interrupted.
        let script = format!("trap : INT\n{command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(self.folder.path()).process_group(0);
        shell.env("PATH", format!("{}:{path}", folder.display()));
        // What ffplay opens need not be seen.
        shell.envs([("SDL_VIDEODRIVER", "dummy"), ("SDL_AUDIODRIVER", "dummy")]);
        if let Some(display) = self.display {
            shell.env("DISPLAY", display).env_remove("WAYLAND_DISPLAY");
        }
        shell.stdin(Stdio::null()).stdout(output("out")).stderr(output("err"));
        Shell { command, child: shell.spawn().unwrap(), number }
    }

    fn expect_success(&self, shell: &mut Shell) {
        let status = shell.end();
        let is_success = status.is_some_and(|status| status.success());
        assert!(is_success, "{}", self.failure(shell, &format!("{status:?}")));
    }

    fn wait_until_listening(&self, shell: &mut Shell) {
        let deadline = Instant::now() + PATIENCE;
        while !self.ports.is_listening() {
            let ended = shell.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", self.failure(shell, "it ended"));
            assert!(Instant::now() < deadline, "{}", self.failure(shell, "it does not listen"));
            sleep(Duration::from_millis(10));
        }
        if !shell.is_of_rushes() {
            // The port of a pipeline is open before the pipeline runs.
            sleep(Duration::from_millis(300));
        }
    }

    /// Returns the outputs of all commands so far.
    fn failure(&self, shell: &Shell, what: &str) -> String {
        let mut text = format!("command {}, {}\n{what}\n", shell.number, shell.command);
        for number in 0..self.shells {
            for name in ["out", "err"] {
                let file = format!("{number}.{name}");
                let octets = fs::read(self.folder.path().join(&file)).unwrap();
                let octets = &octets[..octets.len().min(4000)];
                let _ = writeln!(text, "-- {file}\n{}", String::from_utf8_lossy(octets));
            }
        }
        text
    }
}
