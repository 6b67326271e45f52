//! A real window on a virtual screen: its pictures, resizing, closing.

use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rushes::texture::source::{RawHint, open, read_counter};
use rushes::texture::{Decoder, Encoder, Format, Layout};

pub(crate) use crate::display::Display;
use crate::rig::{rushes, text};
pub(crate) use crate::skipped::have;
use crate::texture_rig::serving;

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
pub(crate) const SIZE: (u32, u32) = (640, 360);

impl Display {
    pub(crate) fn new() -> Self {
        Self::of_size("1000x700")
    }

    pub(crate) fn xdotool(&self, arguments: &[&str]) -> String {
        text(&self.command("xdotool", arguments).stdout).trim().to_owned()
    }

    /// Runs a program that opens a window; also returns the window's number.
    pub(crate) fn open(&self, mut command: Command) -> (Viewer, String) {
        command.env("DISPLAY", &self.name).env_remove("WAYLAND_DISPLAY");
        let mut viewer = Viewer(Some(command.spawn().unwrap()));
        let window = wait_for("a window", || {
            if viewer.0.as_mut().unwrap().try_wait().unwrap().is_some() {
                let output = viewer.0.take().unwrap().wait_with_output().unwrap();
                panic!("no window: {}", text(&output.stderr));
            }
            let found = self.xdotool(&["search", "--name", " - rushes"]);
            found.lines().next().map(str::to_owned)
        });
        (viewer, window)
    }

    pub(crate) fn key(&self, window: &str, key: &str) {
        self.xdotool(&["windowfocus", window]);
        self.xdotool(&["key", "--window", window, key]);
    }

    /// Returns the window's width and height in pixels.
    fn size(&self, window: &str) -> (u32, u32) {
        let geometry = self.xdotool(&["getwindowgeometry", "--shell", window]);
        let value = |name: &str| {
            let line = geometry.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.parse().ok()).unwrap_or_default()
        };
        (value("WIDTH="), value("HEIGHT="))
    }
}

/// A program that a failing test does not leave behind.
pub(crate) struct Viewer(pub(crate) Option<Child>);

impl Viewer {
    /// Waits until the program ends.
    pub(crate) fn finish(mut self) -> Output {
        wait_for("the end", || self.0.as_mut().unwrap().try_wait().unwrap());
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what} was not seen in time");
        sleep(PAUSE);
    }
}

/// Returns a frame of the pattern, encoded to BC1 and decoded.
pub(crate) fn expected(source: &str, number: u32) -> Vec<u8> {
    expected_by(Format::Bc1, source, number)
}

/// Returns a frame of the pattern, encoded to a format and decoded.
fn expected_by(format: Format, source: &str, number: u32) -> Vec<u8> {
    let mut pattern = open(source.as_ref(), &RawHint::default()).unwrap();
    let mut frame = pattern.next_frame().unwrap().unwrap();
    for _ in 0..number {
        frame = pattern.next_frame().unwrap().unwrap();
    }
    let (input, (width, height)) = (pattern.layout().format(), SIZE);
    let encoder = Encoder::new(input, format, width, height).unwrap();
    let mut blocks = vec![0; encoder.output().bytes()];
    let rows = 0..encoder.output().planes()[0].rows;
    encoder.encode_rows(&frame, 0, rows, &mut blocks).unwrap();
    let decoder = Decoder::new(format, width, height, Format::Rgb24).unwrap();
    let mut picture = vec![0; decoder.output().bytes()];
    decoder.decode(&blocks, &mut picture).unwrap();
    picture
}

/// Returns the picture in a window of the pattern's size, and its number, or `None` unless every
/// pixel equals the decoder's.
pub(crate) fn exact(display: &Display, window: &str, source: &str) -> Option<(u32, Vec<u8>)> {
    exact_by(Format::Bc1, display, window, source)
}

/// The same for frames in a format.
fn exact_by(
    format: Format,
    display: &Display,
    window: &str,
    source: &str,
) -> Option<(u32, Vec<u8>)> {
    let layout = Layout::new(Format::Rgb24, SIZE.0, SIZE.1).unwrap();
    let picture = display.pixels(window);
    // A picture taken between two frames has parts of both.
    let number = read_counter(&layout, &picture)?;
    let wanted = expected_by(format, source, number);
    let is_same = picture.iter().zip(&wanted).all(|(have, want)| have.abs_diff(*want) <= 1);
    is_same.then_some((number, picture))
}

#[test]
fn a_window_opens_at_the_size_of_the_picture_shows_every_pixel_takes_another_size_and_closes() {
    if !have(&["Xvfb", "xdotool", "import"]) {
        return;
    }
    let display = Display::new();
    let source = "pattern:640x360@10";
    let server = serving(source, &["--format", "bc1", "--transport", "tcp"]);
    let view = ["texture", "view", &server.address, "--window"];
    let (viewer, window) = display.open(rushes(&view));

    let layout = Layout::new(Format::Rgb24, SIZE.0, SIZE.1).unwrap();
    let (number, picture) = wait_for("a picture", || exact(&display, &window, source));
    assert_eq!(picture.len(), layout.bytes());
    wait_for("a later picture", || {
        read_counter(&layout, &display.pixels(&window)).filter(|&later| later > number)
    });

    // The next format is asked for with a key, and half the frame rate with another.
    display.key(&window, "c");
    wait_for("another format", || exact_by(Format::YCoCgBc3, &display, &window, source));
    display.key(&window, "minus");

    // In a narrower window the aspect ratio is kept, with black above and below.
    display.xdotool(&["windowsize", &window, "320", "400"]);
    wait_for("black above and below", || {
        let picture = display.pixels(&window);
        let row = |y: usize| picture.get(y * 960..(y + 1) * 960);
        let is_black = |y| row(y).is_some_and(|row| row.iter().all(|&octet| octet == 0));
        let is_fitted = picture.len() == 320 * 400 * 3 && is_black(5) && is_black(394);
        (is_fitted && !is_black(200)).then_some(())
    });

    display.key(&window, "q");
    let output = viewer.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    for line in ["ended as requested", "asking for ycocg-bc3", "asking for 5.00 frames/s"] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn a_picture_that_is_larger_than_the_screen_is_shown_at_half_its_size() {
    if !have(&["Xvfb", "xdotool"]) {
        return;
    }
    let display = Display::new();
    let server = serving("pattern:1920x1080@10", &["--format", "bc1", "--transport", "tcp"]);
    let view = ["texture", "view", &server.address, "--window", "--latency", "0"];
    let (viewer, window) = display.open(rushes(&view));
    wait_for("half the size", || (display.size(&window) == (960, 540)).then_some(()));
    display.key(&window, "q");
    let output = viewer.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn without_a_screen_a_window_is_refused_in_words() {
    let mut command = rushes(&["texture", "view", "127.0.0.1:9", "--window"]);
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(name);
    }
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = text(&output.stderr);
    assert!(log.contains("no window can be opened") && log.contains("--null"), "{log}");
    assert!(!log.contains(".rs:"), "{log}");
}

#[test]
fn without_a_driver_a_window_is_refused_in_words() {
    if !have(&["Xvfb"]) {
        return;
    }
    let display = Display::new();
    let mut command = rushes(&["texture", "view", "127.0.0.1:9", "--window"]);
    command.env("DISPLAY", &display.name).env_remove("WAYLAND_DISPLAY");
    // Neither loader finds a driver.
    command.env("VK_ICD_FILENAMES", "/nonexistent").env("VK_DRIVER_FILES", "/nonexistent");
    command.env("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent");
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = text(&output.stderr);
    assert!(log.contains("no graphics driver was found"), "{log}");
}
