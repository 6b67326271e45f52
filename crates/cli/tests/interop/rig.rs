//! Processes with deadlines, and the program `rushes` itself.

use std::ffi::OsStr;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

pub(crate) use crate::ports::ports;
use crate::program::program;
use crate::skipped;
pub(crate) use crate::skipped::have;

/// Time after which a process is killed and the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns whether GStreamer has all of `elements`; a test without them returns early, as with
/// [`have`].
pub(crate) fn have_elements(elements: &[&str]) -> bool {
    let is_installed = |element: &str| {
        let output = Command::new("gst-inspect-1.0").arg(element).output();
        output.is_ok_and(|output| output.status.success())
    };
    let missing: Vec<_> =
        elements.iter().filter(|element| !is_installed(element)).copied().collect();
    if missing.is_empty() {
        return true;
    }
    let plugins = ["libav", "plugins-base", "plugins-good", "plugins-bad", "plugins-ugly"];
    let packages = plugins.map(|name| format!("gstreamer1.0-{name}")).join(" ");
    skipped::missing(format!("GStreamer's {}", missing.join(", ")), &packages);
    false
}

/// Returns whether `python` has `module` of the package; a test without it returns early, as with
/// [`have`].
pub(crate) fn have_python_module(python: &str, module: &str, package: &str) -> bool {
    let import = format!("import {module}");
    let output = Command::new(python).args(["-c", &import]).output();
    let is_installed = output.is_ok_and(|output| output.status.success());
    if !is_installed {
        skipped::missing(module, package);
    }
    is_installed
}

/// Returns whether some process listens on `port`.
fn is_open(port: u16) -> bool {
    let name = format!(":{port:04X} ");
    ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .any(|table| table.lines().any(|line| line.contains(&name)))
}

/// Returns the octets that wait in the sockets of `port`, as the kernel counts them.
fn octets_waiting(port: u16) -> u64 {
    let name = format!(":{port:04X}");
    let of_line = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = fields.next().is_some_and(|local| local.ends_with(&name));
        let queues = fields.nth(2).filter(|_| is_it)?;
        u64::from_str_radix(queues.split_once(':')?.1, 16).ok()
    };
    ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .map(|table| table.lines().filter_map(of_line).sum::<u64>())
        .sum()
}

/// Returns where each thread of a process waits in the kernel.
fn threads_of(id: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let read = |path: &Path, name| fs::read_to_string(path.join(name)).unwrap_or_default();
    let line = |path: &Path| format!("{}: {}", read(path, "comm").trim(), read(path, "wchan"));
    tasks.map(|task| line(&task.path())).collect::<Vec<_>>().join(", ")
}

/// A process that does not outlive its test.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    /// The outputs, which are read from the start because a full pipe would block the process.
    outputs: Option<[JoinHandle<String>; 2]>,
    /// The error output so far.
    errors: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    pub(crate) fn start<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Self {
        Self::start_with(program, arguments, &[])
    }

    pub(crate) fn start_with<S: AsRef<OsStr>>(
        program: &str,
        arguments: &[S],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = Arc::default();
        let out = read(child.stdout.take(), Arc::default());
        let outputs = Some([out, read(child.stderr.take(), Arc::clone(&errors))]);
        Self { name: program.to_owned(), child, outputs, errors }
    }

    /// Waits until the process listens on `port`, and returns it.
    ///
    /// Fails, with what the process printed, if it ends or does not listen in time.
    pub(crate) fn listening(mut self, port: u16) -> Self {
        let deadline = Instant::now() + PATIENCE;
        while !is_open(port) {
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() || Instant::now() > deadline {
                let threads = threads_of(self.child.id());
                let _ = self.child.kill();
                let [out, err] = self.outputs.take().unwrap().map(|it| it.join().unwrap());
                let name = &self.name;
                panic!("{name} does not listen on port {port} ({ended:?}; {threads}): {out}{err}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        // A port is open before its pipeline runs.
        thread::sleep(Duration::from_millis(300));
        self
    }

    /// Waits until all that was sent to `ports` has been read, by this process or a relay before it.
    ///
    /// A program that is interrupted drops what waits in its socket.
    pub(crate) fn having_read(self, ports: &[u16]) -> Self {
        let deadline = Instant::now() + PATIENCE;
        for port in ports {
            while octets_waiting(*port) > 0 {
                assert!(Instant::now() < deadline, "what waits at port {port} is not read");
                thread::sleep(Duration::from_millis(20));
            }
        }
        self
    }

    /// Waits until the process ends by itself; returns its standard output and its error output.
    pub(crate) fn finish(self) -> (String, String) {
        self.end().1
    }

    /// Interrupts the process like Ctrl-C if it has not ended after `time`. Kills it if it ignores
    /// that, as GStreamer sometimes does.
    pub(crate) fn stop_after(self, time: Duration) -> (String, String) {
        self.ended_after(time).1
    }

    /// Interrupts the process as soon as its error output contains `text`, or when it has not said it for long.
    pub(crate) fn stop_at(self, text: &str) -> (String, String) {
        let deadline = Instant::now() + PATIENCE;
        let says = || String::from_utf8_lossy(&self.errors.lock().unwrap()).contains(text);
        while !says() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(50));
        }
        self.stop_after(Duration::ZERO)
    }

    /// Like [`stop_after`](Self::stop_after), and also returns the exit code.
    pub(crate) fn ended_after(self, time: Duration) -> (Option<i32>, (String, String)) {
        let id = self.child.id().to_string();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let stopping = thread::spawn(move || {
            let grace = Duration::from_secs(3);
            for (time, signal) in [(time, "-INT"), (grace, "-INT"), (grace, "-KILL")] {
                if stopped.recv_timeout(time).is_ok() {
                    return;
                }
                let _ = Command::new("kill").args([signal, &id]).status();
            }
        });
        let ended = self.end();
        let _ = stop.send(());
        stopping.join().unwrap();
        ended
    }

    fn end(mut self) -> (Option<i32>, (String, String)) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let [_, err] = self.outputs.take().unwrap();
                panic!("{} did not end: {}", self.name, err.join().unwrap());
            }
            thread::sleep(Duration::from_millis(10));
        };
        let [out, err] = self.outputs.take().unwrap();
        (status.code(), (out.join().unwrap(), err.join().unwrap()))
    }
}

