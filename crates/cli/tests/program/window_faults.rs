//! A window whose surface, device or screen disappears while it is drawn on.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::rig::{rushes, text};
use crate::texture_rig::{Server, serving};
use crate::window::{Display, Viewer, exact, have, wait_for};

const PROGRAMS: [&str; 4] = ["Xvfb", "xdotool", "import", "cc"];
const SOURCE: &str = "pattern:640x360@10";

const SUCCESS: i32 = 0;
const TIMEOUT: i32 = 2;
const SUBOPTIMAL: i32 = 1_000_001_003;
const DEVICE_LOST: i32 = -4;
const SURFACE_LOST: i32 = -1_000_000_000;
const NATIVE_WINDOW_IN_USE: i32 = -1_000_000_001;
const OUT_OF_DATE: i32 = -1_000_001_004;

/// The Vulkan layer `faults.c`, which makes calls fail on request.
pub(crate) struct Faults(TempDir);

impl Faults {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/faults.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-fvisibility=hidden"]);
        compiler.args(["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]);
        compiler.args(["-shared", "-fPIC", "-pthread", "-o", "libfaults.so"]).arg(source);
        let output = compiler.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let manifest = serde_json::json!({
            "file_format_version": "1.0.0",
            "layer": {
                "name": "VK_LAYER_RUSHES_faults",
                "type": "GLOBAL",
                "library_path": folder.path().join("libfaults.so"),
                "api_version": "1.3.0",
                "implementation_version": "1",
                "description": "Makes calls fail on request",
                "functions": {
                    "vkGetInstanceProcAddr": "faults_instance_function",
                    "vkGetDeviceProcAddr": "faults_device_function",
                },
            },
        });
        std::fs::write(folder.path().join("faults.json"), manifest.to_string()).unwrap();
        Self(folder)
    }

    /// Returns the command of a viewer of a server's frames that runs through the layer.
    pub(crate) fn view(&self, server: &Server) -> Command {
        let mut command = rushes(&["texture", "view", &server.address, "--window"]);
        command.env("FAULTS", self.0.path()).env("VK_LAYER_PATH", self.0.path());
        command.env("VK_INSTANCE_LAYERS", "VK_LAYER_RUSHES_faults");
        command
    }

    /// Returns every call so far, as its name and its result.
    pub(crate) fn calls(&self) -> Vec<(String, i32)> {
        let log = std::fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
        let pair = |line: &str| {
            let (call, result) = line.split_once(' ')?;
            Some((call.to_owned(), result.parse().ok()?))
        };
        // The last line may be incomplete.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(pair).collect()
    }

    /// Returns whether the program draws through Vulkan; otherwise the test returns early.
    pub(crate) fn are_heard(&self) -> bool {
        let has_driver = !self.calls().is_empty();
        if !has_driver {
            crate::skipped::missing("a Vulkan driver", "mesa-vulkan-drivers libvulkan1");
        }
        has_driver
    }

    /// Makes the next calls of this name fail.
    fn want(&self, call: &str, result: i32, times: usize) {
        let new = self.0.path().join("new");
        std::fs::write(&new, format!("{call} {result} {times}\n")).unwrap();
        std::fs::rename(new, self.0.path().join("wanted")).unwrap();
    }

    fn count(&self, call: &str, result: i32) -> usize {
        self.calls().iter().filter(|(name, had)| name == call && *had == result).count()
    }
}

/// Starts a viewer that shows pictures in a window of the pattern's size; returns `None` without
/// Vulkan.
fn showing(faults: &Faults, display: &Display, server: &Server) -> Option<(Viewer, String)> {
    let (viewer, window) = display.open(faults.view(server));
    display.xdotool(&["windowsize", &window, "640", "360"]);
    wait_for("a picture", || exact(display, &window, SOURCE));
    faults.are_heard().then_some((viewer, window))
}

#[test]
fn a_surface_that_is_lost_or_changed_is_had_again() {
    if !have(&PROGRAMS) {
        return;
    }
    let (faults, display) = (Faults::new(), Display::new());
    let server = serving(SOURCE, &["--format", "bc1", "--transport", "tcp"]);
    let Some((viewer, window)) = showing(&faults, &display, &server) else { return };
    for (call, result, times) in [
        ("acquire", SURFACE_LOST, 1),
        ("acquire", OUT_OF_DATE, 1),
        // This is more than the window recovers from at once.
        ("acquire", SURFACE_LOST, 4),
        ("acquire", TIMEOUT, 4),
        ("present", OUT_OF_DATE, 2),
        ("present", SURFACE_LOST, 1),
        ("swapchain", SURFACE_LOST, 4),
    ] {
        let before = faults.count(call, result);
        faults.want(call, result, times);
        if call == "swapchain" {
            display.xdotool(&["windowsize", &window, "320", "180"]);
        }
        wait_for("the fault", || (faults.count(call, result) >= before + times).then_some(()));
        display.xdotool(&["windowsize", &window, "640", "360"]);
        let number = wait_for("a picture", || exact(&display, &window, SOURCE)).0;
        wait_for("a later picture", || {
            exact(&display, &window, SOURCE).filter(|(later, _)| *later > number)
        });
    }
    assert_eq!(faults.count("swapchain", NATIVE_WINDOW_IN_USE), 0);
    // If a driver always reports a suboptimal swapchain, it is replaced once, not with every
    // picture.
    let before = faults.count("swapchain", SUCCESS);
    faults.want("acquire", SUBOPTIMAL, 10);
    wait_for("the end of it", || (faults.count("acquire", SUBOPTIMAL) >= 10).then_some(()));
    assert_eq!(faults.count("swapchain", SUCCESS), before + 1);
    display.key(&window, "q");
    let output = viewer.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_picture_that_the_screen_did_not_take_is_drawn_without_another_frame() {
    if !have(&PROGRAMS) {
        return;
    }
    let (faults, display) = (Faults::new(), Display::new());
    // The next frame arrives after the end of the test.
    let slow = "pattern:640x360@1/300";
    let server = serving(slow, &["--format", "bc1", "--transport", "tcp"]);
    let Some((viewer, window)) = showing(&faults, &display, &server) else { return };
    let mut seen = Vec::new();
    wait_for("a picture that stays", || {
        seen.push(display.pixels(&window));
        seen.last_chunk::<3>().filter(|last| last.iter().all(|it| it == &last[0])).map(|_| ())
    });
    faults.want("acquire", TIMEOUT, 2);
    display.key(&window, "s");
    wait_for("the fault", || (faults.count("acquire", TIMEOUT) >= 2).then_some(()));
    wait_for("statistics", || (seen.last() != Some(&display.pixels(&window))).then_some(()));
    display.key(&window, "q");
    let output = viewer.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn what_is_lost_for_good_ends_the_window_in_words() {
    if !have(&PROGRAMS) {
        return;
    }
    let (faults, display) = (Faults::new(), Display::new());
    let server = serving(SOURCE, &["--format", "bc1", "--transport", "tcp"]);
    for (call, result, times, words) in [
        ("acquire", DEVICE_LOST, 1, "device was lost"),
        ("submit", DEVICE_LOST, 1, "device was lost"),
        ("present", DEVICE_LOST, 1, "device was lost"),
        ("acquire", SURFACE_LOST, 1_000_000, "surface is lost"),
    ] {
        faults.want(call, result, 0);
        let Some((viewer, _)) = showing(&faults, &display, &server) else { return };
        faults.want(call, result, times);
        let output = viewer.finish();
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{call} {result}: {log}");
        assert!(log.contains(words) && !log.contains("panicked"), "{call} {result}: {log}");
        // The frames received until then are reported.
        assert!(log.contains("ended as requested"), "{call} {result}: {log}");
    }
}

#[test]
fn a_screen_that_disappears_ends_the_window() {
    if !have(&["Xvfb", "xdotool", "import"]) {
        return;
    }
    let mut display = Display::new();
    let server = serving(SOURCE, &["--format", "bc1", "--transport", "tcp"]);
    let (viewer, window) = display.open(rushes(&["texture", "view", &server.address, "--window"]));
    display.xdotool(&["windowsize", &window, "640", "360"]);
    wait_for("a picture", || exact(&display, &window, SOURCE));
    display.end();
    let output = viewer.finish();
    let log = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{log}");
    // The X library ends the program with a message of its own, unless winit notices first that the screen is gone.
    let is_named = log.contains(&display.name) || log.contains("the window failed");
    assert!(is_named, "{log}");
}
