//! External tools, run with deadlines, and one installed package for all tests.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

pub(crate) use crate::skipped::have;
use crate::skipped::missing;

/// How long a process may run before it is killed and the test fails.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Reports that a test is skipped, or fails it where skipping is not allowed.
pub(crate) fn skip(reason: &str) -> bool {
    missing(reason, "");
    false
}

/// Returns the folder of this package.
pub(crate) fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Creates an empty folder for a test, below cargo's build folder.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the folder `deps` of cargo's build output, which contains this test.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Returns the program `rushes` if cargo has built it beside this test.
pub(crate) fn rushes() -> Option<PathBuf> {
    Some(built().parent()?.join("rushes")).filter(|program| program.is_file())
}

/// Returns the static library that cargo built for this test, which is the newest one.
fn archive() -> PathBuf {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("librushes_capi") && path.extension().is_some_and(|it| it == "a")
    };
    let when = |path: &PathBuf| {
        fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let entries = fs::read_dir(built()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(is_ours).max_by_key(when).expect("cargo builds the archive with the library")
}

/// Returns the prefix of the installed package, which is installed only once.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = folder("prefix");
        install(&["--prefix", prefix.to_str().unwrap()]);
        prefix
    })
}

/// Runs the installer.
pub(crate) fn install(arguments: &[&str]) {
    let mut installer = Command::new(home().join("install"));
    installer.arg("--archive").arg(archive()).args(arguments);
    run(&mut installer);
}

/// Runs a program, which must succeed, and returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let (success, output) = Process::start(command).end();
    assert!(success, "{command:?}:\n{output}");
    output
}

/// A process that does not outlive its test.
pub(crate) struct Process {
    child: Child,
    /// Read from the start, as a full pipe would block the process.
    outputs: Option<[thread::JoinHandle<String>; 2]>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let outputs = Some([read(child.stdout.take()), read(child.stderr.take())]);
        Self { child, outputs }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the process to end; returns whether it succeeded, and its output.
    pub(crate) fn end(mut self) -> (bool, String) {
        let deadline = Instant::now() + TIME_LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                break None;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let outputs = self.outputs.take().into_iter().flatten();
        let mut output: String = outputs.map(|output| output.join().unwrap()).collect();
        if status.is_none() {
            output.push_str("\nended after 120 s");
        }
        (status.is_some_and(|status| status.success()), output)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(output: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut octets = Vec::new();
        if let Some(mut output) = output {
            let _ = output.read_to_end(&mut octets);
        }
        String::from_utf8_lossy(&octets).into_owned()
    })
}

/// The flags to link the static library, with the system libraries that it needs.
pub(crate) fn static_flags() -> Vec<String> {
    let private = fs::read_to_string(prefix().join("lib/pkgconfig/rushes.pc")).unwrap();
    let line = private.lines().find_map(|line| line.strip_prefix("Libs.private: ")).unwrap();
    let archive = prefix().join("lib/librushes.a").to_str().unwrap().to_owned();
    std::iter::once(archive).chain(line.split(' ').map(ToOwned::to_owned)).collect()
}