/// Reads a stream to its end into `octets`, and returns them as text.
fn read(
    mut stream: Option<impl Read + Send + 'static>,
    octets: Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut part = [0; 8192];
        while let Some(Ok(len @ 1..)) = stream.as_mut().map(|stream| stream.read(&mut part)) {
            octets.lock().unwrap().extend_from_slice(&part[..len]);
        }
        String::from_utf8_lossy(&octets.lock().unwrap()).into_owned()
    })
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port of TCP on which nothing listens.
pub(crate) fn free_tcp_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until something listens on a port of TCP.
pub(crate) fn await_tcp(port: u16) {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on port {port}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts `rushes` with `arguments`.
pub(crate) fn rushes<S: AsRef<OsStr>>(arguments: &[S]) -> Process {
    Process::start(program().to_str().unwrap(), arguments)
}

/// Sends `file` to `port` with `rushes send`; returns its report.
pub(crate) fn send(file: &Path, port: u16, more: &[&str]) -> Value {
    let to = format!("127.0.0.1:{port}");
    let mut arguments = vec!["send", file.to_str().unwrap(), "--to", &to, "--json"];
    let is_bare = |it: &OsStr| ["264", "265", "266"].iter().any(|bare| it == OsStr::new(bare));
    if !more.contains(&"--fps") && file.extension().is_some_and(is_bare) {
        arguments.extend(["--fps", "60"]);
    }
    arguments.extend(more);
    let (out, err) = rushes(&arguments).finish();
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("rushes send: {out}{err}"))
}

/// Writes the description of a stream of `file` to `port` with `rushes send`.
pub(crate) fn describe(file: &Path, port: u16, folder: &Path, more: &[&str]) -> PathBuf {
    let sdp = folder.join(format!("{port}.sdp"));
    let mut arguments = vec!["--sdp", sdp.to_str().unwrap(), "--dry-run"];
    arguments.extend(more);
    send(file, port, &arguments);
    sdp
}

/// Starts `rushes recv` on `port` into `file`, and waits until it listens.
pub(crate) fn receive(file: &Path, port: u16, more: &[&str]) -> Process {
    let from = format!("127.0.0.1:{port}");
    let mut arguments = vec!["recv", "--from", &from, "-o", file.to_str().unwrap(), "--json"];
    // Some tests receive into the same file several times.
    arguments.push("--force");
    arguments.extend(more);
    rushes(&arguments).listening(port)
}

/// Returns the report that `rushes recv` printed at its end.
pub(crate) fn received(process: Process) -> Value {
    let (out, err) = process.finish();
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("rushes recv: {out}{err}"))
}

/// Starts `rushes recv` of the stream that `sdp` describes into `file`, and waits until it listens
/// on `port`.
pub(crate) fn receive_described(file: &Path, sdp: &Path, port: u16, more: &[&str]) -> Process {
    let mut arguments = vec!["recv", "--sdp", sdp.to_str().unwrap()];
    arguments.extend(["-o", file.to_str().unwrap(), "--json", "--force"]);
    arguments.extend(more);
    rushes(&arguments).listening(port)
}
